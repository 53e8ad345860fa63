package constraint

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/isowatch/isowatch/incremental/graph"
	"github.com/isowatch/isowatch/incremental/sat"
	"github.com/isowatch/isowatch/incremental/verdict"
)

// bulkSettings are those that load in bulk.
func bulkSettings() []setting {
	return slices.DeleteFunc(settings(), func(s setting) bool { return !s.cfg.Bulk || s.cfg.RealTime })
}

// undecidable are n reads of two candidates each that nothing decides.
func undecidable(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "P%d p%d w(k%d)\nQ%d q%d w(k%d)\nR%d r%d r(k%d)=P%d|Q%d\n", i, i, i, i, i, i, i, i, i, i, i)
	}
	return b.String()
}

// What is ruled out in the last round of a bulk load, after a read that could
// have been of it was looked at, is no candidate of that read any more: here
// both of R's writers go, which leaves nothing. The undecidable reads make the
// round the last one.
func TestRuledOutInTheLastRound(t *testing.T) {
	pl := parse(`
		Z0 z w(z)
		Z1 z w(z)
		Z2 z w(z)
		R  r r(x)=U1|U2
		U1? z r(z)=Z0|Z1 w(x)
		U2? z r(z)=Z0|Z1 w(x)
	` + undecidable(200))
	for _, s := range bulkSettings() {
		r := feed(pl, s.cfg)
		if got := r.answer(); got != sat.Unsat || r.left("R", "x") != "gone" {
			t.Errorf("%s: %v, R has left %s, dirty %v", s.name, got, r.left("R", "x"), r.p.subjects.choices[0].dirty)
		}
	}
}

// Each choice rests on the one before. That R0 read p shows that B0 comes before
// it, so it can't have read A0's, so it read C0's; C0 comes after B1, so R1 can't
// have read A1's, and so on, a round of a bulk load for each.
func TestChoicesInARow(t *testing.T) {
	const n = 8
	text := "A0 a0 w(x0)\nB0 a0 w(x0) w(p)\nR a r(p)=B0\n"
	for i := range n {
		text += fmt.Sprintf("A%d a%d w(x%d)\nB%d a%d w(x%d)\nC%d a%d w(x%d)\nR%d a r(x%d)=A%d|C%d\n",
			i+1, i+1, i+1, i+1, i+1, i+1, i, i+1, i, i, i, i, i)
	}
	pl := parse(text)
	each(t, func(t *testing.T, cfg Config) {
		r := feed(pl, cfg)
		for i := range n {
			if l := r.left(fmt.Sprintf("R%d", i), fmt.Sprintf("x%d", i)); l != fmt.Sprintf("=C%d", i) {
				t.Errorf("R%d has left %s", i, l)
			}
		}
		if r.answer() != sat.Sat || r.p.Stats.Eliminated != n || r.p.Stats.Choices != n {
			t.Errorf("%d of %d choices were decided, violations %+v", r.p.Stats.Eliminated, r.p.Stats.Choices, r.p.reports.TakeFound())
		}
	})
}

// What the closure decides of orders is in the graph before blocks are looked at
// one by one, unless it can't all be: then that is left to those who can say why.
func TestSurvey(t *testing.T) {
	finish := func(text string, cfg Config) *rig {
		r := newRig(parse(text), cfg)
		for i := range r.pl.txns {
			r.add(i)
			r.write(i)
		}
		for i := range r.pl.txns {
			for _, rd := range r.pl.txns[i].reads {
				r.read(want{i, rd})
			}
		}
		r.settle()
		r.p.Finish()
		return r
	}
	for _, s := range bulkSettings() {
		r := finish("T t w(x)\nU u w(x) w(y)\nS s r(x)=T r(y)=U\nA a w(z)\nB a w(z)\nC c w(z)\nD d w(z) w(p)\nE d r(z)=B r(p)=D", s.cfg)
		for _, o := range [][2]string{{"U", "T"}, {"A", "B"}, {"D", "B"}} {
			if !r.follows(o[0], o[1]) {
				t.Errorf("%s: %s is not before %s", s.name, o[0], o[1])
			}
		}
		if r.follows("C", "A") || r.follows("A", "C") {
			t.Errorf("%s: what nothing decides is", s.name)
		}
		edges := r.p.g.Len()
		if r.p.Blocks(); r.p.g.Len() != edges || r.p.reports.Found > 0 {
			t.Errorf("%s: %d edges follow a survey", s.name, r.p.g.Len()-edges)
		}

		// That U is before T, by S, decides that X is before Y, so that V, which read X's z, is before Y. O is one that that
		// puts before T: more edges than one are worth another survey.
		r = finish("X x w(z) w(m)\nU u r(m)=X w(x) w(y)\nT t w(x) w(n)\nS s r(x)=T r(y)=U\nY y r(n)=T w(z)\nV v r(z)=X\nO o r(x)=U", s.cfg)
		v, y := r.p.start(slot(r.pl.txn("V"))), r.p.commit(slot(r.pl.txn("Y")))
		if again := r.p.bits != nil; r.p.reach.Reaches(v, y) != again {
			t.Errorf("%s: V is before Y after the survey: %v", s.name, !again)
		}
		if r.p.Blocks(); !r.p.reach.Reaches(v, y) || r.p.reports.Found > 0 {
			t.Errorf("%s: V is not before Y, or one of %d violations", s.name, r.p.reports.Found)
		}

		// U before T by S, and P before Q by R, which together close a cycle.
		r = finish("T t w(x) w(a)\nU u w(x) w(y) r(b)=Q\nS s r(x)=T r(y)=U\nQ q w(v) w(b)\nP p w(v) w(w) r(a)=T\nR r r(v)=Q r(w)=P", s.cfg)
		if r.p.reports.forced.Len() > 0 || r.p.reports.Found > 0 {
			t.Errorf("%s: %d orders are kept that can't be", s.name, r.p.reports.forced.Len())
		}
		r.p.Blocks()
		found := r.p.reports.TakeFound()
		if len(found) != 1 || isCycle(r.p, found[0].Cycle, 2) != nil {
			t.Errorf("%s: %d violations: %+v", s.name, len(found), found)
		}
	}
}

