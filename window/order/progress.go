package order

import (
	"cmp"
	"fmt"
	"math"
	"strings"
	"time"
)

// partition is what is known of one partition of the input.
type partition struct {
	known bool // it holds the watermark back
	// heard: there was news since the time of day was last told.
	heard bool
	// skipped: it was given up, and has not shown since that it is where the watermark is; see
	// Counts.Skipped.
	skipped bool
	// returned: what was read of it last was Returned. That shows nothing of what may still come: what did before is
	// caughtUp.
	returned bool
	timed    bool // a record with times was seen
	broker   bool // says when records came
	// setBack: since greatest was reached, a clock has been seen that was set
	// back. If they all were, time passes without greatest being reached again.
	setBack bool
	// greatest is the time of the partition: the greatest end seen, plus what
	// has passed since by the arrivals of records without times; none before the
	// first record. Only trusted times count.
	greatest int64
	anchor   int64 // when what greatest comes from arrived
	observed int64 // the greatest end of other histories
	// caughtUp is the bound that the latest CaughtUp proved, caughtAt its time of
	// day; before the first, where the watermark was when the partition became known. While it is returned caughtAt is
	// when all was Returned last.
	caughtUp int64
	caughtAt int64
	ended    int64 // the same by the time of patience
	active   int64 // time of day of the latest news; meaningful if not heard
	came     int64 // when what was read last of it came, as far as that is known; patience.go
	// gone and goneNext are what greatest was when the older and the newer
	// of the remembered generations of IDs began; see Order.gone.
	gone, goneNext int64
	// place is how far the mark may go by what its own log shows, whatever the others do; turned, behind,
	// behindBefore and unnumbered say by how much that is less than what it has reached. mark.go
	place, turned        int64
	behind, behindBefore int64
	unnumbered           bool
	trial                trial // trial.go
}

// bound is the least end that may still arrive in the partition.
func (o *Order) bound(p *partition) int64 {
	if o.holds(p) {
		return p.caughtUp
	}
	return max(sub(max(p.greatest, p.observed), o.delay), p.caughtUp)
}

// unheard is a partition of which nothing is known.
var unheard = partition{greatest: none, observed: none, caughtUp: none, caughtAt: none, ended: none, came: none,
	gone: none, goneNext: none, place: none, turned: none}

// partitionMax bounds the number of a partition.
const partitionMax = 1<<20 - 1

// partition finds or makes the state of partition n.
func (o *Order) partition(n int) *partition {
	if n < 0 || n > partitionMax {
		panic(fmt.Sprintf("order: partition %d: can't happen, because partitions are numbered from 0 and few", n))
	}
	for n >= len(o.partitions) {
		o.partitions = append(o.partitions, unheard)
	}
	p := &o.partitions[n]
	if !p.known {
		p.known, p.heard = true, true
		p.caughtUp = o.watermark // what it had before is missed
		o.dirty = true
	}
	return p
}

// Expect says that partition n will be read: it holds the watermark back from
// now on. O(1).
func (o *Order) Expect(n int) { o.partition(n) }

// Observe says that a record of another history, which ended (without times:
// arrived) at t, was read from partition n, so that this history's share of a
// common topic need not keep all histories waiting. Only for histories of the
// same clocks. It moves the watermark: where this history's records belong does not depend on it, as of a batch
// without any of them only the last record is told. session names whose it was, in its history. When it came is what
// the broker says; 0: there is none, then it is t. What ended long after it came, or far ahead of all others,
// is not believed. O(1).
func (o *Order) Observe(n int, session string, t, arrival int64) {
	p := o.partition(n)
	o.hear(p)
	o.came(p, cmp.Or(arrival, t))
	if arrival == 0 {
		o.heed(p, session, t)
	}
	switch {
	case t > endMost || arrival != 0 && o.aheadOf(t, arrival):
	case arrival == 0 && o.far(p, t):
		o.tries(p, probe{session: strings.Clone(session), end: t})
	default:
		o.observed(p, t)
	}
}

// observed notes that another history has reached t in partition p.
func (o *Order) observed(p *partition, t int64) {
	if t > p.observed {
		p.observed = t
		o.dirty = true
	}
	o.stream(t)
}

// CaughtUp says that partition n had no more to read just now, at the time of
// day now in nanoseconds. It must be told in the order of reading, relative to
// the Adds of all partitions. O(1).
func (o *Order) CaughtUp(n int, now int64) {
	p := o.partition(n)
	o.hear(p)
	away := o.advance(now)
	// What says that there was nothing more may have waited while nobody read, and be as old.
	p.heard, p.active = false, o.now
	o.rests(p)
	o.dirty = true
	if p.returned {
		return
	}
	p.caughtAt, p.ended = o.now, sub(o.patience.now, away)
	if o.greatest == none {
		return
	}
	b := sub(add(o.greatest, sub(o.now, o.reachedAt)), o.delay)
	if b = min(b, add(o.greatest, 1)); b > p.caughtUp {
		p.caughtUp = b
	}
}

