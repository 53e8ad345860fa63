package stream

import (
	"fmt"
	"slices"

	"github.com/isowatch/isowatch/incremental"
	"github.com/isowatch/isowatch/incremental/version"
	"github.com/isowatch/isowatch/ingest/decode"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/record/packed"
)

// held are the records that wait in the order or that the engine has, in the
// blocks in which they came.
type held struct {
	blocks  map[uint64]*block // by number of the entry
	oldest  uint64            // no block has a smaller number
	reader  packed.Reader
	numbers []version.Key // scratch
	// sessions are those of records that were given a session of their own.
	sessions map[ref]string
}

// block are the records of an entry.
type block struct {
	*shelf
	// index are the places in the entry of the records that the shelf has, from first
	// on; nil: it has all of them.
	index []uint16
	first int
	used  int // records that are still referred to
}

// shelf is where records lie.
type shelf struct {
	*packed.Block
	// keys are an engine's numbers of the block's names; incremental.NoKey: not asked for.
	keys   []version.Key
	keysOf uint64 // which engine's: segments.opened
}

// place is where the record of a ref lies on the shelf.
func (b *block) place(r ref) (int, bool) {
	if b.index == nil {
		return r.index(), r.index() < b.Len()
	}
	i, ok := slices.BinarySearch(b.index, uint16(r.index()))
	return b.first + i, ok
}

// add makes room for an entry's records of a history, none of which is referred to
// yet; false if there is none. Where there are others' too, it keeps copies: theirs
// would stay in memory with them.
func (h *held) add(entry uint64, b *decode.Batch, db string) bool {
	if !slices.Contains(b.DBs, db) {
		return false
	}
	if len(h.blocks) == 0 {
		h.oldest = entry
	}
	if len(b.DBs) == 1 {
		h.blocks[entry] = &block{shelf: &shelf{Block: b.Block}}
		return true
	}
	var c packed.Chunk
	var index []uint16
	for i := range b.Len() {
		if t := b.Block.At(i, &h.reader); t.DB == db {
			c.Add(t)
			index = append(index, uint16(i))
		}
	}
	h.blocks[entry] = &block{shelf: &shelf{Block: c.Seal()}, index: index}
	return true
}

// keep notes that a record is referred to.
func (h *held) keep(r ref) { h.blocks[r.entry()].used++ }

// drop notes that a record is not referred to any more.
func (h *held) drop(r ref) {
	b := h.blocks[r.entry()]
	if b.used--; b.used == 0 {
		delete(h.blocks, r.entry())
	}
	delete(h.sessions, r)
}

// trim drops an entry none of whose records is referred to.
func (h *held) trim(entry uint64) {
	if h.blocks[entry].used == 0 {
		delete(h.blocks, entry)
	}
}

// floor is the least entry that is referred to, or next if there is none.
// Amortised O(1).
func (h *held) floor(next uint64) uint64 {
	for h.oldest < next && h.blocks[h.oldest] == nil {
		h.oldest++
	}
	return min(h.oldest, next)
}

// before is how many records of entries below limit are referred to.
func (h *held) before(limit uint64) uint64 {
	n := uint64(0)
	for entry, b := range h.blocks {
		if entry < limit {
			n += uint64(b.used)
		}
	}
	return n
}

func (h *held) record(r ref, f fedFlags) (*record.Transaction, error) {
	b, at, err := h.find(r)
	if err != nil {
		return nil, err
	}
	t := b.At(at, &h.reader)
	h.apply(t, r, f)
	return t, nil
}

func (h *held) find(r ref) (b *block, at int, err error) {
	if b = h.blocks[r.entry()]; b != nil {
		var ok bool
		if at, ok = b.place(r); ok {
			return b, at, nil
		}
	}
	return nil, 0, fmt.Errorf("entry %d has no record %d", r.entry(), r.index())
}

// keys are the engine's numbers of the keys of the record taken out last, which is
// that of r. Good until the next.
func (h *held) keys(r ref, e *incremental.Engine, opened uint64) []version.Key {
	b := h.blocks[r.entry()]
	if b.keysOf != opened {
		if b.keys == nil {
			b.keys = make([]version.Key, b.Names())
		}
		// Numbers are given in the order in which keys are touched, so that they do not
		// depend on the blocks.
		for i := range b.keys {
			b.keys[i] = incremental.NoKey
		}
		b.keysOf = opened
	}
	h.numbers = h.numbers[:0]
	fresh := false
	for _, local := range h.reader.Keys {
		n := b.keys[local]
		fresh = fresh || n == incremental.NoKey
		h.numbers = append(h.numbers, n)
	}
	if fresh {
		e.Number(h.numbers, func(i int) string { return b.Name(h.reader.Keys[i]) })
		for i, local := range h.reader.Keys {
			b.keys[local] = h.numbers[i]
		}
	}
	return h.numbers
}

func (h *held) own(r ref, f fedFlags) (record.Transaction, error) {
	b, at, err := h.find(r)
	if err != nil {
		return record.Transaction{}, err
	}
	t := b.Copy(at)
	h.apply(&t, r, f)
	return t, nil
}

// apply makes of a record what was released.
func (h *held) apply(t *record.Transaction, r ref, f fedFlags) {
	if f&timesDropped != 0 {
		t.HasTimes = false
	}
	if f&detached != 0 {
		t.Session, t.HasSeq = h.sessions[r], false
	}
}
