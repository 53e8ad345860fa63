package incremental_test

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/isowatch/isowatch/incremental"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/generate"
	"github.com/isowatch/isowatch/ingest/history"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/endless"
)

// blindW is BlindW-RW as Cobra and Vbox have it: transactions of eight reads or
// eight writes, keys uniform.
func blindW(tb testing.TB, level verdict.Level, txns, keys int) []record.Transaction {
	base := verdict.SER
	if level == verdict.SI {
		base = verdict.SI
	}
	cfg := generate.Config{Level: base, Transactions: txns, Sessions: 24, Operations: 8, Keys: keys,
		Initial: record.InitialZero, NoStale: true}
	if err := cfg.Preset("blindw-rw"); err != nil {
		tb.Fatal(err)
	}
	g, err := generate.New(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	var out []record.Transaction
	for t := range g.Transactions() {
		out = append(out, t)
	}
	return out
}

// The engine alone on a stream with times: 8 operations, 24 sessions, 10,000
// keys, a tick every 25,000 transactions (a quarter of a second at 100k/s).
func BenchmarkOnline(b *testing.B) {
	const n = 300_000
	for _, level := range []verdict.Level{verdict.SER, verdict.SI} {
		b.Run(level.String(), func(b *testing.B) {
			h := blindW(b, level, n, 10_000)
			b.ResetTimer()
			closure := 0
			for range b.N {
				e := incremental.New(incremental.Options{Levels: []verdict.Level{level}, Assumptions: record.Assumptions{Initial: record.InitialZero}, Online: true, UniqueValues: true,
					MaxTransaction: int64(time.Minute)})
				for i := range h {
					e.Step(&h[i], 0)
					if i%25_000 == 24_999 {
						e.Tick(h[i].End)
					}
				}
				r := e.Close()
				if r[0].Outcome != verdict.Satisfied {
					b.Fatalf("%+v", r[0].Violations[:1])
				}
				closure = incremental.ClosureBytes(e)
			}
			// n×n bits, half of them, would be n/16 bytes for each transaction
			b.ReportMetric(float64(closure)/float64(len(h)), "closure-B/txn")
			b.ReportMetric(float64(len(h)*b.N)/b.Elapsed().Seconds(), "txn/s")
		})
	}
}

// streamOf is the stream that cmd/bench sends, from its beginning: blind transactions of
// eight operations, 24 sessions, times without skew.
func streamOf(tb testing.TB, d generate.Distribution, rate float64, n int) []record.Transaction {
	g, err := endless.New(endless.Config{Seed: 1, Distribution: d, Rate: rate})
	if err != nil {
		tb.Fatal(err)
	}
	out := make([]record.Transaction, n)
	for i := range out {
		t, _ := g.Next()
		out[i] = *t
		out[i].Ops = slices.Clone(t.Ops)
	}
	slices.SortStableFunc(out, func(a, b record.Transaction) int { return cmp.Compare(a.End, b.End) })
	return out
}

// The engine alone on that stream with Zipfian keys (0.99): half of the transactions touch the
// hottest key, and many of them overlap. Ticks are a quarter of a second of the stream's time apart, which at
// 5,000/s is 1,250 transactions and at 120,000/s 30,000. last/first is the time of the last tenth beside that
// of the second one.
func BenchmarkOnlineZipf(b *testing.B) {
	const n = 20_000
	for _, rate := range []float64{5_000, 120_000} {
		for _, level := range []verdict.Level{verdict.SER, verdict.SI} {
			b.Run(fmt.Sprintf("%v/%.0f", level, rate), func(b *testing.B) {
				h := streamOf(b, generate.Zipf, rate, n)
				every := int64(time.Second / 4)
				b.ReportAllocs()
				b.ResetTimer()
				var tenths [10]time.Duration
				var stats verdict.Stats
				for range b.N {
					e := incremental.New(incremental.Options{Levels: []verdict.Level{level}, Assumptions: record.Assumptions{Coverage: record.CoveragePartial, UnseenUnique: new(true)}, Online: true,
						UniqueValues: true, UniqueAttempts: true, MaxTransaction: int64(time.Minute)})
					due := h[0].End + every
					began := time.Now()
					for i := range h {
						e.Step(&h[i], 0)
						if h[i].End >= due {
							e.Tick(h[i].End)
							due += every
						}
						if (i+1)%(n/10) == 0 {
							tenths[i/(n/10)] += time.Since(began)
							began = time.Now()
						}
					}
					r := e.Close()
					if r[0].Outcome == verdict.Violated || r[0].Reason == verdict.Conflicts {
						b.Fatalf("%v: %+v", r[0].Outcome, r[0].Violations)
					}
					stats = r[0].Stats
				}
				b.ReportMetric(float64(tenths[9])/float64(tenths[1]), "last/second")
				b.ReportMetric(float64(stats.Constraints)/n, "pairs/txn")
				b.ReportMetric(float64(stats.Pruned)/n, "pruned/txn")
				b.ReportMetric(float64(stats.Residual), "residual")
				b.ReportMetric(float64(stats.Conflicts), "conflicts")
				b.ReportMetric(float64(n*b.N)/b.Elapsed().Seconds(), "txn/s")
			})
		}
	}
}

// cTwitter is Cobra's workload as AWDIT uses it: 50 sessions, about 7.6 operations a
// transaction.
func cTwitter(tb testing.TB, level verdict.Level, txns int) []record.Transaction {
	cfg := generate.Config{Level: level, Transactions: txns}
	if err := cfg.Preset("c-twitter"); err != nil {
		tb.Fatal(err)
	}
	cfg.Keys = max(txns/240, 10)
	g, err := generate.New(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	return slices.Collect(g.Transactions())
}

// weakSpecs are the levels that take no search, each with histories of its own and, but for lin,
// with what a serializable database gives.
func weakSpecs(b *testing.B, run func(b *testing.B, level verdict.Level, h []record.Transaction)) {
	const n = 200_000
	for _, own := range []verdict.Level{verdict.G1, verdict.RC, verdict.RA, verdict.CC} {
		level, _ := verdict.ParseLevel(own.String())
		for _, base := range []verdict.Level{verdict.SER, own} {
			b.Run(level.String()+"/"+base.String(), func(b *testing.B) { run(b, level, cTwitter(b, base, n)) })
		}
	}
	b.Run("lin/lin", func(b *testing.B) {
		g, err := generate.New(generate.Config{Level: verdict.LIN, Workload: generate.Lightweight, NoReads: true, Transactions: n})
		if err != nil {
			b.Fatal(err)
		}
		run(b, verdict.LIN, slices.Collect(g.Transactions()))
	})
}

// The engine alone on a stream at the weak levels, a tick every 25,000 transactions.
func BenchmarkWeakOnline(b *testing.B) {
	weakSpecs(b, func(b *testing.B, level verdict.Level, h []record.Transaction) {
		b.ReportAllocs()
		b.ResetTimer()
		for range b.N {
			e := incremental.New(incremental.Options{Levels: []verdict.Level{level}, Online: true, UniqueValues: true, MaxTransaction: int64(time.Minute)})
			for i := range h {
				e.Step(&h[i], 0)
				if i%25_000 == 24_999 {
					e.Tick(h[i].End)
				}
			}
			if r := e.Close(); r[0].Outcome != verdict.Satisfied {
				b.Fatalf("%v, %v", r[0].Outcome, r[0].Reason)
			}
		}
		b.ReportMetric(float64(len(h)*b.N)/b.Elapsed().Seconds(), "txn/s")
	})
}

// The same histories in batch.
func BenchmarkWeakBatch(b *testing.B) {
	weakSpecs(b, func(b *testing.B, level verdict.Level, h []record.Transaction) {
		b.ReportAllocs()
		b.ResetTimer()
		for range b.N {
			e := incremental.New(incremental.Options{Levels: []verdict.Level{level}})
			for i := range h {
				e.Step(&h[i], 0)
			}
			if r := e.Close(); r[0].Outcome != verdict.Satisfied {
				b.Fatalf("%v, %v", r[0].Outcome, r[0].Reason)
			}
		}
		b.ReportMetric(float64(len(h)*b.N)/b.Elapsed().Seconds(), "txn/s")
	})
}

// Many levels of one stream at once, as a database is promised them: the known graph, what was read
// from whom and the versions are shared.
func BenchmarkManyLevels(b *testing.B) {
	levels := []verdict.Level{verdict.RC, verdict.RA, verdict.CC, verdict.SI, verdict.SER, verdict.SSER}
	h := cTwitter(b, verdict.SSER, 50_000)
	sets := [][]verdict.Level{levels}
	for _, l := range levels {
		sets = append(sets, []verdict.Level{l})
	}
	for _, set := range sets {
		name := set[0].String()
		if len(set) > 1 {
			name = "all"
		}
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				e := incremental.New(incremental.Options{Levels: set})
				for i := range h {
					e.Step(&h[i], 0)
				}
				for _, r := range e.Close() {
					if r.Outcome != verdict.Satisfied {
						b.Fatalf("%v: %v, %v", r.Level, r.Outcome, r.Reason)
					}
				}
			}
		})
	}
}

