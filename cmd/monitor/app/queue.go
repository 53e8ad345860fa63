package app

import (
	"context"
	"sync"
)

// How much waits for a history at most: enough to ride out a search that takes
// long, without making the ingest wait. An empty queue takes an entry of any size.
const (
	queueRecordsMax = 1 << 17
	queueBytesMax   = 24 << 20
	queueEntriesMax = 1 << 13
)

// queued is an entry that waits for a history, and what it counts for there.
type queued struct {
	entry   *entry
	records int
	bytes   int64
}

// queue holds the entries that wait for one history: the ingest pushes, the
// history's worker pops. It is bounded in records of that history, in bytes and in
// entries.
type queue struct {
	recordsMax int
	bytesMax   int64
	entriesMax int

	mu      sync.Mutex
	items   []queued // a queue; out of it, from are gone
	from    int
	records int
	bytes   int64
	closed  bool

	// Each holds one: something came, something went.
	came, went chan struct{}
}

func newQueue(records int) *queue {
	return &queue{recordsMax: records, bytesMax: queueBytesMax, entriesMax: queueEntriesMax,
		came: make(chan struct{}, 1), went: make(chan struct{}, 1)}
}

// offer puts x into the queue if it fits.
func (q *queue) offer(x queued) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if n := len(q.items) - q.from; n > 0 &&
		(n >= q.entriesMax || q.records+x.records > q.recordsMax || q.bytes+x.bytes > q.bytesMax) {
		return false
	}
	q.items = append(q.items, x)
	q.records += x.records
	q.bytes += x.bytes
	signal(q.came)
	return true
}

// push is offer that waits until x fits; the error is ctx's.
func (q *queue) push(ctx context.Context, x queued) error {
	for !q.offer(x) {
		select {
		case <-q.went:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// pop waits for the next entry; false when the queue is closed and empty, or ctx
// has ended.
func (q *queue) pop(ctx context.Context) (*entry, bool) {
	for ctx.Err() == nil {
		e, ok, closed := q.take()
		if ok {
			return e, true
		}
		if closed {
			return nil, false
		}
		select {
		case <-q.came:
		case <-ctx.Done():
		}
	}
	return nil, false
}

func (q *queue) take() (e *entry, ok, closed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.from == len(q.items) {
		return nil, false, q.closed
	}
	x := q.items[q.from]
	q.items[q.from] = queued{}
	if q.from++; 2*q.from >= len(q.items) {
		n := copy(q.items, q.items[q.from:])
		clear(q.items[n:])
		q.items, q.from = q.items[:n], 0
	}
	q.records -= x.records
	q.bytes -= x.bytes
	signal(q.went)
	return x.entry, true, false
}

// close says that nothing more will be pushed.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	signal(q.came)
}

// length is what waits.
func (q *queue) length() (records int, bytes int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.records, q.bytes
}

// fill is how full the queue is: 0 empty, 1 full.
func (q *queue) fill() float64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return max(float64(q.records)/float64(q.recordsMax), float64(q.bytes)/float64(q.bytesMax),
		float64(len(q.items)-q.from)/float64(q.entriesMax))
}

// signal leaves a note in c unless there is one.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
