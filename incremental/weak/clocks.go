package weak

import (
	"math/bits"

	"github.com/isowatch/isowatch/incremental/paged"
)

// A clock tells of a transaction how many of each chain precede it in the base
// (a vector clock, AWDIT's Algorithm 3). It holds the counts of other chains than
// the transaction's own, of which that is the place. A word for each chain and
// transaction would be n·k of them for k sessions, and where sessions come and go,
// k grows with n. So a clock is a tree of blocks, the leaves of which hold the
// counts, and blocks are shared: clocks that agree on a stretch of chains, as all
// come to do on sessions that ended, have one block for it.
//
//	height 1:   [ · · · … ]        child i: chains 16·i to 16·i+15
//	              │ │
//	height 0:   [3 0 1 …] [0 0 2 …]
//
// Space is what a clock differs in from those it is made of: the chains that only
// some of the transactions of late have seen the end of, and the way to them.
//
// Invariant: no block is all zeros, or higher than its last chain wants, so that
// equal clocks have the same shape. A block that is shared changes only in that an
// equal child takes the place of another.
type clocks struct {
	blocks paged.Vec[block]
	about  paged.Vec[blockInfo]
	free   []uint32
	uses   []uint32 // by transaction: who still needs its clock; nil if clocks stay
}

const (
	blockBits = 4 // a block is a cache line
	blockSize = 1 << blockBits
)

// block has the counts of so many chains, or so many blocks of the height below,
// where none stands for one of zeros.
type block [blockSize]uint32

type blockInfo struct {
	refs   uint32 // clocks and blocks that it is part of
	height uint32
}

// held is the number of blocks in use.
func (k *clocks) held() int { return k.blocks.Len() - len(k.free) }

// make is a new block of zeros.
func (k *clocks) make(height uint32) uint32 {
	var id uint32
	if f := len(k.free); f > 0 {
		id = k.free[f-1]
		k.free = k.free[:f-1]
		*k.blocks.At(id) = block{}
	} else {
		id = k.blocks.Push(block{})
		k.about.Push(blockInfo{})
	}
	*k.about.At(id) = blockInfo{1, height}
	if height > 0 {
		b := k.blocks.At(id)
		for i := range b {
			b[i] = none
		}
	}
	return id
}

// share is the clock for one more that has it.
func (k *clocks) share(id uint32) uint32 {
	if id != none {
		k.about.At(id).refs++
	}
	return id
}

// release gives a clock up that one less has.
func (k *clocks) release(id uint32) {
	if id == none {
		return
	}
	a := k.about.At(id)
	if a.refs--; a.refs > 0 {
		return
	}
	if a.height > 0 {
		for _, child := range k.blocks.At(id) {
			k.release(child)
		}
	}
	k.free = append(k.free, id)
}

// get is the count of a chain.
func (k *clocks) get(id, chain uint32) uint32 {
	if b := k.leaf(id, chain); b != nil {
		return b[chain%blockSize]
	}
	return 0
}

// leaf is the block with the count of a chain, or nil if that is zero.
func (k *clocks) leaf(id, chain uint32) *block {
	if id == none {
		return nil
	}
	h := k.about.At(id).height
	if chain>>(blockBits*(h+1)) != 0 {
		return nil
	}
	for ; h > 0; h-- {
		if id = k.blocks.At(id)[chain>>(blockBits*h)%blockSize]; id == none {
			return nil
		}
	}
	return k.blocks.At(id)
}

// view looks up many counts of a clock, of chains that often are neighbours, while
// no block is made.
type view struct {
	k    *clocks
	id   uint32
	at   uint32 // chains from at·blockSize on are in leaf
	leaf *block
}

func (k *clocks) view(id uint32) view { return view{k: k, id: id, at: none} }

func (v *view) get(chain uint32) uint32 {
	if at := chain / blockSize; at != v.at {
		v.at, v.leaf = at, v.k.leaf(v.id, chain)
	}
	if v.leaf == nil {
		return 0
	}
	return v.leaf[chain%blockSize]
}

// above is a block of which id is the first, and the only one.
func (k *clocks) above(id uint32) uint32 {
	top := k.make(k.about.At(id).height + 1)
	k.blocks.At(top)[0] = id
	return top
}

// raise is the clock, which is given up, with at least so much of a chain.
func (k *clocks) raise(id, chain, count uint32) uint32 {
	if k.get(id, chain) >= count {
		return id
	}
	if id == none {
		id = k.make(0)
	}
	for chain>>(blockBits*(k.about.At(id).height+1)) != 0 {
		id = k.above(id)
	}
	return k.put(id, k.about.At(id).height, chain, count)
}

func (k *clocks) put(id, height, chain, count uint32) uint32 {
	switch {
	case id == none:
		id = k.make(height)
	case k.about.At(id).refs > 1:
		old := id
		id = k.make(height)
		b := k.blocks.At(id)
		*b = *k.blocks.At(old)
		for i := 0; height > 0 && i < blockSize; i++ {
			k.share(b[i])
		}
		k.release(old)
	}
	if height == 0 {
		k.blocks.At(id)[chain%blockSize] = count
		return id
	}
	i := chain >> (blockBits * height) % blockSize
	child := k.put(k.blocks.At(id)[i], height-1, chain, count)
	k.blocks.At(id)[i] = child
	return id
}

