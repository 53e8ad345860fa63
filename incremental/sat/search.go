package sat

// restartUnit is the number of conflicts that the sequence of restarts counts in.
const restartUnit = 64

// Solve searches until an answer is found or budget conflicts have been met.
// After Sat the assignment stays on the theory; what was learned stays for the
// next call.
func (s *Solver) Solve(budget int) Answer {
	s.stopped = false
	if s.unsat {
		return Unsat
	}
	s.jump(0)
	for len(s.stamps) <= len(s.phase) {
		s.stamps = append(s.stamps, 0)
	}
	sinceRestart, restartAfter := 0, restartUnit*luby(s.Stats.Restarts+1)
	for {
		if r := s.propagate(); r != noRef {
			s.Stats.Conflicts++
			budget--
			sinceRestart++
			s.untilReduce--
			if !s.learn(r) {
				return Unsat
			}
			s.sinceAsked = AskEvery // to learn takes so much
			if budget <= 0 || s.opt.Stop != nil && s.askStop() {
				return Budget
			}
			continue
		}
		if s.stopped || s.opt.Stop != nil && s.askStop() {
			return Budget
		}
		if sinceRestart >= restartAfter {
			sinceRestart = 0
			s.Stats.Restarts++
			restartAfter = restartUnit * luby(s.Stats.Restarts+1)
			s.jump(s.reusable())
			continue
		}
		if s.untilReduce <= 0 {
			s.reduce()
		}
		l := s.next()
		if l < 0 {
			return Sat
		}
		s.limits = append(s.limits, len(s.trail))
		s.assign(l, noRef)
	}
}

// reusable is the level up to which a restart would decide the same again: the
// decisions there come before all open variables (van der Tak, Ramos and Heule).
func (s *Solver) reusable() int {
	v := s.heap.peek(s.value)
	for i := range s.limits {
		if d := s.trail[s.limits[i]].Var(); v >= 0 && (s.role[d] != ordinary || s.heap.less(int32(v), int32(d))) {
			return i
		}
	}
	return len(s.limits)
}

// next is the literal to decide, or -1 if all that matters is assigned.
func (s *Solver) next() Lit {
	v := s.heap.peek(s.value)
	if v < 0 {
		return s.nextAux()
	}
	phase := s.phase[v]
	if s.guide != nil && s.heap.at[v] == untouched {
		if p := s.guide.Prefer(v); p != 0 {
			phase = p > 0
		}
	}
	if phase {
		return Pos(v)
	}
	return Neg(v)
}

// nextAux is the first open auxiliary variable that has to be decided, false.
func (s *Solver) nextAux() Lit {
	for ; s.auxNext < len(s.role); s.auxNext++ {
		if s.role[s.auxNext] == lastly && s.value[Pos(s.auxNext)] == 0 {
			return Neg(s.auxNext)
		}
	}
	return -1
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
		l := s.trail[i]
		v := l.Var()
		s.value[l], s.value[l^1] = 0, 0
		switch s.role[v] {
		case ordinary:
			s.phase[v] = l.Positive()
			s.heap.push(v)
		case lastly:
			s.auxNext = min(s.auxNext, v)
		}
	}
	s.trail = s.trail[:to]
	s.limits = s.limits[:n]
	s.head = min(s.head, to)
}

// luby is the i-th term (from 1) of 1 1 2 1 1 2 4 … (Luby, Sinclair and
// Zuckerman).
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
