package incremental_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/isowatch/isowatch/incremental"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/generate"
	"github.com/isowatch/isowatch/ingest/record"
)

// simulate is a history of the generator's store, in the order in which its records come.
func simulate(tb testing.TB, cfg generate.Config) []record.Transaction {
	tb.Helper()
	cfg.Initial = record.InitialZero
	g, err := generate.New(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	return slices.Collect(g.Transactions())
}

// The engine alone on a stream whose times say nothing and whose values may repeat, so
// that all reads wait for whoever may have written the same and are decided together
// when nobody can any more: values that are unique in fact, and 40 % that are not.
func BenchmarkOnlineAmbiguous(b *testing.B) {
	for _, level := range []verdict.Level{verdict.PC, verdict.SI, verdict.SER} {
		for _, duplicates := range []float64{0, 0.4} {
			for _, n := range []int{500, 1000, 2000} {
				b.Run(fmt.Sprintf("%v/duplicates=%v/txns=%d", level, duplicates, n), func(b *testing.B) {
					h := simulate(b, generate.Config{Seed: 149, Level: verdict.SER, Transactions: n, Keys: 30, Sessions: 10, Duplicates: duplicates})
					b.ResetTimer()
					for range b.N {
						e := incremental.New(incremental.Options{Levels: []verdict.Level{level}, Assumptions: record.Assumptions{Initial: record.InitialZero, Coverage: record.CoverageComplete, Clock: record.ClockIgnore}, Online: true, MaxTransaction: int64(time.Minute)})
						for i := range h {
							e.Step(&h[i], 0)
						}
						e.Tick(h[n-1].End)
						if r := e.Close(); r[0].Outcome != verdict.Satisfied {
							b.Fatalf("%v: %+v", r[0].Outcome, r[0])
						} else {
							b.ReportMetric(float64(r[0].Stats.Conflicts), "conflicts")
							b.ReportMetric(float64(r[0].Stats.Constraints), "pairs")
						}
					}
				})
			}
		}
	}
}

// The engine alone on a stream whose times turned out not to be those of the store, so
// that the level goes without them, in a segment of 5,000: each tick, of so many
// transactions, states all that is open anew.
func BenchmarkOnlineWithoutTimes(b *testing.B) {
	const n = 5000
	for _, level := range []verdict.Level{verdict.SI, verdict.SER} {
		for _, every := range []int{50, 500} {
			b.Run(fmt.Sprintf("%v/tick=%d", level, every), func(b *testing.B) {
				h := simulate(b, generate.Config{Seed: 5, Level: verdict.SER, Transactions: n, Keys: 800, Sessions: 30})
				b.ResetTimer()
				for range b.N {
					e := incremental.New(incremental.Options{Levels: []verdict.Level{level}, Assumptions: record.Assumptions{Initial: record.InitialZero, Coverage: record.CoverageComplete, Clock: record.ClockIgnore}, UniqueValues: true, Online: true, MaxTransaction: int64(time.Minute)})
					for i := range h {
						e.Step(&h[i], 0)
						if i%every == every-1 {
							e.Tick(h[i].End)
						}
					}
					r := e.Close()
					if r[0].Outcome != verdict.Satisfied {
						b.Fatalf("%v: %+v", r[0].Outcome, r[0])
					}
					b.ReportMetric(float64(r[0].Stats.Residual), "residual")
				}
				b.ReportMetric(float64(n*b.N)/b.Elapsed().Seconds(), "txn/s")
			})
		}
	}
}
