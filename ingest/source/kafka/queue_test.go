package kafka

import (
	"context"
	"errors"
	"testing"

	"github.com/isowatch/isowatch/ingest/source"
)

func TestQueueTakesPartitionsInTurn(t *testing.T) {
	q := newQueue(1 << 20)
	for i := range int64(4) {
		if err := q.put(t.Context(), source.Batch{Partition: 0, Next: i}, 1); err != nil {
			t.Fatal(err)
		}
	}
	for i := range int64(2) {
		if err := q.put(t.Context(), source.Batch{Partition: 1, Next: i}, 1); err != nil {
			t.Fatal(err)
		}
	}
	for i, want := range [][2]int64{{0, 0}, {1, 0}, {0, 1}, {1, 1}, {0, 2}, {0, 3}} {
		if b, ok := q.get(); !ok || int64(b.Partition) != want[0] || b.Next != want[1] {
			t.Errorf("take %d: partition %d next %d, want %v", i, b.Partition, b.Next, want)
		}
	}
	if _, ok := q.get(); ok {
		t.Error("got a batch from an empty queue")
	}
}

func TestQueueIsBounded(t *testing.T) {
	const limit = 1 << 20
	full := func(q *queue) bool {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		err := q.put(ctx, source.Batch{}, 1)
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		return err != nil
	}
	fill := func(bytes int) (q *queue, n int) {
		for q = newQueue(limit); q.room.TryAcquire(max(1, limit/queueBatches)); n++ {
			q.room.Release(limit / queueBatches)
			if err := q.put(t.Context(), source.Batch{}, bytes); err != nil {
				t.Fatal(err)
			}
		}
		return q, n
	}
	if q, n := fill(0); n != queueBatches || !full(q) {
		t.Errorf("%d empty batches, want %d", n, queueBatches)
	}
	if q, n := fill(limit / 4); n != 4 || !full(q) {
		t.Errorf("%d batches of a quarter", n)
	}
	q, n := fill(10 * limit) // larger than the queue: alone
	if n != 1 || !full(q) {
		t.Errorf("%d batches of ten times the limit", n)
	}
	if _, ok := q.get(); !ok || !q.room.TryAcquire(limit) {
		t.Error("taking it made no room")
	}
}
