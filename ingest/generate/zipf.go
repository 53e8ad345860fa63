package generate

import (
	"math"
	"math/rand/v2"
)

// Popularity draws outcomes 0, 1, … of which outcome i has weight 1/(i+1)^exponent, in constant time and space, for any
// positive exponent, by rejection-inversion (Hörmann and Derflinger,
// Rejection-Inversion to Generate Variates from Monotone Discrete
// Distributions, 1996): a point under the curve x^-exponent is drawn by inverting the
// curve's integral, rounded to the outcome in whose unit interval it lies, and
// refused with the small probability by which the curve exceeds the outcome's weight.
type Popularity struct {
	exponent float64
	n        float64
	from, to float64 // the integral at the ends
	squeeze  float64 // a point so near to its outcome is never refused
}

// NewZipf makes the distribution of n outcomes.
func NewZipf(n int, exponent float64) *Popularity {
	r := &Popularity{exponent: exponent, n: float64(n)}
	r.from = r.integral(1.5) - 1
	r.to = r.integral(float64(n) + 0.5)
	r.squeeze = 2 - r.inverse(r.integral(2.5)-r.weight(2))
	return r
}

// Draw draws an outcome.
func (r *Popularity) Draw(rng *rand.Rand) int {
	for {
		u := r.to + rng.Float64()*(r.from-r.to)
		x := r.inverse(u)
		k := min(max(math.Floor(x+0.5), 1), r.n)
		if k-x <= r.squeeze || u >= r.integral(k+0.5)-r.weight(k) {
			return int(k) - 1
		}
	}
}

func (r *Popularity) weight(x float64) float64 { return math.Exp(-r.exponent * math.Log(x)) }

// integral is that of weight, up to a constant: (x^(1-exponent) - 1)/(1-exponent), which
// is log x for exponent 1.
func (r *Popularity) integral(x float64) float64 {
	log := math.Log(x)
	if t := (1 - r.exponent) * log; math.Abs(t) > 1e-8 {
		return math.Expm1(t) / (1 - r.exponent)
	}
	return log
}

// inverse is that of integral.
func (r *Popularity) inverse(y float64) float64 {
	if t := (1 - r.exponent) * y; math.Abs(t) > 1e-8 {
		return math.Exp(math.Log1p(max(t, -1)) / (1 - r.exponent))
	}
	return math.Exp(y)
}
