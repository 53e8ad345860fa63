package incremental_test

import (
	"cmp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/isowatch/isowatch/incremental"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/endless"
)

// The engine alone on a stream in which some transactions have no times: 200 of a
// session whose clock was wrong for a moment, all of a session, or those of a quarter
// of the sessions, whose records come a quarter of a second late; or in which these
// have times; or all of which come after one that ended later.
func BenchmarkOnlineUntimed(b *testing.B) {
	const n = 30_000
	type place struct {
		session string
		seq     int64
	}
	for _, w := range []struct {
		name string
		late int64
		of   int
		most int
		keep bool // the times
	}{
		{"none", 0, 24, 0, false}, {"clock-step", 0, 24, 200, false}, {"one-session", 0, 24, n, false},
		{"late-all", 0, 24, 0, true}, {"late-quarter", int64(time.Second / 4), 4, n, true}, {"late-quarter-untimed", int64(time.Second / 4), 4, n, false},
	} {
		for _, level := range []verdict.Level{verdict.SER, verdict.SI, verdict.SSER, verdict.StrongSI} {
			b.Run(w.name+"/"+level.String(), func(b *testing.B) {
				g, err := endless.New(endless.Config{Seed: 1, Rate: 60_000})
				if err != nil {
					b.Fatal(err)
				}
				h := make([]record.Transaction, n)
				at := make(map[place]int64, n) // when it comes
				for i := range h {
					t, _ := g.Next()
					h[i] = *t
					h[i].Ops = slices.Clone(t.Ops)
				}
				sessions := map[string]bool{}
				for i := range h {
					sessions[h[i].Session] = true
				}
				names := []string{}
				for s := range sessions {
					names = append(names, s)
				}
				slices.SortFunc(names, strings.Compare)
				left := w.most
				for i := range h {
					at[place{h[i].Session, h[i].Seq}] = h[i].End
					if left == 0 {
						continue
					}
					if k, _ := slices.BinarySearch(names, h[i].Session); k%w.of == 0 {
						left--
						at[place{h[i].Session, h[i].Seq}] += w.late
						if !w.keep {
							h[i].HasTimes, h[i].Start, h[i].End = false, 0, 0
						}
					}
				}
				slices.SortStableFunc(h, func(x, y record.Transaction) int {
					return cmp.Compare(at[place{x.Session, x.Seq}], at[place{y.Session, y.Seq}])
				})
				var first []record.Transaction
				if w.keep && w.most == 0 {
					end := h[n-1].End + int64(time.Second)
					first = append(first, record.Transaction{Session: "ahead", Start: end, End: end, HasTimes: true, Status: record.Committed})
				}
				b.ResetTimer()
				for range b.N {
					e := incremental.New(incremental.Options{Levels: []verdict.Level{level}, Assumptions: record.Assumptions{Coverage: record.CoveragePartial, UnseenUnique: new(true)}, Online: true,
						UniqueValues: true, UniqueAttempts: true, MaxTransaction: int64(time.Minute)})
					for i := range first {
						e.Step(&first[i], 0)
					}
					for i := range h {
						e.Step(&h[i], 0)
						if i%15_000 == 14_999 {
							e.Tick(at[place{h[i].Session, h[i].Seq}])
						}
					}
					r := e.Close()
					if r[0].Outcome == verdict.Violated {
						b.Fatalf("%v: %+v", r[0].Outcome, r[0].Violations)
					}
					b.ReportMetric(float64(r[0].Stats.Constraints), "pairs")
					b.ReportMetric(float64(r[0].Stats.Pruned), "pruned")
					b.ReportMetric(float64(r[0].Stats.Residual), "residual")
				}
				b.ReportMetric(float64(n*b.N)/b.Elapsed().Seconds(), "txn/s")
			})
		}
	}
}
