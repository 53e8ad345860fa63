package order

import (
	"fmt"
	"math"
	"strings"

	"github.com/isowatch/isowatch/incremental/paged"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/heap"
)

// Order is the order and the watermark of one history. It is not safe for
// concurrent use: the loop that owns the history's engine owns it.
type Order struct {
	opt   Options
	delay int64 // Lateness + MaxSkew

	// Progress; progress.go.
	partitions []partition
	now        int64 // time of day as last told; meaningful if hasNow
	hasNow     bool
	reading    int64 // time of day at which was read what is added, or what came last; 0: not known
	greatest   int64 // greatest trusted end seen anywhere
	// moved: greatest rose since the time of day was last told; otherwise it
	// rose before reachedAt.
	moved     bool
	reachedAt int64
	flushed   bool
	returned  bool // what is read is Returned
	stands    bool // watermark and mark stay where they are, as a partition is Returned
	overran   bool // more waited than may, so that only ticks wait for what is Returned
	// dirty: the watermark may be behind what the partitions allow.
	dirty     bool
	watermark int64
	mark      int64 // what ended before it is handed out; mark.go
	// quiet is what the watermark would be if silence proved something about
	// times that the stream has not reached.
	quiet int64
	// blocked is the key of a record that the mark has passed and that
	// still waits for a hole to be filled.
	blocked int64

	// What waits; session.go, heap.go.
	sessions map[string]*session
	heads    []head // a heap by less
	items    paged.Vec[uint32, item]
	free     int32  // list of unused items
	held     int    // items in use
	more     int    // for how many more than held they count, as some are heavy
	next     uint64 // the least ref that may be added

	// What is forgotten; forget.go.
	generation uint32
	fresh      int // sessions that released in this generation
	forgot     forgotten

	// What came before; again.go.
	memory memory
	bare   memory // records with neither seq nor times

	level    uint8    // of the sample; sample.go
	ticks    ticks    // tick.go
	patience patience // patience.go
	counts   Counts
}

// New makes an Order.
func New(opt Options) *Order {
	o := blank(opt)
	for _, n := range opt.Partitions {
		o.Expect(n)
	}
	return o
}

// blank is an Order that expects no partition.
func blank(opt Options) *Order {
	if opt.MaxRemembered <= 0 {
		opt.MaxRemembered = DefaultRemembered
	}
	if opt.MaxSessions <= 0 {
		opt.MaxSessions = DefaultSessions
	}
	o := &Order{
		opt:        opt,
		delay:      add(int64(opt.Lateness), int64(opt.MaxSkew)),
		greatest:   none,
		watermark:  none,
		mark:       none,
		quiet:      none,
		blocked:    math.MaxInt64,
		sessions:   make(map[string]*session),
		free:       nil32,
		generation: 1,
		forgot:     nothingForgotten,
		memory:     memory{limit: max(1, opt.MaxRemembered/2)},
		bare:       memory{limit: max(1, opt.Bare, min(opt.MaxRemembered, bareMax)/2)},
		ticks:      ticks{last: none, told: none},
		patience:   newPatience(&opt),
	}
	if o.opt.Prompt {
		o.ticks.behind = o.delay
	}
	return o
}

// Counts are the totals so far.
func (o *Order) Counts() Counts { return o.counts }

// Held is the number of records that wait.
func (o *Order) Held() int { return o.held }

// Refs calls f with the Ref of each record that waits, in no order. O(most that
// ever waited).
func (o *Order) Refs(f func(ref uint64)) {
	for i := range o.items.Len() {
		if it := o.at(int32(i)); it.flags&isUsed != 0 {
			f(it.ref)
		}
	}
}

// Add takes in the next record of a partition, in the order of the partition.
// ref names the record in Release; it must be greater than those added before. h is
// not kept. arrival is the broker's timestamp in nanoseconds, or 0 for input without
// one: then the time of day when it was read counts (Reading). O(log sessions).
func (o *Order) Add(n int, h *record.Head, ref uint64, arrival int64) Fate {
	p := o.partition(n)
	o.hear(p)
	o.counts.Added++
	came, broker := arrival, arrival != 0
	p.broker = broker
	if !broker {
		arrival = o.reading
		if came = h.End; !h.HasTimes {
			came = arrival
		}
	}
	came = o.came(p, came)
	s := o.sessions[h.Session]
	if o.level > 0 && !Kept(h.Session, o.level) {
		o.leaveOut(p, s, h, arrival)
		return LeftOut
	}
	slot, fate := o.again(p, n, s, h, arrival)
	if fate != Taken {
		return fate
	}
	if h.HasTimes && !broker {
		o.heed(p, h.Session, h.End)
	}
	it := o.place(p, n, s, h, arrival, broker)
	it.ref, it.came = ref, o.patience.slotOf(came)
	bytes := h.Bytes
	if s == nil {
		bytes += sessionBytes + len(h.Session)
	}
	o.weigh(&it, bytes)
	if it.flags&isLate != 0 {
		fate = Late
		o.counts.Late++
	}
	o.remember(h, ref, slot)
	o.next = ref + 1
	o.enqueue(s, h, it)
	return fate
}

