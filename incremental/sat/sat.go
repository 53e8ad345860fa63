// Package sat is a small CDCL(T) solver in the manner of MiniSat: two watched
// literals, first-UIP learning with clause minimisation, activity-ordered
// decisions, phase saving, Luby restarts; and a theory that is told of every
// assignment and may object (the T). It knows nothing of transactions:
// acyclicity is one theory (package acyclic), tests have another.
//
// Budgets are counted in conflicts, never in seconds, and nothing is random, so
// that the same input gives the same answer. An Unsat answer names the theory's
// objections that it rests on (Objections), from which the explanation is made.
//
//	decide → propagate (clauses, then theory) → conflict? → analyze → learn → jump back
//
//	file            what
//	sat.go          types, assignments, the search loop
//	propagate.go    watched literals, the theory
//	analyze.go      first UIP, minimisation, what an Unsat rests on
//	order.go        the decision heap
package sat

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
	// among them, that cannot all hold, and a number for this objection.
	Assert(l Lit) (conflict []Lit, objection int)
	// Undo takes back the last n asserted literals.
	Undo(n int)
}

// Answer is what Solve found; Budget means that its conflicts ended first.
type Answer uint8

// The answers.
const (
	Budget Answer = iota
	Sat
	Unsat
)

func (a Answer) String() string { return [...]string{"budget", "sat", "unsat"}[a] }

type clause struct {
	lits []Lit
	// from are the numbers of the clauses that this one was derived from;
	// objection is the theory's number, or -1. Given clauses have neither.
	from      []int32
	objection int
}

const noReason = int32(-1)

// Solver holds one problem.
type Solver struct {
	theory  Theory
	clauses []clause
	watches [][]int32 // by literal: clauses that watch it and look when it becomes false
	value   []int8    // by variable: 0 open, 1 true, -1 false
	phase   []bool
	level   []int32
	reason  []int32 // by variable: the clause that forced it, or noReason
	trail   []Lit
	limits  []int // trail length at each decision
	head    int   // trail up to here is propagated through clauses
	told    int   // trail up to here is asserted in the theory
	heap    heap
	bump    float64
	seen    []bool
	unsat   bool
	last    []int32 // what the Unsat was derived from
	Stats   Stats
}

// Stats count the search.
type Stats struct{ Decisions, Propagations, Conflicts, Restarts int }

// New makes a problem of n variables under the theory, which may be nil.
// Decisions follow variable numbers until conflicts teach better, and phases
// are true at first.
func New(n int, theory Theory) *Solver {
	s := &Solver{theory: theory, watches: make([][]int32, 2*n), value: make([]int8, n), phase: make([]bool, n),
		level: make([]int32, n), reason: make([]int32, n), seen: make([]bool, n), bump: 1}
	s.heap.init(n)
	for v := range n {
		s.phase[v] = true
		s.reason[v] = noReason
	}
	return s
}

// SetPhase says which value to try first.
func (s *Solver) SetPhase(v int, phase bool) { s.phase[v] = phase }

// AddClause adds a disjunction, before Solve.
func (s *Solver) AddClause(lits ...Lit) {
	s.add(clause{lits: append([]Lit(nil), lits...), objection: -1})
}

// Value is v's value after Sat.
func (s *Solver) Value(v int) bool { return s.value[v] > 0 }

func (s *Solver) lit(l Lit) int8 {
	if l.Positive() {
		return s.value[l.Var()]
	}
	return -s.value[l.Var()]
}

// add stores a clause and watches its first two literals. An empty one makes
// the problem unsatisfiable; a unit is put on the trail at level 0 by Solve.
func (s *Solver) add(c clause) int32 {
	id := int32(len(s.clauses))
	s.clauses = append(s.clauses, c)
	switch len(c.lits) {
	case 0:
		s.unsat, s.last = true, append(s.last, id)
	case 1:
	default:
		s.watches[c.lits[0]] = append(s.watches[c.lits[0]], id)
		s.watches[c.lits[1]] = append(s.watches[c.lits[1]], id)
	}
	return id
}

// assign puts l on the trail.
func (s *Solver) assign(l Lit, reason int32) {
	v := l.Var()
	s.value[v] = 1
	if !l.Positive() {
		s.value[v] = -1
	}
	s.level[v] = int32(len(s.limits))
	s.reason[v] = reason
	s.trail = append(s.trail, l)
}

// jump goes back to level n.
func (s *Solver) jump(n int) {
	if len(s.limits) <= n {
		return
	}
	to := s.limits[n]
	if s.told > to {
		s.theory.Undo(s.told - to)
		s.told = to
	}
	for i := len(s.trail) - 1; i >= to; i-- {
		v := s.trail[i].Var()
		s.phase[v] = s.trail[i].Positive()
		s.value[v] = 0
		s.heap.push(v)
	}
	s.trail = s.trail[:to]
	s.limits = s.limits[:n]
	s.head = min(s.head, to)
}

// Solve searches until an answer is found or budget conflicts have been met.
// After Sat the assignment stays on the theory.
func (s *Solver) Solve(budget int) Answer {
	if s.unsat {
		return Unsat
	}
	s.jump(0)
	for id, c := range s.clauses {
		if len(c.lits) == 1 && s.lit(c.lits[0]) == 0 {
			s.assign(c.lits[0], int32(id))
		} else if len(c.lits) == 1 && s.lit(c.lits[0]) < 0 {
			s.fail(int32(id))
			return Unsat
		}
	}
	sinceRestart := 0
	for {
		if id := s.propagate(); id >= 0 {
			s.Stats.Conflicts++
			budget--
			sinceRestart++
			if !s.learn(id) {
				return Unsat
			}
			if budget <= 0 {
				return Budget
			}
			continue
		}
		if sinceRestart >= 64*luby(s.Stats.Restarts+1) {
			sinceRestart = 0
			s.Stats.Restarts++
			s.jump(0)
			continue
		}
		v := s.heap.pop(s.value)
		if v < 0 {
			return Sat
		}
		s.Stats.Decisions++
		s.limits = append(s.limits, len(s.trail))
		if s.phase[v] {
			s.assign(Pos(v), noReason)
		} else {
			s.assign(Neg(v), noReason)
		}
	}
}

// luby is the i-th term (from 1) of 1 1 2 1 1 2 4 …
func luby(i int) int {
	for k := 1; ; k++ {
		if i == 1<<k-1 {
			return 1 << (k - 1)
		}
		if i < 1<<k-1 {
			return luby(i - (1<<(k-1) - 1))
		}
	}
}
