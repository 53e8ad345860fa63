// Package constraint keeps the polygraph of one level: the known graph, its
// closure, the pairs of version blocks whose order is not known yet, and the
// reads of which it is not known which of several versions they saw.
//
//	           Add, Read, Block, Overwrite                 Solve
//	engine ───────────────────────────────▶ known graph ◀─────────── open constraints
//	                                           │  ▲                        ▲
//	                             newly reachable│  │forced edges            │ what neither
//	                                   pairs    ▼  │                        │ order closes
//	                                         relate(A, B) ──────────────────┘
//
// For blocks A and B of one key either A comes before B, which puts the edges
//
//	WW  writer of A's tail      → writer of B's head
//	RW  readers of A's tail     → writer of B's head
//
// into the graph, or B before A. relate looks whether one of the two would
// close a cycle; then the other is forced, and its edges go in. If neither
// would, the pair becomes a constraint, looked at again whenever something new
// reaches one of the nodes that matter to it (pruning, Cobra's and Vbox's,
// driven by newly reachable pairs instead of passes). What is left at the end
// goes to the solver (solve.go). Of versions that nobody reads none does: see
// Polygraph.harmless.
//
// At prefix consistency (Config.Prefix) a version need not be seen by who
// overwrites it: WW leads to the commit of the next writer, not to its start, and
// a read-modify-write follows what it read, but not at once. So a block is one
// version, or the versions that a list shows one after the other.
//
// A read with several possible versions is a choice (choice.go), which is
// looked at again in the same way: a version that would close a cycle falls, and
// the last one left was read. Where a transaction's outcome is unknown, it is in
// the history only if somebody in it read from it; till then its own choices are
// guarded.
//
//	file          what
//	polygraph.go  transactions, edges, what is woken by what
//	order.go      the order of blocks
//	choice.go     reads of several versions, transactions of unknown outcome
//	bulk.go       a whole history at once: a run, rounds, surveys, then all blocks
//	encode.go     what is open, as variables and clauses
//	solve.go      solving it; what an Unsat rests on
//	window.go     solving, of a stream, only what is new
//	topology.go   an order of the contracted graph, to search along
//	explain.go    cycles and why their edges hold
//	proof.go      an order of transactions that proves a solution
//
// Non-obvious:
//   - The graph never has a cycle: an edge that would close one is reported as
//     a violation and left out, which is how the monitor goes on.
//   - Only the last reader of each session is kept: an earlier one's
//     anti-dependency follows by session order.
//   - An edge that is implied (its ends are connected already) is not stored,
//     unless it is a plain fact of the records, which explanations want.
package constraint

import (
	"slices"

	"github.com/bits-and-blooms/bitset"

	"github.com/isowatch/isowatch/incremental/acyclic"
	"github.com/isowatch/isowatch/incremental/budget"
	"github.com/isowatch/isowatch/incremental/graph"
	"github.com/isowatch/isowatch/incremental/reach"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/incremental/version"
)

type (
	node  = graph.Node
	slot  = version.Slot
	vid   = version.ID
	keyID = version.Key
)

const none = graph.None

// Config says which polygraph to build.
type Config struct {
	// Split: two nodes per transaction, for SI; otherwise one, for SER.
	Split bool
	// Prefix: WW leads from commit to commit, for prefix consistency; with Split.
	Prefix bool
	// RealTime puts real-time order in the graph (the banded closure).
	RealTime bool
	// Bulk: edges are collected until Finish, which is faster when the whole
	// history is there and has no times.
	Bulk bool
	// Last: nothing follows the bulk load, so that once the known graph has a
	// cycle the rest need not be looked at where that is dear.
	Last bool
	// RunFirst: the bulk load is all there is, to the last list, so that it may be run before it is closed.
	RunFirst bool
	Skew     int64 // nanoseconds
	// Late: what ended before others that came before it precedes what those precede. Else
	// it is taken to have ended when it came. With RealTime.
	Late bool
	// Instants: times are those of starts and commits themselves, by one clock. With RealTime.
	Instants bool
	// Sessions: transactions of a session are ordered.
	Sessions bool
	// Chains is how many sessions to expect, Slots how many transactions, if
	// known; see manyChains.
	Chains, Slots int
	// PairsMax bounds the pairs of blocks that are made, of a complete history; see run.go. 0: pairsMax.
	PairsMax int
}

