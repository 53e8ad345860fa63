package sat

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// A random problem is grown and solved several times over, and brute force agrees
// each time; what an Unsat names suffices for it.
func TestClausesBetweenSolves(t *testing.T) {
	answers := map[Answer]int{}
	for seed := range uint64(1500) {
		rng := rand.New(rand.NewPCG(seed, 33))
		p := &problem{vars: 3 + rng.IntN(6)}
		if seed%2 == 0 {
			p.bounded, p.k = map[Lit]bool{}, 1+rng.IntN(p.vars)
			for v := range p.vars {
				p.bounded[Lit(2*v+rng.IntN(2))] = true
			}
		}
		s, th := p.solver()
		for range 6 {
			if rng.IntN(3) == 0 && p.vars < 11 {
				if v := s.NewVar(); v != p.vars {
					t.Fatalf("new variable %d, want %d", v, p.vars)
				}
				p.vars++
			}
			for range rng.IntN(p.vars) {
				var c []Lit
				for range 1 + rng.IntN(4) {
					c = append(c, Lit(rng.IntN(2*p.vars))) // repetitions and tautologies too
				}
				p.clauses = append(p.clauses, c)
				s.AddClause(c...)
			}
			models := p.models()
			answer := s.Solve(1 << 30)
			answers[answer]++
			if (answer == Sat) != (len(models) > 0) || answer == Budget {
				t.Fatalf("seed %d: %v, and there are %d models\n%+v", seed, answer, len(models), p)
			}
			if answer == Sat {
				m := uint32(0)
				for v := range p.vars {
					if s.Value(v) {
						m |= 1 << v
					}
				}
				if !slices.Contains(models, m) {
					t.Fatalf("seed %d: %b is no model", seed, m)
				}
				continue
			}
			core := problem{vars: p.vars}
			for _, g := range s.Given() {
				core.clauses = append(core.clauses, p.clauses[g])
			}
			for _, o := range s.Objections() {
				var c []Lit
				for _, l := range th.objected[o] {
					c = append(c, l.Not())
				}
				core.clauses = append(core.clauses, c)
			}
			if m := core.models(); len(m) > 0 {
				t.Fatalf("seed %d: clauses %v and objections %v allow %b", seed, s.Given(), s.Objections(), m[0])
			}
		}
	}
	if answers[Sat] < 1000 || answers[Unsat] < 1000 {
		t.Errorf("the sample tells little: %v", answers)
	}
}

// Auxiliary variables are left open where nothing forces them, and what is
// returned is a model all the same.
func TestAux(t *testing.T) {
	answers := map[Answer]int{}
	open := 0
	for seed := range uint64(2000) {
		rng := rand.New(rand.NewPCG(seed, 34))
		plain, aux := 2+rng.IntN(5), 1+rng.IntN(5)
		p := &problem{vars: plain + aux, bounded: map[Lit]bool{}}
		for v := range p.vars { // the theory minds auxiliaries only positively
			if v >= plain || rng.IntN(2) == 0 {
				p.bounded[Pos(v)] = true
			}
		}
		p.k = 1 + rng.IntN(p.vars)
		s, th := p.solver()
		for v := plain; v < p.vars; v++ {
			s.SetAux(v)
		}
		for range plain + rng.IntN(3*p.vars) {
			var c []Lit
			for range 1 + rng.IntN(4) {
				l := Lit(rng.IntN(2 * p.vars))
				if !slices.Contains(c, l) && !slices.Contains(c, l.Not()) {
					c = append(c, l)
				}
			}
			if seed%2 == 0 { // one auxiliary positively, as definitions of edges have it
				n := 0
				c = slices.DeleteFunc(c, func(l Lit) bool {
					if l.Var() < plain || !l.Positive() {
						return false
					}
					n++
					return n > 1
				})
			}
			p.clauses = append(p.clauses, c)
			s.AddClause(c...)
		}
		answer := s.Solve(1 << 30)
		answers[answer]++
		models := p.models()
		if (answer == Sat) != (len(models) > 0) || answer == Budget {
			t.Fatalf("seed %d: %v, and there are %d models\n%+v", seed, answer, len(models), p)
		}
		if answer == Sat {
			m := uint32(0)
			for v := range p.vars {
				if s.Value(v) {
					m |= 1 << v
				}
			}
			if !slices.Contains(models, m) {
				t.Fatalf("seed %d: %b is no model of %v", seed, m, p.clauses)
			}
			if len(th.stack) < p.vars {
				open++
			}
		}
	}
	if answers[Sat] < 200 || answers[Unsat] < 200 || open < 200 {
		t.Errorf("the sample tells little: %v, %d with open variables", answers, open)
	}
}