// knotted is a bulk polygraph of sessions whose reads were drawn at random, so
// that its known graph has very many cycles.
func knotted(rng *rand.Rand, cfg Config, sessions, length, reads int) *rig {
	var b strings.Builder
	for s := range sessions {
		for i := range length {
			fmt.Fprintf(&b, "T%d.%d s%d w(k%d.%d)", s, i, s, s, i)
			for range reads {
				if q, j := rng.IntN(sessions), rng.IntN(length); q != s {
					fmt.Fprintf(&b, " r(k%d.%d)=T%d.%d", q, j, q, j)
				}
			}
			b.WriteByte('\n')
		}
	}
	return newRig(parse(b.String()), cfg)
}

// However many cycles there are, they go in one pass: the reported ones are
// cycles, at most as many as are looked for, what remains is acyclic, and no
// edge of a session's is gone.
func TestTopologicalCutsAllCycles(t *testing.T) {
	for _, s := range bulkSettings() {
		for _, max := range []int{0, 1, 5} {
			t.Run(fmt.Sprintf("%s, at most %d", s.name, max), func(t *testing.T) {
				length := 60
				if max == 0 {
					length = 15
				}
				r := knotted(rand.New(rand.NewPCG(uint64(max), 5)), s.cfg, 12, length, 2)
				r.p.reports.MaxFound = max
				r.feed(nil)
				p := r.p
				sessions := map[[2]node]bool{}
				for _, e := range p.allEdges() {
					if e.Type == verdict.SO {
						sessions[[2]node{e.From, e.To}] = true
					}
				}
				if want := 12 * (length - 1); len(sessions) != want {
					t.Errorf("%d edges of sessions are left of %d", len(sessions), want)
				}
				if !isAcyclic(p.g.Nodes(), p.parts, p.allEdges()) {
					t.Error("the graph has a cycle")
				}
				found := p.reports.TakeFound()
				if max > 0 && len(found) != max || max == 0 && len(found) <= cyclesCut {
					t.Errorf("%d cycles are reported of at most %d (0: all)", len(found), max)
				}
				for _, v := range found {
					if err := isCycle(p, v.Cycle, 2); err != nil {
						t.Errorf("%v: %+v", err, v.Cycle)
					}
				}
				if got := p.Solve(1 << 20); got != sat.Sat {
					t.Errorf("what is left is %v", got)
				}
			})
		}
	}
}

// isCycle checks that edges lead round, from commits to starts where there are
// both except for anti-dependencies.
func isCycle(p *Polygraph, edges []graph.Edge, least int) error {
	if len(edges) < least {
		return fmt.Errorf("a cycle of %d edges", len(edges))
	}
	for i, e := range edges {
		next := edges[(i+1)%len(edges)].From
		if e.To != next && !(p.parts == 2 && p.parts.Slot(e.To) == p.parts.Slot(next) && e.To == p.start(p.parts.Slot(next))) {
			return fmt.Errorf("edge %d ends at node %d, the next begins at %d", i, e.To, next)
		}
		if p.parts == 2 && (e.Type == verdict.RW) != (e.From%2 == 0 && e.To%2 == 1) {
			return fmt.Errorf("edge %d, %v, from %d to %d", i, e.Type, e.From, e.To)
		}
	}
	return nil
}

