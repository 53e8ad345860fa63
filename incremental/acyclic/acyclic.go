// Package acyclic is the solver's theory: literals stand for edges of a graph,
// and a true assignment must leave the graph without a cycle.
//
// It keeps a topological order up to date while edges come (Pearce and Kelly,
// "A dynamic topological sort algorithm for directed acyclic graphs", JEA
// 2006). An edge that agrees with the order costs nothing; another one reorders
// the nodes between its ends. Edges go in last-in-first-out, and taking one
// away leaves every order valid.
//
//	file          what
//	acyclic.go    nodes, arcs, literals; Assert and Undo
//	order.go      the topological order
//	explain.go    cycles: the shortest, kept compactly, drawn on demand
//	infer.go      conclusions: arcs that would close a cycle, what to try first
//
// Non-obvious:
//   - An arc of a literal is one record for ever. Asserting it links it into the
//     lists of its two nodes, undoing unlinks it; nothing is allocated.
//   - The order is valid for everything asserted, so also for any part of it: a
//     path between two nodes lies between their places, whenever its arcs came.
//   - Fixed arcs cost nothing in an objection, asserted ones do: shortest means
//     fewest asserted arcs.
package acyclic

import (
	"fmt"
	"iter"
	"slices"

	"github.com/isowatch/isowatch/incremental/sat"
)

// fixed stands for a literal of arcs that hold whatever is assigned.
const fixed = sat.Lit(-1)

// none ends a list of arcs.
const none = int32(-1)

// Arc is a directed edge.
type Arc struct{ From, To int32 }

// Cycle is one objection: a closed walk of arcs, each with its literal, or -1
// for arcs of the fixed graph. The first arc has a literal.
type Cycle struct {
	Arcs []Arc
	Lits []sat.Lit
}

// link is an arc that a literal stands for.
type link struct {
	Arc
	lit     sat.Lit
	prev    int32 // arc of the same literal
	next    int32 // arc of the same literal
	nextOut int32 // asserted before from the same node, while asserted
	nextIn  int32 // asserted before to the same node, while asserted
	sibling int32 // any arc of a literal from the same node
}

// Theory implements sat.Theory, sat.Propagator and sat.Guide.
type Theory struct {
	// The fixed graph of New: the arcs out of n go to outTo[outAt[n]:outAt[n+1]], those into n come from
	// inFrom[inAt[n]:inAt[n+1]].
	outAt, outTo []int32
	inAt, inFrom []int32
	links        []link
	out, in      []int32   // by node: the link from it, or to it, that was asserted last, or none
	may          []int32   // by node: the last link from it, asserted or not, or none
	pos          []int32   // by node: its place in an order of all fixed and asserted arcs
	first, last  []int32   // by literal: its links, in a list of link.next, or none
	stack        []sat.Lit // what is asserted, oldest first
	place        []int32   // by literal, while asserted: index in stack

	// Objections: the links of cycle o are cycles[ends[o-1]:ends[o]], in order;
	// fixed paths lie between.
	cycles []int32
	ends   []int

	// Scratch.
	mark   []uint32
	stamp  uint32
	parent []int32
	via    []int32 // link from parent, or none for a fixed arc
	fwd    []int32
	bwd    []int32
	places []int32
	level  []int32
	looked int // nodes that searches have met

	implied []sat.Lit
}

// New makes a theory over nodes 0 to len(prio)-1, with the fixed arcs, the same each time they are asked for, which have no
// cycle; lits is the number of
// literals (twice that of variables). Where arcs leave a choice the order is that of prio, then of nodes.
func New(prio []int32, fixed iter.Seq[Arc], lits int) *Theory {
	t := &Theory{outAt: make([]int32, len(prio)+1), inAt: make([]int32, len(prio)+1)}
	n := len(prio)
	t.pos, t.mark, t.parent, t.via = make([]int32, n), make([]uint32, n), make([]int32, n), make([]int32, n)
	t.out, t.in, t.may = slices.Repeat([]int32{none}, n), slices.Repeat([]int32{none}, n), slices.Repeat([]int32{none}, n)
	t.fix(fixed)
	t.sort(prio)
	t.room(lits)
	return t
}

