package stream

import (
	"fmt"
	"testing"
	"time"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/window/order"
)

// A record without times of another database says nothing of the time of this one, whose records may be of long ago:
// where no broker says when it came, it was read at the time of day. This one goes on all the same, in a file that has
// no end as well.
func TestOthersWithoutTimes(t *testing.T) {
	const now = int64(1_700_000_000_000_000_000)
	second := int64(time.Second)
	for _, untimed := range []bool{false, true} {
		h := New(Config{DB: record.DefaultDB, Levels: []verdict.Level{verdict.SER}, Initial: record.InitialAbsent, Coverage: record.CoverageComplete,
			Clock: record.ClockPrune, Sessions: record.SessionsKeep, MaxTransaction: 10 * time.Second, UniqueValues: true, Every: time.Second, Segment: 1 << 20,
			Overlap: 1, Order: order.Options{Lateness: time.Second, IdleAfter: 10 * time.Second}})
		for n := range int64(100) {
			at := n * second
			txns := []record.Transaction{
				{DB: "other", ID: fmt.Sprint("o", n), Session: "o", Seq: n, HasSeq: true, Start: at, End: at + 1, HasTimes: !untimed,
					Ops: []record.Op{{Kind: record.Write, Key: "x", Value: record.Int(n)}}},
				{DB: record.DefaultDB, ID: fmt.Sprint("a", n), Session: fmt.Sprint("a", n%3), Seq: n / 3, HasSeq: true, Start: at, End: at + second/2, HasTimes: true,
					Ops: []record.Op{{Kind: record.Write, Key: "x", Value: record.Int(n)}}}}
			e := &Entry{Number: uint64(n), Time: now + at, Partitions: 1, Batch: batchOf(0, n*2, txns)}
			clear(e.Batch.Arrivals)
			h.Take(e)
			for h.Run(8) {
			}
		}
		if s := h.Stats(); s.Transactions < 90 || len(h.Losses()) > 0 {
			t.Errorf("untimed is %v: %d transactions are judged, %+v", untimed, s.Transactions, s.Losses)
		}
		h.Flush()
		for h.Run(8) {
		}
		if r := h.Close()[0]; r.Outcome != verdict.Satisfied || !h.Complete() || h.Stats().Transactions != 100 {
			t.Errorf("untimed is %v: %v, complete coverage is %v, of %d transactions", untimed, r.Outcome, h.Complete(), h.Stats().Transactions)
		}
	}
}
