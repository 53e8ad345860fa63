package incremental

import (
	"strings"

	"github.com/isowatch/isowatch/incremental/paged"
	"github.com/isowatch/isowatch/incremental/version"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/slots"
)

// values numbers the pairs of key and value that occur, and knows who wrote each and who waits for that. The number is
// the one look-up that every operation costs. Integers, by far the most, go into an open-addressing
// table of cell numbers, whose keys are the cells themselves: 8 bytes a slot
// where a map from (key, integer) would take some 28. The hash beside the number
// spares a look at the cell, which is not in the cache, for all but the right
// one. So does null, as what keys hold that nobody wrote. The rest goes into a
// map.
//
// Invariant: slots has a power of two of entries, at most 3/4 of them taken;
// probing from the hash of an integer cell finds it before a free slot.
type values struct {
	cells paged.Vec[cellID, cell]
	slots []uint64 // of cells, as package slots has them
	ints  int      // slots taken
	texts map[text]cellID
	own   bool // as names.own

	refs    []member                // writers of values beside the first
	rare    map[cellID]otherWriters // of those that have such
	waiters []member                // readers that wait for who wrote a value
	freed   uint32                  // the first of the waiters to use again
	woken   []cellID                // values of which more is known, and that readers wait for
	lists   map[cellID]*list        // those that are lists
}

type text struct {
	key  version.Key
	kind record.ValueKind
	text string
}

// hash spreads consecutive values of one key, and one value of consecutive keys,
// over all slots.
func hash(k version.Key, n int64) uint32 {
	h := (uint64(n) ^ 0x9e3779b97f4a7c15) * 0xff51afd7ed558ccd
	h = (h ^ h>>32 ^ uint64(k)*0xd6e8feb86659fd93) * 0xc4ceb9fe1a85ec53
	return uint32(h >> 32)
}

// cellOf numbers a value of a key; new ones get the next number.
func (vs *values) cellOf(k version.Key, v record.Value) cellID {
	if v.Kind != record.KindInt && v.Kind != record.KindNull {
		at := text{k, v.Kind, v.Text}
		c, ok := vs.texts[at]
		if !ok {
			if vs.texts == nil {
				vs.texts = map[text]cellID{}
			}
			c = vs.push(k, v)
			if vs.own {
				at.text = strings.Clone(at.text)
			}
			vs.texts[at] = c
		}
		return c
	}
	if 4*vs.ints >= 3*len(vs.slots) {
		vs.slots = slots.Doubled(vs.slots, 16)
	}
	num, kind := v.Num, cellFlags(0)
	if v.Kind == record.KindNull {
		num, kind = 0, isNull
	}
	h := hash(k, num) ^ uint32(kind)
	mask := uint32(len(vs.slots) - 1)
	for i := h & mask; ; i = (i + 1) & mask {
		s := vs.slots[i]
		if s == 0 {
			c := vs.push(k, v)
			vs.slots[i] = uint64(h)<<32 | uint64(c+1)
			vs.ints++
			return c
		}
		if uint32(s>>32) != h {
			continue
		}
		if c := vs.cells.At(cellID(s) - 1); c.num == num && c.key == k && c.about&isNull == kind {
			return cellID(s) - 1
		}
	}
}

func (vs *values) push(k version.Key, v record.Value) cellID {
	c := cell{key: k, num: v.Num, final: none, more: none, version: none, waiting: none}
	switch {
	case v.Kind == record.KindInt && v.Num == 0:
		c.about = isZero
	case v.Kind == record.KindNull:
		c.about = isNull
	case v.Kind == record.KindList && v.Text == "[]":
		c.about = isEmpty
	}
	return vs.cells.Push(c)
}
