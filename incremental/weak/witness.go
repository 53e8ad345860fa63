package weak

import (
	"cmp"
	"slices"

	"github.com/isowatch/isowatch/incremental/version"
)

// Kind is the kind of an edge of a witness.
type Kind uint8

// The kinds of edges.
const (
	SO       Kind = iota // session order
	WR                   // read-from
	Inferred             // asked for by the axiom, on account of what By read
	Listed               // a list shows To's elements after From's
	Anti                 // From read the initial version, To wrote a later one
)

// Edge is one step of a witness. Key is meaningless for SO.
type Edge struct {
	From, To Txn
	Kind     Kind
	Key      version.Key
	By       Txn // of Inferred: the reader t3
}

// Violation is a cycle that breaks a level, and those that imply it.
type Violation struct {
	Level Level
	Cycle []Edge
}

// witnesses find what is told of a tangle.
type witnesses struct {
	*records
	rows      *rows
	heads     *heads
	out       []Violation
	staleTold int // in this Tick
	// Visited counts the transactions that searches for witnesses looked at.
	Visited int
	// Witnesses is how many cycles are reported of one that tangles many
	// transactions; 1 unless set.
	Witnesses int
}

// stale: t3 read k's initial version, though t2, which wrote it, is visible.
func (c *witnesses) stale(g *graph, t2, t3 Txn, k version.Key) {
	if c.staleTold >= staleMax {
		return
	}
	way := c.Path(g.level, t2, t3)
	if way == nil {
		return // t2 was visible by a read-from that was cut
	}
	c.staleTold++
	c.out = append(c.out, Violation{g.level, append(way, Edge{From: t3, To: t2, Kind: Anti, Key: k})})
}

// Path is how t2 is visible to t3 at a level, as steps of session order and
// read-from: a shortest way for cc, one step for the others. nil if it is not.
func (c *witnesses) Path(l Level, t2, t3 Txn) []Edge {
	if l > CC {
		return c.guaranteed(l, t2, t3)
	}
	if e, ok := c.step(t2, t3); ok {
		return []Edge{e}
	}
	if l == RA && c.precedesInSession(t2, t3) {
		return []Edge{{From: t2, To: t3, Kind: SO}}
	}
	if l != CC {
		return nil
	}
	lo := c.base.pos[t2]
	came := map[Txn]Txn{t3: none}
	queue := []Txn{t3}
	for len(queue) > 0 {
		t := queue[0]
		queue = queue[1:]
		if t == t2 {
			break
		}
		for _, p := range c.preds(t, nil) {
			if _, seen := came[p]; !seen && c.base.pos[p] >= lo {
				came[p] = t
				queue = append(queue, p)
			}
		}
	}
	if _, ok := came[t2]; !ok {
		return nil
	}
	var out []Edge
	for t := t2; t != t3; t = came[t] {
		e, _ := c.step(t, came[t])
		if n := len(out); n > 0 && e.Kind == SO && out[n-1].Kind == SO {
			out[n-1].To = e.To
			continue
		}
		out = append(out, e)
	}
	return out
}

// step is the base's edge from a to b: a read-from rather than session order.
func (c *records) step(a, b Txn) (Edge, bool) {
	if e, ok := c.readStep(a, b); ok {
		return e, true
	}
	return Edge{From: a, To: b, Kind: SO}, c.nodes.At(b).prev == a
}

// readStep is the read-from from a to b, by the first read that shows it: what b missed
// at read committed it read later.
func (c *records) readStep(a, b Txn) (Edge, bool) {
	n := c.nodes.At(b)
	reads := c.reads.at(n.reads)
	first := uint32(slices.IndexFunc(reads, func(r read) bool { return r.from == a })) // none if there is none
	for at := n.extra; at != none; at = c.extra[at].next {
		if x := c.extra[at]; x.from == a {
			first = min(first, x.at)
		}
	}
	if first == none {
		return Edge{}, false
	}
	return Edge{From: a, To: b, Kind: WR, Key: reads[first].key}, true
}

