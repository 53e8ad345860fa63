package constraint

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/isowatch/isowatch/incremental/sat"
)

// roughly says what is wrong with a stream: in percent, transactions without times and those of
// unknown outcome, updates (writers that read their key first), and reads that are known only later, up to
// so many transactions.
type roughly struct{ untimed, unknown, updates, late, delay int }

// rough draws a stream with all that can make a settled pair mean something new, or lead a cycle round
// what the clock closes.
func rough(rng *rand.Rand) (*plan, roughly) {
	like := roughly{rng.IntN(9) * 5, rng.IntN(2) * rng.IntN(15), rng.IntN(60), rng.IntN(90), 1 + rng.IntN(40)}
	pl := hotPlan(rng, 10+rng.IntN(90), 1+rng.IntN(4), 1+rng.IntN(6), 0)
	for i := range pl.txns {
		x := &pl.txns[i]
		x.timed = rng.IntN(100) >= like.untimed
		x.maybe = len(x.reads) == 0 && rng.IntN(100) < like.unknown
	}
	for i := range 1 + rng.IntN(4) {
		if at := 10 + rng.Int64N(300); rng.IntN(2) == 0 {
			pl.plant(rng, i, at, rng.IntN(4) == 0)
		} else {
			pl.knot(rng, i, at)
		}
	}
	pl.byEnd()
	return pl, like
}

// knot adds transactions around time at, or without times, of which one reads twice: with both reads
// known, either A comes before B or C before D, but not both.
//
//	A → B → C → D → R → (A or B)
//
// R reads of D, and what says that R comes before A, or before B if A does.
func (pl *plan) knot(rng *rand.Rand, n int, at int64) {
	name := func(x string) string { return fmt.Sprintf("%s.%d", x, n) }
	key := func(x string) keyID { return pl.key(name(x)) }
	timed := rng.IntN(2) == 0
	add := func(x string, start, end int64, timed bool, writes ...string) *planTxn {
		txn := planTxn{name: name(x), session: name(x), timed: timed, start: at + start, end: at + end}
		for _, k := range writes {
			txn.writes = append(txn.writes, key(k))
		}
		pl.txns = append(pl.txns, txn)
		return &pl.txns[len(pl.txns)-1]
	}
	read := func(t *planTxn, k string, from int) { t.reads = append(t.reads, planRead{key(k), []int{from}}) }
	o := len(pl.txns)
	add("O", -20, -10, true, "q")
	a := len(pl.txns)
	read(add("A", 0, 10, timed, "x", "q"), "q", o)
	b := len(pl.txns)
	add("B", 5, 25, timed, "x", "r")
	c := add("C", 20, 30, timed, "y")
	read(c, "r", b)
	d := len(pl.txns)
	add("D", 22, 31, timed, "y", "p")
	r := add("R", 15, 33+rng.Int64N(30), true)
	if !timed {
		r.start, r.end = r.start+20, r.end+20
	}
	read(r, "p", d)
	if rng.IntN(2) == 0 {
		if read(r, "q", o); timed {
			r.start = at + 1
		}
	} else {
		read(r, "x", a)
	}
}

// update makes some writers read a version of the key that they write, not always the one that an execution would have.
func (pl *plan) update(rng *rand.Rand, percent int) {
	for i := range pl.txns {
		x := &pl.txns[i]
		for _, k := range x.writes {
			if x.maybe || rng.IntN(100) >= percent || slices.ContainsFunc(x.reads, func(r planRead) bool { return r.key == k }) {
				continue
			}
			for w := i - 1; w >= 0; w-- {
				if slices.Contains(pl.txns[w].writes, k) {
					x.reads = append(x.reads, planRead{k, []int{w}})
					break
				}
			}
			break
		}
	}
}

// delayed feeds a stream whose reads are known some transactions later.
type delayed struct {
	*rig
	due [][]int // by transaction and read: after how many transactions it is known
}

func newDelayed(pl *plan, cfg Config, due [][]int) *delayed {
	return &delayed{newRig(pl, cfg), due}
}

// dueAt is when a read is known.
func (d *delayed) dueAt(w want) int {
	i := slices.IndexFunc(d.pl.txns[w.reader].reads, func(r planRead) bool { return r.key == w.read.key })
	return d.due[w.reader][i]
}

func (d *delayed) upTo(n int) {
	for i := d.tab.Slots(); i < n; i++ {
		d.add(i)
		d.write(i)
		for _, rd := range d.pl.txns[i].reads {
			d.waiting = append(d.waiting, want{i, rd})
		}
		d.serve(i, nil, func(w want) bool { return w.reader == i && d.dueAt(w) <= i })
		d.settle()
		d.serve(i, nil, func(w want) bool { return d.dueAt(w) <= i })
	}
}

// known is the plan as far as a rig was told of it.
func (d *delayed) known() *plan {
	pl := &plan{keys: d.pl.keys}
	for i := range d.tab.Slots() {
		x := d.pl.txns[i]
		x.reads = nil
		for _, r := range d.pl.txns[i].reads {
			if !slices.ContainsFunc(d.waiting, func(w want) bool { return w.reader == i && w.read.key == r.key }) {
				x.reads = append(x.reads, r)
			}
		}
		pl.txns = append(pl.txns, x)
	}
	return pl
}

