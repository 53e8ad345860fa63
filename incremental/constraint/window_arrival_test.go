package constraint

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/isowatch/isowatch/incremental/sat"
)

// nest adds transactions around time at that share a few keys of their own, blind writers and updates. Some take long, so
// that their records come when all the others are long past, though they took effect among them: what they read and write
// leads back to pairs that were settled.
func (pl *plan) nest(rng *rand.Rand, n int, at int64) {
	from, instants := len(pl.txns), map[int]int64{}
	var keys []keyID
	for k := range 2 + rng.IntN(3) {
		keys = append(keys, pl.key(fmt.Sprintf("n%d.%d", n, k)))
	}
	short, long := 2+rng.IntN(6), 2+rng.IntN(5)
	for i := range short + long {
		x := planTxn{name: fmt.Sprintf("N%d.%d", n, i), session: fmt.Sprintf("n%d.%d", n, i), timed: rng.IntN(12) > 0, start: at + rng.Int64N(25)}
		instants[from+i] = x.start + rng.Int64N(15)
		x.end = instants[from+i] + rng.Int64N(15)
		if i >= short {
			x.end += 20 + rng.Int64N(400)
		}
		for _, k := range keys {
			what := rng.IntN(7)
			if what < 2 || what == 4 {
				x.reads = append(x.reads, planRead{key: k})
			}
			if what == 2 || what == 3 || what == 4 {
				x.writes = append(x.writes, k)
			}
		}
		pl.txns = append(pl.txns, x)
	}
	order := make([]int, short+long)
	for i := range order {
		order[i] = from + i
	}
	slices.SortStableFunc(order, func(a, b int) int { return int(instants[a] - instants[b]) })
	last := map[keyID]int{}
	for _, i := range order {
		x := &pl.txns[i]
		for r := range x.reads {
			w, written := last[x.reads[r].key]
			if !written {
				w = initially
			}
			x.reads[r].from = []int{w}
		}
		for _, k := range x.writes {
			last[k] = i
		}
	}
	for i := range rng.IntN(3) { // who comes long after reads what came of it
		x := planTxn{name: fmt.Sprintf("E%d.%d", n, i), session: fmt.Sprintf("e%d.%d", n, i), timed: true, start: at + 40 + rng.Int64N(300)}
		x.end = x.start + rng.Int64N(30)
		k := keys[rng.IntN(len(keys))]
		if w, written := last[k]; written {
			x.reads = []planRead{{k, []int{w}}}
		}
		pl.txns = append(pl.txns, x)
	}
}

// arriving draws a rough stream whose records do not come in the order of their ends: some sessions lag behind, some
// transactions take long, and some sessions have no times at all. Many reads are known late.
func arriving(rng *rand.Rand) (*plan, [][]int) {
	pl, like := rough(rng)
	for n := range rng.IntN(5) {
		pl.nest(rng, n, 10+rng.Int64N(200))
	}
	if rng.IntN(2) == 0 {
		pl.update(rng, like.updates)
	}
	lag, untimed := map[string]int64{}, map[string]bool{}
	most := 1 + rng.Int64N(300)
	behind, without := rng.IntN(2)*rng.IntN(60), rng.IntN(2)*rng.IntN(30)
	for _, x := range pl.txns {
		if _, known := lag[x.session]; !known {
			lag[x.session] = 0
			if rng.IntN(100) < behind {
				lag[x.session] = rng.Int64N(most)
			}
			untimed[x.session] = rng.IntN(100) < without
		}
	}
	for i := range pl.txns {
		x := &pl.txns[i]
		x.timed = x.timed && !untimed[x.session]
	}
	pl.by(func(x *planTxn) int64 { return x.end + lag[x.session] })
	due := make([][]int, len(pl.txns))
	for i, x := range pl.txns {
		late := like.late
		if len(x.name) > 1 && x.name[0] != 'T' {
			late = 50
		}
		for range x.reads {
			at := i
			if rng.IntN(100) < late {
				at += rng.IntN(like.delay)
			}
			due[i] = append(due[i], at)
		}
	}
	return pl, due
}

// asTaken is the plan with the ends that a closure gives its transactions: what comes late ended when it came, unless it
// is taken in its place.
func (pl *plan) asTaken(inPlace bool) (taken *plan, late int) {
	taken = &plan{keys: pl.keys, txns: slices.Clone(pl.txns)}
	high := int64(math.MinInt64)
	for i := range taken.txns {
		x := &taken.txns[i]
		if x.timed && !x.maybe {
			if x.end < high {
				late++
				if !inPlace {
					x.end = high
				}
			}
			high = max(high, x.end)
		}
	}
	return taken, late
}

// orders are the open pairs that have an order, and that order.
func (p *Polygraph) pairOrders() map[[2]vid]bool {
	out := map[[2]vid]bool{}
	for c := range p.subjects.pairs {
		if x := &p.subjects.pairs[c]; x.alive && x.settled {
			out[[2]vid{x.a, x.b}] = x.ab
		}
	}
	return out
}

// firstZone is the zone of the first attempt to solve what is new.
func (p *Polygraph) firstZone() int64 {
	zone := p.zone
	for c := range p.subjects.pairs {
		if x := &p.subjects.pairs[c]; x.alive && !x.settled {
			z, _ := p.subjects.scope(x)
			zone = min(zone, z)
		}
	}
	return zone
}

