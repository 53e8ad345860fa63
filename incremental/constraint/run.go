package constraint

import (
	"slices"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/incremental/version"
	"github.com/isowatch/isowatch/internal/heap"
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
// always what came first of those that can. If all get through, the order proves that the level is satisfied, whatever
// pairs there are; if they get stuck nothing is known, as another choice may get through.
// Cost: O((n + edges) log n) for n reads and writes.

// pairsMax is how many pairs of blocks are made, where Config does not say.
const pairsMax = 1_000_000

// stepsPerNode bounds the steps of a run, each of which costs about as much as runSteps of the budget.
const stepsPerNode, runSteps = 100, 16

// runFrom is how many nodes a history has at most that is not run first, if Config.PairsMax is not less.
const runFrom = 1 << 12

// runs tries to run a history that is loaded in bulk before its pairs are made. If that can be done there is nothing
// left to do. Not where reads are open, which may be decided later.
func (p *loader) runs() bool {
	if !p.cfg.RunFirst || p.reports.Found > 0 || len(p.subjects.choices) > 0 ||
		p.g.Nodes() <= min(runFrom, p.cfg.PairsMax) || !p.solver.run(nil, nil) {
		return false
	}
	p.orders.implicit = 1 // what is not known to be solved any more is not solved for having no pairs
	p.topo, p.heads, p.bulk = nil, nil, false
	return true
}

// run tries to run the history, of all that can happen always what came first. If it gets through, pairs and choices,
// which are all that are open, are solved.
func (p *solver) run(pairs []pairID, choices []choiceID) bool {
	r := p.newRun()
	n := p.g.Nodes()
	// A step either happens or parks a node. Nodes are let go on by one that
	// happened or that was parked elsewhere, so the bound is never met by a run
	// that gets anywhere; it makes the end certain.
	for left := stepsPerNode * (n + 1); len(r.ready) > 0 && left > 0 && p.Budget.Take(runSteps); left-- {
		if v := heap.Pop(&r.ready, heap.Less); r.step(v) {
			r.missing--
		}
	}
	if r.missing > 0 {
		return false
	}
	p.solved = solution{edges: p.g.Len(), pairs: pairs, openChoices: len(choices), order: r.out, slots: p.tab.Slots()}
	p.subjects.current = true
	return true
}

// run is the state of the attempt.
type run struct {
	p       *solver
	in      []int32            // by node: predecessors that have not happened
	ready   []node             // a heap: those that may be able to happen
	missing int                // nodes that have not happened
	keys    []runKey           // by key
	unread  []uint32           // by version: those who read it and have not started
	readers map[vid][]node     // parked until the version is there
	woken   map[node]keyID     // writers let go on for the sake of a key
	choices map[slot][]*choice // undecided reads
	// parkedAt is the key that the last step parked a writer at, or none.
	parkedAt keyID
	out      []verdict.Event
}

// runKey is what a run knows of a key.
type runKey struct {
	holds   vid    // its latest version; at first the initial one, or None if nobody reads that
	busy    slot   // a writer that has started and not committed, or None
	writers []node // a heap, parked until the key can be written
	either  []node // parked until it holds something else
}

func (p *solver) newRun() *run {
	n := p.g.Nodes()
	r := &run{p: p, in: p.predecessors(), missing: n,
		unread:  make([]uint32, p.tab.Len()),
		readers: map[vid][]node{}, woken: map[node]keyID{}, choices: map[slot][]*choice{}, out: make([]verdict.Event, 0, n)}
	for s := range slot(p.tab.Slots()) {
		if m, uncertain := p.subjects.maybe[s]; uncertain && m != isIn { // nobody has to read from it
			r.in[p.start(s)] = 1 << 30
			r.missing -= int(p.parts)
			continue
		}
		for _, v := range p.tab.Reads(s) {
			if !p.isWithdrawn(s, v) {
				r.unread[v]++
			}
		}
	}
	for v := range vid(p.tab.Len()) {
		for k := p.tab.At(v).Key; int(k) >= len(r.keys); {
			r.keys = append(r.keys, runKey{holds: p.tab.InitialOf(keyID(len(r.keys))), busy: version.None})
		}
	}
	for i := range p.subjects.choices {
		if c := &p.subjects.choices[i]; c.state == choiceOpen && !c.guarded {
			r.choices[c.reader] = append(r.choices[c.reader], c)
		}
	}
	for _, v := range roots(r.in) {
		r.try(v)
	}
	return r
}

// try has v tried, after all that came before it.
func (r *run) try(v node) { heap.Push(&r.ready, v, heap.Less) }

// step lets node v happen, or parks it; it tells which.
func (r *run) step(v node) bool {
	p := r.p
	s := p.parts.Slot(v)
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
	}
	p.happen(v, r.in, nil, r.try)
	return true
}

