package sat

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
)

// atMost is a toy theory: at most k of its literals are true.
type atMost struct {
	k        int
	lits     map[Lit]bool
	stack    []Lit
	held     []Lit // of lits, asserted
	objected [][]Lit
}

func (a *atMost) Assert(l Lit) ([]Lit, int) {
	if slices.Contains(a.stack, l) || slices.Contains(a.stack, l.Not()) {
		panic("a variable is asserted twice")
	}
	if a.lits[l] {
		if len(a.held) == a.k {
			conflict := append([]Lit{l}, a.held...)
			a.objected = append(a.objected, conflict)
			return slices.Clone(conflict), len(a.objected) - 1
		}
		a.held = append(a.held, l)
	}
	a.stack = append(a.stack, l)
	return nil, 0
}

func (a *atMost) Undo(n int) {
	for ; n > 0; n-- {
		l := a.stack[len(a.stack)-1]
		a.stack = a.stack[:len(a.stack)-1]
		if a.lits[l] {
			a.held = a.held[:len(a.held)-1]
		}
	}
}

// A problem has clauses and perhaps a bound on how many of some literals hold.
type problem struct {
	vars    int
	clauses [][]Lit
	bounded map[Lit]bool
	k       int
}

func (p *problem) solver() (*Solver, *atMost) {
	return p.solverWith(Options{})
}

func (p *problem) solverWith(opt Options) (*Solver, *atMost) {
	var th *atMost
	var s *Solver
	if p.bounded != nil {
		th = &atMost{k: p.k, lits: p.bounded}
		s = New(p.vars, th, opt)
	} else {
		s = New(p.vars, nil, opt)
	}
	for _, c := range p.clauses {
		s.AddClause(c...)
	}
	return s, th
}

func holds(c []Lit, model uint32) bool {
	return slices.ContainsFunc(c, func(l Lit) bool { return model>>l.Var()&1 == 1 == l.Positive() })
}

// models are all assignments, by brute force.
func (p *problem) models() []uint32 {
	var out []uint32
	for m := range uint32(1) << p.vars {
		n := 0
		for l := range p.bounded {
			if holds([]Lit{l}, m) {
				n++
			}
		}
		ok := p.bounded == nil || n <= p.k
		for _, c := range p.clauses {
			ok = ok && holds(c, m)
		}
		if ok {
			out = append(out, m)
		}
	}
	return out
}

func (p *problem) random(rng *rand.Rand, ratio float64) {
	for range int(float64(p.vars)*ratio) + rng.IntN(3) {
		var c []Lit
		for range 1 + rng.IntN(3) {
			l := Lit(rng.IntN(2 * p.vars))
			if !slices.Contains(c, l) && !slices.Contains(c, l.Not()) {
				c = append(c, l)
			}
		}
		p.clauses = append(p.clauses, c)
	}
}

// threeSAT is hard: every clause has three variables.
func (p *problem) threeSAT(rng *rand.Rand, n int) {
	for range n {
		v := rng.Perm(p.vars)[:3]
		var c []Lit
		for _, v := range v {
			c = append(c, Lit(2*v+rng.IntN(2)))
		}
		p.clauses = append(p.clauses, c)
	}
}

