package order

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/isowatch/isowatch/ingest/record"
)

// stream makes n transactions of 8 operations in sessions over 4 partitions, as
// a stream of 120,000 a second has them: in each partition nearly in order of
// end.
func stream(n, sessions int) []*record.Transaction {
	r := rand.New(rand.NewPCG(1, 2))
	busy := make([]int64, sessions)
	seq := make([]int64, sessions)
	keys := make([]string, 10_000)
	for i := range keys {
		keys[i] = fmt.Sprintf("key:%d", i)
	}
	names := make([]string, sessions)
	for i := range names {
		names[i] = fmt.Sprintf("client-%d/%d", i%7, i)
	}
	const gap = int64(time.Second / 120_000)
	txns := make([]*record.Transaction, n)
	for i := range txns {
		s := i % sessions
		start := max(busy[s], int64(i)*gap) + r.Int64N(gap)
		end := start + r.Int64N(gap*int64(sessions)/2)
		busy[s] = end
		seq[s]++
		ops := make([]record.Op, 8)
		for j := range ops {
			ops[j] = record.Op{Kind: record.OpKind(j % 2), Key: keys[r.IntN(len(keys))], Value: record.Int(int64(i*8 + j))}
		}
		txns[i] = &record.Transaction{DB: "d", Session: names[s], Seq: seq[s], HasSeq: true,
			ID: fmt.Sprintf("%s#%d", names[s], seq[s]), Start: start, End: end, HasTimes: true, Ops: ops}
	}
	return txns
}

// BenchmarkOrder adds and releases a stream of 8-operation transactions, drained
// every 500 records, with 2 s of it waiting; per transaction.
func BenchmarkOrder(b *testing.B) {
	for _, sessions := range []int{24, 1000, 10_000} {
		b.Run(fmt.Sprintf("sessions=%d", sessions), func(b *testing.B) {
			txns := stream(1_000_000, sessions)
			b.ReportAllocs()
			b.ResetTimer()
			for done := 0; done < b.N; done += len(txns) {
				o := New(Options{Lateness: 2 * time.Second, MaxSkew: 5 * time.Millisecond, MaxTransaction: time.Minute})
				for i, t := range txns[:min(len(txns), b.N-done)] {
					o.Add(i%sessions%4, t, 0)
					if i%500 == 0 {
						for _, ok := o.Next(); ok; _, ok = o.Next() {
						}
					}
				}
				o.Flush()
				for _, ok := o.Next(); ok; _, ok = o.Next() {
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "txn/s")
		})
	}
}
