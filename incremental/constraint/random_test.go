package constraint

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/isowatch/isowatch/incremental/sat"
	"github.com/isowatch/isowatch/internal/lab/race"
	"github.com/isowatch/isowatch/internal/lab/seeds"
)

var (
	plans    = flag.Int("plans", race.Few(150, 1500), "random plans for each setting")
	seedFrom = seeds.First
)

// A shape says what random plans are like.
type shape struct {
	txns, keys, sessions int
	wrong                int // percent of reads that are altogether false
	maybe                int // percent of transactions of unknown outcome
	timed                bool
}

// randomPlan draws a plan of a few transactions, small enough to try everything.
func randomPlan(rng *rand.Rand, timed bool) *plan {
	return drawPlan(rng, shape{3 + rng.IntN(5), 1 + rng.IntN(3), 2 + rng.IntN(4), rng.IntN(20), rng.IntN(3) * 15, timed})
}

// drawPlan draws a plan: executed one after the other in a hidden order, so that
// it can mostly be satisfied, with false candidates beside the true ones, and
// some reads altogether false.
func drawPlan(rng *rand.Rand, like shape) *plan {
	pl := &plan{}
	for k := range like.keys {
		pl.key(string(rune('x' + k)))
	}
	last := make([]int, like.keys)
	for k := range last {
		last[k] = initially
	}
	for i := range like.txns { // in the hidden order
		x := planTxn{name: fmt.Sprintf("T%d", i), session: string(rune('a' + rng.IntN(like.sessions))), timed: like.timed,
			start: int64(10*i - rng.IntN(25)), end: int64(10*i + rng.IntN(25)), maybe: rng.IntN(100) < like.maybe}
		tookEffect := !x.maybe || rng.IntN(2) == 0
		for k := range like.keys {
			if rng.IntN(2) == 0 {
				r := planRead{key: keyID(k), from: []int{last[k]}}
				if rng.IntN(100) < like.wrong || !tookEffect {
					r.from = []int{initially}
				}
				x.reads = append(x.reads, r)
			}
			if rng.IntN(5) < 2 {
				x.writes = append(x.writes, keyID(k))
				if tookEffect {
					last[k] = i
				}
			}
		}
		pl.txns = append(pl.txns, x)
	}
	pl.addLists(rng)
	pl.addCandidates(rng)
	pl.shuffle(rng, like.timed)
	for s, x := range pl.txns {
		if !x.maybe {
			continue
		}
		for t, y := range pl.txns[:s] {
			if y.maybe && rng.IntN(3) == 0 {
				pl.facts = append(pl.facts, fact{excludes, s, t})
			}
		}
		switch rng.IntN(8) {
		case 0:
			pl.facts = append(pl.facts, fact{includes, s, s})
		case 1:
			pl.facts = append(pl.facts, fact{impossible, s, s})
		}
	}
	return pl
}

// addLists makes some keys lists, and shows an order of some of their versions,
// mostly the hidden one.
func (pl *plan) addLists(rng *rand.Rand) {
	for k := range pl.keys {
		if rng.IntN(4) > 0 {
			continue
		}
		l := planList{key: keyID(k)}
		for i, x := range pl.txns {
			if !x.maybe && slices.Contains(x.writes, l.key) {
				l.from = append(l.from, i)
			}
		}
		if rng.IntN(2) == 0 {
			l.from = append([]int{initially}, l.from...)
		} else if len(l.from) > 0 {
			l.from = l.from[rng.IntN(len(l.from)):]
		}
		if n := len(l.from); n > 2 && rng.IntN(4) == 0 {
			l.from[n-1], l.from[n-2] = l.from[n-2], l.from[n-1]
		}
		if len(l.from) > 1 {
			pl.lists = append(pl.lists, l)
		}
	}
}

func (pl *plan) isList(k keyID) bool {
	return slices.ContainsFunc(pl.lists, func(l planList) bool { return l.key == k })
}

