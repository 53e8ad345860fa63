package constraint

import (
	"iter"
	"slices"

	"github.com/isowatch/isowatch/incremental/acyclic"
	"github.com/isowatch/isowatch/incremental/graph"
	"github.com/isowatch/isowatch/incremental/sat"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/incremental/version"
)

// problem is what is open, as the solver sees it: the graph contracted to the
// nodes that open pairs and choices name, and variables whose truth stands for
// edges.
//
//	pair a,b       true: a before b; false: b before a
//	candidate r,v  true: r read v. Reads-from, and the anti-dependencies to what
//	               is known to follow v
//	in U           true: U, of unknown outcome, is in the history
//	follows r,b    true: what r read comes before block b, so that r
//	               anti-depends on b's first writer
//
// and clauses tie them:
//
//	a read has a candidate          (¬in U ∨) c1 ∨ c2 ∨ …
//	reading from U makes it be      ¬c ∨ in U
//	what two of unknown outcome     ¬in U ∨ ¬in V
//	read can't both be
//	r read the last version of a,   ¬c ∨ ¬(a before b) ∨ follows r,b
//	and a is before b
type problem struct {
	p     *solver
	nodes []node
	// at is the index of a node in nodes, from nodes[0] on, where they are dense enough.
	at []int32

	vars   []variable
	pairs  []pairID     // those that are stated, ascending: the first variables
	in     map[slot]int // variable
	after  map[slot]int // of the read at hand: variable, by the first writer of a block
	later  []vid        // of the read at hand: see writers.beside
	sides  []graph.Edge // see edges
	clause [][]sat.Lit
	theory *acyclic.Theory
}

type varKind uint8

const (
	pairVar varKind = iota
	candVar
	inVar
	followsVar
)

type variable struct {
	kind   varKind
	phase  bool
	pair   pairID
	choice choiceID // whose candidate v is, or whose reader follows
	v      vid
	slot   slot         // the uncertain transaction
	time   int32        // decided in this order
	means  []graph.Edge // if it is true, and no pair's
}

func (q *problem) newVar(v variable) int {
	q.vars = append(q.vars, v)
	return len(q.vars) - 1
}

// contract states the problem of the given pairs and choices.
func (p *solver) contract(pairs []pairID, choices []choiceID) *problem {
	q := &problem{p: p, in: map[slot]int{}, after: map[slot]int{}}
	q.vars = make([]variable, 0, len(pairs))
	for _, id := range pairs {
		if !p.Budget.Take(statedSteps / 2) { // whoever asked looks whether the problem is all
			break
		}
		q.newVar(variable{kind: pairVar, pair: id})
	}
	q.pairs = pairs[:len(q.vars)]
	for _, ci := range choices {
		if !p.Budget.Take(statedSteps * len(p.subjects.choices[ci].cands)) {
			break
		}
		q.choice(ci)
	}
	q.exclusions()
	q.contractGraph()
	p.Budget.Use(statedSteps/2*len(q.vars) + len(p.contracted))
	return q
}

// statedSteps is what to state a variable costs.
const statedSteps = 16

// choice adds a read's candidates.
func (q *problem) choice(ci choiceID) {
	p := q.p
	c := &p.subjects.choices[ci]
	clear(q.after)
	q.later = p.writers.beside(c, q.later[:0])
	var some []sat.Lit
	if c.guarded {
		some = append(some, sat.Neg(q.inHistory(c.reader)))
	}
	for _, v := range c.cands {
		x := q.newVar(variable{kind: candVar, choice: ci, v: v})
		some = append(some, sat.Pos(x))
		if ver := p.tab.At(v); ver.Kind == version.Written {
			q.mean(x, graph.Edge{From: p.commit(ver.Writer), To: p.start(c.reader), Key: c.key, Type: verdict.WR,
				Why: verdict.ByCase})
			if p.subjects.maybe[ver.Writer] == mayBeIn {
				q.clause = append(q.clause, []sat.Lit{sat.Neg(x), sat.Pos(q.inHistory(ver.Writer))})
			}
		}
		q.overwriters(ci, x, v)
	}
	q.clause = append(q.clause, some)
}

