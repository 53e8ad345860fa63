package app

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/isowatch/isowatch/internal/wait"
)

// How much waits for a history at most: enough to ride out a search that takes
// long, without making the ingest wait. An empty queue takes an entry of any size.
const (
	queueRecordsMax = 1 << 17
	queueEntriesMax = 1 << 13
)

// Bytes are bounded for all histories together: each may have queueShare of them, or
// less if there are many, whatever the others have; the rest is whose it is first.
const (
	queueBytesMax = 24 << 20
	queueShare    = 32 << 10
)

// pool is what queues may hold beyond their shares. Taking from it never waits.
type pool struct {
	share int64 // of each queue
	max   int64
	used  atomic.Int64
}

// newPool divides queueBytesMax among so many histories.
func newPool(histories int) *pool {
	n := int64(max(histories, 1))
	share := min(queueShare, queueBytesMax/2/n)
	return &pool{share: share, max: queueBytesMax - n*share}
}

// grow takes what a queue needs beyond its share to go from one size to another,
// if it is there or must.
func (p *pool) grow(from, to int64, must bool) bool {
	more := max(to-p.share, 0) - max(from-p.share, 0)
	if p.used.Add(more) > p.max && more > 0 && !must {
		p.used.Add(-more)
		return false
	}
	return true
}

// free is how much a queue of a size may still take.
func (p *pool) free(size int64) int64 {
	return max(p.share-size, 0) + max(p.max-p.used.Load(), 0)
}

// queued is an entry that waits for a history, and what it counts for there.
type queued struct {
	entry   *entry
	records int
	bytes   int64
}

// queue holds the entries that wait for one history: the ingest offers, the
// history's worker pops. It is bounded in records of that history, in entries, and in
// bytes together with others. What it has no room for may be left in the journal, and
// everything after it is too until the worker has taken it from there: entries are
// popped in their order.
type queue struct {
	recordsMax int
	entriesMax int
	pool       *pool

	mu      sync.Mutex
	items   []queued // a queue; out of it, from are gone
	from    int
	records int
	bytes   int64
	closed  bool
	// Left in the journal are the entries from left to last; left is 0 if there are
	// none. They have so many records of the history, and so many bytes there.
	left, last  uint64
	leftRecords int
	leftBytes   int64

	// Each holds one: something came, something went. Who waits for room is the ingest.
	came, went chan struct{}
}

func newQueue(records int, p *pool) *queue {
	return &queue{recordsMax: records, entriesMax: queueEntriesMax, pool: p,
		came: make(chan struct{}, 1), went: make(chan struct{}, 1)}
}

// offer puts x into the queue if it fits and nothing before it is left.
func (q *queue) offer(x queued) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.left == 0 && q.put(x)
}

// put puts x into the queue if it fits. The caller holds mu.
func (q *queue) put(x queued) bool {
	n := len(q.items) - q.from
	if n > 0 && (n >= q.entriesMax || q.records+x.records > q.recordsMax) ||
		!q.pool.grow(q.bytes, q.bytes+x.bytes, n == 0) {
		return false
	}
	q.items = append(q.items, x)
	q.records += x.records
	q.bytes += x.bytes
	wait.Signal(q.came)
	return true
}

// leave leaves x, which is in the journal, there.
func (q *queue) leave(x queued) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.left == 0 {
		q.left = x.entry.number
	}
	q.last = x.entry.number
	q.leftRecords += x.records
	q.leftBytes += x.entry.size
	wait.Signal(q.came)
}

// backlog is what is left in the journal.
func (q *queue) backlog() (records int, bytes int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.leftRecords, q.leftBytes
}

// pop waits for the next entry, which load takes from the journal where it was left there. It is nil when the queue
// is closed and nothing waits, or ctx has ended; the error is load's.
func (q *queue) pop(ctx context.Context, load func(number uint64) (queued, error)) (*entry, error) {
	for ctx.Err() == nil {
		e, left, closed := q.take()
		switch {
		case e != nil || closed:
			return e, nil
		case left > 0:
			x, err := load(left)
			switch {
			case ctx.Err() != nil: // a stop: it is left to the next run
				return nil, nil
			case err != nil:
				return nil, err
			}
			q.took(x)
			return x.entry, nil
		}
		select {
		case <-q.came:
		case <-ctx.Done():
		}
	}
	return nil, nil
}

// take is the next entry of the queue, or, if that is empty, the number of the first that is left in the journal, if any
// is, and whether nothing more comes.
func (q *queue) take() (e *entry, left uint64, closed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.from == len(q.items) {
		return nil, q.left, q.closed && q.left == 0
	}
	x := q.items[q.from]
	q.items[q.from] = queued{}
	if q.from++; 2*q.from >= len(q.items) {
		n := copy(q.items, q.items[q.from:])
		clear(q.items[n:])
		q.items, q.from = q.items[:n], 0
	}
	q.records -= x.records
	q.pool.grow(q.bytes, q.bytes-x.bytes, true)
	q.bytes -= x.bytes
	wait.Signal(q.went)
	return x.entry, 0, false
}

