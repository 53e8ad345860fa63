package generate

import (
	"math"
	"math/rand/v2"
)

// alias draws from a fixed discrete distribution in constant time (Walker's
// alias method): a column is chosen uniformly, and a biased coin then says
// whether it is the column itself or its alias. Space 12 bytes per outcome.
type alias struct {
	keep  []float64 // the coin: probability of the column itself
	other []int32
}

// newZipf makes the distribution in which outcome i has weight 1/(i+1)^exponent.
func newZipf(n int, exponent float64) *alias {
	weights := make([]float64, n)
	sum := 0.0
	for i := range weights {
		weights[i] = math.Pow(float64(i+1), -exponent)
		sum += weights[i]
	}
	a := &alias{keep: weights, other: make([]int32, n)}
	// Columns hold 1/n each. Whoever has less is filled up by one that has more.
	var small, large []int32
	for i := range weights {
		weights[i] *= float64(n) / sum
		if weights[i] < 1 {
			small = append(small, int32(i))
		} else {
			large = append(large, int32(i))
		}
	}
	for len(small) > 0 && len(large) > 0 {
		s, l := small[len(small)-1], large[len(large)-1]
		small = small[:len(small)-1]
		a.other[s] = l
		weights[l] -= 1 - weights[s]
		if weights[l] < 1 {
			large = large[:len(large)-1]
			small = append(small, l)
		}
	}
	for _, i := range append(small, large...) {
		weights[i] = 1 // but for rounding, they are
	}
	return a
}

func (a *alias) draw(rng *rand.Rand) int {
	i := rng.IntN(len(a.keep))
	if rng.Float64() < a.keep[i] {
		return i
	}
	return int(a.other[i])
}
