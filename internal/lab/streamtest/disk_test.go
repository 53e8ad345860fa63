package streamtest

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"testing"
	"time"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/endless"
	"github.com/isowatch/isowatch/window/order"
	"github.com/isowatch/isowatch/window/store"
	"github.com/isowatch/isowatch/window/stream"
)

// BenchmarkKeysOnDisk is BlindW-RW over three million keys, all in memory or 200,000
// of them, the rest in a real store, with a checkpoint every 65,536 records.
func BenchmarkKeysOnDisk(b *testing.B) {
	const keys, n, each = 3_000_000, 300_000, 4000
	for _, most := range []int{0, 200_000} {
		b.Run(fmt.Sprintf("memory=%d", most), func(b *testing.B) {
			for range b.N {
				b.StopTimer()
				defer debug.SetGCPercent(debug.SetGCPercent(50))
				st, err := store.Open(store.Options{Path: b.TempDir()})
				if err != nil {
					b.Fatal(err)
				}
				g, err := endless.New(endless.Config{Keys: keys})
				if err != nil {
					b.Fatal(err)
				}
				d := disk{b: b, st: st, h: stream.New(stream.Config{DB: record.DefaultDB, Levels: []verdict.Level{verdict.SI}, Assumptions: record.Assumptions{Coverage: record.CoveragePartial, Clock: record.ClockPrune, Sessions: record.SessionsKeep}, MaxTransaction: time.Minute, UniqueValues: true, Segment: 65_536, Overlap: 4096, MaxKeys: most,
					Order: order.Options{Lateness: 100 * time.Millisecond, IdleAfter: 10 * time.Second}})}
				wait := make([]sent, 0, each)
				for i := range n {
					x, _ := g.Next()
					own := *x
					own.DB, own.Ops = record.DefaultDB, slices.Clone(x.Ops)
					if wait = append(wait, sent{own, own.End}); len(wait) < each {
						continue
					}
					e := &stream.Entry{Number: uint64(i/each) + 1, Time: own.End, Partitions: 1, Batch: batch(0, i+1-each, wait)}
					wait = wait[:0]
					b.StartTimer()
					d.h.Take(e)
					d.work()
					if i/each%16 == 15 {
						d.save()
					}
					b.StopTimer()
				}
				s := d.h.Frontier()
				b.ReportMetric(float64(s.Keys), "keys-in-memory")
				b.ReportMetric(float64(s.OnDisk), "keys-on-disk")
				b.ReportMetric(float64(s.Read)/n, "reads/txn")
				b.ReportMetric(d.reading.Seconds()/n*1e6, "reading-µs/txn")
				b.ReportMetric(d.spilling.Seconds()/n*1e6, "spilling-µs/txn")
				b.ReportMetric(float64(d.live)/1e6, "live-MB")
				runtime.KeepAlive(d.h)
				if err := st.Close(); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
			b.ReportMetric(n*float64(b.N)/b.Elapsed().Seconds(), "txn/s")
		})
	}
}

// disk drives a history whose keys are in a store.
type disk struct {
	b                 *testing.B
	h                 *stream.History
	st                store.Store
	reading, spilling time.Duration
	live              uint64 // bytes, at most, after a checkpoint
	saves             int
}

func (d *disk) work() {
	for d.h.Run(1000) {
		if found := d.h.Found(); len(found) > 0 {
			d.b.Fatalf("found %+v", found)
		}
		began := time.Now()
		if keys := d.h.Needs(); len(keys) > 0 {
			values, err := d.st.Spilled(d.b.Context(), "default", keys)
			if err == nil {
				err = d.h.Answer(values)
			}
			if err != nil {
				d.b.Fatal(err)
			}
		}
		d.reading += time.Since(began)
		began = time.Now()
		for kvs := d.h.Spill(4096); len(kvs) > 0; kvs = d.h.Spill(4096) {
			pairs := make([]store.KV, len(kvs))
			for i, kv := range kvs {
				pairs[i] = store.KV(kv)
			}
			if err := d.st.Spill(d.b.Context(), "default", pairs); err != nil {
				d.b.Fatal(err)
			}
			d.h.Spilled()
		}
		d.spilling += time.Since(began)
	}
}

func (d *disk) save() {
	if err := d.st.Commit(d.b.Context(), store.Commit{Checkpoints: map[string][]byte{"default": checkpointOf(d.h)}}); err != nil {
		d.b.Fatal(err)
	}
	if d.saves++; d.saves%4 == 0 {
		d.b.StopTimer()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		d.live = max(d.live, m.HeapAlloc)
		d.b.StartTimer()
	}
}
