package stream

import (
	"fmt"
	"testing"
	"time"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/oracle/script"
	"github.com/isowatch/isowatch/window/order"
)

// A search that meets its budget rests, also where the stream is slow: with a record every two slots.
func TestSlowStreamRests(t *testing.T) {
	run := func(gap time.Duration) int {
		cfg := Config{DB: record.DefaultDB, Levels: []verdict.Level{verdict.SER}, Assumptions: record.Assumptions{Initial: record.InitialAbsent, Coverage: record.CoverageComplete, Clock: record.ClockPrune, Sessions: record.SessionsKeep},
			MaxTransaction: time.Minute, UniqueValues: true, Every: time.Second, Conflicts: 6, Segment: 1 << 20, Overlap: 1, Order: order.Options{Lateness: time.Millisecond}}
		h := New(cfg)
		at, n, num := int64(1_700_000_000e9), 0, uint64(0)
		add := func(text string) {
			s, err := script.Parse("initial absent\n" + text)
			if err != nil {
				t.Fatal(err)
			}
			for i := range s.Txns {
				s.Txns[i].DB, s.Txns[i].HasTimes, s.Txns[i].End = record.DefaultDB, false, at
			}
			b := batchOf(0, int64(n), s.Txns)
			n += len(s.Txns)
			b.CaughtUp = true
			h.Take(&Entry{Number: num, Time: at, Partitions: 1, Batch: b})
			num++
			for h.Run(8) {
				h.Found()
			}
			at += int64(gap)
		}
		add(hardKnots())
		for i := range 400 {
			add(fmt.Sprintf("n%d N%d: w(n%d,1)\n", i, i, i))
		}
		ticks := len(h.segs.ticks)
		c := h.Close()[0].Stats.Conflicts
		t.Logf("gap %v: %d conflicts, %d ticks", gap, c, ticks)
		return c
	}
	fast, slow := run(time.Second), run(3*time.Second)
	if slow > 3*fast {
		t.Errorf("%d conflicts with a record in each third slot, %d with one in each", slow, fast)
	}
}
