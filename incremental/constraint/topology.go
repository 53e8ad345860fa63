package constraint

import (
	"slices"

	"github.com/isowatch/isowatch/incremental/acyclic"
	"github.com/isowatch/isowatch/incremental/graph"
	"github.com/isowatch/isowatch/internal/heap"
)

// priorities say which of several ready nodes comes first: the one that was
// taken in first, as streams come in the order of time; in bulk, where the
// input may be sorted by session, the one in the earlier layer of the graph.
func (p *Polygraph) priorities(nodes []node, extra int) []int32 {
	prio := make([]int32, len(nodes)+extra)
	if len(p.places) == p.g.Nodes() {
		for i, n := range nodes {
			prio[i] = p.places[n]
		}
		return prio
	}
	for i, n := range nodes {
		prio[i] = int32(n)
	}
	for i := len(nodes); i < len(prio); i++ {
		prio[i] = -1 // time itself waits for nobody
	}
	return prio
}

// predecessors counts, by node, the edges of the known graph that lead there, its own start's among them.
func (p *Polygraph) predecessors() []int32 {
	in := make([]int32, p.g.Nodes())
	for i := range p.g.Len() {
		in[p.g.Edge(graph.EdgeID(i)).To]++
	}
	for v := 1; p.parts == 2 && v < len(in); v += 2 {
		in[v]++
	}
	return in
}

// happen lowers the counts of those that a node precedes, but for edges that are cut, and calls ready with each that
// nothing else precedes any more.
func (p *Polygraph) happen(v node, in []int32, cut map[graph.EdgeID]bool, ready func(node)) {
	lower := func(to node) {
		if in[to]--; in[to] == 0 {
			ready(to)
		}
	}
	if p.parts.OnlyStarts(v) {
		lower(v + 1)
	}
	for e := p.g.FirstOut(v); e != graph.None; e = p.g.NextOut(e) {
		if !cut[e] {
			lower(p.g.To(e))
		}
	}
}

// layers is a topological order of the whole graph, first come first served.
func (p *Polygraph) layers() []node {
	in := p.predecessors()
	out := make([]node, 0, len(in))
	for v, n := range in {
		if n == 0 {
			out = append(out, node(v))
		}
	}
	for at := 0; at < len(out); at++ {
		p.happen(out[at], in, nil, func(v node) { out = append(out, v) })
	}
	return out
}

// ready is a node that nothing else precedes any more.
type ready struct{ prio, node int32 }

// sooner orders them by priority, then number.
func sooner(a, b *ready) bool { return a.prio < b.prio || a.prio == b.prio && a.node < b.node }

// topological orders nodes 0 to n-1, by priority where arcs leave a choice.
func topological(n int, arcs []acyclic.Arc, prio []int32) []int32 {
	in := make([]int32, n)
	first := make([]int32, n+1)
	for _, a := range arcs {
		in[a.To]++
		first[a.From+1]++
	}
	for i := range n {
		first[i+1] += first[i]
	}
	to := make([]int32, len(arcs))
	fill := slices.Clone(first)
	for _, a := range arcs {
		to[fill[a.From]] = a.To
		fill[a.From]++
	}
	var next []ready
	for i := range n {
		if in[i] == 0 {
			heap.Push(&next, ready{prio[i], int32(i)}, sooner)
		}
	}
	out := make([]int32, 0, n)
	for len(next) > 0 {
		u := heap.Pop(&next, sooner).node
		out = append(out, u)
		for _, v := range to[first[u]:first[u+1]] {
			if in[v]--; in[v] == 0 {
				heap.Push(&next, ready{prio[v], v}, sooner)
			}
		}
	}
	return out
}
