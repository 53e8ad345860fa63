package app

import (
	"cmp"
	"errors"
	"sync"
	"time"

	"github.com/isowatch/isowatch/ingest/source/kafka"
)

// contact is whether the source can be read, and until when those who write to it are waited for: they may not have
// reached it either, and try again ever more rarely. It has no clock. Any goroutine may say that
// it fails, and works; all else is one's.
type contact struct {
	every   time.Duration // something happens at least so often, unless the process is stopped
	waitMax int           // so much may wait until those who write have caught up; more is not read
	// alone: nobody is waited for. Where an input ends is known from its beginning, and into a file they can write.
	alone bool

	mu     sync.Mutex
	parts  map[int]*part // the source's, by partition; wholeSource is what is of none
	since  time.Time     // then, somebody listens
	rested time.Time     // when what happened last had been done
	until  time.Time     // those who write may not have caught up
	told   bool          // that they are waited for
	waits  int           // how much does, as order.Options.MaxBuffered counts
}

// part is what is known of a part of the source. It works again when all do that failed, not when another one does.
type part struct {
	fails bool
	heard time.Time // last; zero: not since somebody listens
	// out is when it was heard of last before it failed; zero: it did not since those who write have caught up. Who failed to
	// write then has tried ever since, though it may have worked in between.
	out time.Time
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

// fails notes that the source, or a partition of it, can't be read.
func (c *contact) fails(err error) {
	n := wholeSource
	var of *kafka.PartitionError
	if errors.As(err, &of) {
		n = of.Partition
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.of(n)
	if p.out.IsZero() {
		p.out = cmp.Or(p.heard, c.since)
	}
	p.fails = true
}

// failing tells whether anything fails; c.mu is held.
func (c *contact) failing() bool {
	for _, p := range c.parts {
		if p.fails {
			return true
		}
	}
	return false
}

// works notes that a part of the source can be read again, whether it is read now or not.
func (c *contact) works(n int, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.of(n); p.fails {
		p.fails = false
		c.returns(now, now.Sub(p.out))
	}
}

// hears notes that a partition was read, and so that the source can be asked. It tells whether nothing fails any more.
func (c *contact) hears(partition int, now time.Time) (works bool) {
	c.works(wholeSource, now)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range []int{partition, wholeSource} {
		p := c.of(n)
		if p.heard = now; !now.Before(c.until) {
			p.out = time.Time{}
		}
	}
	return !c.failing()
}

// rests notes that all is done that had happened. It tells whether to read on: where too much waits, what more there is is
// read when nothing waits any more, and nobody is listened to until then, so that it is no outage.
func (c *contact) rests(now time.Time) (reads bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rested = now
	if reads = c.waits < c.waitMax || !now.Before(c.until); !reads {
		c.since = now
		for _, p := range c.parts {
			if !p.fails {
				p.heard = time.Time{}
			}
		}
	}
	return reads
}

// wakes notes that something happens. Where the process was stopped the source may have been away meanwhile.
func (c *contact) wakes(now time.Time) {
	if away := now.Sub(c.rested); away > c.every+stoppedLeast {
		c.away(now, away)
	}
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
	if c.alone {
		return
	}
	if until := now.Add(min(away, catchUpMost)); until.After(c.until) {
		c.until = until
	}
}

// takes notes that so many records were read, or none as time passes, and tells for how long those who write to the source
// are still waited for, and what was read with them; 0: it need not. begins says so once an outage.
func (c *contact) takes(now time.Time, records int, bytes int64) (left time.Duration, begins bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	left = max(0, c.until.Sub(now))
	switch {
	case left > 0:
		c.waits += 2*records + int(bytes/heavyWaiting) // each may begin a session
		begins, c.told = !c.told, true
	case !c.failing(): // else some may wait on, until window.idle_after passes over what fails again
		c.waits, c.told = 0, false
	}
	return left, begins
}
