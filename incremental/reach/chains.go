package reach

import (
	"slices"
	"sort"

	"github.com/isowatch/isowatch/incremental/graph"
	"github.com/isowatch/isowatch/incremental/version"
)

// Chains is the closure for histories without trusted clocks. Sessions are
// total orders, so all of a session that reaches v is a prefix of it, and one
// number per session says which:
//
//	u reaches v  iff  place(u) < vec(v)[column(chain(u))]
//
// A transaction that is on no session's chain, as its outcome is unknown, is put behind
// another such one that reaches it, so that there are as many chains of these as are
// concurrent, and not as there are of them.
//
// A chain has a column once one of its nodes reaches one of another chain: most of
// short sessions never do. Space is 4·k bytes per node for k columns. Insert costs k per node whose
// vector changes.
//
// Invariants: each transaction of a chain reaches the next. vec(v)[column(c)] is the number of
// nodes of chain c that reach v, v itself included. A chain without a column reaches none but its own nodes.
type Chains struct {
	g       *graph.Graph
	parts   graph.Parts
	k       int              // how many columns each vector has room for
	columns int              // how many columns are taken
	chain   []Chain          // by transaction: its chain; Alone before Build of one that is on none of the caller's
	place   []uint32         // by transaction: how many are before it in its chain
	named   []Chain          // by the caller's number of a chain: the number that it has here, or Alone
	members [][]version.Slot // by chain: its transactions, in order
	alone   []version.Slot   // transactions of a bulk load that are on no chain of the caller's
	column  []uint32         // by chain: its column, or none
	vec     [][]uint32       // by page of nodes: their vectors, k numbers each
	queue   []Node           // scratch: nodes whose vectors changed
	news    []prefix         // scratch: what an edge brings to the node that it leads to
}

// Chain numbers the total orders, such as sessions, that transactions lie on.
type Chain uint32

// Alone is the chain of a transaction that is on none.
const Alone = ^Chain(0)

// vecPage is how many nodes have their vectors in one page: a flat array of all would be copied where it grows.
const vecPage = 256

// none is the column of a chain that has none.
const none = ^uint32(0)

// prefix is the first n nodes of the chain of a column.
type prefix struct{ column, n uint32 }

// NewChains makes an empty closure over g. Columns are made room for as they come, at the
// cost of a copy, and not as sessions are heard of: many of these never have a transaction here.
func NewChains(g *graph.Graph, parts graph.Parts) *Chains {
	return &Chains{g: g, parts: parts, k: 1}
}

// Add appends the next transaction, which follows all others of its chain, if it is not Alone, by an
// edge that the caller adds to the graph but does not Insert. With bulk set,
// vectors are left to Build, which follows before anything else is added.
func (c *Chains) Add(name Chain, bulk bool) {
	t := version.Slot(len(c.chain))
	c.chain, c.place = append(c.chain, Alone), append(c.place, 0)
	chain := Alone
	switch {
	case name == Alone && bulk:
		c.alone = append(c.alone, t)
		return
	case name == Alone:
		chain = c.newChain()
	default:
		for int(name) >= len(c.named) {
			c.named = append(c.named, Alone)
		}
		if c.named[name] == Alone {
			c.named[name] = c.newChain()
		}
		chain = c.named[name]
	}
	c.put(t, chain)
	if bulk {
		return
	}
	c.grow()
	for n := c.parts.Start(t); n <= c.parts.Commit(t); n++ {
		if p, ok := c.prev(n); ok {
			copy(c.at(n), c.at(p))
		}
		if i := c.column[chain]; i != none {
			c.at(n)[i] = c.rank(n) + 1
		}
	}
}

func (c *Chains) newChain() Chain {
	c.members, c.column = append(c.members, nil), append(c.column, none)
	return Chain(len(c.members) - 1)
}

// put makes t the last of a chain.
func (c *Chains) put(t version.Slot, chain Chain) {
	c.chain[t], c.place[t] = chain, uint32(len(c.members[chain]))
	c.members[chain] = append(c.members[chain], t)
}

// grow makes room for the vectors of all nodes.
func (c *Chains) grow() {
	for nodes := len(c.chain) * int(c.parts); len(c.vec)*vecPage < nodes; {
		c.vec = append(c.vec, make([]uint32, vecPage*c.k))
	}
}

