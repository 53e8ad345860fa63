package explain

import (
	"fmt"
	"iter"
	"slices"

	"github.com/isowatch/isowatch/alerts/list"
	"github.com/isowatch/isowatch/alerts/name"
	"github.com/isowatch/isowatch/alerts/text"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/predicate"
	"github.com/isowatch/isowatch/ingest/record"
)

// records answer what is asked of the records of a violation: what was read, and written, and by whom.
type records struct {
	v       verdict.Violation
	lookup  name.Lookup
	read    int // the place of the read that it is about, or -1
	writers *name.Writers
}

func newRecords(v verdict.Violation, lookup name.Lookup) records {
	return records{v: v, lookup: lookup, read: name.Read(v, lookup), writers: name.NewWriters(v, lookup)}
}

func (rs records) record(id verdict.TxnID) (*record.Transaction, bool) { return rs.lookup.Find(id) }

// written is the last write of key in a transaction.
func (rs records) written(id verdict.TxnID, key string) fact {
	f := fact{key: key}
	if r, ok := rs.record(id); ok {
		if at := name.LastWrite(r, key); at >= 0 {
			f.op, f.known = r.Ops[at], true
		}
	}
	return f
}

// readFrom is the read of key in a transaction that returned what another
// wrote.
func (rs records) readFrom(id verdict.TxnID, key string, writer verdict.TxnID) fact {
	f := fact{key: key}
	r, ok := rs.record(id)
	w, found := rs.record(writer)
	if !ok || !found {
		return rs.readNotOf(id, key, writer)
	}
	if at := name.ReadOf(r, key, w); at >= 0 {
		f.op, f.known = r.Ops[at], true
	}
	return f
}

// readNotOf is the last read of key in a transaction, before it wrote the key
// itself, that did not return what another wrote, or if there is none any, as others may have written the same; if
// there is none, and the key is a list, the last one after it had appended to it.
func (rs records) readNotOf(id verdict.TxnID, key string, writer verdict.TxnID) fact {
	f := fact{key: key}
	r, ok := rs.record(id)
	if !ok {
		return f
	}
	w, found := rs.record(writer)
	own := false
	last := rs.written(writer, key)
	for _, op := range r.Ops {
		switch {
		case op.Key != key:
		case op.Kind == record.Append && !f.known:
			own = true
		case op.Kind.Writes():
			return f
		case op.Kind == record.Read && !(found && name.Shows(op, w)):
			f.op, f.known, f.own = op, true, own
		case op.Kind == record.Read && !f.known && last.known && last.op.Kind == record.Write && !own:
			f.op, f.known = op, true // it may be the middle of that one, or the same from elsewhere
		}
	}
	return f
}

// lastPlace is where a transaction last did what a fact is about; -1 where that is not known.
func (rs records) lastPlace(id verdict.TxnID, f fact) int {
	if r, ok := rs.record(id); ok && f.known {
		for i, op := range slices.Backward(r.Ops) {
			if op == f.op {
				return i
			}
		}
	}
	return -1
}

// writer finds, among the transactions of the violation, who wrote what a read
// returned; false where several may have. Of a list it is who appended its last
// element.
func (rs records) writer(f fact) (verdict.TxnID, bool) {
	if !f.known {
		return 0, false
	}
	var found []verdict.TxnID
	es, isList := list.Elements(f.op.Value)
	for _, id := range slices.Concat(rs.v.Txns, rs.v.Evidence) {
		w, ok := rs.record(id)
		if !ok || slices.Contains(found, id) {
			continue
		}
		if slices.ContainsFunc(w.Ops, func(op record.Op) bool {
			return op.Key == f.key && (op.Kind == record.Write && op.Value == f.op.Value ||
				op.Kind == record.Append && isList && len(es) > 0 && op.Value == es[len(es)-1])
		}) {
			found = append(found, id)
		}
	}
	if len(found) != 1 {
		return 0, false
	}
	return found[0], true
}

