package decode

import (
	"cmp"
	"context"
	"errors"
	"io"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/isowatch/isowatch/ingest/assemble"
	"github.com/isowatch/isowatch/ingest/codec"
	"github.com/isowatch/isowatch/ingest/codec/protobuf"
	"github.com/isowatch/isowatch/ingest/source"
)

// Defaults of Options.
const (
	RecordsMaxDefault = 4096
	BytesMaxDefault   = 1 << 20
	QueueMaxDefault   = 16
	WaitingMaxDefault = 4 << 20
)

// Content types. Messages that name none are JSON.
const (
	ContentTypeJSON     = "application/json"
	ContentTypeProtobuf = protobuf.ContentType
)

// Options say how to decode. The zero Options are usable.
type Options struct {
	// Workers is how many goroutines decode; default as many as there are
	// processors.
	Workers int
	// RecordsMax and BytesMax bound a batch: it has at most so many messages, and
	// ends with the one that reaches so many bytes. Defaults 4096, 1 MiB.
	RecordsMax int
	BytesMax   int64
	// QueueMax is how many batches wait to be decoded or read at most, default 16,
	// and WaitingMax how many bytes they have in memory, default 4 MiB. A larger
	// batch waits alone.
	QueueMax   int
	WaitingMax int64
	// Mapping says where records are in JSON of another form; nil: it is as codec has it.
	Mapping *codec.Mapping
	// LogWait is how long a record waits at most for the change that says where in the database's log it is, and
	// half of how long a change waits for its record. Default LogWaitDefault.
	LogWait time.Duration
	// Assembly bounds what waits of transactions that are told in events.
	Assembly assemble.Options

	// OnHeader is told the header line with which a file begins, by whichever goroutine decodes it;
	// may be nil. What it says is for the caller to consider: nothing here depends on it.
	OnHeader func(line []byte)

	// What was stored before a restart, by partition; absent ones are new. Offsets are
	// the source's, where it begins to read: Batch.Resume. Messages before Seen,
	// Batch.Next, were handed out: they are passed over, but for events of transactions
	// that were open, of which States tells: Batch.State.
	Offsets, Seen map[int]int64
	States        map[int][]byte
}

// ErrClosed is what Read returns after Close.
var ErrClosed = errors.New("the decoder is closed")

// Stage decodes what a source hands out.
type Stage struct {
	opts  Options
	queue chan *job // in the source's order
	work  chan *job
	room  *semaphore.Weighted

	waiting atomic.Int64 // bytes
	cancel  context.CancelFunc
	running sync.WaitGroup

	// Of the goroutine that calls Read.
	first *job     // of the queue, if it was taken and is not done
	last  []*Batch // to be handed out before err
	err   error
	join  joiner
	logs  logs
}

// job is a part of a batch on its way.
type job struct {
	in     source.Batch
	seen   int64 // messages before it were handed out before
	anew   bool  // what came before in the partition was another input
	weight int64
	parts  *shared
	done   chan struct{} // closed when a worker has set what follows

	out     *Batch
	events  []event
	changes []logChange
	latest  int64 // of the messages' times
	// replaced: the input ends with these messages, and next is an offset in another one.
	replaced bool
	err      error // of the source: there is no batch
}

// New starts to read and decode src, which it does not close. The Stage is to be
// closed before src.
func New(src source.Source, opts Options) *Stage {
	opts.complete()
	ctx, cancel := context.WithCancel(context.Background())
	s := &Stage{opts: opts, cancel: cancel, queue: make(chan *job, opts.QueueMax), work: make(chan *job),
		room: semaphore.NewWeighted(opts.WaitingMax), join: newJoiner(&opts),
		logs: newLogs(&opts)}
	s.running.Go(func() { s.read(ctx, src) })
	for range opts.Workers {
		s.running.Go(func() {
			w := newWorker(&opts)
			for j := range s.work {
				w.decode(j)
				close(j.done)
			}
		})
	}
	return s
}

func (o *Options) complete() {
	o.Workers = cmp.Or(max(o.Workers, 0), runtime.GOMAXPROCS(0))
	o.RecordsMax = cmp.Or(max(o.RecordsMax, 0), RecordsMaxDefault)
	o.BytesMax = cmp.Or(max(o.BytesMax, 0), BytesMaxDefault)
	o.QueueMax = cmp.Or(max(o.QueueMax, 0), QueueMaxDefault)
	o.WaitingMax = cmp.Or(max(o.WaitingMax, 0), WaitingMaxDefault)
	o.LogWait = cmp.Or(max(o.LogWait, 0), LogWaitDefault)
}

