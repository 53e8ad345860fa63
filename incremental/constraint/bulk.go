package constraint

import (
	"math"
	"slices"

	"github.com/bits-and-blooms/bitset"

	"github.com/isowatch/isowatch/incremental/graph"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/incremental/version"
)

// loader takes in a whole history at once.
type loader struct {
	*known
	subjects *subjects
	blocks   *blocks
	reports  *reports
	orders   *orders
	solver   *solver
	topo     []node // from Finish to Blocks, as are heads
	heads    []vid  // of all blocks
}

// Finish ends bulk loading: anti-dependencies of overwritten and of initial
// versions go in, cycles of the known graph are reported and cut, and the closure is built in
// one pass along a topological order, O(edges · chains), unless the history can be run without. Blocks comes next.
func (p *Polygraph) Finish() {
	if !p.bulk {
		return
	}
	for v := range vid(p.tab.Len()) {
		ver := p.tab.At(v)
		if ver.Next == version.None {
			continue
		}
		w := p.tab.At(ver.Next).Writer
		for q := range p.tab.Readers(v) {
			if q != w {
				p.g.Add(graph.Edge{From: p.start(q), To: p.commit(w), Key: ver.Key, Type: verdict.RW, Why: verdict.ByOverwrite})
			}
		}
	}
	for prev, v := range p.tab.Logged() {
		p.orders.logged(prev, v)
	}
	p.loader.heads = p.blockHeads()
	follows := p.loader.updatesInBulk()
	for _, h := range p.loader.heads { // the initial version precedes every block
		if follows.Test(uint(h)) {
			continue
		}
		head := p.tab.At(h)
		init := p.tab.InitialOf(head.Key)
		if init == version.None || p.tab.At(init).Next != version.None {
			continue
		}
		for r := range p.tab.Readers(init) {
			if r != head.Writer {
				p.g.Add(graph.Edge{From: p.start(r), To: p.commit(head.Writer), Key: head.Key, Type: verdict.RW,
					Why: verdict.ByInitial})
			}
		}
	}
	p.loader.topo = p.loader.topological()
	if p.reports.Found > 0 && p.cfg.Last && p.bits != nil && p.g.Nodes() > dearBits {
		p.loader.topo, p.loader.heads, p.bulk = nil, nil, false
		return
	}
	if p.loader.runs() {
		return
	}
	p.close(p.loader.topo)
	if p.loader.survey() {
		return
	}
	p.rounds()
	if len(p.subjects.choices) > 0 {
		p.loader.heads = p.blockHeads()
	}
	p.bulk = false
}

// updatesInBulk puts in, at prefix consistency, the anti-dependencies to those
// who read a version and overwrote it, as far as these are few. It returns the
// versions that the readers of the initial one are known to come before by that.
// Linear in reads and writes, and in the edges.
func (p *loader) updatesInBulk() *bitset.BitSet {
	follows := &bitset.BitSet{}
	if !p.cfg.Prefix {
		return follows
	}
	own := map[keyID]vid{} // what a transaction wrote
	times := map[vid]int{} // how often a version was overwritten, if more than once
	once := &bitset.BitSet{}
	for s := range slot(p.tab.Slots()) {
		reads, writes := p.tab.Reads(s), p.tab.Writes(s)
		if len(reads) == 0 || len(writes) == 0 {
			continue
		}
		clear(own)
		for _, w := range writes {
			own[p.tab.At(w).Key] = w
		}
		for _, v := range reads {
			ver := p.tab.At(v)
			w, updates := own[ver.Key]
			if !updates {
				continue
			}
			if ver.Kind == version.Written {
				follows.Set(uint(w))
			}
			if once.Test(uint(v)) {
				times[v]++
			}
			once.Set(uint(v))
			if ver.Next != version.None || times[v] >= surveyed {
				continue // by the former; relate will see to the rest
			}
			follows.Set(uint(w))
			for q := range p.tab.Readers(v) {
				if q != s {
					p.g.Add(graph.Edge{From: p.start(q), To: p.commit(s), Key: ver.Key, Type: verdict.RW, Why: verdict.ByOverwrite})
				}
			}
		}
	}
	return follows
}

// dearBits is how many nodes make a matrix of bits dear.
const dearBits = 1 << 14

// build makes the closure of the graph as it is. Cycles are reported and cut.
func (p *loader) build() {
	p.topo = p.topological()
	p.close(p.topo)
}

// surveyed is how many blocks of its key a block is compared with in a survey.
const surveyed = 32

// survey puts the orders of blocks that the closure decides in the graph and
// builds the closure anew, before Blocks looks at all pairs: most of the edges
// that those would insert one by one are then implied. Each block is compared
// with the ones just before it in topological order, as far as its place among
// them is clear. What that decides decides more, which is left to Blocks; but where chains are
// many it is done again as long as it brings much: what reaches what follows from versions then,
// more than from sessions, and to insert an edge is dear. It tells whether that let the history be run.
func (p *loader) survey() bool {
	for {
		n := p.surveyOnce()
		if n > 0 && p.runs() {
			return true
		}
		if p.bits == nil || n <= p.g.Nodes()/surveyAgain {
			return false
		}
	}
}

