package sat

import "slices"

// learn derives the first-UIP clause from the false clause id, jumps back and
// asserts it. It returns false when the problem is unsatisfiable.
func (s *Solver) learn(id int32) bool {
	// A theory clause may be false below the current level.
	top := int32(0)
	for _, l := range s.clauses[id].lits {
		top = max(top, s.level[l.Var()])
	}
	s.jump(int(top))
	if top == 0 {
		s.fail(id)
		return false
	}
	learnt := []Lit{0} // room for the asserting literal
	from := []int32{id}
	open := 0
	at := len(s.trail)
	var uip Lit
	lits := s.clauses[id].lits
	for {
		for _, q := range lits {
			v := q.Var()
			if s.seen[v] || s.lit(q) > 0 {
				continue
			}
			s.seen[v] = true
			s.raise(v)
			if s.level[v] == top {
				open++
			} else {
				learnt = append(learnt, q) // level 0 too: proofs need it
			}
		}
		for at--; !s.seen[s.trail[at].Var()]; at-- {
		}
		uip = s.trail[at]
		open--
		if open == 0 {
			break
		}
		r := s.reason[uip.Var()]
		s.seen[uip.Var()] = false
		from = append(from, r)
		lits = s.clauses[r].lits
	}
	learnt[0] = uip.Not()
	marked := append([]Lit(nil), learnt...)
	learnt, from = s.minimise(learnt, from)
	for _, l := range marked {
		s.seen[l.Var()] = false
	}
	s.bump /= 0.95
	back := int32(0)
	for i := 1; i < len(learnt); i++ {
		if lv := s.level[learnt[i].Var()]; lv > back {
			back = lv
			learnt[1], learnt[i] = learnt[i], learnt[1]
		}
	}
	s.jump(int(back))
	c := s.add(clause{lits: learnt, from: from, objection: -1})
	s.assign(learnt[0], c)
	return true
}

// minimise drops literals that the others imply: those whose reason consists of
// marked literals only. Literals false at level 0 are dropped that way too.
func (s *Solver) minimise(learnt []Lit, from []int32) ([]Lit, []int32) {
	out := learnt[:1]
	for _, l := range learnt[1:] {
		r := s.reason[l.Var()]
		redundant := r != noReason
		if redundant {
			for _, q := range s.clauses[r].lits {
				if q.Var() != l.Var() && !s.seen[q.Var()] {
					redundant = false
					break
				}
			}
		}
		if redundant {
			from = append(from, r)
		} else {
			out = append(out, l)
		}
	}
	return out, from
}

// fail records what the conflict at level 0 in clause id rests on.
func (s *Solver) fail(id int32) {
	s.unsat = true
	s.last = append(s.last, id)
	done := make([]bool, len(s.value))
	todo := []int32{id}
	for len(todo) > 0 {
		c := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, l := range s.clauses[c].lits {
			v := l.Var()
			if r := s.reason[v]; s.value[v] != 0 && r != noReason && r != c && !done[v] {
				done[v] = true
				s.last = append(s.last, r)
				todo = append(todo, r)
			}
		}
	}
}

// Objections returns, after Unsat, the numbers of the theory's objections that
// the refutation uses, ascending.
func (s *Solver) Objections() []int {
	seen := make([]bool, len(s.clauses))
	todo := append([]int32(nil), s.last...)
	var out []int
	for len(todo) > 0 {
		id := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if seen[id] {
			continue
		}
		seen[id] = true
		c := &s.clauses[id]
		if c.objection >= 0 {
			out = append(out, c.objection)
		}
		todo = append(todo, c.from...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Learned calls f with every clause that was derived, in order, for checking
// against an independent judge.
func (s *Solver) Learned(f func(lits []Lit)) {
	for i := range s.clauses {
		if s.clauses[i].from != nil {
			f(s.clauses[i].lits)
		}
	}
}
