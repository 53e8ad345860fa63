// Package weak checks the weak isolation levels: read committed (rc), read
// atomic (ra), causal consistency (cc), and Adya's reading of read committed
// (g1), by the algorithms of AWDIT (Møldrup and Pavlogiannis, PLDI 2025),
// for a history that grows.
//
// A level asks for a commit order: a total order of the transactions that keeps
// session order and read-from (so ∪ wr, the base), and in which
//
//	whenever t3 reads x from t1, and another writer t2 of x is visible to
//	that read, then t2 comes before t1.
//
//	      x          t2 ──visible──▶ t3          rc: t3 read from t2 before it read x
//	t1 ──wr──▶ t3     │                          ra: t2 → t3 in so ∪ wr
//	                  ▼                          cc: a path of so ∪ wr from t2 to t3
//	   t2 ──▶ t1  writes x                       g1: never
//
// Such a t2 → t1 is an inferred edge. The package infers a minimal set of them
// (AWDIT, Definition 3.1); the level holds exactly if base and inferred edges
// have no cycle (Lemma 3.2).
//
// Transactions are taken in by Add, what they read by Read, and Tick does the
// work for all that came since the last one: it places the transactions in a
// topological order of the base, infers edges, and mends the order of each
// level where an edge runs against it. Only a stretch that such an edge spans is
// looked at again. A history that is known as a whole is one Tick.
package weak

import (
	"math"
	"slices"

	"github.com/isowatch/isowatch/incremental/paged"
	"github.com/isowatch/isowatch/incremental/sets"
	"github.com/isowatch/isowatch/incremental/version"
)

// Txn is a transaction, numbered in the order of Add.
type Txn = version.Slot

const none = math.MaxUint32

// What a read can have found that no recorded transaction wrote.
const (
	// Unseen: nothing is known of the writer, or not yet.
	Unseen = none
	// Initial: the state before all transactions.
	Initial = none - 1
)

// Level is a weak level, or a session guarantee: which writers are visible to a
// read.
type Level uint8

// The levels, each of which implies those before it, and the session guarantees,
// which CC implies.
const (
	G1 Level = iota
	RC
	RA
	CC
	ReadYourWrites    // t2 so t3
	MonotonicReads    // t2 wr so t3
	MonotonicWrites   // t2 so wr t3
	WritesFollowReads // t2 wr so? wr t3
)

// Checker holds a history and, for each level that was asked for, an order of
// its transactions in which all edges known so far run forward.
type Checker struct {
	*records
	*rows
	*heads
	*witnesses

	late     []wrEdge // read-froms that came after their reader was placed
	cuts     []Txn    // lost a read-from to a cycle since the last Tick
	stamp    stamps
	asked    []uint32 // by chain: the last of askings in which an edge was inferred from it
	askings  uint32   // reads that were asked for whom they saw
	below    []version.Key
	firsts   []source
	marks    marks
	Inferred int // edges inferred so far, all levels
}

// records are the transactions, what they read and wrote, what lists show, and the graphs of that.
type records struct {
	sessions bool // the transactions of a session are in order
	last     bool // no more will come, so that rows can go when they have served

	nodes  paged.Vec[Txn, node]  // by transaction
	reads  slab[read]            // the external reads of all, a span for each transaction
	writes slab[version.Key]     // the keys that all wrote, a span for each transaction
	extra  []source              // further writers of what was read, those of a transaction linked
	large  map[Txn][]version.Key // of transactions that wrote many keys these, sorted
	lists  map[version.Key]*list // keys that were read as lists, with the order that this shows
	grown  []version.Key         // keys of lists of which more is known since the last Tick
	shown  []listed              // all orders of two writers that lists show
	orders []listed              // the orders of two writers that lists have shown since the last Tick
	placed Txn                   // how many transactions former Ticks gave a place

	sessionChain []uint32 // by session: its chain, the number of those that precede each other by session order
	chains       []uint32 // by chain: how many transactions it has

	base    *graph   // of session order and read-froms
	graphs  []*graph // base, then one of each level above g1, with what its axiom infers
	scratch []Txn

	// Take, if set, is told now and then during a Tick of the steps (package budget) made since, and says whether to go
	// on. Otherwise that ends early, with what was found, and nothing may be asked of the checker then.
	Take func(steps int) bool
	made int // steps that Take was not told of
}

// node is a transaction.
type node struct {
	chain, pos uint32  // its session's, and where in that; chain is none if it precedes nothing in one
	prev       Txn     // its predecessor in the session, or none
	bit        uint32  // by which sets know it, once it has a row
	row        sets.ID // itself and who precedes it in the base; sets.None before it is placed, and once it has served
	known      sets.ID // who else is known to commit before it, with row; or sets.None
	reads      span
	writes     span
	extra      uint32 // in Checker.extra, or none
	open       bool   // it precedes nothing in its session
}

