package clock

import (
	"math/rand/v2"
	"testing"
)

// TestClocks compares clocks with maps of counts, over random raises and joins of
// clocks that share blocks; what is given up leaves nothing behind.
func TestClocks(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 9))
		width := []int{3, blockSize + 1, 40, blockSize * blockSize, 5000, 1 << 30}[seed%6]
		k := Clocks{}
		ids := make([]ID, 12)
		counts := make([]map[uint32]uint32, len(ids))
		for i := range ids {
			ids[i], counts[i] = None, map[uint32]uint32{}
		}
		for range 600 {
			a, b := r.IntN(len(ids)), r.IntN(len(ids))
			switch r.IntN(6) {
			case 0, 1:
				chain, count := uint32(r.IntN(width)), uint32(1+r.IntN(4))
				ids[a] = k.Raise(ids[a], chain, count)
				counts[a][chain] = max(counts[a][chain], count)
			case 2:
				was := ids[a]
				ids[a] = k.Share(ids[b])
				k.Release(was)
				counts[a] = joinedCounts(counts[b], nil)
			case 3:
				k.Release(ids[a])
				ids[a], counts[a] = None, map[uint32]uint32{}
			default:
				ids[a] = k.Join(ids[a], ids[b])
				counts[a] = joinedCounts(counts[a], counts[b])
			}
			checkClock(t, &k, ids[a], counts[a])
			checkClock(t, &k, ids[b], counts[b])
			if got, want := k.Same(ids[a], ids[b]), sameCounts(counts[a], counts[b]); got != want {
				t.Fatalf("seed %d: %v and %v are the same: %v", seed, counts[a], counts[b], got)
			}
		}
		for i, id := range ids {
			checkClock(t, &k, id, counts[i])
		}
		for _, id := range ids {
			k.Release(id)
		}
		if k.Held() != 0 {
			t.Fatalf("seed %d: %d blocks are held by nobody", seed, k.Held())
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
func checkClock(t *testing.T, k *Clocks, id ID, want map[uint32]uint32) {
	t.Helper()
	v := k.View(id)
	for ch := range want {
		for _, near := range []uint32{ch, ch + 1, ch ^ blockSize, ch + 1<<20, ch | 1<<31} {
			if got := k.Get(id, near); got != want[near] || v.Get(near) != got {
				t.Fatalf("chain %d: %d, and %d in a view, want %d", near, got, v.Get(near), want[near])
			}
		}
	}
}

// TestSets compares sets of bits with maps, over random bits put in and joins of sets that
// share blocks.
func TestSets(t *testing.T) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 10))
		width := []uint32{20, 600, 20_000, 1 << 31}[seed%4]
		k := Clocks{Bits: true}
		ids := make([]ID, 8)
		sets := make([]map[uint32]bool, len(ids))
		for i := range ids {
			ids[i], sets[i] = None, map[uint32]bool{}
		}
		near := r.Uint32N(width) // many are close together
		for range 300 {
			a, b, but := r.IntN(len(ids)), r.IntN(len(ids)), r.IntN(len(ids))
			switch r.IntN(5) {
			case 0, 1:
				bit := min(near+r.Uint32N(40), width-1)
				if r.IntN(3) == 0 {
					bit = r.Uint32N(width)
				}
				ids[a], sets[a][bit] = k.Put(ids[a], bit), true
			case 2:
				k.Release(ids[a])
				ids[a], sets[a] = None, map[uint32]bool{}
			default:
				ids[a] = k.Join(ids[a], ids[b])
				for bit := range sets[b] {
					sets[a][bit] = true
				}
			}
			for bit := range sets[a] {
				for _, n := range []uint32{bit, bit + 1, bit ^ 32, bit ^ 512} {
					if k.Has(ids[a], n) != sets[a][n] {
						t.Fatalf("seed %d: bit %d is in the set: %v", seed, n, !sets[a][n])
					}
				}
			}
			below := min(near+r.Uint32N(60), width)
			if r.IntN(2) == 0 {
				below = width
			}
			var want uint32
			var some bool
			for bit := range sets[a] {
				if bit < below && sets[b][bit] && !sets[but][bit] {
					want, some = max(want, bit), true
				}
			}
			if got, ok := k.Last(ids[a], ids[b], ids[but], below); got != want || ok != some {
				t.Fatalf("seed %d: the last below %d is %d, %v, want %d, %v", seed, below, got, ok, want, some)
			}
		}
		for _, id := range ids {
			k.Release(id)
		}
		if k.Held() != 0 {
			t.Fatalf("seed %d: %d blocks are held by nobody", seed, k.Held())
		}
		if k.Clear(); k.Has(k.Put(None, 7), 8) || k.Held() != 1 {
			t.Fatalf("seed %d: what was given up is there", seed)
		}
	}
}