// What is new, solved alone, gives the answer that solving everything gives where records come long after others that
// ended later, too: they name old versions, and precede what came before them. The order that it leads to can be executed.
func TestWindowOfLateRecords(t *testing.T) {
	for name, cfg := range map[string]Config{"ser": {}, "si": {Split: true}, "pc": {Split: true, Prefix: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg.Sessions, cfg.RealTime = true, true
			var ticks, windows, refuted, known, late, turned, again int
			for n := range *plans / 5 {
				seed := *seedFrom + uint64(n)
				rng := rand.New(rand.NewPCG(seed, 44))
				pl, due := arriving(rng)
				cfg := cfg
				cfg.Late = rng.IntN(4) > 0
				last, tardy := 0, 0
				for _, at := range slices.Concat(due...) {
					last = max(last, at)
				}
				some, all := newDelayed(pl, cfg, due), newDelayed(pl, cfg, due)
				every := 1 + rng.IntN(12)
				for upTo := every; ; upTo += every {
					some.upTo(min(upTo, len(pl.txns)))
					all.upTo(min(upTo, len(pl.txns)))
					if upTo >= len(pl.txns) {
						for _, d := range []*delayed{some, all} {
							d.serve(len(pl.txns), nil, func(w want) bool { return d.dueAt(w) <= upTo })
						}
					}
					if some.diverged || some.p.reports.Found > 0 || all.p.reports.Found > 0 {
						known++
						break
					}
					for c := range all.p.subjects.pairs {
						if all.p.subjects.pairs[c].alive {
							all.p.unsettle(pairID(c))
						}
					}
					before, zone, solved := some.p.pairOrders(), some.p.firstZone(), some.p.solver.window.solved
					want, got := all.p.Solve(1<<20), some.p.Solve(1<<20)
					fail := func(says string) {
						t.Helper()
						t.Fatalf("seed %d, %d transactions, tick every %d, reads known at %v: %s\n%s", seed, upTo, every, due, says, pl)
					}
					if got != want {
						fail(fmt.Sprintf("%v, all solved together %v", got, want))
					}
					ticks++
					if got == sat.Unsat {
						refuted++
						break
					}
					if some.p.solver.window.solved > solved {
						windows++
						round := 1
						for c := range some.p.subjects.pairs {
							x := &some.p.subjects.pairs[c]
							if ab, was := before[[2]vid{x.a, x.b}]; x.alive && was && ab != x.ab {
								turned++
								if z, _ := some.p.subjects.scope(x); z < zone {
									round = 2
								}
							}
						}
						again += round - 1
						taken, n := some.known().asTaken(cfg.Late)
						tardy = n
						if err := taken.replay(some.p.solver.Order(), cfg); err != nil {
							fail(fmt.Sprintf("what was solved is wrong: %v", err))
						}
					}
					if upTo >= len(pl.txns) && upTo >= last {
						break
					}
				}
				late += tardy
			}
			t.Logf("%d ticks, %d of them by what is new, %d pairs turned there, %d times at second try, %d late records; %d refuted, %d ended by the known graph",
				ticks, windows, turned, again, late, refuted, known)
			if windows < ticks/5 || turned < *plans/20 || again < *plans/300 || late < *plans/2 {
				t.Error("the sample tells little")
			}
		})
	}
}

// A pair that was settled long ago is part of what is new through who read a version of it and took long: T before V, which
// is left when the last two transactions forbid the other order, leads to R, and from there to B, which is long before T.
//
//	A before B:  R → B ⋯ T → V → R        V before T:  T → P → H → R → T, or T → Q → G → R → T
func TestWindowKeepsWhatLongTransactionsName(t *testing.T) {
	for _, late := range []bool{false, true} { // what R read of x is known after the pair was settled
		for name, cfg := range map[string]Config{"ser": {}, "si": {Split: true}, "pc": {Split: true, Prefix: true}} {
			t.Run(fmt.Sprintf("%s/late %v", name, late), func(t *testing.T) {
				cfg.Sessions, cfg.RealTime, cfg.Late = true, true, late
				pl := parse(`
					A a @0-9 w(x)
					B b @5-10 w(x)
					V v @5-50 w(y)
					G g @6-57 w(z) w(g)
					H h @6-58 w(z) w(h)
					R r @6-59 r(x)=A r(y)=V r(g)=G r(h)=H
					N n @49-59 w(n)
					T t @45-60 w(y) w(p)
					P p @50-70 r(z)=G r(p)=T
					Q q @50-71 r(z)=H r(p)=T`)
				due := make([][]int, len(pl.txns))
				for i := range pl.txns {
					for _, r := range pl.txns[i].reads {
						at := i
						if late && r.key == pl.key("x") {
							at = pl.txn("N")
						}
						due[i] = append(due[i], at)
					}
				}
				d := newDelayed(pl, cfg, due)
				for _, last := range []string{"R", "N", "Q"} {
					d.upTo(pl.txn(last) + 1)
					if got := d.p.Solve(1 << 20); got != sat.Sat || d.p.reports.Found > 0 {
						t.Fatalf("at %s: %v, %d violations", last, got, d.p.reports.Found)
					}
					if err := d.known().replay(d.p.solver.Order(), cfg); err != nil {
						t.Fatalf("at %s: %v", last, err)
					}
				}
				if d.p.solver.window.solved == 0 {
					t.Error("all was solved each time")
				}
			})
		}
	}
}
