package constraint

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/isowatch/isowatch/incremental/sat"
	"github.com/isowatch/isowatch/internal/lab/race"
)

// Where no pair is made, what can be run is satisfied, and its order is right;
// what gets stuck is undecided; neither is ever violated without cause.
func TestRunAgainstBruteForce(t *testing.T) {
	var cfgs []Config
	for _, c := range []Config{{}, {Split: true}, {Split: true, Prefix: true}} {
		for _, whole := range []bool{true, false} {
			cfgs = append(cfgs, Config{Sessions: true, Bulk: whole, Last: whole, RunFirst: whole, PairsMax: 1, Split: c.Split, Prefix: c.Prefix})
		}
	}
	for _, cfg := range cfgs {
		ran := 0
		for seed := range uint64(*plans) {
			pl := randomPlan(rand.New(rand.NewPCG(seed, 1)), false)
			if says := disagrees(pl, cfg, seed, !cfg.Last); says != "" {
				small := pl.shrink(func(c *plan) bool { return disagrees(c, cfg, seed, !cfg.Last) != "" })
				t.Fatalf("%+v, seed %d: %s\n%v", cfg, seed, disagrees(small, cfg, seed, !cfg.Last), small)
			}
			if r := feed(pl, cfg); !r.diverged && r.p.reports.Found == 0 && r.p.Solve(1) == sat.Sat && r.p.solver.solved.order != nil {
				ran++
			}
		}
		if ran < *plans/100 {
			t.Errorf("%+v: %d histories of %d were run: that tells little", cfg, ran, *plans)
		}
	}
}

// Thousands of concurrent writers of one key, each of its own session, do not
// make their fifty million pairs.
func TestHotKeyIsRun(t *testing.T) {
	n := race.Few(4000, 10_000)
	p := hot{writers: n, sessions: n, reads: true}.load(Config{Sessions: true, Chains: n, Slots: n, Bulk: true, Last: true, RunFirst: true, Split: true, PairsMax: 1000})
	if len(p.subjects.pairs) > 0 || p.Bytes() > 64*n {
		t.Errorf("%d pairs made, %d bytes of closure", len(p.subjects.pairs), p.Bytes())
	}
	if got := p.Solve(1); got != sat.Sat {
		t.Errorf("%v", got)
	}
	order := p.solver.Order()
	if len(order) != 2*n {
		t.Errorf("%d events in the order", len(order))
	}
	first := order[0]
	order[0].Txn++ // as who gives transactions the numbers of another level's does
	if again := p.solver.Order(); again[0] != first {
		t.Errorf("the order begins with %v, and when asked again with %v", first, again[0])
	}
}

// At prefix consistency all of these may have read the same version of the key.
func TestLostUpdatesAreRun(t *testing.T) {
	const n = 600
	var b strings.Builder
	b.WriteString("Z z w(x)\n")
	for i := range n {
		fmt.Fprintf(&b, "T%d s%d r(x)=Z w(x)\nR%d r%d r(x)=T%d\n", i, i, i, i, i)
	}
	pl := parse(b.String())
	cfg := Config{Sessions: true, Bulk: true, Last: true, RunFirst: true, Split: true, Prefix: true, PairsMax: 1000}
	r := feed(pl, cfg)
	if len(r.p.subjects.pairs) > 0 {
		t.Errorf("%d pairs made, %d not", len(r.p.subjects.pairs), r.p.orders.implicit)
	}
	if got := r.answer(); got != sat.Sat {
		t.Fatalf("%v", got)
	}
	if err := pl.replay(r.p.solver.Order(), cfg); err != nil {
		t.Error(err)
	}
}