// appendsOf are the elements that a transaction appends to key.
func (rs records) appendsOf(id verdict.TxnID, key string) []record.Value {
	if r, ok := rs.record(id); ok {
		return list.Appended(r.Ops, key)
	}
	return nil
}

// lists are what was read of a list, and by whom. The transactions that take part are asked first.
func (rs records) lists(key string) iter.Seq2[verdict.TxnID, []record.Value] {
	return func(yield func(verdict.TxnID, []record.Value) bool) {
		for _, id := range slices.Concat(rs.v.Txns, rs.v.Evidence) {
			r, ok := rs.record(id)
			if !ok || r.Status == record.Aborted {
				continue
			}
			for _, op := range r.Ops {
				if op.Kind != record.Read || op.Key != key {
					continue
				}
				if es, ok := list.Elements(op.Value); ok && !yield(id, es) {
					return
				}
			}
		}
	}
}

// listsOf are the lists that a transaction read of the violation's key, the one
// that the violation is about first.
func (rs records) listsOf(id verdict.TxnID) [][]record.Value {
	r, ok := rs.record(id)
	if !ok {
		return nil
	}
	var out [][]record.Value
	for i, op := range r.Ops {
		if es, ok := list.Elements(op.Value); ok && op.Kind == record.Read && op.Key == rs.v.Key {
			if id == rs.v.Txns[0] && i == rs.read {
				out = slices.Insert(out, 0, es)
			} else {
				out = append(out, es)
			}
		}
	}
	return out
}

// appenders are the transactions of the evidence that append an element to the
// violation's key, and how often they do.
func (rs records) appenders(e record.Value) (ids []verdict.TxnID, times int) {
	all := slices.Concat(rs.v.Txns, rs.v.Evidence)
	slices.Sort(all)
	for _, id := range slices.Compact(all) {
		n := 0
		for _, own := range rs.appendsOf(id, rs.v.Key) {
			if own == e {
				n++
			}
		}
		if n > 0 {
			ids = append(ids, id)
			times += n
		}
	}
	return ids, times
}

// committedBefore tells whether, by the recorded times, one transaction had ended when another began.
func (rs records) committedBefore(a, b verdict.TxnID) bool {
	x, known := rs.record(a)
	y, found := rs.record(b)
	return known && found && x.HasTimes && y.HasTimes && x.End < y.Start
}

// initialReader is another transaction of the evidence that read the key, and
// what it read.
func (rs records) initialReader(read fact) (verdict.TxnID, fact) {
	for _, id := range rs.v.Evidence {
		if id == rs.v.Txns[0] {
			continue
		}
		if f := rs.readNotOf(id, read.key, verdict.NoTxn); f.known && f.op.Value != read.op.Value {
			return id, f
		}
	}
	return 0, fact{}
}

// lastBefore is the last operation on the violation's key before the read that it is about that is of some kinds.
func (rs records) lastBefore(is func(record.OpKind) bool) fact {
	f := fact{key: rs.v.Key}
	r, ok := rs.record(rs.v.Txns[0])
	for i := 0; ok && i < rs.read; i++ {
		if op := r.Ops[i]; op.Key == rs.v.Key && is(op.Kind) {
			f.op, f.known = op, true
		}
	}
	return f
}

// ownBefore are the elements that the reader of the violation had appended to its key when
// it read.
func (rs records) ownBefore() []record.Value {
	if r, ok := rs.record(rs.v.Txns[0]); ok {
		return list.Appended(r.Ops[:max(rs.read, 0)], rs.v.Key)
	}
	return nil
}

// effect finds who read what a transaction wrote, and of which key, so that it took effect: by a step of some cycles, or
// by a read, in the evidence, of something that nobody else there wrote.
func (rs records) effect(id verdict.TxnID, cycles [][]verdict.Edge) (reader verdict.TxnID, key string, ok bool) {
	for _, e := range slices.Concat(cycles...) {
		if e.Type == verdict.WR && e.From == id && e.Why != verdict.ByCase {
			return e.To, e.Key, true
		}
	}
	w, _ := rs.record(id)
	for _, other := range rs.v.Evidence {
		r, ok := rs.record(other)
		if !ok || other == id || r.Status != record.Committed {
			continue
		}
		for _, op := range r.Ops {
			if name.Shows(op, w) && slices.Equal(rs.writersOf(op, other), []verdict.TxnID{id}) {
				return other, op.Key, true
			}
		}
	}
	return 0, "", false
}