// Advance tells the time of day in nanoseconds. It is used for the passing of
// time only; a time before an earlier one is ignored. O(partitions).
func (o *Order) Advance(now int64) { o.advance(now) }

// advance is Advance, and tells for how long nothing of what is read was heard at all, but for
// silenceMost: that time has not passed for those who are waited for, as it proves nothing: they
// had not stalled; what is read was away, or its reader was.
func (o *Order) advance(now int64) (away int64) {
	o.patience.tell(now)
	if o.hasNow && now < o.now {
		now = o.now
	}
	if o.hasNow {
		away = max(0, sub(sub(now, o.heardAt(now)), int64(silenceMost)))
	}
	o.now, o.hasNow = now, true
	if o.reachedAt = add(o.reachedAt, away); o.reading > 0 {
		o.reading = add(o.reading, away)
	}
	if o.moved {
		o.moved, o.reachedAt = false, now
	}
	for i := range o.partitions {
		p := &o.partitions[i]
		if p.caughtAt = add(p.caughtAt, away); p.returned && o.returned {
			p.caughtAt = now
		}
		if p.heard {
			p.heard, p.active = false, now
		} else {
			p.active = add(p.active, away)
		}
	}
	o.dirty = true
	return away
}

// silenceMost is for how long nothing is heard of any partition, at most, while they are read: of each
// that has been read to its end that is said once a second, and a reader that reads tells the time more often.
const silenceMost = time.Second

// heardAt is when there was news of any partition, or something was read of which there is no record, by the time of day
// as last told; now if nobody is waited for.
func (o *Order) heardAt(now int64) int64 {
	at := int64(math.MinInt64)
	switch ago := sub(o.patience.now, o.reading); {
	case o.reading <= 0:
	case ago == 0:
		return o.now
	default:
		at = sub(now, ago)
	}
	for i := range o.partitions {
		switch p := &o.partitions[i]; {
		case !p.known:
		case p.heard:
			return o.now
		default:
			at = max(at, p.active)
		}
	}
	if at == math.MinInt64 {
		return now
	}
	return at
}

// Returned says whether what is read from now on was out of reach until lately. Then it may have been so for those who
// write, too, and what they have not yet written ended longer ago than Lateness allows. So what is read meanwhile waits:
// the watermark and the mark stay where they are, and no tick is due, until each partition of which something was read so
// is read otherwise, or has been idle since it is over. O(1).
func (o *Order) Returned(lately bool) { o.returned = lately }

// hear notes that there is news of p: it is not idle.
func (o *Order) hear(p *partition) {
	if p.heard && p.returned == o.returned {
		return
	}
	if p.returned != o.returned {
		if p.caughtAt = none; o.returned {
			p.caughtUp = o.bound(p)
		}
	}
	p.heard, p.returned, o.dirty = true, o.returned, true
}

// reached notes that the stream has reached t in partition p, with a record that
// arrived at arrival.
func (o *Order) reached(p *partition, t, arrival int64) {
	if t > p.greatest {
		p.greatest, p.anchor, p.setBack = t, arrival, false
		o.goesOnTo(p, t)
		o.dirty = true
	}
	o.stream(t)
}

// stream notes that some partition has reached t.
func (o *Order) stream(t int64) {
	if t > o.greatest {
		o.greatest, o.moved = t, true
		o.dirty = true
	}
}

// clock is the time of partition p when a record arrived that has no time of its
// own to trust: what has passed since its greatest end, by the broker's clock. So a
// partition in which no record has one goes on. ok tells whether the arrival
// serves for it.
func (o *Order) clock(p *partition, arrival int64) (at int64, ok bool) {
	switch {
	case arrival <= 0 || p.setBack || o.aheadOf(arrival, 0):
		return p.greatest, false
	case p.greatest == none:
		return arrival, true
	case p.anchor <= 0 || arrival <= p.anchor:
		return p.greatest, false
	}
	return add(p.greatest, sub(arrival, p.anchor)), true
}

// pass moves partition p to the time at which the record arrived.
func (o *Order) pass(p *partition, arrival int64) int64 {
	at, ok := o.clock(p, arrival)
	if ok {
		o.reached(p, at, arrival)
	}
	return at
}

// silent is for how long there has been no news of p, but while all was Returned.
func (o *Order) silent(p *partition) int64 {
	if p.returned {
		return sub(o.now, max(p.active, p.caughtAt))
	}
	return sub(o.now, p.active)
}

