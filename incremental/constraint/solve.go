package constraint

import (
	"cmp"
	"container/heap"
	"slices"

	"github.com/isowatch/isowatch/incremental/acyclic"
	"github.com/isowatch/isowatch/incremental/graph"
	"github.com/isowatch/isowatch/incremental/sat"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/incremental/version"
)

// solution is a choice for every open pair that leaves the graph acyclic.
type solution struct {
	pairs  []uint32
	ab     []bool // a before b
	edges  int    // of the graph when it was found, to see whether it is stale
	valid  bool
	budget bool // the last search ran out of conflicts
}

// Solve decides whether the open pairs can all be ordered without a cycle,
// within a budget of conflicts.
//
// The search is complete along the order first, search last (design 3): the
// graph is contracted to the nodes that open pairs name, ordered topologically,
// and every pair is first given the order that agrees; only where that closes a
// cycle does the solver learn and search. Unsat reports a violation and gives
// the pairs that it rests on up.
func (p *Polygraph) Solve(budget int) sat.Answer {
	p.Propagate()
	var alive []uint32
	for c := range p.pairs {
		if p.pairs[c].alive {
			alive = append(alive, uint32(c))
		}
	}
	if p.solved.valid && p.solved.edges == p.g.Len() && slices.Equal(alive, p.solved.pairs) {
		return sat.Sat
	}
	p.solved = solution{}
	p.Stats.Residual = max(p.Stats.Residual, len(alive))
	if len(alive) == 0 {
		p.solved = solution{valid: true, edges: p.g.Len()}
		return sat.Sat
	}
	c := p.contract(alive)
	solver := sat.New(len(c.pairs), c.theory)
	for v, pr := range c.pairs {
		solver.SetPhase(v, c.at(p.commit(p.writer(p.tab.Tail(pr.a)))) < c.at(p.commit(p.writer(p.tab.Tail(pr.b)))))
	}
	answer := solver.Solve(budget)
	p.Stats.Conflicts += solver.Stats.Conflicts
	switch answer {
	case sat.Sat:
		p.solved = solution{valid: true, edges: p.g.Len(), pairs: alive, ab: make([]bool, len(alive))}
		place := make(map[uint32]int, len(alive))
		for i, id := range alive {
			place[id] = i
		}
		for v, id := range c.ids {
			p.solved.ab[place[id]] = solver.Value(v)
		}
	case sat.Unsat:
		p.reportUnsat(c, solver)
	case sat.Budget:
		p.solved.budget = true
	}
	return answer
}

func (p *Polygraph) writer(v vid) slot { return p.tab.At(v).Writer }

// contracted is the solver's problem.
type contracted struct {
	nodes  []node // the real ones; helpers have larger indexes
	ids    []uint32
	pairs  []pair // by variable
	theory *acyclic.Theory
	place  []int32 // by index: place in the initial order
	edge   map[arcOf]graph.Edge
}

// arcOf names an arc of a literal.
type arcOf struct {
	lit sat.Lit
	arc acyclic.Arc
}

func (c *contracted) index(n node) int32 {
	i, _ := slices.BinarySearch(c.nodes, n)
	return int32(i)
}

func (c *contracted) at(n node) int32 { return c.place[c.index(n)] }

// sides are the edges of "a before b".
func (p *Polygraph) sides(a, b vid) []graph.Edge {
	tail := p.tab.Tail(a)
	tv := p.tab.At(tail)
	hw := p.writer(b)
	out := []graph.Edge{{From: p.commit(tv.Writer), To: p.start(hw), Key: tv.Key, Type: verdict.WW, Why: verdict.ByCase}}
	for r := range p.tab.Readers(tail) {
		if r != hw && !p.isWithdrawn(r, tail) {
			out = append(out, graph.Edge{From: p.start(r), To: p.commit(hw), Key: tv.Key, Type: verdict.RW, Why: verdict.ByCase})
		}
	}
	return out
}

