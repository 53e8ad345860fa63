// Package limit stops work that takes too long, or too much memory: work asks often whether
// it is stopped, and then ends soon and says what it has found.
//
// Time is counted for each Run, memory for the whole process: the garbage collector
// can't tell whose it is. So all that runs is stopped when the process takes too much,
// and a Run tells whether it was Alone, for if not it may fit when it is tried again.
package limit

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"

	"github.com/isowatch/isowatch/incremental/verdict"
)

// Parts of the memory limit, in percent. The collector keeps the process below
// collectAt for as long as it can. If what is in use needs more than liveAt, it has so
// little room left that it does nothing but collect, over and over: work is stopped
// then, or when the process reaches stopAt in spite of it.
const (
	liveAt    = 84
	collectAt = 92
	stopAt    = 97
)

// sampleEvery is how often memory is looked at. Memory can be filled at some
// gigabytes a second, which is megabytes in that time.
const sampleEvery = 2 * time.Millisecond

// MemoryMin is the least memory limit that makes sense: the program itself takes
// most of it.
const MemoryMin = 32 << 20

// ours is the part of the memory there is that Most says.
const ours = 0.75

// Most is how much memory work should take that nobody limits: three quarters of what the process's control group may
// have, or the machine has, so that it ends by itself and not by the system's hand. 0: neither is known.
func Most() uint64 {
	most, err := memlimit.ApplyRatio(memlimit.ApplyFallback(memlimit.FromCgroup, memlimit.FromSystem), ours)()
	if err != nil {
		return 0
	}
	return most
}

// Guard watches the memory of the process and makes Runs.
type Guard struct {
	memory uint64
	quit   chan struct{}
	gone   sync.WaitGroup
	undo   func()

	mu   sync.Mutex
	runs map[*Run]struct{}
}

// New begins to watch; 0 bytes are no limit. Close must be called.
func New(memory uint64) *Guard {
	used, fixed := Used(), uint64(0)
	if now, _, ok := resident(); ok && now > used {
		fixed = now - used // code, which the runtime does not count
	}
	g := Watch(memory, func() Memory {
		m := read()
		return Memory{Taken: m.Taken + fixed, Live: m.Live + fixed}
	})
	if memory > 0 {
		before := debug.SetMemoryLimit(int64(memory/100*collectAt - min(fixed, memory/2)))
		g.undo = func() { debug.SetMemoryLimit(before) }
	}
	return g
}

// Watch is New with another way to look at memory; the collector is left alone.
func Watch(memory uint64, used func() Memory) *Guard {
	g := &Guard{memory: memory, quit: make(chan struct{}), undo: func() {}, runs: map[*Run]struct{}{}}
	if memory > 0 {
		g.gone.Go(func() { g.watch(used) })
	}
	return g
}

// Close ends watching.
func (g *Guard) Close() {
	close(g.quit)
	g.gone.Wait()
	g.undo()
}

func (g *Guard) watch(used func() Memory) {
	tick := time.NewTicker(sampleEvery)
	defer tick.Stop()
	for {
		select {
		case <-g.quit:
			return
		case <-tick.C:
		}
		if m := used(); m.Taken < g.memory/100*stopAt && m.Live < g.memory/100*liveAt {
			continue
		}
		g.mu.Lock()
		for r := range g.runs {
			r.Stop(verdict.Memory)
		}
		g.mu.Unlock()
	}
}

// Begin makes a Run that may last for timeout; 0 is no limit. End must be called.
func (g *Guard) Begin(timeout time.Duration) *Run {
	r := &Run{g: g, done: make(chan struct{})}
	g.mu.Lock()
	for other := range g.runs {
		other.company.Store(true)
		r.company.Store(true)
	}
	g.runs[r] = struct{}{}
	g.mu.Unlock()
	if timeout > 0 {
		r.until = time.Now().Add(timeout)
		r.timer = time.AfterFunc(timeout, func() { r.Stop(verdict.Timeout) })
	}
	return r
}

// Run is a piece of work under the limits. Its methods may be called from any
// goroutine.
type Run struct {
	g       *Guard
	reason  atomic.Uint32
	done    chan struct{} // closed when it is stopped
	company atomic.Bool
	timer   *time.Timer // nil: no limit
	until   time.Time
}

