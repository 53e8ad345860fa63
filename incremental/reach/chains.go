package reach

import (
	"slices"
	"sort"

	"github.com/isowatch/isowatch/incremental/graph"
)

// Chains is the closure for histories without trusted clocks. Sessions are
// total orders, so all of a session that reaches v is a prefix of it, and one
// number per session says which:
//
//	u reaches v  iff  place(u) < vec(v)[chain(u)]
//
// Space is 4·k bytes per node for k chains. Insert costs k per node whose
// vector changes.
//
// Invariant: vec(v)[c] is the number of nodes of chain c that reach v, v itself
// included.
type Chains struct {
	g       *graph.Graph
	parts   uint32
	k       int      // chains there is room for in each vector
	chain   []uint32 // by transaction
	place   []uint32 // by transaction: place in its chain, in transactions
	members [][]uint32
	vec     []uint32 // by node, k each
	queue   []Node
	news    []prefix // scratch
}

// prefix is the first n nodes of a chain.
type prefix struct{ chain, n uint32 }

// NewChains makes an empty closure over g. Chains are made room for as they come, at the
// cost of a copy, and not as sessions are heard of: many of these never have a transaction here.
func NewChains(g *graph.Graph, parts int) *Chains {
	return &Chains{g: g, parts: uint32(parts), k: 1}
}

// Add appends the next transaction, which follows all others of its chain by an
// edge that the caller adds to the graph but does not Insert. With bulk set,
// vectors are left to Build.
func (c *Chains) Add(chain uint32, bulk bool) {
	for int(chain) >= len(c.members) {
		c.members = append(c.members, nil)
	}
	t := uint32(len(c.chain))
	c.chain = append(c.chain, chain)
	c.place = append(c.place, uint32(len(c.members[chain])))
	c.members[chain] = append(c.members[chain], t)
	if bulk {
		return
	}
	if len(c.members) > c.k {
		c.widen(max(len(c.members), c.k+c.k/2))
	}
	first := t * c.parts
	for k := range c.parts {
		n := first + k
		c.vec = append(c.vec, make([]uint32, c.k)...)
		if k > 0 {
			copy(c.at(n), c.at(n-1))
		} else if p := c.place[t]; p > 0 {
			copy(c.at(n), c.at(c.members[chain][p-1]*c.parts+c.parts-1))
		}
		c.at(n)[chain] = c.rank(n) + 1
	}
}

// Len is the number of chains.
func (c *Chains) Len() int { return len(c.members) }

func (c *Chains) widen(k int) {
	vec := make([]uint32, len(c.chain[:len(c.chain)-1])*int(c.parts)*k)
	for n := 0; n < len(vec)/k; n++ {
		copy(vec[n*k:], c.vec[n*c.k:(n+1)*c.k])
	}
	c.vec, c.k = vec, k
}

func (c *Chains) at(n Node) []uint32 { return c.vec[int(n)*c.k : (int(n)+1)*c.k] }

// rank is the node's place in its chain.
func (c *Chains) rank(n Node) uint32 { return c.place[n/c.parts]*c.parts + n%c.parts }

// Build implements Builder.
func (c *Chains) Build(topo []Node) {
	c.k = max(len(c.members), 1)
	if n := len(c.chain) * int(c.parts) * c.k; n <= cap(c.vec) {
		c.vec = c.vec[:n]
		clear(c.vec)
	} else {
		c.vec = make([]uint32, n)
	}
	for _, n := range topo {
		v := c.at(n)
		if p, ok := c.prev(n); ok {
			copy(v, c.at(p))
		}
		for e := c.g.FirstIn(n); e != graph.None; e = c.g.NextIn(e) {
			u := c.g.Edge(e).From
			if c.rank(u) >= v[c.chain[u/c.parts]] {
				for i, x := range c.at(u) {
					v[i] = max(v[i], x)
				}
			}
		}
		ch := c.chain[n/c.parts]
		v[ch] = max(v[ch], c.rank(n)+1)
	}
}

// prev is the node before n in its chain.
func (c *Chains) prev(n Node) (Node, bool) {
	if c.parts == 2 && n%2 == 1 {
		return n - 1, true
	}
	t := n / c.parts
	if c.place[t] == 0 {
		return 0, false
	}
	return c.members[c.chain[t]][c.place[t]-1]*c.parts + c.parts - 1, true
}

// next is the node after n in its chain.
func (c *Chains) next(n Node) (Node, bool) {
	if c.parts == 2 && n%2 == 0 {
		return n + 1, true
	}
	t := n / c.parts
	if m := c.members[c.chain[t]]; int(c.place[t])+1 < len(m) {
		return m[c.place[t]+1] * c.parts, true
	}
	return 0, false
}

// Reaches implements Reach in O(1).
func (c *Chains) Reaches(u, v Node) bool {
	return c.rank(u) < c.at(v)[c.chain[u/c.parts]]
}

// Insert implements Reach: what reaches u is passed on to v and what v reaches.
// Whatever u reached before has it already, and so has all beyond. Of what reaches u, all
// that is news to anybody is news to v, as what v reaches has what v has: so it is found
// once, and each node whose vector changes costs that and a look along its edges.
func (c *Chains) Insert(u, v Node, changed func(Node)) {
	own, rank := c.chain[u/c.parts], c.rank(u)
	dst := c.at(v)
	if rank < dst[own] {
		return
	}
	c.news = c.news[:0]
	for i, x := range c.at(u) {
		if x > dst[i] {
			c.news = append(c.news, prefix{uint32(i), x})
		}
	}
	c.queue = c.queue[:0]
	c.pass(v, changed)
	for len(c.queue) > 0 {
		n := c.queue[len(c.queue)-1]
		c.queue = c.queue[:len(c.queue)-1]
		if s, ok := c.next(n); ok && rank >= c.vec[int(s)*c.k+int(own)] {
			c.pass(s, changed)
		}
		for e := c.g.FirstOut(n); e != graph.None; e = c.g.NextOut(e) {
			if s := c.g.To(e); rank >= c.vec[int(s)*c.k+int(own)] {
				c.pass(s, changed)
			}
		}
	}
}

// pass gives the news to s, which lacks some of it.
func (c *Chains) pass(s Node, changed func(Node)) {
	dst := c.at(s)
	for _, x := range c.news {
		dst[x.chain] = max(dst[x.chain], x.n)
	}
	changed(s)
	c.queue = append(c.queue, s)
}

// Contract implements Reach: from each chain, the last of the nodes that
// reaches v. Where the nodes are not few, the last one up to each place of each
// chain is looked up in a table instead of searched for. What reaches the node
// before v in its chain as well needs no edge to v.
func (c *Chains) Contract(nodes []Node, edges [][2]uint32) ([][2]uint32, int) {
	byChain := make([][]uint32, len(c.members)) // indexes into nodes, by rank
	for i, n := range nodes {
		ch := c.chain[n/c.parts]
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
				if ch == own || len(l) == 0 {
					continue
				}
				var q int
				if table != nil {
					q = int(table[ch][vec[ch]])
				} else {
					q = sort.Search(len(l), func(k int) bool { return c.rank(nodes[l[k]]) >= vec[ch] })
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
func (c *Chains) Bytes() int { return 4*cap(c.vec) + 12*cap(c.chain) }