func (p *Polygraph) contract(alive []uint32) *contracted {
	c := &contracted{edge: map[arcOf]graph.Edge{}}
	for _, id := range alive {
		pr := p.pairs[id]
		for _, side := range [2][]graph.Edge{p.sides(pr.a, pr.b), p.sides(pr.b, pr.a)} {
			for _, e := range side {
				c.nodes = append(c.nodes, e.From, e.To)
			}
		}
	}
	slices.Sort(c.nodes)
	c.nodes = slices.Compact(c.nodes)
	raw, extra := p.reach.Contract(c.nodes)
	fixed := make([]acyclic.Arc, 0, len(raw)+len(c.nodes)/2)
	for _, e := range raw {
		fixed = append(fixed, acyclic.Arc{From: int32(e[0]), To: int32(e[1])})
	}
	n := len(c.nodes) + extra
	order := topological(n, fixed, p.priorities(c.nodes, extra))
	c.place = make([]int32, n)
	for i, v := range order {
		c.place[v] = int32(i)
	}
	// Variables in the order of time, so that decisions follow it.
	type dated struct {
		at int32
		id uint32
	}
	byTime := make([]dated, len(alive))
	for i, id := range alive {
		pr := p.pairs[id]
		byTime[i] = dated{min(c.at(p.commit(p.writer(p.tab.Tail(pr.a)))), c.at(p.commit(p.writer(p.tab.Tail(pr.b))))), id}
	}
	slices.SortFunc(byTime, func(x, y dated) int { return cmp.Or(cmp.Compare(x.at, y.at), cmp.Compare(x.id, y.id)) })
	ids := make([]uint32, len(alive))
	for i, d := range byTime {
		ids[i] = d.id
	}
	c.ids = ids
	c.theory = acyclic.New(order, fixed, 2*len(ids))
	for v, id := range ids {
		pr := p.pairs[id]
		c.pairs = append(c.pairs, pr)
		for _, e := range p.sides(pr.a, pr.b) {
			c.means(sat.Pos(v), e)
		}
		for _, e := range p.sides(pr.b, pr.a) {
			c.means(sat.Neg(v), e)
		}
	}
	return c
}

func (c *contracted) means(l sat.Lit, e graph.Edge) {
	a := acyclic.Arc{From: c.index(e.From), To: c.index(e.To)}
	c.theory.Means(l, a)
	if _, ok := c.edge[arcOf{l, a}]; !ok {
		c.edge[arcOf{l, a}] = e
	}
}

// priorities say which of several ready nodes comes first: the one that was
// taken in first, as streams come in the order of time; in bulk, where the
// input may be sorted by session, the one in the earlier layer of the graph.
func (p *Polygraph) priorities(nodes []node, extra int) []int32 {
	prio := make([]int32, len(nodes)+extra)
	if p.cfg.Bulk && p.banded == nil {
		at := make([]int32, p.g.Nodes())
		for i, n := range p.layers() {
			at[n] = int32(i)
		}
		for i, n := range nodes {
			prio[i] = at[n]
		}
		return prio
	}
	for i, n := range nodes {
		prio[i] = int32(n)
	}
	for i := len(nodes); i < len(prio); i++ {
		prio[i] = -1 // time itself waits for nobody
	}
	return prio
}

// layers is a topological order of the whole graph, first come first served.
func (p *Polygraph) layers() []node {
	n := p.g.Nodes()
	in := make([]int32, n)
	for i := range p.g.Len() {
		in[p.g.Edge(uint32(i)).To]++
	}
	out := make([]node, 0, n)
	for i := range n {
		if p.parts == 2 && i%2 == 1 {
			in[i]++
		}
		if in[i] == 0 {
			out = append(out, node(i))
		}
	}
	for at := 0; at < len(out); at++ {
		u := out[at]
		if p.parts == 2 && u%2 == 0 {
			if in[u+1]--; in[u+1] == 0 {
				out = append(out, u+1)
			}
		}
		for e := p.g.FirstOut(u); e != graph.None; e = p.g.NextOut(e) {
			v := p.g.Edge(e).To
			if in[v]--; in[v] == 0 {
				out = append(out, v)
			}
		}
	}
	return out
}

// ready is a heap of nodes by priority, then number.
type ready struct {
	list []int32
	prio []int32
}

