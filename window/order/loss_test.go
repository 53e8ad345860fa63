package order

import (
	"fmt"
	"testing"
	"time"

	"github.com/isowatch/isowatch/ingest/record"
)

func timed(session, id string, end int64) *record.Transaction {
	return &record.Transaction{DB: "d", Session: session, ID: id, Start: end - 1, End: end, HasTimes: true}
}

// Without seq only the order within a partition is session order: a record of
// the session from another partition is handed out apart.
func TestSessionThatMovesIsDetached(t *testing.T) {
	o := newRig(Options{Partitions: []int{0, 1}, Lateness: time.Nanosecond})
	o.Add(0, timed("s", "a", 10), 10)
	o.Add(1, timed("s", "b", 20), 20)
	o.Add(0, timed("s", "c", 30), 30)
	o.Flush()
	want := map[string]bool{"a": false, "b": true, "c": false}
	for r, ok := o.Next(); ok; r, ok = o.Next() {
		if r.Detached != want[r.Txn.ID] {
			t.Errorf("%s: detached %v", r.Txn.ID, r.Detached)
		}
		delete(want, r.Txn.ID)
	}
	if len(want) > 0 {
		t.Errorf("never handed out: %v", want)
	}
}

// A partition that is passed over because it is silent, without having been
// read to its end, is counted: what it still has may be missed.
func TestIdlePartitionPassedOverIsCounted(t *testing.T) {
	o := newRig(Options{Partitions: []int{0, 1}, Lateness: time.Nanosecond, IdleAfter: 100 * time.Nanosecond})
	o.Advance(0)
	o.Add(0, timed("a", "a1", 10), 10)
	o.Add(1, timed("b", "b1", 10), 10)
	o.Advance(20)
	for _, ok := o.Next(); ok; _, ok = o.Next() {
	}
	if n := o.Counts().Skipped; n != 0 {
		t.Fatalf("%d skipped at once", n)
	}
	o.Add(0, timed("a", "a2", 300), 300)
	o.Advance(300)
	o.Add(0, timed("a", "a3", 600), 600)
	o.Advance(600)
	for _, ok := o.Next(); ok; _, ok = o.Next() {
	}
	if w := o.Watermark(); w <= 10 {
		t.Fatalf("the watermark waits at %d", w)
	}
	if n := o.Counts().Skipped; n != 1 {
		t.Errorf("%d skipped, want 1", n)
	}
}

// A partition that comes back is waited for again. If it stalls once more and is passed over, that
// is another loss: what is concluded then rests on what it has not shown since.
func TestEachStallIsCounted(t *testing.T) {
	o := newRig(Options{Partitions: []int{0, 1}, Lateness: time.Nanosecond, IdleAfter: 100 * time.Nanosecond})
	o.Advance(0)
	for stall := range int64(3) {
		at := 1000 * (stall + 1)
		o.Add(1, timed("b", fmt.Sprint("b", stall), at), at)
		for step := range int64(4) { // only the other one goes on
			now := at + 150*step
			o.Add(0, timed("a", fmt.Sprint("a", now), now), now)
			o.Advance(now)
			drain(o)
		}
		if n := o.Counts().Skipped; n != stall+1 {
			t.Errorf("after %d stalls, %d are counted", stall+1, n)
		}
	}
}
