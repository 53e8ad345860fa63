package sat

// propagate draws conclusions until nothing follows; it returns the number of a
// clause that is false, or -1. Clauses go first, as they are cheap; then the
// theory is told of one literal, and so on.
func (s *Solver) propagate() int32 {
	for {
		for s.head < len(s.trail) {
			l := s.trail[s.head].Not()
			s.head++
			s.Stats.Propagations++
			if id := s.lookAt(l); id >= 0 {
				return id
			}
		}
		if s.theory == nil || s.told == len(s.trail) {
			return -1
		}
		conflict, objection := s.theory.Assert(s.trail[s.told])
		if conflict != nil {
			lits := make([]Lit, len(conflict))
			for i, l := range conflict {
				lits[i] = l.Not()
			}
			s.sortForWatching(lits)
			return s.add(clause{lits: lits, objection: objection})
		}
		s.told++
	}
}

// sortForWatching puts the two literals that were assigned last in front, so
// that the clause is woken after jumping back.
func (s *Solver) sortForWatching(lits []Lit) {
	for i := 0; i < 2 && i < len(lits); i++ {
		for j := i + 1; j < len(lits); j++ {
			if s.level[lits[j].Var()] > s.level[lits[i].Var()] {
				lits[i], lits[j] = lits[j], lits[i]
			}
		}
	}
}

// lookAt visits the clauses that watch l, which has become false.
func (s *Solver) lookAt(l Lit) int32 {
	ws := s.watches[l]
	keep := ws[:0]
	for i, id := range ws {
		c := s.clauses[id].lits
		if c[0] == l {
			c[0], c[1] = c[1], c[0]
		}
		if s.lit(c[0]) > 0 || s.rewatch(id, c) {
			if c[1] == l {
				keep = append(keep, id)
			}
			continue
		}
		keep = append(keep, id)
		if s.lit(c[0]) < 0 {
			keep = append(keep, ws[i+1:]...)
			s.watches[l] = keep
			return id
		}
		s.assign(c[0], id)
	}
	s.watches[l] = keep
	return -1
}

// rewatch finds another literal than c[1] that is not false.
func (s *Solver) rewatch(id int32, c []Lit) bool {
	for k := 2; k < len(c); k++ {
		if s.lit(c[k]) >= 0 {
			c[1], c[k] = c[k], c[1]
			s.watches[c[1]] = append(s.watches[c[1]], id)
			return true
		}
	}
	return false
}
