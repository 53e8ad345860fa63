package deliver

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/isowatch/isowatch/internal/wait"
	"github.com/isowatch/isowatch/window/store"
)

// way is how a lane delivers.
type way struct {
	receiver Receiver
	filter   Filter
	over     chan struct{} // closed when there is another
}

func newWay(r Receiver, f Filter) *way {
	return &way{receiver: r, filter: f, over: make(chan struct{})}
}

// lane delivers to one receiver. Everything but way, wake and flushes belongs to the
// goroutine in run.
type lane struct {
	name  string
	store store.Store
	way   atomic.Pointer[way]
	opt   Options

	wake chan struct{} // holds one: something may be new

	mu      sync.Mutex
	flushes []chan struct{} // closed once the outbox was seen empty

	tries *tries
	// taken are notices that need no further attempt, but are still in the
	// outbox as the store failed, with what came of them.
	taken map[string]Outcome
	wait  *backoff.ExponentialBackOff
}

func newLane(name string, st store.Store, r Receiver, opt Options) *lane {
	w := backoff.NewExponentialBackOff()
	w.InitialInterval, w.MaxInterval, w.Multiplier = opt.WaitMin, opt.WaitMax, 2
	l := &lane{name: name, store: st, opt: opt, wake: make(chan struct{}, 1), tries: newTries(),
		taken: map[string]Outcome{}, wait: w}
	l.way.Store(newWay(r, opt.Filters[name]))
	return l
}

func (l *lane) awake() { wait.Signal(l.wake) }

// flush returns a channel that is closed once the outbox was seen empty.
func (l *lane) flush() <-chan struct{} {
	done := make(chan struct{})
	l.mu.Lock()
	l.flushes = append(l.flushes, done)
	l.mu.Unlock()
	l.awake()
	return done
}

// run delivers until ctx ends.
func (l *lane) run(ctx context.Context) {
	for ctx.Err() == nil {
		l.mu.Lock()
		asked := len(l.flushes) // those who asked before the outbox is read
		l.mu.Unlock()
		batch, err := l.read(ctx)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			l.pause(ctx, l.way.Load(), Event{Outcome: StoreFailed, Err: err}, 0)
		case len(batch) == 0:
			l.flushed(asked)
			select {
			case <-l.wake:
			case <-ctx.Done():
			}
		default:
			l.work(ctx, batch)
		}
	}
}

// flushed answers the first n flushes.
func (l *lane) flushed(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, done := range l.flushes[:n] {
		close(done)
	}
	l.flushes = l.flushes[n:]
}

// read takes the beginning of the outbox.
func (l *lane) read(ctx context.Context) ([]store.Notice, error) {
	var batch []store.Notice
	err := l.store.Undelivered(ctx, l.name, l.tries.collect(&batch))
	if len(batch) == 0 && err == nil {
		clear(l.tries.of)
		clear(l.taken)
	}
	return batch, err
}

// work delivers a batch, until it is empty or an attempt fails: then the
// outbox is read again after the wait, as it may hold something new.
func (l *lane) work(ctx context.Context, batch []store.Notice) {
	for len(batch) > 0 && ctx.Err() == nil {
		i := l.tries.next(batch)
		if !l.deliver(ctx, batch[i]) {
			return
		}
		batch = append(batch[:i], batch[i+1:]...)
	}
}

// deliver takes one alert through the stages: dedupe, notify, record. It reports
// false after a failure, having waited.
func (l *lane) deliver(stop context.Context, a store.Notice) bool {
	ctx, cancel := withGrace(stop, l.opt.Grace)
	defer cancel()
	way := l.way.Load()
	e := Event{ID: a.ID, Attempt: l.tries.count(a.ID) + 1}
	outcome, taken := l.taken[a.ID]
	body, wanted := way.filter.wants(a.Body)
	switch {
	case taken:
	case !wanted:
		outcome = Filtered
	default:
		after, recoverable, err := way.receiver.Notify(ctx, body, a.ID)
		if e.Err = err; err != nil && recoverable {
			if stop.Err() != nil {
				return false
			}
			l.tries.failed(a.ID)
			e.Outcome = Retrying
			l.pause(stop, way, e, after)
			return false
		}
		if outcome = Delivered; err != nil {
			outcome = Refused
		}
	}
	l.taken[a.ID], e.Outcome = outcome, outcome
	if err := l.store.Delivered(ctx, l.name, a.ID); err != nil {
		l.tries.failed(a.ID)
		e.Outcome, e.Err = StoreFailed, err
		l.pause(stop, way, e, 0)
		return false
	}
	delete(l.taken, a.ID)
	if outcome == Filtered { // that says nothing of the receiver
		delete(l.tries.of, a.ID)
	} else {
		l.tries.delivered(a.ID)
		l.wait.Reset()
	}
	l.tell(e)
	return true
}

// pause tells of a failure and waits: as long as the receiver asked for, else
// longer with every failure; not longer than until there is another way.
func (l *lane) pause(ctx context.Context, way *way, e Event, after time.Duration) {
	e.Wait = min(l.wait.NextBackOff(), l.opt.WaitMax)
	if after > 0 {
		e.Wait = max(e.Wait, min(after, retryAfterMax))
	}
	l.tell(e)
	if !way.rest(ctx, e.Wait) && ctx.Err() == nil {
		l.wait.Reset()
	}
}

// resend tells a Resender of what is active, again and again until ctx ends. A failure
// is made up for the next time, or when the receiver wants to hear again.
func (l *lane) resend(ctx context.Context) {
	for ctx.Err() == nil {
		way := l.way.Load()
		if r, ok := way.receiver.(Resender); ok {
			l.resendTo(ctx, way, r)
			continue
		}
		select {
		case <-way.over:
		case <-ctx.Done():
		}
	}
}

