package kafka

import (
	"cmp"
	"context"
	"math"
	"sync"
	"time"

	"github.com/isowatch/isowatch/ingest/source"
	"github.com/isowatch/isowatch/internal/wait"
)

const (
	// queueBatches is how many batches may wait at most, unless there are more
	// partitions; each counts for at least its share of the bytes.
	queueBatches = 256
	// queueSlack is how far, by the broker's time, a partition may get ahead of
	// one that nothing was fetched of yet.
	queueSlack = int64(100 * time.Millisecond)
	// queuePatience is how long such a partition is waited for.
	queuePatience = 500 * time.Millisecond
	// passedMin and passedEach are after how many batches of others one is
	// handed out that seems to lie ahead: passedEach for each partition.
	passedMin, passedEach = 256, 16
)

// queue holds the batches that were fetched and not yet read, and joins the
// partitions by the broker's time, so that none gets far ahead of the others:
// whoever puts their records in order has to keep what is ahead until the others
// get there.
//
// Invariant: each partition has an equal share of the bytes and of the batches;
// what waits of it is within, or is one batch. So none can fill the queue while
// others are waited for, and the sum is bounded.
//
// A partition stands where its last message that was handed out does. The one that
// stands least is next. It is the place that counts, not the time of what waits:
// after a pause in one partition the reader has to hear of it that there is one,
// which only the batch behind it tells. Where a partition stands least that
// nothing waits of, though it is known to have more and does not fail, its fetch
// is waited for, for queuePatience by the process's clock and then not again
// before it delivers.
//
// Times are the producers' where the topic has CreateTime, hence may be
// missing, step back or be absurd. Batches of a partition stay in order whatever
// they say, and one that others have passed so many times is handed out.
type queue struct {
	max  int64
	ends bool // once a partition is caught up, it stays so
	// wake has a token when something happened that get may not have seen.
	wake chan struct{}

	mu    sync.Mutex
	parts []*lane
	taken uint64 // batches with messages that were handed out
}

// lane is what the queue knows of one partition.
type lane struct {
	n       int
	room    chan struct{} // has a token when get made room that put may not have seen
	waiting []queued
	weight  int64 // of waiting

	stands int64  // the time of the last message handed out; unheard before the first
	last   uint64 // taken, when a batch was handed out last; breaks ties
	since  uint64 // taken, when waiting[0] got there
	// more: the last batch put said that there is more to read, or there was none;
	// and fetching has not failed since.
	more    bool
	awaited time.Time // since when get waits, or has waited, for it; zero if it need not
}

type queued struct {
	batch  source.Batch
	weight int64
}

const unheard = math.MinInt64

// newQueue makes a queue bounded to so many bytes.
func newQueue(bytes int64) *queue { return &queue{max: bytes, wake: make(chan struct{}, 1)} }

// join adds partition n, which is about to be fetched from.
func (q *queue) join(n int) *lane {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := &lane{n: n, room: make(chan struct{}, 1), stands: unheard, last: q.taken, more: true}
	q.parts = append(q.parts, l)
	return l
}

// share is how many bytes may wait of each partition.
func (q *queue) share() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.shareLocked()
}

func (q *queue) shareLocked() int64 { return q.max / int64(max(len(q.parts), 1)) }

// put waits for room and puts b, or returns ctx's error. A lane is put into by one
// goroutine. What has waited for room tells nothing of what is there by then.
func (q *queue) put(ctx context.Context, l *lane, b source.Batch, bytes int) error {
	w := max(int64(bytes), q.max/queueBatches, 1)
	for !q.tryPut(l, b, w) {
		b.CaughtUp = b.CaughtUp && q.ends
		select {
		case <-l.room:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	q.signal()
	return nil
}

// tryPut puts b if there is room.
func (q *queue) tryPut(l *lane, b source.Batch, w int64) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(l.waiting) > 0 && l.weight+w > q.shareLocked() {
		return false
	}
	if len(l.waiting) == 0 {
		l.since = q.taken
	}
	l.waiting = append(l.waiting, queued{b, w})
	l.weight += w
	l.more, l.awaited = !b.CaughtUp, time.Time{}
	return true
}

// stuck says that nothing can be expected of a partition for now: a fetch failed, or
// it was read to its end.
func (q *queue) stuck(l *lane) {
	q.mu.Lock()
	l.more = false
	q.mu.Unlock()
	q.signal()
}

func (q *queue) signal() { wait.Signal(q.wake) }

// get takes the next batch. If it returns false, wait is how long to wait for a
// partition before calling again; 0: until there is a token in wake. It is called by one
// goroutine. O(partitions).
func (q *queue) get(now time.Time) (b source.Batch, ok bool, wait time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	var least *lane
	for _, l := range q.parts {
		switch {
		case len(l.waiting) == 0:
		case len(l.waiting[0].batch.Messages) == 0 || q.taken-l.since >= uint64(max(passedMin, passedEach*len(q.parts))):
			return q.take(l), true, 0
		case least == nil || l.before(least):
			least = l
		}
	}
	if least == nil {
		return b, false, 0
	}
	for _, l := range q.parts {
		if len(l.waiting) == 0 && l.more && l.behind(least) {
			wait = max(wait, l.await(now))
		}
	}
	if wait > 0 {
		return b, false, wait
	}
	return q.take(least), true, 0
}

// before tells whether l's batch is to be handed out before other's.
func (l *lane) before(other *lane) bool {
	return cmp.Or(cmp.Compare(l.stands, other.stands), cmp.Compare(l.last, other.last), cmp.Compare(l.n, other.n)) < 0
}

// behind tells whether l stands so far behind other that other has to wait.
func (l *lane) behind(other *lane) bool {
	if l.stands == unheard || other.stands == unheard {
		return other.stands != unheard
	}
	return other.stands-l.stands > queueSlack // times are not negative
}

// await is how long l has still to be waited for.
func (l *lane) await(now time.Time) time.Duration {
	if l.awaited.IsZero() {
		l.awaited = now
	}
	return max(queuePatience-now.Sub(l.awaited), 0)
}

// take takes l's first batch.
func (q *queue) take(l *lane) source.Batch {
	out := l.waiting[0]
	l.waiting[0] = queued{}
	if l.waiting = l.waiting[1:]; len(l.waiting) == 0 {
		l.waiting = nil
	}
	l.weight -= out.weight
	out.batch.CaughtUp = out.batch.CaughtUp && len(l.waiting) == 0
	if len(out.batch.Messages) > 0 {
		q.taken++
		l.last = q.taken
		l.stands = q.after(l, out.batch.Messages)
	}
	l.since = q.taken
	wait.Signal(l.room)
	return out.batch
}

// after is where l stands after messages.
func (q *queue) after(l *lane, messages []source.Message) int64 {
	for i := len(messages) - 1; i >= 0; i-- {
		if t := messages[i].Time; t > 0 {
			return t
		}
	}
	// No times: it takes turns with the others, behind those that stand least.
	least := int64(math.MaxInt64)
	for _, other := range q.parts {
		if other != l && other.stands != unheard {
			least = min(least, other.stands)
		}
	}
	if least == math.MaxInt64 {
		return l.stands
	}
	return max(l.stands, least)
}
