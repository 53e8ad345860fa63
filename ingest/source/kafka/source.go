package kafka

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/isowatch/isowatch/ingest/source"
	"github.com/isowatch/isowatch/internal/wait"
)

// ErrClosed is what Read returns after Close.
var ErrClosed = errors.New("the Kafka source is closed")

// Source reads a topic. It implements source.Source.
type Source struct {
	opts  Options
	conns *connections
	queue *queue

	cancel context.CancelFunc
	loops  sync.WaitGroup // partition loops
	others sync.WaitGroup // everything else
	ended  chan struct{}  // closed when UntilEnd's loops have ended

	topo    atomic.Pointer[topology]
	reading map[int]bool  // partitions that have a loop; of open, then of watch
	kick    chan struct{} // asks for a refresh of the topology
	closed  atomic.Bool

	tell sync.Mutex // one call of OnRetry or OnWarning at a time
}

var _ source.Source = (*Source)(nil)

// Open connects to the cluster, checks the topic and starts reading. While no
// broker can be reached it tries again, telling OnRetry, until ctx ends. It
// returns a *source.StartupError where trying again is no help: the topic is
// missing or compacted, rights are missing, credentials are refused, TLS does
// not fit. ctx governs opening only.
func Open(ctx context.Context, opts Options) (*Source, error) {
	if err := opts.complete(); err != nil {
		return nil, err
	}
	conns, err := opts.connect(opts.Topic)
	if err != nil {
		return nil, err
	}
	s := &Source{opts: opts, conns: conns, reading: map[int]bool{}, queue: newQueue(queueMax),
		ended: make(chan struct{}), kick: make(chan struct{}, 1)}
	if err := s.open(ctx); err != nil {
		conns.close()
		return nil, err
	}
	return s, nil
}

// open checks the topic and starts the loops.
func (s *Source) open(ctx context.Context) error {
	t, err := retryStartup(ctx, s, func() (*topology, error) { return s.check(ctx) })
	if err != nil {
		return err
	}
	s.topo.Store(t)
	var parts []*partition
	for n := range t.leaders {
		p, err := retryStartup(ctx, s, func() (*partition, error) { return s.begin(ctx, n) })
		if err != nil {
			return err
		}
		parts = append(parts, p)
	}
	s.queue.ends = s.opts.UntilEnd
	ctx, s.cancel = context.WithCancel(context.Background())
	for _, p := range parts {
		s.reading[p.n] = true
		p.q = s.queue.join(p.n)
	}
	for _, p := range parts { // they share the queue from the beginning
		s.loops.Go(func() { p.run(ctx) })
	}
	s.others.Go(func() { s.watch(ctx) })
	if s.opts.UntilEnd {
		s.others.Go(func() { s.loops.Wait(); close(s.ended) })
	}
	return nil
}

// begin finds where to begin in a partition, and to end.
func (s *Source) begin(ctx context.Context, n int) (*partition, error) {
	t := s.topology()
	p := &partition{s: s, n: n, id: t.id, end: forever, epoch: -1, told: noOffset, swell: swellFirst}
	var err error
	p.next = s.resumed(n)
	if was := s.opts.Offsets[source.IdentityKey(n)]; p.next >= 0 && was != 0 && was != identity(t.id) {
		g := source.Gap{Source: s.opts.Topic, Partition: n, From: p.next, To: p.next, Why: whyRecreated}
		if p.next, err = askOffset(ctx, s.conns.wire, t, s.opts.Topic, n, offsetEarliest); err != nil {
			return nil, s.reask(ctx, err)
		}
		p.lost = &g
	}
	if p.next < 0 {
		if p.next, err = s.startOffset(ctx, t, n); err != nil {
			return nil, s.reask(ctx, err)
		}
		p.midst = p.next > 0
	}
	if s.opts.UntilEnd {
		if p.end, err = askOffset(ctx, s.conns.wire, t, s.opts.Topic, n, offsetLatest); err != nil {
			return nil, s.reask(ctx, err)
		}
		if p.next > p.end {
			p.end = p.next + 1 // let the fetch find out that the log was replaced
		}
	}
	return p, nil
}

// resumed is the stored offset of a partition, -1 if there is none.
func (s *Source) resumed(n int) int64 {
	if o, ok := s.opts.Offsets[n]; ok && o >= 0 {
		return o
	}
	return noOffset
}