// Violation is a cycle or an unsatisfiable set of constraints, in nodes.
type Violation struct {
	// Cycle: the violation is this closed walk of edges.
	Cycle []graph.Edge
	// Cases: any choice of the open orders closes one of these cycles.
	Cases [][]graph.Edge
	// Rest are further edges the proof rests on: what forced the edges above.
	Rest []graph.Edge
	// Reads are ambiguous reads that the proof needs, with all candidates.
	Reads []Read
	// Because explains forced edges of Cycle, by index.
	Because map[int][]graph.Edge
	// Others are, for read-from edges that were left when all other candidates had
	// fallen, why these have, one each; where a candidate's reason could not be shown, or
	// there are too many, none.
	Others map[graph.Edge][]Other
	// Assumed: the proof rests on times.
	Assumed bool
	// Whole: Rest may not be all; only the whole history is known to suffice.
	Whole bool
}

// Other is why a read is not of one of its candidates.
type Other struct {
	// Cycle is what it would close, beginning with the dependency that it would make.
	Cycle []graph.Edge
	// Order is, if that is an anti-dependency on a later writer of the key, the cycle
	// that the opposite order of the candidate and of that writer would close: its first
	// edge ends at the candidate. nil otherwise.
	Order []graph.Edge
}

// Read names a read.
type Read struct {
	Reader version.Slot
	Key    version.Key
}

// pairID numbers pairs, choiceID choices, in the order in which they are made.
type (
	pairID   uint32
	choiceID uint32
)

// open constraint: the blocks that a and b head, on one key. It lies in the lists of
// the pairs of a and of b.
type pair struct {
	a, b         vid
	next, prev   [2]pairID // in a's list and b's; the first's prev is the last
	top          int64     // if settled: see scope
	alive, dirty bool
	ab           bool // a came first in the solution that had the pair last
	tried        bool // there was one
	settled      bool // it was part of the last solution; see window.go
	moved        bool // and means more now
}

// blockRef is a block in the list of its key.
type blockRef struct {
	head vid
	// low: the block is known to come after the first low blocks of the list; then
	// whoever comes after it comes after those as well.
	low uint32
}

// Polygraph is the polygraph of one level. The version table is shared between
// levels and is changed by the engine before the polygraph is told.
type Polygraph struct {
	cfg   Config
	parts graph.Parts
	tab   *version.Table

	g      graph.Graph
	reach  reach.Reach
	banded *reach.Banded // set iff cfg.RealTime
	chains *reach.Chains
	bits   *reach.Bits
	slots  int
	walked map[uint64]came // empty; see walker
	bulk   bool

	lists   [][]blockRef // the blocks of a key, from 1; 0 is none
	listAt  []uint32     // by key: which of lists
	pairs   []pair
	open    int      // pairs alive
	pairsOf []pairID // by the version that heads a block: its first pair
	// watch lists: the pairs to look at again when something new reaches a node
	firstWatch    []uint32 // by node, into watches
	watches       []watch
	dirty         []pairID
	choices       []choice
	openChoices   int
	candidates    int               // of all that are open
	choiceOf      map[Read]choiceID // by reader and key
	dirtyChoices  []choiceID
	maybe         map[slot]maybe      // transactions of unknown outcome; in, where missing
	guardedBy     map[slot][]choiceID // the choices of uncertain transactions
	exclusive     map[slot][]slot     // uncertain transactions of which one at most took effect
	byLine        [][]writersOnLine   // by key, if tracked: its writers
	tracked       []bool
	candidate     bitset.BitSet // versions that a read that is open was found to may be of
	busy          bitset.BitSet // keys with a block that is not idle, or was read
	reads         bitset.BitSet // transactions that read something, where that matters; see idle
	putsOff       bool          // pairs of blind writes by transactions that read are made once a run gets stuck
	isPutOff      bool          // there are such
	scratch       []slot
	contracted    [][2]uint32   // of the last problem; see problem.fixed
	arcs          []acyclic.Arc // the same
	hopeless      []choiceID    // choices without a candidate, to be explained
	memory        memory
	window        window
	implicit      int  // pairs that were not made, as there are too many
	left          int  // blocks, orders, reads and edges that were not looked at, as the budget had ended
	bytes         int  // what Budget was told that is held
	byElimination bool // a candidate was taken: blocks may rest on it

	given     map[[2]vid]bool // pairs given up after a violation
	withdrawn map[readOf]bool // reads given up after a violation
	forced    []forced        // ascending by edge

	found []Violation
	// MaxFound bounds the violations that are explained; 0: no bound.
	MaxFound int
	Found    int
	// Unexplained counts the cycles that were not looked for, as LookMax steps had been taken for
	// those before; looked are these edges. 0: lookMax.
	Unexplained, looked int
	LookMax             int
	Stats               verdict.Stats
	topo                []node  // from Finish to Blocks, as are heads
	places              []int32 // by node: its place in topo, after a bulk load
	heads               []vid
	solved              solution
	repeated            int
	// Budget is what all work is drawn from. When it has ended what is open stays so, and
	// nothing is ordered any more; what is certain goes in as long as there is enough for
	// that. New gives one without an end.
	Budget *budget.Share
	wide   int // about how many steps a changed row of the closure is
}

