package incremental

import (
	"testing"

	"github.com/isowatch/isowatch/incremental/constraint"
	"github.com/isowatch/isowatch/incremental/sat"
	"github.com/isowatch/isowatch/incremental/version"
)

// A read can decide an ambiguous one while the polygraph takes it in: that D, in
// B's session, read C's x shows that B's came before C's, so that E, in C's
// session, can't have read B's, so it read C's as well. Both overwrite it, which
// the table must not forget.
func TestReadDecidesAnother(t *testing.T) {
	for _, split := range []bool{false, true} {
		s := newStrand([]constraint.Config{{Sessions: true, Split: split}})
		one := slotOps{reads: make([]version.ID, 1), writes: make([]version.ID, 1)}
		next := func(session uint32) (version.Slot, version.ID) {
			x := s.add(strandTxn{session: session, prev: none}, one)
			return x, s.write(x, 0)
		}
		_, b := next(0)
		s.settle()
		_, c := next(1)
		s.settle()
		e, _ := next(1)
		s.candidates = func(version.Slot, version.Key) []version.ID { return []version.ID{b, c} }
		s.choose(e, 0, []version.ID{b, c}, false)
		s.settle()
		d, _ := next(0)
		if _, diverges := s.read(d, c); diverges {
			t.Fatal("diverges before anything was decided")
		}
		s.settle()
		p := s.polys[0]
		if answer := p.Solve(1000); answer == sat.Sat && p.Found == 0 {
			t.Errorf("split %v: satisfied, though two transactions overwrote one version", split)
		}
		for v := range version.ID(s.tab.Len()) {
			if n := s.tab.At(v).Next; n != none && s.tab.At(n).Prev != v {
				t.Errorf("split %v: version %d is followed by %d, which follows %d", split, v, n, s.tab.At(n).Prev)
			}
			if q := s.tab.At(v).Prev; q != none && s.tab.At(q).Next != v {
				t.Errorf("split %v: version %d follows %d, which is followed by %d", split, v, q, s.tab.At(q).Next)
			}
		}
	}
}