// Expect makes room for so many arcs of literals.
func (t *Theory) Expect(arcs int) { t.links = slices.Grow(t.links, arcs) }

func (t *Theory) room(lits int) {
	if more := lits - len(t.first); more > 2 {
		t.first, t.last, t.place = slices.Grow(t.first, more), slices.Grow(t.last, more), slices.Grow(t.place, more)
	}
	for len(t.first) < lits {
		t.first, t.last, t.place = append(t.first, none), append(t.last, none), append(t.place, none)
	}
}

// fix lays out the fixed graph.
func (t *Theory) fix(fixed iter.Seq[Arc]) {
	n := 0
	for a := range fixed {
		n++
		t.outAt[a.From+1]++
		t.inAt[a.To+1]++
	}
	for i := 1; i < len(t.outAt); i++ {
		t.outAt[i] += t.outAt[i-1]
		t.inAt[i] += t.inAt[i-1]
	}
	t.outTo, t.inFrom = make([]int32, n), make([]int32, n)
	outs, ins := append([]int32(nil), t.outAt...), append([]int32(nil), t.inAt...)
	for a := range fixed {
		t.outTo[outs[a.From]] = a.To
		outs[a.From]++
		t.inFrom[ins[a.To]] = a.From
		ins[a.To]++
	}
}

// Looked is how many nodes all searches have met so far: what the theory has cost.
func (t *Theory) Looked() int { return t.looked }

// Means adds arcs to what l stands for, while l is not asserted.
func (t *Theory) Means(l sat.Lit, arcs ...Arc) {
	t.room(int(l|1) + 1)
	if t.place[l] != none {
		panic(fmt.Sprintf("acyclic: an arc is added to literal %d, which is asserted", l))
	}
	for _, a := range arcs {
		i := t.link(a, l)
		t.links[i].prev, t.links[i].sibling = t.last[l], t.may[a.From]
		t.may[a.From] = i
		if t.last[l] == none {
			t.first[l] = i
		} else {
			t.links[t.last[l]].next = i
		}
		t.last[l] = i
	}
}

func (t *Theory) link(a Arc, l sat.Lit) int32 {
	t.links = append(t.links, link{Arc: a, lit: l, prev: none, next: none, nextOut: none, nextIn: none, sibling: none})
	return int32(len(t.links) - 1)
}

// Pos is the node's place in the current order.
func (t *Theory) Pos(n int32) int32 { return t.pos[n] }

func (t *Theory) push(i int32) {
	k := &t.links[i]
	k.nextOut, t.out[k.From] = t.out[k.From], i
	k.nextIn, t.in[k.To] = t.in[k.To], i
}

func (t *Theory) pop(i int32) {
	k := &t.links[i]
	t.out[k.From], t.in[k.To] = k.nextOut, k.nextIn
}

// Assert implements sat.Theory.
func (t *Theory) Assert(l sat.Lit) ([]sat.Lit, int) {
	if int(l) >= len(t.first) { // a variable that came later, and stands for nothing
		t.room(int(l|1) + 1)
	}
	t.place[l] = int32(len(t.stack))
	t.implied = t.implied[:0]
	for i := t.first[l]; i != none; i = t.links[i].next {
		if t.order(t.links[i].Arc) {
			t.push(i)
			continue
		}
		conflict, objection := t.object(i, len(t.stack)+1)
		for k := t.links[i].prev; k != none; k = t.links[k].prev {
			t.pop(k)
		}
		t.place[l] = none
		return append(conflict, l), objection
	}
	t.stack = append(t.stack, l)
	return nil, 0
}

// Undo implements sat.Theory.
func (t *Theory) Undo(n int) {
	for ; n > 0; n-- {
		l := t.stack[len(t.stack)-1]
		t.stack = t.stack[:len(t.stack)-1]
		t.place[l] = none
		for i := t.last[l]; i != none; i = t.links[i].prev {
			t.pop(i)
		}
	}
}
