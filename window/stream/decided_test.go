package stream

import (
	"fmt"
	"testing"
	"time"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/decode"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/window/order"
)

// A stream of which some read always waits for who may still come is judged all the same, and no further behind than it
// takes to know that nobody comes, whatever segments it has; after a restart too.
func TestBusyStreamIsJudged(t *testing.T) {
	const n, every, longest = 4000, int64(10 * time.Millisecond), 5 * time.Second
	cfg := Config{DB: "d", Levels: []verdict.Level{verdict.SI}, Clock: record.ClockPrune, Sessions: record.SessionsKeep, MaxTransaction: longest, UniqueValues: true,
		Coverage: record.CoveragePartial, Segment: 256, Overlap: 64, Every: 250 * time.Millisecond, Order: order.Options{Lateness: 100 * time.Millisecond}}
	h := New(cfg)
	var entries []*Entry
	began := int64(1_700_000_000_000_000_000)
	for i := range int64(n) {
		at := began + i*every
		x := record.Transaction{DB: "d", ID: fmt.Sprint(i), Session: fmt.Sprint("s", i%8), Seq: i / 8, HasSeq: true, HasTimes: true, Start: at - 1000, End: at,
			Ops: []record.Op{{Kind: record.Write, Key: "x", Value: record.Int(i)}}}
		if i%50 == 0 {
			x.Ops = append(x.Ops, record.Op{Kind: record.Read, Key: fmt.Sprint("y", i), Value: record.Int(1)})
		}
		e := &Entry{Number: uint64(i), Time: at, Partitions: 1, Batch: batchOf(0, i, []record.Transaction{x})}
		entries = append(entries, e)
		h.Take(e)
		for h.Run(100) {
		}
		if i == n/2 {
			var err error
			if h, err = Restore(cfg, checkpointOf(h), func(n uint64) (*decode.Batch, error) { return entries[n].Batch, nil }); err != nil {
				t.Fatal(err)
			}
		}
		if judged, before := h.Decided(); i%100 == 0 && i > 1500 {
			if behind := time.Duration(at - before); behind < longest/2 || behind > 2*longest {
				t.Fatalf("at %d: judged is what was %v before, of %v that it may take", i, behind, longest)
			}
			if behind := time.Duration(i-int64(judged)) * time.Duration(every); behind > 2*longest {
				t.Fatalf("at %d: %d are judged", i, judged)
			}
		}
	}
	if h.Stats().Segments < 10 {
		t.Errorf("%d segments", h.Stats().Segments)
	}
}
