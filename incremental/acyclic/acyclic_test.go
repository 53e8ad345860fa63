package acyclic

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/isowatch/isowatch/incremental/sat"
)

// A puzzle is fixed arcs and, for each literal, the arcs that it stands for.
type puzzle struct {
	n     int32
	order []int32 // of the fixed arcs
	fixed []Arc
	means [][]Arc
}

func newPuzzle(rng *rand.Rand, vars int) *puzzle {
	p := &puzzle{n: 2 + rng.Int32N(8), means: make([][]Arc, 2*vars)}
	for _, v := range rng.Perm(int(p.n)) {
		p.order = append(p.order, int32(v))
	}
	for range rng.IntN(int(p.n)) {
		i, j := rng.IntN(int(p.n)), rng.IntN(int(p.n))
		if i != j {
			p.fixed = append(p.fixed, Arc{p.order[min(i, j)], p.order[max(i, j)]})
		}
	}
	for l := range p.means {
		for range 1 + rng.IntN(3)*rng.IntN(2) {
			a := Arc{rng.Int32N(p.n), rng.Int32N(p.n)}
			if a.From != a.To || rng.IntN(10) == 0 {
				p.means[l] = append(p.means[l], a)
			}
		}
	}
	return p
}

// pairs makes a puzzle whose literals are the two orders of a pair of blocks.
func pairs(rng *rand.Rand, vars int) *puzzle {
	p := newPuzzle(rng, vars)
	for v := range vars {
		x, y := rng.Int32N(p.n), rng.Int32N(p.n)
		r := rng.Int32N(p.n)
		p.means[sat.Pos(v)] = []Arc{{x, y}}
		p.means[sat.Neg(v)] = []Arc{{y, x}}
		if r != x && r != y {
			p.means[sat.Pos(v)] = append(p.means[sat.Pos(v)], Arc{r, y})
		}
	}
	return p
}

func (p *puzzle) theory() *Theory {
	prio := make([]int32, p.n)
	for i, v := range p.order {
		prio[v] = int32(i)
	}
	t := New(prio, slices.Values(p.fixed), len(p.means))
	for l, arcs := range p.means {
		t.Means(sat.Lit(l), arcs...)
	}
	return t
}

// cyclic tells whether the fixed arcs and those of some literals have a cycle.
func (p *puzzle) cyclic(lits []sat.Lit) bool {
	path := make([][]bool, p.n)
	for i := range path {
		path[i] = make([]bool, p.n)
	}
	add := func(arcs []Arc) {
		for _, a := range arcs {
			path[a.From][a.To] = true
		}
	}
	add(p.fixed)
	for _, l := range lits {
		add(p.means[l])
	}
	for k := range p.n {
		for i := range p.n {
			for j := range p.n {
				path[i][j] = path[i][j] || path[i][k] && path[k][j]
			}
		}
	}
	for i := range p.n {
		if path[i][i] {
			return true
		}
	}
	return false
}

// ordered checks that t's order is one of all that is asserted.
func (p *puzzle) ordered(t *Theory, lits []sat.Lit) error {
	place := map[int32]bool{}
	for n := range p.n {
		place[t.Pos(n)] = true
	}
	if len(place) != int(p.n) {
		return fmt.Errorf("two nodes have the same place")
	}
	arcs := slices.Clone(p.fixed)
	for _, l := range lits {
		arcs = append(arcs, p.means[l]...)
	}
	for _, a := range arcs {
		if t.Pos(a.From) >= t.Pos(a.To) {
			return fmt.Errorf("arc %v runs from place %d to %d", a, t.Pos(a.From), t.Pos(a.To))
		}
	}
	return nil
}

// objection checks that an objection is a closed walk of arcs that its literals
// stand for, and that the conflict names these literals.
func (p *puzzle) objection(c Cycle, conflict []sat.Lit) error {
	if len(c.Arcs) == 0 || len(c.Arcs) != len(c.Lits) {
		return fmt.Errorf("%d arcs, %d literals", len(c.Arcs), len(c.Lits))
	}
	used := map[sat.Lit]bool{}
	for i, a := range c.Arcs {
		if next := c.Arcs[(i+1)%len(c.Arcs)]; a.To != next.From {
			return fmt.Errorf("no walk: %v, then %v", a, next)
		}
		if l := c.Lits[i]; l >= 0 {
			used[l] = true
			if !slices.Contains(p.means[l], a) {
				return fmt.Errorf("literal %d has no arc %v", l, a)
			}
		} else if !slices.Contains(p.fixed, a) {
			return fmt.Errorf("arc %v is not fixed", a)
		}
	}
	for _, l := range conflict {
		if !used[l] {
			return fmt.Errorf("literal %d is in the conflict and not in the cycle", l)
		}
		delete(used, l)
	}
	if len(used) > 0 {
		return fmt.Errorf("%v are in the cycle and not in the conflict %v", used, conflict)
	}
	return nil
}