// surveyAgain: a survey is repeated that brought more than an edge for so many nodes. The next
// one brings about a fourth.
const surveyAgain = 8

// surveyOnce is how many edges were put in. If what follows is a cycle all is taken back; Blocks
// will find it and know why.
func (p *loader) surveyOnce() int {
	if p.reports.Found > 0 || p.halted() {
		return 0
	}
	edges, reasons := p.g.Len(), p.reports.forced.Len()
	p.sortByTime(p.heads)
	last := make([]uint32, p.keyBound()) // by key: its last block so far, from 1
	prev := make([]uint32, len(p.heads)) // by block: the one before of its key, from 1
	// below says, by block, which of those before it of its key it is known to follow: bit i stands for the one i+1
	// before it. What precedes one of these follows from its edges.
	below := make([]uint32, len(p.heads))
	for n, h := range p.heads {
		if p.Budget.Use(1); p.Budget.Stopped() || !p.Budget.Roomy() {
			break
		}
		k := p.tab.At(h).Key
		prev[n], last[k] = last[k], uint32(n+1)
		if p.blocks.unread(h) {
			continue
		}
		for i, d := prev[n], 0; i > 0 && d < surveyed; i, d = prev[i-1], d+1 {
			if below[n]>>d&1 == 0 && p.orders.foresee(p.heads[i-1], h) == isBefore {
				below[n] |= 1<<d | below[i-1]<<(d+1)
			}
		}
	}
	topo := p.layers()
	if len(topo) < p.g.Nodes() {
		p.g.Truncate(edges)
		p.reports.forced.Truncate(reasons)
		return 0
	}
	p.topo = topo
	p.close(p.topo)
	return p.g.Len() - edges
}

// keyBound is above the numbers of all keys that have blocks.
func (p *loader) keyBound() int {
	n := 0
	for _, h := range p.heads {
		n = max(n, int(p.tab.At(h).Key)+1)
	}
	return n
}

// sortByTime sorts blocks by the place of their first writer in the topological
// order.
func (p *loader) sortByTime(heads []vid) {
	first := make([]uint32, p.g.Nodes()) // by node: how many blocks begin there, then before it
	for _, h := range heads {
		first[p.commit(p.writer(h))]++
	}
	n := uint32(0)
	for _, v := range p.topo {
		first[v], n = n, n+first[v]
	}
	for _, h := range slices.Clone(heads) { // by number where places are the same
		v := p.commit(p.writer(h))
		heads[first[v]] = h
		first[v]++
	}
}

// Blocks takes in all blocks of a bulk load, those that begin early first. It
// follows Finish and does nothing where nothing was loaded in bulk.
func (p *Polygraph) Blocks() {
	if p.loader.topo == nil {
		return
	}
	heads := p.loader.heads
	p.loader.sortByTime(heads)
	p.places = make([]int32, p.g.Nodes())
	for i, n := range p.loader.topo {
		p.places[n] = int32(i)
	}
	p.loader.topo, p.loader.heads = nil, nil
	for i, h := range heads {
		if p.halted() {
			p.left = len(heads) - i
			return
		}
		p.Block(h)
	}
	p.settleChoices()
}

// settleChoices looks at all open choices once, after which they watch.
func (p *Polygraph) settleChoices() {
	for ci := range p.subjects.choices {
		p.subjects.wakeChoice(choiceID(ci))
	}
	p.propagate()
}

// topological orders all nodes, oldest layer first. A cycle is reported and one
// of its edges left out, until there is none.
func (p *loader) topological() []node {
	n := p.g.Nodes()
	in := p.predecessors()
	topo := roots(in)
	var cut map[graph.EdgeID]bool
	leaveOut := func(e graph.EdgeID) {
		cut[e] = true
		p.withdraw(p.g.Edge(e))
		to := p.g.To(e)
		if in[to]--; in[to] == 0 {
			topo = append(topo, to)
		}
	}
	var search *cycleSearch
	next, cycles := 0, 0
	for at := 0; ; {
		topo = p.extend(topo, at, in, cut)
		if at = len(topo); at == n {
			break
		}
		if cut == nil {
			cut = map[graph.EdgeID]bool{}
			search = &cycleSearch{seen: make([]uint32, n), budget: shorterBudget, first: firstBudget}
		}
		for in[next] <= 0 {
			next++
		}
		if cycles < cyclesCut || search.first > 0 {
			if p.reports.more() {
				cycles++
				leaveOut(p.cutCycle(node(next), in, cut, search))
				continue
			}
		} else if p.reports.MaxFound == 0 {
			p.reports.Unexplained++
		}
		// Enough is reported. All that holds up one node is left out: the first of
		// a session that waits.
		v := node(next)
		for {
			u, waits := p.waitsInSession(v, in, cut)
			if !waits {
				break
			}
			v = u
		}
		for e := p.g.FirstIn(v); e != graph.None; e = p.g.NextIn(e) {
			if ed := p.g.Edge(e); !cut[e] && ed.Type != verdict.SO && in[ed.From] > 0 {
				leaveOut(e)
			}
		}
	}
	if cut != nil {
		old := p.g
		p.g = graph.Graph{}
		p.g.Grow(n)
		for i := range old.Len() {
			if !cut[graph.EdgeID(i)] {
				p.g.Add(old.Edge(graph.EdgeID(i)))
			}
		}
	}
	return topo
}

