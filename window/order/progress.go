package order

import (
	"fmt"
	"math"
)

// partition is what is known of one partition of the input.
type partition struct {
	known bool // it holds the watermark back
	// heard: there was news since the time of day was last told.
	heard bool
	// skipped: the watermark passed it while it was idle; see Counts.Skipped.
	skipped bool
	timed   bool // a record with times was seen
	// greatest is the greatest end seen (without times: arrival), none before
	// the first record. Only trusted times count.
	greatest int64
	// caughtUp is the bound that the latest CaughtUp proved.
	caughtUp int64
	active   int64 // time of day of the latest news; meaningful if not heard
	place    int64 // Adds so far
}

// bound is the least end that may still arrive in the partition.
func (p *partition) bound(delay int64) int64 { return max(sub(p.greatest, delay), p.caughtUp) }

// partition finds or makes the state of partition n.
func (o *Order) partition(n int) *partition {
	if n < 0 || n >= 1<<(63-placeBits) {
		panic(fmt.Sprintf("order: partition %d: can't happen, because partitions are numbered from 0 and few", n))
	}
	for n >= len(o.partitions) {
		o.partitions = append(o.partitions, partition{greatest: none, caughtUp: none})
	}
	p := &o.partitions[n]
	if !p.known {
		p.known, p.heard = true, true
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
// same clocks. O(1).
func (o *Order) Observe(n int, t int64) {
	p := o.partition(n)
	p.heard = true
	o.reached(p, t)
}

// CaughtUp says that partition n had no more to read just now, at the time of
// day now in nanoseconds. It must be told in the order of reading, relative to
// the Adds of all partitions. O(1).
func (o *Order) CaughtUp(n int, now int64) {
	p := o.partition(n)
	o.Advance(now)
	p.heard, p.active = false, o.now
	if o.greatest == none {
		return
	}
	b := sub(add(o.greatest, sub(o.now, o.reachedAt)), o.delay)
	if b = min(b, add(o.greatest, 1)); b > p.caughtUp {
		p.caughtUp = b
		o.dirty = true
	}
}

// Advance tells the time of day in nanoseconds. It is used for the passing of
// time only; a time before an earlier one is ignored. O(partitions).
func (o *Order) Advance(now int64) {
	if o.hasNow && now < o.now {
		now = o.now
	}
	o.now, o.hasNow = now, true
	if o.moved {
		o.moved, o.reachedAt = false, now
	}
	for i := range o.partitions {
		p := &o.partitions[i]
		if p.heard {
			p.heard, p.active = false, now
		}
	}
	o.dirty = true
}

// reached notes that the stream has reached t in partition p.
func (o *Order) reached(p *partition, t int64) {
	if t > p.greatest {
		p.greatest = t
		o.dirty = true
	}
	if t > o.greatest {
		o.greatest, o.moved = t, true
		o.dirty = true
	}
}

// idle tells whether p has been silent for too long to be waited for.
func (o *Order) idle(p *partition) bool {
	return o.idleAfter > 0 && o.hasNow && !p.heard && sub(o.now, p.active) > o.idleAfter
}

// settle moves the watermark to where the partitions allow. O(1) when nothing
// was learned since, otherwise O(partitions).
func (o *Order) settle() {
	if !o.dirty {
		return
	}
	o.dirty = false
	o.holder, o.least = -1, math.MaxInt64
	for i := range o.partitions {
		p := &o.partitions[i]
		if !p.known || o.idle(p) {
			continue // skipped, see below
		}
		if b := p.bound(o.delay); b < o.least {
			o.holder, o.least = i, b
		}
	}
	limit := add(o.greatest, 1)
	if o.flushed {
		o.least = limit
	}
	o.watermark = max(o.watermark, min(o.least, limit))
	for i := range o.partitions {
		p := &o.partitions[i]
		if p.known && !p.skipped && o.idle(p) && p.bound(o.delay) < o.watermark {
			p.skipped = true // what it still has may be missed
			o.counts.Skipped++
		}
	}
}

// Watermark is the least end that may still arrive, in nanoseconds of the
// records' clocks; math.MinInt64 before anything is known. All that ended
// before it has been handed out once Next has returned false. O(1).
func (o *Order) Watermark() int64 { return o.watermark }

// Holder is the partition that holds the watermark back; false if none does,
// because all are idle or there are none.
func (o *Order) Holder() (partition int, ok bool) {
	o.settle()
	return o.holder, o.holder >= 0
}

// Full tells whether MaxBuffered records wait.
func (o *Order) Full() bool { return o.maxBuffered > 0 && o.held >= o.maxBuffered }

// Wants tells whether partition n should be read on: always, unless the buffer
// is full and others lag behind n. O(1).
func (o *Order) Wants(n int) bool {
	if !o.Full() || n >= len(o.partitions) {
		return true
	}
	o.settle()
	return o.partitions[n].bound(o.delay) <= o.least
}

// Flush says that the input has ended: Next gives out all that is held.
func (o *Order) Flush() { o.flushed, o.dirty = true, true }