// join is the clock a, which is given up, with the greater counts of b.
func (k *clocks) join(a, b uint32) uint32 {
	switch {
	case b == none || a == b:
		return a
	case a == none:
		return k.share(b)
	}
	high, low := a, b
	if k.about.At(a).height < k.about.At(b).height {
		high, low = b, a
	}
	joined, _ := k.joined(high, low)
	k.release(a)
	return joined
}

// joined has the greater counts of a and of b, which is not higher; it is one of
// them where that has them all, and the lesser if they are equal. What both share
// is not looked at, and what turns out equal is shared from then on: clocks of
// which neither was made from the other have their own blocks of the same counts,
// and would be compared again and again.
func (k *clocks) joined(a, b uint32) (id uint32, equal bool) {
	height, lower := k.about.At(a).height, k.about.At(b).height
	if height == 0 {
		return k.joinedLeaf(a, b)
	}
	y := block{}
	if lower == height {
		y = *k.blocks.At(b)
	} else {
		for i := range y {
			y[i] = none
		}
		y[0] = b
	}
	out, isA, isB := *k.blocks.At(a), true, lower == height
	var made uint32 // bits: children of out that it holds
	for i, x := range out {
		switch {
		case x == y[i]:
			continue
		case y[i] == none:
			isB = false
			continue
		case x == none:
			out[i] = k.lifted(k.share(y[i]), height-1)
		default:
			out[i], equal = k.joined(x, y[i])
			if equal {
				k.agree(a, i, out[i])
				if lower == height {
					k.agree(b, i, out[i])
				}
				k.release(out[i])
				continue
			}
		}
		made |= 1 << i
		isA, isB = isA && out[i] == x, isB && out[i] == y[i]
	}
	if !isA && !isB {
		for i, x := range out {
			if made>>i&1 == 0 {
				k.share(x)
			}
		}
		id = k.make(height)
		*k.blocks.At(id) = out
		return id, false
	}
	for ; made != 0; made &= made - 1 {
		k.release(out[bits.TrailingZeros32(made)])
	}
	if isA && isB {
		return k.share(min(a, b)), true
	}
	if isA {
		return k.share(a), false
	}
	return k.share(b), false
}

// agree makes the i-th child, which has the same counts, of a block.
func (k *clocks) agree(id uint32, i int, child uint32) {
	b := k.blocks.At(id)
	if old := b[i]; old != child {
		b[i] = k.share(child)
		k.release(old)
	}
}

// lifted is the clock, given up, as one of that height.
func (k *clocks) lifted(id, height uint32) uint32 {
	for k.about.At(id).height < height {
		id = k.above(id)
	}
	return id
}

func (k *clocks) joinedLeaf(a, b uint32) (id uint32, equal bool) {
	x, y := k.blocks.At(a), k.blocks.At(b)
	var out block
	var overA, overB uint32
	for i := range out {
		m := max(x[i], y[i])
		out[i] = m
		overA |= m ^ x[i]
		overB |= m ^ y[i]
	}
	switch {
	case overA|overB == 0:
		return k.share(min(a, b)), true
	case overA == 0:
		return k.share(a), false
	case overB == 0:
		return k.share(b), false
	}
	id = k.make(0)
	*k.blocks.At(id) = out
	return id, false
}

// same tells whether two clocks have the same counts.
func (k *clocks) same(a, b uint32) bool {
	switch {
	case a == b:
		return true
	case a == none || b == none || k.about.At(a).height != k.about.At(b).height:
		return false
	case k.about.At(a).height == 0:
		return *k.blocks.At(a) == *k.blocks.At(b)
	}
	for i := range blockSize {
		if !k.same(k.blocks.At(a)[i], k.blocks.At(b)[i]) {
			return false
		}
	}
	return true
}

// clock gives t, whose predecessors have theirs, its vector clock, and if it is
// on no session's chain, its chain. What it had before is the caller's to release.
func (c *Checker) clock(t Txn, scratch []Txn) []Txn {
	n := c.nodes.At(t)
	k, row := &c.clocks, none
	n.chains = 0
	if n.prev != none {
		p := c.nodes.At(n.prev)
		row, n.chains = k.share(p.row), p.chains
		if n.chain != p.chain { // t is open, or p was
			row = c.extend(n, row, n.prev)
		}
	}
	scratch = c.sources(n, scratch[:0])
	for _, w := range scratch {
		x := c.nodes.At(w)
		if x.chain == n.chain && !c.chains[x.chain].loose || k.get(row, x.chain) > x.pos {
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
func (c *Checker) extend(n *node, row uint32, w Txn) uint32 {
	n.chains = uint32(len(c.chains))
	x := c.nodes.At(w)
	return c.clocks.raise(c.clocks.join(row, x.row), x.chain, x.pos+1)
}

// known is what is known to commit before t: its clock, or more.
func (c *Checker) known(t Txn) uint32 {
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
