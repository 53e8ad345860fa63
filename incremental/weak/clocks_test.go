package weak

import (
	"math/rand/v2"
	"testing"

	"github.com/isowatch/isowatch/incremental/version"
)

// TestClocks compares clocks with maps of counts, over random raises and joins of
// clocks that share blocks; what is given up leaves nothing behind.
func TestClocks(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 9))
		width := []int{3, blockSize + 1, 40, blockSize * blockSize, 5000, 1 << 30}[seed%6]
		var k clocks
		ids := make([]uint32, 12)
		counts := make([]map[uint32]uint32, len(ids))
		for i := range ids {
			ids[i], counts[i] = none, map[uint32]uint32{}
		}
		for range 600 {
			a, b := r.IntN(len(ids)), r.IntN(len(ids))
			switch r.IntN(6) {
			case 0, 1:
				chain, count := uint32(r.IntN(width)), uint32(1+r.IntN(4))
				ids[a] = k.raise(ids[a], chain, count)
				counts[a][chain] = max(counts[a][chain], count)
			case 2:
				was := ids[a]
				ids[a] = k.share(ids[b])
				k.release(was)
				counts[a] = joinedCounts(counts[b], nil)
			case 3:
				k.release(ids[a])
				ids[a], counts[a] = none, map[uint32]uint32{}
			default:
				ids[a] = k.join(ids[a], ids[b])
				counts[a] = joinedCounts(counts[a], counts[b])
			}
			checkClock(t, &k, ids[a], counts[a])
			checkClock(t, &k, ids[b], counts[b])
			if got, want := k.same(ids[a], ids[b]), sameCounts(counts[a], counts[b]); got != want {
				t.Fatalf("seed %d: %v and %v are the same: %v", seed, counts[a], counts[b], got)
			}
		}
		for i, id := range ids {
			checkClock(t, &k, id, counts[i])
		}
		for _, id := range ids {
			k.release(id)
		}
		if k.held() != 0 {
			t.Fatalf("seed %d: %d blocks are held by nobody", seed, k.held())
		}
	}
}

func joinedCounts(a, b map[uint32]uint32) map[uint32]uint32 {
	out := map[uint32]uint32{}
	for _, m := range []map[uint32]uint32{a, b} {
		for ch, n := range m {
			out[ch] = max(out[ch], n)
		}
	}
	return out
}

func sameCounts(a, b map[uint32]uint32) bool {
	for ch, n := range a {
		if b[ch] != n {
			return false
		}
	}
	return len(a) == len(b)
}

// checkClock checks the counts of a clock, and of chains near those it has.
func checkClock(t *testing.T, k *clocks, id uint32, want map[uint32]uint32) {
	t.Helper()
	v := k.view(id)
	for ch := range want {
		for _, near := range []uint32{ch, ch + 1, ch ^ blockSize, ch + 1<<20, ch | 1<<31} {
			if got := k.get(id, near); got != want[near] || v.get(near) != got {
				t.Fatalf("chain %d: %d, and %d in a view, want %d", near, got, v.get(near), want[near])
			}
		}
	}
}

// churn is a serializable history of sessions of three transactions, forty at a
// time, with four reads and four writes of uniform keys each. It returns the words
// that clocks hold for each transaction.
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
		t := c.Add(s.id, s.prev, false, reads, writes)
		s.prev = t
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
	return float64(c.clocks.held()*blockSize) / float64(txns)
}

// TestChurn: where sessions come and go, what clocks hold for a transaction does
// not grow with their number.
func TestChurn(t *testing.T) {
	few, many := churn(t, 4000, 200), churn(t, 16_000, 200)
	t.Logf("%.0f words a transaction for 1,333 sessions, %.0f for 5,333", few, many)
	if many > 1.25*few || many > 300 {
		t.Errorf("clocks hold %.0f words for each transaction of 16,000, %.0f of 4,000", many, few)
	}
}

// Sessions that come and go, online: 3,000 keys.
func BenchmarkChurn(b *testing.B) {
	const n = 20_000
	b.ReportAllocs()
	words := 0.0
	for range b.N {
		words = churn(b, n, 3000)
	}
	b.ReportMetric(4*words, "clock-B/txn")
	b.ReportMetric(float64(n*b.N)/b.Elapsed().Seconds(), "txn/s")
}
