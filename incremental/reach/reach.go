// Package reach answers "is there a path from u to v" in the known graph while
// edges are added, without ever keeping a full matrix where the history offers
// something better (docs/decisions/0002). One interface, three representations:
//
//   - Banded, by time, for histories with clocks (Vbox 3.4, Italiano+);
//   - Chains, by session, for histories without;
//   - Bits, sets of bits in blocks that rows share, where chains are many
//     (session order ignored, say).
//
// All three keep, per node, what reaches it: a new transaction has no
// successors, so an edge into it touches its own row and nothing else. Insert
// reports the nodes whose rows grew; these newly reachable pairs drive pruning.
//
// Nodes are those of package graph: Parts per transaction, the start before
// the commit.
package reach

import "github.com/isowatch/isowatch/incremental/graph"

// Node is a node of the known graph.
type Node = graph.Node

// Reach is reachability over a growing acyclic graph.
type Reach interface {
	// Reaches tells whether u == v or a path leads from u to v.
	Reaches(u, v Node) bool
	// Insert adds the edge u→v, which is in the graph already. The caller has
	// made sure that v does not reach u.
	Insert(u, v Node, w Watcher)
	// Contract returns the reachability among nodes, which are distinct and
	// sorted, as few edges, after those of into: pairs of indexes into nodes, or, for indexes from
	// len(nodes) up to len(nodes)+extra-1, helper nodes. The transitive closure
	// of the edges, restricted to nodes, is Reaches.
	Contract(nodes []Node, into [][2]uint32) (edges [][2]uint32, extra int)
	// Bytes is the memory held, for measurement.
	Bytes() int
}

// Watcher is told what an edge lets be reached.
type Watcher interface {
	// Watched tells whether it wants to know when something new reaches a node.
	Watched(Node) bool
	// Reached is called once or more for each such node, and perhaps for others.
	Reached(Node)
}

// buildAsks is how many rows are made between two questions whether to stop.
const buildAsks = 256
