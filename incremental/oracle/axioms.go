package oracle

import (
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
)

// The weak levels are defined by axioms: there are a writer for each read that
// is not of the transaction's own write, and a total commit order that contains
// session order and read-from (and starts with the initial state), such that
//
//	whenever t3 reads x from t1, and another writer t2 of x is visible to
//	that read, then t2 commits before t1.
//
// The levels differ in what is visible to a read of t3 (Biswas and Enea, "On the
// Complexity of Checking Transactional Consistency", OOPSLA 2019, Fig. 3):
//
//   - rc: what t3 had read from by then
//   - ra: what t3 reads from, and its predecessors in the session
//   - cc: whatever a path of read-from and session order leads to t3 from
//
// and g1 asks of the commit order no more than that it exists. That a key read
// twice gives the same follows from ra's axiom, as the two writers would have
// to commit before each other.

// visibility tells whether what transaction `from` wrote is visible to the read
// at index op of transaction to.
type visibility func(a *assignment, from, to, op int) bool

func visibleNever(*assignment, int, int, int) bool { return false }

func visibleByReads(a *assignment, from, to, op int) bool {
	for _, r := range a.chosen {
		if r.txn == to && r.op < op && r.writer == from {
			return true
		}
	}
	return false
}

func visibleAtOnce(a *assignment, from, to, _ int) bool { return a.precedes[from][to] }

func visibleByPath(a *assignment, from, to, _ int) bool { return a.reaches[from][to] }

// externalRead is a read of something that the transaction didn't write itself.
type externalRead struct {
	txn, op, key int
	value        record.Value
	writer       int // as chosen: a transaction, the initial state, or an unseen one
}

// assignment is one choice of writers. Its nodes are the transactions by index,
// then the initial state, then one unseen transaction for each read.
type assignment struct {
	h        *history
	all      set
	reads    []externalRead
	chosen   []externalRead // those whose writer is chosen, for which the rest stands
	start    []record.Value // the initial value of each key, if settled
	settled  set
	precedes [][]bool // session order and read-from
	reaches  [][]bool // its transitive closure
}

func (a *assignment) initialNode() int        { return len(a.h.txns) }
func (a *assignment) unseenNode(read int) int { return len(a.h.txns) + 1 + read }
func (a *assignment) nodes() int              { return len(a.h.txns) + 1 + len(a.chosen) }

// writes tells whether a node writes a key. What nobody reads of the unseen
// ones is not there.
func (a *assignment) writes(node, key int) bool {
	switch {
	case node < a.initialNode():
		return a.all.has(node) && a.h.writes[node].has(key)
	case node == a.initialNode():
		return true
	default:
		r := a.chosen[node-a.initialNode()-1]
		return r.writer == node && r.key == key
	}
}

// axiomatic searches writers and a commit order.
func (h *history) axiomatic(visible visibility) bool {
	for _, all := range h.choices() {
		a := &assignment{h: h, all: all, start: make([]record.Value, len(h.keys))}
		for k := range a.start {
			switch h.opt.Initial {
			case record.InitialAbsent:
				a.start[k], a.settled = record.Null, a.settled.with(k)
			case record.InitialZero:
				a.start[k], a.settled = record.Int(0), a.settled.with(k)
			}
		}
		if a.collect() && a.choose(0, visible) {
			return true
		}
	}
	return false
}

// collect lists the external reads. It returns false if a transaction does not
// read its own last write.
func (a *assignment) collect() bool {
	for i, t := range a.h.txns {
		if !a.all.has(i) {
			continue
		}
		own := map[string]record.Value{}
		for j, op := range t.Ops {
			v, wrote := own[op.Key]
			switch {
			case op.Kind == record.Write:
				own[op.Key] = op.Value
			case wrote && v != op.Value:
				return false
			case !wrote:
				a.reads = append(a.reads, externalRead{txn: i, op: j, key: a.h.keys[op.Key], value: op.Value})
			}
		}
	}
	return true
}

