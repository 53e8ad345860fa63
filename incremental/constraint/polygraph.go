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
// blocks.harmless.
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
// The parts of a Polygraph own their fields, and each knows only those above it in this table:
//
//	part      file         what it has
//	level     level.go     what is asked of the history, the versions, the budget
//	known     known.go     the known graph and its closure
//	subjects  subjects.go  what is open: pairs, choices; what is woken by what
//	blocks    blocks.go    the blocks of each key, in order
//	writers   writers.go   who wrote a key that is read ambiguously, and so what a read may be of
//	reports   explain.go   violations: cycles (shortest.go), and why their edges hold
//	orders    order.go     the order of blocks is decided, and its edges go in
//	solver    solve.go     what is open is decided as a whole: stated (encode.go), solved, of a stream only what is new
//	                       (window.go); or run (run.go); and proved by an order (proof.go)
//	loader    bulk.go      a whole history at once: a run, rounds, surveys, then all blocks
//
// A Polygraph joins them: what it is told (events.go) goes to orders, what that wakes is decided until nothing follows
// (propagate), and choices, which bring reads, blocks and more of both, are decided by it alone (choice.go).
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

// Polygraph is the polygraph of one level. The version table is shared between
// levels and is changed by the engine before the polygraph is told.
type Polygraph struct {
	*known
	*writers
	*reports
	*solver
	subjects *subjects
	blocks   *blocks
	orders   *orders
	loader   *loader
}

// hold tells the budget what the closure, the open pairs, the open choices and the forced edges take now.
func (p *Polygraph) hold() {
	p.take(p.reach.Bytes() + p.subjects.openPairs*pairBytes + p.subjects.candidates*candidateBytes +
		p.reports.forced.Len()*forcedBytes - p.bytes)
}

// Drop gives back what the polygraph holds, which must not be used any more.
func (p *Polygraph) Drop() { p.Budget.Leave() }

// New makes an empty polygraph over the table.
func New(cfg Config, tab *version.Table) *Polygraph {
	if cfg.PairsMax == 0 {
		cfg.PairsMax = pairsMax
	}
	k := newKnown(cfg, tab)
	u := &subjects{known: k}
	b := &blocks{known: k, subjects: u, putsOff: cfg.Split && !cfg.Prefix && !cfg.RealTime && !cfg.Last && !k.bulk}
	w := &writers{known: k, subjects: u, blocks: b}
	r := &reports{known: k, subjects: u, writers: w}
	o := &orders{known: k, subjects: u, blocks: b, writers: w, reports: r, given: map[[2]vid]bool{}}
	s := &solver{known: k, subjects: u, blocks: b, writers: w, reports: r, orders: o}
	l := &loader{known: k, subjects: u, blocks: b, reports: r, orders: o, solver: s}
	return &Polygraph{known: k, subjects: u, blocks: b, writers: w, reports: r, orders: o, solver: s, loader: l}
}

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

// Add takes in the transaction of the latest slot of the table.
func (p *Polygraph) Add(t Txn) {
	s := slot(p.tab.Slots() - 1)
	if t.Uncertain {
		if p.subjects.maybe == nil {
			p.subjects.maybe = map[slot]maybe{}
		}
		p.subjects.maybe[s] = mayBeIn
	}
	base := !p.add(t)
	for len(p.subjects.firstWatch) < p.g.Nodes() {
		p.subjects.firstWatch = append(p.subjects.firstWatch, none)
	}
	if base {
		return
	}
	p.hold()
	if p.cfg.Sessions && t.Prev != version.None {
		e := graph.Edge{From: p.commit(t.Prev), To: p.start(s), Key: none, Type: verdict.SO, Why: verdict.BySession}
		if p.chains != nil && t.Chain != reach.Alone {
			p.g.Add(e) // part of the chain
		} else {
			p.orders.addEdge(e, true)
		}
	}
}

// propagate decides woken pairs and choices until nothing follows.
func (p *Polygraph) propagate() {
	for len(p.subjects.dirty)+len(p.subjects.dirtyChoices) > 0 && !p.halted() {
		if len(p.subjects.dirty) == 0 {
			ci := p.subjects.dirtyChoices[len(p.subjects.dirtyChoices)-1]
			p.subjects.dirtyChoices = p.subjects.dirtyChoices[:len(p.subjects.dirtyChoices)-1]
			p.subjects.choices[ci].dirty = false
			if p.subjects.choices[ci].state == choiceOpen {
				p.settleChoice(ci)
			}
			continue
		}
		c := p.subjects.dirty[len(p.subjects.dirty)-1]
		p.subjects.dirty = p.subjects.dirty[:len(p.subjects.dirty)-1]
		pr := &p.subjects.pairs[c]
		pr.dirty = false
		if !pr.alive {
			continue
		}
		zone := p.zone
		if r := p.orders.relate(pr.a, pr.b); r != undecided {
			if pr.settled && r != givenUp && pr.ab == (r == isBefore) {
				p.zone = zone // the solution had these edges already
			}
			p.subjects.kill(c)
			p.Stats.Pruned++
		}
	}
	if len(p.subjects.pairs) > 1024 && p.subjects.openPairs < len(p.subjects.pairs)/2 {
		p.subjects.compact()
	}
	p.hold()
}
