// Package acyclic is the solver's theory: literals stand for edges of a graph,
// and a true assignment must leave the graph without a cycle.
//
// It keeps a topological order up to date while edges come (Pearce and Kelly,
// "A dynamic topological sort algorithm for directed acyclic graphs", JEA
// 2006). An edge that agrees with the order costs nothing; another one reorders
// the nodes between its ends. Edges go in last-in-first-out, and taking one
// away leaves every order valid.
package acyclic

import (
	"slices"

	"github.com/isowatch/isowatch/incremental/sat"
)

// known marks arcs that hold whatever is assigned.
const known = sat.Lit(-1)

type arc struct {
	node int32
	lit  sat.Lit
}

// Arc is a directed edge.
type Arc struct{ From, To int32 }

// Cycle is one objection: a closed walk of arcs, each with its literal, or -1
// for arcs of the fixed graph.
type Cycle struct {
	Arcs []Arc
	Lits []sat.Lit
}

// Theory implements sat.Theory.
type Theory struct {
	out, in [][]arc
	pos     []int32 // by node
	means   [][]Arc // by literal
	stack   []sat.Lit
	cycles  []Cycle

	mark   []uint32
	stamp  uint32
	parent []int32
	by     []sat.Lit
	fwd    []int32
	bwd    []int32
	places []int32
}

// New makes a theory over nodes 0 to len(order)-1, with the fixed arcs, which
// order is a topological order of; lits is the number of literals (twice that
// of variables).
func New(order []int32, fixed []Arc, lits int) *Theory {
	n := len(order)
	t := &Theory{out: make([][]arc, n), in: make([][]arc, n), pos: make([]int32, n), means: make([][]Arc, lits),
		mark: make([]uint32, n), parent: make([]int32, n), by: make([]sat.Lit, n)}
	for i, v := range order {
		t.pos[v] = int32(i)
	}
	t.reserve(fixed)
	for _, a := range fixed {
		t.push(a, known)
	}
	return t
}

// Means adds arcs to what l stands for; before solving.
func (t *Theory) Means(l sat.Lit, arcs ...Arc) { t.means[l] = append(t.means[l], arcs...) }

// Pos is the node's place in the current order.
func (t *Theory) Pos(n int32) int32 { return t.pos[n] }

// Cycle returns an objection.
func (t *Theory) Cycle(objection int) Cycle { return t.cycles[objection] }

// reserve makes room for the fixed arcs in one piece.
func (t *Theory) reserve(fixed []Arc) {
	outs, ins := make([]int32, len(t.out)), make([]int32, len(t.in))
	for _, a := range fixed {
		outs[a.From]++
		ins[a.To]++
	}
	room := make([]arc, 2*len(fixed))
	for i := range t.out {
		t.out[i], room = room[:0:outs[i]], room[outs[i]:]
		t.in[i], room = room[:0:ins[i]], room[ins[i]:]
	}
}

func (t *Theory) push(a Arc, l sat.Lit) {
	t.out[a.From] = append(t.out[a.From], arc{a.To, l})
	t.in[a.To] = append(t.in[a.To], arc{a.From, l})
}

func (t *Theory) pop(a Arc) {
	t.out[a.From] = t.out[a.From][:len(t.out[a.From])-1]
	t.in[a.To] = t.in[a.To][:len(t.in[a.To])-1]
}

// Assert implements sat.Theory.
func (t *Theory) Assert(l sat.Lit) ([]sat.Lit, int) {
	for i, a := range t.means[l] {
		if t.order(a) {
			t.push(a, l)
			continue
		}
		conflict, objection := t.object(a, l)
		for k := i - 1; k >= 0; k-- {
			t.pop(t.means[l][k])
		}
		return conflict, objection
	}
	t.stack = append(t.stack, l)
	return nil, 0
}

// Undo implements sat.Theory.
func (t *Theory) Undo(n int) {
	for ; n > 0; n-- {
		l := t.stack[len(t.stack)-1]
		t.stack = t.stack[:len(t.stack)-1]
		for k := len(t.means[l]) - 1; k >= 0; k-- {
			t.pop(t.means[l][k])
		}
	}
}

// order makes the order agree with the new arc a; false if a closes a cycle, in
// which case parent leads from a.From back to a.To.
func (t *Theory) order(a Arc) bool {
	x, y := a.From, a.To
	if x == y {
		return false
	}
	lo, hi := t.pos[y], t.pos[x]
	if hi < lo {
		return true
	}
	t.stamp++
	t.mark[y] = t.stamp
	t.fwd = append(t.fwd[:0], y)
	for i := 0; i < len(t.fwd); i++ {
		n := t.fwd[i]
		for _, o := range t.out[n] {
			if t.mark[o.node] == t.stamp || t.pos[o.node] > hi {
				continue
			}
			t.mark[o.node] = t.stamp
			t.parent[o.node], t.by[o.node] = n, o.lit
			if o.node == x {
				return false
			}
			t.fwd = append(t.fwd, o.node)
		}
	}
	t.stamp++
	t.mark[x] = t.stamp
	t.bwd = append(t.bwd[:0], x)
	for i := 0; i < len(t.bwd); i++ {
		for _, o := range t.in[t.bwd[i]] {
			if t.mark[o.node] != t.stamp && t.pos[o.node] >= lo {
				t.mark[o.node] = t.stamp
				t.bwd = append(t.bwd, o.node)
			}
		}
	}
	byPos := func(a, b int32) int { return int(t.pos[a]) - int(t.pos[b]) }
	slices.SortFunc(t.fwd, byPos)
	slices.SortFunc(t.bwd, byPos)
	t.places = t.places[:0]
	for _, n := range t.bwd {
		t.places = append(t.places, t.pos[n])
	}
	for _, n := range t.fwd {
		t.places = append(t.places, t.pos[n])
	}
	slices.Sort(t.places)
	for i, n := range t.bwd {
		t.pos[n] = t.places[i]
	}
	for i, n := range t.fwd {
		t.pos[n] = t.places[len(t.bwd)+i]
	}
	return true
}

// object reads off the cycle that a, standing for l, would close.
func (t *Theory) object(a Arc, l sat.Lit) ([]sat.Lit, int) {
	c := Cycle{Arcs: []Arc{a}, Lits: []sat.Lit{l}}
	conflict := []sat.Lit{l}
	for n := a.From; n != a.To; n = t.parent[n] {
		c.Arcs = append(c.Arcs, Arc{t.parent[n], n})
		c.Lits = append(c.Lits, t.by[n])
		if t.by[n] != known && !slices.Contains(conflict, t.by[n]) {
			conflict = append(conflict, t.by[n])
		}
	}
	slices.Reverse(c.Arcs[1:])
	slices.Reverse(c.Lits[1:])
	t.cycles = append(t.cycles, c)
	return conflict, len(t.cycles) - 1
}
