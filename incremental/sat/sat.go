// Package sat is a CDCL(T) solver: clauses over Boolean variables, and a theory
// that is told of every assignment, may object to it, and may draw conclusions
// of its own (the T). It knows nothing of transactions: acyclicity is one theory
// (package acyclic), tests have another.
//
//	decide ──▶ propagate ──▶ all assigned: Sat
//	  ▲        clauses, then   │ conflict
//	  │        the theory      ▼
//	  └──── jump back ◀── analyze: first UIP, minimise, learn ──▶ level 0: Unsat
//
//	file            what
//	sat.go          types, the problem: variables, clauses, lemmas
//	search.go       the loop: decisions, restarts, budgets
//	propagate.go    watched literals, the theory
//	analyze.go      first UIP, what an Unsat rests on
//	minimise.go     shorter learned clauses
//	arena.go        where clauses live; their deletion
//	trace.go        derivations, kept when the clauses are gone
//	order.go        the decision heap
//
// Non-obvious:
//   - Nothing is random and nothing looks at a clock: budgets are counted in
//     conflicts, so that the same input gives the same answer. Stop alone lets a
//     caller bring in something else.
//   - Clauses lie in one piece of memory and are named by their place, which
//     changes when it is compacted. Derivations are named by numbers that outlive
//     the clauses.
//   - A literal's place on the trail is the theory's count of what it was told
//     before, so a lazy reason is asked for by that number.
//   - Literals that are false at level 0 are never part of a learned clause; the
//     derivation names the unit clauses instead.
package sat

import "fmt"

// Lit is a literal: variable v positively is 2v, negatively 2v+1.
type Lit int32

// Pos is the literal that v is true; Neg that it is false.
func Pos(v int) Lit { return Lit(2 * v) }

// Neg is the literal that v is false.
func Neg(v int) Lit { return Lit(2*v + 1) }

// Not is the opposite literal.
func (l Lit) Not() Lit { return l ^ 1 }

// Var is the literal's variable.
func (l Lit) Var() int { return int(l >> 1) }

// Positive tells whether l is true when its variable is.
func (l Lit) Positive() bool { return l&1 == 0 }

// Theory judges partial assignments.
type Theory interface {
	// Assert takes in that l is true. If that cannot be together with what was
	// asserted before, it takes in nothing and returns asserted literals, l
	// among them, that cannot all hold, and a number for this objection. The
	// solver copies them.
	Assert(l Lit) (conflict []Lit, objection int)
	// Undo takes back the last n asserted literals.
	Undo(n int)
}

// Propagator is a theory that draws conclusions.
type Propagator interface {
	Theory
	// Implied returns literals that must hold because of what is asserted, the
	// last Assert included. It may leave out some, and may name literals that
	// are assigned.
	Implied() []Lit
	// Reason returns literals among the first before asserted that, together,
	// imply l, and the number of this objection (to l being false). The solver
	// asks only when a conflict involves l.
	Reason(l Lit, before int) (because []Lit, objection int)
}

// Guide is a theory with an opinion on what to try first. It is asked for
// variables that have no activity yet; the others keep their last value.
type Guide interface {
	// Prefer returns 1 for true, -1 for false, 0 for no opinion.
	Prefer(v int) int8
}

// Answer is what Solve found; Budget means that its conflicts ended first, or
// that Stop did.
type Answer uint8

// The answers.
const (
	Budget Answer = iota
	Sat
	Unsat
)

func (a Answer) String() string { return [...]string{"budget", "sat", "unsat"}[a] }

// Options say how to search. The zero value is what measured best; the rest is
// there for comparison.
type Options struct {
	// Steady is how many conflicts pass before activities count: until then
	// variables are decided by number. 0: 1000; negative: none.
	Steady int
	// ReduceFirst is how many conflicts pass before learned clauses are first
	// deleted. 0: 2000.
	ReduceFirst int
	// Learned, if set, is called with every clause that is derived, in order, to
	// be checked by an independent judge. The slice is only lent.
	Learned func(lits []Lit)
	// Stop, if set, is asked at each conflict, and every AskEvery steps (decisions, literals
	// told to the theory), whether to end the search, which then answers Budget.
	Stop func() bool
}

