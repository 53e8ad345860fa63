package weak

import (
	"slices"

	"github.com/isowatch/isowatch/incremental/version"
)

// graph is a level's commit order as far as it is known: the base, which all
// levels share, and the edges inferred for the level, by their end.
//
// Invariant between Ticks: at is a topological order of base and edges, but for
// edges that were cut when a cycle was reported; pos is its inverse.
type graph struct {
	level  Level
	pos    []uint32 // by transaction; unplaced before it is placed
	at     []Txn    // by place
	head   []uint32 // by transaction: the latest inferred edge to it, or none
	edges  []edge
	back   []wrEdge // edges against the order, since the last Tick
	search search
}

// edge is inferred: from before the transaction whose list it is in, as by read
// key, or because a list shows it (by is none).
type edge struct {
	from, by Txn
	key      version.Key
	next     uint32
}

const (
	unplaced = none
	onStack  = none - 1
)

// place appends the new transactions to the orders, each after its predecessors
// in the base, and otherwise as they came. It returns the first place used.
func (c *Checker) place() uint32 {
	g, n := c.base, Txn(c.nodes.Len())
	first := uint32(len(g.at))
	for Txn(len(g.pos)) < n {
		g.pos = append(g.pos, unplaced)
	}
	s := &g.search
	for t := c.placed; t < n; t++ {
		if g.pos[t] == unplaced {
			c.placeAfterPreds(t, s)
		}
	}
	for _, o := range c.graphs[1:] {
		for Txn(len(o.pos)) < n {
			o.pos = append(o.pos, unplaced)
			o.head = append(o.head, none)
		}
		for _, t := range g.at[first:] {
			o.pos[t] = uint32(len(o.at))
			o.at = append(o.at, t)
		}
	}
	return first
}

// placeAfterPreds places t and before it, depth first, what it follows. Where
// that is what it is on the way from, the base has a cycle; the edge is left for
// mend to see.
func (c *Checker) placeAfterPreds(t Txn, s *search) {
	g := c.base
	s.enter(t, c.preds)
	g.pos[t] = onStack
	for len(s.frames) > 0 {
		f := &s.frames[len(s.frames)-1]
		if f.next < len(s.stack) {
			p := s.stack[len(s.stack)-1]
			s.stack = s.stack[:len(s.stack)-1]
			switch g.pos[p] {
			case unplaced:
				s.enter(p, c.preds)
				g.pos[p] = onStack
			case onStack:
				g.back = append(g.back, wrEdge{p, f.t})
			}
			continue
		}
		g.pos[f.t] = uint32(len(g.at))
		g.at = append(g.at, f.t)
		s.frames = s.frames[:len(s.frames)-1]
	}
}

// search is a depth-first search over predecessors, with its own stacks. stack
// holds the predecessors still to be looked at; those above next are the top
// frame's.
type search struct {
	frames []frame
	stack  []Txn
	open   []Txn // of components not complete
	sorted []Txn
}

type frame struct {
	t    Txn
	next int // where in stack its predecessors begin
	low  uint32
}

// enter begins with t.
func (s *search) enter(t Txn, preds func(Txn, []Txn) []Txn) {
	s.frames = append(s.frames, frame{t: t, next: len(s.stack)})
	n := len(s.stack)
	s.stack = preds(t, s.stack)
	slices.Reverse(s.stack[n:])
}

// mendBase brings the base in order again and reports its cycles. It returns
// the first place that changed, or none.
func (c *Checker) mendBase() uint32 {
	first := uint32(none)
	for _, w := range c.late {
		if w.from < Initial && c.base.pos[w.from] > c.base.pos[w.to] {
			c.base.back = append(c.base.back, w)
		}
		if w.from < Initial {
			for _, g := range c.graphs[1:] {
				if g.pos[w.from] > g.pos[w.to] {
					g.back = append(g.back, w)
				}
			}
		}
	}
	// An edge against the base's order that came with the transactions is one
	// against the others' too, which have the same order there.
	for _, g := range c.graphs[1:] {
		g.back = append(g.back, c.base.back...)
	}
	first = min(first, c.mend(c.base))
	for _, w := range c.late {
		first = min(first, c.base.pos[w.to])
	}
	return first
}

