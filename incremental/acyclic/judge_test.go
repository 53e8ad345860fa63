package acyclic

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/crillab/gophersat/solver"

	"github.com/isowatch/isowatch/incremental/sat"
)

// A judge checks a search step by step: it knows the given clauses, learns the
// theory's objections after having checked that they are cycles, and accepts a
// derived clause only if assuming its opposite is refuted by unit propagation
// (RUP) over what it has accepted before. It shares nothing with the solver.
type judge struct {
	p       *task
	clauses [][]sat.Lit
	learned int
	err     error
}

// rup tells whether the clause follows by unit propagation.
func (j *judge) rup(c []sat.Lit) bool {
	value := make([]int8, len(j.p.means))
	set := func(l sat.Lit) { value[l], value[l^1] = 1, -1 }
	for _, l := range c {
		if value[l] > 0 {
			return true // a tautology
		}
		set(l.Not())
	}
	for changed := true; changed; {
		changed = false
		for _, d := range j.clauses {
			var unit sat.Lit
			open, held := 0, false
			for _, l := range d {
				switch {
				case value[l] > 0:
					held = true
				case value[l] == 0 && (open == 0 || unit != l):
					open, unit = open+1, l
				}
			}
			switch {
			case held || open > 1:
			case open == 0:
				return true
			default:
				set(unit)
				changed = true
			}
		}
	}
	return false
}

func (j *judge) derived(c []sat.Lit) {
	j.learned++
	if j.err == nil && !j.rup(c) {
		j.err = fmt.Errorf("clause %d, %v, does not follow by unit propagation", j.learned, c)
	}
	j.clauses = append(j.clauses, slices.Clone(c))
}

// watched hands the theory's objections to the judge.
type watched struct {
	*Theory
	j *judge
}

func (w watched) objected(lits []sat.Lit, o int) {
	c := w.Cycle(o)
	if err := w.j.p.objection(c, lits); w.j.err == nil && err != nil {
		w.j.err = fmt.Errorf("objection %d, %+v: %w", o, c, err)
	}
	var clause []sat.Lit
	for _, l := range lits {
		clause = append(clause, l.Not())
	}
	w.j.clauses = append(w.j.clauses, clause)
}

func (w watched) Assert(l sat.Lit) ([]sat.Lit, int) {
	conflict, o := w.Theory.Assert(l)
	if conflict != nil {
		w.objected(conflict, o)
	}
	return conflict, o
}

func (w watched) Reason(l sat.Lit, before int) ([]sat.Lit, int) {
	if before > len(w.stack) && w.j.err == nil {
		w.j.err = fmt.Errorf("literal %d follows from %d asserted ones, of %d", l, before, len(w.stack))
	}
	held := slices.Clone(w.stack[:before])
	because, o := w.Theory.Reason(l, before)
	for _, b := range because {
		if !slices.Contains(held, b) && w.j.err == nil {
			w.j.err = fmt.Errorf("literal %d follows from %d, which came later", l, b)
		}
	}
	w.objected(append(slices.Clone(because), l.Not()), o)
	return because, o
}

// judged solves the task before a judge.
func (p *task) judged(opt sat.Options, budget int) (*sat.Solver, *Theory, sat.Answer, error) {
	j := &judge{p: p, clauses: slices.Clone(p.clauses)}
	th := p.theory()
	opt.Learned = j.derived
	s := sat.New(len(p.phase), watched{th, j}, opt)
	p.state(s)
	answer := s.Solve(budget)
	if answer == sat.Unsat && j.err == nil && !j.rup(nil) {
		j.err = fmt.Errorf("unsat, and the empty clause does not follow")
	}
	return s, th, answer, j.err
}

// state hands the task's variables and clauses to a solver.
func (p *task) state(s *sat.Solver) {
	for v, phase := range p.phase {
		s.SetPhase(v, phase)
	}
	for _, v := range p.aux {
		s.SetAux(v)
	}
	for _, c := range p.clauses {
		s.AddClause(c...)
	}
}

// model checks an answer Sat.
func (p *task) model(s *sat.Solver) error {
	var lits []sat.Lit
	for v := range p.phase {
		if s.Value(v) {
			lits = append(lits, sat.Pos(v))
		} else {
			lits = append(lits, sat.Neg(v))
		}
	}
	for _, c := range p.clauses {
		if !slices.ContainsFunc(c, func(l sat.Lit) bool { return lits[l.Var()] == l }) {
			return fmt.Errorf("clause %v does not hold", c)
		}
	}
	if p.cyclic(lits) {
		return fmt.Errorf("the graph has a cycle")
	}
	return nil
}