// watch lets item, a pair or a choice, be looked at again when something new
// reaches node.
type watch struct {
	item uint32 // a pairID, or with itemChoice a choiceID
	node node
	next uint32
}

// readOf is a read that is known to be of v.
type readOf struct {
	reader slot
	v      vid
}

// forced remembers why an edge was forced: the edge of the opposite order that
// would have closed a cycle.
type forced struct {
	edge     graph.EdgeID
	opposite graph.Edge
}

// tooMany: no more pairs are made, and the history will be run: they are many and it is complete or has no times, or
// there is no room for more.
func (p *Polygraph) tooMany() bool {
	many := len(p.pairs) >= p.cfg.PairsMax
	if !p.cfg.Last {
		return p.banded == nil && (many || !p.Budget.Roomy())
	}
	return p.places != nil && many
}

// pairBytes is what an open pair takes with its watches, and while its order is searched for, candidateBytes what a
// candidate of an open choice does, and forcedBytes a forced edge, with why it is.
const pairBytes, candidateBytes, forcedBytes = 512, 64, 64

// hold tells the budget what the closure, the open pairs, the open choices and the forced edges take now.
func (p *Polygraph) hold() {
	now := p.reach.Bytes() + p.open*pairBytes + p.candidates*candidateBytes + len(p.forced)*forcedBytes
	p.Budget.Hold(now - p.bytes)
	p.bytes = now
}

// Drop gives back what the polygraph holds, which must not be used any more.
func (p *Polygraph) Drop() { p.Budget.Leave() }

