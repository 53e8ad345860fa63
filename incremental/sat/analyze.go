package sat

// mark is what the analysis notes at a variable.
type mark uint8

const (
	inClause  mark = 1 << iota // in the learned clause, or resolved away, or false at level 0
	redundant                  // not in the clause, which implies it
	dropped                    // of the clause, by minimisation
	explained                  // the clauses that imply it are noted
	positive                   // of distinct
	negative
)

// learn derives the first-UIP clause from the false clause r, jumps back and
// asserts it. It returns false when the problem is unsatisfiable.
func (s *Solver) learn(r ref) bool {
	// A clause of the theory may be false below the current level.
	top := int32(0)
	for _, l := range s.arena.lits(r) {
		top = max(top, s.level[l.Var()])
	}
	s.jump(int(top))
	if top == 0 {
		s.fail(r)
		return false
	}
	s.from = s.from[:0]
	learnt := s.resolve(r, top)
	learnt = s.minimise(learnt)
	for _, l := range s.marked {
		s.seen[l.Var()] = 0
	}
	s.marked = s.marked[:0]
	s.bump /= 0.95
	if s.opt.Learned != nil {
		s.opt.Learned(learnt)
	}
	id := s.trace.derive(s.from)
	back := int32(0)
	for i := 1; i < len(learnt); i++ {
		if lv := s.level[learnt[i].Var()]; lv > back {
			back = lv
			learnt[1], learnt[i] = learnt[i], learnt[1]
		}
	}
	if len(learnt) == 1 {
		s.jump(0)
		s.assign(learnt[0], noRef)
		s.unit[learnt[0].Var()] = id
		return true
	}
	c := s.arena.alloc(learnt, id, flagLearned)
	s.describe(c)
	s.jump(int(back))
	s.attach(c)
	s.learned = append(s.learned, c)
	s.assign(learnt[0], c)
	return true
}

// resolve walks the trail back from the false clause r until one literal of
// level top is left: the first unique implication point. It returns the clause,
// that literal's opposite first, and leaves marks at the variables in marked.
func (s *Solver) resolve(r ref, top int32) []Lit {
	learnt := []Lit{0} // room for the asserting literal
	s.open(r)
	open := 0
	at := len(s.trail)
	for {
		for _, q := range s.arena.lits(r) {
			v := q.Var()
			if s.seen[v] != 0 {
				continue
			}
			s.seen[v] = inClause
			s.marked = append(s.marked, q)
			switch s.level[v] {
			case 0:
				s.from = append(s.from, s.unitOf(v))
			case top:
				s.raise(v)
				open++
			default:
				s.raise(v)
				learnt = append(learnt, q)
			}
		}
		for at--; s.seen[s.trail[at].Var()] == 0; at-- {
		}
		uip := s.trail[at]
		open--
		if open == 0 {
			learnt[0] = uip.Not()
			return learnt
		}
		r = s.reasonOf(uip.Var())
		s.open(r)
	}
}

// open notes that a clause takes part in the analysis.
func (s *Solver) open(r ref) {
	s.from = append(s.from, s.arena.deriv(r))
	if !s.arena.isLearned(r) {
		return
	}
	*s.arena.used(r) = Lit(s.Stats.Conflicts)
	if *s.arena.levels(r) > glue {
		if n := s.countLevels(s.arena.lits(r)); n < *s.arena.levels(r) {
			*s.arena.levels(r) = n
		}
	}
}

// describe fills in the tail of a learned clause.
func (s *Solver) describe(r ref) {
	*s.arena.levels(r) = s.countLevels(s.arena.lits(r))
	*s.arena.used(r) = Lit(s.Stats.Conflicts)
}

// countLevels counts the decision levels in a clause.
func (s *Solver) countLevels(c []Lit) Lit {
	s.stamp++
	if s.stamp == 0 {
		clear(s.stamps)
		s.stamp = 1
	}
	n := Lit(0)
	for _, l := range c {
		if lv := s.level[l.Var()]; s.stamps[lv] != s.stamp {
			s.stamps[lv] = s.stamp
			n++
		}
	}
	return n
}

// unitOf is the derivation of the unit clause of a variable assigned at level 0:
// it is made when first asked for.
func (s *Solver) unitOf(v int) deriv {
	todo := []int{v}
	for len(todo) > 0 {
		v := todo[len(todo)-1]
		if s.unit[v] != noDeriv {
			todo = todo[:len(todo)-1]
			continue
		}
		r := s.reasonOf(v)
		ready := true
		for _, q := range s.arena.lits(r) {
			if q.Var() != v && s.unit[q.Var()] == noDeriv {
				ready = false
				todo = append(todo, q.Var())
			}
		}
		if !ready {
			continue
		}
		from := []deriv{s.arena.deriv(r)}
		for _, q := range s.arena.lits(r) {
			if q.Var() != v {
				from = append(from, s.unit[q.Var()])
			}
		}
		s.unit[v] = s.trace.derive(from)
	}
	return s.unit[v]
}

// fail records what the conflict at level 0 in clause r rests on.
func (s *Solver) fail(r ref) {
	s.unsat = true
	s.last = append(s.last[:0], s.arena.deriv(r))
	for _, l := range s.arena.lits(r) {
		s.last = append(s.last, s.unitOf(l.Var()))
	}
}

// Objections returns, after Unsat, the numbers of the theory's objections that
// the refutation uses, ascending.
func (s *Solver) Objections() []int { return s.trace.leaves(s.last, objected) }

// Given returns, after Unsat, the numbers of the AddClause calls that the
// refutation uses, ascending.
func (s *Solver) Given() []int { return s.trace.leaves(s.last, given) }
