package generate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// Each outcome is drawn as often as its weight says, within five standard deviations.
func TestZipf(t *testing.T) {
	const n, draws = 30, 200_000
	for _, exponent := range []float64{0.1, 0.5, 0.99, 1, 1.5, 4} {
		sum := 0.0
		for i := range n {
			sum += math.Pow(float64(i+1), -exponent)
		}
		t.Run(fmt.Sprint(exponent), func(t *testing.T) {
			s, rng := NewZipf(n, exponent), rand.New(rand.NewPCG(1, 2))
			var counts [n]int
			for range draws {
				counts[s.Draw(rng)]++
			}
			for i, got := range counts {
				p := math.Pow(float64(i+1), -exponent) / sum
				want, deviation := p*draws, math.Sqrt(p*(1-p)*draws)
				if d := math.Abs(float64(got) - want); d > 5*deviation+1 {
					t.Errorf("outcome %d drawn %d times, want %.0f", i, got, want)
				}
			}
		})
	}
}

// Outcomes stay in range however many there are.
func TestZipfOfMany(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{1, 2, 1_000_000_000, 1 << 40} {
		for _, exponent := range []float64{0.01, 1, 10} {
			r := NewZipf(n, exponent)
			for range 10_000 {
				if k := r.Draw(rng); k < 0 || k >= n {
					t.Fatalf("%d of %d, exponent %v", k, n, exponent)
				}
			}
		}
	}
}
