package stream

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/decode"
	"github.com/isowatch/isowatch/ingest/generate"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/record/packed"
	"github.com/isowatch/isowatch/internal/lab/endless"
	"github.com/isowatch/isowatch/window/order"
)

// batchOf is a decoded batch of records.
func batchOf(partition int, first int64, txns []record.Transaction) *decode.Batch {
	c := packed.Chunk{Summing: true}
	b := &decode.Batch{Partition: partition, First: first, Next: first + int64(len(txns))}
	dbs := map[string]bool{}
	for i := range txns {
		c.Add(&txns[i])
		b.Offsets = append(b.Offsets, first+int64(i))
		b.Arrivals = append(b.Arrivals, max(txns[i].End, 1))
		if db := txns[i].DB; !dbs[db] {
			dbs[db] = true
			b.DBs = append(b.DBs, db)
		}
	}
	b.Sums = c.Sums()
	b.Block = c.Seal()
	b.Resume = b.Next
	return b
}

// BenchmarkHistory is the way from decoded batches to verdicts: BlindW-RW, 8
// operations, 24 sessions, four partitions, and all that a long stream needs.
func BenchmarkHistory(b *testing.B) {
	for _, keys := range []int{10_000, 1_000_000} {
		for _, level := range []verdict.Level{verdict.SER, verdict.SI} {
			b.Run(fmt.Sprintf("%v/keys=%d", level, keys), func(b *testing.B) {
				benchHistory(b, 600_000, level, endless.Config{Keys: keys}, true)
			})
		}
	}
}

// BenchmarkHistoryZipf is the same with Zipfian keys (0.99).
func BenchmarkHistoryZipf(b *testing.B) {
	for _, level := range []verdict.Level{verdict.SER, verdict.SI} {
		b.Run(level.String(), func(b *testing.B) {
			benchHistory(b, 600_000, level, endless.Config{Keys: 10_000, Distribution: generate.Zipf}, true)
		})
	}
}

// BenchmarkHistoryUntimed is the same without times in the records, of so many
// transactions a second by the broker's clock.
func BenchmarkHistoryUntimed(b *testing.B) {
	for _, rate := range []float64{1_000, 60_000} {
		for _, level := range []verdict.Level{verdict.SER, verdict.SI} {
			b.Run(fmt.Sprintf("%v/rate=%.0f", level, rate), func(b *testing.B) {
				benchHistory(b, 100_000, level, endless.Config{Keys: 10_000, Rate: rate}, false)
			})
		}
	}
}

// BenchmarkHistoryBlind is a hot key that 40 clients write and nobody reads: any two writers that overlap have
// two orders, and without times all do. Clocks may differ by ten times as much as a transaction takes.
func BenchmarkHistoryBlind(b *testing.B) {
	for _, timed := range []bool{true, false} {
		for _, levels := range [][]verdict.Level{{verdict.SER}, {verdict.SI, verdict.SER, verdict.SSER, verdict.LIN}} {
			b.Run(fmt.Sprintf("timed=%v/levels=%d", timed, len(levels)), func(b *testing.B) {
				const clients, n, apart = 40, 8000, 10_000
				for range b.N {
					h := New(Config{DB: record.DefaultDB, Levels: levels, Assumptions: record.Assumptions{Coverage: record.CoveragePartial, Clock: record.ClockPrune, Sessions: record.SessionsKeep, MaxSkew: int64(5 * time.Millisecond)}, MaxTransaction: time.Minute, UniqueValues: true, Order: order.Options{Lateness: time.Second, IdleAfter: 10 * time.Second}})
					var all []record.Transaction
					for i := range n {
						end := int64(i) * apart
						t := record.Transaction{DB: record.DefaultDB, Session: fmt.Sprint("s", i%clients), Seq: int64(i / clients), HasSeq: true, ID: fmt.Sprint(i), Status: record.Committed,
							Start: end - clients*apart + apart/2, End: end, HasTimes: timed, Ops: []record.Op{{Kind: record.Write, Key: "hot", Value: record.Int(int64(i))}}}
						all = append(all, t)
					}
					h.Take(&Entry{Number: 1, Time: n * apart, Partitions: 1, Batch: batchOf(0, 0, all)})
					h.Flush()
					for h.Run(1000) {
						if len(h.Found()) > 0 {
							b.Fatal("a violation was found")
						}
					}
					s := h.Stats()
					b.ReportMetric(float64(s.Undecided), "undecided")
					b.ReportMetric(float64(s.Segments), "segments")
				}
				b.ReportMetric(float64(n*b.N)/b.Elapsed().Seconds(), "txn/s")
			})
		}
	}
}

func benchHistory(b *testing.B, n int, level verdict.Level, stream endless.Config, timed bool) {
	const partitions = 4
	batch, lateness := 4000, 2*time.Second
	if !timed {
		batch, lateness = 200, time.Second/10
	}
	for range b.N {
		b.StopTimer()
		g, err := endless.New(stream)
		if err != nil {
			b.Fatal(err)
		}
		h := New(Config{DB: record.DefaultDB, Levels: []verdict.Level{level}, Assumptions: record.Assumptions{Coverage: record.CoveragePartial, Clock: record.ClockPrune, Sessions: record.SessionsKeep},
			MaxTransaction: time.Minute, UniqueValues: true, Order: order.Options{Lateness: lateness, IdleAfter: 10 * time.Second}})
		var wait [partitions][]record.Transaction
		var next [partitions]int64
		number := uint64(0)
		found := 0
		for i := range n {
			t, _ := g.Next()
			p := int(t.Session[len(t.Session)-1]) % partitions
			own := *t
			own.DB, own.ID, own.HasTimes = record.DefaultDB, fmt.Sprint(t.Session, "#", t.Seq), timed
			own.Ops = append([]record.Op(nil), t.Ops...)
			wait[p] = append(wait[p], own)
			if len(wait[p]) < batch && i < n-1 {
				continue
			}
			e := &Entry{Number: number, Time: own.End, Partitions: partitions, Batch: batchOf(p, next[p], wait[p])}
			next[p] += int64(len(wait[p]))
			number++
			wait[p] = wait[p][:0]
			b.StartTimer()
			h.Take(e)
			for h.Run(1000) {
				found += len(h.Found())
			}
			found += len(h.Found())
			b.StopTimer()
		}
		if s := h.Stats(); found > 0 || s.Transactions < uint64(n/2) {
			b.Fatalf("%d found, %+v", found, s)
		}
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		b.ReportMetric(float64(m.HeapAlloc)/1e6, "live-MB")
		b.ReportMetric(float64(h.Stats().Transactions), "released")
		b.StartTimer()
	}
	b.ReportMetric(float64(n*b.N)/b.Elapsed().Seconds(), "txn/s")
}