// is tells whether the key of v holds it, or may, as its writer was not seen.
func (r *run) is(v vid) bool {
	ver := r.p.tab.At(v)
	return ver.Kind == version.Unseen || r.keys[ver.Key].holds == v
}

func (r *run) canStart(v node, s slot) bool {
	p := r.p
	for _, x := range p.tab.Reads(s) {
		if p.isWithdrawn(s, x) {
			continue
		}
		if !r.is(x) {
			r.readers[x] = append(r.readers[x], v)
			return false
		}
	}
	for _, c := range r.choices[s] {
		p.Budget.Use(len(c.cands) / placesAStep)
		if !slices.ContainsFunc(c.cands, r.is) {
			r.keys[c.key].either = append(r.keys[c.key].either, v)
			return false
		}
	}
	if r.exclusive() {
		for _, w := range p.tab.Writes(s) {
			k := p.tab.At(w).Key
			if r.keys[k].busy != version.None || r.doomed(w, k) {
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
	h := r.keys[k].holds
	return h != version.None && r.p.tab.At(h).Next != version.None && r.p.tab.At(h).Next != w
}

// waitedFor tells whether others than s have still to read what k holds.
func (r *run) waitedFor(k keyID, s slot) bool {
	h := r.keys[k].holds
	if h == version.None || r.unread[h] == 0 {
		return false
	}
	// It may be s itself, which reads as it commits.
	return r.unread[h] > 1 || r.p.parts == 2 || r.p.isWithdrawn(s, h) || !slices.Contains(r.p.tab.Reads(s), h)
}

func (r *run) canCommit(v node, s slot) bool {
	for _, w := range r.p.tab.Writes(s) {
		if k := r.p.tab.At(w).Key; r.waitedFor(k, s) || r.doomed(w, k) {
			r.park(v, k)
			return false
		}
	}
	return true
}

func (r *run) park(v node, k keyID) {
	heap.Push(&r.keys[k].writers, v, heap.Less)
	r.parkedAt = k
}

// wakeWriter lets the first of those that wait to write k try again.
func (r *run) wakeWriter(k keyID) {
	if l := &r.keys[k].writers; len(*l) > 0 {
		v := heap.Pop(l, heap.Less)
		r.woken[v] = k
		r.try(v)
	}
}

func (r *run) started(s slot) {
	p := r.p
	for _, x := range p.tab.Reads(s) {
		if p.isWithdrawn(s, x) {
			continue
		}
		if r.unread[x]--; r.unread[x] == 0 {
			r.wakeWriter(p.tab.At(x).Key)
		}
	}
	if r.exclusive() {
		for _, w := range p.tab.Writes(s) {
			r.keys[p.tab.At(w).Key].busy = s
		}
	}
}

func (r *run) committed(s slot) {
	p := r.p
	for _, w := range p.tab.Writes(s) {
		k := p.tab.At(w).Key
		x := &r.keys[k]
		for _, list := range [2][]node{r.readers[w], x.either} {
			for _, v := range list {
				r.try(v)
			}
		}
		delete(r.readers, w)
		x.holds, x.busy, x.either = w, version.None, nil
		r.wakeWriter(k)
	}
}
