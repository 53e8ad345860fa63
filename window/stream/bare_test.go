package stream

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/window/order"
)

// A record with neither seq nor times that comes again while an engine has it is not judged beside
// itself, however many came in between: it missed nothing that it wrote.
func TestBareRecordThatComesAgain(t *testing.T) {
	const n, from, batch = 66_000, 25_000, 500
	h := New(Config{DB: "d", Levels: []verdict.Level{verdict.RA}, Assumptions: record.Assumptions{Initial: record.InitialAbsent, Coverage: record.CoveragePartial, Clock: record.ClockPrune},
		UniqueValues: true, MaxTransaction: time.Minute, Segment: 100_000, Order: order.Options{Lateness: time.Second, MaxBuffered: 1_000_000}})
	var txns []record.Transaction
	for i := range n {
		key := fmt.Sprint("k", i%50)
		x := record.Transaction{DB: "d", Session: fmt.Sprint("s", i%8), ID: fmt.Sprint("t", i), Status: record.Committed}
		if i >= 50 {
			x.Ops = append(x.Ops, record.Op{Kind: record.Read, Key: key, Value: record.Int(int64(i - 50))})
		}
		x.Ops = append(x.Ops, record.Op{Kind: record.Write, Key: key, Value: record.Int(int64(i))})
		txns = append(txns, x)
	}
	work := func() {
		for h.Run(1 << 16) {
			if v := h.Found(); len(v) > 0 {
				t.Fatalf("found %+v", v[0])
			}
		}
		if v := h.Found(); len(v) > 0 {
			t.Fatalf("found %+v", v[0])
		}
	}
	number := uint64(0)
	for part := range slices.Chunk(append(txns, txns[from:from+1000]...), batch) {
		b := batchOf(0, int64(number*batch), part)
		at := int64(number+1) * int64(10*time.Millisecond)
		for i := range b.Arrivals {
			b.Arrivals[i] = at
		}
		h.Take(&Entry{Number: number, Time: at, Partitions: 1, Batch: b})
		number++
		work()
	}
	h.Flush()
	work()
	if r := h.Close(); r[0].Outcome == verdict.Violated {
		t.Errorf("%+v", r[0])
	}
	if got := h.Stats().Transactions; got != n {
		t.Errorf("%d transactions were judged, of %d", got, n)
	}
}
