package oracle

import (
	"fmt"
	"slices"

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
// Complexity of Checking Transactional Consistency", OOPSLA 2019, Fig. 3; for rc
// AWDIT, Definition 2.4):
//
//   - rc: what t3 had read from by then
//   - ra: what t3 reads from, and its predecessors in the session
//   - cc: whatever a path of read-from and session order leads to t3 from
//
// and g1 asks of the commit order no more than that it exists. That a key read
// twice gives the same follows from ra's axiom, as the two writers would have
// to commit before each other.
//
// The session guarantees are axioms of the same form; see guarantees.
//
// # Lists
//
// A list has versions, one by each transaction that appends to it: what that one
// made of the version before. They come in the order of commit, and a read shows
// one of them, followed by what its own transaction had appended by then. The
// reader reads from the writers of all elements; t1 of the axiom is the writer of
// the version. For g1 the versions of a key have some order, which the commit
// order need not keep.

// axiom is what a level asks of commit orders.
type axiom struct {
	// visible tells whether what node `from` wrote is visible to the read at index
	// op of transaction to.
	visible func(a *assignment, from, to, op int) bool
	// anyListOrder: versions of lists need not be in the order of commit.
	anyListOrder bool
}

func visibleNever(*assignment, int, int, int) bool { return false }

func visibleByReads(a *assignment, from, to, op int) bool {
	for _, r := range a.chosen {
		if r.txn == to && r.op < op && r.from.has(from) {
			return true
		}
	}
	return false
}

func visibleAtOnce(a *assignment, from, to, _ int) bool { return a.precedes[from].has(to) }

func visibleByPath(a *assignment, from, to, _ int) bool { return a.reaches[from].has(to) }

// guarantees are the session guarantees' axioms.
var guarantees = map[verdict.Guarantee]axiom{
	verdict.ReadYourWrites: {visible: func(a *assignment, from, to, _ int) bool {
		return a.session[from].has(to)
	}},
	verdict.MonotonicReads: {visible: func(a *assignment, from, to, _ int) bool {
		return a.through(a.readBy, from, a.session, to)
	}},
	verdict.MonotonicWrites: {visible: func(a *assignment, from, to, _ int) bool {
		return a.through(a.session, from, a.readBy, to)
	}},
	verdict.WritesFollowReads: {visible: func(a *assignment, from, to, _ int) bool {
		if a.through(a.readBy, from, a.readBy, to) {
			return true
		}
		for s := range a.h.txns {
			if a.readBy[from].has(s) && a.through(a.session, s, a.readBy, to) {
				return true
			}
		}
		return false
	}},
}

// nodes is a set of nodes: the transactions by index, then the initial state,
// then the transactions that were not seen.
type nodes [2]uint64

func (s nodes) has(i int) bool { return s[i>>6]&(1<<(i&63)) != 0 }

func (s *nodes) add(i int) {
	if i >= 128 {
		panic(fmt.Sprintf("oracle: node %d: a history with so many reads of what nobody wrote is too large", i))
	}
	s[i>>6] |= 1 << (i & 63)
}

// externalRead is a read of something that the transaction didn't write itself.
type externalRead struct {
	txn, op, key int
	name         string // of the key
	value        record.Value
	predicate    *record.Op     // whose read it is, if any: of a value that fits
	added        []record.Value // to a list, by the transaction itself before the read
	last         int            // as chosen: who wrote the version read
	from         nodes          // as chosen: whoever wrote a part of it
}

// accepts tells whether the read may be of a value.
func (r *externalRead) accepts(v record.Value) bool {
	if r.predicate != nil {
		return fits(r.predicate, r.name, v)
	}
	return v == r.value
}

// listVersion is what a list was, and whose elements are in it.
type listVersion struct {
	value record.Value
	last  int
	from  nodes
}

// assignment is one choice of writers and of the order of list versions.
type assignment struct {
	h       *history
	axiom   axiom
	all     set
	reads   []externalRead
	chosen  []externalRead  // those whose writer is chosen, for which the rest stands
	start   []record.Value  // the initial value of each key, if settled
	settled set             // keys
	unseen  []int           // by unseen transaction: the key it wrote
	lists   [][]listVersion // by key, for those that are appended to; the first version is the initial one

	session  []nodes // session order, by node: its successors
	readBy   []nodes // read-from
	precedes []nodes // both, and the initial state before all
	reaches  []nodes // its transitive closure
}

func (a *assignment) initialNode() int { return len(a.h.txns) }
func (a *assignment) count() int       { return len(a.h.txns) + 1 + len(a.unseen) }

// newUnseen adds a transaction that was not seen and wrote a key.
func (a *assignment) newUnseen(key int) int {
	a.unseen = append(a.unseen, key)
	return a.count() - 1
}

func (a *assignment) forgetUnseen() { a.unseen = a.unseen[:len(a.unseen)-1] }

// writes tells whether a node writes a key.
func (a *assignment) writes(node, key int) bool {
	switch {
	case node < a.initialNode():
		return a.all.has(node) && a.h.writes[node].has(key)
	case node == a.initialNode():
		return true
	default:
		return a.unseen[node-a.initialNode()-1] == key
	}
}

// through tells whether first leads from a node to some transaction, and second
// from that one on.
func (a *assignment) through(first []nodes, from int, second []nodes, to int) bool {
	for via := range a.h.txns {
		if first[from].has(via) && second[via].has(to) {
			return true
		}
	}
	return false
}

// axiomatic searches writers and a commit order.
func (h *history) axiomatic(x axiom) bool {
	for _, all := range h.choices() {
		h.take(all)
		a := &assignment{h: h, axiom: x, all: all, start: make([]record.Value, len(h.keys)),
			lists: make([][]listVersion, len(h.keys))}
		for key, k := range h.keys {
			switch initial := h.initialOf(key); {
			case h.appended.has(k):
			case initial == record.InitialAbsent:
				a.start[k], a.settled = record.Null, a.settled.with(k)
			case initial == record.InitialZero:
				a.start[k], a.settled = record.Int(0), a.settled.with(k)
			}
		}
		if a.collect() && a.orderLists(0) {
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
		own := map[string]record.Value{}     // what it wrote, with what it appended to that
		added := map[string][]record.Value{} // what it appended to what it found
		for j, op := range t.Ops {
			k := a.h.keys[op.Key]
			v, wrote := own[op.Key]
			switch {
			case isPredicate(&op):
				for _, key := range a.h.rows(&op) {
					if v, wrote := own[key]; wrote && !fits(&op, key, v) {
						return false
					} else if !wrote {
						a.reads = append(a.reads, externalRead{txn: i, op: j, key: a.h.keys[key], name: key, predicate: &op})
					}
				}
				for _, key := range written(&op) {
					own[key] = gave(&op)
				}
			case op.Kind == record.Write:
				own[op.Key] = op.Value
			case op.Kind == record.Append && wrote:
				own[op.Key] = appended(v, op.Value)
			case op.Kind == record.Append:
				added[op.Key] = append(added[op.Key], op.Value)
			case wrote && a.h.normal(k, v) != a.h.normal(k, op.Value):
				return false
			case !wrote:
				before := added[op.Key]
				a.reads = append(a.reads, externalRead{txn: i, op: j, key: k, name: op.Key, value: op.Value,
					added: before[:len(before):len(before)]})
			}
		}
	}
	return true
}

// orderLists tries every order of the versions of the lists, from the k-th key
// on, and then every writer for the reads.
func (a *assignment) orderLists(k int) bool {
	for k < len(a.lists) && !a.h.appended.has(k) {
		k++
	}
	if k == len(a.lists) {
		return a.choose(0)
	}
	var left set
	for t := range a.h.txns {
		if a.writes(t, k) {
			left = left.with(t)
		}
	}
	a.lists[k] = []listVersion{{value: record.Null, last: a.initialNode()}}
	return a.extendList(k, left)
}

// extendList tries every order in which the writers left may have followed.
func (a *assignment) extendList(k int, left set) bool {
	if left == 0 && a.readsFind(k) && a.orderLists(k+1) {
		return true
	}
	n := len(a.lists[k])
	now := a.lists[k][n-1]
	for t := range a.h.txns {
		if !left.has(t) {
			continue
		}
		a.lists[k] = append(a.lists[k][:n], a.after(now, k, t))
		if a.extendList(k, left&^(1<<t)) {
			return true
		}
	}
	for _, g := range a.h.grown[k] {
		if a.h.normal(k, now.value) != g.from {
			continue
		}
		u := a.newUnseen(k)
		next := listVersion{value: g.to, last: u, from: now.from}
		next.from.add(u)
		a.lists[k] = append(a.lists[k][:n], next)
		if a.extendList(k, left) {
			return true
		}
		a.forgetUnseen()
	}
	a.lists[k] = a.lists[k][:n]
	return false
}

// after is what transaction t makes of a version.
func (a *assignment) after(v listVersion, k, t int) listVersion {
	for _, op := range a.h.txns[t].Ops {
		switch {
		case isPredicate(&op) || a.h.keys[op.Key] != k || op.Kind == record.Read:
			continue
		case op.Kind == record.Write:
			v.value, v.from = op.Value, nodes{}
		case !hasElements(v.value): // nothing is left of others
			v.value, v.from = appended(v.value, op.Value), nodes{}
		default:
			v.value = appended(v.value, op.Value)
		}
		if hasElements(v.value) {
			v.from.add(t)
		}
	}
	v.last = t
	return v
}

func hasElements(v record.Value) bool { return v.Kind == record.KindList && v.Text != "[]" }

// readsFind tells whether every read of a list finds a version that it shows.
func (a *assignment) readsFind(k int) bool {
	for i := range a.reads {
		if a.reads[i].key != k {
			continue
		}
		found := false
		for _, v := range a.lists[k] {
			found = found || a.shows(&a.reads[i], v)
		}
		if !found {
			return false
		}
	}
	return true
}

// shows tells whether a read shows a version, and after it what its own
// transaction appended.
func (a *assignment) shows(r *externalRead, v listVersion) bool {
	value := v.value
	for _, e := range r.added {
		value = appended(value, e)
	}
	return v.last != r.txn && !v.from.has(r.txn) && a.h.normal(r.key, value) == a.h.normal(r.key, r.value)
}

// choose tries every writer for the reads from the i-th on.
func (a *assignment) choose(i int) bool {
	if !a.hasCommitOrder(a.reads[:i]) {
		return false // more reads only ask for more
	}
	if i == len(a.reads) {
		return true
	}
	r := &a.reads[i]
	if a.h.appended.has(r.key) {
		for _, v := range a.lists[r.key] {
			if a.shows(r, v) && a.readFrom(i, v.last, v.from) {
				return true
			}
		}
		return false
	}
	key := r.name
	for w := range a.h.txns {
		if w == r.txn || !a.all.has(w) {
			continue
		}
		if v, ok := a.h.lastWrite(w, key); ok && r.accepts(v) && a.readFrom(i, w, nodes{}) {
			return true
		}
	}
	return a.chooseInitial(i, key) || a.chooseUnseen(i, key)
}

// readFrom goes on with the i-th read being of what last wrote, and the others
// in from wrote parts of.
func (a *assignment) readFrom(i, last int, from nodes) bool {
	from.add(last)
	a.reads[i].last, a.reads[i].from = last, from
	return a.choose(i + 1)
}

// chooseInitial lets the i-th read be of the initial value.
func (a *assignment) chooseInitial(i int, key string) bool {
	r := &a.reads[i]
	stated := a.h.initialOf(key) != record.InitialAny
	if !stated && Made(a.h.txns, key, r.value) {
		return false
	}
	if a.settled.has(r.key) {
		return r.accepts(a.start[r.key]) && a.readFrom(i, a.initialNode(), nodes{})
	}
	a.settled, a.start[r.key] = a.settled.with(r.key), r.value
	if a.readFrom(i, a.initialNode(), nodes{}) {
		return true
	}
	a.settled &^= 1 << r.key
	return false
}

// chooseUnseen lets the i-th read be of what a transaction wrote that was not
// seen: the one that an earlier read of the key by this transaction was of, or a
// new one.
func (a *assignment) chooseUnseen(i int, key string) bool {
	r := &a.reads[i]
	if !a.h.partialOf(key) || !a.h.mayBeUnseen(key, r.value) {
		return false
	}
	for _, before := range a.reads[:i] {
		if before.txn == r.txn && before.key == r.key && before.value == r.value && before.last > a.initialNode() &&
			a.readFrom(i, before.last, nodes{}) {
			return true
		}
	}
	if a.readFrom(i, a.newUnseen(r.key), nodes{}) {
		return true
	}
	a.forgetUnseen()
	return false
}

// lastWrite is what remains of transaction t's writes to a key.
func (h *history) lastWrite(t int, key string) (v record.Value, ok bool) {
	for _, op := range h.txns[t].Ops {
		switch {
		case op.Kind == record.Write && op.Key == key:
			v, ok = op.Value, true
		case op.Kind == record.PredicateWrite && slices.Contains(hits(&op), key):
			v, ok = gave(&op), true
		}
	}
	return v, ok
}

// hasCommitOrder tells whether some total order keeps all that the axiom and
// the level ask for, given the writers of some reads; which is so exactly if
// these requirements have no cycle.
func (a *assignment) hasCommitOrder(chosen []externalRead) bool {
	a.chosen = chosen
	a.relate()
	commits := make([]nodes, a.count())
	copy(commits, a.precedes)
	for i := range commits {
		if i != a.initialNode() {
			commits[a.initialNode()].add(i)
		}
	}
	for k := range a.lists {
		for i := 1; i < len(a.lists[k]) && !a.axiom.anyListOrder; i++ {
			commits[a.lists[k][i-1].last].add(a.lists[k][i].last)
		}
	}
	for _, r := range a.chosen {
		for t2 := range commits {
			if t2 != r.last && t2 != r.txn && a.writes(t2, r.key) && a.axiom.visible(a, t2, r.txn, r.op) {
				commits[t2].add(r.last)
			}
		}
	}
	commits = closure(commits)
	for i := range commits {
		if commits[i].has(i) {
			return false
		}
	}
	return true
}

// relate sets the relations that the chosen writers make.
func (a *assignment) relate() {
	n := a.count()
	a.session, a.readBy, a.precedes = make([]nodes, n), make([]nodes, n), make([]nodes, n)
	before := a.h.before(false, false)
	for t := range a.h.txns {
		a.precedes[a.initialNode()].add(t)
		for s := range a.h.txns {
			if a.all.has(s) && a.all.has(t) && before[t].has(s) {
				a.session[s].add(t)
			}
		}
	}
	for _, r := range a.chosen {
		for w := range n {
			if r.from.has(w) {
				a.readBy[w].add(r.txn)
			}
		}
	}
	for i := range n {
		for w := range 2 {
			a.precedes[i][w] |= a.session[i][w] | a.readBy[i][w]
		}
	}
	a.reaches = closure(a.precedes)
}

// closure is the transitive closure of a relation.
func closure(r []nodes) []nodes {
	c := make([]nodes, len(r))
	copy(c, r)
	for k := range c {
		for i := range c {
			if c[i].has(k) {
				c[i][0] |= c[k][0]
				c[i][1] |= c[k][1]
			}
		}
	}
	return c
}

func axioms(x axiom) judge {
	return func(h *history) ([]verdict.Event, bool) { return nil, h.axiomatic(x) }
}