// Len is the number of columns.
func (c *Chains) Len() int { return c.columns }

// addColumn gives a chain a column.
func (c *Chains) addColumn(chain Chain) {
	if c.columns == c.k {
		c.widen(c.k + (c.k+1)/2)
	}
	i := c.columns
	c.columns++
	c.column[chain] = uint32(i)
	for _, t := range c.members[chain] {
		for n := c.parts.Start(t); n <= c.parts.Commit(t); n++ {
			c.at(n)[i] = c.rank(n) + 1
		}
	}
}

func (c *Chains) widen(k int) {
	for i, old := range c.vec {
		page := make([]uint32, vecPage*k)
		for n := range vecPage {
			copy(page[n*k:], old[n*c.k:(n+1)*c.k])
		}
		c.vec[i] = page
	}
	c.k = k
}

func (c *Chains) at(n Node) []uint32 {
	i := int(n%vecPage) * c.k
	return c.vec[n/vecPage][i : i+c.k]
}

// rank is the node's place in its chain.
func (c *Chains) rank(n Node) uint32 {
	return c.place[c.parts.Slot(n)]*uint32(c.parts) + uint32(n)%uint32(c.parts)
}

// Build computes all vectors, of a graph whose edges were added without Insert, which is much faster than inserting them
// one by one. topo is a topological order of all nodes, implicit edges included. As soon as stop, if there is one, says
// so it ends, and nothing is to be asked of the closure any more.
func (c *Chains) Build(topo []Node, stop func() bool) {
	for _, t := range c.alone {
		if ch := c.chain[t]; ch != Alone && int(ch) < len(c.members) { // of the last Build
			c.members, c.column = c.members[:ch], c.column[:ch]
		}
	}
	for _, t := range c.alone {
		c.chain[t] = Alone
	}
	own := len(c.members)
	c.columns = own
	if c.k < own {
		c.k, c.vec = own, nil
	}
	for i := range c.column {
		c.column[i] = uint32(i)
	}
	c.grow()
	for i, n := range topo {
		if i%buildAsks == 0 && stop != nil && stop() {
			return
		}
		v := c.at(n)
		if p, ok := c.prev(n); ok {
			copy(v, c.at(p))
		} else {
			clear(v)
		}
		for e := c.g.FirstIn(n); e != graph.None; e = c.g.NextIn(e) {
			u := c.g.Edge(e).From
			if c.rank(u) >= v[c.chain[c.parts.Slot(u)]] {
				for i, x := range c.at(u) {
					v[i] = max(v[i], x)
				}
			}
		}
		t := c.parts.Slot(n)
		if c.chain[t] == Alone {
			c.join(t, v, own)
		}
		ch := c.chain[t]
		c.at(n)[ch] = max(c.at(n)[ch], c.rank(n)+1)
	}
}

// join puts t, whose first node has the vector v, behind the last of a chain that is not one of the first own,
// if that reaches it, else on a chain by itself.
func (c *Chains) join(t version.Slot, v []uint32, own int) {
	for ch := own; ch < len(c.members); ch++ {
		if int(v[ch]) == len(c.members[ch])*int(c.parts) {
			c.put(t, Chain(ch))
			return
		}
	}
	ch := c.newChain()
	c.put(t, ch)
	c.addColumn(ch)
}

// prev is the node before n in its chain.
func (c *Chains) prev(n Node) (Node, bool) {
	if c.parts.OnlyCommits(n) {
		return n - 1, true
	}
	t := c.parts.Slot(n)
	if c.place[t] == 0 || c.chain[t] == Alone {
		return 0, false
	}
	return c.parts.Commit(c.members[c.chain[t]][c.place[t]-1]), true
}

// next is the node after n in its chain.
func (c *Chains) next(n Node) (Node, bool) {
	if c.parts.OnlyStarts(n) {
		return n + 1, true
	}
	t := c.parts.Slot(n)
	if m := c.members[c.chain[t]]; int(c.place[t])+1 < len(m) {
		return c.parts.Start(m[c.place[t]+1]), true
	}
	return 0, false
}