// read is an external read, by program order.
type read struct {
	key  version.Key
	from Txn // or Unseen or Initial
}

// source is a further transaction that a read shows something of.
type source struct {
	from Txn
	at   uint32 // index of the read
	next uint32
}

type wrEdge struct{ from, to Txn }

type listed struct {
	prev, next Txn
	key        version.Key
}

// head is the latest write of a chain to a key.
type head struct {
	chain uint32
	entry
}

// entry is a write of a chain to a key. prev is the one before it and jump one
// further back, in Checker.entries; with the number of those before it, as in a
// skew-binary list, that makes a search logarithmic.
type entry struct {
	txn                    Txn
	pos, prev, jump, depth uint32
}

// New makes a checker for levels; without sessions, session order counts for
// nothing.
func New(sessions bool, levels ...Level) *Checker {
	r := &records{sessions: sessions}
	w, h := &rows{records: r}, &heads{records: r}
	c := &Checker{records: r, rows: w, heads: h, witnesses: &witnesses{records: r, rows: w, heads: h, Witnesses: 1}}
	c.base = &graph{level: G1}
	c.graphs = append(c.graphs, c.base)
	for _, l := range levels {
		if l == G1 {
			continue
		}
		c.graphs = append(c.graphs, &graph{level: l})
		c.rows.wanted = c.rows.wanted || l == CC
		c.heads.wanted = c.heads.wanted || l == RA && sessions
	}
	return c
}

// Len is the number of transactions.
func (c *records) Len() int { return c.nodes.Len() }

// Add takes in a transaction of a session: the keys of its external reads, in
// program order, with as many repetitions as there were, and the keys that it
// wrote. prev is its predecessor in the session or none. An open one, of unknown
// outcome, follows prev, but precedes nothing in its session. Transactions of a
// session that are not open come in session order.
func (c *Checker) Add(session uint32, prev Txn, open bool, reads, writes []version.Key) Txn {
	n := node{chain: none, prev: none, bit: none, row: sets.None, known: sets.None, extra: none, open: open}
	t := Txn(c.nodes.Len())
	if c.sessions {
		n.prev = prev
		if !open {
			for int(session) >= len(c.sessionChain) {
				c.sessionChain = append(c.sessionChain, none)
			}
			if c.sessionChain[session] == none {
				c.sessionChain[session] = uint32(len(c.chains))
				c.chains = append(c.chains, 0)
			}
			n.chain = c.sessionChain[session]
			n.pos = c.chains[n.chain]
			c.chains[n.chain]++
		}
	}
	n.reads = c.reads.room(len(reads))
	kept := c.reads.at(n.reads)
	for i, k := range reads {
		kept[i] = read{k, Unseen}
	}
	n.writes = c.writes.room(len(writes))
	copy(c.writes.at(n.writes), writes)
	c.nodes.Push(n)
	return t
}

// Read says what t's i-th external read found: what from wrote, or Initial. A
// read that is not told of is Unseen.
func (c *Checker) Read(t Txn, i int, from Txn) {
	c.reads.at(c.nodes.At(t).reads)[i].from = from
	c.resolved(t, from)
}

// Shows says that t's i-th read, of a list, shows what from wrote as well.
func (c *Checker) Shows(t Txn, i int, from Txn) {
	n := c.nodes.At(t)
	c.extra = append(c.extra, source{from, uint32(i), n.extra})
	n.extra = uint32(len(c.extra) - 1)
	c.resolved(t, from)
}

func (c *Checker) resolved(t, from Txn) {
	if t < c.placed {
		c.late = append(c.late, wrEdge{from, t})
	}
}

// list is what is known of a key that holds lists.
type list struct {
	rank map[Txn]uint32 // place in the order that reads show
	last Txn            // in that order, or none
	rest []Txn          // who appended, and is not shown
	due  bool           // in Checker.grown
	// anchored: nothing was in the list before the first that is shown.
	anchored bool
}

func (c *records) listOf(k version.Key) *list {
	if c.lists == nil {
		c.lists = map[version.Key]*list{}
	}
	l := c.lists[k]
	if l == nil {
		l = &list{rank: map[Txn]uint32{}, last: none}
		c.lists[k] = l
	}
	if !l.due {
		l.due = true
		c.grown = append(c.grown, k)
	}
	return l
}

// Appended says that t's write of k was to append to a list.
func (c *Checker) Appended(k version.Key, t Txn) {
	l := c.listOf(k)
	l.rest = append(l.rest, t)
}