// core checks, by another solver, that the clauses and cycles that an Unsat
// names suffice for it. Every objection is turned into a clause, so what is left
// is pure SAT.
func (p *task) core(s *sat.Solver, th *Theory) error {
	cnf := [][]int{}
	add := func(c []sat.Lit) {
		var out []int
		for _, l := range c {
			if n := l.Var() + 1; l.Positive() {
				out = append(out, n)
			} else {
				out = append(out, -n)
			}
		}
		cnf = append(cnf, out)
	}
	for _, g := range s.Given() {
		if len(p.clauses[g]) == 0 {
			return nil
		}
		add(p.clauses[g])
	}
	for _, o := range s.Objections() {
		c := th.Cycle(o)
		var clause []sat.Lit
		for _, l := range c.Lits {
			if l >= 0 && !slices.Contains(clause, l.Not()) {
				clause = append(clause, l.Not())
			}
		}
		add(clause)
	}
	if got := solver.New(solver.ParseSliceNb(cnf, len(p.phase))).Solve(); got != solver.Unsat {
		return fmt.Errorf("clauses %v and objections %v are %v", s.Given(), s.Objections(), got)
	}
	return nil
}

// variants are the ways to search that must agree.
var variants = []struct {
	name string
	opt  sat.Options
}{
	{"default", sat.Options{}},
	{"much deleted", sat.Options{Steady: -1, ReduceFirst: 5}},
	{"some deleted", sat.Options{Steady: 20, ReduceFirst: 10}},
}

// Every step of the search is right, on every class of problem and in every
// variant, and all variants give the same answer.
func TestJudged(t *testing.T) {
	for _, class := range []struct {
		name  string
		seeds int
		make  func(seed uint64) *task
	}{
		{"serial", 3, func(seed uint64) *task { return serial(100, 150, 0, seed) }},
		{"serial, wrong", 6, func(seed uint64) *task { return serial(100, 150, 4, seed) }},
		{"random", 12, func(seed uint64) *task { return random(25, 42, seed) }},
		{"3-sat", 4, func(seed uint64) *task { return threeSAT(6, 30, seed) }},
		{"crowd", 1, func(uint64) *task { return crowd(4) }},
		{"duplicates", 3, func(seed uint64) *task { return duplicates(60, 6, 4, 0, seed) }},
		{"duplicates, stale", 6, func(seed uint64) *task { return duplicates(60, 8, 4, 0.1, seed) }},
	} {
		t.Run(class.name, func(t *testing.T) { // not in parallel: the other solver shares memory
			for seed := range uint64(class.seeds) {
				first := sat.Budget
				for _, v := range variants {
					p := class.make(seed)
					s, th, answer, err := p.judged(v.opt, 1<<30)
					switch {
					case err != nil:
					case answer == sat.Sat:
						err = p.model(s)
					default:
						err = p.core(s, th)
					}
					if err != nil {
						t.Fatalf("seed %d, %s, %v: %v", seed, v.name, answer, err)
					}
					if first == sat.Budget {
						first = answer
					}
					if answer != first {
						t.Fatalf("seed %d, %s: %v, and %s says %v", seed, v.name, answer, variants[0].name, first)
					}
				}
			}
		})
	}
}

// tiny is a task small enough for brute force.
func tiny(rng *rand.Rand) *task {
	vars := 2 + rng.IntN(8)
	p := &task{puzzle: *newPuzzle(rng, vars), rng: rng}
	plain := vars - rng.IntN(1+vars/2)
	for v := range vars {
		p.phase = append(p.phase, rng.IntN(2) == 0)
		if v >= plain {
			p.aux = append(p.aux, v)
			p.phase[v] = false
			p.means[sat.Neg(v)] = nil
		}
	}
	for range rng.IntN(2 * vars) {
		var c []sat.Lit
		for range 1 + rng.IntN(4) {
			c = append(c, sat.Lit(rng.IntN(2*vars)))
		}
		p.clause(c...)
	}
	return p
}

// possible decides by brute force.
func (p *task) possible() bool {
	for m := range 1 << len(p.phase) {
		var lits []sat.Lit
		for v := range p.phase {
			lits = append(lits, sat.Lit(2*v+m>>v&1))
		}
		if !slices.ContainsFunc(p.clauses, func(c []sat.Lit) bool {
			return !slices.ContainsFunc(c, func(l sat.Lit) bool { return lits[l.Var()] == l })
		}) && !p.cyclic(lits) {
			return true
		}
	}
	return false
}

// With clauses, arcs and auxiliary variables at once, brute force agrees.
func TestTiny(t *testing.T) {
	answers := map[sat.Answer]int{}
	inferred := 0
	for seed := range uint64(3000) {
		v := variants[seed%uint64(len(variants))]
		p := tiny(rand.New(rand.NewPCG(seed, 8)))
		s, th, answer, err := p.judged(v.opt, 1<<30)
		answers[answer]++
		inferred += s.Stats.Reasons
		if (answer == sat.Sat) != p.possible() {
			t.Fatalf("seed %d, %s: %v, possible %v\n%+v", seed, v.name, answer, p.possible(), p)
		}
		switch {
		case err != nil:
		case answer == sat.Sat:
			err = p.model(s)
		default:
			err = p.core(s, th)
		}
		if err != nil {
			t.Fatalf("seed %d, %s, %v: %v\n%+v", seed, v.name, answer, err, p)
		}
	}
	if answers[sat.Sat] < 500 || answers[sat.Unsat] < 500 || inferred < 50 {
		t.Errorf("the sample tells little: %v, %d reasons", answers, inferred)
	}
}
