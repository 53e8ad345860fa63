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
	"github.com/isowatch/isowatch/incremental/version"
	"github.com/isowatch/isowatch/internal/lab/race"
)

// trial tells by trying everything whether some of the pairs and choices that are
// open, and nothing else, leave the graph acyclic: an order for each pair, a
// candidate for each choice, and the anti-dependencies of what was read to what
// then follows it.
type trial struct {
	p       *Polygraph
	pairs   []pairID
	choices []choiceID
	known   map[[2]vid]bool
	base    []graph.Edge
}

func newTrial(p *Polygraph, pairs []pairID, choices []choiceID) *trial {
	return &trial{p, pairs, choices, map[[2]vid]bool{}, p.allEdges()}
}

// follows: b comes after a as the graph alone has no room for the other order.
func (tr *trial) follows(a, b vid) bool {
	is, done := tr.known[[2]vid{a, b}]
	if !done {
		is = !isAcyclic(tr.p.g.Nodes(), tr.p.parts, append(slices.Clone(tr.base), tr.p.sides(b, a)...))
		tr.known[[2]vid{a, b}] = is
	}
	return is
}

func (tr *trial) satisfiable() bool { return tr.order(0, map[[2]vid]bool{}, tr.base) }

func (tr *trial) order(i int, before map[[2]vid]bool, es []graph.Edge) bool {
	if !isAcyclic(tr.p.g.Nodes(), tr.p.parts, es) {
		return false
	}
	if i == len(tr.pairs) {
		return tr.choose(0, before, es)
	}
	pr := tr.p.subjects.pairs[tr.pairs[i]]
	for _, ab := range [2][2]vid{{pr.a, pr.b}, {pr.b, pr.a}} {
		before[ab] = true
		if tr.order(i+1, before, append(slices.Clone(es), tr.p.sides(ab[0], ab[1])...)) {
			return true
		}
		delete(before, ab)
	}
	return false
}

func (tr *trial) choose(i int, before map[[2]vid]bool, es []graph.Edge) bool {
	if i == len(tr.choices) {
		return isAcyclic(tr.p.g.Nodes(), tr.p.parts, es)
	}
	c := &tr.p.subjects.choices[tr.choices[i]]
	for _, v := range c.cands {
		more := slices.Clone(es)
		if tr.p.tab.At(v).Kind == version.Written {
			more = append(more, graph.Edge{From: tr.p.commit(tr.p.writer(v)), To: tr.p.start(c.reader)})
		}
		for _, w := range tr.overwriters(c, v, before) {
			if w != c.reader {
				more = append(more, graph.Edge{From: tr.p.start(c.reader), To: tr.p.commit(w)})
			}
		}
		if isAcyclic(tr.p.g.Nodes(), tr.p.parts, more) && tr.choose(i+1, before, more) {
			return true
		}
	}
	return false
}

// overwriters are the first writers of what follows v.
func (tr *trial) overwriters(c *choice, v vid, before map[[2]vid]bool) []slot {
	tab := tr.p.tab
	if next := tab.At(v).Next; next != version.None {
		return []slot{tr.p.writer(next)}
	}
	var out []slot
	for b := range vid(tab.Len()) {
		ver := tab.At(b)
		if ver.Key != c.key || ver.Kind != version.Written || ver.Prev != version.None && tab.At(ver.Prev).Kind == version.Written {
			continue
		}
		if tab.At(v).Kind == version.Initial {
			out = append(out, ver.Writer)
			continue
		}
		if a := tab.Head(v); b != a && (before[[2]vid{a, b}] || tr.follows(a, b)) {
			out = append(out, ver.Writer)
		}
	}
	return out
}

// A core is what a refutation was found to rest on.
type core struct {
	pairs     []pairID
	choices   []choiceID
	violation Violation
}

