package constraint

import (
	"slices"

	"github.com/isowatch/isowatch/incremental/acyclic"
	"github.com/isowatch/isowatch/internal/heap"
)

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