// resendTo does so until there is another way.
func (l *lane) resendTo(ctx context.Context, way *way, r Resender) {
	for failed := 0; ; {
		e := Event{Outcome: Resent}
		var after time.Duration
		after, e.Err = r.Resend(ctx, l.active(way.filter))
		e.Wait = max(ResendDefault, min(after, retryAfterMax))
		if ctx.Err() != nil {
			return
		}
		if failed++; e.Err == nil {
			failed = 0
		} else {
			e.Outcome, e.Attempt = Retrying, failed
		}
		if l.tell(e); !way.rest(ctx, e.Wait) {
			return
		}
	}
}

// rest waits so long; false if the way, or the context, is over before.
func (w *way) rest(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-w.over:
	case <-ctx.Done():
	}
	return false
}

// active is what the receiver is to hear of again.
func (l *lane) active(f Filter) []Active {
	all := l.opt.Active()
	out := make([]Active, 0, len(all))
	for _, a := range all {
		if f.wantsActive(a) {
			out = append(out, a)
		}
	}
	return out
}

func (l *lane) tell(e Event) {
	e.Receiver = l.name
	l.opt.Observe(e)
}

// withGrace is a context that ends a while after its parent.
func withGrace(parent context.Context, grace time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(parent))
	stop := context.AfterFunc(parent, func() {
		t := time.NewTimer(grace)
		defer t.Stop()
		select {
		case <-t.C:
			cancel()
		case <-ctx.Done():
		}
	})
	return ctx, func() {
		stop()
		cancel()
	}
}

const (
	// batchMax and batchBytes bound how many notices a lane holds at once, and how many
	// bytes of them (but for one that is larger by itself): what waits for a receiver is
	// on the disk.
	batchMax   = 64
	batchBytes = 4 << 20
	// scanMax bounds how many notices are looked at for a batch, and with it how many a
	// lane remembers to have failed.
	scanMax = 256
	// troubledMax bounds how many of a batch may be ones that keep failing, so
	// that they can't fill it.
	troubledMax = 16
	// triesMax is how often the oldest notice is tried before younger ones get
	// their turn: it may be the notice that is at fault, not the receiver.
	triesMax = 5
	// aloneMax is how often a notice fails again while others are delivered until it is
	// the one that is at fault. Before, it was the receiver.
	aloneMax = 2
	// holdMax is how often a notice fails until others about its groups do not wait for
	// it any more.
	holdMax = 64
)

// tries are the failed attempts by notice id, until it is delivered.
type tries struct {
	of map[string]*try
	// taken is how many notices the receiver has taken.
	taken int
}

// try is what is known of a notice that failed.
type try struct {
	failed int // how often, or how often that counts
	alone  int // how often while others were delivered
	since  int // tries.taken when it failed last
}

func newTries() *tries { return &tries{of: map[string]*try{}} }

// failed notes a failed attempt.
func (t *tries) failed(id string) {
	x := t.of[id]
	if x == nil {
		x = &try{}
		t.of[id] = x
	} else if t.taken > x.since {
		x.alone++
	}
	x.failed++
	x.since = t.taken
}

// count is how often a notice has failed.
func (t *tries) count(id string) int {
	if x := t.of[id]; x != nil {
		return x.failed
	}
	return 0
}

// delivered notes that the receiver has taken a notice. Those that failed before may
// have done so as it was down: they are tried once more before what came after them.
func (t *tries) delivered(id string) {
	delete(t.of, id)
	t.taken++
	for _, x := range t.of {
		if x.alone < aloneMax {
			x.failed = min(x.failed, triesMax-1)
		}
	}
}

// troubled tells whether a notice has failed so often that others may pass it.
func (t *tries) troubled(id string) bool { return t.count(id) >= triesMax }

// holds tells whether others about the same groups may not.
func (t *tries) holds(id string) bool {
	x := t.of[id]
	return x != nil && x.alone < aloneMax && x.failed < holdMax
}

// collect returns a function for store.Undelivered that fills batch: the oldest, but
// for troubled notices beyond troubledMax, and those about a group of which an older
// notice is troubled: a group's end that comes before its beginning would leave an
// incident open for ever. They do not wait for one that is at fault itself.
func (t *tries) collect(batch *[]store.Notice) func(store.Notice) bool {
	troubled, scanned, size := 0, 0, 0
	passed := map[string]bool{} // the groups of what others may pass
	return func(a store.Notice) bool {
		scanned++
		take, isTroubled, about := true, t.troubled(a.ID), []string(nil)
		if isTroubled || len(passed) > 0 {
			about = groups(a.Body)
			take = !slices.ContainsFunc(about, func(g string) bool { return passed[g] })
		}
		if !take || isTroubled && t.holds(a.ID) {
			for _, g := range about {
				passed[g] = true
			}
		}
		if isTroubled && take {
			troubled++
			take = troubled <= troubledMax
		}
		if take && (len(*batch) == 0 || size+len(a.Body) <= batchBytes) {
			*batch = append(*batch, a)
			size += len(a.Body)
		} else if take {
			return false
		}
		return len(*batch) < batchMax && scanned < scanMax
	}
}

// groups are those that a notice is about; none if it can't be read.
func groups(body []byte) []string {
	n, err := parse(body)
	if err != nil {
		return nil
	}
	return n.about()
}

// next is the place in batch of the notice to try: the oldest of those that
// failed least, where failing less than triesMax times is as good as never.
func (t *tries) next(batch []store.Notice) int {
	best, least := 0, -1
	for i, a := range batch {
		n := max(0, t.count(a.ID)-triesMax+1)
		if least < 0 || n < least {
			best, least = i, n
		}
	}
	return best
}
