package explain

import (
	"fmt"

	"github.com/isowatch/isowatch/alerts/name"
	"github.com/isowatch/isowatch/alerts/text"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
)

// teller tells of one violation.
type teller struct {
	v      verdict.Violation
	n      name.Name
	lookup name.Lookup
	read   int // the place of the read that it is about, or -1
}

func newTeller(v verdict.Violation, n name.Name, lookup name.Lookup) teller {
	return teller{v: v, n: n, lookup: lookup, read: name.Read(v, lookup)}
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
}

// String is "x = 5", or "x" where the value is not known.
func (f fact) String() string {
	if !f.known {
		return text.Name(f.key)
	}
	return text.Name(f.key) + " = " + text.Value(f.op.Value)
}

// value is "5", or "another value" where it is not known.
func (f fact) value() string {
	if !f.known {
		return "another value"
	}
	return text.Value(f.op.Value)
}

// did is the verb of a write with its object: "wrote x = 5", "appended 5 to x",
// "deleted x".
func (f fact) did() string {
	switch {
	case !f.known:
		return "wrote " + text.Name(f.key)
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
			if op.Key == key && writes(op) {
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
	lists := false
	for _, op := range w.Ops {
		lists = lists || op.Kind == record.Append && op.Key == key
	}
	for _, op := range r.Ops {
		if op.Kind == record.Read && op.Key == key && (lists || wrote(w, op)) {
			return fact{key: key, op: op, known: true}
		}
	}
	return f
}

// readNotOf is the last read of key in a transaction, before it wrote the key
// itself, that did not return what another wrote.
func (t teller) readNotOf(id verdict.TxnID, key string, writer verdict.TxnID) fact {
	f := fact{key: key}
	r, ok := t.record(id)
	if !ok {
		return f
	}
	w, found := t.record(writer)
	for _, op := range r.Ops {
		if op.Key == key && writes(op) {
			break
		}
		if op.Kind == record.Read && op.Key == key && !(found && wrote(w, op)) {
			f.op, f.known = op, true
		}
	}
	return f
}

// writer finds, among the transactions of the violation, who wrote what a read
// returned.
func (t teller) writer(f fact) (verdict.TxnID, bool) {
	if !f.known {
		return 0, false
	}
	for _, ids := range [][]verdict.TxnID{t.v.Txns, t.v.Evidence} {
		for _, id := range ids {
			if w, ok := t.record(id); ok && wrote(w, f.op) {
				return id, true
			}
		}
	}
	return 0, false
}

func writes(op record.Op) bool { return op.Kind == record.Write || op.Kind == record.Append }

// wrote tells whether a transaction writes exactly what a read returned.
func wrote(w *record.Transaction, read record.Op) bool {
	for _, op := range w.Ops {
		if op.Kind == record.Write && op.Key == read.Key && op.Value == read.Value {
			return true
		}
	}
	return false
}