// precedesInSession tells whether a comes before b in their session.
func (c *records) precedesInSession(a, b Txn) bool {
	x, y := c.nodes.At(a), c.nodes.At(b)
	if y.prev == none || x.open || x.chain == none {
		return false
	}
	p := c.nodes.At(y.prev)
	return p.chain == x.chain && x.pos <= p.pos
}

// Bounds of the search for a witness: edges tried, transactions visited; and how
// many stale reads of initial versions one Tick tells of.
const (
	triesMax  = 256
	visitsMax = 1 << 17
	staleMax  = 1000
)

// witness reports, of a strongly connected component, a cycle with the fewest
// inferred edges (AWDIT 3.4), of those with the fewest steps; or several, each
// through another edge, if so many are wanted. Where the component is so large
// that not all edges can be tried, the best of those tried.
func (c *witnesses) witness(g *graph, comp []Txn, in map[Txn]bool) {
	members := slices.Clone(comp)
	slices.SortFunc(members, func(a, b Txn) int { return cmp.Compare(g.pos[a], g.pos[b]) })
	against := c.against(g, members, in)
	best := c.pairs(against)
	if len(best) < c.Witnesses {
		best = append(best, c.cycles(g, against, in)...)
	}
	if len(best) == 0 { // the search is bounded, what is reported must not be
		best = append(best, c.anyCycle(g, members[0], in))
	}
	for _, way := range best[:min(len(best), c.Witnesses)] {
		c.out = append(c.out, Violation{g.level, c.edgesOf(g, way)})
	}
}

// against are the edges against g's order between members of a component; every
// cycle has one.
func (c *witnesses) against(g *graph, members []Txn, in map[Txn]bool) []wrEdge {
	var out []wrEdge
	for _, v := range members {
		c.scratch = c.within(g, v, 0, c.scratch[:0])
		for _, u := range c.scratch {
			if in[u] && g.pos[u] > g.pos[v] {
				out = append(out, wrEdge{u, v})
			}
		}
	}
	return out
}

// pairs are cycles of two transactions, an inferred edge and one of the base,
// which there are none shorter than; as many as are wanted.
func (c *witnesses) pairs(against []wrEdge) [][]Txn {
	var out [][]Txn
	for _, e := range against {
		if len(out) == c.Witnesses {
			break
		}
		if _, ok := c.step(e.to, e.from); ok {
			out = append(out, []Txn{e.to, e.from})
		}
	}
	return out
}

// cycles are the cheapest cycles, no pairs, through edges against the order,
// cheapest first.
func (c *witnesses) cycles(g *graph, against []wrEdge, in map[Txn]bool) [][]Txn {
	type found struct {
		way  []Txn
		cost int
	}
	var out []found
	budget := visitsMax
	for _, e := range against[:min(len(against), triesMax)] {
		if budget <= 0 || c.halted() {
			break
		}
		if _, pair := c.step(e.to, e.from); pair {
			continue
		}
		if way, cost := c.around(g, e.from, e.to, in, &budget); way != nil {
			out = append(out, found{way, cost})
		}
	}
	slices.SortStableFunc(out, func(a, b found) int { return cmp.Compare(a.cost, b.cost) })
	var ways [][]Txn
	for _, f := range out {
		ways = append(ways, f.way)
	}
	return ways
}

// anyCycle is a cycle in a component, found by walking from predecessor to
// predecessor.
func (c *witnesses) anyCycle(g *graph, t Txn, in map[Txn]bool) []Txn {
	at := map[Txn]int{}
	var walk []Txn
	for {
		if i, ok := at[t]; ok {
			walk = walk[i:]
			slices.Reverse(walk)
			return walk
		}
		at[t] = len(walk)
		walk = append(walk, t)
		c.scratch = c.within(g, t, 0, c.scratch[:0])
		t = c.scratch[slices.IndexFunc(c.scratch, func(p Txn) bool { return in[p] })]
	}
}