// Until is when it is stopped for lack of time; zero: never.
func (r *Run) Until() time.Time { return r.until }

// Stopped is the limit that was reached, which does not change any more, or
// NoReason. It costs an atomic load.
func (r *Run) Stopped() verdict.Reason { return verdict.Reason(r.reason.Load()) }

// Done is closed when it is stopped.
func (r *Run) Done() <-chan struct{} { return r.done }

// Alone tells whether no other Run has been there since it began.
func (r *Run) Alone() bool { return !r.company.Load() }

// Err is nil, or a *Error if the Run is stopped.
func (r *Run) Err() error {
	if reason := r.Stopped(); reason != verdict.NoReason {
		return &Error{reason}
	}
	return nil
}

// End says that the work is done, and its memory free.
func (r *Run) End() {
	if r.timer != nil {
		r.timer.Stop()
	}
	r.g.mu.Lock()
	delete(r.g.runs, r)
	r.g.mu.Unlock()
}

// Stop stops it for a reason of the caller's, unless it is stopped already.
func (r *Run) Stop(why verdict.Reason) {
	if r.reason.CompareAndSwap(0, uint32(why)) {
		close(r.done)
	}
}

// Error says that work ended because of a limit.
type Error struct{ Reason verdict.Reason }

func (e *Error) Error() string { return fmt.Sprintf("stopped by the limit of %s", e.Reason) }

// Reason is the limit that an error is about, or NoReason.
func Reason(err error) verdict.Reason {
	var e *Error
	if errors.As(err, &e) {
		return e.Reason
	}
	return verdict.NoReason
}

// Memory is what the process has, in bytes.
type Memory struct {
	Taken uint64 // from the system, less what was given back
	Live  uint64 // what the last collection left, and what is never collected
}

// read is the memory that the runtime counts.
func read() Memory {
	const total, released, objects, unused, free, live = 0, 1, 2, 3, 4, 5
	s := [...]metrics.Sample{
		total:    {Name: "/memory/classes/total:bytes"},
		released: {Name: "/memory/classes/heap/released:bytes"},
		objects:  {Name: "/memory/classes/heap/objects:bytes"},
		unused:   {Name: "/memory/classes/heap/unused:bytes"},
		free:     {Name: "/memory/classes/heap/free:bytes"},
		live:     {Name: "/gc/heap/live:bytes"},
	}
	metrics.Read(s[:])
	at := func(i int) uint64 { return s[i].Value.Uint64() }
	taken := at(total) - at(released)
	return Memory{Taken: taken, Live: taken - at(objects) - at(unused) - at(free) + at(live)}
}

// HeapLive is what of the heap the last collection found in use, in bytes.
func HeapLive() uint64 {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	return live[0].Value.Uint64()
}

// Used is the memory that the runtime has taken from the system, less what it gave
// back.
func Used() uint64 { return read().Taken }

// Peak is the most memory that the process has had: its greatest resident size,
// where the system tells it.
func Peak() uint64 {
	if _, peak, ok := resident(); ok {
		return peak
	}
	return Used()
}

// heapLeast is the heap at which the runtime begins to collect, for a percentage of 100.
const heapLeast = 4 << 20

// Room lets the heap grow by a percentage of what lives before it is collected, and by so many bytes in any case:
// a collector that keeps a heap of a few megabytes small takes as long as the work itself. A limit of memory goes
// before both. What it returns puts back what was.
func Room(percent int, bytes uint64) (undo func()) {
	before := debug.SetGCPercent(max(percent, int(bytes*100/heapLeast)))
	over := &atomic.Bool{}
	afterCollection(func() bool {
		if over.Load() {
			return false
		}
		debug.SetGCPercent(max(percent, int(bytes*100/max(HeapLive(), heapLeast))))
		return true
	})
	return func() {
		over.Store(true)
		debug.SetGCPercent(before)
	}
}

// afterCollection calls f after each collection until it answers false.
func afterCollection(f func() bool) {
	type sentinel struct{ self *byte } // with a pointer, so that it is no part of a block of tiny objects
	var again func(*sentinel)
	again = func(s *sentinel) {
		if f() {
			runtime.SetFinalizer(s, again)
		}
	}
	runtime.SetFinalizer(&sentinel{new(byte)}, again)
}