// writersOf are the transactions of the violation, other than the reader, that
// a read may be of, sorted: those whose last write of the key it returned, or
// who appended the last element of the list, and who may have committed.
func (rs records) writersOf(read record.Op, reader verdict.TxnID) []verdict.TxnID {
	ids := rs.writers.Of(read, reader)
	if es, ok := list.Elements(read.Value); ok && len(es) > 0 {
		ids = append(ids, rs.writers.Of(record.Op{Kind: record.Append, Key: read.Key, Value: es[len(es)-1]}, reader)...)
	}
	return ids
}

// choiceOf is the read of key whose writer is asked for; false if there is none,
// or its value may be the initial one, whose writer nobody is.
func (rs records) choiceOf(reader verdict.TxnID, key string) (record.Op, bool) {
	f := rs.readNotOf(reader, key, verdict.NoTxn)
	return f.op, f.known && !f.op.Value.IsNull() && f.op.Value != record.Int(0)
}

// maybeInitial: of a case, an anti-dependency takes what was read for the initial version,
// and somebody wrote the same.
func (rs records) maybeInitial(e verdict.Edge) bool {
	if len(rs.v.Cases) == 0 || e.Type != verdict.RW || e.Why != verdict.ByInitial {
		return false
	}
	f := rs.readNotOf(e.From, e.Key, e.To)
	return f.known && !f.own && len(rs.writersOf(f.op, e.From)) > 0
}

// initialElsewhere tells whether a case takes what was read for the initial version, though
// somebody wrote the same: then that it is somebody's is only supposed, too.
func (rs records) initialElsewhere(reader verdict.TxnID, read fact) bool {
	return slices.ContainsFunc(slices.Concat(rs.v.Cases...), func(e verdict.Edge) bool {
		return e.From == reader && e.Key == read.key && rs.maybeInitial(e) &&
			rs.readNotOf(reader, e.Key, e.To).op.Value == read.op.Value
	})
}

// presumed is the read that an inferred anti-dependency of a case takes for granted, where
// several may have written what was read and no other step of the cycle says whose it is:
// weak levels infer the order behind the version of one of them.
func (rs records) presumed(c []verdict.Edge, e verdict.Edge) (verdict.Edge, bool) {
	if len(rs.v.Cases) == 0 || e.Type != verdict.RW || e.Why != verdict.ByOrder {
		return verdict.Edge{}, false
	}
	s, ok := name.Supposed(e)
	if !ok || s.Type != verdict.WW || s.From != e.To {
		return verdict.Edge{}, false
	}
	w := verdict.Edge{From: s.To, To: e.From, Type: verdict.WR, Key: e.Key, Why: verdict.ByCase}
	f := rs.readFrom(e.From, e.Key, s.To)
	if !f.known || len(rs.writersOf(f.op, e.From)) < 2 {
		return verdict.Edge{}, false
	}
	if said, ok := supposed(c, e.From, e.Key); ok && rs.readFrom(e.From, e.Key, said.From).op.Value == f.op.Value {
		return verdict.Edge{}, false
	}
	return w, true
}

// source is who wrote the version that an anti-dependency's reader read: as the
// cycle supposes, or the only one who can have.
func (rs records) source(c []verdict.Edge, e verdict.Edge) (verdict.TxnID, bool) {
	if w, ok := supposed(c, e.From, e.Key); ok {
		return w.From, true
	}
	op, ok := rs.choiceOf(e.From, e.Key)
	if !ok {
		return 0, false
	}
	if es, isList := list.Elements(op.Value); isList && len(es) > 0 {
		return rs.writer(fact{key: e.Key, op: op, known: true})
	}
	ws := rs.writersOf(op, e.From)
	if len(ws) != 1 {
		return 0, false
	}
	return ws[0], true
}

