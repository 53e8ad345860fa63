package alerttest

import (
	"slices"

	"github.com/isowatch/isowatch/alerts/list"
	"github.com/isowatch/isowatch/ingest/record"
)

// Judges of long lists, one anomaly each, for what the oracle would take years
// to judge. All of them want to see that the key is a list.

// Disagree tells whether two reads of a list are such that neither is a prefix
// of the other.
func Disagree(txns []record.Transaction) bool {
	for key, reads := range lists(txns) {
		for _, a := range reads {
			for _, b := range reads {
				if isList(txns, key) && list.Common(a, b) < min(len(a), len(b)) {
					return true
				}
			}
		}
	}
	return false
}

// Doubled tells whether a read of a list holds an element twice that was
// appended once.
func Doubled(txns []record.Transaction) bool {
	for key, reads := range lists(txns) {
		for _, es := range reads {
			if e, n := list.Repeated(es); n > 1 && n > times(txns, key, e) && times(txns, key, e) > 0 {
				return true
			}
		}
	}
	return false
}

// Missed tells whether a transaction read a list without what an earlier one of
// its session had appended to it.
func Missed(txns []record.Transaction) bool {
	for i := range txns {
		for j := range i {
			if txns[i].Session != txns[j].Session {
				continue
			}
			for _, w := range txns[j].Ops {
				for _, r := range txns[i].Ops {
					if w.Kind == record.Append && r.Kind == record.Read && w.Key == r.Key && list.Place(r.Value, w.Value) < 0 {
						return true
					}
				}
			}
		}
	}
	return false
}

func lists(txns []record.Transaction) map[string][][]record.Value {
	out := map[string][][]record.Value{}
	for i := range txns {
		for _, op := range txns[i].Ops {
			if es, ok := list.Elements(op.Value); ok && op.Kind == record.Read {
				out[op.Key] = append(out[op.Key], es)
			}
		}
	}
	return out
}

func isList(txns []record.Transaction, key string) bool {
	return slices.ContainsFunc(txns, func(t record.Transaction) bool { return len(list.Appended(t.Ops, key)) > 0 })
}

// times is how often an element is appended to a key.
func times(txns []record.Transaction, key string, e record.Value) int {
	n := 0
	for i := range txns {
		for _, op := range txns[i].Ops {
			if op.Kind == record.Append && op.Key == key && op.Value == e {
				n++
			}
		}
	}
	return n
}
