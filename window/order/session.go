package order

import (
	"github.com/isowatch/isowatch/ingest/record"
)

// item is a waiting record. Items live in one slab and are linked by index:
// many short queues cost no memory of their own, and what a burst took is used
// again.
type item struct {
	key   int64 // its own time in the order: end, or what stands for it
	start int64 // as in txn, which has long left the caches when it is compared
	// seq and nth are its place in the session: records without seq follow
	// the greatest seq that came before them.
	seq       int64
	nth       int64 // counts all Adds
	next      int32 // in the session's queue or the free list; -1 ends
	partition int32
	timeless  bool
	late      bool
	ahead     bool
	place     int64
	txn       *record.Transaction
	arrival   int64
}

const nil32 = int32(-1)

// session is what is known of one session: what waits, and how far it is out.
type session struct {
	name string
	// Items in session order. Nearly all arrive so and are put at the tail.
	head, tail       int32
	tailSeq, tailNth int64
	// strays is a binary heap of those that arrived before a predecessor's
	// place was filled: O(log n) however they come.
	strays []int32
	// maxSeq is the greatest seq that arrived.
	maxSeq int64
	// What was handed out last: its key; the greatest trusted end; its seq.
	released bool
	// partition is where it came from.
	partition int32
	hasSeq    bool
	lastKey   int64
	lastEnd   int64
	lastSeq   int64
}

// before tells whether item a precedes item b of the same session.
func (o *Order) before(a, b int32) bool {
	x, y := &o.items[a], &o.items[b]
	if x.seq != y.seq {
		return x.seq < y.seq
	}
	return x.nth < y.nth
}

// push puts item i into its session's queue. O(1) in session order, otherwise
// O(log n).
func (o *Order) push(s *session, i int32) {
	it := &o.items[i]
	if s.tail == nil32 || it.seq > s.tailSeq || (it.seq == s.tailSeq && it.nth > s.tailNth) {
		if s.tail == nil32 {
			s.head = i
		} else {
			o.items[s.tail].next = i
		}
		s.tail, s.tailSeq, s.tailNth = i, it.seq, it.nth
		return
	}
	s.strays = append(s.strays, i)
	c := len(s.strays) - 1
	for c > 0 {
		up := (c - 1) / 2
		if !o.before(s.strays[c], s.strays[up]) {
			break
		}
		s.strays[c], s.strays[up] = s.strays[up], s.strays[c]
		c = up
	}
}

// first is the item of s that is next in session order, nil32 for none.
func (o *Order) first(s *session) int32 {
	if len(s.strays) > 0 && (s.head == nil32 || o.before(s.strays[0], s.head)) {
		return s.strays[0]
	}
	return s.head
}

// shift takes the first item out of s's queue.
func (o *Order) shift(s *session) {
	if i := o.first(s); i == s.head {
		if s.head = o.items[i].next; s.head == nil32 {
			s.tail = nil32
		}
		return
	}
	last := len(s.strays) - 1
	s.strays[0] = s.strays[last]
	if s.strays = s.strays[:last]; last == 0 {
		s.strays = nil
		return
	}
	for c := 0; ; {
		down := 2*c + 1
		if down >= last {
			return
		}
		if down+1 < last && o.before(s.strays[down+1], s.strays[down]) {
			down++
		}
		if !o.before(s.strays[down], s.strays[c]) {
			return
		}
		s.strays[c], s.strays[down] = s.strays[down], s.strays[c]
		c = down
	}
}

// head stands for the first item of a session among those of all sessions.
//
// Invariant: each session with items has a head for its first item, whose key is
// the greater of the item's key and what the session has released: keys never
// fall in a session. Heads whose item is not its session's first, because a stray
// went before it or because it has left by an equal head, are stale and skipped:
// that is cheaper than to know where in the heap each session stands.
type head struct {
	key int64
	// tie orders heads of one key: by start, then session. Those without times come
	// after them and are ordered by where they were: it is partition and place.
	tie int64
	// tag is the item's nth, which no other has, doubled, plus 1 for one without
	// times. Four words: a heap of many sessions is mostly moved about.
	tag int64
	s   *session
}

// placeBits of a tie are the place, those above the partition.
const placeBits = 44

// put enters a head for the first item of s. O(log sessions).
func (o *Order) put(s *session) {
	o.heads = append(o.heads, o.makeHead(s))
	o.raise(len(o.heads) - 1)
}

func (o *Order) makeHead(s *session) head {
	it := &o.items[o.first(s)]
	h := head{key: max(it.key, s.lastKey), tie: it.start, tag: 2 * it.nth, s: s}
	if it.timeless {
		h.tie = int64(it.partition)<<placeBits | it.place
		h.tag++
	}
	return h
}

// top makes sure that the first head is not stale; false if nothing waits.
func (o *Order) top() bool {
	for len(o.heads) > 0 {
		h := &o.heads[0]
		if i := o.first(h.s); i != nil32 && o.items[i].nth == h.tag>>1 {
			return true
		}
		o.drop()
	}
	return false
}

// drop takes the first head out.
func (o *Order) drop() {
	last := len(o.heads) - 1
	o.heads[0] = o.heads[last]
	o.heads[last] = head{}
	if o.heads = o.heads[:last]; last > 0 {
		o.sink()
	}
}

// less orders heads. It is total among those that are not stale.
func less(a, b *head) bool {
	switch {
	case a.key != b.key:
		return a.key < b.key
	case (a.tag^b.tag)&1 != 0:
		return b.tag&1 != 0
	case a.tie != b.tie:
		return a.tie < b.tie
	}
	return a.s.name < b.s.name
}

// raise moves the head at index i of the heap up to its place.
func (o *Order) raise(i int) {
	h := o.heads[i]
	for i > 0 {
		up := (i - 1) / 2
		if !less(&h, &o.heads[up]) {
			break
		}
		o.heads[i] = o.heads[up]
		i = up
	}
	o.heads[i] = h
}

// sink moves the first head of the heap down to its place.
func (o *Order) sink() {
	i, h := 0, o.heads[0]
	for {
		down := 2*i + 1
		if down >= len(o.heads) {
			break
		}
		if down+1 < len(o.heads) && less(&o.heads[down+1], &o.heads[down]) {
			down++
		}
		if !less(&o.heads[down], &h) {
			break
		}
		o.heads[i] = o.heads[down]
		i = down
	}
	o.heads[i] = h
}
