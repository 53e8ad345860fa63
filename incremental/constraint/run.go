package constraint

import (
	"slices"

	"github.com/isowatch/isowatch/incremental/graph"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/incremental/version"
)

// A history that lies in an order that nothing speaks against needs neither a closure nor pairs. And a hot key
// with thousands of concurrent writers has tens of millions of pairs: beyond Config.PairsMax, and in a stream
// without times where there is no room for more, they are not made. So before anything is closed, after surveys, and
// before many pairs are searched it is asked of the history as a whole: can it be run? run lets transactions start and
// commit one after the other, along the known graph,
//
//	a start     when all that it reads is what the keys hold, and, at snapshot
//	            isolation, nobody else is about to write its keys
//	a commit    when all who read what it overwrites have started, and nothing
//	            else is known to overwrite that first
//
// always what came first of those that can. If all get through, the order proves that the level is satisfied, whatever pairs there
// are; if they get stuck nothing is known, as another choice may get through.
// Cost: O((n + edges) log n) for n reads and writes.

// pairsMax is how many pairs of blocks are made, where Config does not say.
const pairsMax = 1_000_000

// stepsPerNode bounds the steps of a run, each of which costs about as much as runSteps of the budget.
const stepsPerNode, runSteps = 100, 16

// run is the state of the attempt.
type run struct {
	p      *Polygraph
	in     []int32 // by node: predecessors that have not happened
	ready  *ready
	holds  map[keyID]vid  // by key: its latest version, if it was written
	busy   map[keyID]slot // by key: a writer that has started and not committed
	unread map[vid]int    // by version: its readers that have not started

	readers map[vid][]node     // parked until the version is there
	writers map[keyID]*ready   // parked until the key can be written
	either  map[keyID][]node   // parked until the key holds something else
	woken   map[node]keyID     // writers let go on for the sake of a key
	choices map[slot][]*choice // undecided reads
	// parkedAt is the key that the last step parked a writer at, or none.
	parkedAt keyID
	out      []verdict.Event
}

// runs tries to run a history that is loaded in bulk before its pairs are made, and before its graph is closed. If
// that can be done it is solved, and there is nothing left to do. Not where reads are open, which may be decided later.
func (p *Polygraph) runs() bool {
	if !p.cfg.RunFirst || p.Found > 0 || len(p.choices) > 0 || p.cfg.Ablate.NoPruning || p.g.Nodes() <= min(runFrom, p.cfg.PairsMax) {
		return false
	}
	order, ok := p.runThrough()
	if ok {
		p.solved = solution{valid: true, edges: p.g.Len(), openChoices: p.openChoices, order: order, slots: p.slots}
		p.implicit = 1 // what is not known to be solved any more is not solved for having no pairs
		p.topo, p.heads, p.bulk = nil, nil, false
	}
	return ok
}

// runFrom is how many nodes a history has at most that is not run first, if Config.PairsMax is not less.
const runFrom = 1 << 12

// runThrough tries to run the history, of all that can happen always what came first.
func (p *Polygraph) runThrough() ([]verdict.Event, bool) {
	n := p.g.Nodes()
	prio := make([]int32, n) // as it came
	for i := range prio {
		prio[i] = int32(i)
	}
	r := &run{p: p, in: make([]int32, n), ready: &ready{prio: prio}, holds: map[keyID]vid{}, busy: map[keyID]slot{},
		unread: map[vid]int{}, readers: map[vid][]node{}, writers: map[keyID]*ready{}, either: map[keyID][]node{},
		woken: map[node]keyID{}, choices: map[slot][]*choice{}, out: []verdict.Event{}}
	for i := range p.g.Len() {
		r.in[p.g.Edge(graph.EdgeID(i)).To]++
	}
	out := 0 // nodes of transactions that are left out
	for s := range slot(p.slots) {
		if p.parts == 2 {
			r.in[p.commit(s)]++
		}
		if m, uncertain := p.maybe[s]; uncertain && m != isIn {
			r.in[p.start(s)] = 1 << 30 // nobody has to read from it
			out += int(p.parts)
		}
	}
	for v := range vid(p.tab.Len()) {
		for q := range p.tab.Readers(v) {
			if !p.isWithdrawn(q, v) {
				r.unread[v]++
			}
		}
	}
	for i := range p.choices {
		if c := &p.choices[i]; c.state == choiceOpen && !c.guarded {
			r.choices[c.reader] = append(r.choices[c.reader], c)
		}
	}
	for v := range n {
		if r.in[v] == 0 {
			r.ready.push(int32(v))
		}
	}
	done := 0
	// A step either happens or parks a node. Nodes are let go on by one that
	// happened or that was parked elsewhere, so the bound is never met by a run
	// that gets anywhere; it makes the end certain.
	for left := stepsPerNode * (n + 1); r.ready.len() > 0 && left > 0 && p.Budget.Take(runSteps); left-- {
		if v := node(r.ready.pop()); r.step(v) {
			done++
		}
	}
	return r.out, done+out == n
}

