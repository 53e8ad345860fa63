package incremental_test

import (
	"testing"

	"github.com/isowatch/isowatch/incremental"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/generate"
	"github.com/isowatch/isowatch/ingest/record"
)

// Where values may repeat, reads wait till nobody can have written the same any more.
// Without times nothing orders what is written meanwhile: were it compared at once, each
// two writes of a key would be a pair, some 50,000 here. Reads first, few are left; that
// goes for ticks that decide some of the reads, too.
func TestFewPairsWhileReadsWait(t *testing.T) {
	for _, duplicates := range []float64{0, 0.4} {
		h := simulate(t, generate.Config{Seed: 149, Level: verdict.SER, Transactions: 500, Keys: 30, Sessions: 10, Duplicates: duplicates})
		for _, level := range []verdict.Level{verdict.PC, verdict.SI, verdict.SER} {
			for _, every := range []int{100, len(h)} {
				e := incremental.New(incremental.Options{Levels: []verdict.Level{level}, Assumptions: record.Assumptions{Initial: record.InitialZero, Coverage: record.CoverageComplete, Clock: record.ClockIgnore}, Online: true, MaxTransaction: (h[len(h)-1].End - h[0].Start) / 4})
				for i := range h {
					e.Step(&h[i], 0)
					if i%every == every-1 {
						e.Tick(h[i].End)
					}
				}
				r := e.Close()[0]
				if r.Outcome != verdict.Satisfied {
					t.Errorf("%v, duplicates %v, tick every %d: %v %+v", level, duplicates, every, r.Outcome, r.Violations)
				}
				if n := r.Stats.Constraints; n > 5*len(h) {
					t.Errorf("%v, duplicates %v, tick every %d: %d pairs were made for %d transactions", level, duplicates, every, n, len(h))
				}
			}
		}
	}
}
