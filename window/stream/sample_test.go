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

// What was left out of the sample, lies in an entry with what was not, and comes again
// when all are taken, is taken then, and what was taken is not taken twice, whether
// there was a restart in between or not.
func TestLeftOutComesAgainAfterRestart(t *testing.T) {
	in, out := "", ""
	for i := 0; in == "" || out == ""; i++ {
		if s := fmt.Sprint("s", i); order.Kept(s, 1) {
			in = s
		} else {
			out = s
		}
	}
	txn := func(session string, seq, at int64) record.Transaction {
		return record.Transaction{DB: "d", ID: fmt.Sprintf("%s#%d", session, seq), Session: session, Seq: seq, HasSeq: true, HasTimes: true, Start: at - 1, End: at, Status: record.Committed}
	}
	cfg := Config{DB: "d", Levels: []verdict.Level{verdict.SER}, MaxTransaction: time.Minute, Segment: 8, Overlap: 2, Every: 10, Order: order.Options{Lateness: 100}}
	var entries []*Entry
	add := func(level uint8, txns ...record.Transaction) {
		n := len(entries)
		entries = append(entries, &Entry{Number: uint64(n), Time: txns[0].End, Partitions: 1, Sample: level, Batch: batchOf(0, int64(n), txns)})
	}
	add(0, txn(in, 1, 10))
	for range 58 { // the levels of long ago need not be known
		add(uint8(len(entries)%2), txn(in, int64(len(entries)+1), int64(20*len(entries))))
	}
	add(1, txn(in, 60, 1210), txn(out, 1, 1211))
	add(0, txn(in, 61, 1220))
	add(0, txn(out, 1, 1211), txn(in, 60, 1210), txn(in, 62, 1230))
	for at := 1; at <= len(entries); at++ {
		h := New(cfg)
		for i, e := range entries {
			if h.Take(e); i%2 > 0 {
				for h.Run(10) {
				}
			}
			if len(h.samples) > 30 {
				t.Fatalf("%d levels are remembered", len(h.samples))
			}
			if i+1 != at {
				continue
			}
			var err error
			if h, err = Restore(cfg, checkpointOf(h), func(n uint64) (*decode.Batch, error) { return entries[n].Batch, nil }); err != nil {
				t.Fatal(err)
			}
		}
		h.Flush()
		for h.Run(10) {
		}
		c := h.OrderCounts()
		if want := int64(len(entries) + 1); h.Stats().Transactions != uint64(want) || c.LeftOut != 1 || c.Duplicates != 1 || c.Stale != 0 {
			t.Errorf("restart after %d entries: %d of %d released, %+v", at, h.Stats().Transactions, want, c)
		}
	}
}