// idle tells whether p has been silent for too long to be waited for.
func (o *Order) idle(p *partition) bool {
	return o.opt.IdleAfter > 0 && o.hasNow && !p.heard && o.silent(p) > int64(o.opt.IdleAfter)
}

// holds tells whether p is Returned and waited for.
func (o *Order) holds(p *partition) bool { return p.returned && !o.overran }

// stand finds out whether watermark and mark stay where they are, as a partition is Returned. Where more waits than may
// they go on by what partitions show, until none is: only ticks wait on (proved), and what comes behind is Passed.
func (o *Order) stand() {
	o.stands = false
	for i := range o.partitions {
		p := &o.partitions[i]
		o.stands = o.stands || p.returned && !o.idle(p) && !o.flushed
	}
	o.overran = o.stands && o.patience.wait > 0 && (o.overran || o.full())
	o.stands = o.stands && !o.overran
}

// settle moves the watermark and the mark to where the partitions allow. O(1) when nothing
// was learned since, otherwise O(partitions).
func (o *Order) settle() {
	if !o.dirty {
		return
	}
	o.dirty = false
	if o.stand(); o.stands {
		return
	}
	o.quiet = math.MaxInt64
	least, mark := int64(math.MaxInt64), int64(math.MaxInt64)
	for i := range o.partitions {
		p := &o.partitions[i]
		if !p.known || o.idle(p) {
			continue // skipped, see below
		}
		b := o.bound(p)
		least, mark = min(least, b), min(mark, max(b, p.place))
		if !o.moved && p.caughtAt != none && p.caughtAt >= o.reachedAt {
			b = max(b, sub(add(o.greatest, sub(p.caughtAt, o.reachedAt)), o.delay))
		}
		o.quiet = min(o.quiet, b)
	}
	limit := add(o.greatest, 1)
	if o.flushed {
		least, mark, o.quiet = limit, limit, math.MaxInt64
	}
	o.watermark, o.mark = max(o.watermark, min(least, limit)), max(o.mark, min(mark, limit))
	for i := range o.partitions {
		p := &o.partitions[i]
		switch {
		case !p.known:
		case !p.returned && o.bound(p) >= o.watermark:
			p.skipped = false // a stall that follows is another one
		case !p.skipped && o.givesUp(p):
			p.skipped = true
			o.counts.Skipped++
		}
	}
}

// givesUp tells whether a partition that the watermark has passed is not waited for any longer even
// where something is concluded from absence: what it still has may be missed. Until then ticks say
// less (Patience), and to have passed it has cost nothing. Where nothing holds ticks back that is
// at once; else when it was silent, and the stream went on, for MaxTransaction more.
func (o *Order) givesUp(p *partition) bool {
	switch {
	case !o.idle(p):
		return false
	case o.patience.wait == 0:
		return true
	}
	return sub(o.silent(p), int64(o.opt.IdleAfter)) > int64(o.opt.MaxTransaction) &&
		sub(o.watermark, o.bound(p)) > int64(o.opt.MaxTransaction)
}

// Watermark is the least end that may still arrive, in nanoseconds of the
// records' clocks; math.MinInt64 before anything is known. All that ended
// before it has been handed out once Next has returned false. O(1).
func (o *Order) Watermark() int64 { return min(o.watermark, o.blocked) }

// Mark is as Watermark, not less, and says nothing of what may still arrive. O(1).
func (o *Order) Mark() int64 { return min(o.mark, o.blocked) }

// Greatest is the greatest end seen in any partition that is trusted; math.MinInt64 before the first. O(1).
func (o *Order) Greatest() int64 { return o.greatest }

// Reach is the greatest end that a record may have that was sent before the last one
// that was added; math.MinInt64 before anything is known. O(1).
func (o *Order) Reach() int64 {
	if o.greatest == none {
		return none
	}
	return add(o.greatest, o.delay)
}

// Missed counts what makes all conclusions from absence doubtful, whatever the
// key: a silent partition was given up, or records left early because the
// buffer was full. A caller compares it with what it was before it hands on a release
// or a tick. It moves the watermark to where that follows from. O(partitions) when something was
// learned since, otherwise O(1).
func (o *Order) Missed() int64 {
	o.settle()
	return o.counts.Skipped + o.counts.Forced
}

// Unread is the least end that may still come in a partition that was given up: what is written
// there is missed, as Missed has counted once. ok is false if there is none. O(partitions).
func (o *Order) Unread() (from int64, ok bool) {
	from = math.MaxInt64
	for i := range o.partitions {
		if p := &o.partitions[i]; p.skipped {
			from, ok = min(from, o.bound(p)), true
		}
	}
	return from, ok
}

// Flush says that the input has ended: Next gives out all that is held.
func (o *Order) Flush() { o.flushed, o.dirty = true, true }