// hasRuns tells whether the level has the rule that updates follow each other
// without a gap.
func (rs records) hasRuns() bool { return rs.v.Level.Implies(verdict.SI) || rs.v.Level == verdict.LIN }

// runOf is the transaction with which the run of updates of key that id is part
// of begins.
func (rs records) runOf(key string, id verdict.TxnID) verdict.TxnID {
	if !rs.hasRuns() {
		return id
	}
	for range runMax {
		op, ok := rs.choiceOf(id, key)
		if !ok || !rs.written(id, key).known {
			return id
		}
		ws := rs.writersOf(op, id)
		if len(ws) != 1 {
			return id
		}
		id = ws[0]
	}
	return id
}

// incompatible are two reads of a list of which neither is a prefix of the other.
type incompatible struct {
	a, b        verdict.TxnID
	left, right []record.Value
	at          int // where they differ
	known       bool
}

func (rs records) incompatible() incompatible {
	if len(rs.v.Txns) < 2 {
		return incompatible{}
	}
	out := incompatible{a: rs.v.Txns[0], b: rs.v.Txns[1]}
	for _, l := range rs.listsOf(out.a) {
		for _, r := range rs.listsOf(out.b) {
			if n := list.Common(l, r); n < min(len(l), len(r)) && !out.known {
				out.left, out.right, out.at, out.known = l, r, n, true
			}
		}
	}
	return out
}

// txn is a transaction's id as shown.
func (rs records) txn(id verdict.TxnID) string {
	if id == verdict.NoTxn {
		return "a writer that was not recorded"
	}
	if r, ok := rs.record(id); ok {
		return text.Name(r.ID)
	}
	return fmt.Sprintf("#%d (not kept)", id)
}

// fact is one operation as shown; the zero fact shows the key alone.
type fact struct {
	key   string
	op    record.Op
	known bool
	own   bool // of a list, after the reader had appended to it itself
}

// String is "x = 5", or "x" where the value is not known; of a register of a predicate "t:1 matching v == 2".
func (f fact) String() string {
	if !f.known {
		return text.Name(f.key)
	}
	if row, ok := text.Row(f.key, f.op.Value); ok {
		return row
	}
	if es, ok := list.Elements(f.op.Value); ok && f.op.Kind == record.Read && len(es) > 0 {
		return text.Name(f.key) + " = " + text.List(es, len(es)-1)
	}
	return text.Name(f.key) + " = " + text.Value(f.op.Value)
}

// value is "5", or "another value" where it is not known.
func (f fact) value() string {
	if !f.known {
		return "another value"
	}
	if _, _, is := predicate.Register(f.key); is && f.op.Value.IsNull() {
		return "not matching"
	} else if is {
		return "matching"
	}
	return text.Value(f.op.Value)
}

// did is the verb of a write with its object: "wrote x = 5", "appended 5 to x",
// "deleted x".
func (f fact) did() string {
	switch {
	case !f.known:
		return "wrote " + text.Name(f.key)
	case predicate.IsRegister(f.key):
		return "left " + f.String()
	case f.op.Kind == record.Append:
		return "appended " + text.Value(f.op.Value) + " to " + text.Name(f.key)
	case f.op.Value.IsNull():
		return "deleted " + text.Name(f.key)
	}
	return "wrote " + f.String()
}

// overwrote is the rest of a sentence about a version: "overwrote with 5",
// "deleted", "appended 5 to".
func (f fact) overwrote() string {
	switch {
	case !f.known:
		return "overwrote"
	case predicate.IsRegister(f.key):
		return "changed"
	case f.op.Kind == record.Append:
		return "appended " + text.Value(f.op.Value) + " to"
	case f.op.Value.IsNull():
		return "deleted"
	}
	return "overwrote with " + text.Value(f.op.Value)
}