// Reaches implements Reach in O(1).
func (c *Chains) Reaches(u, v Node) bool {
	own := c.chain[c.parts.Slot(u)]
	if i := c.column[own]; i != none {
		return c.rank(u) < c.at(v)[i]
	}
	return own == c.chain[c.parts.Slot(v)] && c.rank(u) <= c.rank(v)
}

// Insert implements Reach: what reaches u is passed on to v and what v reaches.
// Whatever u reached before has it already, and so has all beyond. Of what reaches u, all
// that is news to anybody is news to v, as what v reaches has what v has: so it is found
// once, and each node whose vector changes costs that and a look along its edges.
func (c *Chains) Insert(u, v Node, w Watcher) {
	if c.Reaches(u, v) {
		return
	}
	if chain := c.chain[c.parts.Slot(u)]; c.column[chain] == none {
		c.addColumn(chain)
	}
	own, rank := c.column[c.chain[c.parts.Slot(u)]], c.rank(u)
	dst := c.at(v)
	c.news = c.news[:0]
	for i, x := range c.at(u) {
		if x > dst[i] {
			c.news = append(c.news, prefix{uint32(i), x})
		}
	}
	c.queue = c.queue[:0]
	c.pass(v, w)
	for len(c.queue) > 0 {
		n := c.queue[len(c.queue)-1]
		c.queue = c.queue[:len(c.queue)-1]
		if s, ok := c.next(n); ok && rank >= c.at(s)[own] {
			c.pass(s, w)
		}
		for e := c.g.FirstOut(n); e != graph.None; e = c.g.NextOut(e) {
			if s := c.g.To(e); rank >= c.at(s)[own] {
				c.pass(s, w)
			}
		}
	}
}

// pass gives the news to s, which lacks some of it.
func (c *Chains) pass(s Node, w Watcher) {
	dst := c.at(s)
	for _, x := range c.news {
		dst[x.column] = max(dst[x.column], x.n)
	}
	w.Reached(s)
	c.queue = append(c.queue, s)
}

// Contract implements Reach: from each chain, the last of the nodes that
// reaches v. Where the nodes are not few, the last one up to each place of each
// chain is looked up in a table instead of searched for. What reaches the node
// before v in its chain as well needs no edge to v.
func (c *Chains) Contract(nodes []Node, edges [][2]uint32) ([][2]uint32, int) {
	byChain := make([][]uint32, len(c.members)) // indexes into nodes, by rank
	for i, n := range nodes {
		ch := c.chain[c.parts.Slot(n)]
		byChain[ch] = append(byChain[ch], uint32(i))
	}
	var table [][]uint32 // by chain and rank: how many of byChain lie before
	if 8*len(nodes) > len(c.chain) {
		table = make([][]uint32, len(c.members))
	}
	for ch, l := range byChain {
		sort.Slice(l, func(i, j int) bool { return c.rank(nodes[l[i]]) < c.rank(nodes[l[j]]) })
		if table == nil || len(l) == 0 {
			continue
		}
		t := make([]uint32, len(c.members[ch])*int(c.parts)+1)
		for _, i := range l {
			t[c.rank(nodes[i])+1]++
		}
		for r := 1; r < len(t); r++ {
			t[r] += t[r-1]
		}
		table[ch] = t
	}
	edges = slices.Grow(edges, 4*len(nodes))
	known := make([]int, len(byChain)) // by chain: how many reach the node before
	for own, vs := range byChain {
		clear(known)
		for n, i := range vs {
			vec := c.at(nodes[i])
			if n > 0 {
				edges = append(edges, [2]uint32{vs[n-1], i})
			}
			for ch, l := range byChain {
				if ch == own || len(l) == 0 || c.column[ch] == none {
					continue
				}
				var q int
				before := vec[c.column[ch]]
				if table != nil {
					q = int(table[ch][before])
				} else {
					q = sort.Search(len(l), func(k int) bool { return c.rank(nodes[l[k]]) >= before })
				}
				if q > known[ch] {
					known[ch] = q
					edges = append(edges, [2]uint32{l[q-1], i})
				}
			}
		}
	}
	return edges, 0
}

// Bytes implements Reach.
func (c *Chains) Bytes() int { return 4*len(c.vec)*vecPage*c.k + 12*len(c.chain) }
