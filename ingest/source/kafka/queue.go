package kafka

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"

	"github.com/isowatch/isowatch/ingest/source"
)

// queueBatches is how many batches may wait at most; each counts for at least
// its share of the bytes.
const queueBatches = 256

// queue holds the batches that were fetched and not yet read.
//
// Invariant: the weights of what waits sum up to at most max, so at most
// queueBatches batches and max bytes wait, or one batch that is larger than
// max. Who can't put waits in line, first come first served; who gets takes
// from the partitions in turn, so that a busy one doesn't starve the others.
type queue struct {
	room *semaphore.Weighted
	max  int64
	// wake has a token when something was put that get may not have seen.
	wake chan struct{}

	mu      sync.Mutex
	waiting map[int][]queued // by partition
	turn    []int            // partitions with something waiting, next first
}

type queued struct {
	batch  source.Batch
	weight int64
}

// newQueue makes a queue bounded to max bytes.
func newQueue(max int64) *queue {
	return &queue{room: semaphore.NewWeighted(max), max: max, wake: make(chan struct{}, 1), waiting: map[int][]queued{}}
}

// put waits for room and puts b, or returns ctx's error.
func (q *queue) put(ctx context.Context, b source.Batch, bytes int) error {
	w := min(max(int64(bytes), q.max/queueBatches, 1), q.max)
	if err := q.room.Acquire(ctx, w); err != nil {
		return err
	}
	q.mu.Lock()
	if len(q.waiting[b.Partition]) == 0 {
		q.turn = append(q.turn, b.Partition)
	}
	q.waiting[b.Partition] = append(q.waiting[b.Partition], queued{b, w})
	q.mu.Unlock()
	select {
	case q.wake <- struct{}{}:
	default:
	}
	return nil
}

// get takes the next batch, false if none waits.
func (q *queue) get() (source.Batch, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.turn) == 0 {
		return source.Batch{}, false
	}
	p := q.turn[0]
	q.turn = q.turn[1:]
	list := q.waiting[p]
	out := list[0]
	if list = list[1:]; len(list) > 0 {
		q.waiting[p] = list
		q.turn = append(q.turn, p)
	} else {
		delete(q.waiting, p)
	}
	q.room.Release(out.weight)
	return out.batch, true
}
