package generate

import (
	"math"
	"math/rand/v2"
)

// Sampler draws outcomes 0, 1, ….
type Sampler interface{ Draw(rng *rand.Rand) int }

// aliasMax is how many outcomes a table is made for; beyond, drawing costs more
// and memory nothing.
const aliasMax = 1 << 22

// NewZipf makes the distribution in which outcome i of n has weight
// 1/(i+1)^exponent.
func NewZipf(n int, exponent float64) Sampler {
	if n > aliasMax {
		return newRejection(n, exponent)
	}
	return newAlias(n, exponent)
}

// alias draws from a fixed discrete distribution in constant time (Walker's
// alias method): a column is chosen uniformly, and a biased coin then says
// whether it is the column itself or its alias. Space 12 bytes per outcome.
type alias struct {
	keep  []float64 // the coin: probability of the column itself
	other []int32
}

func newAlias(n int, exponent float64) *alias {
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

func (a *alias) Draw(rng *rand.Rand) int {
	i := rng.IntN(len(a.keep))
	if rng.Float64() < a.keep[i] {
		return i
	}
	return int(a.other[i])
}

// rejection draws from a Zipf distribution in constant time and space, for any
// positive exponent, by rejection-inversion (Hörmann and Derflinger,
// Rejection-Inversion to Generate Variates from Monotone Discrete
// Distributions, 1996): a point under the curve x^-exponent is drawn by inverting the
// curve's integral, rounded to the outcome in whose unit interval it lies, and
// refused with the small probability by which the curve exceeds the outcome's weight.
type rejection struct {
	exponent float64
	n        float64
	from, to float64 // the integral at the ends
	squeeze  float64 // a point so near to its outcome is never refused
}

func newRejection(n int, exponent float64) *rejection {
	r := &rejection{exponent: exponent, n: float64(n)}
	r.from = r.integral(1.5) - 1
	r.to = r.integral(float64(n) + 0.5)
	r.squeeze = 2 - r.inverse(r.integral(2.5)-r.weight(2))
	return r
}

func (r *rejection) Draw(rng *rand.Rand) int {
	for {
		u := r.to + rng.Float64()*(r.from-r.to)
		x := r.inverse(u)
		k := min(max(math.Floor(x+0.5), 1), r.n)
		if k-x <= r.squeeze || u >= r.integral(k+0.5)-r.weight(k) {
			return int(k) - 1
		}
	}
}

func (r *rejection) weight(x float64) float64 { return math.Exp(-r.exponent * math.Log(x)) }

// integral is that of weight, up to a constant: (x^(1-exponent) - 1)/(1-exponent), which
// is log x for exponent 1.
func (r *rejection) integral(x float64) float64 {
	log := math.Log(x)
	if t := (1 - r.exponent) * log; math.Abs(t) > 1e-8 {
		return math.Expm1(t) / (1 - r.exponent)
	}
	return log
}

// inverse is that of integral.
func (r *rejection) inverse(y float64) float64 {
	if t := (1 - r.exponent) * y; math.Abs(t) > 1e-8 {
		return math.Exp(math.Log1p(max(t, -1)) / (1 - r.exponent))
	}
	return math.Exp(y)
}
