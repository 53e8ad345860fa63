package app

import (
	"errors"
	"sync"
	"time"

	"github.com/isowatch/isowatch/ingest/decode"
	"github.com/isowatch/isowatch/ingest/source/kafka"
)

// contact is whether the source can be read, and until when those who write to it are waited for: they may not have
// reached it either, and try again ever more rarely. It has no clock. Any goroutine may say that
// it fails, and works; all else is one's.
type contact struct {
	every time.Duration // something happens at least so often, unless the process is stopped
	// alone: nobody is waited for. Where an input ends is known from its beginning, and into a file they can write.
	alone bool

	mu     sync.Mutex
	parts  map[int]*part // the source's, by partition; wholeSource is what is of none
	rested time.Time     // when what happened last had been done
	until  time.Time     // those who write may not have caught up
	told   bool          // that they are waited for
}

// part is what is known of a part of the source. It works again when all do that failed, not when another one does.
type part struct {
	failed time.Time // when it did last; zero: it works
	heard  time.Time // last
	// out is when it was heard of last before it failed; zero: it did not since those who write have caught up. Who failed
	// to write then has tried ever since, though it may have worked in between.
	out time.Time
	// read: all that was there then was read. goal is the offset up to which that is to be so next, of what was there at
	// asked.
	read, asked time.Time
	goal        int64
}

const (
	wholeSource = -1
	// catchUpMost is how long those who write are waited for at most: Kafka's clients try again every ten seconds and more
	// often.
	catchUpMost = 10 * time.Second
	// stoppedLeast is for how long nothing happens beyond every only where this process was stopped.
	stoppedLeast = 2 * time.Second
)

// of is a part; c.mu is held.
func (c *contact) of(n int) *part {
	if c.parts == nil {
		c.parts = map[int]*part{}
	}
	if c.parts[n] == nil {
		c.parts[n] = &part{out: time.Unix(0, 0)} // nobody knows what was before
	}
	return c.parts[n]
}

// fails notes that the source, or a partition of it, can't be read. What is of no partition, once one was read, is of
// how many there are and where, and says nothing of whether they can be.
func (c *contact) fails(err error, now time.Time) {
	n := wholeSource
	var of *kafka.PartitionError
	if errors.As(err, &of) {
		n = of.Partition
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.of(n)
	if n == wholeSource && !p.heard.IsZero() {
		return
	}
	if p.out.IsZero() {
		p.out = p.heard
	}
	p.failed = now
}

// failing tells whether anything fails; c.mu is held.
func (c *contact) failing() bool {
	for _, p := range c.parts {
		if !p.failed.IsZero() {
			return true
		}
	}
	return false
}

// works notes that a part of the source can be read again, whether it is read now or not.
func (c *contact) works(n int, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.again(c.of(n), now)
}

// again notes that p works, whether it failed or not; c.mu is held.
func (c *contact) again(p *part, now time.Time) {
	if !p.failed.IsZero() {
		p.failed = time.Time{}
		c.returns(now, now.Sub(p.out))
	}
}

// hears notes that a batch was read, and so that the source could be asked for it then. It tells whether nothing fails
// any more.
func (c *contact) hears(b *decode.Batch, now time.Time) (works bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range []int{b.Partition, wholeSource} {
		p := c.of(n)
		if !p.failed.IsZero() && !b.Asked.After(p.failed) {
			continue // it has waited to be read since before that
		}
		c.again(p, now)
		if p.heard = later(p.heard, b.Asked); !p.heard.Before(c.until) {
			p.out = time.Time{}
		}
	}
	return !c.failing()
}

// rests notes that all is done that had happened.
func (c *contact) rests(now time.Time) { c.rested = now }

// wakes notes that something happens. Where the process was stopped the source may have been away meanwhile.
func (c *contact) wakes(now time.Time) {
	if away := now.Sub(c.rested); away > c.every+stoppedLeast {
		c.away(now, away)
	}
}

// restarts notes since when any of so many partitions may have been out of reach, as an earlier run has it.
func (c *contact) restarts(now, since time.Time, partitions int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for n := range partitions {
		c.of(n).out = since
	}
	c.returns(now, now.Sub(since))
}

// since is since when a partition may have been out of reach if nothing more is read.
func (c *contact) since() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	var since time.Time
	for n, p := range c.parts {
		at := p.heard
		if !p.out.IsZero() {
			at = p.out
		}
		if n != wholeSource && (since.IsZero() || at.Before(since)) {
			since = at
		}
	}
	return since
}

// away notes that nobody could have told whether the source was there, for so long.
func (c *contact) away(now time.Time, away time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.parts {
		if p.out.IsZero() {
			p.out = now.Add(-away)
		}
	}
	c.returns(now, away)
}

// returns notes that the source was out of reach: those who write are waited for as long again.
func (c *contact) returns(now time.Time, away time.Duration) {
	if !c.alone {
		c.until = later(c.until, now.Add(min(away, catchUpMost)))
	}
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// takes notes that a batch was read, nil: that time passes, and tells for how long those who write to the source are
// still waited for; 0: they are not. returned tells whether the batch is of what was there by the time until which they
// are. begins says once an outage that somebody is waited for.
func (c *contact) takes(now time.Time, b *decode.Batch) (left time.Duration, returned, begins bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	left = max(0, c.until.Sub(now))
	switch {
	case left > 0:
		begins, c.told = !c.told, true
	case !c.failing():
		c.told = false
	}
	if b == nil {
		return left, left > 0, begins
	}
	p := c.of(b.Partition)
	returned = b.Len() > 0 && p.read.Before(c.until)
	switch {
	case b.Lag == 0, b.CaughtUp && !b.Asked.Before(c.until.Add(catchUpMost)):
		// Caught up with what is there and of a transaction that is open, not so soon after an outage.
		p.read, p.goal = later(p.read, b.Asked), 0
	case p.goal > 0 && b.Next >= p.goal:
		p.read, p.goal = later(p.read, p.asked), 0
	}
	if b.Lag > 0 && !b.Asked.IsZero() && (p.goal == 0 || p.asked.Before(c.until)) {
		p.goal, p.asked = b.Next+b.Lag, b.Asked
	}
	return left, left > 0 || returned || p.read.Before(c.until), begins
}
