package weak

import (
	"fmt"
	"slices"
	"testing"

	"github.com/isowatch/isowatch/incremental/version"
)

// TestWitnesses checks every edge of every cycle with the axioms, and that of
// each tangle of transactions a cycle is told that has the fewest inferred edges.
func TestWitnesses(t *testing.T) {
	fewest := map[int]int{} // tangles by that number
	each(t, func(t *testing.T, name string, seed uint64, s shape, h *plan) {
		w := newTeller(h, allLevels...)
		if seed%4 == 3 {
			w.c.witnesses.Witnesses = 3
		}
		edges := inferredEdges(w.c)
		found := map[Level]bool{}
		for now := range h.ticks {
			w.tell(now)
			got := w.c.Tick(now == h.ticks-1)
			r := newReference(&w.told)
			for _, v := range got {
				found[G1] = found[G1] || v.Level == G1
			}
			for _, v := range got {
				checkCycle(t, fmt.Sprintf("%s, Tick %d", name, now), r, w.c, v, !found[G1])
			}
			for _, l := range allLevels[1:] {
				if !found[l] && !found[G1] {
					checkFewest(t, fmt.Sprintf("%s, Tick %d, level %d", name, now, l), r, edges[l], ofLevel(got, l), w.c.witnesses.Witnesses, fewest)
				}
			}
			for _, v := range got {
				found[v.Level] = true
			}
		}
	})
	if fewest[1] < 100 || fewest[2] < 100 || fewest[3] < 3 {
		t.Errorf("tangles by the fewest inferred edges: %v, which is too few to tell anything", fewest)
	}
}

func ofLevel(all []Violation, l Level) []Violation {
	return slices.DeleteFunc(slices.Clone(all), func(v Violation) bool { return v.Level != l })
}

// inferredEdges collects the edges that a checker has when it begins to look for
// cycles, by level, as it cuts some where it finds one.
func inferredEdges(c *Checker) map[Level]map[wrEdge]bool {
	all := map[Level]map[wrEdge]bool{RC: {}, RA: {}, CC: {}}
	c.Take = func(int) bool {
		for _, g := range c.graphs[1:] {
			for t, e := range g.head {
				for ; e != none; e = g.edges[e].next {
					if from := g.edges[e].from; from != none {
						all[g.level][wrEdge{from, Txn(t)}] = true
					}
				}
			}
		}
		return true
	}
	return all
}

// checkCycle checks a violation edge by edge. whole: the checker has the reads
// that it was told, as it found no cycle of the base.
func checkCycle(t *testing.T, name string, r *reference, c *Checker, v Violation, whole bool) {
	t.Helper()
	if len(v.Cycle) < 2 {
		t.Fatalf("%s: %v is no cycle", name, v)
	}
	for i, e := range v.Cycle {
		if next := v.Cycle[(i+1)%len(v.Cycle)]; e.To != next.From {
			t.Fatalf("%s: %v does not close at step %d", name, v, i)
		}
		if !r.edge(v.Level, e) {
			t.Fatalf("%s: step %d of %v is no edge", name, i, v)
		}
		t2, t3 := e.From, e.By
		switch {
		case e.Kind == Anti:
			t2, t3 = e.To, e.From
		case e.Kind != Inferred:
			continue
		}
		if a, b := slices.Index(r.lists[e.Key], e.From), slices.Index(r.lists[e.Key], e.To); e.Kind == Inferred && a >= 0 && a < b {
			t.Fatalf("%s: step %d of %v: a list shows that order, and whoever read it missed nothing", name, i, v)
		}
		way := c.witnesses.Path(v.Level, t2, t3)
		if way == nil && !whole {
			continue
		}
		if !r.way(v.Level, way, t2, t3) {
			t.Fatalf("%s: step %d of %v: %v does not make %d visible to %d", name, i, v, way, t2, t3)
		}
	}
}

// edge tells whether the axioms have an edge of a witness.
func (r *reference) edge(l Level, e Edge) bool {
	finds := func(t Txn, ok func(op int, rd toldRead) bool) bool {
		for op, rd := range r.txns[t].reads {
			if rd.key == e.Key && ok(op, rd) {
				return true
			}
		}
		return false
	}
	switch e.Kind {
	case SO:
		return r.so.has(e.From, e.To)
	case WR:
		return finds(e.To, func(_ int, rd toldRead) bool { return rd.has(e.From) })
	case Inferred:
		return e.From != e.To && slices.Contains(r.txns[e.From].writes, e.Key) && finds(e.By, func(op int, rd toldRead) bool {
			return rd.from == e.To && r.visible(l, e.From, e.By, op)
		})
	case Anti:
		return slices.Contains(r.txns[e.To].writes, e.Key) && finds(e.From, func(op int, rd toldRead) bool {
			return rd.from == Initial && r.visible(l, e.To, e.From, op)
		})
	case Listed:
		a, b := slices.Index(r.lists[e.Key], e.From), slices.Index(r.lists[e.Key], e.To)
		return l != G1 && slices.Contains(r.txns[e.To].writes, e.Key) && a >= 0 && (b > a || b < 0)
	}
	return false
}

