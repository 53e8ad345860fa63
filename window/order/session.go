package order

import (
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/heap"
)

// item is a waiting record, 64 bytes. Items live in one slab and are linked by index:
// many short queues cost no memory of their own, and what a burst took is used
// again.
type item struct {
	key   int64 // its own time in the order: end, or what stands for it
	start int64 // as recorded; of one that isAhead its end, before which nobody of its session is believed
	// seq and ref are its place in the session: records without seq follow
	// the greatest seq that came before them.
	seq       int64
	ref       uint64
	id        uint64
	came      int64 // the slot of when it came; patience.go
	next      int32 // in the session's queue or the free list; -1 ends
	partition int32
	flags     uint16
	more      uint16 // for how many records besides itself it counts, if isHeavy
	behind    uint32 // of seq: where its own is, if isDetached
}

// What is so about an item.
const (
	isUsed uint16 = 1 << iota
	hasSeq
	hasTimes
	isLate
	isVague // its times are not believed: isAhead, or its clock stepped back
	isAhead
	isOverlong
	isDue      // the watermark had passed its key when it came
	isDetached // it has no place in its session
	isCommitted
	isUnknown // its outcome
	isHeavy
	isPassed // it came in time, and is behind its place
	isOnTrial
	isMisnumbered
)

const nil32 = int32(-1)

// session is what is known of one session: what waits, what came, and how far it
// is out.
type session struct {
	name string
	// Items in session order. Nearly all arrive so and are put at the tail.
	head, tail int32
	tailSeq    int64
	tailRef    uint64
	// strays is a heap of those that arrived before a predecessor's
	// place was filled: O(log n) however they come.
	strays []turn

	// What came: the greatest seq; bit i of window says that maxSeq-i did; the
	// greatest end, and the greatest that was ahead of its arrival.
	maxSeq   int64
	topEnd   int64 // the end of the one with maxSeq, none if it has none to believe
	maxStart int64 // the greatest start of committed ones with seqs, believed or not, but for wrong seqs
	window   uint64
	maxEnd   int64
	aheadEnd int64
	// floor is what may have come of it before it was forgotten, if it was.
	floor reach

	// What was handed out last: its key and seq; start and end of the last committed one
	// with times, or none.
	lastKey       int64
	outStart      int64 // the greatest start of committed ones with seqs
	lastStart     int64
	lastEnd       int64
	lastSeq       int64
	low           int64  // the least start so far, while there are no holes
	holes         []hole // in it, oldest first
	partition     int32  // where it was first seen
	lastPartition int32  // of what was handed out last
	generation    uint32
	moved         bool // it was seen in several partitions
	released      bool
	hasSeq        bool
	leftOut       bool // records were left out of the sample since
}

// ofStatus are the flags of a status.
func ofStatus(s record.Status) uint16 {
	switch s {
	case record.Committed:
		return isCommitted
	case record.Unknown:
		return isUnknown
	}
	return 0
}

// steppedBack tells whether an item's times show that its session's clock stepped back
// since the last committed one: by them it started before that one, or ended before it.
// When one of unknown outcome took effect is not known. The engine judges the
// same of what it has; s knows of what was forgotten, too.
//
// That it started before that one ended is no such thing: connections that share a
// session's name overlap.
func (s *session) steppedBack(it *item) bool {
	return it.start < s.lastStart || it.key < s.lastEnd && it.flags&isUnknown == 0
}

// inTurn tells whether a record that has no place in its session came in its turn all the same, by its number: so what
// is missing in front of it shows.
func (it *item) inTurn() bool { return it.flags&(isMisnumbered|isVague) == isMisnumbered|isVague }

// at is item i. The pointer is good until the next item is made.
func (o *Order) at(i int32) *item { return o.items.At(uint32(i)) }

// turn is where an item stands in its session.
type turn struct {
	seq  int64
	ref  uint64
	item int32
}

func (o *Order) turnOf(i int32) turn { return turn{o.at(i).seq, o.at(i).ref, i} }

// earlier tells whether an item precedes another one of the same session.
func earlier(a, b *turn) bool { return a.seq < b.seq || a.seq == b.seq && a.ref < b.ref }

// push puts item i into its session's queue. O(1) in session order, otherwise
// O(log n).
func (o *Order) push(s *session, i int32) {
	it := o.at(i)
	if s.tail == nil32 || it.seq > s.tailSeq || (it.seq == s.tailSeq && it.ref > s.tailRef) {
		if s.tail == nil32 {
			s.head = i
		} else {
			o.at(s.tail).next = i
		}
		s.tail, s.tailSeq, s.tailRef = i, it.seq, it.ref
		return
	}
	heap.Push(&s.strays, turn{it.seq, it.ref, i}, earlier)
}

// first is the item of s that is next in session order, nil32 for none.
func (o *Order) first(s *session) int32 {
	if len(s.strays) > 0 {
		if stray := &s.strays[0]; s.head == nil32 || !earlier(new(o.turnOf(s.head)), stray) {
			return stray.item
		}
	}
	return s.head
}

// shift takes the first item out of s's queue.
func (o *Order) shift(s *session) {
	if i := o.first(s); i == s.head {
		if s.head = o.at(i).next; s.head == nil32 {
			s.tail = nil32
		}
		return
	}
	if heap.Pop(&s.strays, earlier); len(s.strays) == 0 {
		s.strays = nil
	}
}