// weigh notes for how many records it counts, of so many bytes.
func (o *Order) weigh(it *item, bytes int) {
	if o.opt.Heavy > 0 && bytes > o.opt.Heavy {
		it.flags |= isHeavy
		it.more = uint16(min((bytes-1)/o.opt.Heavy, math.MaxUint16))
	}
}

// place finds where in the order a record belongs, and moves the time of its
// partition. Nothing but the partition's and the session's own records decides,
// as long as they keep to Lateness.
func (o *Order) place(p *partition, n int, s *session, h *record.Head, arrival int64, broker bool) item {
	it := item{start: h.Start, id: h.ID, partition: int32(n), next: nil32, flags: isUsed}
	if h.HasSeq {
		it.flags |= hasSeq
	}
	it.flags |= ofStatus(h.Status)
	own := true // key is the record's own time, so it can be late
	trusted := h.HasTimes && h.End <= endMost && !(broker && o.aheadOf(h.End, arrival))
	limit, shown, place := sub(p.greatest, o.delay), o.bound(p), p.place // as they were before this record
	if p.returned {
		// Nothing that has to be behind it has been handed out, whatever its partition shows; at the mark it would wait until
		// more comes.
		limit, place = none, min(place, sub(o.mark, 1))
		if h.HasTimes && sub(h.Start, int64(o.opt.MaxSkew)) > sub(o.ticks.told, o.patience.deadline) {
			shown = none // whoever can have read from it is not due yet
		}
	}
	p.unnumbered = p.unnumbered || !h.HasSeq
	wrong := trusted && !broker && !o.opt.Numbered && s.runsBack(h)
	if wrong {
		it.flags |= isDetached | isMisnumbered | isVague
	}
	switch {
	case trusted && !broker && o.far(p, h.End):
		it.key = h.End
		it.flags |= isOnTrial
	case !trusted && !broker && p.greatest == none && h.HasTimes:
		it.key, own = 0, false // before all others
	case !trusted && !broker && p.greatest == none && arrival > 0 && o.opt.MaxAhead > 0:
		it.key, own = arrival, false
		it.flags |= isOnTrial
	case trusted:
		p.timed = true
		it.key = h.End
		if wrong {
			it.key, own = max(h.End, p.greatest), false
		} else if !p.returned && h.End < max(limit, o.watermark) && s.follows(h) {
			// Its session's previous record came in time and ended later: not the
			// record is late, its clock was set back.
			o.counts.SteppedBack++
			it.flags |= isVague
			it.key, own = p.greatest, false
			p.setBack = true
		}
		o.comesBehind(p, h.End)
		o.reached(p, h.End, arrival)
	case p.timed || broker && o.aheadOf(arrival, 0):
		it.key, own = o.pass(p, arrival), false
	default:
		it.key = arrival
		o.reached(p, arrival, arrival)
	}
	if h.HasTimes {
		it.flags |= hasTimes
		if !trusted {
			o.counts.Ahead++
			it.flags |= isVague | isAhead
			it.start = h.End
		}
		if o.opt.MaxTransaction > 0 && sub(h.End, h.Start) > int64(o.opt.MaxTransaction) {
			it.flags |= isOverlong
		}
	}
	// What the partition itself shows to be late, or behind, gets its place by the partition's time, and so
	// in every interleaving the same.
	switch end := it.key; {
	case !own:
	case end < limit:
		it.flags |= isLate
		it.key = place
		if h.HasSeq && s != nil && h.Seq < s.maxSeq {
			it.flags |= isDetached // successors may have left, depending on other partitions
		}
	case end < o.watermark:
		it.flags |= isLate
		if end >= shown && !p.skipped && o.patience.wait > 0 {
			it.flags |= isPassed
		}
		it.key = max(end, place)
	case end < max(place, o.mark):
		it.flags |= isPassed
		it.key = max(end, place)
	}
	skew := int64(o.opt.MaxSkew)
	if !broker {
		skew = 0 // as by RunsBack, for the order of the lines says nothing
	}
	if it.flags&isVague == 0 && !o.opt.Numbered && s.misnumbered(h, skew) {
		it.flags |= isDetached | isMisnumbered
	}
	if it.key < o.watermark {
		it.flags |= isDue
	}
	return it
}

