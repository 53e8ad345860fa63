package acyclic

import (
	"slices"

	"github.com/isowatch/isowatch/internal/heap"
)

// ready is a node that nothing else precedes any more.
type ready struct{ prio, node int32 }

// sooner orders them by priority, then number.
func sooner(a, b *ready) bool { return a.prio < b.prio || a.prio == b.prio && a.node < b.node }

// sort orders the nodes along the fixed arcs.
func (t *Theory) sort(prio []int32) {
	var next []ready
	for n := range prio {
		if t.level = append(t.level, t.inAt[n+1]-t.inAt[n]); t.level[n] == 0 { // arcs from those without a place
			heap.Push(&next, ready{prio[n], int32(n)}, sooner)
		}
	}
	for place := int32(0); len(next) > 0; place++ {
		u := heap.Pop(&next, sooner).node
		t.pos[u] = place
		for _, v := range t.outTo[t.outAt[u]:t.outAt[u+1]] {
			if t.level[v]--; t.level[v] == 0 {
				heap.Push(&next, ready{prio[v], v}, sooner)
			}
		}
	}
}

// order makes the order agree with the new arc a; false if a closes a cycle.
// The cost is that of the nodes that reach, or are reached, between the places
// of its ends.
func (t *Theory) order(a Arc) bool {
	x, y := a.From, a.To
	if x == y {
		return false
	}
	if t.pos[x] < t.pos[y] {
		return true
	}
	forward := t.forward(y, x)
	t.looked += len(t.fwd)
	if !forward {
		return false
	}
	t.backward(x, t.pos[y])
	t.looked += len(t.bwd)
	if len(t.ends) > 0 { // easy problems, without a conflict, need none
		t.infer()
	}
	t.reorder()
	return true
}

// forward collects in fwd what y reaches at most as far as x; false if it
// reaches x.
func (t *Theory) forward(y, x int32) bool {
	hi := t.pos[x]
	t.next()
	t.mark[y] = t.stamp
	t.fwd = append(t.fwd[:0], y)
	for i := 0; i < len(t.fwd); i++ {
		n := t.fwd[i]
		for _, v := range t.outTo[t.outAt[n]:t.outAt[n+1]] {
			if t.mark[v] == t.stamp || t.pos[v] > hi {
				continue
			}
			if v == x {
				return false
			}
			t.mark[v] = t.stamp
			t.fwd = append(t.fwd, v)
		}
		for k := t.out[n]; k != none; k = t.links[k].nextOut {
			v := t.links[k].To
			if t.mark[v] == t.stamp || t.pos[v] > hi {
				continue
			}
			if v == x {
				return false
			}
			t.mark[v] = t.stamp
			t.fwd = append(t.fwd, v)
		}
	}
	return true
}

// backward collects in bwd what reaches x from place lo on.
func (t *Theory) backward(x, lo int32) {
	t.next()
	t.mark[x] = t.stamp
	t.bwd = append(t.bwd[:0], x)
	for i := 0; i < len(t.bwd); i++ {
		n := t.bwd[i]
		for _, v := range t.inFrom[t.inAt[n]:t.inAt[n+1]] {
			if t.mark[v] != t.stamp && t.pos[v] >= lo {
				t.mark[v] = t.stamp
				t.bwd = append(t.bwd, v)
			}
		}
		for k := t.in[n]; k != none; k = t.links[k].nextIn {
			v := t.links[k].From
			if t.mark[v] != t.stamp && t.pos[v] >= lo {
				t.mark[v] = t.stamp
				t.bwd = append(t.bwd, v)
			}
		}
	}
}

// reorder gives the nodes of bwd, then those of fwd, the places that all of them
// have now.
func (t *Theory) reorder() {
	byPos := func(a, b int32) int { return int(t.pos[a]) - int(t.pos[b]) }
	slices.SortFunc(t.fwd, byPos)
	slices.SortFunc(t.bwd, byPos)
	t.places = t.places[:0]
	i, j := 0, 0
	for i < len(t.bwd) || j < len(t.fwd) {
		if j == len(t.fwd) || i < len(t.bwd) && t.pos[t.bwd[i]] < t.pos[t.fwd[j]] {
			t.places = append(t.places, t.pos[t.bwd[i]])
			i++
		} else {
			t.places = append(t.places, t.pos[t.fwd[j]])
			j++
		}
	}
	for i, n := range t.bwd {
		t.pos[n] = t.places[i]
	}
	for i, n := range t.fwd {
		t.pos[n] = t.places[len(t.bwd)+i]
	}
}

// next makes all marks old, but for those of the stamp before.
func (t *Theory) next() {
	t.stamp++
	if t.stamp >= 1<<32-2 {
		clear(t.mark)
		t.stamp = 1
	}
}