// step lets node v happen, or parks it; it tells which.
func (r *run) step(v node) bool {
	p := r.p
	s := p.SlotOf(v)
	r.parkedAt = none
	starts, commits := v == p.start(s), v == p.commit(s)
	if starts && !r.canStart(v, s) || commits && !r.canCommit(v, s) {
		if k, ok := r.woken[v]; ok {
			delete(r.woken, v)
			if r.parkedAt != k { // it waits for something else now: the next one's turn
				r.wakeWriter(k)
			}
		}
		return false
	}
	delete(r.woken, v)
	r.out = append(r.out, verdict.Event{Txn: verdict.TxnID(s), Commit: commits})
	if starts {
		r.started(s)
	}
	if commits {
		r.committed(s)
	} else {
		r.lower(v + 1)
	}
	for e := p.g.FirstOut(v); e != graph.None; e = p.g.NextOut(e) {
		r.lower(p.g.Edge(e).To)
	}
	return true
}

func (r *run) lower(v node) {
	if r.in[v]--; r.in[v] == 0 {
		r.ready.push(int32(v))
	}
}

// is tells whether the key holds v.
func (r *run) is(v vid, k keyID) bool {
	ver := r.p.tab.At(v)
	h, written := r.holds[k]
	switch ver.Kind {
	case version.Written:
		return written && h == v
	case version.Initial:
		return !written
	}
	return true // of a writer that was not seen
}

func (r *run) canStart(v node, s slot) bool {
	p := r.p
	for _, x := range p.Reads(s) {
		if p.isWithdrawn(s, x) {
			continue
		}
		if !r.is(x, p.tab.At(x).Key) {
			r.readers[x] = append(r.readers[x], v)
			return false
		}
	}
	for _, c := range r.choices[s] {
		if !slices.ContainsFunc(c.cands, func(x vid) bool { return r.is(x, c.key) }) {
			r.either[c.key] = append(r.either[c.key], v)
			return false
		}
	}
	if r.exclusive() {
		for _, w := range p.Writes(s) {
			k := p.tab.At(w).Key
			if _, busy := r.busy[k]; busy || r.doomed(w, k) {
				r.park(v, k)
				return false
			}
		}
	}
	return true
}

// exclusive: transactions that write the same key can't overlap.
func (r *run) exclusive() bool { return r.p.parts == 2 && !r.p.cfg.Prefix }

// doomed: w can't be the next version of k, as another one is known to be.
func (r *run) doomed(w vid, k keyID) bool {
	h, written := r.holds[k]
	if !written {
		if h = r.p.tab.InitialOf(k); h == version.None {
			return false
		}
	}
	next := r.p.tab.At(h).Next
	return next != version.None && next != w
}

// waitedFor is how many others have still to read what k holds.
func (r *run) waitedFor(k keyID, s slot) int {
	h, written := r.holds[k]
	if !written {
		if h = r.p.tab.InitialOf(k); h == version.None {
			return 0
		}
	}
	n := r.unread[h]
	if n == 1 && r.p.parts == 1 { // it may be s itself, which reads as it commits
		for q := range r.p.tab.Readers(h) {
			if q == s && !r.p.isWithdrawn(q, h) {
				return 0
			}
		}
	}
	return n
}

func (r *run) canCommit(v node, s slot) bool {
	for _, w := range r.p.Writes(s) {
		if k := r.p.tab.At(w).Key; r.waitedFor(k, s) > 0 || r.doomed(w, k) {
			r.park(v, k)
			return false
		}
	}
	return true
}

func (r *run) park(v node, k keyID) {
	l := r.writers[k]
	if l == nil {
		l = &ready{prio: r.ready.prio}
		r.writers[k] = l
	}
	l.push(int32(v))
	r.parkedAt = k
}

// wakeWriter lets the first of those that wait to write k try again.
func (r *run) wakeWriter(k keyID) {
	if l := r.writers[k]; l != nil && l.len() > 0 {
		v := node(l.pop())
		r.woken[v] = k
		r.ready.push(int32(v))
	}
}

func (r *run) started(s slot) {
	p := r.p
	for _, x := range p.Reads(s) {
		isReader := false
		for q := range p.tab.Readers(x) {
			isReader = isReader || q == s
		}
		if !isReader || p.isWithdrawn(s, x) {
			continue
		}
		if r.unread[x]--; r.unread[x] == 0 {
			r.wakeWriter(p.tab.At(x).Key)
		}
	}
	if r.exclusive() {
		for _, w := range p.Writes(s) {
			r.busy[p.tab.At(w).Key] = s
		}
	}
}

func (r *run) committed(s slot) {
	p := r.p
	for _, w := range p.Writes(s) {
		k := p.tab.At(w).Key
		r.holds[k] = w
		delete(r.busy, k)
		for _, list := range [2][]node{r.readers[w], r.either[k]} {
			for _, v := range list {
				r.ready.push(int32(v))
			}
		}
		delete(r.readers, w)
		delete(r.either, k)
		r.wakeWriter(k)
	}
}