// New makes an empty polygraph over the table.
func New(cfg Config, tab *version.Table) *Polygraph {
	p := &Polygraph{cfg: cfg, parts: 1, tab: tab, bulk: cfg.Bulk && !cfg.RealTime, Budget: budget.Unlimited().Share(),
		window: window{zone: noZone}, given: map[[2]vid]bool{}, withdrawn: map[readOf]bool{}}
	if cfg.Split {
		p.parts = 2
	}
	if cfg.PairsMax == 0 {
		p.cfg.PairsMax = pairsMax
	}
	p.putsOff = cfg.Split && !cfg.Prefix && !cfg.RealTime && !cfg.Last && !p.bulk
	switch {
	case cfg.RealTime:
		p.banded = reach.NewBanded(&p.g, p.parts, cfg.Skew)
		p.banded.Late, p.banded.Instants = cfg.Late, cfg.Instants
		p.banded.Heeds = func(n node) bool { return p.firstWatch[n] != none }
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

// Expect makes room for n transactions.
func (p *Polygraph) Expect(n int) {
	nodes := n * int(p.parts)
	p.g.Room(nodes)
	p.firstWatch = slices.Grow(p.firstWatch, nodes)
	if p.banded != nil {
		p.banded.Room(n)
	}
}

// Reuse takes the memory of old, a polygraph that must not be used any more, for p,
// which is empty.
func (p *Polygraph) Reuse(old *Polygraph) {
	p.g = old.g.Spare()
	p.firstWatch, p.watches, p.pairs = old.firstWatch[:0], old.watches[:0], old.pairs[:0]
	p.contracted, p.arcs = old.contracted, old.arcs
	p.dirty, p.dirtyChoices = old.dirty[:0], old.dirtyChoices[:0]
	p.listAt, p.pairsOf = old.listAt[:0], old.pairsOf[:0]
	if len(old.lists) > 0 {
		p.lists = old.lists[:1]
	}
	if p.banded != nil && old.banded != nil {
		p.banded.Reuse(old.banded)
	}
}

func (p *Polygraph) start(s slot) node  { return p.parts.Start(s) }
func (p *Polygraph) commit(s slot) node { return p.parts.Commit(s) }

// writing is the node of s that version orders lead to: where it must know the
// version before its own, which is at its start, or only follow it.
func (p *Polygraph) writing(s slot) node {
	if p.cfg.Prefix {
		return p.commit(s)
	}
	return p.start(s)
}

// Parts is how many nodes a transaction has.
func (p *Polygraph) Parts() graph.Parts { return p.parts }

// Renamed is the violation with other numbers of transactions, each of which has so
// many nodes.
func (v Violation) Renamed(name func(version.Slot) version.Slot, parts graph.Parts) Violation {
	edge := func(e graph.Edge) graph.Edge {
		e.From = parts.Start(name(parts.Slot(e.From))) + e.From%graph.Node(parts)
		e.To = parts.Start(name(parts.Slot(e.To))) + e.To%graph.Node(parts)
		return e
	}
	walk := func(es []graph.Edge) []graph.Edge {
		if es == nil {
			return nil
		}
		out := make([]graph.Edge, len(es))
		for i, e := range es {
			out[i] = edge(e)
		}
		return out
	}
	v.Cycle, v.Rest = walk(v.Cycle), walk(v.Rest)
	cases, because := make([][]graph.Edge, len(v.Cases)), make(map[int][]graph.Edge, len(v.Because))
	for i, es := range v.Cases {
		cases[i] = walk(es)
	}
	for i, es := range v.Because {
		because[i] = walk(es)
	}
	others := make(map[graph.Edge][]Other, len(v.Others))
	for e, os := range v.Others {
		for _, o := range os {
			others[edge(e)] = append(others[edge(e)], Other{Cycle: walk(o.Cycle), Order: walk(o.Order)})
		}
	}
	v.Cases, v.Because, v.Others = cases, because, others
	v.Reads = slices.Clone(v.Reads)
	for i := range v.Reads {
		v.Reads[i].Reader = name(v.Reads[i].Reader)
	}
	return v
}

// SlotOf is the transaction of a node.
func (p *Polygraph) SlotOf(n graph.Node) version.Slot { return p.parts.Slot(n) }

// Bytes is the memory of the closure, for measurement.
func (p *Polygraph) Bytes() int { return p.reach.Bytes() }

// Sprawls tells whether of what reaches the slots from s on so much is not known to by the clock,
// as few transactions have had times for a while, that chains are the smaller closure by far. Cost:
// these slots.
func (p *Polygraph) Sprawls(s version.Slot) bool {
	return p.banded != nil && p.banded.Held(s) > rowsWide*(p.g.Nodes()-int(p.start(s)))+rowsFew
}

// rowsWide is how many words the rows of the closure may have on the average: one for each 64 nodes
// that neither times nor what was read has put in order. rowsFew is how many more, so that a short history
// is never too wide.
const (
	rowsWide = 32
	rowsFew  = 1 << 16
)

// Txn is what the polygraph is told of a transaction.
type Txn struct {
	Chain      reach.Chain // the chain it lies on, of which Prev is the last: its session; or reach.Alone
	Prev       slot        // its predecessor in its session, or version.None
	Start, End int64       // nanoseconds, if timed
	Timed      bool
	Open       bool // its outcome is unknown: it may have taken effect after End
	// Uncertain: with Open, it is in the history only if a transaction of it read from it. Its reads are given to
	// Ambiguous, guarded.
	Uncertain bool
	// Base: it ended before the first transaction that is not one, and comes late.
	// It precedes, with real time, what that one precedes by the clock; what would
	// precede it is forgotten. Without RealTime nothing orders it.
	Base  bool
	First slot // of Base: that first transaction, or version.None if the base has no known end
}

// Add appends the transaction of the next slot.
func (p *Polygraph) Add(t Txn) {
	s := slot(p.slots)
	p.slots++
	if t.Uncertain {
		if p.maybe == nil {
			p.maybe = map[slot]maybe{}
		}
		p.maybe[s] = mayBeIn
	}
	p.g.Grow(p.slots * int(p.parts))
	for len(p.firstWatch) < p.g.Nodes() {
		p.firstWatch = append(p.firstWatch, none)
	}
	p.wide = 1 + p.reach.Bytes()/(64*p.g.Nodes())
	switch {
	case t.Base && p.banded != nil:
		p.banded.AddBase(t.First)
		return
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
	p.hold()
	if p.cfg.Sessions && t.Prev != version.None {
		e := graph.Edge{From: p.commit(t.Prev), To: p.start(s), Key: none, Type: verdict.SO, Why: verdict.BySession}
		if p.chains != nil && t.Chain != reach.Alone {
			p.g.Add(e) // part of the chain
		} else {
			p.addEdge(e, true)
		}
	}
}

// manyChains: so few transactions lie on each chain that bits are the smaller closure. Their rows share most blocks:
// they take what chains of 256 transactions would.
func manyChains(chains, slots int) bool { return chains > slots/256+64 }

// chainsBytes is how much the chains of a stream, of which nobody knows how many transactions will come,
// may take: a word for each chain and node. It is what 65,536 transactions of two nodes take in 64 sessions.
const chainsBytes = 32 << 20

// leaveChains goes on with bits, for good.
func (p *Polygraph) leaveChains() {
	p.bits = reach.NewBits(&p.g, p.parts)
	for range p.slots { // the one at hand among them
		p.bits.Add(true)
	}
	p.bits.Build(p.layers(), nil)
	p.reach, p.chains = p.bits, nil
}

// halted draws a step, and tells whether what is open is to be left so.
func (p *Polygraph) halted() bool { return !p.Budget.Take(1) }

// GaveUp tells whether something was not looked at as the budget had ended: then nothing is
// known to be satisfied.
func (p *Polygraph) GaveUp() bool { return p.left > 0 }

// addEdge puts an edge in the graph. An edge that is implied is stored only if
// it is a fact; one that would close a cycle is reported. It tells whether the
// order that the edge stands for holds now.
func (p *Polygraph) addEdge(e graph.Edge, fact bool) bool {
	if p.forgotten(e) {
		return true
	}
	if !p.Budget.Certain(1) {
		p.left++
		return true
	}
	if p.bulk {
		p.g.Add(e)
		return true
	}
	// Most edges of a stream lead from what is long past to what has just come.
	if !p.ends(e) && p.reach.Reaches(e.To, e.From) {
		p.reportCycle(e)
		return false
	}
	if p.reach.Reaches(e.From, e.To) {
		if fact {
			p.g.Add(e)
		}
		return true
	}
	p.g.Add(e)
	p.reach.Insert(e.From, e.To, p.changed)
	p.window.entered(e, p)
	return true
}

// ends: the edge leads to a transaction that nothing else is known to follow.
func (p *Polygraph) ends(e graph.Edge) bool {
	return p.banded != nil && p.SlotOf(e.From) != p.SlotOf(e.To) && p.banded.Ends(e.To)
}

// forgotten: the edge leads to what nothing is known to precede.
func (p *Polygraph) forgotten(e graph.Edge) bool {
	return p.banded != nil && p.banded.IsBase(p.SlotOf(e.To))
}

// changed wakes the pairs that watch n.
func (p *Polygraph) changed(n node) {
	steps := p.wide
	defer func() { p.Budget.Use(steps) }()
	for w := p.firstWatch[n]; w != none; w = p.watches[w].next {
		steps++
		if item := p.watches[w].item; item&itemChoice != 0 {
			p.wakeChoice(choiceID(item &^ itemChoice))
		} else {
			p.wake(pairID(item))
		}
	}
}

func (p *Polygraph) wake(c pairID) {
	if p.pairs[c].alive && !p.pairs[c].dirty {
		p.pairs[c].dirty = true
		p.dirty = append(p.dirty, c)
	}
}

func (p *Polygraph) watchNode(n node, item uint32) {
	p.Budget.Use(1)
	p.watches = append(p.watches, watch{item, n, p.firstWatch[n]})
	p.firstWatch[n] = uint32(len(p.watches) - 1)
}

// Propagate decides woken pairs and choices until nothing follows.
func (p *Polygraph) Propagate() {
	for len(p.dirty)+len(p.dirtyChoices) > 0 && !p.halted() {
		if len(p.dirty) == 0 {
			ci := p.dirtyChoices[len(p.dirtyChoices)-1]
			p.dirtyChoices = p.dirtyChoices[:len(p.dirtyChoices)-1]
			p.choices[ci].dirty = false
			if p.choices[ci].state == choiceOpen {
				p.settleChoice(ci)
			}
			continue
		}
		c := p.dirty[len(p.dirty)-1]
		p.dirty = p.dirty[:len(p.dirty)-1]
		pr := &p.pairs[c]
		pr.dirty = false
		if !pr.alive {
			continue
		}
		zone := p.window.zone
		if r := p.relate(pr.a, pr.b); r != undecided {
			if pr.settled && r != givenUp && pr.ab == (r == isBefore) {
				p.window.zone = zone // the solution had these edges already
			}
			p.kill(c)
			p.Stats.Pruned++
		}
	}
	if len(p.pairs) > 1024 && p.open < len(p.pairs)/2 {
		p.compact()
	}
	p.hold()
}

// compact drops the bookkeeping of pairs that are decided: a stream decides as
// many as it makes.
func (p *Polygraph) compact() {
	old := p.pairs
	p.pairs = nil
	for _, w := range p.watches {
		p.firstWatch[w.node] = none
	}
	p.watches = p.watches[:0]
	for _, pr := range old {
		p.pairsOf[pr.a], p.pairsOf[pr.b] = none, none
	}
	p.solved.valid = false
	p.window.unsettled = 0
	for _, pr := range old {
		if pr.alive {
			p.addPair(pr.a, pr.b)
			x := &p.pairs[len(p.pairs)-1]
			x.ab, x.tried = pr.ab, pr.tried
			if pr.settled {
				p.settle(x, pr.top)
				x.moved = pr.moved
			}
		}
	}
	for ci := range p.choices { // the numbers of choices stay
		c := &p.choices[ci]
		for _, n := range c.watched {
			p.watchNode(n, itemChoice|uint32(ci))
		}
	}
}

func (p *Polygraph) kill(c pairID) {
	pr := &p.pairs[c]
	pr.alive = false
	p.open--
	if !pr.settled {
		p.window.unsettled--
	}
	for side, h := range [2]vid{pr.a, pr.b} {
		first, next, prev := p.pairsOf[h], pr.next[side], pr.prev[side]
		if c == first {
			first = next
			p.pairsOf[h] = first
		} else {
			*p.nextPair(prev, h) = next
		}
		switch {
		case next != none:
			*p.prevPair(next, h) = prev
		case first != none:
			*p.prevPair(first, h) = prev
		}
	}
}

// firstPair is the first of the pairs of the block that h heads, or none; nextPair goes
// on. While a pair is killed they must not be walked.
func (p *Polygraph) firstPair(h vid) pairID {
	if int(h) >= len(p.pairsOf) {
		return none
	}
	return p.pairsOf[h]
}

func (p *Polygraph) nextPair(c pairID, h vid) *pairID { return &p.pairs[c].next[p.pairs[c].side(h)] }
func (p *Polygraph) prevPair(c pairID, h vid) *pairID { return &p.pairs[c].prev[p.pairs[c].side(h)] }

// side is where the pair keeps what concerns h, one of its two.
func (x *pair) side(h vid) int {
	if x.a == h {
		return 0
	}
	return 1
}

// link puts pair c at the end of h's pairs.
func (p *Polygraph) link(c pairID, h vid) {
	for int(h) >= len(p.pairsOf) {
		p.pairsOf = append(p.pairsOf, none)
	}
	first := p.pairsOf[h]
	*p.nextPair(c, h) = none
	if first == none {
		p.pairsOf[h], *p.prevPair(c, h) = c, c
		return
	}
	last := *p.prevPair(first, h)
	*p.nextPair(last, h), *p.prevPair(c, h), *p.prevPair(first, h) = c, last, c
}

// TakeFound returns the violations found since the last call.
func (p *Polygraph) TakeFound() []Violation {
	for _, ci := range p.hopeless {
		if p.Spent(1) {
			p.Unexplained++
		} else {
			p.explainNoCandidate(&p.choices[ci])
		}
	}
	p.hopeless = nil
	f := p.found
	p.found = nil
	return f
}
