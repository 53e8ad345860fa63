package name

import (
	"slices"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
)

func (k kinds) record(id verdict.TxnID) (*record.Transaction, bool) { return k.lookup.Find(id) }

// writes tells whether an operation writes its key.
func writes(op record.Op) bool { return op.Kind == record.Write || op.Kind == record.Append }

// readOf is the index of t's first read of key that returned what w wrote; -1
// if there is none.
func readOf(t *record.Transaction, key string, w *record.Transaction) int {
	return slices.IndexFunc(t.Ops, func(op record.Op) bool {
		return op.Kind == record.Read && op.Key == key && slices.ContainsFunc(w.Ops, func(o record.Op) bool {
			return o.Kind == record.Write && o.Key == key && o.Value == op.Value
		})
	})
}

// firstRead is the index of t's first read of key; -1 if there is none.
func firstRead(t *record.Transaction, key string) int {
	return slices.IndexFunc(t.Ops, func(op record.Op) bool { return op.Kind == record.Read && op.Key == key })
}

// lastOtherRead is the index of t's last read of key that returned something
// other than v; -1 if there is none.
func lastOtherRead(t *record.Transaction, key string, v record.Value) int {
	for i, op := range slices.Backward(t.Ops) {
		if op.Kind == record.Read && op.Key == key && op.Value != v {
			return i
		}
	}
	return -1
}

// readsOnly tells whether t writes nothing.
func readsOnly(t *record.Transaction) bool {
	return !slices.ContainsFunc(t.Ops, func(op record.Op) bool { return op.Kind != record.Read && op.Kind != record.PredicateRead })
}

// commonWrite tells whether two transactions write the same key.
func (k kinds) commonWrite(a, b verdict.TxnID) bool {
	t, ok := k.record(a)
	if !ok {
		return false
	}
	u, ok := k.record(b)
	if !ok {
		return false
	}
	return slices.ContainsFunc(t.Ops, func(op record.Op) bool {
		return writes(op) && slices.ContainsFunc(u.Ops, func(o record.Op) bool { return writes(o) && o.Key == op.Key })
	})
}

// Overwriters are the two transactions of a divergence that read one version
// and both overwrote it; false when the violation is no such.
func Overwriters(v verdict.Violation, lookup Lookup) (a, b verdict.TxnID, ok bool) {
	if v.Kind != verdict.Divergence || len(v.Txns) < 2 {
		return 0, 0, false
	}
	k := kinds{v: v, lookup: lookup}
	first, found := k.record(v.Txns[0])
	if found && v.Read >= 0 && v.Read < len(first.Ops) {
		for _, id := range v.Txns[1:] {
			t, ok := k.record(id)
			if !ok {
				continue
			}
			i := firstRead(t, v.Key)
			if i >= 0 && t.Ops[i].Value == first.Ops[v.Read].Value &&
				slices.ContainsFunc(t.Ops, func(op record.Op) bool { return writes(op) && op.Key == v.Key }) {
				return v.Txns[0], id, true
			}
		}
	}
	return v.Txns[0], v.Txns[1], true
}
