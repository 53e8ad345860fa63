package weak

import (
	"cmp"
	"slices"

	"github.com/isowatch/isowatch/incremental/paged"
	"github.com/isowatch/isowatch/incremental/sets"
	"github.com/isowatch/isowatch/incremental/version"
)

// heads are who wrote each key, by chain.
type heads struct {
	*records
	wanted  bool
	byKey   paged.Vec[version.Key, []head]
	headAt  map[version.Key]map[uint32]uint32 // place in byKey by chain, of keys with many
	entries paged.Vec[uint32, entry]
}

// advance works off, in the order of the base, what lies at place from or later
// and is new, or of which what it reads, or what precedes it, has changed.
func (c *Checker) advance(from uint32) {
	changed := map[Txn]bool{}
	for _, w := range c.late {
		changed[w.to] = true
	}
	for _, t := range c.cuts {
		changed[t] = true
	}
	c.late, c.cuts = c.late[:0], c.cuts[:0]
	if from == none {
		return
	}
	if c.last && c.rows.wanted && c.placed == 0 {
		c.rows.countUses()
	}
	moved := map[Txn]bool{} // their rows have changed
	for i, t := range c.base.at[from:] {
		if i&127 == 0 && c.halted() {
			break
		}
		n := c.nodes.At(t)
		fresh := t >= c.placed
		if !fresh && len(changed) == 0 {
			continue
		}
		again := !fresh && (changed[t] || c.rows.wanted && len(moved) > 0 && c.follows(t, moved))
		if !fresh && !again {
			continue
		}
		c.made += inferSteps
		if c.rows.wanted {
			c.setRow(t, n, again, moved)
		}
		for _, g := range c.graphs[1:] {
			c.infer(g, t, n)
		}
		if fresh && c.rows.wanted {
			c.rows.noteWriter(n)
		}
		if fresh && c.heads.wanted {
			c.heads.index(t, n)
		}
		c.rows.releaseRows(t)
	}
	c.rows.uses = nil
	for _, o := range c.orders {
		for _, g := range c.graphs[1:] {
			c.add(g, o.prev, o.next, none, o.key)
		}
	}
	c.orders = c.orders[:0]
}

// follows tells whether one of t's direct predecessors is in m.
func (c *Checker) follows(t Txn, m map[Txn]bool) bool {
	c.scratch = c.preds(t, c.scratch[:0])
	for _, p := range c.scratch {
		if m[p] {
			return true
		}
	}
	return false
}

// setRow gives t its row, and notes in moved if it had another one.
func (c *Checker) setRow(t Txn, n *node, again bool, moved map[Txn]bool) {
	old := n.row
	c.rows.makeRow(t, n)
	if again && !c.rows.sets.Same(old, n.row) {
		moved[t] = true
	}
	c.rows.sets.Release(old)
}

// index notes what t wrote, for later readers' inferences.
func (c *heads) index(t Txn, n *node) {
	if n.chain == none {
		return
	}
	for _, k := range c.writes.at(n.writes) {
		for version.Key(c.byKey.Len()) <= k {
			c.byKey.Push(nil)
		}
		hs := c.byKey.At(k)
		if h := c.headOf(k, n.chain); h != nil {
			h.entry = c.after(h.entry, t, n.pos)
			continue
		}
		*hs = append(*hs, head{n.chain, entry{t, n.pos, none, none, 0}})
		if len(*hs) > someHeads {
			c.noteHead(k, *hs)
		}
	}
}

// someHeads is how many chains that wrote a key are looked through one by one.
const someHeads = 48

// noteHead notes where the last of a key's heads is, or, when they become too
// many to look through, where all are.
func (c *heads) noteHead(k version.Key, hs []head) {
	at := c.headAt[k]
	if at == nil {
		at = make(map[uint32]uint32, 2*someHeads)
		if c.headAt == nil {
			c.headAt = map[version.Key]map[uint32]uint32{}
		}
		c.headAt[k] = at
		for i := range hs {
			at[hs[i].chain] = uint32(i)
		}
		return
	}
	at[hs[len(hs)-1].chain] = uint32(len(hs) - 1)
}

// after puts the latest write away behind a new one.
func (c *heads) after(old entry, t Txn, pos uint32) entry {
	at := c.entries.Push(old)
	e := entry{txn: t, pos: pos, prev: at, jump: at, depth: old.depth + 1}
	if old.jump != none {
		if j := c.entries.At(old.jump); j.jump != none && old.depth-j.depth == j.depth-c.entries.At(j.jump).depth {
			e.jump = j.jump
		}
	}
	return e
}

// latest is the last write in h's chain before pos; its txn is none if there is
// none. O(log) of the writes passed over.
func (c *heads) latest(h *head, pos uint32) entry {
	e := h.entry
	for e.pos >= pos {
		if e.prev == none {
			return entry{txn: none}
		}
		if j := c.entries.At(e.jump); j.pos >= pos {
			e = *j
		} else {
			e = *c.entries.At(e.prev)
		}
	}
	return e
}

