package constraint

import (
	"math"

	"github.com/isowatch/isowatch/incremental/sat"
)

// A stream asks for a solution again and again, and most of what is open was
// solved before. With times that need not be done again: a cycle that is new has a
// new edge in it, and stays near that, as what lies long before precedes it by the
// clock.
//
//	 pairs:   left as they are │ held as they are │ free
//	slots     ─────────────────┼──────────────────┼──────────▶
//	                           └ zone             └ fresh
//
// A pair is *settled* while what it means is as it was in the last solution: it has
// no new reader, and its blocks end where they did. Together the settled pairs, in
// the orders that they have, left the graph acyclic as it was then. Now let
//
//	free   be the pairs that are not settled, and those that name a slot from
//	       fresh on, which new transactions may overlap;
//	low    the least slot that a new edge of the graph leads to, or that a free
//	       pair names: wherever an edge leads that the last solution had not;
//	zone   the least number of slots that precede by the clock any slot from low on.
//
// A cycle that was not there has an edge into some slot t from low on. Go along it
// from t. If it never leaves the slots from zone on, the free pairs and those that
// name a slot from zone on make all of it. If it does, the step that leaves them is
// of the known graph or of such a pair, as it begins there; and it leads to a slot
// below zone, which precedes t by the clock. So there is a cycle of the known graph
// and of those pairs in either case, and it is enough to solve the free ones with the
// others that name a slot from zone on held as they are: if that succeeds, all
// pairs together leave the graph acyclic. If it does not, all are solved.
//
// A slot whose end is not known precedes nothing by the clock; pairs that name one
// are free, always. Choices are not looked at so: while there are any all is solved.

// window is what is known of the last solution.
type window struct {
	slots     int    // there were so many
	lowest    slot   // no edge that came since, and was not part of it, leads below
	unsettled int    // pairs that are
	solved    uint64 // how often this was enough, for tests
}

// topOf is the greatest slot that a pair names, or the greatest number where the end
// of one is not known; least the least one.
func (p *Polygraph) topOf(x *pair) (least, top uint32) {
	least = math.MaxUint32
	see := func(s slot) {
		least, top = min(least, s), max(top, s)
		if p.banded.Untimed(s) {
			top = math.MaxUint32
		}
	}
	for _, h := range [2]vid{x.a, x.b} {
		tail := p.tab.Tail(h)
		see(p.writer(h))
		see(p.writer(tail))
		for r := range p.tab.Readers(tail) {
			see(r)
		}
	}
	return least, top
}

func (p *Polygraph) settle(x *pair, top uint32) {
	if !x.settled {
		p.window.unsettled--
	}
	x.settled, x.top = true, top
}

// unsettle says that pair c means something new.
func (p *Polygraph) unsettle(c uint32) {
	if x := &p.pairs[c]; x.settled {
		x.settled = false
		p.window.unsettled++
	}
}

// solvedAll settles all pairs that have an order, after all that is open was solved.
func (p *Polygraph) solvedAll() {
	if p.banded == nil || p.cfg.Last {
		return
	}
	for _, c := range p.solved.pairs {
		x := &p.pairs[c]
		_, top := p.topOf(x)
		p.settle(x, top)
	}
	p.window.slots, p.window.lowest = p.slots, none
}

// Unsettled is how many of the open pairs have not been part of a solution as they
// are; 0 without times, where all is solved each time.
func (p *Polygraph) Unsettled() int {
	if p.banded == nil {
		return 0
	}
	return p.window.unsettled
}

// solveWindow solves what is new among pairs, which are all that are open, and
// tells whether that gives a solution of all.
func (p *Polygraph) solveWindow(pairs, choices []uint32, budget int) bool {
	if p.banded == nil || p.cfg.Last || p.cfg.Ablate != (Ablate{}) || len(choices) > 0 || p.window.unsettled == len(pairs) {
		return false
	}
	fresh := p.banded.Low(slot(p.window.slots))
	low := p.window.lowest
	for _, c := range pairs {
		if x := &p.pairs[c]; !x.settled || x.top >= fresh {
			least, _ := p.topOf(x)
			low = min(low, least)
		}
	}
	zone := p.banded.Low(low) // of none, what nothing is from
	var some []uint32
	free := 0
	for _, c := range pairs {
		x := &p.pairs[c]
		if !x.settled || x.top >= min(fresh, zone) {
			some = append(some, c)
		}
		if !x.settled || x.top >= fresh {
			free++
		}
	}
	if free > 0 || len(some) > 0 {
		q := p.contract(some, nil)
		for i, v := range q.vars {
			if x := &p.pairs[v.id]; x.settled && x.top < fresh {
				hold := sat.Pos(i)
				if !x.ab {
					hold = sat.Neg(i)
				}
				q.clause = append(q.clause, []sat.Lit{hold})
			}
		}
		solver := q.solver(nil)
		(&memory{}).recall(q, solver)
		answer := solver.Solve(budget)
		p.Stats.Conflicts += solver.Stats.Conflicts
		if answer != sat.Sat {
			return false
		}
		for i, v := range q.vars {
			x := &p.pairs[v.id]
			x.ab, x.tried = solver.Value(i), true
			_, top := p.topOf(x)
			p.settle(x, top)
		}
	}
	p.keepPairs(pairs)
	p.window.slots, p.window.lowest = p.slots, none
	p.window.solved++
	p.Stats.Residual = max(p.Stats.Residual, len(pairs))
	return true
}