// exclusions adds that of some transactions at most one is in the history.
func (q *problem) exclusions() {
	var in []slot
	for s := range q.in {
		in = append(in, s)
	}
	slices.Sort(in)
	for _, s := range in {
		for _, t := range q.p.subjects.exclusive[s] {
			if x, ok := q.in[t]; ok && s < t {
				q.clause = append(q.clause, []sat.Lit{sat.Neg(q.in[s]), sat.Neg(x)})
			}
		}
	}
}

// mean adds an edge to what variable x stands for.
func (q *problem) mean(x int, e graph.Edge) {
	if !q.p.forgotten(e) {
		q.vars[x].means = append(q.vars[x].means, e)
	}
}

// edges are what l stands for. Good until the next call.
func (q *problem) edges(l sat.Lit) []graph.Edge {
	v := &q.vars[l.Var()]
	if v.kind != pairVar {
		if l.Positive() {
			return v.means
		}
		return nil
	}
	before, b := q.p.subjects.pairs[v.pair].a, q.p.subjects.pairs[v.pair].b
	if !l.Positive() {
		before, b = b, before
	}
	q.sides = slices.DeleteFunc(q.p.appendSides(q.sides[:0], before, b), q.p.forgotten)
	return q.sides
}

func (q *problem) inHistory(s slot) int {
	x, ok := q.in[s]
	if !ok {
		x = q.newVar(variable{kind: inVar, slot: s})
		q.in[s] = x
	}
	return x
}

// overwriters adds the anti-dependencies of choice ci's reader if it read v, x
// being the variable of that: to what is known to come after v, and to what does if an open pair of the
// block that v ends has it so.
func (q *problem) overwriters(ci choiceID, x int, v vid) {
	p := q.p
	c := &p.subjects.choices[ci]
	start := p.start(c.reader)
	ver := p.tab.At(v)
	if ver.Next != version.None {
		if n := p.writer(ver.Next); n != c.reader {
			q.mean(x, p.antiDependency(c.reader, n, c.key))
		}
		return
	}
	a, first := vid(none), true // the block that v ends; whether it precedes all others
	if ver.Kind == version.Written {
		a = p.tab.Head(v)
		first = p.tab.First(a)
	}
	p.Budget.Use(len(q.later))
	for _, b := range q.later {
		w := p.writer(b)
		if b != a && (first || !p.tab.First(b) && p.reach.Reaches(p.writing(ver.Writer), p.commit(w))) {
			q.mean(x, p.antiDependency(c.reader, w, c.key))
		}
	}
	if a == version.None {
		return
	}
	for id := p.subjects.firstPair(a); id != none; id = *p.subjects.nextPair(id, a) {
		p.Budget.Use(1)
		y, stated := slices.BinarySearch(q.pairs, id)
		pr := &p.subjects.pairs[id]
		before, b := sat.Pos(y), pr.b // that a comes before b
		if pr.b == a {
			before, b = sat.Neg(y), pr.a
		}
		if w := p.writer(b); stated && w != c.reader && !p.reach.Reaches(start, p.commit(w)) {
			q.clause = append(q.clause, []sat.Lit{sat.Neg(x), before.Not(), sat.Pos(q.follows(ci, w))})
		}
	}
}

// follows is the variable of that choice ci's reader read what comes before the block that w begins.
func (q *problem) follows(ci choiceID, w slot) int {
	z, ok := q.after[w]
	if !ok {
		z = q.newVar(variable{kind: followsVar, choice: ci})
		q.after[w] = z
		q.mean(z, q.p.antiDependency(q.p.subjects.choices[ci].reader, w, q.p.subjects.choices[ci].key))
	}
	return z
}

