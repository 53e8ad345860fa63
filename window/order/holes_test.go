package order

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// What fills a hole is compared with all that was handed out behind it: nothing that
// started earlier is overlooked. Where holes are filled in their order, and no more of them
// than are remembered, nothing else is compared.
func TestStartedIsTheLeastStartBehind(t *testing.T) {
	type put struct{ seq, start int64 }
	exact := 0
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 0))
		inOrder := seed%2 == 0
		often := 10 - seed/2%2*8 // one in so many opens a hole: many more than are remembered, or few
		s := &session{low: latest}
		var out []put
		var missing []int64
		last := int64(-1)
		for range 60 {
			start := rng.Int64N(1000)
			if len(missing) > 0 && rng.Uint64N(10) < often/2 {
				seq := missing[rng.IntN(len(missing))]
				for inOrder && slices.Contains(missing, seq-1) {
					seq--
				}
				missing = slices.DeleteFunc(missing, func(x int64) bool { return x == seq })
				want := int64(latest)
				for _, x := range out {
					if x.seq > seq {
						want = min(want, x.start)
					}
				}
				got := s.started(seq)
				if few := inOrder && len(s.holes) < holesMost; got > want || few && got != want {
					t.Fatalf("seed %d: behind %d the least start is %d, got %d: %+v", seed, seq, want, got, out)
				} else if few {
					exact++
				}
				s.fill(seq, start)
				out = append(out, put{seq, start})
				continue
			}
			seq := last + 1
			if rng.Uint64N(often) == 0 {
				for n := rng.IntN(3); n >= 0; n-- {
					missing = append(missing, seq)
					seq++
				}
				if last >= 0 {
					s.opened(last + 1)
				}
			}
			s.goesOn(start)
			out = append(out, put{seq, start})
			last = seq
		}
	}
	if exact < 1000 {
		t.Errorf("only %d with few holes", exact)
	}
}