// aheadOf tells whether an end is too far ahead of when its record came.
func (o *Order) aheadOf(end, arrival int64) bool {
	if o.opt.MaxAhead <= 0 {
		return false
	}
	came := int64(math.MaxInt64)
	if arrival > 0 {
		came = arrival
	}
	if o.hasNow {
		came = min(came, o.now)
	}
	return end >= add(came, int64(o.opt.MaxAhead))
}

// enqueue puts it into its session and the session into the heap.
func (o *Order) enqueue(s *session, h *record.Head, it item) {
	if s == nil {
		s = o.begin(strings.Clone(h.Session), it.partition)
	}
	s.arrive(h, &it)
	i := o.free
	if i == nil32 {
		i = int32(o.items.Len())
		o.items.Push(it)
	} else {
		o.free = o.at(i).next
		*o.at(i) = it
	}
	o.held++
	o.more += int(it.more)
	o.dirty = o.dirty || o.stands && o.full()
	o.patience.enter(it.came)
	if it.flags&isOnTrial != 0 {
		o.tries(&o.partitions[it.partition], probe{session: s.name, own: true, item: i, end: it.key})
	}
	o.push(s, i)
	if o.first(s) == i {
		o.put(s)
	}
}

// Next hands out the next record in order, false if none is due: the others end
// at the mark or later. O(log sessions).
func (o *Order) Next() (Release, bool) {
	o.settle()
	if !o.top() {
		return Release{}, false
	}
	if h := &o.heads[0]; !o.due(h) {
		if !o.full() {
			o.blocked = math.MaxInt64
			if h.key < o.mark {
				o.blocked = h.key
			}
			return Release{}, false
		}
		o.watermark = max(o.watermark, add(h.key, 1))
		o.mark = max(o.mark, o.watermark)
		o.counts.Forced++
	}
	o.blocked = math.MaxInt64
	o.counts.Released++
	return o.pop(), true
}

// full tells whether more waits than may.
func (o *Order) full() bool { return o.opt.MaxBuffered > 0 && o.held+o.more > o.opt.MaxBuffered }

// due tells whether the first head may leave. One that stands behind a hole in
// its session waits for the watermark, and a little longer: what fills the hole ended before it, by a
// clock that may since have been set back by MaxSkew; where no times are to be
// trusted, it arrives within the whole delay; but not behind what is as good as certainly the first of its session.
func (o *Order) due(h *head) bool {
	if o.flushed {
		return true
	}
	if h.key >= o.mark {
		return false
	}
	it := o.at(o.first(h.s))
	if it.flags&(hasSeq|isDue|isDetached) != hasSeq || (h.s.hasSeq && it.seq <= add(h.s.lastSeq, 1)) {
		return true
	}
	wait := int64(o.opt.MaxSkew)
	switch first := !h.s.hasSeq; {
	case first && it.seq <= 0: // nothing is before it
		return true
	case it.flags&(hasTimes|isVague) == hasTimes:
	case first && it.seq <= record.SeqFirstMax:
		wait = 0
	default:
		wait = o.delay
	}
	return add(h.key, wait) < max(o.watermark, o.quiet)
}

// pop takes the item of the first head out; the head must not be stale.
func (o *Order) pop() Release {
	s, key := o.heads[0].s, o.heads[0].key
	i := o.first(s)
	if o.at(i).flags&isOnTrial != 0 {
		o.leaves(i)
	}
	it := *o.at(i)
	o.shift(s)
	*o.at(i) = item{next: o.free}
	o.free = i
	o.held--
	o.more -= int(it.more)

	var r Release
	o.release(&r, s, &it, key)

	if o.first(s) == nil32 {
		heap.Pop(&o.heads, less)
		return r
	}
	o.heads[0] = o.makeHead(s)
	heap.Sink(o.heads, less)
	return r
}