// Asserting and undoing at random, the theory objects exactly when there would
// be a cycle, says which, and keeps an order.
func TestAssertAndUndo(t *testing.T) {
	objected := 0
	for seed := range uint64(4000) {
		rng := rand.New(rand.NewPCG(seed, 1))
		vars := 1 + rng.IntN(8)
		p := newPuzzle(rng, vars)
		th := p.theory()
		var held []sat.Lit
		for step := range 40 {
			if rng.IntN(4) == 0 {
				n := rng.IntN(len(held) + 1)
				th.Undo(n)
				held = held[:len(held)-n]
			} else {
				l := sat.Lit(rng.IntN(2 * vars))
				if slices.Contains(held, l) || slices.Contains(held, l.Not()) {
					continue
				}
				conflict, o := th.Assert(l)
				if want := p.cyclic(append(slices.Clone(held), l)); (conflict != nil) != want {
					t.Fatalf("seed %d, step %d: %v holds, %d asserted: conflict %v, cyclic %v\n%+v", seed, step, held, l, conflict, want, p)
				}
				if conflict == nil {
					held = append(held, l)
				} else {
					objected++
					for _, c := range conflict {
						if c != l && !slices.Contains(held, c) {
							t.Fatalf("seed %d, step %d: conflict %v names what does not hold; %v does", seed, step, conflict, held)
						}
					}
					if !slices.Contains(conflict, l) || !p.cyclic(conflict) {
						t.Fatalf("seed %d, step %d: conflict %v is none", seed, step, conflict)
					}
					if err := p.objection(th.Cycle(o), conflict); err != nil {
						t.Fatalf("seed %d, step %d: objection %+v: %v", seed, step, th.Cycle(o), err)
					}
				}
			}
			if err := p.ordered(th, held); err != nil {
				t.Fatalf("seed %d, step %d: %v hold: %v\n%+v", seed, step, held, err, p)
			}
		}
	}
	if objected < 1000 {
		t.Errorf("only %d objections", objected)
	}
}

// With the solver, the theory finds an assignment exactly if there is one, and
// the cycles that an Unsat rests on leave none.
func TestSolves(t *testing.T) {
	answers := map[sat.Answer]int{}
	for seed := range uint64(3000) {
		rng := rand.New(rand.NewPCG(seed, 6))
		vars := 1 + rng.IntN(8)
		p := pairs(rng, vars)
		if seed%3 == 0 {
			p = newPuzzle(rng, vars)
		}
		th := p.theory()
		s := sat.New(vars, th, sat.Options{})
		for v := range vars {
			s.SetPhase(v, rng.IntN(2) == 0)
		}
		answer := s.Solve(1 << 30)
		answers[answer]++
		possible := false
		var all [][]sat.Lit
		for m := range 1 << vars {
			var lits []sat.Lit
			for v := range vars {
				lits = append(lits, sat.Lit(2*v+m>>v&1))
			}
			all = append(all, lits)
			possible = possible || !p.cyclic(lits)
		}
		if (answer == sat.Sat) != possible {
			t.Fatalf("seed %d: %v, possible %v\n%+v", seed, answer, possible, p)
		}
		if answer == sat.Sat {
			var lits []sat.Lit
			for v := range vars {
				if s.Value(v) {
					lits = append(lits, sat.Pos(v))
				} else {
					lits = append(lits, sat.Neg(v))
				}
			}
			if err := p.ordered(th, lits); err != nil {
				t.Fatalf("seed %d: the answer: %v", seed, err)
			}
			continue
		}
		for _, lits := range all {
			refuted := false
			for _, o := range s.Objections() {
				c := th.Cycle(o)
				all := true
				for _, l := range c.Lits {
					all = all && (l < 0 || slices.Contains(lits, l))
				}
				refuted = refuted || all
			}
			if !refuted {
				t.Fatalf("seed %d: no objection of %v speaks against %v", seed, s.Objections(), lits)
			}
		}
	}
	if answers[sat.Sat] < 200 || answers[sat.Unsat] < 200 {
		t.Errorf("the sample tells little: %v", answers)
	}
}
