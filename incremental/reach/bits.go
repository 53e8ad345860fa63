package reach

import (
	"slices"

	"github.com/isowatch/isowatch/incremental/graph"
	"github.com/isowatch/isowatch/incremental/sets"
)

// Bits is the closure where chains are many: one bit per pair, in blocks that rows share
// (package sets). What reached u long ago reaches also what u reaches, so that rows agree
// but for what is recent, and of two that are joined only what differs is looked at.
// A matrix would be n²/8 bytes.
//
// Bits of a row are numbered by place, which of a whole history is that in a topological order:
// what rows differ in is together then, however the history was written down.
//
// Invariant: row(v) holds the places of exactly the nodes that reach v, v itself included.
type Bits struct {
	g     *graph.Graph
	parts graph.Parts
	sets  sets.Sets
	row   []sets.ID // by node
	place []uint32  // by node
	at    []Node    // by place
	queue []Node
}

// NewBits makes an empty closure over g.
func NewBits(g *graph.Graph, parts graph.Parts) *Bits {
	return &Bits{g: g, parts: parts}
}

// Add appends the next transaction. With bulk set, rows are left to Build.
func (b *Bits) Add(bulk bool) {
	for k := range b.parts {
		n := Node(len(b.row))
		b.place, b.at = append(b.place, uint32(n)), append(b.at, n)
		row := sets.None
		if !bulk && k == 1 {
			row = b.sets.Share(b.row[n-1])
		}
		if !bulk {
			row = b.sets.Put(row, uint32(n))
		}
		b.row = append(b.row, row)
	}
}

// Build is as that of Chains.
func (b *Bits) Build(topo []Node, stop func() bool) {
	b.sets.Clear()
	b.at = append(b.at[:0], topo...)
	for i, v := range topo {
		b.place[v] = uint32(i)
	}
	for i, v := range topo {
		if i%buildAsks == 0 && stop != nil && stop() {
			return
		}
		row := sets.None
		if first, ok := b.latest(v); ok { // which as a rule the others reach
			row = b.sets.Share(b.row[first])
		}
		if b.parts.OnlyCommits(v) && !b.sets.Has(row, b.place[v-1]) {
			row = b.sets.Join(row, b.row[v-1])
		}
		for e := b.g.FirstIn(v); e != graph.None; e = b.g.NextIn(e) {
			if u := b.g.Edge(e).From; !b.sets.Has(row, b.place[u]) {
				row = b.sets.Join(row, b.row[u])
			}
		}
		b.row[v] = b.sets.Put(row, uint32(i))
	}
}

// latest is the predecessor of v with the greatest place.
func (b *Bits) latest(v Node) (u Node, ok bool) {
	if b.parts.OnlyCommits(v) {
		u, ok = v-1, true
	}
	for e := b.g.FirstIn(v); e != graph.None; e = b.g.NextIn(e) {
		if from := b.g.Edge(e).From; !ok || b.place[from] > b.place[u] {
			u, ok = from, true
		}
	}
	return u, ok
}

// Reaches implements Reach, in the logarithm of the number of nodes.
func (b *Bits) Reaches(u, v Node) bool { return b.sets.Has(b.row[v], b.place[u]) }

// Insert implements Reach: what reaches u is passed on to v and what v reaches.
// Whatever u reached before has it already, and so has all beyond.
func (b *Bits) Insert(u, v Node, w Watcher) {
	b.queue = b.queue[:0]
	b.pass(u, v, w)
	for len(b.queue) > 0 {
		n := b.queue[len(b.queue)-1]
		b.queue = b.queue[:len(b.queue)-1]
		if b.parts.OnlyStarts(n) {
			b.pass(u, n+1, w)
		}
		for e := b.g.FirstOut(n); e != graph.None; e = b.g.NextOut(e) {
			b.pass(u, b.g.Edge(e).To, w)
		}
	}
}

func (b *Bits) pass(u, s Node, w Watcher) {
	if b.Reaches(u, s) {
		return
	}
	b.row[s] = b.sets.Join(b.row[s], b.row[u])
	w.Reached(s)
	b.queue = append(b.queue, s)
}

// Contract implements Reach: of the nodes that reach v, those that reach v not
// through another of them, as far as places are in the order of the graph. What is covered
// by those that were found shares the blocks of v's row, and costs nothing.
func (b *Bits) Contract(nodes []Node, edges [][2]uint32) ([][2]uint32, int) {
	places := make([]uint32, len(nodes))
	index := make([]uint32, len(b.at)) // by place
	for i, n := range nodes {
		places[i] = b.place[n]
		index[places[i]] = uint32(i)
	}
	slices.Sort(places)
	mask := sets.None
	for _, p := range places {
		mask = b.sets.Put(mask, p)
	}
	for i, v := range nodes {
		own := b.place[v]
		covered := sets.None
		for below := uint32(len(b.at)); ; {
			p, ok := b.sets.Last(b.row[v], mask, covered, below)
			if !ok {
				break
			}
			below = p
			if p == own {
				continue
			}
			edges = append(edges, [2]uint32{index[p], uint32(i)})
			covered = b.sets.Join(covered, b.row[b.at[p]])
		}
		b.sets.Release(covered)
	}
	b.sets.Release(mask)
	return edges, 0
}

// Bytes implements Reach.
func (b *Bits) Bytes() int { return b.sets.Bytes() + 12*len(b.row) }
