package constraint

import (
	"github.com/isowatch/isowatch/incremental/budget"
	"github.com/isowatch/isowatch/incremental/graph"
	"github.com/isowatch/isowatch/incremental/reach"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/incremental/version"
)

// known is the known graph and its closure, which is one of banded, chains and bits: banded iff Config.RealTime.
type known struct {
	*level
	g      graph.Graph
	reach  reach.Reach
	banded *reach.Banded
	chains *reach.Chains
	bits   *reach.Bits
	bulk   bool    // edges are collected, and the closure is yet to be made
	wide   int     // about how many steps a changed row of the closure is
	places []int32 // by node: its place in a topological order, after a bulk load
	// zone is, of all edges that are new since the last solution, the least time so that what ended before precedes an
	// end of each; see window.go.
	zone int64
}

func newKnown(cfg Config, tab *version.Table) *known {
	l := &level{cfg: cfg, parts: 1, tab: tab, Budget: budget.Unlimited().Share(), withdrawn: map[readOf]bool{}}
	if cfg.Split {
		l.parts = 2
	}
	p := &known{level: l, bulk: cfg.Bulk && !cfg.RealTime, zone: noZone}
	switch {
	case cfg.RealTime:
		p.banded = reach.NewBanded(&p.g, p.parts, cfg.Skew)
		p.banded.Late, p.banded.Instants = cfg.Late, cfg.Instants
		p.reach = p.banded
	case !cfg.Sessions || cfg.Slots > 0 && manyChains(cfg.Chains, cfg.Slots):
		p.bits = reach.NewBits(&p.g, p.parts)
		p.reach = p.bits
	default:
		p.chains = reach.NewChains(&p.g, p.parts)
		p.reach = p.chains
	}
	return p
}

// Bytes is the memory of the closure, for measurement.
func (p *known) Bytes() int { return p.reach.Bytes() }

// Sprawls tells whether of what reaches the slots from s on so much is not known to by the clock,
// as few transactions have had times for a while, that chains are the smaller closure by far. Cost:
// these slots.
func (p *known) Sprawls(s version.Slot) bool {
	return p.banded != nil && p.banded.Held(s) > rowsWide*(p.g.Nodes()-int(p.start(s)))+rowsFew
}

// rowsWide is how many words the rows of the closure may have on the average: one for each 64 nodes
// that neither times nor what was read has put in order. rowsFew is how many more, so that a short history
// is never too wide.
const (
	rowsWide = 32
	rowsFew  = 1 << 16
)

// add gives the latest slot its nodes; false if it is a base, which nothing precedes.
func (p *known) add(t Txn) bool {
	p.g.Grow(p.tab.Slots() * int(p.parts))
	p.wide = 1 + p.reach.Bytes()/(64*p.g.Nodes())
	switch {
	case t.Base && p.banded != nil:
		p.banded.AddBase(t.First)
		return false
	case p.banded != nil:
		p.banded.Add(t.Start, t.End, t.Timed, t.Timed && !t.Open)
	case p.bits != nil:
		p.bits.Add(p.bulk)
	default:
		if chains := p.chains.Len() + 1; p.bulk || 4*chains*p.g.Nodes() < chainsBytes {
			p.chains.Add(t.Chain, p.bulk)
		} else {
			p.leaveChains()
		}
	}
	return true
}

// manyChains: so few transactions lie on each chain that bits are the smaller closure. Their rows share most blocks:
// they take what chains of 256 transactions would.
func manyChains(chains, slots int) bool { return chains > slots/256+64 }

// chainsBytes is how much the chains of a stream, of which nobody knows how many transactions will come,
// may take: a word for each chain and node. It is what 65,536 transactions of two nodes take in 64 sessions.
const chainsBytes = 32 << 20

// leaveChains goes on with bits, for good.
func (p *known) leaveChains() {
	p.bits = reach.NewBits(&p.g, p.parts)
	for range p.tab.Slots() { // the one at hand among them
		p.bits.Add(true)
	}
	p.bits.Build(p.layers(), nil)
	p.reach, p.chains = p.bits, nil
}

// ends: the edge leads to a transaction that nothing else is known to follow.
func (p *known) ends(e graph.Edge) bool {
	return p.banded != nil && p.parts.Slot(e.From) != p.parts.Slot(e.To) && p.banded.Ends(e.To)
}

// forgotten: the edge leads to what nothing is known to precede.
func (p *known) forgotten(e graph.Edge) bool {
	return p.banded != nil && p.banded.IsBase(p.parts.Slot(e.To))
}

