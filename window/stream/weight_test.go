package stream

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
)

// However large transactions are, what is judged together takes so many bytes as so many
// small ones may, whether values repeat or not; and the overlap has its share.
func TestBytesOfASegmentAreBounded(t *testing.T) {
	const segment, overlap, txns = 1000, 100, 600
	text := strings.Repeat("v", 20_000)
	for _, tc := range []struct {
		unique bool
		most   int // that count together, and one more
	}{{true, segment + 2*overlap}, {false, 2*segment + 2*overlap}} {
		cfg := Config{DB: record.DefaultDB, Levels: []verdict.Level{verdict.SI}, Coverage: record.CoveragePartial, Every: 10, MaxTransaction: 200,
			UniqueValues: tc.unique, Segment: segment, Overlap: overlap}
		cfg.Order.Lateness = time.Duration(1)
		h := New(cfg)
		most, least := 0, txns
		ended := uint64(0)
		for n := range int64(txns) {
			key := fmt.Sprint("k", n%7)
			x := record.Transaction{DB: record.DefaultDB, Session: "s", Seq: n, HasSeq: true, ID: fmt.Sprint("t", n), HasTimes: true, Start: 10 * n, End: 10*n + 5,
				Ops: []record.Op{{Kind: record.Write, Key: key, Value: record.String(fmt.Sprint(n, text))}, {Kind: record.Read, Key: key, Value: record.String(fmt.Sprint(n, text))}}}
			h.Take(&Entry{Number: uint64(n + 1), Time: x.End, Partitions: 1, Batch: batchOf(0, n, []record.Transaction{x})})
			for h.Run(1) {
				most = max(most, h.Segment())
			}
			if s := h.Stats().Segments; s > ended {
				ended, least = s, min(least, h.Segment())
			}
			if found := h.Found(); len(found) > 0 {
				t.Fatalf("found %+v", found)
			}
		}
		const weight = 40 // of one
		if bound := tc.most/weight + 1; ended < 10 || most > bound || most < bound/2 {
			t.Errorf("unique values %v: %d transactions of 40 kB were judged together, at most %d of 1 kB may be; %d segments", tc.unique, most, tc.most, ended)
		}
		if tc.unique && (least > 2*overlap/weight+1 || least < overlap/weight/2) {
			t.Errorf("%d transactions of 40 kB were judged again, where from %d to %d of 1 kB are", least, overlap, 2*overlap)
		}
	}
}