// retryStartup calls f until it succeeds, ctx ends, or trying again is no help.
func retryStartup[T any](ctx context.Context, s *Source, f func() (T, error)) (T, error) {
	retry := s.newRetry()
	for {
		v, err := f()
		if err == nil {
			return v, nil
		}
		var none T
		if ctx.Err() != nil {
			return none, ctx.Err()
		}
		if se := s.opts.startup(err); se != nil {
			return none, se
		}
		if hungUp(err) {
			if se := s.opts.probe(ctx, s.conns.wire); se != nil {
				return none, se
			}
		}
		s.retrying(fmt.Errorf("kafka topic %q: %w", s.opts.Topic, s.opts.explain(err)))
		if err := wait.Sleep(ctx, retry.NextBackOff()); err != nil {
			return none, err
		}
	}
}

// Read returns the next batch: that of the partition which is furthest behind by the
// broker's time. So records of all partitions come in about the order of their times,
// while each partition's come in its own.
func (s *Source) Read(ctx context.Context) (source.Batch, error) {
	for {
		if s.closed.Load() {
			return source.Batch{}, ErrClosed
		}
		if err := ctx.Err(); err != nil {
			return source.Batch{}, err
		}
		b, ok, wait := s.queue.get(time.Now())
		if ok {
			return b, nil
		}
		var late <-chan time.Time
		if wait > 0 {
			late = time.After(wait)
		}
		select {
		case <-s.queue.wake:
		case <-late:
		case <-ctx.Done():
		case <-s.ended:
			// Loops put before they end, so that what is not there now never comes.
			if b, ok, _ := s.queue.get(time.Now()); ok {
				return b, nil
			}
			if s.closed.Load() {
				return source.Batch{}, ErrClosed
			}
			return source.Batch{}, io.EOF
		}
	}
}

// Partitions is the number of partitions that the topic has, as last seen.
func (s *Source) Partitions() int { return len(s.topology().leaders) }

// Close ends all reading and closes the connections. What was queued and not
// read is dropped; its offsets were not stored, so that it comes again. A Read
// under way returns.
func (s *Source) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	s.cancel()
	s.conns.close()
	s.others.Wait() // first: the watcher starts loops
	s.loops.Wait()
	select {
	case <-s.ended:
	default:
		close(s.ended)
	}
	return nil
}

func (s *Source) topology() *topology { return s.topo.Load() }

// refresh asks the watcher for a new topology without waiting for it.
func (s *Source) refresh() { wait.Signal(s.kick) }

// reask asks for the topology at once, while opening, after an error, which it returns.
func (s *Source) reask(ctx context.Context, failed error) error {
	if t, err := askTopology(ctx, s.conns.wire, s.opts.Topic); err == nil {
		s.topo.Store(t)
	}
	return failed
}

// watch keeps the topology fresh and starts loops for partitions that were
// added. Those are read from their beginning: whatever is in them was written
// after the start.
func (s *Source) watch(ctx context.Context) {
	tick := time.NewTicker(s.opts.Refresh)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-s.kick:
		}
		t, err := askTopology(ctx, s.conns.wire, s.opts.Topic)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			s.retrying(fmt.Errorf("kafka topic %q: asking for its partitions: %w", s.opts.Topic, err))
		default:
			s.topo.Store(t)
			for n := range t.leaders {
				s.added(ctx, n)
			}
		}
		// However many loops ask, not more often than this.
		if wait.Sleep(ctx, s.opts.RetryMin) != nil {
			return
		}
	}
}

// added starts reading a partition that appeared.
func (s *Source) added(ctx context.Context, n int) {
	if s.reading[n] || s.opts.UntilEnd {
		return
	}
	s.reading[n] = true
	p := &partition{s: s, n: n, id: s.topology().id, end: forever, epoch: -1, told: noOffset, swell: swellFirst,
		q: s.queue.join(n), next: max(s.resumed(n), 0)}
	s.loops.Go(func() { p.run(ctx) })
}

func (s *Source) retrying(err error) { tell(s, s.opts.OnRetry, err) }

func (s *Source) warn(what string) { tell(s, s.opts.OnWarning, what) }

// tell calls f, if there is one, at most once at a time.
func tell[T any](s *Source, f func(T), what T) {
	s.tell.Lock()
	defer s.tell.Unlock()
	if f != nil {
		f(what)
	}
}
