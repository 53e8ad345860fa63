package reach

import (
	"math/bits"
	"slices"

	"github.com/bits-and-blooms/bitset"

	"github.com/isowatch/isowatch/incremental/graph"
)

// Bits is the closure where chains are as many as transactions: one bit per
// pair. n nodes cost n²/8 bytes, which for many chains is less than Chains.
//
// Invariant: row(v) holds exactly the nodes that reach v, v itself included.
type Bits struct {
	g     *graph.Graph
	parts uint32
	n     int // transactions
	row   []*bitset.BitSet
	queue []Node
	news  []fresh // of the row that an edge comes from, what the one it leads to has not
}

// fresh is a word of a row, of what is new in it.
type fresh struct {
	at   int
	bits uint64
}

// NewBits makes an empty closure over g.
func NewBits(g *graph.Graph, parts int) *Bits { return &Bits{g: g, parts: uint32(parts)} }

// Add appends the next transaction.
func (b *Bits) Add() {
	for k := range b.parts {
		n := uint(b.n)*uint(b.parts) + uint(k)
		r := bitset.New(n + 1)
		r.Set(n)
		if k == 1 {
			r.Set(n - 1)
		}
		b.row = append(b.row, r)
	}
	b.n++
}

// Build implements Builder.
func (b *Bits) Build(topo []Node) {
	for v, r := range b.row {
		r.ClearAll()
		r.Set(uint(v))
	}
	for _, v := range topo {
		if b.parts == 2 && v%2 == 1 {
			b.row[v].InPlaceUnion(b.row[v-1])
		}
		for e := b.g.FirstIn(v); e != graph.None; e = b.g.NextIn(e) {
			if u := b.g.Edge(e).From; !b.row[v].Test(uint(u)) {
				b.row[v].InPlaceUnion(b.row[u])
			}
		}
	}
}

// Reaches implements Reach in O(1).
func (b *Bits) Reaches(u, v Node) bool { return b.row[v].Test(uint(u)) }

// Insert implements Reach: what reaches u is passed on to v and what v reaches.
// Whatever u reached before has it already, and so has all beyond.
//
// What lies beyond v has what v had, so that at most what was new to v is new to it: words that
// are as they were are looked at once, not in each row. An edge among transactions of long
// ago, as a record that came late makes, changes many rows by few words.
func (b *Bits) Insert(u, v Node, changed func(Node)) {
	if b.row[v].Test(uint(u)) {
		return
	}
	b.news = b.news[:0]
	has := b.row[v].Words()
	for i, w := range b.row[u].Words() {
		if i < len(has) {
			w &^= has[i]
		}
		if w != 0 {
			b.news = append(b.news, fresh{i, w})
		}
	}
	b.queue = b.queue[:0]
	b.pass(u, v, changed)
	for len(b.queue) > 0 {
		n := b.queue[len(b.queue)-1]
		b.queue = b.queue[:len(b.queue)-1]
		if b.parts == 2 && n%2 == 0 {
			b.pass(u, n+1, changed)
		}
		for e := b.g.FirstOut(n); e != graph.None; e = b.g.NextOut(e) {
			b.pass(u, b.g.Edge(e).To, changed)
		}
	}
}

// pass hands news on to s, unless u reached it before.
func (b *Bits) pass(u, s Node, changed func(Node)) {
	row := b.row[s]
	if row.Test(uint(u)) {
		return
	}
	last := b.news[len(b.news)-1]                               // there is one: u at least
	row.Set(uint(last.at)*64 + uint(bits.Len64(last.bits)) - 1) // the row is that long now
	words := row.Words()
	for _, w := range b.news {
		words[w.at] |= w.bits
	}
	changed(s)
	b.queue = append(b.queue, s)
}

// Contract implements Reach: of the nodes that reach v, those that reach v not
// through another of them.
func (b *Bits) Contract(nodes []Node, edges [][2]uint32) ([][2]uint32, int) {
	mask := bitset.New(uint(len(b.row)))
	index := make(map[Node]uint32, len(nodes))
	for i, n := range nodes {
		mask.Set(uint(n))
		index[n] = uint32(i)
	}
	weight := func(n Node) uint { return b.row[n].IntersectionCardinality(mask) }
	weights := make([]uint, len(nodes))
	for i, n := range nodes {
		weights[i] = weight(n)
	}
	var near []uint32
	for i, v := range nodes {
		near = near[:0]
		for u := range b.row[v].Intersection(mask).EachSet() {
			if Node(u) != v {
				near = append(near, index[Node(u)])
			}
		}
		// what is reached by more comes later in every topological order
		slices.SortStableFunc(near, func(x, y uint32) int { return int(weights[y]) - int(weights[x]) })
		covered := bitset.New(uint(len(b.row)))
		for _, k := range near {
			if !covered.Test(uint(nodes[k])) {
				edges = append(edges, [2]uint32{k, uint32(i)})
				covered.InPlaceUnion(b.row[nodes[k]])
			}
		}
	}
	return edges, 0
}

// Bytes implements Reach.
func (b *Bits) Bytes() int {
	n := 0
	for _, r := range b.row {
		n += 8 * len(r.Words())
	}
	return n
}
