package explain

import (
	"fmt"
	"slices"

	"github.com/isowatch/isowatch/alerts/list"
	"github.com/isowatch/isowatch/alerts/name"
	"github.com/isowatch/isowatch/alerts/text"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/predicate"
	"github.com/isowatch/isowatch/ingest/record"
)

// teller tells of one violation.
type teller struct {
	v      verdict.Violation
	n      name.Name
	lookup name.Lookup
	found  Found
	read   int // the place of the read that it is about, or -1
	// runs are the orders that are asked for in a tree which stand for those of
	// later updates too.
	runs    map[question]bool
	writers *name.Writers
}

func newTeller(v verdict.Violation, n name.Name, lookup name.Lookup) teller {
	return teller{v: v, n: n, lookup: lookup, read: name.Read(v, lookup), runs: map[question]bool{},
		writers: name.NewWriters(v, lookup)}
}

func (t teller) record(id verdict.TxnID) (*record.Transaction, bool) { return t.lookup.Find(id) }

// txn is a transaction's id as shown.
func (t teller) txn(id verdict.TxnID) string {
	if id == verdict.NoTxn {
		return "a writer that was not recorded"
	}
	if r, ok := t.record(id); ok {
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

// written is the last write of key in a transaction.
func (t teller) written(id verdict.TxnID, key string) fact {
	f := fact{key: key}
	if r, ok := t.record(id); ok {
		for _, op := range r.Ops {
			if op.Key == key && op.Kind.Writes() {
				f.op, f.known = op, true
			}
		}
	}
	return f
}

// readFrom is the read of key in a transaction that returned what another
// wrote.
func (t teller) readFrom(id verdict.TxnID, key string, writer verdict.TxnID) fact {
	f := fact{key: key}
	r, ok := t.record(id)
	w, found := t.record(writer)
	if !ok || !found {
		return t.readNotOf(id, key, writer)
	}
	for _, op := range r.Ops {
		if op.Key == key && name.Shows(op, w) {
			return fact{key: key, op: op, known: true}
		}
	}
	return f
}

// readNotOf is the last read of key in a transaction, before it wrote the key
// itself, that did not return what another wrote, or if there is none any, as others may have written the same; if
// there is none, and the key is a list, the last one after it had appended to it.
func (t teller) readNotOf(id verdict.TxnID, key string, writer verdict.TxnID) fact {
	f := fact{key: key}
	r, ok := t.record(id)
	if !ok {
		return f
	}
	w, found := t.record(writer)
	own := false
	last := t.written(writer, key)
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
func (t teller) lastPlace(id verdict.TxnID, f fact) int {
	if r, ok := t.record(id); ok && f.known {
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
func (t teller) writer(f fact) (verdict.TxnID, bool) {
	if !f.known {
		return 0, false
	}
	var found []verdict.TxnID
	es, isList := list.Elements(f.op.Value)
	for _, id := range slices.Concat(t.v.Txns, t.v.Evidence) {
		w, ok := t.record(id)
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

// whose says who wrote what a read returned, if that is known.
func (t teller) whose(f fact) string {
	id, ok := t.writer(f)
	if !ok || f.own {
		return ""
	}
	if len(t.appendsOf(id, f.key)) > 0 {
		return ", to which " + t.txn(id) + " appended last"
	}
	return ", which " + t.txn(id) + " wrote"
}