// closes looks for an edge of the order "block a before block b" that would
// close a cycle. Cost: a reachability question per reader of a's tail.
func (p *known) closes(a, b vid) (graph.Edge, bool) {
	tail := p.tab.Tail(a)
	tv := p.tab.At(tail)
	tw, hw := tv.Writer, p.tab.At(b).Writer
	if p.reach.Reaches(p.writing(hw), p.commit(tw)) {
		return graph.Edge{From: p.commit(tw), To: p.writing(hw), Key: tv.Key, Type: verdict.WW}, true
	}
	steps := 0
	defer func() { p.Budget.Use(steps) }()
	for r := range p.tab.Readers(tail) {
		steps++
		if r != hw && p.reach.Reaches(p.commit(hw), p.start(r)) && !p.isWithdrawn(r, tail) {
			return graph.Edge{From: p.start(r), To: p.commit(hw), Key: tv.Key, Type: verdict.RW}, true
		}
	}
	return graph.Edge{}, false
}

// longBefore tells whether a's tail and all who read it precede block b by the
// clock, so that b cannot come first and no edge of the order is news: the common
// case in a stream.
func (p *known) longBefore(a, b vid) bool {
	hw := p.tab.At(b).Writer
	tail := p.tab.At(p.tab.Tail(a))
	if p.tab.First(b) {
		return false
	}
	if latest, ok := tail.Latest(); ok && p.banded.EndsBefore(latest, p.writing(hw)) {
		return true
	}
	if !p.banded.ByClock(p.commit(tail.Writer), p.writing(hw)) {
		return false
	}
	for r := range p.tab.Readers(p.tab.Tail(a)) {
		if r != hw && !p.banded.ByClock(p.start(r), p.commit(hw)) {
			return false
		}
	}
	return true
}

// close makes the closure, given a topological order, unless it is to stop: then nothing is asked of it, as all that
// follows draws from the budget first.
func (p *known) close(topo []node) {
	if p.chains != nil {
		p.chains.Build(topo, p.Budget.Ask)
	} else {
		p.bits.Build(topo, p.Budget.Ask)
	}
}

// priorities say which of several ready nodes comes first: the one that was
// taken in first, as streams come in the order of time; in bulk, where the
// input may be sorted by session, the one in the earlier layer of the graph.
func (p *known) priorities(nodes []node, extra int) []int32 {
	prio := make([]int32, len(nodes)+extra)
	if len(p.places) == p.g.Nodes() {
		for i, n := range nodes {
			prio[i] = p.places[n]
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

// predecessors counts, by node, the edges of the known graph that lead there, its own start's among them.
func (p *known) predecessors() []int32 {
	in := make([]int32, p.g.Nodes())
	for i := range p.g.Len() {
		in[p.g.Edge(graph.EdgeID(i)).To]++
	}
	for v := 1; p.parts == 2 && v < len(in); v += 2 {
		in[v]++
	}
	return in
}

// happen lowers the counts of those that a node precedes, but for edges that are cut, and calls ready with each that
// nothing else precedes any more.
func (p *known) happen(v node, in []int32, cut map[graph.EdgeID]bool, ready func(node)) {
	lower := func(to node) {
		if in[to]--; in[to] == 0 {
			ready(to)
		}
	}
	if p.parts.OnlyStarts(v) {
		lower(v + 1)
	}
	for e := p.g.FirstOut(v); e != graph.None; e = p.g.NextOut(e) {
		if !cut[e] {
			lower(p.g.To(e))
		}
	}
}

// layers is a topological order of the whole graph, first come first served; less of it if there is a cycle.
func (p *known) layers() []node {
	in := p.predecessors()
	return p.extend(roots(in), 0, in, nil)
}

// roots are the nodes that nothing precedes.
func roots(in []int32) []node {
	out := make([]node, 0, len(in))
	for v, n := range in {
		if n == 0 {
			out = append(out, node(v))
		}
	}
	return out
}

// extend lets what is in out from at on happen, and all that can after that; cut are edges that don't count.
func (p *known) extend(out []node, at int, in []int32, cut map[graph.EdgeID]bool) []node {
	for ; at < len(out); at++ {
		p.happen(out[at], in, cut, func(v node) { out = append(out, v) })
	}
	return out
}

// entered notes an edge that is new in the graph.
func (p *known) entered(e graph.Edge) {
	if s, t := p.parts.Slot(e.From), p.parts.Slot(e.To); p.banded != nil && !p.banded.IsBase(s) {
		p.zone = min(p.zone, max(p.banded.Before(s), p.banded.Before(t)))
	}
}
