package name

import (
	"slices"
	"sync"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
)

// Writers are the transactions of a violation that may have committed, by what others could
// read of them: the last value that each wrote to a key, and the elements that it appended.
type Writers struct {
	v      verdict.Violation
	lookup Lookup
	once   sync.Once // the records are looked at when somebody asks
	of     map[record.Op][]verdict.TxnID
}

// NewWriters are those of a violation.
func NewWriters(v verdict.Violation, lookup Lookup) *Writers { return &Writers{v: v, lookup: lookup} }

// Of are those that left a key with what a read of it returned, but for its reader, in order; of an append those that
// appended the same.
func (w *Writers) Of(what record.Op, reader verdict.TxnID) []verdict.TxnID {
	w.once.Do(w.index)
	return slices.DeleteFunc(slices.Clone(w.of[what]), func(id verdict.TxnID) bool { return id == reader })
}

func (w *Writers) index() {
	w.of = map[record.Op][]verdict.TxnID{}
	ids := slices.Concat(w.v.Txns, w.v.Evidence)
	slices.Sort(ids)
	for _, id := range slices.Compact(ids) {
		t, ok := w.lookup.Find(id)
		if !ok || t.Status == record.Aborted {
			continue
		}
		left := map[record.Op]bool{}
		last := map[string]record.Value{}
		for _, op := range t.Ops {
			switch op.Kind {
			case record.Write:
				last[op.Key] = op.Value
			case record.Append:
				left[op] = true
			}
		}
		for key, value := range last {
			left[record.Op{Key: key, Value: value}] = true
		}
		for what := range left {
			w.of[what] = append(w.of[what], id)
		}
	}
}
