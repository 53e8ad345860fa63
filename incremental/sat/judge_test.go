package sat

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/crillab/gophersat/solver"
)

// cnf writes clauses as other solvers read them.
func cnf(clauses [][]Lit) [][]int {
	out := make([][]int, len(clauses))
	for i, c := range clauses {
		for _, l := range c {
			if n := l.Var() + 1; l.Positive() {
				out[i] = append(out[i], n)
			} else {
				out[i] = append(out[i], -n)
			}
		}
	}
	return out
}

// other is the answer of another solver, which shares scratch memory between its
// instances: never in parallel.
func other(vars int, clauses [][]Lit) Answer {
	if solver.New(solver.ParseSliceNb(cnf(clauses), vars)).Solve() == solver.Sat {
		return Sat
	}
	return Unsat
}

// againstOther compares an answer with another solver's: the model is one, or
// the clauses that the refutation names have none.
func (p *problem) againstOther(s *Solver, answer Answer) error {
	if want := other(p.vars, p.clauses); answer != want {
		return fmt.Errorf("%v, another solver says %v", answer, want)
	}
	if answer == Sat {
		for i, c := range p.clauses {
			held := false
			for _, l := range c {
				held = held || s.Value(l.Var()) == l.Positive()
			}
			if !held {
				return fmt.Errorf("clause %d, %v, does not hold", i, c)
			}
		}
		return nil
	}
	var core [][]Lit
	for _, g := range s.Given() {
		core = append(core, p.clauses[g])
	}
	if got := other(p.vars, core); got != Unsat {
		return fmt.Errorf("the core, %d of %d clauses, is %v", len(core), len(p.clauses), got)
	}
	return nil
}

// On 3-SAT near its threshold, where thousands of clauses are learned, deleted,
// moved, and their derivations forgotten, another solver agrees.
func TestAgreesWithAnotherSolver(t *testing.T) {
	for _, opt := range []Options{{}, {Steady: -1, ReduceFirst: 50}, {Steady: 100, ReduceFirst: 10}, {Steady: -1}} {
		t.Run(fmt.Sprintf("%+v", opt), func(t *testing.T) {
			answers := map[Answer]int{}
			deleted, conflicts := 0, 0
			for seed := range uint64(30) {
				rng := rand.New(rand.NewPCG(seed, 55))
				p := &problem{vars: 60 + rng.IntN(60)}
				p.threeSAT(rng, int(float64(p.vars)*4.3))
				s, _ := p.solverWith(opt)
				answer := s.Solve(1 << 30)
				answers[answer]++
				deleted += s.Stats.Deleted
				conflicts += s.Stats.Conflicts
				if err := p.againstOther(s, answer); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
			}
			if answers[Sat] < 5 || answers[Unsat] < 5 || conflicts < 5000 || deleted == 0 != (opt.ReduceFirst == 0) {
				t.Errorf("the sample tells little: %v, %d conflicts, %d clauses deleted", answers, conflicts, deleted)
			}
		})
	}
}

// Derivations that nothing rests on are forgotten.
func TestTraceForgets(t *testing.T) {
	p := &problem{vars: 110}
	p.threeSAT(rand.New(rand.NewPCG(3, 3)), 480)
	s, _ := p.solverWith(Options{ReduceFirst: 100})
	if answer := s.Solve(1 << 30); answer != Unsat {
		t.Fatalf("%v", answer)
	}
	if s.trace.kept == 0 {
		t.Errorf("after %d conflicts no derivation has been forgotten", s.Stats.Conflicts)
	}
	never, _ := p.solverWith(Options{ReduceFirst: 100})
	never.trace.kept = 1 << 40 // so much that it is never worth it
	if never.Solve(1<<30) != Unsat || !slices.Equal(never.Given(), s.Given()) {
		t.Errorf("the core is %v, and without forgetting %v", s.Given(), never.Given())
	}
	if err := p.againstOther(s, Unsat); err != nil {
		t.Error(err)
	}
}

// Stop ends a search, which can go on later.
func TestStop(t *testing.T) {
	asked := 0
	p := pigeons(9)
	s, _ := p.solverWith(Options{Stop: func() bool { asked++; return asked%3 == 0 }})
	for round := range 2 {
		before := s.Stats.Conflicts
		if got := s.Solve(1 << 30); got != Budget {
			t.Fatalf("round %d: %v", round, got)
		}
		if asked != 3*(round+1) || s.Stats.Conflicts == before {
			t.Fatalf("round %d: asked %d times, %d conflicts more", round, asked, s.Stats.Conflicts-before)
		}
	}
}

// FuzzSolver reads clauses and a bound from bytes: the answer is
// that of brute force, in every way to search.
func FuzzSolver(f *testing.F) {
	f.Add([]byte{5, 2, 0, 1, 2, 255, 3, 4, 255, 1, 9, 255, 8, 6})
	f.Add([]byte{3, 9, 0, 255, 1, 255})
	f.Add([]byte{9, 4, 0, 2, 4, 255, 1, 3, 255, 5, 7, 255, 9, 11, 13, 255, 12, 14, 16, 255, 1, 2, 255, 17, 15, 255})
	rng := rand.New(rand.NewPCG(1, 1))
	for range 5 {
		b := []byte{8, byte(rng.IntN(9))}
		for range 30 {
			b = append(b, byte(rng.IntN(16)), byte(rng.IntN(16)), byte(rng.IntN(16)), 255)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < 2 || len(b) > 400 {
			return
		}
		p := &problem{vars: 1 + int(b[0])%10, bounded: map[Lit]bool{}, k: int(b[1]) % 11}
		for v := range p.vars {
			p.bounded[Pos(v)] = true
		}
		var c []Lit
		for _, x := range b[2:] {
			if x == 255 {
				p.clauses = append(p.clauses, c)
				c = nil
				continue
			}
			c = append(c, Lit(int(x)%(2*p.vars)))
		}
		if _, err := p.check(); err != nil {
			t.Fatalf("%v\n%+v", err, p)
		}
	})
}
