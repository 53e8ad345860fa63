package bench

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
)

// exponent measures histories of growing size and fits time = c·size^e to them, by
// least squares on logarithms. Size is the number of operations, or what size says of
// each. The other figures are those of the last history.
func exponent(specs []Spec, level string, size func(i int, m Measured) float64) func(context.Context,
	*Env) (Measured, error) {
	if size == nil {
		size = func(_ int, m Measured) float64 { return float64(m.operations) }
	}
	return func(ctx context.Context, e *Env) (Measured, error) {
		var last Measured
		var sizes, seconds []float64
		verdicts := map[string]int{}
		for i, s := range specs {
			m, err := generated(s, level)(ctx, e)
			if err != nil {
				return m, err
			}
			sizes, seconds = append(sizes, size(i, m)), append(seconds, m.Seconds)
			verdicts = sum(verdicts, m.Verdicts)
			last = m
		}
		last.Histories, last.Verdicts = len(specs), verdicts
		var err error
		last.Exponent, err = slope(sizes, seconds)
		return last, err
	}
}

// slope is the exponent e of the power law ys = c·xs^e that fits best.
func slope(xs, ys []float64) (float64, error) {
	meanX, meanY := 0.0, 0.0
	for i := range xs {
		meanX += math.Log(xs[i]) / float64(len(xs))
		meanY += math.Log(ys[i]) / float64(len(xs))
	}
	xx, xy := 0.0, 0.0
	for i := range xs {
		dx := math.Log(xs[i]) - meanX
		xx += dx * dx
		xy += dx * (math.Log(ys[i]) - meanY)
	}
	e := xy / xx
	if math.IsNaN(e) || math.IsInf(e, 0) {
		return 0, errors.New("histories of one size show no growth: use a greater scale")
	}
	return e, nil
}

// together measures one history at several levels at once, and at each of them alone, and
// says what share of the sum the former is.
func together(s Spec, levels ...string) func(context.Context, *Env) (Measured, error) {
	return func(ctx context.Context, e *Env) (Measured, error) {
		alone := 0.0
		for _, l := range levels {
			m, err := generated(s, l)(ctx, e)
			if err != nil {
				return m, err
			}
			alone += m.Seconds
		}
		m, err := generated(s, strings.Join(levels, ","))(ctx, e)
		m.Share = m.Seconds / alone
		return m, err
	}
}

// several is a spec at several numbers of transactions, of which the last is its own: each
// half of the next, with half of its keys.
func several(s Spec, n int) []Spec {
	var out []Spec
	for range n {
		out = append(out, s)
		s.Transactions, s.Keys = s.Transactions/2, s.Keys/2
	}
	slices.Reverse(out)
	return out
}
