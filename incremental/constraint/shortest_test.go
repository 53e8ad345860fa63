package constraint

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/isowatch/isowatch/incremental/graph"
	"github.com/isowatch/isowatch/incremental/reach"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/incremental/version"
)

// randomGraph is a known graph of a few transactions in three sessions, with edges
// at random, put in in the order of a shuffle.
func randomGraph(rng *rand.Rand, split bool, shuffle *rand.Rand) *Polygraph {
	tab := &version.Table{}
	p := New(Config{Split: split, Sessions: true, Chains: 3, Slots: 9}, tab)
	last := [3]slot{version.None, version.None, version.None}
	for s := range slot(9) {
		c := rng.IntN(3)
		tab.Add(version.Line(c), 0, 0)
		p.Add(Txn{Chain: reach.Chain(uint32(c)), Prev: last[c]})
		last[c] = s
	}
	var es []graph.Edge
	for range 3 + rng.IntN(14) {
		a, b := slot(rng.IntN(9)), slot(rng.IntN(9))
		if a == b {
			continue
		}
		a, b = min(a, b), max(a, b) // no cycle
		why := []verdict.Why{verdict.ByValue, verdict.ByOrder}[rng.IntN(2)]
		e := graph.Edge{From: p.commit(a), To: p.start(b), Key: keyID(rng.IntN(2)), Type: verdict.WR, Why: why}
		if rng.IntN(3) == 0 {
			e.From, e.To, e.Type = p.start(a), p.commit(b), verdict.RW
		}
		es = append(es, e)
	}
	shuffle.Shuffle(len(es), func(i, j int) { es[i], es[j] = es[j], es[i] })
	for _, e := range es {
		p.orders.addEdge(e, true)
	}
	return p
}

// least is the least number of steps from src to dst, by trying all ways.
func least(p *Polygraph, src, dst node) int {
	best := -1
	var try func(n node, steps int, run bool)
	try = func(n node, steps int, run bool) {
		if n == dst && (best < 0 || steps < best) {
			best = steps
		}
		if p.parts == 2 && n%2 == 0 {
			try(n+1, steps, run)
		}
		for e := p.g.FirstOut(n); e != graph.None; e = p.g.NextOut(e) {
			ed := p.g.Edge(e)
			if so := ed.Type == verdict.SO; so && run {
				try(ed.To, steps, true)
			} else {
				try(ed.To, steps+1, so)
			}
		}
	}
	try(src, 0, false)
	return best
}

// steps counts a path's, runs of session order as one.
func stepsOf(walk []step) int {
	n := 0
	for i, s := range walk {
		if s.Type != verdict.SO || i == 0 || walk[i-1].Type != verdict.SO {
			n++
		}
	}
	return n
}

// A path is a path, has the fewest steps, and is the same in whatever order its
// edges came.
func TestPathsAreShortest(t *testing.T) {
	longer := 0
	for seed := range uint64(3000) {
		split := seed%2 == 0
		p := randomGraph(rand.New(rand.NewPCG(seed, 1)), split, rand.New(rand.NewPCG(seed, 2)))
		q := randomGraph(rand.New(rand.NewPCG(seed, 1)), split, rand.New(rand.NewPCG(seed, 3)))
		src, dst := node(0), node(p.g.Nodes()-1)
		want := least(p, src, dst)
		walk := p.reports.path(src, dst, none)
		if (walk == nil) != (want < 0) {
			t.Fatalf("seed %d: path %v, and the least length is %d", seed, walk, want)
		}
		if walk == nil {
			continue
		}
		at := src
		for _, s := range walk {
			if s.From != at && !(split && at%2 == 0 && s.From == at+1) {
				t.Fatalf("seed %d: %v does not go on from %d", seed, walk, at)
			}
			at = s.To
		}
		if at != dst && !(split && at%2 == 0 && dst == at+1) {
			t.Fatalf("seed %d: %v does not end at %d", seed, walk, dst)
		}
		if got := stepsOf(walk); got != want {
			t.Fatalf("seed %d: %d steps, %d are enough: %v", seed, got, want, walk)
		}
		if len(walk) > want {
			longer++ // a run of session order
		}
		if other := q.reports.path(src, dst, none); !slices.Equal(edges(other), edges(walk)) {
			t.Fatalf("seed %d: %v, and, edges having come in another order, %v", seed, edges(walk), edges(other))
		}
	}
	if longer < 20 {
		t.Errorf("only %d paths had a run of session order", longer)
	}
}
