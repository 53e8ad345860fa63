package app

import (
	"testing"

	"github.com/isowatch/isowatch/config"
	"github.com/isowatch/isowatch/ingest/record"
)

// What waits for its place takes a third of the memory at most, however many transactions may be
// held, and a segment a fourth; without a limit of memory, and where the whole input is asked for, it is as many as are
// asked for.
func TestWaitingFitsMemory(t *testing.T) {
	for _, c := range []struct {
		memory         config.Bytes
		transactions   int
		whole          bool
		want, together int
	}{
		{300 << 20, 1_000_000, false, 409_600, 65_536},
		{900 << 20, 1_000_000, false, 1_000_000, 65_536},
		{100 << 20, 1_000_000, false, 136_533, 25_600},
		{300 << 20, 1000, false, 1000, 1000},
		{1, 1_000_000, false, 1, 1},
		{0, 1_000_000, false, 1_000_000, 65_536},
		{300 << 20, 1_000_000, true, 1_000_000, 1_000_000},
	} {
		cfg := config.Default()
		cfg.Memory, cfg.Window.MaxTransactions = c.memory, c.transactions
		w, err := (&setting{cfg: cfg}).windowOf("a", record.CoveragePartial, c.whole)
		if err != nil {
			t.Fatal(err)
		}
		if got := w.Order; got.MaxBuffered != c.want || (got.Heavy == 0) != c.whole || w.Segment != c.together {
			t.Errorf("%+v: %d wait, of %d bytes each, and %d are judged together", c, got.MaxBuffered, got.Heavy, w.Segment)
		}
	}
}