// Solver holds one problem.
type Solver struct {
	opt        Options
	theory     Theory     // or nil: any assignment will do
	propagator Propagator // the theory, if it draws conclusions, or nil
	guide      Guide      // the theory, if it has opinions, or nil

	arena   arena     // the clauses
	learned []ref     // the clauses that conflicts taught, ascending by place
	lazy    []ref     // clauses that the theory gave as reasons, which nothing watches
	watches [][]watch // by literal: clauses to look at when it becomes false

	value   []int8   // by literal: 0 open, 1 true, -1 false
	level   []int32  // by variable: how many decisions there were when it was assigned
	reason  []ref    // by variable: the clause that forced its value; none of a decision
	unit    []deriv  // by variable: the derivation of its unit clause, if known
	role    []role   // by variable: how it is decided
	phase   []bool   // by variable: the value that it is given when it is decided, the last that it had
	seen    []mark   // by variable: scratch of the analysis
	trail   []Lit    // the literals that are true, as they were assigned
	limits  []int    // by decision: how many literals were true before it
	head    int      // so many of the literals that are true, the first ones, have gone through all clauses
	told    int      // so many of them are asserted in the theory
	heap    heap     // the ordinary variables that may be open, the most active first
	bump    float64  // what a variable's activity grows by when a conflict involves it
	last    []deriv  // what the answer Unsat was derived from
	stamps  []uint32 // by decision: scratch for counting to how many decisions a clause goes back
	stamp   uint32   // the round of that count
	marked  []Lit    // scratch: literals of whose variables the analysis has to forget what it saw
	todo    []Lit    // scratch of the minimisation
	from    []deriv  // scratch: what the clause being learned is derived from
	auxNext int      // no auxiliary variable to be decided below this is open
	trace   trace    // how clauses were derived

	given       int   // calls of AddClause
	unsat       bool  // the clauses contradict each other, whatever is decided
	sinceAsked  int   // steps since Options.Stop was asked
	stopped     bool  // Options.Stop said that the search ends
	untilReduce int   // how many conflicts pass before learned clauses are deleted the next time
	reductions  int   // how often they were
	Stats       Stats // of all calls of Solve
}

// role says how a variable is decided.
type role uint8

const (
	ordinary role = iota
	// auxiliary variables are never decided: open means false.
	auxiliary
	// lastly are auxiliary variables that are decided after all others.
	lastly
)

// Stats count the search.
type Stats struct {
	Conflicts, Restarts int
	Reasons             int // of literals that the theory implied, as far as they were asked for
	Deleted             int // learned clauses
}

// New makes a problem of n variables under the theory, which may be nil.
// Decisions follow variable numbers until conflicts teach better, and phases
// are true at first.
func New(n int, theory Theory, opt Options) *Solver {
	if opt.Steady == 0 {
		opt.Steady = steady
	}
	if opt.ReduceFirst <= 0 {
		opt.ReduceFirst = reduceFirst
	}
	s := &Solver{opt: opt, theory: theory, bump: 1, untilReduce: opt.ReduceFirst}
	if p, ok := theory.(Propagator); ok {
		s.propagator = p
	}
	if g, ok := theory.(Guide); ok {
		s.guide = g
	}
	s.trace.init()
	s.watches = make([][]watch, 2*n)
	s.value = make([]int8, 2*n)
	s.phase = make([]bool, n)
	s.level = make([]int32, n)
	s.reason = make([]ref, n)
	s.unit = make([]deriv, n)
	s.role = make([]role, n)
	s.seen = make([]mark, n)
	s.stamps = make([]uint32, n+1)
	s.trail = make([]Lit, 0, n)
	s.heap.init(n)
	for v := range n {
		s.phase[v] = true
		s.reason[v] = noRef
	}
	return s
}