// headOf is a chain's writes to k.
func (c *heads) headOf(k version.Key, chain uint32) *head {
	if k >= version.Key(c.byKey.Len()) {
		return nil
	}
	hs := *c.byKey.At(k)
	if len(hs) > someHeads {
		if i, ok := c.headAt[k][chain]; ok {
			return &hs[i]
		}
		return nil
	}
	for i := range hs {
		if hs[i].chain == chain {
			return &hs[i]
		}
	}
	return nil
}

// infer adds the edges that the axiom asks for on account of what t read.
func (c *Checker) infer(g *graph, t Txn, n *node) {
	switch g.level {
	case RC:
		if n.reads.n > 1 || n.extra != none {
			c.inferCommitted(g, t, n)
		}
	case RA:
		c.inferAtomic(g, t, n)
	case CC:
		c.inferCausal(g, t, n)
	}
}

func readBefore(reads []read, from Txn) bool {
	for _, r := range reads {
		if r.from == from {
			return true
		}
	}
	return false
}

// stamps maps keys to what the transaction at hand did with them.
type stamps struct {
	by   []uint32 // by key: the use it is of
	now  uint32
	a, b []Txn // by key
}

// begin forgets all.
func (s *stamps) begin(keys int) {
	if len(s.by) < keys {
		n := keys + keys/4
		s.by, s.a, s.b, s.now = make([]uint32, n), make([]Txn, n), make([]Txn, n), 0
	}
	s.now++
	if s.now == 0 {
		clear(s.by)
		s.now = 1
	}
}

func (s *stamps) has(k version.Key) bool { return int(k) < len(s.by) && s.by[k] == s.now }

func (s *stamps) set(k version.Key, a, b Txn) { s.by[k], s.a[k], s.b[k] = s.now, a, b }

// inferCommitted is AWDIT's Algorithm 1 for one transaction: who was read from comes, of the writers of a key that is
// read later, before the one whose write that read found. It goes backwards over the reads, with the two earliest
// different writers of each key read below, and over the smaller of what the writer wrote and what is read below.
func (c *Checker) inferCommitted(g *graph, t Txn, n *node) {
	reads := c.reads.at(n.reads)
	order := c.firstReads(n, reads)
	c.begin(reads)
	below := c.below[:0]
	for i := len(reads) - 1; i >= 0; i-- {
		for ; len(order) > 0 && int(order[len(order)-1].at) == i; order = order[:len(order)-1] {
			c.inferBelow(g, order[len(order)-1].from, t, below)
		}
		k, from := reads[i].key, reads[i].from
		s := &c.stamp
		switch {
		case from == Unseen:
		case !s.has(k):
			s.set(k, from, none)
			below = append(below, k)
		case s.a[k] != from:
			s.set(k, from, s.a[k])
		}
	}
	c.below = below
}

// fewKeys is how many keys are looked through one by one.
const fewKeys = 12

// someReads is how many reads are compared with each other.
const someReads = 64

// firstReads are whom n reads from, each with the first read that shows so, in
// the order of reads.
func (c *Checker) firstReads(n *node, reads []read) []source {
	out := c.firsts[:0]
	if n.extra == none && len(reads) <= someReads {
		for i, r := range reads {
			if r.from < Initial && !readBefore(reads[:i], r.from) {
				out = append(out, source{from: r.from, at: uint32(i)})
			}
		}
		c.firsts = out
		return out
	}
	for i, r := range reads {
		if r.from < Initial {
			out = append(out, source{from: r.from, at: uint32(i)})
		}
	}
	out = append(out, c.showsOf(n)...)
	slices.SortFunc(out, func(a, b source) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.at, b.at)) })
	out = slices.CompactFunc(out, func(a, b source) bool { return a.from == b.from })
	slices.SortFunc(out, func(a, b source) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.from, b.from)) })
	c.firsts = out
	return out
}

// showsOf are the further writers that n's reads of lists show.
func (c *records) showsOf(n *node) []source {
	var out []source
	for at := n.extra; at != none; at = c.extra[at].next {
		if c.extra[at].from < Initial {
			out = append(out, c.extra[at])
		}
	}
	return out
}

// begin prepares the stamps for the keys of reads.
func (c *Checker) begin(reads []read) {
	top := version.Key(0)
	for _, r := range reads {
		top = max(top, r.key)
	}
	c.stamp.begin(int(top) + 1)
}

// inferBelow infers for the keys that f wrote and t reads below.
func (c *Checker) inferBelow(g *graph, f, t Txn, below []version.Key) {
	s := &c.stamp
	one := func(k version.Key) {
		to := s.a[k]
		if to == f {
			to = s.b[k]
		}
		if to != none {
			c.must(g, f, to, t, k)
		}
	}
	ws := c.writes.at(c.nodes.At(f).writes)
	if len(ws) <= len(below) || len(ws) <= fewKeys {
		for _, k := range ws {
			if s.has(k) {
				one(k)
			}
		}
		return
	}
	wrote := c.writeSet(f)
	for _, k := range below {
		if _, ok := slices.BinarySearch(wrote, k); ok {
			one(k)
		}
	}
}

