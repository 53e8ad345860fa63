package stream

import (
	"testing"
	"time"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/decode"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/oracle/script"
)

// That something stands in front of where a partition is read, and until when, is known after a restart too,
// whenever that is: of a head that the input tells of, and of those of a history that begins later.
func TestHeadsAreRemembered(t *testing.T) {
	s, err := script.Parse("s1 T1 aborted: w(x,1) @1-2\ns2 T2: r(x,1) @3-4\ns1 T3 aborted: w(x,2) @31-32\ns2 T4: r(x,2) @33-34\ns1 T5: w(x,3) @81-82\ns1 T6: w(x,4) @181-182\n")
	if err != nil {
		t.Fatal(err)
	}
	for i := range s.Txns {
		s.Txns[i].DB = record.DefaultDB
	}
	cfg := Config{DB: record.DefaultDB, Levels: []verdict.Level{verdict.RC}, Assumptions: record.Assumptions{Initial: record.InitialAny, Coverage: record.CoveragePartial, Clock: record.ClockPrune, Sessions: record.SessionsKeep},
		MaxTransaction: 10, UniqueValues: true, Every: 2, Segment: 100}
	cfg.Order.Lateness = time.Nanosecond
	for _, tc := range []struct {
		name          string
		midst, headed bool
		caughtUp      bool // the other partition before anything was sent that is read of it
		told          int
	}{
		{name: "read from the beginning", told: 2},
		{name: "never ends", midst: true},
		{name: "ends", midst: true, caughtUp: true, told: 1},
		{name: "begins later, never ends", headed: true},
		{name: "begins later, ends", headed: true, caughtUp: true, told: 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			first, other := batchOf(1, 7, nil), batchOf(0, 0, nil)
			first.Midst, first.CaughtUp, other.CaughtUp = tc.midst, true, tc.caughtUp
			batches := []*decode.Batch{first, other}
			for i := range s.Txns {
				batches = append(batches, batchOf(0, int64(i), s.Txns[i:i+1]))
			}
			var entries []*Entry
			for i, b := range batches {
				entries = append(entries, &Entry{Number: uint64(i), Time: 200, Partitions: 2, Batch: b})
			}
			for restart := range len(entries) + 1 {
				h, told := New(cfg), 0
				if tc.headed {
					h.Headed()
				}
				for i, e := range entries {
					if i == restart {
						if h, err = Restore(cfg, checkpointOf(h), func(n uint64) (*decode.Batch, error) { return entries[n].Batch, nil }); err != nil {
							t.Fatal(err)
						}
					}
					h.Take(e)
				}
				h.Flush()
				for more := true; more; {
					more = h.Run(1)
					told += len(h.Found())
				}
				h.Close()
				if told += len(h.Found()); told != tc.told {
					t.Errorf("restarted before %d: %d told, not %d", restart, told, tc.told)
				}
			}
		})
	}
}
