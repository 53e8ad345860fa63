package constraint

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/isowatch/isowatch/incremental/sat"
)

// hotPlan draws a stream of many overlapping writers of a few keys, blind as in
// BlindW, with readers between them. It is executed at hidden instants, so that it is
// serializable in real time but for some reads that return an older version.
func hotPlan(rng *rand.Rand, txns, keys, overlap, wrong int) *plan {
	pl := &plan{}
	for k := range keys {
		pl.key(fmt.Sprintf("k%d", k))
	}
	at := make([]int64, txns) // the hidden instants
	sessions := overlap + rng.IntN(3)
	free := make([]int64, sessions)
	for i := range txns {
		s := i % sessions
		start := free[s] + rng.Int64N(5)
		length := 10 + rng.Int64N(20)
		if rng.IntN(30) == 0 {
			length *= 8
		}
		free[s] = start + length
		x := planTxn{name: fmt.Sprintf("T%d", i), session: fmt.Sprintf("s%d", s), timed: rng.IntN(60) > 0, start: start, end: start + length}
		at[i] = start + rng.Int64N(length+1)
		reads := rng.IntN(2) == 0
		for k := range keys {
			switch {
			case rng.IntN(keys) > 1+k/2: // the first keys are the hot ones
			case reads:
				x.reads = append(x.reads, planRead{key: keyID(k)})
			default:
				x.writes = append(x.writes, keyID(k))
			}
		}
		pl.txns = append(pl.txns, x)
	}
	order := make([]int, txns)
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return int(at[a] - at[b]) })
	versions := make([][]int, keys) // by key: its writers so far
	for k := range versions {
		versions[k] = []int{initially}
	}
	for _, i := range order {
		x := &pl.txns[i]
		for r := range x.reads {
			vs := versions[x.reads[r].key]
			n := len(vs) - 1
			if rng.IntN(1000) < wrong && n > 0 && vs[n-1] != initially && pl.txns[vs[n-1]].end > x.start {
				n--
			}
			x.reads[r].from = []int{vs[n]}
		}
		for _, k := range x.writes {
			versions[k] = append(versions[k], i)
		}
	}
	return pl
}

// plant adds one of two knots around time at, of transactions of their own sessions that
// overlap and also write a hot key; some last long, so that they end many ticks later.
//
//	fork   R1 says that A comes before B as C does before D, with R2; R3 and R4 say
//	       the opposite: no order of the two pairs will do
//	turn   A before B and C before D, as they end, is an order of both until L, at
//	       last, has read of D and missed A: one has to be turned round
func (pl *plan) plant(rng *rand.Rand, n int, at int64, fork bool) {
	txns := map[string]int{}
	add := func(name string, late bool, writes ...string) *planTxn {
		x := planTxn{name: fmt.Sprintf("%s%d", name, n), session: fmt.Sprintf("%s%d", name, n), timed: true, start: at + rng.Int64N(5), end: at + 10 + rng.Int64N(15)}
		if late {
			x.end += rng.Int64N(200)
		}
		for _, k := range append(writes, "k0") {
			if k != "k0" {
				k = fmt.Sprintf("%s.%d", k, n)
			} else if name[0] == 'R' || name == "L" || name == "O" {
				continue
			}
			x.writes = append(x.writes, pl.key(k))
		}
		txns[name] = len(pl.txns)
		pl.txns = append(pl.txns, x)
		return &pl.txns[len(pl.txns)-1]
	}
	read := func(x *planTxn, key, from string) {
		x.reads = append(x.reads, planRead{pl.key(fmt.Sprintf("%s.%d", key, n)), []int{txns[from]}})
	}
	late := func() bool { return rng.IntN(2) == 0 }
	if fork {
		add("A", false, "x")
		add("B", false, "x")
		add("C", false, "y")
		add("D", false, "y")
		for i, from := range [4][2]string{{"A", "C"}, {"B", "D"}, {"A", "D"}, {"B", "C"}} {
			r := add(fmt.Sprintf("R%d", i), i > 0 && late())
			read(r, "x", from[0])
			read(r, "y", from[1])
		}
		return
	}
	o := add("O", false, "q")
	o.start, o.end = at-20, at-10
	a := add("A", false, "x", "q")
	a.end = at + 10
	b := add("B", false, "x", "r")
	b.end = at + 11
	c := add("C", false, "y")
	c.end = at + 12
	read(c, "r", "B")
	d := add("D", false, "y", "p")
	d.end = at + 13
	l := add("L", true)
	read(l, "p", "D")
	read(l, "q", "O")
}

// byEnd puts the transactions in the order of their ends.
func (pl *plan) byEnd() { pl.by(func(x *planTxn) int64 { return x.end }) }