// Reported cycles are shortest ones: of two nodes where there is one of two.
func TestShortCyclesAreReported(t *testing.T) {
	pl := parse(`
		A a w(x) r(y)=B
		B b w(y) r(x)=A
		C c w(z) r(v)=F
		D d r(z)=C w(u)
		E e r(u)=D w(q)
		F f r(q)=E w(v)
	`)
	for _, s := range bulkSettings() {
		r := feed(pl, s.cfg)
		var lengths []int
		for _, v := range r.p.reports.TakeFound() {
			lengths = append(lengths, len(v.Cycle))
		}
		if !slices.Equal(lengths, []int{2, 4}) {
			t.Errorf("%s: cycles of %v edges", s.name, lengths)
		}
	}
}

// Anti-dependencies of initial versions go in for each block, and those that
// come to be by what a choice turns out to be as well.
func TestBulkAntiDependencies(t *testing.T) {
	pl := parse(`
		I i r(x)=-
		J j r(x)=-|B
		A a w(x)
		B b w(x)
		C b r(x)=B w(x)
		J2 j r(q)=K w(p)
		K k w(q)
		B0 b0 w(q2)
	`)
	for _, s := range bulkSettings() {
		r := feed(pl, s.cfg)
		for _, w := range []string{"A", "B", "C"} {
			if !r.reaches("I", w) {
				t.Errorf("%s: the reader of the initial version does not come before %s", s.name, w)
			}
		}
		if r.left("J", "x") != "-|B" {
			t.Errorf("%s: J has left %s", s.name, r.left("J", "x"))
		}
	}
	pl.txns[pl.txn("K")].reads = []planRead{{pl.key("p"), []int{pl.txn("J2")}}} // a cycle of J2 and K, reported
	for _, s := range bulkSettings() {
		if r := feed(pl, s.cfg); r.p.reports.Found != 1 {
			t.Errorf("%s: %d violations", s.name, r.p.reports.Found)
		}
	}
}

// reaches tells whether the start of the first leads to the commit of the second.
func (r *rig) reaches(a, b string) bool {
	return r.p.reach.Reaches(r.p.start(slot(r.pl.txn(a))), r.p.commit(slot(r.pl.txn(b))))
}

// Stop ends a bulk load early; what was not looked at counts as undecided.
func TestStopInBulk(t *testing.T) {
	pl := parse(undecidable(400))
	for _, s := range bulkSettings() {
		asked := 0
		full := newRig(pl, s.cfg)
		full.stopAt(func() bool { asked++; return false })
		full.feed(nil)
		last := asked // in the midst of the blocks
		asked = 0
		r := newRig(pl, s.cfg)
		r.stopAt(func() bool { asked++; return asked >= last })
		r.feed(nil)
		if asked != last {
			t.Errorf("%s: asked %d times, though answer %d was yes", s.name, asked, last)
		}
		if r.p.left == 0 || r.p.left >= 800 {
			t.Errorf("%s: %d blocks are left of 800", s.name, r.p.left)
		}
		if r.p.Undecided() != r.p.left+r.p.subjects.openPairs+400 {
			t.Errorf("%s: %d undecided, %d blocks and %d pairs", s.name, r.p.Undecided(), r.p.left, r.p.subjects.openPairs)
		}
		if d := r.p.Decided(); d < 0 || d > 1 {
			t.Errorf("%s: decided %v", s.name, d)
		}
		if got := r.p.Solve(1 << 20); got != sat.Budget {
			t.Errorf("%s: %v though stopped", s.name, got)
		}
		if full.p.Undecided() != 800 || full.p.Decided() != 0 || full.p.left != 0 {
			t.Errorf("%s: without a stop %d undecided, decided %v", s.name, full.p.Undecided(), full.p.Decided())
		}
	}
	cfg := Config{Sessions: true, Bulk: true}
	r := newRig(pl, cfg)
	for i := range pl.txns {
		r.add(i)
	}
	if r.p.Decided() != 0 {
		t.Errorf("before Finish %v is decided", r.p.Decided())
	}
}

// Stop is asked in streams too, and ends the search.
func TestStopInStreams(t *testing.T) {
	pl := parse(undecidable(200))
	each(t, func(t *testing.T, cfg Config) {
		r := newRig(pl, cfg)
		r.feed(nil)
		before := r.p.Undecided()
		r.stopAt(func() bool { return true })
		for range 64 {
			r.p.halted()
		}
		if got := r.p.Solve(1 << 20); got != sat.Budget {
			t.Errorf("%v though stopped", got)
		}
		if r.p.Undecided() != before || before != 400 {
			t.Errorf("%d undecided, before %d", r.p.Undecided(), before)
		}
		if r.p.solver.Order() != nil {
			t.Error("an order of what was not solved")
		}
	})
}