// choose tries every writer for the reads from the i-th on.
func (a *assignment) choose(i int, visible visibility) bool {
	if !a.hasCommitOrder(a.reads[:i], visible) {
		return false // more reads only ask for more
	}
	if i == len(a.reads) {
		return true
	}
	r := &a.reads[i]
	key := a.h.txns[r.txn].Ops[r.op].Key
	for w := range a.h.txns {
		if w == r.txn || !a.all.has(w) {
			continue
		}
		if v, ok := a.h.lastWrite(w, key); ok && v == r.value {
			r.writer = w
			if a.choose(i+1, visible) {
				return true
			}
		}
	}
	r.writer = a.initialNode()
	stated := a.h.opt.Initial != record.InitialAny
	switch {
	case a.settled.has(r.key):
		if a.start[r.key] == r.value && (stated || !a.h.writtenByOther(r.txn, key, r.value)) && a.choose(i+1, visible) {
			return true
		}
	case !a.h.writtenByOther(r.txn, key, r.value):
		a.settled, a.start[r.key] = a.settled.with(r.key), r.value
		if a.choose(i+1, visible) {
			return true
		}
		a.settled &^= 1 << r.key
	}
	if a.h.opt.Coverage == record.CoveragePartial && a.h.mayBeUnseen(r.txn, key, r.value) {
		// The writer that the previous read of this key had, or a new one.
		for j := i; j >= 0; j-- {
			if j != i && (a.reads[j].txn != r.txn || a.reads[j].key != r.key) {
				continue
			}
			if j == i || a.reads[j].value == r.value && a.reads[j].writer == a.unseenNode(j) {
				r.writer = a.unseenNode(j)
				if a.choose(i+1, visible) {
					return true
				}
			}
		}
	}
	return false
}

// lastWrite is what remains of transaction t's writes to a key.
func (h *history) lastWrite(t int, key string) (v record.Value, ok bool) {
	for _, op := range h.txns[t].Ops {
		if op.Kind == record.Write && op.Key == key {
			v, ok = op.Value, true
		}
	}
	return v, ok
}

// hasCommitOrder tells whether some total order keeps all that the axiom and
// the level ask for, given the writers of some reads; which is so exactly if
// these requirements have no cycle.
func (a *assignment) hasCommitOrder(chosen []externalRead, visible visibility) bool {
	a.chosen = chosen
	n := a.nodes()
	a.precedes = square(n)
	before := a.h.before(false)
	for t := range a.h.txns {
		a.precedes[a.initialNode()][t] = true
		for s := range a.h.txns {
			if a.all.has(s) && a.all.has(t) && before[t].has(s) {
				a.precedes[s][t] = true
			}
		}
	}
	for _, r := range a.chosen {
		a.precedes[r.writer][r.txn] = true
	}
	a.reaches = closure(a.precedes)

	commits := square(n)
	for i := range a.precedes {
		copy(commits[i], a.precedes[i])
		if i > a.initialNode() {
			commits[a.initialNode()][i] = true
		}
	}
	for _, r := range a.chosen {
		for t2 := range n {
			if t2 != r.writer && t2 != r.txn && a.writes(t2, r.key) && visible(a, t2, r.txn, r.op) {
				commits[t2][r.writer] = true
			}
		}
	}
	commits = closure(commits)
	for i := range commits {
		if commits[i][i] {
			return false
		}
	}
	return true
}

func square(n int) [][]bool {
	out := make([][]bool, n)
	for i := range out {
		out[i] = make([]bool, n)
	}
	return out
}

// closure is the transitive closure of a relation.
func closure(r [][]bool) [][]bool {
	c := square(len(r))
	for i := range r {
		copy(c[i], r[i])
	}
	for k := range c {
		for i := range c {
			for j := range c {
				c[i][j] = c[i][j] || c[i][k] && c[k][j]
			}
		}
	}
	return c
}

func axioms(visible visibility) judge {
	return func(h *history) ([]verdict.Event, bool) { return nil, h.axiomatic(visible) }
}
