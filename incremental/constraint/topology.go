package constraint

import (
	"slices"

	"github.com/isowatch/isowatch/incremental/acyclic"
	"github.com/isowatch/isowatch/incremental/graph"
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

// ready is a heap of nodes by priority, then number.
type ready struct {
	list []int32
	prio []int32
}

func (r *ready) len() int { return len(r.list) }

// less orders what is in the heap.
func (r *ready) less(a, b int32) bool {
	if r.prio[a] != r.prio[b] {
		return r.prio[a] < r.prio[b]
	}
	return a < b
}

// push adds v. As pop it is a heap's usual one; container/heap allocates for every
// number it is given.
func (r *ready) push(v int32) {
	r.list = append(r.list, v)
	i := len(r.list) - 1
	for i > 0 {
		up := (i - 1) / 2
		if !r.less(v, r.list[up]) {
			break
		}
		r.list[i] = r.list[up]
		i = up
	}
	r.list[i] = v
}

// pop takes the first out, of at least one.
func (r *ready) pop() int32 {
	first, last := r.list[0], len(r.list)-1
	v := r.list[last]
	r.list = r.list[:last]
	i := 0
	for {
		down := 2*i + 1
		if down >= last {
			break
		}
		if down+1 < last && r.less(r.list[down+1], r.list[down]) {
			down++
		}
		if !r.less(r.list[down], v) {
			break
		}
		r.list[i] = r.list[down]
		i = down
	}
	if last > 0 {
		r.list[i] = v
	}
	return first
}

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
	r := &ready{prio: prio}
	for i := range n {
		if in[i] == 0 {
			r.push(int32(i))
		}
	}
	out := make([]int32, 0, n)
	for r.len() > 0 {
		u := r.pop()
		out = append(out, u)
		for _, v := range to[first[u]:first[u+1]] {
			if in[v]--; in[v] == 0 {
				r.push(v)
			}
		}
	}
	return out
}