// AppendsLast says, of a t that Appended was not told of, that it appended to k,
// and that no list that was read shows so.
func (c *Checker) AppendsLast(k version.Key, t Txn) {
	l := c.lists[k]
	if l == nil || l.last == none || !l.anchored {
		return
	}
	if _, shown := l.rank[t]; !shown {
		c.orders = append(c.orders, listed{l.last, t, k})
	}
}

// ListOrder says that a list of the key shows next's elements right after those
// of the last that this was told of.
func (c *Checker) ListOrder(key version.Key, next Txn) {
	l := c.listOf(key)
	if l.last != none {
		c.orders = append(c.orders, listed{l.last, next, key})
		c.shown = append(c.shown, listed{l.last, next, key})
	}
	l.rank[next] = uint32(len(l.rank))
	l.last = next
}

// Anchored says that what reads show first of the key's list is the first that it held: who appended
// to it otherwise did so later.
func (c *Checker) Anchored(k version.Key) { c.listOf(k).anchored = true }

// tail orders who appended to a list, and is not in the longest that was read,
// after those that are.
func (c *Checker) tail() {
	slices.Sort(c.grown)
	for _, k := range c.grown {
		l := c.lists[k]
		l.due = false
		if l.last == none || !l.anchored {
			continue
		}
		l.rest = slices.DeleteFunc(l.rest, func(t Txn) bool { _, shown := l.rank[t]; return shown })
		for _, t := range l.rest {
			c.orders = append(c.orders, listed{l.last, t, k})
			c.shown = append(c.shown, listed{l.last, t, k})
		}
	}
	c.grown = c.grown[:0]
}

// Tick works off what came since the last one, and returns the violations that
// are new. last says that nothing more will come.
func (c *Checker) Tick(last bool) []Violation {
	c.last, c.witnesses.staleTold = last, 0
	c.tail()
	from := c.place()
	from = min(from, c.mendBase())
	if len(c.graphs) > 1 {
		c.advance(from)
	}
	for _, g := range c.graphs[1:] {
		if !c.halted() {
			c.mend(g)
		}
	}
	c.placed = Txn(c.nodes.Len())
	out := c.witnesses.out
	c.witnesses.out = nil
	return out
}

func (c *records) halted() bool {
	made := c.made
	c.made = 0
	return c.Take != nil && !c.Take(made)
}

// What is counted for placing a transaction and what its reads ask for, for looking at one again to mend an order, and
// for one that a search for a witness looks at.
const (
	inferSteps = 32
	mendSteps  = 8
	visitSteps = 64
)

// Bytes is about what rows take, which is all that may grow with more than the history.
func (c *rows) Bytes() int { return c.sets.Bytes() }

// sources appends the transactions that t reads from.
func (c *records) sources(n *node, to []Txn) []Txn {
	for _, r := range c.reads.at(n.reads) {
		if r.from < Initial {
			to = append(to, r.from)
		}
	}
	for at := n.extra; at != none; at = c.extra[at].next {
		if f := c.extra[at].from; f < Initial {
			to = append(to, f)
		}
	}
	return to
}

// preds appends the direct predecessors of t in the base.
func (c *records) preds(t Txn, to []Txn) []Txn {
	n := c.nodes.At(t)
	if n.prev != none {
		to = append(to, n.prev)
	}
	return c.sources(n, to)
}

// ReadsFrom tells whether t reads k, as far as was told, from a writer that on
// accepts.
func (c *records) ReadsFrom(t Txn, k version.Key, on func(from Txn) bool) bool {
	n := c.nodes.At(t)
	reads := c.reads.at(n.reads)
	for _, r := range reads {
		if r.key == k && r.from != Unseen && on(r.from) {
			return true
		}
	}
	for at := n.extra; at != none; at = c.extra[at].next {
		if x := c.extra[at]; reads[x.at].key == k && on(x.from) {
			return true
		}
	}
	return false
}

// Without is a checker for one level with the same history, none of which has
// been worked off: more can be told of its reads.
func (c *Checker) Without(l Level) *Checker {
	out := New(c.sessions, l)
	for t := range Txn(c.nodes.Len()) {
		n := *c.nodes.At(t)
		n.bit, n.row, n.known = none, sets.None, sets.None
		m := n
		m.reads = out.reads.room(int(n.reads.n))
		copy(out.reads.at(m.reads), c.reads.at(n.reads))
		m.writes = out.writes.room(int(n.writes.n))
		copy(out.writes.at(m.writes), c.writes.at(n.writes))
		out.nodes.Push(m)
	}
	out.extra = append(out.extra, c.extra...)
	out.lists = c.lists
	out.orders = append(out.orders, c.shown...)
	out.chains = append(out.chains, c.chains...)
	return out
}
