package order

import (
	"fmt"
	"math"
	"strings"

	"github.com/isowatch/isowatch/ingest/record"
)

// Order is the order and the watermark of one history. It is not safe for
// concurrent use: the loop that owns the history's engine owns it.
type Order struct {
	delay          int64 // Lateness + MaxSkew
	skew           int64
	maxTransaction int64
	idleAfter      int64
	maxAhead       int64
	maxBuffered    int
	maxRemembered  int

	// Progress; progress.go.
	partitions []partition
	now        int64 // time of day as last told; meaningful if hasNow
	hasNow     bool
	greatest   int64 // greatest trusted end seen anywhere
	// moved: greatest rose since the time of day was last told; otherwise it
	// rose before reachedAt.
	moved     bool
	reachedAt int64
	flushed   bool
	// dirty: the watermark may be behind what the partitions allow.
	dirty     bool
	watermark int64
	holder    int   // the partition with the least bound; -1 for none
	least     int64 // that bound

	// What waits; session.go.
	sessions map[string]*session
	sweepAt  int    // size of sessions at which forgotten ones are looked for
	heads    []head // a binary heap by less
	items    []item
	free     int32 // list of unused items
	held     int   // items in use

	// ready are records that left early; out of them readyFrom are gone.
	ready     []Release
	readyFrom int

	memory memory
	counts Counts
}

// New makes an Order.
func New(opt Options) *Order {
	if opt.MaxRemembered <= 0 {
		opt.MaxRemembered = DefaultRemembered
	}
	o := &Order{
		delay:          add(int64(opt.Lateness), int64(opt.MaxSkew)),
		skew:           int64(opt.MaxSkew),
		maxTransaction: int64(opt.MaxTransaction),
		idleAfter:      int64(opt.IdleAfter),
		maxAhead:       int64(opt.MaxAhead),
		maxBuffered:    opt.MaxBuffered,
		maxRemembered:  opt.MaxRemembered,
		greatest:       none,
		watermark:      none,
		holder:         -1,
		sessions:       make(map[string]*session),
		sweepAt:        sweepMin,
		free:           nil32,
		memory:         memory{limit: max(1, opt.MaxRemembered/2)},
	}
	for _, n := range opt.Partitions {
		o.Expect(n)
	}
	return o
}

// Counts are the totals so far.
func (o *Order) Counts() Counts { return o.counts }

// Held is the number of records that wait.
func (o *Order) Held() int { return o.held + len(o.ready) - o.readyFrom }

// Add takes in the next record of a partition, in the order of the partition.
// arrival is the broker's timestamp in nanoseconds, for input without one the
// time of day when it was read, or 0 if neither is known. The record must not be
// changed afterwards. O(log sessions), besides O(size of t) for the fingerprint.
func (o *Order) Add(n int, t *record.Transaction, arrival int64) Fate {
	p := o.partition(n)
	place := p.place
	p.place++
	p.heard = true
	o.counts.Added++
	switch f := o.memory.see(t); f {
	case Duplicate:
		o.counts.Duplicates++
		return f
	case Contradiction:
		o.counts.Contradictions++
		return f
	}

	it := item{txn: t, arrival: arrival, nth: o.counts.Added, start: t.Start, timeless: !t.HasTimes,
		place: place, partition: int32(n), next: nil32}
	it.ahead = t.HasTimes && o.aheadOf(t.End, arrival)
	if it.ahead {
		o.counts.Ahead++
	}
	own := true // key is the record's own time, so it can be late
	switch {
	case t.HasTimes && !it.ahead:
		it.key = t.End
		p.timed = true
		o.reached(p, it.key)
	case p.timed || o.aheadOf(arrival, 0):
		it.key = p.greatest
		own = false
	default:
		it.key = arrival
		o.reached(p, it.key)
	}
	fate := Taken
	if own && it.key < o.watermark {
		it.late = true
		fate = Late
		o.counts.Late++
	}
	o.enqueue(it)
	if o.maxBuffered > 0 && o.held > o.maxBuffered {
		o.force()
	}
	return fate
}

// aheadOf tells whether an end is too far ahead of when its record came.
func (o *Order) aheadOf(end, arrival int64) bool {
	if o.maxAhead <= 0 {
		return false
	}
	came := int64(math.MaxInt64)
	if arrival > 0 {
		came = arrival
	}
	if o.hasNow {
		came = min(came, o.now)
	}
	return end >= add(came, o.maxAhead)
}

// enqueue puts it into its session and the session into the heap.
func (o *Order) enqueue(it item) {
	s := o.sessions[it.txn.Session]
	if s == nil {
		s = &session{name: strings.Clone(it.txn.Session), head: nil32, tail: nil32,
			maxSeq: math.MinInt64, lastKey: none, lastEnd: none}
		o.sweep()
		o.sessions[s.name] = s
	}
	if it.txn.HasSeq {
		s.maxSeq = max(s.maxSeq, it.txn.Seq)
		it.seq = it.txn.Seq
	} else {
		it.seq = s.maxSeq
	}
	i := o.free
	if i == nil32 {
		i = int32(len(o.items))
		o.items = append(o.items, it)
	} else {
		o.free = o.items[i].next
		o.items[i] = it
	}
	o.held++
	o.push(s, i)
	if o.first(s) == i {
		o.put(s)
	}
}

