package constraint

import (
	"slices"

	"github.com/isowatch/isowatch/incremental/acyclic"
	"github.com/isowatch/isowatch/incremental/graph"
	"github.com/isowatch/isowatch/incremental/sat"
	"github.com/isowatch/isowatch/incremental/verdict"
)

// solver decides what is open as a whole.
type solver struct {
	*known
	subjects   *subjects
	blocks     *blocks
	writers    *writers
	reports    *reports
	orders     *orders
	solved     solution // the last one; see subjects.current
	repeated   int      // how much of what was stated last had been solved before
	window     window
	contracted [][2]uint32 // the memory of the last problem; see problem.fixed
}

// solution is a choice for all that is open that leaves the graph acyclic.
type solution struct {
	pairs          []pairID     // that were open; each has its order in it as pair.ab
	openChoices    int          // how many there were; each has what it read in it as choice.last
	edgesOfChoices []graph.Edge // what follows from what choices read
	edges          int          // of the graph when it was found, to see whether it is stale
	// order is nil unless the history was run: then that is the solution, and slots how many there were.
	order []verdict.Event
	slots int
}

// runFirst is how many open pairs and choices make it worth trying to run the
// history before they are stated for the solver.
const runFirst = 2000

// Solve decides whether the open pairs and choices can all be decided without
// a cycle, within a budget of conflicts.
//
// The search is complete along the order first, search last (design 3): the
// graph is contracted to the nodes that open pairs name, ordered topologically,
// and every pair is first given the order that agrees, every read the last
// version before it; only where that closes a cycle does the solver learn and
// search. Unsat reports a violation and gives up what it rests on.
func (p *Polygraph) Solve(budget int) sat.Answer {
	p.propagate()
	p.Budget.Use((len(p.subjects.pairs) + len(p.subjects.choices)) / placesAStep)
	if p.halted() || p.GaveUp() {
		return sat.Budget
	}
	pairs, choices := p.subjects.undecided()
	if p.subjects.current && p.solver.solved.edges == p.g.Len() && p.solver.solved.openChoices == len(choices) &&
		slices.Equal(pairs, p.solver.solved.pairs) {
		return sat.Sat
	}
	p.solver.solved, p.subjects.current, p.solver.repeated = solution{}, false, 0
	if p.solver.solveWindow(pairs, choices, budget) {
		return sat.Sat
	}
	if p.halted() {
		return sat.Budget
	}
	if p.orders.isPutOff {
		if p.solver.repeated = p.tab.Slots(); p.solver.run(pairs, choices) {
			return sat.Sat
		}
		p.makePutOff()
		return p.Solve(budget)
	}
	if p.orders.implicit > 0 || p.banded == nil && (p.places != nil || !p.cfg.Last) && len(pairs)+len(choices) > runFirst {
		p.Stats.Residual = max(p.Stats.Residual, len(pairs)+len(choices)+p.orders.implicit)
		p.solver.repeated = len(pairs) + len(choices)
		if p.solver.run(pairs, choices) {
			return sat.Sat
		}
		if p.orders.implicit > 0 {
			return sat.Budget
		}
	}
	p.Stats.Residual = max(p.Stats.Residual, len(pairs)+len(choices))
	if len(pairs)+len(choices) == 0 {
		p.solver.solved, p.subjects.current = solution{edges: p.g.Len()}, true
		p.solver.solvedAll()
		return sat.Sat
	}
	if p.banded == nil || len(choices) > 0 { // what was solved is not left as it is next time
		p.solver.repeated = p.solver.again(pairs, choices)
	}
	q := p.solver.contract(pairs, choices)
	if p.halted() {
		return sat.Budget
	}
	solver := q.solver()
	answer := solver.Solve(budget)
	p.Stats.Conflicts += solver.Stats.Conflicts
	switch answer {
	case sat.Sat:
		p.solver.keep(q, solver, pairs, choices)
		p.solver.solvedAll()
	case sat.Unsat:
		p.solver.reportUnsat(q, solver)
	}
	return answer
}

// Repeated is how many of the open pairs and choices that the last Solve stated to the
// solver had been solved before, where it did not find all as it was: what they cost is spent
// again at each Solve. 0 where times help, and only what is new is solved.
func (p *solver) Repeated() int { return p.repeated }

// again is how many were solved before.
func (p *solver) again(pairs []pairID, choices []choiceID) (n int) {
	for _, c := range pairs {
		if p.subjects.pairs[c].tried {
			n++
		}
	}
	for _, c := range choices {
		if p.subjects.choices[c].last != none {
			n++
		}
	}
	return n
}

// keep stores the solver's solution of what is open.
func (p *solver) keep(q *problem, solver *sat.Solver, pairs []pairID, choices []choiceID) {
	p.solved = solution{openChoices: len(choices)}
	for i, v := range q.vars {
		switch on := solver.Value(i); {
		case v.kind == pairVar:
			p.subjects.pairs[v.pair].ab, p.subjects.pairs[v.pair].tried = on, true
		case !on:
		case v.kind == candVar:
			p.subjects.choices[v.choice].last = v.v
			fallthrough
		case v.kind == followsVar:
			p.solved.edgesOfChoices = append(p.solved.edgesOfChoices, v.means...)
		}
	}
	p.keepPairs(pairs)
}