// PolySI's own histories of 10,000 transactions, without times; the corpus is
// not part of a clone.
func BenchmarkPolySI(b *testing.B) {
	dir := cmp.Or(os.Getenv("ISOWATCH_CORPUS"), filepath.Join("..", "..", "shared", "corpus"))
	for _, share := range []string{"0.3", "0.5", "0.95"} {
		path := filepath.Join(dir, "polysi", "fig8_9_10-25_400_8_10000_"+share+"_uniform-hist-00000.bincode.gz")
		if _, err := os.Stat(path); err != nil {
			b.Skipf("no corpus: %v; set ISOWATCH_CORPUS", err)
		}
		hs, err := history.Open(path, history.Options{})
		if err != nil {
			b.Fatal(err)
		}
		for _, level := range []verdict.Level{verdict.SI, verdict.SER} {
			b.Run(share+"/"+level.String(), func(b *testing.B) {
				for b.Loop() {
					e := incremental.New(incremental.Options{Levels: []verdict.Level{level}, Assumptions: record.Assumptions{Initial: *hs[0].Header.Initial}})
					for i := range hs[0].Transactions {
						e.Step(&hs[0].Transactions[i], 0)
					}
					if r := e.Close(); r[0].Outcome != verdict.Satisfied {
						b.Fatal(r[0].Outcome)
					}
				}
			})
		}
	}
}

// BlindW-WR with times in batch, as Vbox measures it (its Table 3: 0.31 s and
// 44 MB for 10,000 transactions, 4.16 s and 417 MB for 100,000).
func BenchmarkBlindW(b *testing.B) {
	for _, n := range []int{10_000, 100_000} {
		for _, level := range []verdict.Level{verdict.SER, verdict.SI} {
			b.Run(fmt.Sprintf("%d/%v", n, level), func(b *testing.B) {
				h := blindW(b, level, n, 10_000)
				for b.Loop() {
					e := incremental.New(incremental.Options{Levels: []verdict.Level{level}, Assumptions: record.Assumptions{Initial: record.InitialZero}})
					for i := range h {
						e.Step(&h[i], 0)
					}
					if r := e.Close(); r[0].Outcome != verdict.Satisfied || r[0].RealTimeOnly {
						b.Fatalf("%+v", r[0])
					}
				}
			})
		}
	}
}
