package acyclic

import (
	"cmp"
	"container/heap"
	"math/rand/v2"
	"slices"

	"github.com/isowatch/isowatch/incremental/sat"
)

// A task is a puzzle with clauses: what the checker hands to the solver.
type task struct {
	puzzle
	clauses [][]sat.Lit
	aux     []int // variables that are false unless forced
	phase   []bool
	rng     *rand.Rand
}

func newTask(n int, seed uint64) *task {
	p := &task{rng: rand.New(rand.NewPCG(seed, 77))}
	p.nodes(n)
	return p
}

// nodes adds nodes and returns the first.
func (p *task) nodes(n int) int32 {
	from := p.n
	for range n {
		p.order = append(p.order, p.n)
		p.n++
	}
	return from
}

func (p *task) fix(from, to int32) { p.fixed = append(p.fixed, Arc{from, to}) }

// choice adds a variable that stands for one list of arcs or the other.
func (p *task) choice(yes, no []Arc, phase bool) int {
	p.means = append(p.means, yes, no)
	p.phase = append(p.phase, phase)
	return len(p.phase) - 1
}

// edge adds an auxiliary variable that stands for one arc.
func (p *task) edge(a Arc) int {
	v := p.choice([]Arc{a}, nil, false)
	p.aux = append(p.aux, v)
	return v
}

func (p *task) clause(lits ...sat.Lit) { p.clauses = append(p.clauses, lits) }

// sort makes order a topological order of the fixed arcs: of nodes that are
// ready, the one with the earliest time goes first, and a node's time is its
// number, give or take some.
func (p *task) sort() *task {
	in := make([]int, p.n)
	out := make([][]int32, p.n)
	for _, a := range p.fixed {
		in[a.To]++
		out[a.From] = append(out[a.From], a.To)
	}
	at := make([]int, p.n) // the ready, by time
	r := &queue{}
	for v := range at {
		at[v] = v + p.rng.IntN(20)
	}
	for v := range p.n {
		if in[v] == 0 {
			heap.Push(r, dated{at[v], v})
		}
	}
	p.order = p.order[:0]
	for r.Len() > 0 {
		u := heap.Pop(r).(dated).node
		p.order = append(p.order, u)
		for _, v := range out[u] {
			if in[v]--; in[v] == 0 {
				heap.Push(r, dated{at[v], v})
			}
		}
	}
	if len(p.order) != int(p.n) {
		panic("the fixed arcs have a cycle")
	}
	// First values as the checker gives them: what agrees with this order.
	place := make([]int, p.n)
	for i, v := range p.order {
		place[v] = i
	}
	for v := range p.phase {
		if yes := p.means[sat.Pos(v)]; len(yes) > 0 && len(p.means[sat.Neg(v)]) > 0 {
			p.phase[v] = place[yes[0].From] < place[yes[0].To]
		}
	}
	return p
}

type dated struct {
	at   int
	node int32
}

type queue []dated

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return cmp.Or(q[i].at-q[j].at, int(q[i].node-q[j].node)) < 0 }
func (q queue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)        { *q = append(*q, x.(dated)) }
func (q *queue) Pop() any {
	x := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return x
}

// serial is a history of n transactions in sessions, taken from a serial
// schedule: fixed arcs that agree with it, and for every key the orders of the
// writers that are near each other, each with its readers, as blind writes leave
// them. With wrong pairs of sides the schedule is broken there.
func serial(n, pairs, wrong int, seed uint64) *task {
	p := newTask(n, seed)
	last := make([]int32, 20)
	for v := range int32(n) {
		s := p.rng.IntN(len(last))
		if last[s] > 0 {
			p.fix(last[s]-1, v)
		}
		last[s] = v + 1
		for range 2 {
			if v > 0 {
				p.fix(max(0, v-1-p.rng.Int32N(60)), v)
			}
		}
	}
	first := make([]int32, pairs)
	for i := range first {
		first[i] = p.rng.Int32N(int32(n) - 40)
	}
	slices.Sort(first) // decided in the order of time
	for _, a := range first {
		b := a + 1 + p.rng.Int32N(8)
		yes, no := []Arc{{a, b}}, []Arc{{b, a}}
		for range p.rng.IntN(3) { // readers of the earlier version
			r := a + 1 + p.rng.Int32N(b-a)
			if r < b {
				yes = append(yes, Arc{r, b})
			}
		}
		for range p.rng.IntN(3) {
			no = append(no, Arc{b + 1 + p.rng.Int32N(9), a})
		}
		if wrong > 0 && p.rng.IntN(pairs) < wrong {
			yes = append(yes, Arc{b + 1 + p.rng.Int32N(30), a})
		}
		if p.rng.IntN(2) == 0 {
			yes, no = no, yes
		}
		p.choice(yes, no, true)
	}
	return p.sort()
}