// keepPairs makes the orders that pairs have part of the solution.
func (p *solver) keepPairs(pairs []pairID) {
	p.subjects.current = true
	p.solved.edges, p.solved.pairs = p.g.Len(), pairs
}

// coreMax bounds the constraints of which a refutation is made minimal; a
// larger one is reported as it is.
const coreMax = 60

// reportUnsat reports that every choice closes a cycle, with the cycles that a
// refutation uses, and gives up the constraints in them. The refutation is made
// minimal first: without any one of its constraints the rest can be satisfied.
func (p *solver) reportUnsat(q *problem, solver *sat.Solver) {
	pairs, choices := q.core(solver)
	left := coreConflicts
	for i := 0; len(pairs)+len(choices) <= coreMax && i < len(pairs)+len(choices) && left > 0 && !p.halted(); {
		var lessPairs []pairID
		var lessChoices []choiceID
		if i < len(pairs) {
			lessPairs, lessChoices = slices.Delete(slices.Clone(pairs), i, i+1), choices
		} else {
			k := i - len(pairs)
			lessPairs, lessChoices = pairs, slices.Delete(slices.Clone(choices), k, k+1)
		}
		less := p.contract(lessPairs, lessChoices)
		s := less.solver()
		answer := s.Solve(min(coreBudget, left))
		if left -= s.Stats.Conflicts; answer != sat.Unsat {
			i++ // needed, or too hard to say
			continue
		}
		q, solver, pairs = less, s, lessPairs
		// What the smaller refutation does not use goes as well; those found to
		// be needed stay, so the count of them holds.
		usedPairs, usedChoices := q.core(solver)
		i -= missing(pairs, usedPairs, i)
		pairs, choices = usedPairs, usedChoices
	}
	p.giveUp(pairs, choices)
	if !p.reports.more() {
		return
	}
	// What candidates a choice has left, and what is known to follow them, comes
	// from the closure.
	v := Violation{Because: map[int][]graph.Edge{}, Assumed: len(choices) > 0 && p.cfg.RealTime}
	var todo []step
	for _, o := range solver.Objections() {
		var walk []step
		walk, todo = p.expand(q, q.theory.Cycle(o), todo)
		v.Cases = append(v.Cases, edges(walk))
		for _, s := range walk {
			if s.Why == verdict.ByCase && s.id == none {
				p.reports.spine(&v, s.Edge)
			}
			v.Assumed = v.Assumed || s.Assumed || s.Type == verdict.RT
		}
	}
	for _, ci := range choices {
		v.Reads = append(v.Reads, Read{p.subjects.choices[ci].reader, p.subjects.choices[ci].key})
	}
	p.reports.ground(&v, todo)
	p.reports.markAssumed(&v)
	p.reports.tell(v)
}

// coreBudget is the conflicts that making a refutation smaller may cost, each
// time, and coreConflicts all times together.
const coreBudget, coreConflicts = 5000, 20_000

// missing counts the elements of all[:n] that are not in some; both ascend.
func missing[T pairID | choiceID](all, some []T, n int) int {
	m := 0
	for _, x := range all[:min(n, len(all))] {
		if _, ok := slices.BinarySearch(some, x); !ok {
			m++
		}
	}
	return m
}

// core lists the pairs and choices that the solver's refutation rests on,
// ascending.
func (q *problem) core(solver *sat.Solver) (pairs []pairID, choices []choiceID) {
	use := func(l sat.Lit) {
		switch v := q.vars[l.Var()]; v.kind {
		case pairVar:
			pairs = append(pairs, v.pair)
		case candVar, followsVar:
			choices = append(choices, v.choice)
		}
	}
	for _, o := range solver.Objections() {
		for _, l := range q.theory.Cycle(o).Lits {
			if l >= 0 {
				use(l)
			}
		}
	}
	for _, g := range solver.Given() {
		for _, l := range q.clause[g] {
			use(l)
		}
	}
	slices.Sort(pairs)
	slices.Sort(choices)
	return slices.Compact(pairs), slices.Compact(choices)
}

// giveUp takes constraints out that were reported to have no solution.
func (p *solver) giveUp(pairs []pairID, choices []choiceID) {
	for _, id := range pairs {
		pr := p.subjects.pairs[id]
		p.orders.given[[2]vid{min(pr.a, pr.b), max(pr.a, pr.b)}] = true
		p.subjects.kill(id)
	}
	for _, ci := range choices {
		p.subjects.endChoice(&p.subjects.choices[ci], choiceGone)
	}
}

// expand turns a cycle of the contracted graph into one of the known graph:
// runs of fixed arcs become paths.
func (p *solver) expand(q *problem, cycle acyclic.Cycle, todo []step) ([]step, []step) {
	var walk []step
	for i := 0; i < len(cycle.Arcs); {
		if l := cycle.Lits[i]; l >= 0 {
			walk = append(walk, step{q.edge(l, cycle.Arcs[i]), none})
			i++
			continue
		}
		from := cycle.Arcs[i].From
		for i < len(cycle.Arcs) && cycle.Lits[i] < 0 {
			i++
		}
		// arcs[0] stands for a literal, so a run ends before the list does or
		// at the beginning of the cycle
		to := cycle.Arcs[i%len(cycle.Arcs)].From
		run := p.reports.path(q.nodes[from], q.nodes[to], none)
		walk = append(walk, run...)
		todo = append(todo, run...)
	}
	return walk, todo
}
