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
	const n, partitions, batch = 600_000, 4, 4000
	for _, keys := range []int{10_000, 1_000_000} {
		for _, levels := range [][]verdict.Level{{verdict.SER}, {verdict.SI}} {
			b.Run(fmt.Sprintf("%v/keys=%d", levels[0], keys), func(b *testing.B) {
				for range b.N {
					b.StopTimer()
					g, err := generate.NewStream(generate.StreamConfig{Keys: keys})
					if err != nil {
						b.Fatal(err)
					}
					h := New(Config{DB: record.DefaultDB, Levels: levels, Coverage: record.CoveragePartial, Clock: record.ClockPrune, Sessions: record.SessionsKeep,
						MaxTransaction: time.Minute, UniqueValues: true, Order: order.Options{Lateness: 2 * time.Second, IdleAfter: 10 * time.Second}})
					var wait [partitions][]record.Transaction
					var next [partitions]int64
					number := uint64(0)
					found := 0
					for i := range n {
						t, _ := g.Next()
						p := int(t.Session[len(t.Session)-1]) % partitions
						own := *t
						own.DB = record.DefaultDB
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
					if s := h.Stats(); found > 0 || s.Transactions < n/2 {
						b.Fatalf("%d found, %+v", found, s)
					}
					runtime.GC()
					var m runtime.MemStats
					runtime.ReadMemStats(&m)
					b.ReportMetric(float64(m.HeapAlloc)/1e6, "live-MB")
					b.ReportMetric(float64(h.Stats().Transactions), "released")
					b.StartTimer()
				}
				b.ReportMetric(n*float64(b.N)/b.Elapsed().Seconds(), "txn/s")
			})
		}
	}
}
