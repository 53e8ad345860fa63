package deliver

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/isowatch/isowatch/window/store"
)

// Receiver takes alerts. Implementations are called by one goroutine at a time.
type Receiver interface {
	// Notify hands over one notice, as JSON. It returns nil once the receiver
	// has taken it. Otherwise recoverable tells whether another attempt may
	// help, and retryAfter how long the receiver asked to be left alone; 0 if
	// it did not say. The error holds no secrets.
	Notify(ctx context.Context, body []byte, id string) (retryAfter time.Duration, recoverable bool, err error)
	// Close gives up connections.
	Close() error
}

// Options are the times of a Dispatcher. Zero values mean the defaults.
type Options struct {
	// Observe is told of every attempt, for logs and metrics; nil: nobody is. It is called by
	// several goroutines and must not block.
	Observe func(Event)
	// WaitMin and WaitMax bound the wait after a failure: it doubles from one
	// to the other, with a random part of up to half of it.
	WaitMin, WaitMax time.Duration
	// Grace is how long an attempt in progress may go on after a stop.
	Grace time.Duration
	// Filters say, by receiver, what it gets; without one it gets everything.
	Filters map[string]Filter
	// Active lists what is not over and not silenced, for a Resender, which is told
	// of it every ResendDefault, and at the start; nil: of nothing.
	Active func() []Active
}

// The defaults.
const (
	WaitMinDefault = 500 * time.Millisecond
	WaitMaxDefault = time.Minute
	GraceDefault   = 5 * time.Second
	ResendDefault  = time.Minute
)

// retryAfterMax bounds what a receiver may ask for.
const retryAfterMax = time.Hour

// Dispatcher delivers what the outbox holds, a lane per receiver, so that a slow
// or dead one stops nobody else.
type Dispatcher struct {
	lanes   []*lane
	stopped chan struct{} // closed when Run has returned
}

// New makes a dispatcher for receivers by the names under which the store keeps
// their outboxes.
func New(st store.Store, receivers map[string]Receiver, opt Options) *Dispatcher {
	if opt.Observe == nil {
		opt.Observe = func(Event) {}
	}
	opt.WaitMin = cmp.Or(opt.WaitMin, WaitMinDefault)
	opt.WaitMax = cmp.Or(opt.WaitMax, WaitMaxDefault)
	opt.Grace = cmp.Or(opt.Grace, GraceDefault)
	d := &Dispatcher{stopped: make(chan struct{})}
	for _, name := range slices.Sorted(maps.Keys(receivers)) {
		d.lanes = append(d.lanes, newLane(name, st, receivers[name], opt))
	}
	return d
}

// Run delivers until ctx ends, and returns when all lanes have stopped: at most
// Options.Grace later. It is called once.
func (d *Dispatcher) Run(ctx context.Context) {
	defer close(d.stopped)
	var wg sync.WaitGroup
	for _, l := range d.lanes {
		wg.Go(func() { l.run(ctx) })
		if l.opt.Active != nil {
			wg.Go(func() { l.resend(ctx) })
		}
	}
	wg.Wait()
}

// Replace has what is in the outbox of that name delivered in another way from now on,
// at once where the lane waits to try the old way again. It reports whether there is a
// lane of that name. An attempt may be in progress with the receiver from before: that
// one can be closed all the same, as what then fails is tried with the new one. It may be
// called by any goroutine.
func (d *Dispatcher) Replace(name string, r Receiver, f Filter) bool {
	i := slices.IndexFunc(d.lanes, func(l *lane) bool { return l.name == name })
	if i < 0 {
		return false
	}
	close(d.lanes[i].way.Swap(newWay(r, f)).over)
	return true
}

// Wake says that the outbox may hold something new. It never blocks and may be
// called by any goroutine.
func (d *Dispatcher) Wake() {
	for _, l := range d.lanes {
		l.awake()
	}
}

// ErrStopped is returned by Flush when Run returned first.
var ErrStopped = errors.New("delivery was stopped with alerts still to be delivered; they are in the store and are " +
	"delivered at the next start")

// Flush waits until the outbox of every receiver was seen empty: everything that
// was in it at the call has been delivered or refused. With a receiver that is down this takes until ctx ends,
// whose error it then returns.
func (d *Dispatcher) Flush(ctx context.Context) error {
	for _, l := range d.lanes {
		done := l.flush()
		select {
		case <-done:
		case <-ctx.Done():
			return ctx.Err()
		case <-d.stopped:
			select {
			case <-done:
			default:
				return ErrStopped
			}
		}
	}
	return nil
}

// Outcome is what came of an attempt; a closed set, fit for a metric's label.
type Outcome string

// The outcomes.
const (
	// Delivered: the receiver took it, and that is recorded.
	Delivered Outcome = "delivered"
	// Retrying: the receiver could not be reached or said try again.
	Retrying Outcome = "retrying"
	// Refused: the receiver will never take this alert. It stays in the store.
	Refused Outcome = "refused"
	// Filtered: the receiver is not to get it.
	Filtered Outcome = "filtered"
	// Resent: what is active was told again; the event has no ID.
	Resent Outcome = "resent"
	// StoreFailed: the outbox could not be read or written.
	StoreFailed Outcome = "store-failed"
)

// Event tells of one attempt. It holds no secrets.
type Event struct {
	Receiver string
	ID       string // of the alert; empty when the outbox could not be read, and of what is told again
	Outcome  Outcome
	Attempt  int           // for this alert since the start, from 1
	Wait     time.Duration // until the next attempt of this lane
	Err      error         // nil if delivered
}
