// Package intern makes the strings and slices of decoded records cheap: names
// that come again and again (keys, sessions, databases) are made once, texts
// and operations that live as long as a whole batch are cut from large blocks.
// Nothing here is safe for concurrent use; every decoder has its own.
package intern

import (
	"hash/maphash"
	"strings"
)

// NameMax is the length in bytes up to which a Table keeps names. Longer ones
// are rarely names, and bounding them bounds the table.
const NameMax = 128

const slotsMin = 256

// Table gives equal byte strings one Go string. It holds a bounded number of
// names: of two that share a place and a third the one not used for longest is
// forgotten, which costs a copy should it come again and nothing else.
//
// Slots come in pairs; the first of a pair is the one used later. So a stream of
// names used once can't drive out one that is in use.
type Table struct {
	seed    maphash.Seed
	slots   []string // length a power of two
	limit   int      // of len(slots)
	entries int      // slots in use
	evicted int      // names forgotten since slots last grew
}

// NewTable makes a table for about limit names, of 16 bytes times four and the
// name itself each. It starts small and doubles while it is more than half full
// or forgets much: limit costs nothing until so many names have come.
func NewTable(limit int) *Table {
	size := slotsMin
	for size < 4*limit { // so that of limit names few share a pair with two others
		size *= 2
	}
	return &Table{seed: maphash.MakeSeed(), slots: make([]string, slotsMin), limit: size}
}

// String returns b as a string, without allocating if the table has it. O(len(b)).
func (t *Table) String(b []byte) string {
	if len(b) == 0 {
		return ""
	}
	if len(b) > NameMax {
		return string(b)
	}
	i := maphash.Bytes(t.seed, b) & uint64(len(t.slots)-2)
	pair := t.slots[i : i+2]
	if pair[0] == string(b) {
		return pair[0]
	}
	if pair[1] == string(b) {
		pair[0], pair[1] = pair[1], pair[0]
		return pair[0]
	}
	s := string(b)
	t.place(i, s)
	if (t.entries > len(t.slots)/2 || t.evicted > len(t.slots)/8) && len(t.slots) < t.limit {
		t.grow()
	}
	return s
}

// place puts s first in the pair at i, and forgets what was second.
func (t *Table) place(i uint64, s string) {
	if t.slots[i+1] == "" {
		t.entries++
	} else {
		t.evicted++
	}
	t.slots[i], t.slots[i+1] = s, t.slots[i]
}

func (t *Table) grow() {
	old := t.slots
	t.slots = make([]string, 2*len(old))
	t.entries, t.evicted = 0, 0
	for _, s := range old {
		if s != "" {
			t.place(maphash.String(t.seed, s)&uint64(len(t.slots)-2), s)
		}
	}
}

// Slab cuts slices from large blocks. A block lives as long as any slice cut
// from it: a slab suits values that are kept and forgotten together.
type Slab[T any] struct {
	free []T
}

// slabBlock is how many elements a block has.
const slabBlock = 1024

// Take returns n zero elements with no capacity beyond them. Amortised one
// allocation per block.
func (s *Slab[T]) Take(n int) []T {
	if n > len(s.free) {
		if n > slabBlock/4 { // a large one gets its own, and the block goes on
			return make([]T, n)
		}
		s.free = make([]T, slabBlock)
	}
	out := s.free[:n:n]
	s.free = s.free[n:]
	return out
}

const textBlock = 16 << 10

// Text cuts strings from large blocks; what is said of Slab holds. The zero
// Text is ready.
type Text struct{ block *strings.Builder }

// String returns b as a string.
func (t *Text) String(b []byte) string {
	if len(b) > textBlock/4 {
		return string(b)
	}
	// A Builder never rewrites what it holds, and within its capacity never
	// moves it, so that strings cut from it stay what they are.
	if t.block == nil || t.block.Cap()-t.block.Len() < len(b) {
		t.block = new(strings.Builder)
		t.block.Grow(textBlock)
	}
	from := t.block.Len()
	t.block.Write(b)
	return t.block.String()[from:]
}