func (q *problem) index(n node) int32 {
	if q.at != nil {
		return q.at[n-q.nodes[0]]
	}
	i, _ := slices.BinarySearch(q.nodes, n)
	return int32(i)
}

// placeOf is where the theory has n; it moves once the solver is at work.
func (q *problem) placeOf(n node) int32 { return q.theory.Pos(q.index(n)) }

// contractGraph makes the contracted graph and the theory.
func (q *problem) contractGraph() {
	p := q.p
	lits := sat.Lit(2 * len(q.vars))
	q.nodes = make([]node, 0, 4*lits)
	for l := range lits {
		for _, e := range q.edges(l) {
			q.nodes = append(q.nodes, e.From, e.To)
		}
	}
	arcs := len(q.nodes) / 2
	for _, v := range q.vars { // the nodes by which schedule orders them
		switch v.kind {
		case candVar:
			q.nodes = append(q.nodes, p.start(p.subjects.choices[v.choice].reader))
		case pairVar:
			pr := p.subjects.pairs[v.pair]
			q.nodes = append(q.nodes, p.commit(p.writer(p.tab.Tail(pr.a))), p.commit(p.writer(p.tab.Tail(pr.b))))
		}
	}
	q.sortNodes()
	fixed, extra := q.fixed()
	q.theory = acyclic.New(p.priorities(q.nodes, extra), fixed, int(lits))
	q.schedule()
	q.theory.Expect(arcs)
	for l := range lits {
		for _, e := range q.edges(l) {
			q.theory.Means(l, acyclic.Arc{From: q.index(e.From), To: q.index(e.To)})
		}
	}
}

// dense is how many numbers of nodes there may be for each node that is named, for
// the indexes of nodes to be laid out by number.
const dense = 8

// sortNodes makes nodes ascend, each once.
func (q *problem) sortNodes() {
	if len(q.nodes) == 0 {
		return
	}
	lo, hi := slices.Min(q.nodes), slices.Max(q.nodes)
	if int(hi-lo) >= dense*len(q.nodes) {
		slices.Sort(q.nodes)
		q.nodes = slices.Compact(q.nodes)
		return
	}
	q.at = make([]int32, hi-lo+1)
	for _, n := range q.nodes {
		q.at[n-lo] = 1
	}
	q.nodes = q.nodes[:0]
	for i, named := range q.at {
		if named > 0 {
			q.at[i] = int32(len(q.nodes))
			q.nodes = append(q.nodes, lo+node(i))
		}
	}
}

// fixed is the known graph between the problem's nodes: its closure, contracted
// to them. It is good until the next problem's.
func (q *problem) fixed() (arcs iter.Seq[acyclic.Arc], extra int) {
	p := q.p
	if p.banded == nil && 2*len(q.nodes) > p.g.Nodes() && p.g.Nodes() > wholeFrom {
		return q.whole(), 0
	}
	p.contracted, extra = p.reach.Contract(q.nodes, p.contracted[:0])
	return func(yield func(acyclic.Arc) bool) {
		for _, e := range p.contracted {
			if !yield(acyclic.Arc{From: int32(e[0]), To: int32(e[1])}) {
				return
			}
		}
	}, extra
}

// wholeFrom is from how many nodes on the known graph is not contracted if most of its nodes are named: the
// contracted one has up to an edge for each node and chain.
const wholeFrom = 1 << 12

// whole is the known graph as it is.
func (q *problem) whole() iter.Seq[acyclic.Arc] {
	p := q.p
	q.nodes, q.at = q.nodes[:0], make([]int32, p.g.Nodes())
	for n := range node(p.g.Nodes()) {
		q.nodes, q.at[n] = append(q.nodes, n), int32(n)
	}
	return func(yield func(acyclic.Arc) bool) {
		for i := range p.g.Len() {
			if e := p.g.Edge(graph.EdgeID(i)); !yield(acyclic.Arc{From: int32(e.From), To: int32(e.To)}) {
				return
			}
		}
		for n := int32(0); p.parts == 2 && int(n) < p.g.Nodes(); n += 2 {
			if !yield(acyclic.Arc{From: n, To: n + 1}) {
				return
			}
		}
	}
}