// Next hands out the next record in order, false if none is due: the others end
// at the watermark or later. O(log sessions).
func (o *Order) Next() (Release, bool) {
	if o.readyFrom < len(o.ready) {
		r := o.ready[o.readyFrom]
		o.ready[o.readyFrom] = Release{}
		if o.readyFrom++; o.readyFrom == len(o.ready) {
			o.ready, o.readyFrom = o.ready[:0], 0
		}
		o.counts.Released++
		return r, true
	}
	o.settle()
	if !o.top() || (o.heads[0].key >= o.watermark && !o.flushed) {
		return Release{}, false
	}
	o.counts.Released++
	return o.pop(), true
}

// force hands out records early until the buffer holds no more than it may.
func (o *Order) force() {
	for o.held > o.maxBuffered && o.top() {
		if o.heads[0].key >= o.watermark {
			o.watermark = add(o.heads[0].key, 1)
			o.counts.Forced++
		}
		o.ready = append(o.ready, o.pop())
	}
}

// pop takes the item of the first head out; the head must not be stale.
func (o *Order) pop() Release {
	s, key := o.heads[0].s, o.heads[0].key
	i := o.first(s)
	it := o.items[i]
	o.shift(s)
	o.items[i] = item{next: o.free}
	o.free = i
	o.held--

	r := o.release(s, &it, key)

	if o.first(s) == nil32 {
		o.drop()
		return r
	}
	o.heads[0] = o.makeHead(s)
	o.sink()
	return r
}

// release makes the Release of it, which leaves session s under key.
func (o *Order) release(s *session, it *item, key int64) Release {
	t := it.txn
	r := Release{Txn: t, Arrival: it.arrival, Partition: int(it.partition), Place: it.place, Late: it.late}
	if t.HasTimes && o.maxTransaction > 0 && sub(t.End, t.Start) > o.maxTransaction {
		r.Overlong = true
		o.counts.Overlong++
	}
	if t.HasTimes && (it.late || it.ahead || t.End < key || add(t.Start, o.skew) < s.lastEnd) {
		r.TimesDropped = true
		o.counts.TimesDropped++
	}
	if t.HasSeq {
		switch {
		case s.hasSeq && t.Seq <= s.lastSeq, !s.released && it.late:
			r.Detached = true
			o.counts.Detached++
		case s.hasSeq && t.Seq > s.lastSeq+1:
			r.Gap = &Gap{Session: s.name, From: s.lastSeq + 1, To: t.Seq - 1}
			o.counts.Gaps++
			o.counts.Missing = add(o.counts.Missing, sub(t.Seq-1, s.lastSeq))
		}
	}
	if !t.HasSeq && s.released && (it.late || it.partition != s.partition) {
		// Only the order within a partition says where it belongs.
		r.Detached = true
		o.counts.Detached++
	}
	if r.TimesDropped || r.Detached {
		c := *t
		c.HasTimes = c.HasTimes && !r.TimesDropped
		if r.Detached {
			c.Session = fmt.Sprintf("%s detached %d@%d", c.Session, it.partition, it.place)
			c.HasSeq = false
		}
		r.Txn = &c
	}
	s.lastKey = max(s.lastKey, key)
	if r.Detached {
		return r
	}
	s.released, s.partition = true, it.partition
	if r.Txn.HasTimes {
		s.lastEnd = max(s.lastEnd, t.End)
	}
	if t.HasSeq {
		s.hasSeq, s.lastSeq = true, t.Seq
	}
	return r
}

// sweepMin sessions are kept without a look at what may be forgotten.
const sweepMin = 1024

// sweep forgets sessions of which nothing waits and to which nothing can
// belong any more: their last record left longer than MaxTransaction and the
// delay behind the watermark. If there are still too many, those that the
// watermark has passed go too. A record of a forgotten session that comes late
// is Detached, as what left before it is not known. Amortised O(1).
func (o *Order) sweep() {
	if len(o.sessions) < o.sweepAt {
		return
	}
	if o.maxTransaction > 0 {
		o.forget(sub(sub(o.watermark, o.maxTransaction), o.delay))
	}
	if len(o.sessions) > o.maxRemembered/2 {
		o.forget(o.watermark)
	}
	o.sweepAt = max(sweepMin, 2*len(o.sessions))
}

// forget drops sessions of which nothing waits and that left before t.
func (o *Order) forget(t int64) {
	for name, s := range o.sessions {
		if o.first(s) == nil32 && s.lastKey < t {
			delete(o.sessions, name)
		}
	}
}