// way tells whether the steps lead from t2 to t3 in the way that makes t2
// visible at a level.
func (r *reference) way(l Level, way []Edge, t2, t3 Txn) bool {
	var kinds []Kind
	at := t2
	for _, e := range way {
		if e.From != at || e.Kind > WR || !r.edge(l, e) {
			return false
		}
		kinds = append(kinds, e.Kind)
		at = e.To
	}
	if at != t3 || len(way) == 0 {
		return false
	}
	allowed := map[Level][][]Kind{
		RC: {{WR}}, RA: {{WR}, {SO}},
		ReadYourWrites: {{SO}}, MonotonicReads: {{WR, SO}}, MonotonicWrites: {{SO, WR}},
		WritesFollowReads: {{WR, WR}, {WR, SO, WR}},
	}
	return l == CC || slices.ContainsFunc(allowed[l], func(k []Kind) bool { return slices.Equal(k, kinds) })
}

// checkFewest compares, for each strongly connected component of base and
// inferred edges, the first cycle told of it with the fewest inferred edges that
// a cycle in it can have. No edge has been cut before.
func checkFewest(t *testing.T, name string, r *reference, inferred map[wrEdge]bool, got []Violation, witnesses int, count map[int]int) {
	t.Helper()
	graph := newRelation(len(r.txns)).union(r.base)
	for e := range inferred {
		graph.add(e.from, e.to)
	}
	reach := graph.closure()
	told := map[Txn][]int{} // by the least of the component
	for _, v := range got {
		if v.Cycle[len(v.Cycle)-1].Kind == Anti {
			continue
		}
		of, n := v.Cycle[0].From, 0
		for x := range Txn(len(reach)) {
			if reach.has(x, v.Cycle[0].From) && reach.has(v.Cycle[0].From, x) {
				of = min(of, x)
			}
		}
		for _, e := range v.Cycle {
			if e.Kind == Inferred || e.Kind == Listed {
				n++
			}
		}
		told[of] = append(told[of], n)
	}
	components := 0
	for least := range Txn(len(reach)) {
		best := fewestIn(r.base, inferred, reach, least)
		if best == 0 {
			continue
		}
		components++
		count[best]++
		switch n := told[least]; {
		case len(n) == 0 || len(n) > witnesses:
			t.Fatalf("%s: %d cycles told of the component of %d, want 1 to %d", name, len(n), least, witnesses)
		case n[0] != best || !slices.IsSorted(n):
			t.Fatalf("%s: cycles with %v inferred edges, want %d first", name, n, best)
		}
	}
	if components != len(told) {
		t.Fatalf("%s: cycles of %d components, want %d", name, len(told), components)
	}
}

// fewestIn is the fewest inferred edges of a cycle in the component whose least
// transaction is least, or 0 if there is none.
func fewestIn(base relation, inferred map[wrEdge]bool, reach relation, least Txn) int {
	in := func(t Txn) bool { return reach.has(least, t) && reach.has(t, least) }
	if !in(least) {
		return 0
	}
	for t := range least {
		if in(t) {
			return 0
		}
	}
	best := 0
	for start := range inferred {
		if !in(start.from) || !in(start.to) {
			continue
		}
		// Rounds of Bellman and Ford, the base being free.
		cost := map[Txn]int{start.to: 1}
		relax := func(a, b Txn, c int) bool {
			x, ok := cost[a]
			y, known := cost[b]
			if !ok || known && y <= x+c {
				return false
			}
			cost[b] = x + c
			return true
		}
		for again := true; again; {
			again = false
			for a := range base {
				if in(Txn(a)) {
					base.successors(Txn(a), func(b Txn) { again = in(b) && relax(Txn(a), b, 0) || again })
				}
			}
			for e := range inferred {
				again = in(e.from) && in(e.to) && relax(e.from, e.to, 1) || again
			}
		}
		if c := cost[start.from]; best == 0 || c < best {
			best = c
		}
	}
	return best
}

// A cycle is told however long it is, also where searching for a shortest one was
// given up.
func TestLongCycles(t *testing.T) {
	for _, n := range []int{2, 3, 1000, 1<<16 + 1, visitsMax + 1000} {
		c := New(true, RC)
		for i := range n {
			c.Add(uint32(i), none, false, []version.Key{version.Key((i + n - 1) % n)}, []version.Key{version.Key(i)})
		}
		for i := range n {
			c.Read(Txn(i), 0, Txn((i+n-1)%n))
		}
		found := c.Tick(true)
		if len(found) != 1 || found[0].Level != G1 || len(found[0].Cycle) != n {
			t.Fatalf("a cycle of %d transactions: %d found", n, len(found))
		}
		for i, e := range found[0].Cycle {
			if e.Kind != WR || e.To != found[0].Cycle[(i+1)%n].From || e.To != (e.From+1)%Txn(n) {
				t.Fatalf("a cycle of %d transactions: step %d is %+v", n, i, e)
			}
		}
	}
}
