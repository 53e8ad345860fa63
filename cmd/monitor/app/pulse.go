package app

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// pulse tells whether goroutines get on with their work. A goroutine that dies ends
// the program; one that hangs would not be seen without this. The zero value is
// ready, and safe for concurrent use.
type pulse struct {
	mu    sync.Mutex
	beats map[string]*beat
}

// beat is one goroutine's: when it began what it is doing, in Unix nanoseconds; 0
// while it waits for work.
type beat struct{ since atomic.Int64 }

// stuckAfter is for how long a piece of work may take. Searches are bounded in
// conflicts, and the longest take seconds; what takes this long waits for something
// that does not come, and a restart goes on where it was.
const stuckAfter = 5 * time.Minute

// of is the beat of a goroutine, by its name.
func (p *pulse) of(name string) *beat {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.beats == nil {
		p.beats = map[string]*beat{}
	}
	b := p.beats[name]
	if b == nil {
		b = &beat{}
		p.beats[name] = b
	}
	return b
}

// work says that something is begun, or is gone on with.
func (b *beat) work(now time.Time) { b.since.Store(now.UnixNano()) }

// rest says that there is nothing to do.
func (b *beat) rest() { b.since.Store(0) }

// for how long b has been at what it does.
func (b *beat) busy(now time.Time) time.Duration {
	since := b.since.Load()
	if since == 0 {
		return 0
	}
	return max(0, time.Duration(now.UnixNano()-since))
}

// stuck lists who has not got on for stuckAfter, sorted.
func (p *pulse) stuck(now time.Time) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []string
	for name, b := range p.beats {
		if d := b.busy(now); d >= stuckAfter {
			out = append(out, fmt.Sprintf("%s: has been at one piece of work for %s", name, d.Round(time.Second)))
		}
	}
	slices.Sort(out)
	return out
}

// longest is for how long whoever is longest at one piece of work has been.
func (p *pulse) longest(now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	var most time.Duration
	for _, b := range p.beats {
		most = max(most, b.busy(now))
	}
	return most
}