// read reads the source until it ends or ctx does.
func (s *Stage) read(ctx context.Context, src source.Source) {
	defer close(s.work)
	defer close(s.queue)
	seen := newPlaces(&s.opts)
	for {
		b, err := src.Read(ctx)
		if err != nil {
			j := &job{err: err, done: make(chan struct{})}
			close(j.done)
			_ = s.put(ctx, j) // if it fails, nobody reads any more
			return
		}
		before, anew := seen.follow(&b)
		parts := newShared(b.Free)
		for more := true; more; anew = false {
			j := &job{done: make(chan struct{}), seen: before, anew: anew, parts: parts}
			parts.add()
			j.in, j.weight, more = s.opts.cut(&b)
			if s.put(ctx, j) != nil {
				return
			}
			s.work <- j
		}
		parts.release()
	}
}

// shared counts the parts of a batch that are not decoded yet, to free it after the
// last one.
type shared struct {
	left atomic.Int64
	free func()
}

// newShared counts one for who makes the parts.
func newShared(free func()) *shared {
	s := &shared{free: free}
	s.left.Store(1)
	return s
}

func (s *shared) add() { s.left.Add(1) }

func (s *shared) release() {
	if s.left.Add(-1) == 0 && s.free != nil {
		s.free()
	}
}

// put waits for room and puts j in line.
func (s *Stage) put(ctx context.Context, j *job) error {
	j.weight = min(j.weight, s.opts.WaitingMax)
	if err := s.room.Acquire(ctx, j.weight); err != nil {
		return err
	}
	s.waiting.Add(j.weight)
	select {
	case s.queue <- j:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// recordOverhead is about what a message takes in memory beside its bytes, before
// and after it is decoded.
const recordOverhead = 256

// cut takes the first part of b off it, and tells whether more is left.
func (o *Options) cut(b *source.Batch) (part source.Batch, weight int64, more bool) {
	bytes, n := int64(0), 0
	for n < len(b.Messages) && n < o.RecordsMax && bytes < o.BytesMax {
		m := &b.Messages[n]
		bytes += int64(len(m.Key) + len(m.Value))
		n++
	}
	weight = bytes + int64(n+1)*recordOverhead
	part = *b
	if n == len(b.Messages) {
		return part, weight, false
	}
	part.Messages, b.Messages = b.Messages[:n:n], b.Messages[n:]
	part.Next = b.Messages[0].Pos.Offset
	part.Lag += b.Next - part.Next
	part.CaughtUp = false
	b.Gaps, b.Midst = nil, false // told with the first part
	return part, weight, true
}

// Read returns the next batch, decoded. Its errors are the source's, io.EOF at the
// end of the input among them, after all that was read before; then it goes on
// to return the same. It is also over when ctx is. Read is called by one goroutine.
func (s *Stage) Read(ctx context.Context) (*Batch, error) {
	for {
		if len(s.last) > 0 {
			b := s.last[0]
			s.last = s.last[1:]
			return b, nil
		}
		if s.err != nil {
			return nil, s.err
		}
		b, err := s.next(ctx)
		if err != nil || b != nil {
			return b, err
		}
	}
}

// next is Read for one job; the batch is nil if there is nothing in it that is not known, or it waits for its place in
// the log.
func (s *Stage) next(ctx context.Context) (*Batch, error) {
	if b := s.logs.next(time.Now(), false); b != nil {
		return b, nil
	}
	var due <-chan time.Time
	if at, waits := s.logs.due(); waits {
		timer := time.NewTimer(time.Until(at))
		defer timer.Stop()
		due = timer.C
	}
	if s.first == nil {
		select {
		case j, ok := <-s.queue:
			if !ok {
				s.err = ErrClosed
				return nil, s.err
			}
			s.first = j
		case <-due:
			return nil, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	select {
	case <-s.first.done:
	case <-due:
		return nil, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	j := s.first
	s.first = nil
	if s.err = j.err; s.err != nil {
		if errors.Is(s.err, io.EOF) {
			for b := s.logs.next(time.Now(), true); b != nil; b = s.logs.next(time.Now(), true) {
				s.last = append(s.last, b)
			}
			s.last = append(s.last, s.join.close()...)
		}
		return nil, nil
	}
	s.err = s.join.finish(j)
	s.room.Release(j.weight)
	s.waiting.Add(-j.weight)
	if s.err != nil {
		return nil, s.err
	}
	now := time.Now()
	for i := range j.changes {
		s.logs.change(j.out, &j.changes[i], now)
	}
	if j.out.Next >= j.seen || j.out.Len() > 0 {
		s.logs.take(j.out, now)
	}
	return nil, nil
}

// Waiting is how many batches wait to be decoded or read, and how many bytes they
// take. Any goroutine may call it.
func (s *Stage) Waiting() (batches int, bytes int64) { return len(s.queue), s.waiting.Load() }

// Capacity is what Waiting reaches at most.
func (s *Stage) Capacity() (batches int, bytes int64) { return s.opts.QueueMax, s.opts.WaitingMax }

// Close ends reading and decoding, and waits for the goroutines. What waited is
// dropped. It is not to be called during Read.
func (s *Stage) Close() {
	s.cancel()
	s.running.Wait()
	s.last, s.err = nil, ErrClosed
}