// edge is the edge that literal l stands for by arc a.
func (q *problem) edge(l sat.Lit, a acyclic.Arc) graph.Edge {
	all := q.edges(l)
	return all[slices.IndexFunc(all, func(e graph.Edge) bool { return q.index(e.From) == a.From && q.index(e.To) == a.To })]
}

// schedule numbers the variables in the order in which they are to be decided,
// that of time, and gives each the value that it had in the last solution, or else that agrees with the
// order of the contracted graph: a pair its order there, a read the last version before it.
func (q *problem) schedule() {
	p := q.p
	best := map[choiceID]int{} // by choice: the variable of its likeliest candidate
	for i := range q.vars {
		v := &q.vars[i]
		switch v.kind {
		case pairVar:
			pr := p.subjects.pairs[v.pair]
			a := q.placeOf(p.commit(p.writer(p.tab.Tail(pr.a))))
			b := q.placeOf(p.commit(p.writer(p.tab.Tail(pr.b))))
			v.time, v.phase = 2*min(a, b), a < b
			if pr.tried {
				v.phase = pr.ab
			}
		case candVar:
			c := &p.subjects.choices[v.choice]
			v.time, v.phase = 2*q.placeOf(p.start(c.reader))+1, v.v == c.last
			if b, ok := best[v.choice]; !ok || q.likelier(c, v.v, q.vars[b].v) {
				best[v.choice] = i
			}
		default:
			v.time = 1 << 30
		}
	}
	for _, i := range best {
		v := &q.vars[i]
		v.phase = v.phase || p.subjects.choices[v.choice].last == none
		v.time-- // before its rivals
	}
	keys := make([]uint64, len(q.vars)) // time, then number
	for i := range keys {
		keys[i] = uint64(uint32(q.vars[i].time)^1<<31)<<32 | uint64(i)
	}
	if slices.IsSorted(keys) {
		q.in = nil
		return
	}
	slices.Sort(keys)
	order := make([]int, len(keys))
	for i, k := range keys {
		order[i] = int(uint32(k))
	}
	q.renumber(order)
}

// likelier tells whether v is likelier than u to be what c's reader read: the
// later one before it; if none is before it, the earlier.
func (q *problem) likelier(c *choice, v, u vid) bool {
	p := q.p
	at := q.placeOf(p.start(c.reader))
	when := func(v vid) int32 {
		if p.tab.At(v).Kind != version.Written {
			return -1
		}
		return q.placeOf(p.commit(p.writer(v)))
	}
	a, b := when(v), when(u)
	if (a < at) != (b < at) {
		return a < at
	}
	if a < at {
		return a > b
	}
	return a < b
}

// renumber gives variable order[i] the number i.
func (q *problem) renumber(order []int) {
	to := make([]int, len(order))
	vars := make([]variable, len(order))
	for i, old := range order {
		to[old] = i
		vars[i] = q.vars[old]
	}
	q.vars = vars
	for _, c := range q.clause {
		for k, l := range c {
			n := sat.Pos(to[l.Var()])
			if !l.Positive() {
				n = n.Not()
			}
			c[k] = n
		}
	}
	q.in = nil // their numbers are the old ones
}

// solver makes the solver of the problem.
func (q *problem) solver() *sat.Solver {
	counted := q.theory.Looked()
	stop := func() bool {
		n := q.theory.Looked() - counted
		counted += n
		return !q.p.Budget.Take(sat.AskEvery + n/placesAStep)
	}
	s := sat.New(len(q.vars), q.theory, sat.Options{Stop: stop})
	for i, v := range q.vars {
		s.SetPhase(i, v.phase)
		if v.kind == followsVar || v.kind == inVar {
			s.SetAux(i)
		}
	}
	for _, c := range q.clause {
		s.AddClause(c...)
	}
	return s
}