func (r *ready) Len() int { return len(r.list) }
func (r *ready) Less(i, j int) bool {
	a, b := r.list[i], r.list[j]
	if r.prio[a] != r.prio[b] {
		return r.prio[a] < r.prio[b]
	}
	return a < b
}
func (r *ready) Swap(i, j int) { r.list[i], r.list[j] = r.list[j], r.list[i] }
func (r *ready) Push(x any)    { r.list = append(r.list, x.(int32)) }
func (r *ready) Pop() any {
	v := r.list[len(r.list)-1]
	r.list = r.list[:len(r.list)-1]
	return v
}

// topological orders nodes 0 to n-1, by priority where arcs leave a choice.
func topological(n int, arcs []acyclic.Arc, prio []int32) []int32 {
	in := make([]int32, n)
	first := make([]int32, n+1)
	for _, a := range arcs {
		in[a.To]++
		first[a.From+1]++
	}
	for i := range n {
		first[i+1] += first[i]
	}
	to := make([]int32, len(arcs))
	fill := slices.Clone(first)
	for _, a := range arcs {
		to[fill[a.From]] = a.To
		fill[a.From]++
	}
	r := &ready{prio: prio}
	for i := range n {
		if in[i] == 0 {
			r.list = append(r.list, int32(i))
		}
	}
	heap.Init(r)
	out := make([]int32, 0, n)
	for r.Len() > 0 {
		u := heap.Pop(r).(int32)
		out = append(out, u)
		for _, v := range to[first[u]:first[u+1]] {
			if in[v]--; in[v] == 0 {
				heap.Push(r, v)
			}
		}
	}
	return out
}

// reportUnsat reports that every choice closes a cycle, with the cycles that
// the refutation uses, and gives up the pairs in them.
func (p *Polygraph) reportUnsat(c *contracted, solver *sat.Solver) {
	v := Violation{Because: map[int][]graph.Edge{}}
	explain := p.more()
	var todo []step
	for _, o := range solver.Objections() {
		cycle := c.theory.Cycle(o)
		for _, l := range cycle.Lits {
			if l >= 0 {
				pr := c.pairs[l.Var()]
				p.given[[2]vid{min(pr.a, pr.b), max(pr.a, pr.b)}] = true
			}
		}
		if explain {
			var walk []step
			walk, todo = p.expand(c, cycle, todo)
			v.Cases = append(v.Cases, edges(walk))
			for _, s := range walk {
				if s.Why == verdict.ByCase && s.id == none {
					p.spine(&v, s.Edge)
				}
				v.Assumed = v.Assumed || s.Assumed || s.Type == verdict.RT
			}
		}
	}
	for i, pr := range p.pairs {
		if pr.alive && p.given[[2]vid{min(pr.a, pr.b), max(pr.a, pr.b)}] {
			p.kill(uint32(i))
		}
	}
	if !explain {
		return
	}
	p.ground(&v, todo)
	for _, e := range v.Rest {
		v.Assumed = v.Assumed || e.Assumed || e.Type == verdict.RT
	}
	p.found = append(p.found, v)
}

// expand turns a cycle of the contracted graph into one of the known graph:
// runs of fixed arcs become paths.
func (p *Polygraph) expand(c *contracted, cycle acyclic.Cycle, todo []step) ([]step, []step) {
	var walk []step
	for i := 0; i < len(cycle.Arcs); {
		if l := cycle.Lits[i]; l >= 0 {
			walk = append(walk, step{c.edge[arcOf{l, cycle.Arcs[i]}], none})
			i++
			continue
		}
		from := cycle.Arcs[i].From
		for i < len(cycle.Arcs) && cycle.Lits[i] < 0 {
			i++
		}
		// arcs[0] stands for a literal, so a run ends before the list does or
		// at the beginning of the cycle
		to := cycle.Arcs[i%len(cycle.Arcs)].From
		run := p.path(c.nodes[from], c.nodes[to], none)
		walk = append(walk, run...)
		todo = append(todo, run...)
	}
	return walk, todo
}

