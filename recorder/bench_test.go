package recorder_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/recorder"
)

// nowhere is a sink that takes everything.
type nowhere struct{}

func (nowhere) Put(context.Context, [][]byte) error { return nil }
func (nowhere) Close() error                        { return nil }

// BenchmarkRecorder is what an operation costs an application, its share of begin, end and encoding included: transactions of
// 2, 8 and 32 reads and writes. Nothing is dropped, or it would be cheaper.
func BenchmarkRecorder(b *testing.B) {
	for _, ops := range []int{2, 8, 32} {
		b.Run(fmt.Sprintf("ops=%d", ops), func(b *testing.B) {
			keys := make([]string, ops)
			for i := range keys {
				keys[i] = fmt.Sprintf("accounts:%d", 1000+i)
			}
			rec := recorder.New(nowhere{}, recorder.Options{Wait: true})
			s := rec.Session("api-3/7")
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				t := s.Begin()
				for i, key := range keys {
					if i%2 == 0 {
						t.Read(key, record.Int(int64(n)))
					} else {
						t.Write(key, record.Int(int64(n)))
					}
				}
				t.End(record.Committed)
			}
			if err := rec.Close(b.Context()); err != nil {
				b.Fatal(err)
			}
			if rec.Dropped() > 0 {
				b.Fatalf("%d dropped", rec.Dropped())
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*ops), "ns/operation")
		})
	}
}
