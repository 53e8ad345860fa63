package sat

// watch is an entry in the list of a literal: a clause that has to be looked at
// when the literal becomes false, unless blocker is true.
type watch struct {
	place   ref // of the clause; with bit 31 if it has two literals
	blocker Lit // another literal of it: of two, the other
}

const binary = ref(1) << 31

func (w watch) clause() ref { return w.place &^ binary }

// attach watches the first two literals of a clause.
func (s *Solver) attach(r ref) {
	c := s.arena.lits(r)
	place := r
	if len(c) == 2 {
		place |= binary
	}
	s.watches[c[0]] = append(s.watches[c[0]], watch{place, c[1]})
	s.watches[c[1]] = append(s.watches[c[1]], watch{place, c[0]})
}

// assign puts l on the trail.
func (s *Solver) assign(l Lit, reason ref) {
	v := l.Var()
	s.value[l], s.value[l^1] = 1, -1
	s.level[v] = int32(len(s.limits))
	s.reason[v] = reason
	s.trail = append(s.trail, l)
}

// AskEvery is how many steps lie between two questions to Stop, at most.
const AskEvery = 64

// propagate draws conclusions until nothing follows; it returns a clause that
// is false, or noRef. Clauses go first, as they are cheap; then the theory is
// told of one literal, and so on. It ends early, without a conflict, when Stop
// says so.
func (s *Solver) propagate() ref {
	for {
		for s.head < len(s.trail) {
			l := s.trail[s.head].Not()
			s.head++
			if r := s.lookAt(l); r != noRef {
				return r
			}
		}
		if s.theory == nil || s.told == len(s.trail) {
			return noRef
		}
		conflict, objection := s.theory.Assert(s.trail[s.told])
		if conflict != nil {
			return s.object(conflict, objection)
		}
		s.told++
		if s.propagator != nil {
			if r := s.infer(); r != noRef {
				return r
			}
		}
		if s.opt.Stop != nil && s.askStop() {
			return noRef
		}
	}
}

func (s *Solver) askStop() bool {
	s.sinceAsked++
	if s.sinceAsked >= AskEvery {
		s.sinceAsked = 0
		s.stopped = s.stopped || s.opt.Stop()
	}
	return s.stopped
}

// object makes a clause of the theory's objection.
func (s *Solver) object(conflict []Lit, objection int) ref {
	lits := make([]Lit, len(conflict))
	for i, l := range conflict {
		lits[i] = l.Not()
	}
	s.sortForWatching(lits)
	r := s.arena.alloc(lits, s.trace.leaf(objected, objection), flagLearned)
	s.describe(r)
	if len(lits) > 1 {
		s.attach(r)
		s.learned = append(s.learned, r)
	} else {
		s.lazy = append(s.lazy, r)
	}
	return r
}

// infer assigns what the theory implies.
func (s *Solver) infer() ref {
	for _, l := range s.propagator.Implied() {
		switch {
		case s.value[l] == 0:
			s.assign(l, byTheory|ref(s.told))
		case s.value[l] < 0:
			return s.theoryReason(l, s.told)
		}
	}
	return noRef
}

// theoryReason makes the clause by which the first before literals that the
// theory was told of imply l.
func (s *Solver) theoryReason(l Lit, before int) ref {
	s.Stats.Reasons++
	because, objection := s.propagator.Reason(l, before)
	lits := make([]Lit, 1, len(because)+1)
	lits[0] = l
	for _, b := range because {
		lits = append(lits, b.Not())
	}
	r := s.arena.alloc(lits, s.trace.leaf(objected, objection), flagLearned)
	s.lazy = append(s.lazy, r)
	return r
}

// reasonOf is the clause that forced v, or noRef.
func (s *Solver) reasonOf(v int) ref {
	r := s.reason[v]
	if r < byTheory || r == noRef {
		return r
	}
	l := Pos(v)
	if s.value[l] < 0 {
		l = Neg(v)
	}
	r = s.theoryReason(l, int(r&^byTheory))
	s.reason[v] = r
	return r
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
func (s *Solver) lookAt(l Lit) ref {
	ws := s.watches[l]
	n := 0 // entries kept
	for i := 0; i < len(ws); i++ {
		w := ws[i]
		blocked := s.value[w.blocker]
		if blocked > 0 {
			ws[n] = w
			n++
			continue
		}
		if w.place&binary != 0 {
			ws[n] = w
			n++
			if blocked < 0 {
				n += copy(ws[n:], ws[i+1:])
				s.watches[l] = ws[:n]
				return w.clause()
			}
			s.assign(w.blocker, w.clause())
			continue
		}
		c := s.arena.lits(w.place)
		if c[0] == l {
			c[0], c[1] = c[1], c[0]
		}
		first := c[0]
		if first != w.blocker && s.value[first] > 0 {
			ws[n] = watch{w.place, first}
			n++
			continue
		}
		if s.rewatch(w.place, c) {
			continue
		}
		ws[n] = watch{w.place, first}
		n++
		if s.value[first] < 0 {
			n += copy(ws[n:], ws[i+1:])
			s.watches[l] = ws[:n]
			return w.place
		}
		s.assign(first, w.place)
	}
	s.watches[l] = ws[:n]
	return noRef
}

// rewatch finds another literal than c[1] that is not false.
func (s *Solver) rewatch(r ref, c []Lit) bool {
	for k := 2; k < len(c); k++ {
		if s.value[c[k]] >= 0 {
			c[1], c[k] = c[k], c[1]
			s.watches[c[1]] = append(s.watches[c[1]], watch{r, c[0]})
			return true
		}
	}
	return false
}