// writeSet are the keys that f, which wrote many, wrote, sorted.
func (c *records) writeSet(f Txn) []version.Key {
	if ks, ok := c.large[f]; ok {
		return ks
	}
	ks := slices.Clone(c.writes.at(c.nodes.At(f).writes))
	slices.Sort(ks)
	if c.large == nil {
		c.large = map[Txn][]version.Key{}
	}
	c.large[f] = ks
	return ks
}

// inferAtomic is AWDIT's Algorithm 2 for one transaction: the last writer of a
// key before it in its session, and whom it reads from, come before the one
// whose write of that key it read.
func (c *Checker) inferAtomic(g *graph, t Txn, n *node) {
	reads := c.reads.at(n.reads)
	if n.prev != none {
		p := c.nodes.At(n.prev)
		for i, r := range reads {
			if r.from == Unseen || repeated(reads, i) {
				continue
			}
			if h := c.heads.headOf(r.key, p.chain); h != nil {
				if e := c.heads.latest(h, p.pos+1); e.txn != none && e.txn != r.from {
					c.must(g, e.txn, r.from, t, r.key)
				}
			}
		}
	}
	c.begin(reads)
	s, keys := &c.stamp, c.below[:0]
	for _, r := range reads {
		if !s.has(r.key) {
			s.set(r.key, r.from, none)
			if r.from != Unseen {
				keys = append(keys, r.key)
			}
		}
	}
	c.below = keys
	for _, x := range c.firstReads(n, reads) {
		c.inferBelow(g, x.from, t, keys)
	}
}

// repeated: the i-th read is not the first of its key; ra wants both to find
// the same, which is judged elsewhere.
func repeated(reads []read, i int) bool {
	for _, r := range reads[:min(i, fewKeys)] {
		if r.key == reads[i].key {
			return true
		}
	}
	return false
}

// inferCausal is AWDIT's Algorithm 3 for one transaction: of each session, the last
// writer of a key that precedes it comes before the one whose write it read.
// What precedes that one already needs no edge.
func (c *Checker) inferCausal(g *graph, t Txn, n *node) {
	reads := c.reads.at(n.reads)
	for i, r := range reads {
		if r.from == Unseen || r.key >= version.Key(c.rows.writers.Len()) || repeated(reads, i) {
			continue
		}
		var w *node
		if r.from != Initial {
			w = c.nodes.At(r.from)
		}
		c.askings++
		writers, below := *c.rows.writers.At(r.key), uint32(none)
		for { // the latest first: what precedes it need not be said
			known := sets.None
			if w != nil {
				known = w.before()
			}
			var bit uint32
			var ok bool
			if bit, writers, ok = c.rows.lastWriter(writers, n.row, known, below); !ok {
				break
			}
			below = bit
			if bit == n.bit {
				continue
			}
			seen := *c.rows.byBit.At(bit)
			if w == nil {
				c.must(g, seen, Initial, t, r.key)
				break
			}
			x := c.nodes.At(seen)
			if c.firstOf(x.chain) {
				c.must(g, seen, r.from, t, r.key)
			}
			c.rows.commitsBefore(x, w)
		}
	}
}

// firstOf tells whether a transaction of the chain comes first in what is asked now. The row of who has served is
// gone, and does not say any more that those before it in its session commit before it.
func (c *Checker) firstOf(chain uint32) bool {
	if chain == none {
		return true
	}
	for int(chain) >= len(c.asked) {
		c.asked = append(c.asked, 0)
	}
	first := c.asked[chain] != c.askings
	c.asked[chain] = c.askings
	return first
}

// must: t2 commits before t1, as t3 reads k from t1 and t2's is visible to it.
func (c *Checker) must(g *graph, t2, t1, t3 Txn, k version.Key) {
	switch {
	case t1 == Unseen || t2 == t3:
		return
	case t1 == Initial:
		c.witnesses.stale(g, t2, t3, k)
		return
	}
	c.add(g, t2, t1, t3, k)
	c.contradicts(g, t2, t1, k)
}

// contradicts adds the order that a list shows, where t1 is the last that the
// reader saw of it: of a t2 that it does not show, or later, after t1.
func (c *Checker) contradicts(g *graph, t2, t1 Txn, k version.Key) {
	if l := c.lists[k]; l != nil {
		a, read := l.rank[t1]
		if b, shown := l.rank[t2]; read && (!shown && l.anchored || shown && b > a) {
			c.add(g, t1, t2, none, k)
		}
	}
}

// add puts in an edge.
func (c *Checker) add(g *graph, from, to, by Txn, k version.Key) {
	x, y := c.nodes.At(from), c.nodes.At(to)
	if x.chain == y.chain && x.chain != none && x.pos < y.pos {
		return
	}
	if h := g.head[to]; h != none && g.edges[h].from == from {
		return
	}
	g.edges = append(g.edges, edge{from, by, k, g.head[to]})
	g.head[to] = uint32(len(g.edges) - 1)
	c.Inferred++
	if g.pos[from] > g.pos[to] {
		g.back = append(g.back, wrEdge{from, to})
	}
}
