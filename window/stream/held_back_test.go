package stream

import (
	"fmt"
	"testing"
	"time"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/window/order"
)

// While a partition that nobody can read holds all others back, nothing is judged, and that shows. It
// does no longer once nobody waits for it.
func TestWhatIsHeldBackIsNotJudged(t *testing.T) {
	const s = int64(time.Second)
	for _, idle := range []time.Duration{time.Hour, 10 * time.Second} {
		h := New(Config{DB: "d", Levels: []verdict.Level{verdict.SI}, MaxTransaction: time.Minute, UniqueValues: true,
			Order: order.Options{Lateness: 2 * time.Second, IdleAfter: idle}})
		base := 1_700_000_000 * s
		for i := range 120 * int64(4) {
			now := base + i*s/4
			x := record.Transaction{DB: "d", ID: fmt.Sprint("a#", i), Session: "a", Seq: i, HasSeq: true, HasTimes: true, Start: now - 1, End: now}
			h.Take(&Entry{Number: uint64(i), Time: now, Partitions: 2, Batch: batchOf(0, i, []record.Transaction{x})})
			for h.Run(100) {
			}
		}
		if n := h.OrderCounts(); n.Added != 480 || (h.Judged() > 0) != (idle < time.Minute) || h.Judged() > 480 {
			t.Errorf("idle after %v: %d of %d are judged", idle, h.Judged(), n.Added)
		}
	}
}

// What can't be used tells no time of its own, but that it is read shows that nothing is away: what came before it is
// judged as if nothing came.
func TestWhatCanNotBeUsedHoldsNothingBack(t *testing.T) {
	const s = int64(time.Second)
	h := New(Config{DB: "d", Levels: []verdict.Level{verdict.SI}, MaxTransaction: time.Minute, UniqueValues: true,
		Order: order.Options{Lateness: 2 * time.Second, IdleAfter: 10 * time.Second}})
	base := 1_700_000_000 * s
	x := record.Transaction{DB: "d", ID: "a", Session: "a", HasSeq: true, HasTimes: true, Start: base - 1, End: base}
	h.Take(&Entry{Number: 1, Time: base, Partitions: 1, Batch: batchOf(0, 1, []record.Transaction{x})})
	for i := range 2 * 11 * int64(20) {
		e := &Entry{Number: 2 + uint64(i), Time: base + i*s/40, Partitions: 1}
		if i%2 == 0 {
			e.Batch = batchOf(0, 2+i, nil)
			e.Batch.Lost = 1
		}
		h.Take(e)
		for h.Run(100) {
		}
	}
	if n := h.Judged(); n != 1 {
		t.Errorf("%d of 1 are judged", n)
	}
}