// by puts the transactions in the order of what time says of them.
func (pl *plan) by(time func(*planTxn) int64) {
	order := make([]int, len(pl.txns))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return int(time(&pl.txns[a]) - time(&pl.txns[b])) })
	to := make([]int, len(order))
	txns := make([]planTxn, len(order))
	for n, i := range order {
		to[i], txns[n] = n, pl.txns[i]
	}
	for i := range txns {
		for r := range txns[i].reads {
			for f, w := range txns[i].reads[r].from {
				if w != initially {
					txns[i].reads[r].from[f] = to[w]
				}
			}
		}
	}
	pl.txns = txns
}

// upTo feeds the transactions below n, as a stream does.
func (r *rig) upTo(n int) {
	for i := r.tab.Slots(); i < n; i++ {
		r.add(i)
		r.write(i)
		for _, rd := range r.pl.txns[i].reads {
			r.waiting = append(r.waiting, want{i, rd})
		}
		r.settle()
		r.serve(i, nil, nil)
	}
}

// unsettle makes pair c one that is new.
func (p *Polygraph) unsettle(c pairID) {
	if x := &p.subjects.pairs[c]; x.settled {
		x.settled = false
		p.subjects.unsettled++
	}
}

// timeless is how many open pairs have been solved and have no time after which they can be
// left as they are.
func (p *Polygraph) timeless() (n int) {
	for i := range p.subjects.pairs {
		if x := &p.subjects.pairs[i]; x.alive && x.settled && x.top == noZone {
			n++
		}
	}
	return n
}

// What is new, solved alone, gives the answer that solving everything gives: at each of many
// ticks of streams with hot keys, and what it says is a solution is one.
func TestWindowAgreesWithSolvingAll(t *testing.T) {
	for name, cfg := range map[string]Config{"ser": {}, "si": {Split: true}, "pc": {Split: true, Prefix: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg.Sessions, cfg.RealTime, cfg.Late = true, true, true
			var ticks, windows, refuted, known, held int
			for n := range *plans / 15 {
				seed := *seedFrom + uint64(n)
				rng := rand.New(rand.NewPCG(seed, 41))
				pl := hotPlan(rng, 30+rng.IntN(170), 1+rng.IntN(4), 2+rng.IntN(6), rng.IntN(8)/7*10)
				for i := range rng.IntN(4) {
					pl.plant(rng, i, 30+rng.Int64N(600), rng.IntN(4) == 0)
				}
				pl.byEnd()
				every := 1 + rng.IntN(25)
				some, all := newRig(pl, cfg), newRig(pl, cfg)
				for upTo := every; upTo < len(pl.txns)+every; upTo += every {
					some.upTo(min(upTo, len(pl.txns)))
					all.upTo(min(upTo, len(pl.txns)))
					if some.diverged || some.p.reports.Found > 0 || all.p.reports.Found > 0 {
						known++
						break
					}
					for c := range all.p.subjects.pairs {
						if all.p.subjects.pairs[c].alive {
							all.p.unsettle(pairID(c))
						}
					}
					before := some.p.solver.window.solved
					some.p.propagate()
					timeless := some.p.timeless()
					want, got := all.p.Solve(1<<20), some.p.Solve(1<<20)
					if got != want {
						t.Fatalf("seed %d, %d transactions, tick every %d: %v, all solved together %v\n%s", seed, upTo, every, got, want, pl)
					}
					ticks++
					if n := some.p.solver.Repeated(); n > timeless {
						t.Fatalf("seed %d, %d transactions, tick every %d: %d pairs are said to be solved again, of %d", seed, upTo, every, n, timeless)
					}
					if got == sat.Unsat {
						refuted++
						break
					}
					for _, c := range some.p.solver.solved.pairs {
						if x := some.p.subjects.pairs[c]; !x.settled || !x.tried {
							t.Fatalf("seed %d: pair %d is not settled as it was solved", seed, c)
						}
					}
					if all.p.solver.window.solved > 0 {
						t.Fatal("all was not solved")
					}
					windows += int(some.p.solver.window.solved - before)
					held += len(some.p.solver.solved.pairs)
					edges := append(some.p.allEdges(), some.p.solver.chosenEdges()...)
					if cfg.RealTime && some.p.solver.Order() == nil || !isAcyclic(some.p.g.Nodes(), some.p.parts, edges) {
						t.Fatalf("seed %d: no order, or a cycle", seed)
					}
				}
			}
			t.Logf("%d ticks, %d of them by what is new, %d refuted, %d ended by the known graph; %d pairs in solutions", ticks, windows, refuted, known, held)
			if windows < ticks/4 || refuted < *plans/200 {
				t.Error("the sample tells little")
			}
		})
	}
}