// random is a polygraph of n nodes and pairs whose sides are 1 to 3 arcs
// anywhere.
func random(n, pairs int, seed uint64) *task {
	p := newTask(n, seed)
	side := func() []Arc {
		var out []Arc
		for range 1 + p.rng.IntN(3) {
			if a, b := p.rng.Int32N(p.n), p.rng.Int32N(p.n); a != b {
				out = append(out, Arc{a, b})
			}
		}
		return out
	}
	for range pairs {
		p.choice(side(), side(), true)
	}
	return p.sort()
}

// threeSAT is random 3-SAT as a polygraph, after the reduction in MTC, appendix
// C: a variable is the order of two writers, a literal the order of two others
// (y before z: false) with a reader w of z; a clause whose literals are all
// false closes a cycle.
func threeSAT(vars, clauses int, seed uint64) *task {
	p := newTask(0, seed)
	ab := p.nodes(2 * vars)
	for k := range int32(vars) {
		a, b := ab+2*k, ab+2*k+1
		p.choice([]Arc{{b, a}}, []Arc{{a, b}}, true)
	}
	for range clauses {
		var y, z [3]int32
		for j, k := range p.rng.Perm(vars)[:3] {
			n := p.nodes(3)
			y[j], z[j] = n, n+1
			w := n + 2
			a, b := ab+2*int32(k), ab+2*int32(k)+1
			if p.rng.IntN(2) == 0 {
				a, b = b, a
			}
			p.fix(y[j], a)
			p.fix(b, w)
			p.fix(z[j], w)
			p.choice([]Arc{{z[j], y[j]}, {w, y[j]}}, []Arc{{y[j], z[j]}}, true)
		}
		for j := range 3 {
			p.fix(z[j], y[(j+1)%3])
		}
	}
	return p.sort()
}

// crowd is n+1 transactions of which each has to read one of n versions, and no
// two the same: two reads of one version close a cycle.
func crowd(n int) *task {
	p := newTask(0, 0)
	for range n + 1 {
		var one []sat.Lit
		for range n {
			one = append(one, sat.Pos(p.choice(nil, nil, false)))
		}
		p.clause(one...)
	}
	for h := range n {
		for i := range n + 1 {
			for j := range i {
				u := p.nodes(2)
				p.means[sat.Pos(i*n+h)] = append(p.means[sat.Pos(i*n+h)], Arc{u, u + 1})
				p.means[sat.Pos(j*n+h)] = append(p.means[sat.Pos(j*n+h)], Arc{u + 1, u})
			}
		}
	}
	return p.sort()
}

// duplicates is a history from a serial schedule in which values repeat: keys of
// few writers, reads with several possible writers, an auxiliary arc from a
// reader to whatever overwrites what it may have read. With stale reads it need
// not have a solution.
func duplicates(n, keys, reads int, stale float64, seed uint64) *task {
	p := newTask(n, seed)
	last := make([]int32, 10)
	for v := range int32(n) {
		s := p.rng.IntN(len(last))
		if last[s] > 0 {
			p.fix(last[s]-1, v)
		}
		last[s] = v + 1
	}
	for range keys {
		writers := make([]int32, 0, 8)
		for range 4 + p.rng.IntN(4) {
			writers = append(writers, p.rng.Int32N(int32(n)))
		}
		slices.Sort(writers)
		writers = slices.Compact(writers)
		before := map[Arc]sat.Lit{}
		for j, b := range writers {
			for _, a := range writers[:j] {
				v := p.choice([]Arc{{a, b}}, []Arc{{b, a}}, true)
				before[Arc{a, b}], before[Arc{b, a}] = sat.Pos(v), sat.Neg(v)
			}
		}
		for range reads {
			r := p.rng.Int32N(int32(n))
			at, _ := slices.BinarySearch(writers, r)
			if at == 0 || at < len(writers) && writers[at] == r {
				continue
			}
			read := at - 1
			if p.rng.Float64() < stale {
				read = p.rng.IntN(at)
			}
			value := func(i int) int { return i % 3 }
			var one []sat.Lit
			for i, w := range writers {
				if value(i) != value(read) {
					continue
				}
				from := sat.Pos(p.choice([]Arc{{w, r}}, nil, i == read))
				one = append(one, from)
				for _, x := range writers {
					if x != w && x != r {
						p.clause(from.Not(), before[Arc{w, x}].Not(), sat.Pos(p.edge(Arc{r, x})))
					}
				}
			}
			p.clause(one...)
		}
	}
	return p.sort()
}
