package order

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/isowatch/isowatch/ingest/record"
)

// feed makes an endless stream of heads, 120,000 a second, each partition nearly
// in order of end.
type feed struct {
	names []string
	at    int64
	busy  []int64 // end of each session's last transaction
	rand  *rand.Rand
	seqs  bool
	head  record.Head
}

const benchGap = int64(time.Second / 120_000)

func newFeed(sessions int, seqs bool) *feed {
	f := &feed{busy: make([]int64, sessions), rand: rand.New(rand.NewPCG(1, 2)), seqs: seqs}
	for s := range sessions {
		f.names = append(f.names, fmt.Sprintf("client-%d/%d", s%7, s))
	}
	return f
}

// next is the next record and its partition of four.
func (f *feed) next() (*record.Head, int) {
	n := int64(len(f.names))
	s := f.at % n
	start := max(f.busy[s], f.at*benchGap)
	end := start + f.rand.Int64N(max(1, benchGap*n/2))
	f.head = record.Head{DB: "d", Session: f.names[s], Start: start, End: end, HasTimes: true, HasSeq: f.seqs,
		ID: uint64(f.at+1) * 0x9e3779b97f4a7c15, Content: uint64(f.at), Ops: 8}
	if f.seqs {
		f.head.Seq = f.at / n
	}
	f.busy[s] = end
	f.at++
	return &f.head, int(s % 4)
}

// BenchmarkOrder adds and releases a stream in its steady state: 2 s of it
// (240,000 records) wait, drained every 500 records. The figures are per record and
// include making its head, about 15 ns.
func BenchmarkOrder(b *testing.B) {
	for _, seqs := range []bool{true, false} {
		for _, sessions := range []int{24, 1000, 10_000} {
			b.Run(fmt.Sprintf("sessions=%d/seq=%v", sessions, seqs), func(b *testing.B) {
				f := newFeed(sessions, seqs)
				o := New(Options{Lateness: 2 * time.Second, MaxSkew: 5 * time.Millisecond, MaxTransaction: time.Minute,
					Every: 250 * time.Millisecond})
				step := func(n int) {
					for i := range n {
						h, p := f.next()
						o.Add(p, h, uint64(f.at), 0)
						if i%500 == 0 {
							for _, ok := o.Next(); ok; _, ok = o.Next() {
							}
						}
					}
				}
				step(600_000)
				b.ReportAllocs()
				b.ResetTimer()
				step(b.N)
				b.StopTimer()
				if c := o.Counts(); c.Released == 0 || c.Contradictions+c.Duplicates+c.Late+c.TimesDropped+c.Stale+c.Detached > 0 {
					b.Fatalf("not the scenario: %+v", c)
				}
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "txn/s")
				b.ReportMetric(float64(o.Held()), "waiting")
			})
		}
	}
}