// What is new, solved alone, gives the answer that solving everything gives where reads come late, many
// transactions have no times or an unknown outcome, and blocks grow; and the order that it leads to can be executed.
func TestWindowOfRoughStreams(t *testing.T) {
	for name, cfg := range map[string]Config{"ser": {}, "si": {Split: true}, "pc": {Split: true, Prefix: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg.Sessions, cfg.RealTime, cfg.Late = true, true, true
			var ticks, windows, refuted, known, late int
			for n := range *plans / 5 {
				seed := *seedFrom + uint64(n)
				rng := rand.New(rand.NewPCG(seed, 43))
				pl, like := rough(rng)
				if rng.IntN(2) == 0 {
					pl.update(rng, like.updates)
				}
				due := make([][]int, len(pl.txns))
				for i, x := range pl.txns {
					late := like.late
					if len(x.name) > 1 && x.name[0] != 'T' { // of a knot: most, but not all of it
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
				some, all := newDelayed(pl, cfg, due), newDelayed(pl, cfg, due)
				every := 1 + rng.IntN(12)
				fail := func(upTo int, says string) {
					t.Helper()
					t.Fatalf("seed %d, %d transactions, tick every %d, reads known at %v: %s\n%s", seed, upTo, every, due, says, pl)
				}
				for upTo := every; upTo < len(pl.txns)+every+like.delay; upTo += every {
					some.upTo(min(upTo, len(pl.txns)))
					all.upTo(min(upTo, len(pl.txns)))
					if upTo >= len(pl.txns)+like.delay {
						some.serve(len(pl.txns), nil, nil)
						all.serve(len(pl.txns), nil, nil)
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
					before := some.p.solver.window.solved
					want, got := all.p.Solve(1<<20), some.p.Solve(1<<20)
					if got != want {
						fail(upTo, fmt.Sprintf("%v, all solved together %v", got, want))
					}
					ticks++
					if got == sat.Unsat {
						refuted++
						break
					}
					if some.p.solver.window.solved > before {
						windows++
						if len(some.waiting) > 0 {
							late++
						}
						if err := some.known().replay(some.p.solver.Order(), cfg); err != nil {
							fail(upTo, fmt.Sprintf("what was solved is wrong: %v", err))
						}
					}
				}
			}
			t.Logf("%d ticks, %d of them by what is new, %d of those with reads still to be known, %d refuted, %d ended by the known graph", ticks, windows, late, refuted, known)
			if windows < ticks/5 || late < windows/10 {
				t.Error("the sample tells little")
			}
		})
	}
}

// Each of these is solved, then filled up with transactions that follow by the clock and solved again, and at last a
// read of a transaction long past is known, which turns one of two settled pairs round: A before B or C before D.
func TestWindowTurnsSettledPairs(t *testing.T) {
	for _, x := range []struct{ name, late, plan string }{
		{"a pair has a reader more", "x", `
			A a @0-10 w(x)
			B b @5-25 w(x) w(r)
			X x @6-26 r(x)=A
			C c @20-30 r(r)=B w(y)
			D d @22-31 w(y) w(p)
			Y y @23-32 r(y)=C
			R e @15-50 r(p)=D r(x)=A`},
		{"both pairs end before the transaction that a new edge leads to", "p", `
			O o @0-1 w(q)
			A a @10-20 r(q)=O w(x) w(q)
			B b @10-25 w(x) w(r)
			X x @15-26 r(x)=A
			C c @19-30 r(r)=B w(y)
			D d @18-31 w(y) w(p)
			Y y @15-32 r(y)=C
			R e @11-50 r(q)=O r(p)=D`},
		{"no end is known of the transactions that the pairs name", "p", `
			O o @0-1 w(q)
			A a r(q)=O w(x) w(q)
			B b w(x) w(r)
			X x r(x)=A
			C c r(r)=B w(y)
			D d w(y) w(p)
			Y y r(y)=C
			V v @60-61 w(z)
			R e @70-80 r(q)=O r(p)=D`},
	} {
		for name, cfg := range map[string]Config{"ser": {}, "si": {Split: true}, "pc": {Split: true, Prefix: true}} {
			t.Run(x.name+"/"+name, func(t *testing.T) {
				cfg.Sessions, cfg.RealTime, cfg.Late = true, true, true
				pl := parse(x.plan)
				for i := range 20 {
					at := int64(1000 + 10*i)
					pl.txns = append(pl.txns, planTxn{name: fmt.Sprintf("F%d", i), session: "f", timed: true, start: at, end: at + 1, writes: []keyID{pl.key("f")}})
				}
				due := make([][]int, len(pl.txns))
				for i := range pl.txns {
					for _, r := range pl.txns[i].reads {
						at := i
						if pl.txns[i].name == "R" && r.key == pl.key(x.late) {
							at = len(pl.txns) - 2
						}
						due[i] = append(due[i], at)
					}
				}
				d := newDelayed(pl, cfg, due)
				for _, upTo := range []int{pl.txn("R") + 1, len(pl.txns) - 3, len(pl.txns)} {
					last := upTo == len(pl.txns)
					if !last {
						d.upTo(upTo)
					} else { // nothing but the read is new
						d.serve(len(pl.txns), nil, nil)
					}
					if got := d.p.Solve(1 << 20); got != sat.Sat || d.p.subjects.openPairs < 2 || d.p.reports.Found > 0 {
						t.Fatalf("at %d: %v, %d pairs open, %d violations", upTo, got, d.p.subjects.openPairs, d.p.reports.Found)
					}
					if err := d.known().replay(d.p.solver.Order(), cfg); err != nil {
						t.Fatalf("at %d: %v", upTo, err)
					}
				}
				if d.p.solver.window.solved == 0 {
					t.Error("all was solved each time")
				}
			})
		}
	}
}