// NewVar adds a variable and returns its number; also between solves.
func (s *Solver) NewVar() int {
	v := len(s.phase)
	s.watches = append(s.watches, nil, nil)
	s.value = append(s.value, 0, 0)
	s.phase = append(s.phase, true)
	s.level = append(s.level, 0)
	s.reason = append(s.reason, noRef)
	s.unit = append(s.unit, noDeriv)
	s.role = append(s.role, ordinary)
	s.seen = append(s.seen, 0)
	s.stamps = append(s.stamps, 0)
	s.heap.grow()
	return v
}

// SetPhase says which value to try first.
func (s *Solver) SetPhase(v int, phase bool) { s.phase[v] = phase }

// SetAux makes v auxiliary: its being false costs nothing and it is never
// decided. After Sat it is true only if it was forced. The caller promises that
// the theory has no objection to Neg(v) (it stands for no arc); clauses with two
// or more auxiliary variables positively are allowed: these are then decided,
// after all others, false first. v must not be in a clause yet.
func (s *Solver) SetAux(v int) {
	s.role[v] = auxiliary
	s.phase[v] = false
	s.heap.exclude(v)
}

// AddClause adds a disjunction, before Solve or between two. It takes back the
// assignment of the last Solve. Clauses are numbered by calls, from 0 (Given).
func (s *Solver) AddClause(lits ...Lit) {
	id := s.trace.leaf(given, s.given)
	s.given++
	s.enter(lits, id)
}

// enter adds a clause at level 0, with the derivation id.
func (s *Solver) enter(lits []Lit, id deriv) {
	s.jump(0)
	if s.unsat {
		return
	}
	c, tautology := s.distinct(lits)
	if tautology {
		return
	}
	s.wakeAux(c)
	// Literals that are not false go first: they are watched.
	open := 0
	for i, l := range c {
		if s.value[l] >= 0 {
			c[i], c[open] = c[open], c[i]
			open++
		}
	}
	switch {
	case len(c) == 1 && open == 1:
		if s.value[c[0]] == 0 {
			s.assign(c[0], noRef)
			s.unit[c[0].Var()] = id
		}
		return
	case open == 0:
		s.unsat = true
		s.last = append(s.last[:0], id)
		for _, l := range c {
			s.last = append(s.last, s.unitOf(l.Var()))
		}
		return
	}
	r := s.arena.alloc(c, id, 0)
	s.attach(r)
	if open == 1 && s.value[c[0]] == 0 {
		s.assign(c[0], r)
	}
}

// distinct copies a clause without repetitions; a tautology is one with a
// literal and its opposite.
func (s *Solver) distinct(lits []Lit) (c []Lit, tautology bool) {
	c = s.todo[:0]
	for _, l := range lits {
		if l < 0 || l.Var() >= len(s.phase) {
			panic(fmt.Sprintf("sat: a clause names literal %d of a problem of %d variables", l, len(s.phase)))
		}
		m := positive << (l & 1)
		tautology = tautology || s.seen[l.Var()]&(positive|negative) == (positive|negative)&^m
		if s.seen[l.Var()]&m == 0 {
			s.seen[l.Var()] |= m
			c = append(c, l)
		}
	}
	for _, l := range c {
		s.seen[l.Var()] = 0
	}
	s.todo = c[:0]
	return c, tautology
}

// wakeAux lets auxiliary variables be decided if the clause has two of them
// positively: then nothing forces either.
func (s *Solver) wakeAux(c []Lit) {
	n := 0
	for _, l := range c {
		if l.Positive() && s.role[l.Var()] != ordinary {
			n++
		}
	}
	if n < 2 {
		return
	}
	for _, l := range c {
		if l.Positive() && s.role[l.Var()] == auxiliary {
			s.role[l.Var()] = lastly
			s.auxNext = 0
		}
	}
}

// Value is v's value after Sat.
func (s *Solver) Value(v int) bool { return s.value[Pos(v)] > 0 }