// Choose makes the last solution's orders part of the graph, as assumed edges,
// for pairs that nothing in real time can decide any more: both blocks have been
// overwritten by a third one, and all three precede, by the clock, whatever ends
// from slot low on, so that a read of theirs would be a stale one. This keeps
// the open pairs of a stream few: what was never overwritten remains. What rests
// on such an order is checked again from the records.
func (p *Polygraph) Choose(low version.Slot) {
	if !p.solved.valid || p.banded == nil {
		return
	}
	pairs, ab := p.solved.pairs, p.solved.ab
	for i, c := range pairs {
		pr := p.pairs[c]
		if !pr.alive || !p.buried(pr.a, pr.b, low) {
			continue
		}
		a, b := pr.a, pr.b
		if !ab[i] {
			a, b = b, a
		}
		p.kill(c)
		p.order(a, b, verdict.ByCase, graph.Edge{From: none})
	}
	p.solved.valid = false
	p.Propagate()
}

// buried tells whether a pair lies, with its readers and a block that follows
// both, below slot low.
func (p *Polygraph) buried(a, b vid, low slot) bool {
	for _, side := range [2][]graph.Edge{p.sides(a, b), p.sides(b, a)} {
		for _, e := range side {
			if p.SlotOf(e.From) >= low || p.SlotOf(e.To) >= low {
				return false
			}
		}
	}
	ends := [2]node{p.commit(p.writer(p.tab.Tail(a))), p.commit(p.writer(p.tab.Tail(b)))}
	for _, x := range *p.list(p.tab.At(a).Key) {
		w := p.writer(x.head)
		if x.head != a && x.head != b && w < low && p.reach.Reaches(ends[0], p.start(w)) && p.reach.Reaches(ends[1], p.start(w)) {
			return true
		}
	}
	return false
}

// Order is a proof that what was checked is satisfied: the transactions (or
// their starts and commits) in an order that keeps every edge and the chosen
// order of every pair. nil without a solution.
func (p *Polygraph) Order() []verdict.Event {
	if !p.solved.valid {
		return nil
	}
	n := p.g.Nodes()
	in := make([]int32, n)
	chosen := map[node][]node{}
	for i, c := range p.solved.pairs {
		a, b := p.pairs[c].a, p.pairs[c].b
		if !p.solved.ab[i] {
			a, b = b, a
		}
		for _, e := range p.sides(a, b) {
			chosen[e.From] = append(chosen[e.From], e.To)
			in[e.To]++
		}
	}
	for i := range p.g.Len() {
		in[p.g.Edge(uint32(i)).To]++
	}
	waits := map[uint32][]node{} // by the length of the prefix of slots waited for
	for s := range slot(p.slots) {
		if p.parts == 2 {
			in[p.commit(s)]++
		}
		if p.banded != nil && p.banded.L(s) > 0 {
			in[p.start(s)]++
			waits[p.banded.L(s)] = append(waits[p.banded.L(s)], p.start(s))
		}
	}
	r := &ready{prio: make([]int32, n)}
	for i := range n {
		if p.banded != nil {
			r.prio[i] = int32(i)
		}
		if in[i] == 0 {
			r.list = append(r.list, int32(i))
		}
	}
	heap.Init(r)
	lower := func(v node) {
		if in[v]--; in[v] == 0 {
			heap.Push(r, int32(v))
		}
	}
	committed := make([]bool, p.slots)
	prefix := uint32(0)
	pass := func() {
		for int(prefix) < p.slots && (committed[prefix] || p.banded.Untimed(prefix)) {
			prefix++
			for _, v := range waits[prefix] {
				lower(v)
			}
		}
	}
	if p.banded != nil {
		pass()
	}
	out := make([]verdict.Event, 0, n)
	for r.Len() > 0 {
		u := node(heap.Pop(r).(int32))
		s := p.SlotOf(u)
		isCommit := u == p.commit(s)
		out = append(out, verdict.Event{Txn: verdict.TxnID(s), Commit: isCommit})
		if !isCommit {
			lower(u + 1)
		}
		for e := p.g.FirstOut(u); e != graph.None; e = p.g.NextOut(e) {
			lower(p.g.Edge(e).To)
		}
		for _, v := range chosen[u] {
			lower(v)
		}
		if isCommit && p.banded != nil {
			committed[s] = true
			pass()
		}
	}
	if len(out) != n {
		panic("constraint: a solved polygraph has a cycle, which can't happen, because the theory keeps it acyclic")
	}
	return out
}
