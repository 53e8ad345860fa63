package constraint

import (
	"cmp"
	"slices"
	"sort"

	"github.com/isowatch/isowatch/incremental/graph"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/incremental/version"
	"github.com/isowatch/isowatch/internal/heap"
)

// Order is a proof that what was checked is satisfied: the transactions (or
// their starts and commits) in an order that keeps every edge and the chosen
// order of every pair. nil without a solution.
func (p *solver) Order() []verdict.Event {
	if !p.subjects.current {
		return nil
	}
	if p.solved.order != nil {
		return p.withLater(slices.Clone(p.solved.order))
	}
	n := p.g.Nodes()
	in := p.predecessors()
	chosen := map[node][]node{}
	for _, e := range p.chosenEdges() {
		chosen[e.From] = append(chosen[e.From], e.To)
		in[e.To]++
	}
	var timed []node          // those that others come after by the clock
	waits := map[int][]node{} // by how many of these are waited for
	if p.banded != nil {
		timed = p.byTime()
	}
	for s := slot(0); p.banded != nil && int(s) < p.tab.Slots(); s++ {
		for v := p.start(s); v == p.start(s) || p.cfg.Instants && v <= p.commit(s); v++ {
			if k := sort.Search(len(timed), func(i int) bool { return !p.banded.Precedes(timed[i], v) }); k > 0 {
				in[v]++
				waits[k] = append(waits[k], v)
			}
		}
	}
	var next []node // a heap of those that nothing else precedes any more
	ready := func(v node) { heap.Push(&next, v, heap.Less) }
	for _, v := range roots(in) {
		ready(v)
	}
	lower := func(v node) {
		if in[v]--; in[v] == 0 {
			ready(v)
		}
	}
	happened := make([]bool, n)
	passed := 0
	pass := func() {
		for passed < len(timed) && happened[timed[passed]] {
			passed++
			for _, v := range waits[passed] {
				lower(v)
			}
		}
	}
	out := make([]verdict.Event, 0, n)
	left := p.leftOut()
	reached := 0
	for len(next) > 0 {
		u := heap.Pop(&next, heap.Less)
		s := p.parts.Slot(u)
		isCommit := u == p.commit(s)
		// One that reads nothing begins as it commits: see harmless.
		late := p.parts == 2 && !p.cfg.Prefix && !p.cfg.Instants && !p.blocks.reads.Test(uint(s))
		if reached++; !left[s] {
			if late && isCommit {
				out = append(out, verdict.Event{Txn: verdict.TxnID(s)})
			}
			if !late || isCommit {
				out = append(out, verdict.Event{Txn: verdict.TxnID(s), Commit: isCommit})
			}
		}
		p.happen(u, in, nil, ready)
		for _, v := range chosen[u] {
			lower(v)
		}
		happened[u] = true
		pass()
	}
	if reached != n {
		panic("constraint: a solved polygraph has a cycle, which can't happen, because the theory keeps it acyclic")
	}
	return out
}

// byTime are the nodes that others come after by the clock, in the order of their times.
func (p *solver) byTime() []node {
	type timed struct {
		at int64
		n  node
	}
	all := make([]timed, 0, p.g.Nodes())
	for s := range slot(p.tab.Slots()) {
		for n := p.start(s); n <= p.commit(s); n++ {
			if at, known := p.banded.Time(n); known && (n == p.commit(s) || p.cfg.Instants) {
				all = append(all, timed{at, n})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b timed) int { return cmp.Compare(a.at, b.at) })
	out := make([]node, len(all))
	for i, x := range all {
		out[i] = x.n
	}
	return out
}

// withLater appends to the order that the history was run in what came since, which has no dependency yet.
func (p *solver) withLater(out []verdict.Event) []verdict.Event {
	for s := slot(p.solved.slots); s < slot(p.tab.Slots()); s++ {
		if m, uncertain := p.subjects.maybe[s]; uncertain && m != isIn {
			continue
		}
		if p.parts == 2 {
			out = append(out, verdict.Event{Txn: verdict.TxnID(s)})
		}
		out = append(out, verdict.Event{Txn: verdict.TxnID(s), Commit: true})
	}
	return out
}

// chosenEdges are the dependencies that the last solution adds to the graph.
func (p *solver) chosenEdges() []graph.Edge {
	if p.solved.order != nil {
		return nil // it is the proof itself
	}
	out := p.solved.edgesOfChoices
	for _, c := range p.solved.pairs {
		a, b := p.subjects.pairs[c].a, p.subjects.pairs[c].b
		if !p.subjects.pairs[c].ab {
			a, b = b, a
		}
		out = append(out, p.sides(a, b)...)
	}
	return out
}

// leftOut are the uncertain transactions that nobody in the history read from
// in the last solution: they never took effect.
func (p *solver) leftOut() map[slot]bool {
	left := map[slot]bool{}
	for s, m := range p.subjects.maybe {
		if m != isIn {
			left[s] = true
		}
	}
	for changed := true; changed; { // the least fixpoint, from those that are in
		changed = false
		for _, c := range p.subjects.choices {
			if v := c.last; c.state == choiceOpen && v != none && p.tab.At(v).Kind == version.Written &&
				left[p.writer(v)] && !left[c.reader] {
				delete(left, p.writer(v))
				changed = true
			}
		}
	}
	return left
}