// inferredCost is what an inferred edge costs more than one of the base, of which
// a cycle has less.
const inferredCost = 1 << 33

// around is the cheapest way from v to u, and its cost with the edge u → v. It is
// searched backwards from u, cheapest first.
func (c *witnesses) around(g *graph, u, v Txn, in map[Txn]bool, budget *int) ([]Txn, int) {
	type state struct {
		cost int
		next Txn
	}
	best := map[Txn]state{u: {0, none}}
	done := map[Txn]bool{}
	levels := [][]Txn{{u}} // by number of inferred edges
	for k := 0; k < len(levels); k++ {
		queue := levels[k]
		for i := 0; i < len(queue); i++ {
			t := queue[i]
			if done[t] || best[t].cost/inferredCost != k {
				continue
			}
			done[t] = true
			*budget--
			c.Visited++
			c.made += visitSteps
			if t == v {
				var way []Txn
				for x := v; x != none; x = best[x].next {
					way = append(way, x)
				}
				return way, best[v].cost + c.edgeCost(u, v)
			}
			if *budget <= 0 {
				return nil, 0
			}
			relax := func(p Txn, cost int) {
				if !in[p] || done[p] {
					return
				}
				if s, ok := best[p]; ok && s.cost <= best[t].cost+cost {
					return
				}
				best[p] = state{best[t].cost + cost, t}
				if cost == 1 {
					queue = append(queue, p)
					return
				}
				if len(levels) == k+1 {
					levels = append(levels, nil)
				}
				levels[k+1] = append(levels[k+1], p)
			}
			for _, p := range c.preds(t, nil) {
				relax(p, 1)
			}
			if g.head != nil {
				for e := g.head[t]; e != none; e = g.edges[e].next {
					if f := g.edges[e].from; f != none {
						relax(f, inferredCost)
					}
				}
			}
		}
	}
	return nil, 0
}

// edgeCost is the cost of the edge from u to v.
func (c *records) edgeCost(u, v Txn) int {
	if slices.Contains(c.preds(v, nil), u) {
		return 1
	}
	return inferredCost
}

// edgesOf names the edges of a closed walk, steps along a session as one.
func (c *witnesses) edgesOf(g *graph, way []Txn) []Edge {
	var out []Edge
	for i, a := range way {
		b := way[(i+1)%len(way)]
		e, ok := c.step(a, b)
		if !ok {
			e = c.inferred(g, a, b)
		}
		if n := len(out); n > 0 && e.Kind == SO && out[n-1].Kind == SO {
			out[n-1].To = b
			continue
		}
		out = append(out, e)
	}
	if n := len(out); n > 2 && out[0].Kind == SO && out[n-1].Kind == SO {
		out[0].From = out[n-1].From
		out = out[:n-1]
	}
	return out
}

// inferred is the inferred edge from a to b, the first one there was; one that a list
// shows rather than one of the axiom. Where it shows both, the axiom asks for the same
// on account of somebody who saw a's elements and missed nothing.
func (c *witnesses) inferred(g *graph, a, b Txn) Edge {
	out := Edge{From: a, To: b, Kind: Listed}
	for e := g.head[b]; e != none; e = g.edges[e].next {
		x := g.edges[e]
		if x.from != a {
			continue
		}
		if x.by == none || c.inList(x.key, a, b) {
			return Edge{From: a, To: b, Kind: Listed, Key: x.key}
		}
		out.Key, out.By, out.Kind = x.key, x.by, Inferred
	}
	return out
}

// inList tells whether a list of k shows what a appended before what b did.
func (c *records) inList(k version.Key, a, b Txn) bool {
	l := c.lists[k]
	if l == nil {
		return false
	}
	first, shown := l.rank[a]
	second, both := l.rank[b]
	return shown && both && first < second
}

// Order is a commit order that satisfies a level without violations, after the
// last Tick.
func (c *witnesses) Order(l Level) []Txn {
	for _, g := range c.graphs {
		if g.level == l {
			return slices.Clone(g.at)
		}
	}
	return nil
}
