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

// A history that has a good part of all records: a checkpoint only names those in old
// entries, of which there are more than entries, and copies none of them; and it is the same
// whether it is appended to something or not.
func TestBusyHistoryIsNotCopied(t *testing.T) {
	const each, n = 4, 2000
	cfg := Config{DB: "d", Levels: []verdict.Level{verdict.SI}, Assumptions: record.Assumptions{Clock: record.ClockPrune, Sessions: record.SessionsKeep, Coverage: record.CoveragePartial}, MaxTransaction: time.Minute, UniqueValues: true, Order: order.Options{Lateness: time.Second}}
	h := New(cfg)
	var entries []*Entry
	seq, at := int64(0), int64(1_700_000_000_000_000_000)
	for i := range int64(n) {
		var txns []record.Transaction
		for range each {
			seq, at = seq+1, at+int64(time.Millisecond)
			txns = append(txns, record.Transaction{DB: "d", ID: fmt.Sprintf("s#%d", seq), Session: "s", Seq: seq, HasSeq: true, HasTimes: true, Start: at - 1000, End: at, Status: record.Committed,
				Ops: []record.Op{{Kind: record.Write, Key: "x", Value: record.Int(seq)}}})
		}
		e := &Entry{Number: uint64(i), Time: at, Partitions: 1, Batch: batchOf(0, each*i, txns)}
		entries = append(entries, e)
		h.Take(e)
		for h.Run(100) {
		}
	}
	if h.Floor() != 0 {
		t.Errorf("%d records of %d entries are needed, but entry %d is the first", each*n, n, h.Floor())
	}
	checkpoint := checkpointOf(h)
	if most := each * n * 8; len(checkpoint) > most {
		t.Errorf("a checkpoint takes %d bytes, at most %d were to be", len(checkpoint), most)
	}
	restored, err := Restore(cfg, checkpoint, func(n uint64) (*decode.Batch, error) { return entries[n].Batch, nil })
	if err != nil {
		t.Fatal(err)
	}
	if got, want := restored.Stats(), h.Stats(); got != want {
		t.Errorf("restored: %+v, was %+v", got, want)
	}
}
