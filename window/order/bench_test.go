package order

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/isowatch/isowatch/ingest/record"
)

// feed makes an endless stream of transactions of 8 operations, 120,000 a
// second, each partition nearly in order of end. Records are used again after
// ring transactions; operations are shared by some, so that they are in cache as
// they are after decoding.
type feed struct {
	ring     []record.Transaction
	at       int64
	sessions int64
	busy     []int64 // end of each session's last transaction
	rand     *rand.Rand
}

const (
	ring     = 600_000
	benchGap = int64(time.Second / 120_000)
)

func newFeed(sessions int) *feed {
	f := &feed{ring: make([]record.Transaction, ring), sessions: int64(sessions), busy: make([]int64, sessions),
		rand: rand.New(rand.NewPCG(1, 2))}
	var shared [1000][]record.Op
	for i := range shared {
		for j := range 8 {
			shared[i] = append(shared[i], record.Op{Kind: record.OpKind(j % 2), Key: fmt.Sprintf("key:%d", f.rand.IntN(10_000)),
				Value: record.Int(int64(i*8 + j))})
		}
	}
	for i := range f.ring {
		s := fmt.Sprintf("client-%d/%d", i%sessions%7, i%sessions)
		f.ring[i] = record.Transaction{DB: "d", Session: s, HasSeq: true, ID: fmt.Sprintf("%s#%d", s, i/sessions),
			HasTimes: true, Ops: shared[i%len(shared)]}
	}
	return f
}

// next is the next record and its partition of four.
func (f *feed) next() (*record.Transaction, int) {
	t := &f.ring[f.at%ring]
	s := f.at % ring % f.sessions
	t.Start = max(f.busy[s], f.at*benchGap)
	t.End = t.Start + f.rand.Int64N(benchGap*f.sessions/2)
	t.Seq = f.at
	f.busy[s] = t.End
	f.at++
	return t, int(s % 4)
}

// BenchmarkOrder adds and releases a stream of 8-operation transactions in its
// steady state: 2 s of it (240,000 records) wait, drained every 500 records.
// The figure is per transaction and includes making it, about 30 ns.
func BenchmarkOrder(b *testing.B) {
	for _, sessions := range []int{24, 1000, 10_000} {
		b.Run(fmt.Sprintf("sessions=%d", sessions), func(b *testing.B) {
			f := newFeed(sessions)
			o := New(Options{Lateness: 2 * time.Second, MaxSkew: 5 * time.Millisecond, MaxTransaction: time.Minute,
				MaxRemembered: ring})
			step := func(n int) {
				for i := range n {
					t, p := f.next()
					o.Add(p, t, 0)
					if i%500 == 0 {
						for _, ok := o.Next(); ok; _, ok = o.Next() {
						}
					}
				}
			}
			step(ring)
			b.ReportAllocs()
			b.ResetTimer()
			step(b.N)
			b.StopTimer()
			if c := o.Counts(); c.Released == 0 || c.Contradictions+c.Duplicates+c.Late+c.TimesDropped > 0 {
				b.Fatalf("not the scenario: %+v", c)
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "txn/s")
		})
	}
}
