// Package graph keeps the known graph: every dependency that is proved, with
// the reason it is known. Nodes are transactions (SER), or the start and the
// commit of each (SI; docs/decisions/0001): with Parts == 2,
// node 2t is the start of transaction t and 2t+1 its commit, and the edge from
// start to commit is implicit.
//
// The graph does not know reachability; package reach does.
package graph

import (
	"math"

	"github.com/isowatch/isowatch/incremental/paged"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/incremental/version"
)

// Node is a node of the known graph; EdgeID numbers its edges in the order in which they were added.
type (
	Node   uint32
	EdgeID uint32
)

// Parts is how many nodes a transaction has: one, or two, its start and its commit.
type Parts uint32

// Start is the first node of a transaction.
func (p Parts) Start(s version.Slot) Node { return Node(s) * Node(p) }

// Commit is the last node of a transaction, which is its start where it has one node.
func (p Parts) Commit(s version.Slot) Node { return Node(s)*Node(p) + Node(p) - 1 }

// Slot is the transaction of a node.
func (p Parts) Slot(n Node) version.Slot { return version.Slot(n / Node(p)) }

// OnlyStarts tells whether n is the start of a transaction that has a commit besides: n+1.
func (p Parts) OnlyStarts(n Node) bool { return p == 2 && n%2 == 0 }

// OnlyCommits tells whether n is the commit of a transaction that has a start besides: n-1.
func (p Parts) OnlyCommits(n Node) bool { return p == 2 && n%2 == 1 }

// None is no node, or no edge.
const None = math.MaxUint32

// Edge is a dependency between nodes.
type Edge struct {
	From, To Node
	Key      version.Key // None for session order
	Type     verdict.EdgeType
	Why      verdict.Why
	// Assumed: the edge does not follow from the records alone, but from times.
	// What rests on it is checked again before anybody is told.
	Assumed bool
}

// Graph is an append-only multigraph with adjacency in both directions, kept
// as linked lists in arrays: 24 bytes per edge, 8 per node. The number of
// an edge is its age: an explanation of edge e only uses edges before e.
type Graph struct {
	edges    paged.Vec[EdgeID, linked]
	firstOut []EdgeID // by node
	firstIn  []EdgeID
}

// linked is an edge and the next ones with the same ends.
type linked struct {
	Edge
	nextOut, nextIn EdgeID
}

// Grow makes room for nodes 0 to n-1.
func (g *Graph) Grow(n int) {
	for len(g.firstOut) < n {
		g.firstOut = append(g.firstOut, None)
		g.firstIn = append(g.firstIn, None)
	}
}

// Nodes is the number of nodes.
func (g *Graph) Nodes() int { return len(g.firstOut) }

// Len is the number of edges.
func (g *Graph) Len() int { return g.edges.Len() }

// Edge returns edge number i.
func (g *Graph) Edge(i EdgeID) Edge { return g.edges.At(i).Edge }

// Add appends an edge and returns its number.
func (g *Graph) Add(e Edge) EdgeID {
	i := g.edges.Push(linked{e, g.firstOut[e.From], g.firstIn[e.To]})
	g.firstOut[e.From] = i
	g.firstIn[e.To] = i
	return i
}

// Truncate takes away all edges but the first n.
func (g *Graph) Truncate(n int) {
	for i := g.edges.Len(); i > n; i-- {
		e := g.edges.At(EdgeID(i - 1))
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
func (g *Graph) FirstOut(n Node) EdgeID { return g.firstOut[n] }

// NextOut continues FirstOut.
func (g *Graph) NextOut(i EdgeID) EdgeID { return g.edges.At(i).nextOut }

// To is where edge i leads.
func (g *Graph) To(i EdgeID) Node { return g.edges.At(i).To }

// FirstIn and NextIn walk the edges that enter n, youngest first.
func (g *Graph) FirstIn(n Node) EdgeID { return g.firstIn[n] }

// NextIn continues FirstIn.
func (g *Graph) NextIn(i EdgeID) EdgeID { return g.edges.At(i).nextIn }
