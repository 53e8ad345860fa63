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
//	 time     ─────────────────┼──────────────────┼──────────▶
//	                           └ zone             └ fresh
//
// A pair is *settled* if it was part of the last solution. Together the settled pairs,
// in the orders that they have, left the graph acyclic as it was then. What a pair means
// may grow: a block has a new reader, or a new end; then it has *moved*. An edge is *new*
// if it was not in the graph then, nor in that solution. Let
//
//	past(s)  be the end of s, or where that is not known, the least known end of what
//	         its commit reaches: then s, too, reaches whatever begins later;
//	zone     a time so that of each new edge what ended before zone precedes, by
//	         the clock or what leads there, one end or the other.
//
// A cycle that was not there has a new edge from some s to some t in it. Go along it
// from t. If past is never before zone, the pairs that are not settled and those
// that name a slot whose past is not before zone make all of it. If it does, the step
// that leads to the first such slot x is of the known graph or of such a pair, as it
// begins before; and x reaches s, from which the new edge leads to t, or t. So there
// is a cycle of the known graph and of those pairs in either case, and it is enough to
// solve them alone: if that succeeds, all pairs together leave the graph acyclic. If
// it does not, all are solved.
//
// Of those pairs the settled ones are held as they are, unless they have moved or new
// transactions may overlap them, as they name a slot whose past is not before *fresh*:
// these are free. Where one of them is turned round, all of its edges are new, and zone
// may have to be less.
//
// To bases nothing leads (reach.Banded.AddBase): no cycle passes them. Choices are not
// looked at so: while there are any all is solved.

// window is what is known of the last solution.
type window struct {
	slots  int    // there were so many
	solved uint64 // how often this was enough, for tests
}

// never is before all times, noZone behind all: nothing is new.
const never, noZone = math.MinInt64, math.MaxInt64

// scope is, of what a pair means, a time so that what ended before precedes one end of each
// of its edges, and the greatest past of what it names. Every edge has an end on either side.
func (p *subjects) scope(x *pair) (zone, top int64) {
	zone, top = never, never
	for _, h := range [2]vid{x.a, x.b} {
		least := int64(noZone)
		see := func(s slot) {
			if !p.banded.IsBase(s) {
				least, top = min(least, p.banded.Before(s)), max(top, p.banded.Past(s))
			}
		}
		tail := p.tab.Tail(h)
		see(p.writer(h))
		see(p.writer(tail))
		for r := range p.tab.Readers(tail) {
			see(r)
		}
		zone = max(zone, least)
	}
	return zone, top
}

func (p *subjects) settle(x *pair, top int64) {
	if !x.settled {
		p.unsettled--
	}
	x.settled, x.moved, x.top = true, false, top
}

// move says that there is a new edge in what pair c means, which leaves slot s.
func (p *subjects) move(c pairID, s slot) {
	if x := &p.pairs[c]; x.settled && p.banded != nil && !p.banded.IsBase(s) {
		x.moved = true
		p.zone = min(p.zone, p.banded.Before(s))
	}
}

// moveTail says that the block that head heads, one of pair c's, ends elsewhere.
func (p *subjects) moveTail(head vid, c pairID) {
	tail := p.tab.Tail(head)
	p.move(c, p.writer(tail))
	for r := range p.tab.Readers(tail) {
		p.move(c, r)
	}
}

// free tells whether the order of a pair is open to change.
func (x *pair) free(fresh int64) bool { return !x.settled || x.moved || x.top >= fresh }

// solvedAll settles all pairs that have an order, after all that is open was solved.
func (p *solver) solvedAll() {
	if p.banded == nil || p.cfg.Last {
		return
	}
	for _, c := range p.solved.pairs {
		x := &p.subjects.pairs[c]
		_, top := p.subjects.scope(x)
		p.subjects.settle(x, top)
	}
	p.window.slots, p.zone = p.tab.Slots(), noZone
}

// Unsettled is how many of the open pairs have not been part of a solution as they
// are; 0 without times, where all is solved each time.
func (p *solver) Unsettled() int {
	if p.banded == nil {
		return 0
	}
	return p.subjects.unsettled
}

// solveWindow solves what is new among pairs, which are all that are open, and
// tells whether that gives a solution of all.
func (p *solver) solveWindow(pairs []pairID, choices []choiceID, budget int) bool {
	if p.banded == nil || p.cfg.Last || len(choices) > 0 || p.subjects.unsettled == len(pairs) {
		return false
	}
	fresh, zone := p.banded.Fresh(slot(p.window.slots)), p.zone
	for _, c := range pairs {
		if x := &p.subjects.pairs[c]; !x.settled {
			z, _ := p.subjects.scope(x)
			zone = min(zone, z)
		}
	}
	done := zone == noZone || p.solveFrom(zone, fresh, false, pairs, budget)
	if !done { // any of those that are free may have to be turned
		least := zone
		for _, c := range pairs {
			if x := &p.subjects.pairs[c]; x.settled && x.free(fresh) {
				z, _ := p.subjects.scope(x)
				least = min(least, z)
			}
		}
		done = least < zone && p.solveFrom(least, fresh, true, pairs, budget)
	}
	if done {
		p.keepPairs(pairs)
		p.window.slots, p.zone = p.tab.Slots(), noZone
		p.window.solved++
		p.Stats.Residual = max(p.Stats.Residual, len(pairs))
	}
	return done
}

// solveFrom solves what a cycle may consist of that is new, and tells whether that
// gives a solution of all, zone being what it is for the pairs that are not settled, or,
// if any says so, for all that are free.
func (p *solver) solveFrom(zone, fresh int64, any bool, pairs []pairID, budget int) bool {
	var some []pairID
	for _, c := range pairs {
		if x := &p.subjects.pairs[c]; x.free(fresh) || x.top >= zone {
			some = append(some, c)
		}
	}
	p.repeated = 0 // if this is the second attempt, it has those of the first
	for _, c := range some {
		if x := &p.subjects.pairs[c]; x.settled && x.top == noZone {
			p.repeated++
		}
	}
	q := p.contract(some, nil)
	if p.halted() {
		return false
	}
	for i, v := range q.vars {
		if x := &p.subjects.pairs[v.pair]; !x.free(fresh) {
			hold := sat.Pos(i)
			if !x.ab {
				hold = sat.Neg(i)
			}
			q.clause = append(q.clause, []sat.Lit{hold})
		}
	}
	solver := q.solver()
	answer := solver.Solve(budget)
	p.Stats.Conflicts += solver.Stats.Conflicts
	if answer != sat.Sat {
		return false
	}
	for i, v := range q.vars {
		if x := &p.subjects.pairs[v.pair]; !any && x.settled && x.ab != solver.Value(i) {
			if z, _ := p.subjects.scope(x); z < zone {
				return false
			}
		}
	}
	for i, v := range q.vars {
		x := &p.subjects.pairs[v.pair]
		x.ab, x.tried = solver.Value(i), true
		_, top := p.subjects.scope(x)
		p.subjects.settle(x, top)
	}
	return true
}
