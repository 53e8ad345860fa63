package weak

import "github.com/isowatch/isowatch/incremental/clock"

// clock gives t, whose predecessors have theirs, its vector clock, and if it is
// on no session's chain, its chain. What it had before is the caller's to release.
func (c *Checker) clock(t Txn, scratch []Txn) []Txn {
	n := c.nodes.At(t)
	k, row := &c.clocks, clock.ID(none)
	n.chains = 0
	if n.prev != none {
		p := c.nodes.At(n.prev)
		row, n.chains = k.Share(p.row), p.chains
		if n.chain != p.chain { // t is open, or p was
			row = c.extend(n, row, n.prev)
		}
	}
	scratch = c.sources(n, scratch[:0])
	for _, w := range scratch {
		x := c.nodes.At(w)
		if x.chain == n.chain && !c.chains[x.chain].loose || k.Get(row, x.chain) > x.pos {
			continue // it came with the predecessor in the session
		}
		row = c.extend(n, row, w)
	}
	n.row = row
	if n.chain == none {
		c.findChain(n, t, scratch)
	}
	return scratch
}

// extend makes n's clock, which is given up, one that has all that precedes w, and
// w.
func (c *Checker) extend(n *node, row clock.ID, w Txn) clock.ID {
	n.chains = uint32(len(c.chains))
	x := c.nodes.At(w)
	return c.clocks.Raise(c.clocks.Join(row, x.row), x.chain, x.pos+1)
}

// known is what is known to commit before t: its clock, or more.
func (c *Checker) known(t Txn) clock.ID {
	n := c.nodes.At(t)
	if n.cov != none {
		return n.cov
	}
	return n.row
}

// looseTried is how many chains are tried for a transaction that is on no
// session's; a new chain makes clocks larger.
const looseTried = 64

// findChain puts t, which has its row, at the end of a chain all of which
// precedes it, or on one of its own.
func (c *Checker) findChain(n *node, t Txn, sources []Txn) {
	for _, w := range sources {
		if ch := c.nodes.At(w).chain; c.chains[ch].loose && c.chains[ch].tail == w {
			n.chain = ch
			c.join(n, t)
			return
		}
	}
	for i := range min(looseTried, len(c.loose)) {
		ch := c.loose[len(c.loose)-1-i]
		if c.clocks.Get(n.row, ch) == c.chains[ch].length {
			n.chain = ch
			c.join(n, t)
			return
		}
	}
	n.chain = uint32(len(c.chains))
	c.loose = append(c.loose, n.chain)
	c.chains = append(c.chains, chain{tail: none, loose: true})
	c.join(n, t)
}
