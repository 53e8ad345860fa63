package alerts

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
)

// Several changes at once come out as one after the other would, and where all or none can be
// made it takes few attempts.
func TestEachIsAsOneByOne(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for round := range 2000 {
		n := 1 + rng.IntN(20)
		var needed [][]int // of each of these some place has to stay
		for range rng.IntN(4) {
			needed = append(needed, rng.Perm(n)[:1+rng.IntN(n)])
		}
		violated := func(txns []record.Transaction) bool {
			return !slices.ContainsFunc(needed, func(places []int) bool {
				return !slices.ContainsFunc(places, func(i int) bool { return txns[i].HasTimes })
			})
		}
		change := func(txns []record.Transaction, i int) { txns[i].HasTimes = false }
		txns := make([]record.Transaction, n)
		var changes []int
		for i := range txns {
			txns[i].HasTimes = true
			changes = append(changes, i)
		}
		want := slices.Clone(txns)
		for i := range want {
			if change(want, i); !violated(want) {
				want[i].HasTimes = true
			}
		}
		calls := 0
		got := each(changes, txns, func(txns []record.Transaction) bool { calls++; return violated(txns) }, change)
		for i := range got {
			if got[i].HasTimes != want[i].HasTimes {
				t.Fatalf("round %d: %v of %d, one by one %v", round, got, n, want)
			}
		}
		if len(needed) == 0 && calls != 1 || calls > 2*n+2 {
			t.Errorf("round %d: %d attempts of %d, %v", round, calls, n, needed)
		}
	}
}

// What was found at one level says what others are, as far as these are about the same.
func TestOutcomesOfOtherLevels(t *testing.T) {
	prune, ignore := record.ClockPrune, record.ClockIgnore
	timed, untimed := record.Header{Clock: &prune}, record.Header{Clock: &ignore}
	known := outcomes{{verdict.SER, verdict.Violated}, {verdict.SI, verdict.Satisfied}}
	for _, c := range []struct {
		level verdict.Level
		h     record.Header
		want  verdict.Outcome
	}{
		{verdict.SER, timed, verdict.Violated}, {verdict.SSER, timed, verdict.Violated}, {verdict.SSER, untimed, verdict.Unknown},
		{verdict.SI, untimed, verdict.Satisfied}, {verdict.PC, timed, verdict.Satisfied}, {verdict.G1, untimed, verdict.Satisfied},
		{verdict.StrongSI, timed, verdict.Unknown}, {verdict.LIN, timed, verdict.Unknown},
	} {
		if got := known.of(c.level, c.h); got != c.want {
			t.Errorf("%v, clock %v: %v, want %v", c.level, *c.h.Clock, got, c.want)
		}
	}
}
