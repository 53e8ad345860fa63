package incremental_test

import (
	"testing"
	"time"

	"github.com/isowatch/isowatch/incremental"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/generate"
	"github.com/isowatch/isowatch/ingest/record"
)

// blindW is BlindW-RW as Cobra and Vbox have it: transactions of eight reads or
// eight writes, keys uniform.
func blindW(tb testing.TB, level verdict.Level, txns, keys int) []record.Transaction {
	base := generate.SER
	if level == verdict.SI {
		base = generate.SI
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
			for range b.N {
				e := incremental.New(incremental.Options{Levels: []verdict.Level{level}, Initial: record.InitialZero, Online: true,
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
			}
			b.ReportMetric(float64(len(h)*b.N)/b.Elapsed().Seconds(), "txn/s")
		})
	}
}