// addCandidates gives some reads of no lists further writers of the key to choose from.
func (pl *plan) addCandidates(rng *rand.Rand) {
	for i := range pl.txns {
		for r := range pl.txns[i].reads {
			rd := &pl.txns[i].reads[r]
			if rng.IntN(2) == 0 || pl.isList(rd.key) {
				continue
			}
			for j, y := range pl.txns {
				if j != i && slices.Contains(y.writes, rd.key) && !slices.Contains(rd.from, j) && rng.IntN(2) == 0 {
					rd.from = append(rd.from, j)
				}
			}
			if rng.IntN(6) == 0 && !slices.Contains(rd.from, initially) {
				rd.from = append(rd.from, initially)
			}
			if rng.IntN(10) == 0 && len(rd.from) > 1 { // the truth is not among them
				rd.from = rd.from[1:]
			}
		}
	}
}

// shuffle puts the transactions in another order of slots: that of their ends, or
// one that keeps the order of sessions.
func (pl *plan) shuffle(rng *rand.Rand, timed bool) {
	order := make([]int, 0, len(pl.txns))
	if timed {
		for i := range pl.txns {
			order = append(order, i)
		}
		slices.SortStableFunc(order, func(a, b int) int { return int(pl.txns[a].end - pl.txns[b].end) })
	} else {
		bySession := map[string][]int{}
		var all []string
		for i, x := range pl.txns {
			bySession[x.session] = append(bySession[x.session], i)
			all = append(all, x.session)
		}
		rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		for _, s := range all {
			order = append(order, bySession[s][0])
			bySession[s] = bySession[s][1:]
		}
	}
	at := make([]int, len(order))
	txns := make([]planTxn, len(order))
	for i, old := range order {
		at[old] = i
		txns[i] = pl.txns[old]
	}
	pl.txns = txns
	move := func(from []int) {
		for i, w := range from {
			if w != initially {
				from[i] = at[w]
			}
		}
	}
	for _, x := range pl.txns {
		for _, rd := range x.reads {
			move(rd.from)
		}
	}
	for _, l := range pl.lists {
		move(l.from)
	}
}

// shrink drops transactions, reads, writes and candidates while fails holds.
func (pl *plan) shrink(fails func(*plan) bool) *plan {
	for again := true; again; {
		again = false
		for _, small := range pl.smaller() {
			if fails(small) {
				pl, again = small, true
				break
			}
		}
	}
	return pl
}

func (pl *plan) clone() *plan {
	c := &plan{keys: pl.keys, facts: slices.Clone(pl.facts), txns: slices.Clone(pl.txns), lists: slices.Clone(pl.lists)}
	for i := range c.txns {
		x := &c.txns[i]
		x.writes, x.reads = slices.Clone(x.writes), slices.Clone(x.reads)
		for r := range x.reads {
			x.reads[r].from = slices.Clone(x.reads[r].from)
		}
	}
	return c
}

func (pl *plan) smaller() []*plan {
	var out []*plan
	change := func(f func(c *plan)) {
		c := pl.clone()
		f(c)
		out = append(out, c)
	}
	for i := range pl.lists {
		change(func(c *plan) { c.lists = slices.Delete(c.lists, i, i+1) })
		if n := len(pl.lists[i].from); n > 2 {
			change(func(c *plan) { c.lists[i].from = slices.Clone(c.lists[i].from[1:]) })
			change(func(c *plan) { c.lists[i].from = slices.Clone(c.lists[i].from[:n-1]) })
		}
	}
	for i := range pl.facts {
		change(func(c *plan) { c.facts = slices.Delete(c.facts, i, i+1) })
	}
	for i := range pl.txns {
		if pl.txns[i].maybe {
			change(func(c *plan) {
				c.txns[i].maybe = false
				c.facts = slices.DeleteFunc(c.facts, func(f fact) bool { return f.s == i || f.t == i })
			})
		}
		for r := range pl.txns[i].reads {
			change(func(c *plan) { c.txns[i].reads = slices.Delete(c.txns[i].reads, r, r+1) })
			for k := range pl.txns[i].reads[r].from {
				if len(pl.txns[i].reads[r].from) > 1 {
					change(func(c *plan) { c.txns[i].reads[r].from = slices.Delete(c.txns[i].reads[r].from, k, k+1) })
				}
			}
		}
		for w, k := range pl.txns[i].writes {
			if !pl.isRead(i, k) {
				change(func(c *plan) { c.txns[i].writes = slices.Delete(c.txns[i].writes, w, w+1) })
			}
		}
		if len(pl.txns[i].reads)+len(pl.txns[i].writes) == 0 && len(pl.facts)+len(pl.lists) == 0 {
			change(func(c *plan) { c.remove(i) })
		}
	}
	return out
}

