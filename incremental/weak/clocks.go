package weak

// clocks are vector clocks: for a transaction, how many of each chain precede it
// in the base. A row holds the counts of other chains than the transaction's own,
// of which it is the place; a row shorter than the number of chains has zeros
// there. Transactions that learn nothing new share their predecessor's.
//
// Space O(n·k) for k chains; where no more transactions will come, a row goes
// when the last transaction that needs it has been worked off.
type clocks struct {
	rows [][]uint32
	refs []uint32 // transactions that share the row
	free []uint32
	slab []uint32
	uses []uint32 // by transaction: who still needs its row; nil if rows stay
}

// recycled is the number of chains from which on rows are used again.
const recycled = 96

func (k *clocks) get(row, chain uint32) uint32 {
	if row == none {
		return 0
	}
	if r := k.rows[row]; int(chain) < len(r) {
		return r[chain]
	}
	return 0
}

// row is the row of that number, which may be none.
func (k *clocks) row(id uint32) []uint32 {
	if id == none {
		return nil
	}
	return k.rows[id]
}

// fresh is a row of n zeros, with what another one has.
func (k *clocks) fresh(n int, like uint32) uint32 {
	var r []uint32
	id := uint32(len(k.rows))
	if f := len(k.free); f > 0 && cap(k.rows[k.free[f-1]]) >= n {
		id = k.free[f-1]
		k.free = k.free[:f-1]
		r = k.rows[id][:n]
		clear(r)
		k.rows[id] = r
	} else {
		if len(k.slab) < n {
			k.slab = make([]uint32, max(n, min(1<<15, 64*n)))
		}
		r = k.slab[:n:n]
		k.slab = k.slab[n:]
		k.rows = append(k.rows, r)
		k.refs = append(k.refs, 0)
	}
	if like != none {
		copy(r, k.rows[like])
	}
	k.refs[id] = 1
	return id
}

// join takes the greater counts of another row.
func (k *clocks) join(row, other uint32) {
	if other == none {
		return
	}
	r := k.rows[row]
	for i, x := range k.rows[other] {
		if x > r[i] {
			r[i] = x
		}
	}
}

// release gives a row back that one transaction less needs.
func (k *clocks) release(row uint32) {
	if row == none {
		return
	}
	if k.refs[row]--; k.refs[row] == 0 {
		k.free = append(k.free, row)
	}
}

// clock gives t, whose predecessors have theirs, its vector clock, and if it is
// on no session's chain, its chain.
func (c *Checker) clock(t Txn, scratch []Txn) []Txn {
	n := c.nodes.At(t)
	k := &c.clocks
	row, own := none, false // own: the row is not shared
	if n.prev != none {
		p := c.nodes.At(n.prev)
		row = p.row
		if n.chain != p.chain { // t is open, or p was
			row, own = c.extend(row, own, n.prev), true
		}
	}
	scratch = c.sources(n, scratch[:0])
	for _, w := range scratch {
		x := c.nodes.At(w)
		if x.chain == n.chain && !c.chains[x.chain].loose || k.get(row, x.chain) > x.pos {
			continue // it came with the predecessor in the session
		}
		row, own = c.extend(row, own, w), true
	}
	if row != none && !own {
		k.refs[row]++
	}
	n.row = row
	if n.chain == none {
		c.findChain(n, t, scratch)
	}
	return scratch
}

// extend makes the row, unless it is own already, one that has all that precedes
// w, and w.
func (c *Checker) extend(row uint32, own bool, w Txn) uint32 {
	k := &c.clocks
	if !own || len(k.rows[row]) < len(c.chains) {
		old := row
		row = k.fresh(len(c.chains), old)
		if own {
			k.release(old)
		}
	}
	x := c.nodes.At(w)
	k.join(row, x.row)
	r := k.rows[row]
	r[x.chain] = max(r[x.chain], x.pos+1)
	return row
}

// looseTried is how many chains are tried for a transaction that is on no
// session's; a new chain makes every row longer.
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
		if c.clocks.get(n.row, ch) == c.chains[ch].length {
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