// check solves p and compares with brute force: the answer, the model, that
// learned clauses follow, and that the objections suffice.
func (p *problem) check() (Answer, error) {
	var learned [][]Lit
	s, th := p.solverWith(Options{Learned: func(c []Lit) { learned = append(learned, slices.Clone(c)) }})
	answer := s.Solve(1 << 30)
	models := p.models()
	if (answer == Sat) != (len(models) > 0) || answer == Budget {
		return answer, fmt.Errorf("%v, and there are %d models", answer, len(models))
	}
	if answer == Sat {
		m := uint32(0)
		for v := range p.vars {
			if s.Value(v) {
				m |= 1 << v
			}
		}
		if !slices.Contains(models, m) {
			return answer, fmt.Errorf("%b is no model", m)
		}
		if th != nil && len(th.stack) != p.vars {
			return answer, fmt.Errorf("the theory knows %d of %d variables", len(th.stack), p.vars)
		}
	}
	var wrong error
	for _, c := range learned {
		for _, m := range models {
			if !holds(c, m) {
				wrong = fmt.Errorf("learned %v, which model %b has not", c, m)
			}
		}
	}
	if wrong != nil || answer != Unsat {
		return answer, wrong
	}
	rest := problem{vars: p.vars}
	for _, g := range s.Given() {
		rest.clauses = append(rest.clauses, p.clauses[g])
	}
	for _, o := range s.Objections() {
		var c []Lit
		for _, l := range th.objected[o] {
			c = append(c, l.Not())
		}
		rest.clauses = append(rest.clauses, c)
	}
	if m := rest.models(); len(m) > 0 {
		return answer, fmt.Errorf("clauses %v and objections %v allow %b", s.Given(), s.Objections(), m[0])
	}
	return answer, nil
}

func TestAgreesWithBruteForce(t *testing.T) {
	for _, kind := range []struct {
		name string
		make func(*rand.Rand) *problem
	}{
		{"mixed", func(rng *rand.Rand) *problem {
			p := &problem{vars: 1 + rng.IntN(9)}
			p.random(rng, 1.5+rng.Float64())
			return p
		}},
		{"3-sat", func(rng *rand.Rand) *problem {
			p := &problem{vars: 5 + rng.IntN(7)}
			p.threeSAT(rng, int(float64(p.vars)*(4+rng.Float64()*1.5)))
			return p
		}},
		{"at most k", func(rng *rand.Rand) *problem {
			p := &problem{vars: 4 + rng.IntN(8), bounded: map[Lit]bool{}}
			p.threeSAT(rng, int(float64(p.vars)*(1.5+rng.Float64()*3)))
			for v := range p.vars {
				if rng.IntN(4) > 0 {
					p.bounded[Lit(2*v+rng.IntN(8)/7)] = true
				}
			}
			p.k = rng.IntN(len(p.bounded) + 1)
			return p
		}},
		{"at most k, short clauses", func(rng *rand.Rand) *problem {
			p := &problem{vars: 2 + rng.IntN(9), bounded: map[Lit]bool{}}
			p.random(rng, rng.Float64()*1.3)
			for v := range p.vars {
				p.bounded[Pos(v)] = true
			}
			p.k = rng.IntN(p.vars/2 + 1)
			return p
		}},
	} {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			answers := map[Answer]int{}
			for seed := range uint64(1500) {
				rng := rand.New(rand.NewPCG(seed, 9))
				p := kind.make(rng)
				answer, err := p.check()
				if err != nil {
					t.Fatalf("seed %d: %v\n%+v", seed, err, p)
				}
				answers[answer]++
			}
			if answers[Sat] < 100 || answers[Unsat] < 100 {
				t.Errorf("the sample tells little: %v", answers)
			}
		})
	}
}

// pigeons is the problem of n+1 pigeons in n holes.
func pigeons(n int) *problem {
	p := &problem{vars: (n + 1) * n}
	for i := range n + 1 {
		var c []Lit
		for h := range n {
			c = append(c, Pos(i*n+h))
		}
		p.clauses = append(p.clauses, c)
		for j := range i {
			for h := range n {
				p.clauses = append(p.clauses, []Lit{Neg(i*n + h), Neg(j*n + h)})
			}
		}
	}
	return p
}

func TestPigeonsFindNoHoles(t *testing.T) {
	for n := 1; n <= 6; n++ {
		s, _ := pigeons(n).solver()
		if got := s.Solve(1 << 30); got != Unsat {
			t.Errorf("%d holes: %v", n, got)
		}
		if n > 2 && s.Stats.Conflicts < n {
			t.Errorf("%d holes: %d conflicts are too few to be true", n, s.Stats.Conflicts)
		}
	}
}