// withdraw gives up the read that a left out anti-dependency comes from, where
// the orders of blocks would bring it again.
func (p *loader) withdraw(e graph.Edge) {
	if !p.cfg.Prefix || e.Type != verdict.RW {
		return
	}
	r := p.parts.Slot(e.From)
	for _, v := range p.tab.Reads(r) {
		if p.tab.At(v).Key == e.Key {
			p.withdrawn[readOf{r, v}] = true
		}
	}
}

// cyclesCut is how many cycles of the known graph are found one by one, whatever that
// costs; more are as long as no more than firstBudget states have been looked at for them.
const (
	cyclesCut   = 64
	firstBudget = 1 << 20
)

// waitsInSession is the predecessor of v by session order, or its start, if
// that still waits.
func (p *loader) waitsInSession(v node, in []int32, cut map[graph.EdgeID]bool) (node, bool) {
	if p.parts.OnlyCommits(v) && in[v-1] > 0 {
		return v - 1, true
	}
	for e := p.g.FirstIn(v); e != graph.None; e = p.g.NextIn(e) {
		if ed := p.g.Edge(e); ed.Type == verdict.SO && in[ed.From] > 0 && !cut[e] {
			return ed.From, true
		}
	}
	return 0, false
}

// cutCycle finds a cycle behind n among the nodes that still wait (in > 0),
// reports it, as short as the search makes it, and returns the edge of it to leave
// out: a read's, not a session's.
func (p *loader) cutCycle(n node, in []int32, cut map[graph.EdgeID]bool, search *cycleSearch) graph.EdgeID {
	search.stamp++
	for search.seen[n] != search.stamp {
		search.seen[n] = search.stamp
		n = p.waitsFor(n, in, cut)
	}
	walk := p.shortest(n, in, cut, search)
	p.reports.found = append(p.reports.found, Violation{Cycle: edges(walk), Because: map[int][]graph.Edge{}})
	best := walk[0]
	for _, s := range walk {
		if rank(s.Type) > rank(best.Type) {
			best = s
		}
	}
	return best.id
}

// rank prefers anti-dependencies to read-froms to version orders.
func rank(t verdict.EdgeType) int {
	switch t {
	case verdict.RW:
		return 3
	case verdict.WR:
		return 2
	case verdict.WW: // by a list
		return 1
	}
	return 0 // session order is never left out: chains rely on it
}

// waitsFor returns a predecessor of n that still waits itself.
func (p *loader) waitsFor(n node, in []int32, cut map[graph.EdgeID]bool) node {
	if p.parts.OnlyCommits(n) && in[n-1] > 0 {
		return n - 1
	}
	for e := p.g.FirstIn(n); e != graph.None; e = p.g.NextIn(e) {
		if u := p.g.Edge(e).From; in[u] > 0 && !cut[e] {
			return u
		}
	}
	panic("constraint: a node waits for nothing, which can't happen, because its count of predecessors is above zero")
}

// cycleSearch is room for the search of cycles, by node; what is marked with
// stamp is of the search at hand.
type cycleSearch struct {
	seen   []uint32
	stamp  uint32
	budget int // states that may still be looked at to make cycles shorter
	first  int // and to find them
}

// shorterBudget bounds the search for shorter cycles than those met first, in all.
const shorterBudget = 1 << 18

// shortest is a shortest cycle through n among the nodes that wait, or a shorter one
// through another node of it, of which none has a shorter one, as far as the budget
// goes.
func (p *loader) shortest(n node, in []int32, cut map[graph.EdgeID]bool, search *cycleSearch) []step {
	waits := func(u node) bool { return in[u] > 0 }
	stays := func(e graph.EdgeID) bool { return !cut[e] }
	left := math.MaxInt
	walk := p.reports.around(n, waits, stays, 0, &left)
	search.first -= math.MaxInt - left
	if walk == nil {
		panic("constraint: no cycle through a node found on one, which can't happen, because its predecessors wait")
	}
	most := length(walk)
	for i := 0; i < len(walk) && most > 2 && search.budget > 0; i++ {
		if shorter := p.reports.around(walk[i].From, waits, stays, most, &search.budget); shorter != nil {
			walk, i, most = shorter, -1, length(shorter)
		}
	}
	return walk
}
