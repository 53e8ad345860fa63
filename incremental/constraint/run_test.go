package constraint

import (
	"math/rand/v2"
	"testing"

	"github.com/isowatch/isowatch/incremental/sat"
)

// Where no pair is made, what can be run is satisfied, and its order is right;
// what gets stuck is undecided; neither is ever violated without cause.
func TestRunAgainstBruteForce(t *testing.T) {
	ran := 0
	for _, split := range []bool{false, true} {
		cfg := Config{Sessions: true, Bulk: true, Last: true, PairsMax: 1, Split: split}
		for seed := range uint64(*plans) {
			pl := randomPlan(rand.New(rand.NewPCG(seed, 1)), false)
			if says := disagrees(pl, cfg, seed, false); says != "" {
				small := pl.shrink(func(c *plan) bool { return disagrees(c, cfg, seed, false) != "" })
				t.Fatalf("split %v, seed %d: %s\n%v", split, seed, disagrees(small, cfg, seed, false), small)
			}
			if r := feed(pl, cfg); !r.diverged && r.p.Found == 0 && r.p.implicit > 0 && r.p.Solve(1) == sat.Sat {
				ran++
			}
		}
	}
	if ran < *plans/50 {
		t.Errorf("%d histories of %d were run: that tells little", ran, 2**plans)
	}
}

// Ten thousand concurrent writers of one key, each of its own session, do not
// make their fifty million pairs.
func TestHotKeyIsRun(t *testing.T) {
	const n = 10_000
	p := hot{writers: n, sessions: n}.load(Config{Sessions: true, Chains: n, Slots: n, Bulk: true, Last: true, Split: true, PairsMax: 1000})
	if len(p.pairs) > 1000 || p.implicit < n*n/3 {
		t.Errorf("%d pairs made, %d not", len(p.pairs), p.implicit)
	}
	if got := p.Solve(1); got != sat.Sat {
		t.Errorf("%v", got)
	}
	if got := len(p.Order()); got != 2*n {
		t.Errorf("%d events in the order", got)
	}
}
