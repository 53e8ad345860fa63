package order

import (
	"github.com/isowatch/isowatch/ingest/record"
)

// item is a waiting record. Items live in one slab and are linked by index:
// many short queues cost no memory of their own, and what a burst took is used
// again.
type item struct {
	txn     *record.Transaction
	arrival int64
	key     int64 // its own time in the order: end, or what stands for it
	// seq and nth are its place in the session: records without seq follow
	// the greatest seq that came before them.
	seq       int64
	nth       int64 // counts all Adds
	place     int64
	partition int32
	next      int32 // in the session's queue or the free list; -1 ends
	late      bool
	ahead     bool
}

const nil32 = int32(-1)

// session is what is known of one session: what waits, and how far it is out.
type session struct {
	name string
	// Items in session order. Nearly all arrive so and are put at the tail.
	head, tail int32
	// strays is a binary heap of those that arrived before a predecessor's
	// place was filled: O(log n) however they come.
	strays []int32
	// heap is the session's index in Order.heads, -1 while nothing waits.
	heap int32
	// maxSeq is the greatest seq that arrived.
	maxSeq int64
	// What was handed out last: its key; the greatest trusted end; its seq.
	released bool
	hasSeq   bool
	lastKey  int64
	lastEnd  int64
	lastSeq  int64
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
	if s.tail == nil32 {
		s.head, s.tail = i, i
		return
	}
	if !o.before(i, s.tail) {
		o.items[s.tail].next = i
		s.tail = i
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

// head is the first item of a session among those of all sessions. Invariant:
// each session with items has exactly one head, and key is the greater of the
// item's key and what the session has released: keys never fall in a session.
type head struct {
	key int64
	// timeless heads come after those with times and are ordered by where they
	// were; the others by start, then session.
	timeless bool
	start    int64
	s        *session
}

func (o *Order) makeHead(s *session) head {
	i := o.first(s)
	it := &o.items[i]
	h := head{key: it.key, s: s, timeless: !it.txn.HasTimes, start: it.txn.Start}
	h.key = max(h.key, s.lastKey)
	return h
}

// less orders heads: by key, start and session, or by key, partition and place
// for records without times. It is total, because a session has one head.
func (o *Order) less(a, b *head) bool {
	switch {
	case a.key != b.key:
		return a.key < b.key
	case a.timeless != b.timeless:
		return b.timeless
	case !a.timeless && a.start != b.start:
		return a.start < b.start
	case a.timeless:
		x, y := &o.items[o.first(a.s)], &o.items[o.first(b.s)]
		if x.partition != y.partition {
			return x.partition < y.partition
		}
		return x.place < y.place
	}
	return a.s.name < b.s.name
}

// raise moves the head at index i of the heap up to its place.
func (o *Order) raise(i int) {
	h := o.heads[i]
	for i > 0 {
		up := (i - 1) / 2
		if !o.less(&h, &o.heads[up]) {
			break
		}
		o.heads[i] = o.heads[up]
		o.heads[i].s.heap = int32(i)
		i = up
	}
	o.heads[i] = h
	h.s.heap = int32(i)
}

// sink moves the head at index i of the heap down to its place.
func (o *Order) sink(i int) {
	h := o.heads[i]
	for {
		down := 2*i + 1
		if down >= len(o.heads) {
			break
		}
		if down+1 < len(o.heads) && o.less(&o.heads[down+1], &o.heads[down]) {
			down++
		}
		if !o.less(&o.heads[down], &h) {
			break
		}
		o.heads[i] = o.heads[down]
		o.heads[i].s.heap = int32(i)
		i = down
	}
	o.heads[i] = h
	h.s.heap = int32(i)
}
