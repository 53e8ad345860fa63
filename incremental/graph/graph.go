// Package graph keeps the known graph: every dependency that is proved, with
// the reason it is known. Nodes are transactions (SER), or the start and the
// commit of each (SI; design 3 "One graph for SER and SI"): with Parts == 2,
// node 2t is the start of transaction t and 2t+1 its commit, and the edge from
// start to commit is implicit.
//
// The graph does not know reachability; package reach does.
package graph

import (
	"slices"

	"github.com/isowatch/isowatch/incremental/paged"
	"github.com/isowatch/isowatch/incremental/verdict"
)

// Node is a node of the known graph.
type Node = uint32

// None is no node, or no edge.
const None = ^uint32(0)

// Edge is a dependency between nodes.
type Edge struct {
	From, To Node
	Key      uint32 // the key's number; None for session order
	Type     verdict.EdgeType
	Why      verdict.Why
	// Assumed: the edge does not follow from the records alone, but from times
	// or from an order chosen by the solver. What rests on it is checked again
	// before anybody is told.
	Assumed bool
}

// Graph is an append-only multigraph with adjacency in both directions, kept
// as linked lists in arrays: 24 bytes per edge, 8 per node. The number of
// an edge is its age: an explanation of edge e only uses edges before e.
type Graph struct {
	edges    paged.Vec[linked]
	firstOut []uint32 // by node
	firstIn  []uint32
}

// linked is an edge and the next ones with the same ends.
type linked struct {
	Edge
	nextOut, nextIn uint32
}

// Grow makes room for nodes 0 to n-1.
func (g *Graph) Grow(n int) {
	for len(g.firstOut) < n {
		g.firstOut = append(g.firstOut, None)
		g.firstIn = append(g.firstIn, None)
	}
}

// Room makes room for n nodes without adding any.
func (g *Graph) Room(n int) {
	g.firstOut, g.firstIn = slices.Grow(g.firstOut, n), slices.Grow(g.firstIn, n)
}

// Spare is an empty graph that uses the memory of g again, which must not be used any
// more.
func (g *Graph) Spare() Graph {
	return Graph{edges: g.edges.Spare(), firstOut: g.firstOut[:0], firstIn: g.firstIn[:0]}
}

// Nodes is the number of nodes.
func (g *Graph) Nodes() int { return len(g.firstOut) }

// Len is the number of edges.
func (g *Graph) Len() int { return g.edges.Len() }

// Edge returns edge number i.
func (g *Graph) Edge(i uint32) Edge { return g.edges.At(i).Edge }

// Add appends an edge and returns its number.
func (g *Graph) Add(e Edge) uint32 {
	i := g.edges.Push(linked{e, g.firstOut[e.From], g.firstIn[e.To]})
	g.firstOut[e.From] = i
	g.firstIn[e.To] = i
	return i
}

// Truncate takes away all edges but the first n.
func (g *Graph) Truncate(n int) {
	for i := g.edges.Len(); i > n; i-- {
		e := g.edges.At(uint32(i - 1))
		g.firstOut[e.From] = e.nextOut // the youngest leads its lists
		g.firstIn[e.To] = e.nextIn
	}
	g.edges.Truncate(n)
}

// HasOut tells whether any edge leaves n.
func (g *Graph) HasOut(n Node) bool { return g.firstOut[n] != None }

// FirstOut and NextOut walk the edges that leave n, youngest first:
//
//	for i := g.FirstOut(n); i != None; i = g.NextOut(i) { … g.Edge(i) … }
func (g *Graph) FirstOut(n Node) uint32 { return g.firstOut[n] }

// NextOut continues FirstOut.
func (g *Graph) NextOut(i uint32) uint32 { return g.edges.At(i).nextOut }

// To is where edge i leads.
func (g *Graph) To(i uint32) Node { return g.edges.At(i).To }

// FirstIn and NextIn walk the edges that enter n, youngest first.
func (g *Graph) FirstIn(n Node) uint32 { return g.firstIn[n] }

// NextIn continues FirstIn.
func (g *Graph) NextIn(i uint32) uint32 { return g.edges.At(i).nextIn }