// solve solves until nothing is left to be refuted, and returns the refutations.
func solve(t *testing.T, p *Polygraph) []core {
	t.Helper()
	var out []core
	for {
		pairs, choices := p.subjects.undecided()
		had := p.reports.Found
		answer := p.Solve(1 << 20)
		if answer == sat.Sat {
			return out
		}
		found := p.reports.TakeFound()
		if answer != sat.Unsat || len(found) != 1 || p.reports.Found != had+1 {
			t.Fatalf("%v with %d violations, %d counted", answer, len(found), p.reports.Found-had)
		}
		out = append(out, core{
			slices.DeleteFunc(pairs, func(c pairID) bool { return p.subjects.pairs[c].alive }),
			slices.DeleteFunc(choices, func(c choiceID) bool { return p.subjects.choices[c].state == choiceOpen }),
			found[0]})
		if n := len(out[len(out)-1].pairs) + len(out[len(out)-1].choices); n == 0 {
			t.Fatal("a refutation that rests on nothing")
		}
	}
}

// fork is a plan in which two reads each see two pairs of writes in orders that
// don't agree: no order of x's writers and of y's leaves it without a cycle,
// though either alone does. suffix keeps several apart.
func fork(suffix string) string {
	return strings.ReplaceAll(`
		A_ A_ w(x_) w(a_)
		B_ B_ w(x_) w(b_)
		C_ C_ w(y_) w(c_)
		D_ D_ w(y_) w(d_)
		P_ P_ r(x_)=A_ r(c_)=C_ r(d_)=D_
		Q_ Q_ r(x_)=B_ r(c_)=C_ r(d_)=D_
		R_ R_ r(y_)=C_ r(a_)=A_ r(b_)=B_
		S_ S_ r(y_)=D_ r(a_)=A_ r(b_)=B_
		`, "_", suffix)
}

// tangle draws a plan of writers that read nothing and readers that write
// nothing, all concurrent, who find what they find: reachability decides little.
func tangle(rng *rand.Rand) *plan {
	pl := &plan{}
	keys, writers, readers := 3+rng.IntN(2), 4+rng.IntN(3), 3+rng.IntN(5)
	wrote := make([][]int, keys)
	for k := range keys {
		pl.key(string(rune('w' + k)))
	}
	for i := range writers {
		x := planTxn{name: fmt.Sprintf("W%d", i), session: fmt.Sprintf("w%d", i)}
		for _, k := range rng.Perm(keys)[:1+rng.IntN(2)] {
			x.writes = append(x.writes, keyID(k))
			wrote[k] = append(wrote[k], i)
		}
		pl.txns = append(pl.txns, x)
	}
	for i := range readers {
		x := planTxn{name: fmt.Sprintf("R%d", i), session: fmt.Sprintf("r%d", i)}
		for _, k := range rng.Perm(keys)[:2+rng.IntN(2)] {
			if len(wrote[k]) == 0 {
				continue
			}
			rd := planRead{key: keyID(k)}
			for _, w := range rng.Perm(len(wrote[k]))[:min(len(wrote[k]), 1+rng.IntN(4)/3)] {
				rd.from = append(rd.from, wrote[k][w])
			}
			x.reads = append(x.reads, rd)
		}
		pl.txns = append(pl.txns, x)
	}
	return pl
}

// Without any one of the constraints that a refutation reports, the rest can be
// satisfied; with all of them it can't; and its cases are cycles, of the graph
// and of those constraints alone.
func TestCoreIsMinimal(t *testing.T) {
	each(t, func(t *testing.T, cfg Config) {
		t.Parallel()
		refuted, withChoices, several := 0, 0, 0
		check := func(name string, pl *plan) {
			r := feed(pl, cfg)
			if r.diverged || r.p.reports.Found > 0 {
				return
			}
			for _, c := range solve(t, r.p) {
				refuted++
				withChoices += min(1, len(c.choices))
				if len(c.pairs)+len(c.choices) > 1 {
					several++
				}
				if err := r.minimal(c); err != nil {
					t.Fatalf("%s: %v\n%v", name, err, pl)
				}
			}
		}
		check("fork", parse(fork("")))
		for seed := range uint64(race.Few(400, 1600)) {
			rng := rand.New(rand.NewPCG(seed, 11))
			check(fmt.Sprintf("seed %d", seed), tangle(rng))
			if seed%4 == 0 {
				check(fmt.Sprintf("seed %d", seed), drawPlan(rng, shape{txns: 9, keys: 3, sessions: 9, wrong: 12, timed: cfg.RealTime}))
			}
		}
		t.Logf("%d refutations, %d with choices, %d of several constraints", refuted, withChoices, several)
		if refuted < 10 || withChoices < 5 || several < 5 {
			t.Errorf("the sample tells little: %d refutations, %d with choices, %d of several constraints", refuted, withChoices, several)
		}
	})
}

