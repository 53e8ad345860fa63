package weak

import (
	"cmp"
	"slices"

	"github.com/isowatch/isowatch/incremental/paged"
	"github.com/isowatch/isowatch/incremental/sets"
	"github.com/isowatch/isowatch/incremental/version"
)

// Who precedes a transaction in the base is a set of bits, its row. Bits are numbered in the order in which rows were
// made, which is one of the base as it was then: what was long ago precedes all that is later, so that rows agree but
// for what is recent, and share all blocks but these (package sets).

// rows are who precedes each transaction.
type rows struct {
	*records
	wanted  bool // and so is who wrote what
	sets    sets.Sets
	byBit   paged.Vec[uint32, Txn]           // who a bit of the sets stands for
	uses    []uint32                         // by transaction: who still needs its row; nil if rows stay
	writers paged.Vec[version.Key, []uint32] // by key: the bits of who wrote it; they ascend
}

// makeRow gives t, whose predecessors have theirs, its row. What it had before is the caller's to release.
func (c *rows) makeRow(t Txn, n *node) {
	if n.bit == none {
		n.bit = c.byBit.Push(t)
	}
	preds := c.preds(t, c.scratch[:0])
	slices.SortFunc(preds, func(a, b Txn) int { return cmp.Compare(c.nodes.At(b).bit, c.nodes.At(a).bit) })
	row := sets.None
	for _, p := range preds { // the latest first, which as a rule has the others
		if x := c.nodes.At(p); x.row != sets.None && !c.sets.Has(row, x.bit) {
			row = c.sets.Join(row, x.row)
		}
	}
	n.row = c.sets.Put(row, n.bit)
	c.scratch = preds
}

// before is who is known to commit before t, and t itself: its row, or more.
func (n *node) before() sets.ID {
	if n.known != sets.None {
		return n.known
	}
	return n.row
}

// commitsBefore notes that a, and who is known to commit before it, commits before the transaction.
func (c *rows) commitsBefore(a, n *node) {
	known := n.known
	if known == sets.None {
		known = c.sets.Share(n.row)
	}
	n.known = c.sets.Put(c.sets.Join(known, a.before()), a.bit)
}

// countUses counts who needs each transaction's row: its successor in the
// session, its readers, and itself.
func (c *rows) countUses() {
	c.uses = make([]uint32, c.nodes.Len())
	for t := range Txn(c.nodes.Len()) {
		c.uses[t]++
		c.scratch = c.preds(t, c.scratch[:0])
		for _, p := range c.scratch {
			c.uses[p]++
		}
	}
}

// releaseRows drops the rows of those that nobody will need any more.
func (c *rows) releaseRows(t Txn) {
	uses := c.uses
	if uses == nil {
		return
	}
	c.scratch = append(c.preds(t, c.scratch[:0]), t)
	for _, p := range c.scratch {
		if uses[p]--; uses[p] == 0 {
			x := c.nodes.At(p)
			c.sets.Release(x.row)
			c.sets.Release(x.known)
			x.row, x.known = sets.None, sets.None
		}
	}
}

// noteWriter notes what t, which has its row, wrote.
func (c *rows) noteWriter(n *node) {
	for _, k := range c.writes.at(n.writes) {
		for version.Key(c.writers.Len()) <= k {
			c.writers.Push(nil)
		}
		at := c.writers.At(k)
		if i := len(*at); i == 0 || (*at)[i-1] != n.bit {
			*at = append(*at, n.bit)
		}
	}
}

// lastWriter is the last writer of a key, of those below a bit, that is in the set a and not in but. What both sets
// agree on is passed over, however many writers it has.
func (c *rows) lastWriter(writers []uint32, a, but sets.ID, below uint32) (bit uint32, left []uint32, ok bool) {
	for {
		writers = writers[:firstNotBelow(writers, below)]
		if len(writers) == 0 {
			return 0, nil, false
		}
		w := writers[len(writers)-1]
		if c.sets.Has(a, w) && !c.sets.Has(but, w) {
			return w, writers, true
		}
		next, ok := c.sets.Last(a, a, but, w)
		if !ok {
			return 0, nil, false
		}
		below = next + 1
	}
}

// firstNotBelow is the place of the first bit that is not below another, looked for from the end.
func firstNotBelow(ascending []uint32, bit uint32) int {
	n := len(ascending)
	step := 1
	for n-step >= 0 && ascending[n-step] >= bit {
		n -= step
		step *= 2
	}
	i, _ := slices.BinarySearch(ascending[max(n-step, 0):n], bit)
	return max(n-step, 0) + i
}