// release fills in the Release of it, which leaves session s under key.
func (o *Order) release(r *Release, s *session, it *item, key int64) {
	if !o.opt.Numbered && !o.partitions[it.partition].broker && s.followsGreater(it) {
		it.flags |= isDetached | isMisnumbered | isVague
	}
	r.Ref, r.Key, r.Own, r.Session = it.ref, key, s.name, s.name
	r.Late, r.Passed = it.flags&isLate != 0, it.flags&isPassed != 0
	at, n := o.ticks.before(key, int64(o.opt.Every))
	if r.TickAt, r.Tick, r.Silent = at, n > 0, n > 1; r.Tick {
		r.TickAt = o.proved(r.TickAt)
		o.ticks.told = r.TickAt
	}
	o.patience.handed(it)
	o.touch(s)
	if it.flags&isMisnumbered != 0 {
		r.Misnumbered = true
		o.counts.Misnumbered++
	}
	if it.flags&isOverlong != 0 {
		r.Overlong = true
		o.counts.Overlong++
	}
	timed := it.flags&hasTimes != 0
	if timed {
		r.TimesDropped = it.flags&(isLate|isVague) != 0 || s.steppedBack(it)
		r.Untimely = r.TimesDropped || r.Passed || it.key < key
	}
	if it.flags&hasSeq != 0 {
		o.sequence(r, s, it)
		r.Detached = r.Detached || it.flags&isDetached != 0
	} else if s.released && (r.Late || it.partition != s.lastPartition) {
		r.Detached = true // only the order within a partition says where it belongs
	}
	s.lastKey = max(s.lastKey, key)
	if timed {
		s.compare(r, it)
	}
	if r.TimesDropped {
		o.counts.TimesDropped++
	}
	if r.Detached {
		o.counts.Detached++
		r.Session = detachedName(s.name, it)
		if it.inTurn() {
			s.lastSeq = max(s.lastSeq, it.seq)
		}
		return
	}
	s.released, s.lastPartition = true, it.partition
	switch {
	case !timed || it.flags&isCommitted == 0:
	case it.flags&isAhead != 0: // who ends before it has stepped back, whichever of the two is wrong
		s.lastStart, s.lastEnd = max(s.lastStart, it.start), max(s.lastEnd, it.start)
	case r.Passed: // its end is not known here
		s.lastStart = max(s.lastStart, it.start)
	case !r.TimesDropped:
		s.lastStart, s.lastEnd = it.start, it.key
	}
	if it.flags&hasSeq != 0 {
		s.hasSeq, s.lastSeq = true, it.seq
		if it.flags&(hasTimes|isCommitted|isAhead) == hasTimes|isCommitted {
			s.outStart = max(s.outStart, it.start)
		}
	}
}

// compare finds out whether a record with times contradicts what was handed out behind it
// in its session, and keeps its start for those to come. The times of one that is late may be used
// all the same, so they count.
func (s *session) compare(r *Release, it *item) {
	fills := r.Detached && it.flags&hasSeq != 0
	// The end of one that is late is not known here.
	back := r.Late && !r.Detached && it.start < max(s.lastStart, s.lastEnd) && it.flags&isUnknown == 0
	if fills && it.start > s.started(it.own()) || back {
		r.Contradicts, r.TimesDropped, r.Untimely = true, true, true
	}
	switch {
	case it.flags&isCommitted == 0 || r.Contradicts || r.TimesDropped && !r.Late:
	case fills:
		s.fill(it.own(), it.start)
	case !r.Detached:
		s.goesOn(it.start)
	}
}

// sequence finds out what a record's seq tells.
func (o *Order) sequence(r *Release, s *session, it *item) {
	switch {
	case it.flags&isDetached != 0 && !it.inTurn(), s.hasSeq && it.seq <= s.lastSeq, !s.released && r.Late && o.forgot.any:
		r.Detached = true
	case s.hasSeq && it.seq > s.lastSeq+1:
		o.gap(r, Gap{Session: s.name, From: s.lastSeq + 1, To: it.seq - 1, Sampled: s.leftOut})
		s.leftOut = false
		s.opened(s.lastSeq + 1)
	case o.goesOn(s, it.seq):
		r.Forgotten = true
		o.counts.Forgotten++
	case o.opt.Whole && !s.released && record.MissingBefore(it.seq) > 0:
		o.gap(r, Gap{Session: s.name, From: record.SeqFirstMax, To: it.seq - 1, Sampled: o.counts.LeftOut > 0})
	}
}

// goesOn tells whether the first record of s may be one behind a hole in a session that was
// forgotten; with Whole also whether it may be behind no hole in that, as it then may be behind
// one in a session that was not.
func (o *Order) goesOn(s *session, seq int64) bool {
	if s.hasSeq || !o.forgot.any {
		return false
	}
	if o.opt.Whole && !s.released {
		return seq > max(o.forgot.low, record.SeqFirstMax)
	}
	return seq > add(o.forgot.low, 1)
}

// gap flags a record that is behind a hole.
func (o *Order) gap(r *Release, g Gap) {
	r.Gap = &g
	o.counts.Gaps++
	o.counts.Missing = add(o.counts.Missing, record.MissingBetween(g.From-1, g.To+1))
}

// detachedName is a session's name that no other record has, the same for
// everybody who reads the stream.
func detachedName(session string, it *item) string {
	if it.id == 0 {
		return fmt.Sprintf("%s detached %d", session, it.ref)
	}
	return fmt.Sprintf("%s detached %016x", session, it.id)
}