// mend sorts again the stretch of g's order that the edges against it span, and
// reports the cycles in it: a stretch has one only if such an edge is on it. It
// returns the first place of the stretch, or none. Linear in the stretch and its
// edges (Tarjan's algorithm over predecessors, which yields the components in
// topological order).
func (c *Checker) mend(g *graph) uint32 {
	lo, hi := uint32(none), uint32(0)
	for _, b := range g.back {
		if g.pos[b.from] >= g.pos[b.to] {
			lo, hi = min(lo, g.pos[b.to]), max(hi, g.pos[b.from])
		}
	}
	if lo == none {
		g.back = g.back[:0]
		return none
	}
	c.made += mendSteps * int(hi-lo)
	s := &g.search
	s.sorted = s.sorted[:0]
	visits := c.marks.reset(int(hi-lo) + 1)
	for _, b := range g.back {
		if g.pos[b.from] >= g.pos[b.to] && visits[g.pos[b.from]-lo] == 0 {
			c.components(g, b.from, lo, visits)
		}
	}
	sorted := s.sorted
	for p := lo; p <= hi; p++ {
		if visits[p-lo] == 0 {
			sorted = append(sorted, g.at[p])
		}
	}
	for i, t := range sorted {
		g.at[lo+uint32(i)] = t
		g.pos[t] = lo + uint32(i)
	}
	s.sorted = sorted[:0]
	g.back = g.back[:0]
	return lo
}

// marks is a scratch array of numbers, zero at the start of each use.
type marks struct{ num []uint32 }

func (m *marks) reset(n int) []uint32 {
	if len(m.num) < n {
		m.num = make([]uint32, n+n/4)
		return m.num[:n]
	}
	clear(m.num[:n])
	return m.num[:n]
}

// within appends t's predecessors in g that lie at lo or later.
func (c *records) within(g *graph, t Txn, lo uint32, to []Txn) []Txn {
	n := len(to)
	to = c.preds(t, to)
	if g.head != nil {
		for e := g.head[t]; e != none; e = g.edges[e].next {
			if g.edges[e].from != none {
				to = append(to, g.edges[e].from)
			}
		}
	}
	kept := to[:n]
	for _, p := range to[n:] {
		if g.pos[p] >= lo {
			kept = append(kept, p)
		}
	}
	return kept
}

const settled = 1 << 31 // visits: the component is complete

// components visits what precedes t in the stretch, and appends it to
// search.sorted component by component.
func (c *Checker) components(g *graph, t Txn, lo uint32, visits []uint32) {
	s := &g.search
	preds := func(t Txn, to []Txn) []Txn { return c.within(g, t, lo, to) }
	counter := uint32(0)
	visit := func(t Txn) {
		s.enter(t, preds)
		counter++
		visits[g.pos[t]-lo] = counter
		s.frames[len(s.frames)-1].low = counter
		s.open = append(s.open, t)
	}
	visit(t)
	for len(s.frames) > 0 {
		f := &s.frames[len(s.frames)-1]
		if f.next < len(s.stack) {
			p := s.stack[len(s.stack)-1]
			s.stack = s.stack[:len(s.stack)-1]
			switch v := visits[g.pos[p]-lo]; {
			case v == 0:
				visit(p)
			case v&settled == 0:
				f.low = min(f.low, v)
			}
			continue
		}
		done := *f
		s.frames = s.frames[:len(s.frames)-1]
		if len(s.frames) > 0 {
			up := &s.frames[len(s.frames)-1]
			up.low = min(up.low, done.low)
		}
		if done.low != visits[g.pos[done.t]-lo] {
			continue
		}
		at := len(s.open) - 1
		for s.open[at] != done.t {
			at--
		}
		comp := s.open[at:]
		for _, x := range comp {
			visits[g.pos[x]-lo] |= settled
		}
		if len(comp) > 1 {
			c.tangled(g, comp)
		}
		s.sorted = append(s.sorted, comp...)
		s.open = s.open[:at]
	}
}

// tangled reports a cycle among transactions that are a strongly connected
// component, and cuts edges so that those left run forward: inferred ones, or in
// the base read-froms. comp is put in that order.
func (c *Checker) tangled(g *graph, comp []Txn) {
	in := make(map[Txn]bool, len(comp))
	for _, t := range comp {
		in[t] = true
	}
	c.witnesses.witness(g, comp, in)
	if g == c.base { // slots keep session order
		slices.Sort(comp)
		for _, t := range comp {
			c.cutReads(t, func(from Txn) bool { return in[from] && from > t })
		}
		return
	}
	slices.SortFunc(comp, func(a, b Txn) int { return int(c.base.pos[a]) - int(c.base.pos[b]) })
	for _, t := range comp {
		for e := g.head[t]; e != none; e = g.edges[e].next {
			if f := g.edges[e].from; f != none && in[f] && c.base.pos[f] > c.base.pos[t] {
				g.edges[e].from = none
			}
		}
	}
}

// cutReads forgets the writers of t's reads that f names.
func (c *Checker) cutReads(t Txn, f func(from Txn) bool) {
	n := c.nodes.At(t)
	rs := c.reads.at(n.reads)
	for i := range rs {
		if rs[i].from < Initial && f(rs[i].from) {
			rs[i].from = Unseen
			c.cuts = append(c.cuts, t)
		}
	}
	for at := n.extra; at != none; at = c.extra[at].next {
		if x := &c.extra[at]; x.from < Initial && f(x.from) {
			x.from = Unseen
			c.cuts = append(c.cuts, t)
		}
	}
}
