package incremental

import (
	"testing"

	"github.com/isowatch/isowatch/incremental/constraint"
	"github.com/isowatch/isowatch/incremental/reach"
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
		next := func(session uint32) (version.Slot, version.ID) {
			x := s.add(constraint.Txn{Chain: reach.Chain(session), Prev: none}, 0, 1, 1)
			return x, s.write(x, 0)
		}
		_, b := next(0)
		s.settle()
		_, c := next(1)
		s.settle()
		e, _ := next(1)
		s.tab.Candidates = func(version.Slot, version.Key) []version.ID { return []version.ID{b, c} }
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

// strandOf makes a strand and gives it writes of key 0 by that many transactions,
// each of a session of its own.
func strandOf(cfgs []constraint.Config, writers uint32) (*strand, []version.ID) {
	s := newStrand(cfgs)
	var out []version.ID
	for i := range writers {
		x := s.add(constraint.Txn{Chain: reach.Chain(i), Prev: none}, 0, 1, 1)
		out = append(out, s.write(x, 0))
	}
	return s, out
}

// violated finishes a strand of one polygraph.
func (s *strand) violated() bool {
	s.settle()
	s.finish(false)
	return s.polys[0].Found > 0 || s.polys[0].Solve(1000) == sat.Unsat
}

var (
	pcConfig = constraint.Config{Sessions: true, Split: true, Prefix: true, Bulk: true}
	siConfig = constraint.Config{Sessions: true, Split: true, Bulk: true}
)

// In a loose strand nothing diverges, and no list clashes with what its appenders
// read; the versions have the same numbers as in a strict one, and what it took in
// can be told that one again, which refuses the same.
func TestLooseStrand(t *testing.T) {
	for _, c := range []struct {
		name    string
		cfgs    []constraint.Config
		refused int
		readers int // of the first version
		after3  int // whose version follows 3's
	}{
		{"loose", []constraint.Config{pcConfig}, 0, 2, 5},
		{"table", nil, 0, 1, 5},
		{"strict", []constraint.Config{siConfig}, 2, 1, 4},
	} {
		s, w := strandOf(c.cfgs, 6)
		refused := 0
		for _, r := range [][2]version.Slot{{1, 0}, {2, 0}, {4, 3}} { // 1 and 2 overwrite what 0 wrote
			if _, diverges := s.read(r[0], w[r[1]]); diverges {
				refused++
			}
		}
		if _, _, clash := s.follow(w[3], w[5]); clash { // 4 overwrote it, too
			refused++
		}
		if refused != c.refused {
			t.Errorf("%s: %d are refused, not %d", c.name, refused, c.refused)
		}
		readers := 0
		for range s.tab.Readers(w[0]) {
			readers++
		}
		if readers != c.readers || s.tab.At(w[3]).Next != w[c.after3] {
			t.Errorf("%s: %d read version %d, and %d follows %d", c.name, readers, w[0], s.tab.At(w[3]).Next, w[3])
		}
		if w[5] != 5 {
			t.Errorf("%s: slot 5's version is %d", c.name, w[5])
		}
		if len(s.polys) > 0 && s.violated() {
			t.Errorf("%s: what was not refused is a violation", c.name)
		}
	}
}

// A strand without polygraphs keeps versions, who read them and how lists order
// them, and nothing that only polygraphs ask for.
func TestTableStrand(t *testing.T) {
	s, w := strandOf(nil, 3)
	init := s.source(0, version.Initial)
	for _, r := range []version.Slot{0, 1, 2} {
		s.read(r, init)
	}
	s.follow(init, w[0])
	s.follow(w[0], w[2])
	s.settle()
	s.finish(false)
	readers := 0
	for r := range s.tab.Readers(init) {
		readers++
		if r != 2 {
			t.Errorf("slot %d is kept as the reader", r)
		}
	}
	if readers != 1 {
		t.Errorf("%d readers are kept", readers)
	}
	if s.tab.At(init).Next != w[0] || s.tab.At(w[0]).Next != w[2] || s.tab.WriteOf(1, 0) != w[1] || s.tab.ReadOf(1, 0) != init {
		t.Error("the table is wrong")
	}
}
