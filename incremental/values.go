package incremental

import (
	"math/bits"

	"github.com/isowatch/isowatch/incremental/paged"
	"github.com/isowatch/isowatch/incremental/version"
	"github.com/isowatch/isowatch/ingest/record"
)

// values numbers the pairs of key and value that occur: the one look-up that
// every operation costs. Integers, by far the most, go into an open-addressing
// table of cell numbers, whose keys are the cells themselves: 4 bytes a slot
// where a map from (key, integer) would take some 28, and half the time. The
// rest goes into a map.
//
// Invariant: slots has a power of two of entries, at most 3/4 of them taken;
// probing from the hash of an integer cell finds it before a free slot.
type values struct {
	cells paged.Vec[cell]
	slots []uint32 // cell numbers + 1; 0 is free
	ints  int      // slots taken
	texts map[text]cellID
}

type text struct {
	key  version.Key
	kind record.ValueKind
	text string
}

func hash(k version.Key, n int64) uint32 {
	hi, lo := bits.Mul64(uint64(n)^0x9e3779b97f4a7c15, uint64(k)*0xff51afd7ed558ccd|1)
	return uint32((hi ^ lo) >> 16)
}

// cellOf numbers a value of a key; new ones get the next number.
func (vs *values) cellOf(k version.Key, v record.Value) cellID {
	if v.Kind != record.KindInt {
		at := text{k, v.Kind, v.Text}
		c, ok := vs.texts[at]
		if !ok {
			if vs.texts == nil {
				vs.texts = map[text]cellID{}
			}
			c = vs.push(k, v)
			vs.texts[at] = c
		}
		return c
	}
	if 4*vs.ints >= 3*len(vs.slots) {
		vs.grow()
	}
	mask := uint32(len(vs.slots) - 1)
	for i := hash(k, v.Num) & mask; ; i = (i + 1) & mask {
		s := vs.slots[i]
		if s == 0 {
			c := vs.push(k, v)
			vs.slots[i] = c + 1
			vs.ints++
			return c
		}
		if c := vs.cells.At(s - 1); c.num == v.Num && c.key == k {
			return s - 1
		}
	}
}

func (vs *values) push(k version.Key, v record.Value) cellID {
	c := cell{key: k, num: v.Num, final: none, version: none, waiting: none}
	switch {
	case v.Kind == record.KindInt && v.Num == 0:
		c.about = isZero
	case v.Kind == record.KindNull:
		c.about = isNull
	}
	if v.Kind != record.KindInt {
		c.about |= isText
	}
	return vs.cells.Push(c)
}

// grow doubles the table.
func (vs *values) grow() {
	vs.slots = make([]uint32, max(16, 2*len(vs.slots)))
	mask := uint32(len(vs.slots) - 1)
	for n := range uint32(vs.cells.Len()) {
		c := vs.cells.At(n)
		if c.about&isText != 0 {
			continue
		}
		i := hash(c.key, c.num) & mask
		for vs.slots[i] != 0 {
			i = (i + 1) & mask
		}
		vs.slots[i] = n + 1
	}
}