func (r *rig) minimal(c core) error {
	p := r.p
	if newTrial(p, c.pairs, c.choices).satisfiable() {
		return fmt.Errorf("pairs %v and choices %v can be satisfied", c.pairs, c.choices)
	}
	for i := range c.pairs {
		if !newTrial(p, slices.Delete(slices.Clone(c.pairs), i, i+1), c.choices).satisfiable() {
			return fmt.Errorf("pairs %v and choices %v: pair %d is not needed", c.pairs, c.choices, c.pairs[i])
		}
	}
	var reads []Read
	for i, ci := range c.choices {
		if !newTrial(p, c.pairs, slices.Delete(slices.Clone(c.choices), i, i+1)).satisfiable() {
			return fmt.Errorf("pairs %v and choices %v: choice %d is not needed", c.pairs, c.choices, ci)
		}
		reads = append(reads, Read{p.subjects.choices[ci].reader, p.subjects.choices[ci].key})
	}
	if !slices.Equal(reads, c.violation.Reads) {
		return fmt.Errorf("reads %v are reported, not %v", c.violation.Reads, reads)
	}
	if len(c.violation.Cases) == 0 {
		return fmt.Errorf("no case")
	}
	for _, cycle := range c.violation.Cases {
		if err := isCycle(p, cycle, 2); err != nil {
			return fmt.Errorf("%w: %+v", err, cycle)
		}
		for _, e := range cycle {
			if !r.mayBe(e, c) {
				return fmt.Errorf("edge %+v of a case is neither known nor one of the constraints'", e)
			}
		}
	}
	return nil
}

// mayBe: the edge is in the graph, or the clock's, or stands for one of the
// core's orders or candidates.
func (r *rig) mayBe(e graph.Edge, c core) bool {
	p := r.p
	same := func(x graph.Edge) bool { return x.From == e.From && x.To == e.To && x.Key == e.Key && x.Type == e.Type }
	if e.Type == verdict.RT {
		s, t := r.pl.txns[p.parts.Slot(e.From)], r.pl.txns[p.parts.Slot(e.To)]
		return s.timed && t.timed && !s.maybe && s.end < t.start
	}
	if e.Why != verdict.ByCase {
		return slices.ContainsFunc(p.allEdges(), same)
	}
	for _, id := range c.pairs {
		if pr := p.subjects.pairs[id]; slices.ContainsFunc(append(p.sides(pr.a, pr.b), p.sides(pr.b, pr.a)...), same) {
			return true
		}
	}
	for _, ci := range c.choices {
		ch := &p.subjects.choices[ci]
		if e.Key != ch.key {
			continue
		}
		if e.Type == verdict.RW && e.From == p.start(ch.reader) && r.tab.WriteOf(p.parts.Slot(e.To), ch.key) != version.None {
			return true
		}
		if e.Type == verdict.WR && e.To == p.start(ch.reader) && slices.Contains(ch.cands, r.tab.WriteOf(p.parts.Slot(e.From), ch.key)) {
			return true
		}
	}
	return false
}

// What a refutation rests on is given up, once; the rest is satisfied by the next
// solution, and the stream goes on.
func TestGivingUp(t *testing.T) {
	pl := parse(fork("f") + undecidable(3) + fork("g") + fork("h"))
	each(t, func(t *testing.T, cfg Config) {
		for _, max := range []int{0, 1} {
			r := newRig(pl, cfg)
			r.p.reports.MaxFound = max
			r.feed(nil)
			open := r.p.Undecided()
			for n := range 3 {
				if got := r.p.Solve(1 << 20); got != sat.Unsat {
					t.Fatalf("%v instead of refutation %d", got, n+1)
				}
				if r.p.solver.Order() != nil {
					t.Error("an order of what was refuted")
				}
				if gone := open - r.p.Undecided(); gone != 2*(n+1) {
					t.Errorf("%d constraints are given up after refutation %d", gone, n+1)
				}
			}
			if got := r.p.Solve(1 << 20); got != sat.Sat {
				t.Fatalf("%v of what is left", got)
			}
			if !isAcyclic(r.p.g.Nodes(), r.p.parts, append(r.p.allEdges(), r.p.solver.chosenEdges()...)) {
				t.Error("the solution of what is left has a cycle")
			}
			want := 3
			if max > 0 {
				want = max
			}
			if found := r.p.reports.TakeFound(); len(found) != want || r.p.reports.Found != 3 {
				t.Errorf("%d violations are explained, %d counted", len(found), r.p.reports.Found)
			}
			for _, again := range [2]vid{0, 1} { // given up, for good
				for b := range vid(r.tab.Len()) {
					if r.p.orders.given[[2]vid{again, b}] && r.p.orders.relate(again, b) != givenUp {
						t.Errorf("blocks %d and %d have an order again", again, b)
					}
				}
			}
		}
	})
}