func (pl *plan) isRead(i int, k keyID) bool {
	if pl.isList(k) {
		return true
	}
	return slices.ContainsFunc(pl.txns, func(x planTxn) bool {
		return slices.ContainsFunc(x.reads, func(rd planRead) bool { return rd.key == k && slices.Contains(rd.from, i) })
	})
}

func (pl *plan) remove(i int) {
	pl.txns = slices.Delete(pl.txns, i, i+1)
	for _, x := range pl.txns {
		for _, rd := range x.reads {
			for k, w := range rd.from {
				if w > i {
					rd.from[k]--
				}
			}
		}
	}
}

// disagrees feeds a plan in an order that seed gives, and says what is wrong with
// the answer.
func disagrees(pl *plan, cfg Config, seed uint64, between bool) (says string) {
	defer func() {
		if e := recover(); e != nil {
			says = fmt.Sprintf("panic: %v", e)
		}
	}()
	want := pl.satisfiable(cfg)
	r := newRig(pl, cfg)
	broke := false
	if between {
		r.each = func() { broke = broke || r.p.reports.Found > 0 || r.p.Solve(1<<20) == sat.Unsat }
	}
	r.feed(rand.New(rand.NewPCG(seed, 3)))
	got := r.answer()
	if broke {
		got = sat.Unsat
	}
	if cfg.PairsMax > 0 && got == sat.Budget { // the run got stuck, which says nothing
		return ""
	}
	if (got == sat.Sat) != want {
		return fmt.Sprintf("%v, but that it can be satisfied is %v", got, want)
	}
	if got != sat.Sat {
		return ""
	}
	all := append(r.p.allEdges(), r.p.solver.chosenEdges()...)
	if !isAcyclic(r.p.g.Nodes(), r.p.parts, all) {
		return "the chosen edges close a cycle"
	}
	order := r.p.solver.Order()
	if err := pl.replay(order, cfg); err != nil {
		return fmt.Sprintf("the order is wrong: %v: %v", err, order)
	}
	return ""
}

// Solve's answer is that of trying everything, and the order that it gives
// executes: on all closures, in bulk and as it comes, with Solve at the end and
// after every step.
func TestSolveAgainstBruteForce(t *testing.T) {
	each(t, func(t *testing.T, cfg Config) {
		t.Parallel()
		answers := map[bool]int{}
		solved := 0
		for i := range *plans {
			seed := *seedFrom + uint64(i)
			rng := rand.New(rand.NewPCG(seed, 1))
			pl := randomPlan(rng, cfg.RealTime)
			between := seed%2 == 1
			if says := disagrees(pl, cfg, seed, between); says != "" {
				small := pl.shrink(func(c *plan) bool { return disagrees(c, cfg, seed, between) != "" })
				t.Fatalf("seed %d, Solve between %v: %s\n%v", seed, between, disagrees(small, cfg, seed, between), small)
			}
			answers[pl.satisfiable(cfg)]++
			if r := feed(pl, cfg); !r.diverged && r.p.reports.Found == 0 && r.p.Undecided() > 0 {
				solved++
			}
		}
		t.Logf("satisfiable or not: %v; left to the solver: %d", answers, solved)
		if answers[true] < *plans/15 || answers[false] < *plans/15 || solved < *plans/30 {
			t.Errorf("the sample tells little: %v, %d left to the solver", answers, solved)
		}
	})
}
