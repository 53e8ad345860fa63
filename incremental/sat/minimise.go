package sat

// minimise drops literals that the others imply, and notes the clauses by which
// they do.
func (s *Solver) minimise(learnt []Lit) []Lit {
	levels := uint32(0)
	for _, l := range learnt[1:] {
		levels |= s.levelBit(l.Var())
	}
	out := learnt[:1]
	for _, l := range learnt[1:] {
		if s.reason[l.Var()] == noRef || !s.implied(l, levels) {
			out = append(out, l)
			continue
		}
		s.seen[l.Var()] |= dropped
	}
	for _, l := range s.marked {
		if s.seen[l.Var()]&dropped != 0 {
			s.explain(l.Var())
		}
	}
	return out
}

// levelBit is one of 32 bits for the level of v: a quick test of whether the
// clause has a literal of that level at all.
func (s *Solver) levelBit(v int) uint32 { return 1 << (uint32(s.level[v]) & 31) }

// implied tells whether the other literals of the learned clause imply that l
// is false: whether all ways back from l end in them or at level 0. What it
// passes on the way keeps the mark redundant; marks of a failure are taken back.
func (s *Solver) implied(l Lit, levels uint32) bool {
	s.todo = append(s.todo[:0], l)
	before := len(s.marked)
	for len(s.todo) > 0 {
		v := s.todo[len(s.todo)-1].Var()
		s.todo = s.todo[:len(s.todo)-1]
		for _, q := range s.arena.lits(s.reasonOf(v)) {
			w := q.Var()
			if w == v || s.level[w] == 0 || s.seen[w] != 0 {
				continue
			}
			if s.reason[w] == noRef || s.levelBit(w)&levels == 0 {
				for _, m := range s.marked[before:] {
					s.seen[m.Var()] = 0
				}
				s.marked = s.marked[:before]
				return false
			}
			s.seen[w] = redundant
			s.marked = append(s.marked, q)
			s.todo = append(s.todo, q)
		}
	}
	return true
}

// explain notes the clauses by which the literals that stay in the learned
// clause imply that of v.
func (s *Solver) explain(v int) {
	if s.seen[v]&explained != 0 {
		return
	}
	s.seen[v] |= explained
	s.todo = append(s.todo[:0], Pos(v))
	for len(s.todo) > 0 {
		v := s.todo[len(s.todo)-1].Var()
		s.todo = s.todo[:len(s.todo)-1]
		r := s.reasonOf(v)
		s.from = append(s.from, s.arena.deriv(r))
		for _, q := range s.arena.lits(r) {
			w := q.Var()
			switch {
			case w == v:
			case s.level[w] == 0:
				s.from = append(s.from, s.unitOf(w))
			case s.seen[w]&explained != 0 || s.seen[w]&(inClause|dropped) == inClause:
			default:
				s.seen[w] |= explained
				s.todo = append(s.todo, Pos(w))
			}
		}
	}
}
