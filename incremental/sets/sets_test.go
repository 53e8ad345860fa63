package sets

import (
	"maps"
	"math/rand/v2"
	"testing"
)

// TestSets compares sets of bits with maps, over random bits put in and joins of sets that
// share blocks.
func TestSets(t *testing.T) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 10))
		width := []uint32{20, 600, 20_000, 1 << 31}[seed%4]
		k := Sets{}
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
			if got, want := k.Same(ids[a], ids[b]), maps.Equal(sets[a], sets[b]); got != want {
				t.Fatalf("seed %d: %v and %v are the same: %v", seed, sets[a], sets[b], got)
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