// took says that x, the first entry that was left in the journal, was taken from there.
func (q *queue) took(x queued) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.leftRecords -= x.records
	q.leftBytes -= x.entry.size
	if q.left++; q.left > q.last {
		q.left = 0
	}
	wait.Signal(q.went)
}

// close says that nothing more will be pushed.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	wait.Signal(q.came)
}

// length is what waits.
func (q *queue) length() (records int, bytes int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.records, q.bytes
}

// fill is how full the queue is: 0 empty, 1 full, or more is left in the journal. Of bytes, it is the share of what it
// could have if the others keep what they have.
func (q *queue) fill() float64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.left > 0 {
		return 1
	}
	bytes := float64(q.bytes) / max(1, float64(q.bytes+q.pool.free(q.bytes)))
	return max(float64(q.records)/float64(q.recordsMax), bytes,
		float64(len(q.items)-q.from)/float64(q.entriesMax))
}

// A history that can't keep up must not hold up the others. What its queue has no room
// for stays in the journal, where every entry is before any history gets it, and its
// worker takes it from there. So the ingest waits only
//
//   - where there is no journal (standard input), or what is read is not in it, as the
//     disk is full;
//   - where as much is left in the journal as may be, so that the store stays within
//     its size;
//   - for a history that is alone and gets on: it holds up nobody, and what it has no
//     time for is better left where it comes from, as what is left in the journal is read
//     twice. A search that takes long is not waited for even then.
//
// After a restart it waits for nobody before all that was in the journal is handed out or
// left there: see replay.
const (
	// solveMax is for how long the ingest waits for a history that is alone and solves what
	// is open.
	solveMax = 50 * time.Millisecond
	// pieceMax is for how long it waits for one that is at one and the same piece of other work,
	// which takes longer than usual where others want the processor.
	pieceMax = 2 * time.Second
	// backlogShare is what part of store.max_bytes a history may leave in the journal.
	backlogShare = 2
)

// leaves leaves an entry, which does not fit into the history's queue, in the journal,
// if it may be.
func (in *ingest) leaves(w *worker, x queued) bool {
	if in.origin == "" || !in.keeper.stored(x.entry.number) {
		return false
	}
	if _, bytes := w.queue.backlog(); bytes+x.entry.size > in.backlogMax() {
		return false
	}
	if now := in.now(); len(in.order) == 1 && w.solving.busy(now) < solveMax && w.beat.busy(now) < pieceMax {
		return false
	}
	if in.once("behind " + w.db) {
		in.log.Warn().Str("db", w.db).Msg("the history's queue is full: what more comes for it waits in the journal, and " +
			"its alerts are late; more of this is counted")
	}
	w.queue.leave(x)
	return true
}

// backlogMax is how many bytes a history may leave in the journal.
func (in *ingest) backlogMax() int64 {
	if in.tuning.backlog > 0 {
		return in.tuning.backlog
	}
	return int64(in.cfg.Store.MaxBytes) / backlogShare
}

// left is an entry that was left in the journal.
func (w *worker) left(number uint64) (queued, error) {
	x, ok, err := w.keeper.Entry(w.going, number)
	switch {
	case err != nil:
		return queued{}, fmt.Errorf("store %s: %w", w.cfg.Store.Path, err)
	case !ok:
		return queued{}, damaged(fmt.Errorf("the journal has no entry %d", number))
	}
	e, err := parseEntry(number, x.Data)
	if err != nil {
		return queued{}, damaged(err)
	}
	return e.queued(shares(e)[w.db]), nil
}

// await waits until an entry fits into the history's queue, or may be left in the
// journal: reading pauses meanwhile.
func (in *ingest) await(w *worker, x queued) error {
	began := in.now()
	w.blocked.Store(true)
	in.metrics.blocked.WithLabelValues(w.db).Set(1)
	if in.once("full " + w.db) {
		in.log.Warn().Str("db", w.db).Msg("the history's queue is full: reading waits for it, and the lag grows; more of " +
			"this is counted")
	}
	in.beat.rest() // the history's own beat tells how it gets on
	defer func() {
		now := in.now()
		in.beat.work(now)
		w.blocked.Store(false)
		in.metrics.blocked.WithLabelValues(w.db).Set(0)
		in.metrics.blockedTime.WithLabelValues(w.db).Add(now.Sub(began).Seconds())
		in.waited(now.Sub(began))
	}()
	again := time.NewTicker(solveMax) // what a history is at, and what is stored, changes without a word
	defer again.Stop()
	for !w.queue.offer(x) && !in.leaves(w, x) {
		select {
		case <-w.queue.went:
		case <-again.C:
			in.show() // what waits is told also while it does
		case <-in.going.Done():
			return in.halted()
		}
	}
	return nil
}

// waited notes for how long reading has waited at once.
func (in *ingest) waited(d time.Duration) {
	if d > in.longest {
		in.longest = d
		in.metrics.blockedMost.Set(d.Seconds())
	}
}
