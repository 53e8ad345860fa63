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
	cfg := Config{DB: "d", Levels: []verdict.Level{verdict.SI}, Assumptions: record.Assumptions{Clock: record.ClockPrune, Sessions: record.SessionsKeep, Coverage: record.CoveragePartial}, MaxTransaction: longest, UniqueValues: true, Segment: 256, Overlap: 64, Every: 250 * time.Millisecond, Order: order.Options{Lateness: 100 * time.Millisecond}}
	h := New(cfg)
	var entries []*Entry
	began := int64(1_700_000_000_000_000_000)
	for i := range int64(n) {
		at := began + i*every
		x := record.Transaction{DB: "d", ID: fmt.Sprint(i), Session: fmt.Sprint("s", i%8), Seq: i / 8, HasSeq: true, HasTimes: true, Start: at - 1000, End: at,
			Ops: []record.Op{{Kind: record.Write, Key: fmt.Sprint("x", i%75), Value: record.Int(i)}}}
		if i%25 == 0 {
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
			if behind := time.Duration(at - before); behind < longest/2 || behind > longest+time.Second {
				t.Fatalf("at %d: judged is what was %v before, of %v that it may take", i, behind, longest)
			}
			if behind := time.Duration(i-int64(judged)) * time.Duration(every); behind > longest+2*time.Second {
				t.Fatalf("at %d: %d are judged", i, judged)
			}
		}
	}
	if h.Stats().Segments < 10 {
		t.Errorf("%d segments", h.Stats().Segments)
	}
}

// Where more reads wait than go on from segment to segment, nothing is called complete in which the oldest of them were
// given up, however long ago its segment ended: one of a value that nobody wrote is not told then.
func TestGivenUpIsNotComplete(t *testing.T) {
	const every = int64(10 * time.Millisecond)
	cfg := Config{DB: "d", Levels: []verdict.Level{verdict.SSER}, Assumptions: record.Assumptions{Clock: record.ClockPrune, Sessions: record.SessionsKeep, Initial: record.InitialAbsent, Coverage: record.CoverageComplete}, MaxTransaction: 20 * time.Second, UniqueValues: true, UniqueAttempts: true, Segment: 256, Overlap: 64, Every: 250 * time.Millisecond, Order: order.Options{Lateness: 100 * time.Millisecond}}
	for _, nulls := range []int64{100, 20} { // of so many records one reads a null
		h, found := New(cfg), 0
		for i := range int64(4000) {
			at := 1_700_000_000_000_000_000 + i*every
			x := record.Transaction{DB: "d", ID: fmt.Sprint(i), Session: fmt.Sprint("s", i%8), Seq: i / 8, HasSeq: true, HasTimes: true, Start: at - 1000, End: at,
				Ops: []record.Op{{Kind: record.Write, Key: "x", Value: record.Int(i)}}}
			switch {
			case i == 31:
				x.Ops = append(x.Ops, record.Op{Kind: record.Read, Key: "z", Value: record.Int(5)})
			case i%nulls == 10:
				x.Ops = append(x.Ops, record.Op{Kind: record.Read, Key: fmt.Sprint("y", i), Value: record.Null})
			}
			h.Take(&Entry{Number: uint64(i), Time: at, Partitions: 1, Batch: batchOf(0, i, []record.Transaction{x})})
			for more := true; more; {
				more = h.Run(100)
				found += len(h.Found())
			}
			if all, _ := h.Standing(); h.Stats().Unawaited > 0 && len(all) > 0 && all[0].At(verdict.SSER) != Partial {
				t.Fatalf("at %d: %d are given up, and %+v is complete", i, h.Stats().Unawaited, all[0])
			}
		}
		if gave := h.Stats().Unawaited > 0; gave == (found > 0) {
			t.Errorf("a null in %d: %d are given up, %d found", nulls, h.Stats().Unawaited, found)
		}
	}
}