// After each refutation what is left is satisfied in the end, with an order that
// keeps every edge.
func TestRestIsSatisfied(t *testing.T) {
	each(t, func(t *testing.T, cfg Config) {
		t.Parallel()
		rests := 0
		for seed := range uint64(300) {
			rng := rand.New(rand.NewPCG(seed, 13))
			r := newRig(drawPlan(rng, shape{txns: 14, keys: 3, sessions: 8, wrong: 25, maybe: 10, timed: cfg.RealTime}), cfg)
			if r.feed(rng); r.diverged {
				continue
			}
			r.p.reports.TakeFound()
			solve(t, r.p)
			if r.p.reports.Found == 0 {
				continue
			}
			rests++
			if !isAcyclic(r.p.g.Nodes(), r.p.parts, append(r.p.allEdges(), r.p.solver.chosenEdges()...)) {
				t.Fatalf("seed %d: what is left has a cycle\n%v", seed, r.pl)
			}
			place := map[node]int{}
			for i, ev := range r.p.solver.Order() {
				at := r.p.start(slot(ev.Txn))
				if ev.Commit {
					at = r.p.commit(slot(ev.Txn))
				}
				place[at] = i
			}
			for _, e := range r.p.allEdges() {
				from, in := place[e.From]
				to, in2 := place[e.To]
				if in && in2 && from >= to {
					t.Fatalf("seed %d: edge %+v is not kept", seed, e)
				}
			}
		}
		if rests < 50 {
			t.Errorf("the sample tells little: %d violated", rests)
		}
	})
}

// When the bookkeeping of pairs that are decided is dropped, those that are open
// and the choices are watched on: what comes then decides them.
func TestCompactKeepsWatching(t *testing.T) {
	var b strings.Builder
	b.WriteString(`
		T t w(x)
		U u w(x) w(p)
		S s r(x)=T r(y)=N
		I i w(v)
		J i w(v) w(g)
		K k w(v)
		L l r(v)=I|K r(h)=N
		`)
	const n = 1100
	for i := range n {
		fmt.Fprintf(&b, "A%d a w(k%d)\nR%d a r(k%d)=A%d\n", i, i, i, i, i)
	}
	b.WriteString("Z a w(z)\nB b r(m)=M\n")
	for i := range n {
		fmt.Fprintf(&b, "B%d b w(k%d)\n", i, i)
	}
	b.WriteString("M m r(z)=Z w(m)\nN n r(p)=U r(g)=J w(y) w(h)\n")
	pl := parse(b.String())
	for _, s := range settings() {
		if s.cfg.Bulk {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			r := newRig(pl, s.cfg)
			most := 0
			compacted := false
			r.each = func() {
				compacted = compacted || len(r.p.subjects.pairs) < most
				most = max(most, len(r.p.subjects.pairs))
				if compacted && r.tab.Slots() < len(pl.txns) && (r.p.subjects.openPairs == 0 || r.p.subjects.openChoices != 1) { // before N
					t.Fatalf("%d pairs and %d choices are open when the rest is dropped", r.p.subjects.openPairs, r.p.subjects.openChoices)
				}
			}
			r.feed(nil)
			if !compacted || most < n {
				t.Fatalf("nothing was dropped of %d pairs", most)
			}
			r.check(t, "U < T\nL v =K")
			if r.p.Undecided() != 0 {
				t.Errorf("%d are open", r.p.Undecided())
			}
		})
	}
}
