package incremental

import (
	"testing"

	"github.com/isowatch/isowatch/incremental/constraint"
	"github.com/isowatch/isowatch/incremental/reach"
	"github.com/isowatch/isowatch/incremental/version"
)

// A strand with times may be read with all writes first, and a chain of
// read-modify-writes whose slots are not in its order is still one block.
func TestChainOutOfSlotOrder(t *testing.T) {
	s := newStrand([]constraint.Config{{RealTime: true, Sessions: true}})
	for i := range uint32(3) { // all overlap; the chain is 0, 2, 1
		s.add(constraint.Txn{Chain: reach.Chain(i), End: int64(10 + i), Timed: true, Prev: none}, 0, 1, 1)
	}
	var w [3]version.ID
	for slot := range uint32(3) {
		w[slot] = s.write(version.Slot(slot), 0)
	}
	start := s.source(0, version.Initial)
	for slot, v := range []version.ID{start, w[2], w[0]} {
		if _, diverges := s.read(version.Slot(slot), v); diverges {
			t.Fatalf("slot %d diverges", slot)
		}
	}
	s.settle()
	p := s.polys[0]
	if p.Found != 0 || p.Undecided() != 0 {
		t.Errorf("%d violations, %d open pairs in one chain: %+v", p.Found, p.Undecided(), p.TakeFound())
	}
}