// A budget that ends is said to have ended; the search can go on afterwards and
// comes to the same answer.
func TestBudget(t *testing.T) {
	s, _ := pigeons(6).solver()
	rounds := 0
	for {
		before := s.Stats.Conflicts
		answer := s.Solve(10)
		if answer == Unsat {
			break
		}
		if answer != Budget || s.Stats.Conflicts-before != 10 {
			t.Fatalf("%v after %d conflicts", answer, s.Stats.Conflicts-before)
		}
		rounds++
	}
	if rounds < 5 {
		t.Errorf("solved in %d rounds", rounds)
	}
	if s.Solve(10) != Unsat {
		t.Errorf("another answer the second time")
	}
}

// In steps of one conflict the answers are those of one run, theory or none.
func TestBudgetInSteps(t *testing.T) {
	for seed := range uint64(500) {
		rng := rand.New(rand.NewPCG(seed, 21))
		p := &problem{vars: 4 + rng.IntN(6), bounded: map[Lit]bool{}}
		p.threeSAT(rng, int(float64(p.vars)*(2+rng.Float64()*3)))
		for v := range p.vars {
			p.bounded[Pos(v)] = true
		}
		p.k = rng.IntN(p.vars)
		want := Unsat
		if len(p.models()) > 0 {
			want = Sat
		}
		s, _ := p.solver()
		got := Budget
		for got == Budget {
			got = s.Solve(1)
		}
		if got != want {
			t.Fatalf("seed %d: %v, want %v", seed, got, want)
		}
	}
}

// The same problem gives the same answer by the same way.
func TestDeterministic(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 2))
		p := &problem{vars: 40}
		p.threeSAT(rng, 170)
		run := func() (a Answer, stats Stats, learned [][]Lit, model []bool) {
			s, _ := p.solverWith(Options{Learned: func(c []Lit) { learned = append(learned, slices.Clone(c)) }})
			a = s.Solve(1 << 20)
			for v := range p.vars {
				model = append(model, s.Value(v))
			}
			return a, s.Stats, learned, model
		}
		a1, s1, l1, m1 := run()
		a2, s2, l2, m2 := run()
		if a1 != a2 || s1 != s2 || !reflect.DeepEqual(l1, l2) || !slices.Equal(m1, m2) {
			t.Fatalf("seed %d: %v %+v, then %v %+v", seed, a1, s1, a2, s2)
		}
	}
}

// What is tried first stays where nothing speaks against it.
func TestPhases(t *testing.T) {
	s := New(3, nil, Options{})
	s.SetPhase(1, false)
	s.AddClause(Neg(0), Neg(2))
	if got := s.Solve(10); got != Sat || !s.Value(0) || s.Value(1) || s.Value(2) || s.Stats.Conflicts > 0 {
		t.Errorf("%v: %v %v %v, %+v", got, s.Value(0), s.Value(1), s.Value(2), s.Stats)
	}
}

func TestEdges(t *testing.T) {
	if s := New(0, nil, Options{}); s.Solve(1) != Sat {
		t.Error("no variables: not satisfiable")
	}
	s := New(1, nil, Options{})
	s.AddClause()
	if s.Solve(1) != Unsat {
		t.Error("an empty clause is satisfied")
	}
	s = New(1, nil, Options{})
	s.AddClause(Pos(0))
	s.AddClause(Neg(0))
	if s.Solve(1) != Unsat || len(s.Objections()) > 0 {
		t.Error("opposite units are satisfied, or the theory objected")
	}
	none := &atMost{k: 0, lits: map[Lit]bool{Pos(0): true, Neg(0): true}}
	s = New(1, none, Options{})
	if s.Solve(100) != Unsat || !slices.Equal(s.Objections(), []int{0, 1}) {
		t.Errorf("objections %v, want 0 and 1", s.Objections())
	}
}

func TestLuby(t *testing.T) {
	want := []int{1, 1, 2, 1, 1, 2, 4, 1, 1, 2, 1, 1, 2, 4, 8, 1}
	for i, w := range want {
		if got := luby(i + 1); got != w {
			t.Errorf("luby(%d) = %d, want %d", i+1, got, w)
		}
	}
}
