package weak

import (
	"math/rand/v2"
	"testing"

	"github.com/isowatch/isowatch/incremental/version"
)

// churn is a serializable history of sessions of three transactions, forty at a
// time, with four reads and four writes of uniform keys each. It returns the bytes
// that rows hold for each transaction.
func churn(tb testing.TB, txns, keys int) float64 {
	r := rand.New(rand.NewPCG(1, 2))
	c := New(true, CC)
	last := make([]Txn, keys)
	for i := range last {
		last[i] = Initial
	}
	type session struct {
		id, prev uint32
		left     int
	}
	var begun uint32
	live := make([]session, 40)
	for i := range txns {
		s := &live[r.IntN(len(live))]
		if s.left == 0 {
			*s = session{begun, none, 3}
			begun++
		}
		s.left--
		var reads, writes []version.Key
		for range 4 {
			reads = append(reads, version.Key(r.IntN(keys)))
			writes = append(writes, version.Key(r.IntN(keys)))
		}
		t := c.Add(s.id, Txn(s.prev), false, reads, writes)
		s.prev = uint32(t)
		for i, k := range reads {
			c.Read(t, i, last[k])
		}
		for _, k := range writes {
			last[k] = t
		}
		if i%500 == 499 {
			if v := c.Tick(false); len(v) > 0 {
				tb.Fatalf("violation %v", v[0])
			}
		}
	}
	return float64(c.rows.sets.Bytes()) / float64(txns)
}

// TestChurn: where sessions come and go, what rows hold for a transaction does
// not grow with their number, but for a level more of the trees that they are.
func TestChurn(t *testing.T) {
	few, many := churn(t, 4000, 200), churn(t, 16_000, 200)
	t.Logf("%.0f bytes a transaction for 1,333 sessions, %.0f for 5,333", few, many)
	if many > 1.5*few || many > 350 {
		t.Errorf("rows hold %.0f bytes for each transaction of 16,000, %.0f of 4,000", many, few)
	}
}

// Sessions that come and go, online: 3,000 keys.
func BenchmarkChurn(b *testing.B) {
	const n = 20_000
	b.ReportAllocs()
	held := 0.0
	for range b.N {
		held = churn(b, n, 3000)
	}
	b.ReportMetric(held, "row-B/txn")
	b.ReportMetric(float64(n*b.N)/b.Elapsed().Seconds(), "txn/s")
}
