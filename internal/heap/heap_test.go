package heap

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// What is pushed comes out in order, also after the first has been given another value.
func TestOrder(t *testing.T) {
	less := Less[int]
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var h, want []int
		for range rng.IntN(200) {
			switch x := rng.IntN(50); {
			case len(h) == 0 || rng.IntN(3) > 0:
				Push(&h, x, less)
				want = append(want, x)
			case rng.IntN(2) == 0:
				if got := Pop(&h, less); got != want[0] {
					t.Fatalf("seed %d: %d comes first, want %d", seed, got, want[0])
				}
				want = want[1:]
			default:
				h[0], want[0] = x, x
				Sink(h, less)
			}
			slices.Sort(want)
		}
		for _, x := range want {
			if got := Pop(&h, less); got != x {
				t.Fatalf("seed %d: %d comes, want %d", seed, got, x)
			}
		}
	}
}
