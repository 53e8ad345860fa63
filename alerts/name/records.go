package name

import (
	"slices"

	"github.com/isowatch/isowatch/alerts/list"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
)

func (k kinds) record(id verdict.TxnID) (*record.Transaction, bool) { return k.lookup.Find(id) }

// shows tells whether a read shows a write: it returned its value, or a list
// that holds the element that it appended.
func shows(read, write record.Op) bool {
	switch {
	case read.Kind != record.Read || read.Key != write.Key:
		return false
	case write.Kind == record.Append:
		return list.Place(read.Value, write.Value) >= 0
	}
	return write.Kind == record.Write && read.Value == write.Value
}

// Shows tells whether a read shows a write of a transaction.
func Shows(read record.Op, w *record.Transaction) bool {
	return slices.ContainsFunc(w.Ops, func(o record.Op) bool { return shows(read, o) })
}

// ReadOf is the index of t's first read of key that shows what w wrote; -1 if
// there is none.
func ReadOf(t *record.Transaction, key string, w *record.Transaction) int {
	return slices.IndexFunc(t.Ops, func(op record.Op) bool { return op.Key == key && Shows(op, w) })
}

// FirstRead is the index of t's first read of key; -1 if there is none.
func FirstRead(t *record.Transaction, key string) int {
	return slices.IndexFunc(t.Ops, func(op record.Op) bool { return op.Kind == record.Read && op.Key == key })
}

// LastWrite is the index of t's last write of key; -1 if there is none.
func LastWrite(t *record.Transaction, key string) int {
	for i, op := range slices.Backward(t.Ops) {
		if op.Key == key && op.Kind.Writes() {
			return i
		}
	}
	return -1
}

// lastOtherRead is the index of t's last read of key that shows nothing of what
// w wrote; -1 if there is none.
func lastOtherRead(t *record.Transaction, key string, w *record.Transaction) int {
	for i, op := range slices.Backward(t.Ops) {
		if op.Kind == record.Read && op.Key == key && !Shows(op, w) {
			return i
		}
	}
	return -1
}

// readsOnly tells whether t writes nothing.
func readsOnly(t *record.Transaction) bool {
	return !slices.ContainsFunc(t.Ops, func(op record.Op) bool {
		return op.Kind != record.Read &&
			op.Kind != record.PredicateRead
	})
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
		return op.Kind.Writes() && slices.ContainsFunc(u.Ops,
			func(o record.Op) bool { return o.Kind.Writes() && o.Key == op.Key })
	})
}

// Read is the place, in the first transaction of a violation, of the read that
// it is about: as the violation says, or found in the records. -1 when it is
// about no read of one transaction, or there is no record.
func Read(v verdict.Violation, lookup Lookup) int {
	if len(v.Txns) == 0 || v.Kind == verdict.Cycle || v.Kind == verdict.Unsatisfiable {
		return -1
	}
	t, ok := lookup.Find(v.Txns[0])
	switch {
	case !ok:
		return -1
	case v.Read >= 0 && v.Read < len(t.Ops):
		return v.Read
	}
	offends := offending(v, lookup)
	var own []record.Op // earlier writes of the key
	first := -1         // the first read of it
	for i, op := range t.Ops {
		if op.Key != v.Key {
			continue
		}
		if op.Kind.Writes() {
			own = append(own, op)
			continue
		}
		if op.Kind != record.Read {
			continue
		}
		if offends(i, op, own, first) {
			return i
		}
		if first < 0 {
			first = i
		}
	}
	return -1
}

// offending tells of a read of the key in the first transaction whether it is the
// one. It is given the transaction's own writes of the key before it, and the
// place of its first read of the key.
func offending(v verdict.Violation, lookup Lookup) func(i int, op record.Op, own []record.Op, first int) bool {
	t, _ := lookup.Find(v.Txns[0])
	wrote := func(ids []verdict.TxnID, op record.Op) bool {
		return slices.ContainsFunc(ids, func(id verdict.TxnID) bool {
			w, ok := lookup.Find(id)
			return ok && id != v.Txns[0] && Shows(op, w)
		})
	}
	switch v.Kind {
	case verdict.ThinAirRead:
		return func(_ int, op record.Op, own []record.Op, _ int) bool {
			if es, ok := list.Elements(op.Value); ok && len(es) > 0 && lists(v, lookup) {
				return len(nobodys(v, lookup, es)) > 0
			}
			return len(own) == 0 && !wrote(v.Evidence, op)
		}
	case verdict.IntermediateRead:
		half := func(op record.Op) bool {
			return slices.ContainsFunc(v.Txns[1:], func(id verdict.TxnID) bool {
				w, ok := lookup.Find(id)
				return ok && id != v.Txns[0] && Shows(op, w) && !finished(op, w)
			})
		}
		some := slices.ContainsFunc(t.Ops, func(op record.Op) bool { return op.Key == v.Key && half(op) })
		return func(_ int, op record.Op, own []record.Op, _ int) bool {
			return len(own) == 0 && (half(op) || !some && wrote(v.Txns[1:], op))
		}
	case verdict.AbortedRead:
		return func(_ int, op record.Op, own []record.Op, _ int) bool { return len(own) == 0 && wrote(v.Txns[1:], op) }
	case verdict.FutureRead:
		return func(i int, op record.Op, own []record.Op, _ int) bool {
			return len(own) == 0 && slices.ContainsFunc(t.Ops[i:], func(o record.Op) bool { return shows(op, o) })
		}
	case verdict.NotMyLastWrite, verdict.NotMyOwnWrite:
		return func(_ int, op record.Op, own []record.Op, _ int) bool {
			if len(own) == 0 {
				return false
			}
			last := own[len(own)-1]
			if last.Kind == record.Append {
				es, _ := list.Elements(op.Value)
				return len(es) == 0 || es[len(es)-1] != last.Value
			}
			return last.Value != op.Value
		}
	case verdict.NonRepeatableRead:
		return func(_ int, op record.Op, own []record.Op, first int) bool {
			return len(own) == 0 && first >= 0 && t.Ops[first].Value != op.Value
		}
	case verdict.IncompatibleOrder:
		clashes := func(i int, clear bool) bool {
			return slices.ContainsFunc(v.Txns[1:],
				func(id verdict.TxnID) bool { return disagrees(t, i, v.Key, id, clear, lookup) })
		}
		torn := func(i int) bool {
			return slices.ContainsFunc(v.Txns[1:], func(id verdict.TxnID) bool { return outOfOrder(t, i, id, lookup) })
		}
		for _, is := range []func(int) bool{func(i int) bool { return clashes(i, true) }, torn} {
			if slices.ContainsFunc(places(t, v.Key), is) {
				return func(i int, _ record.Op, _ []record.Op, _ int) bool { return is(i) }
			}
		}
		return func(i int, _ record.Op, _ []record.Op, _ int) bool { return clashes(i, false) }
	case verdict.DuplicateElements:
		return func(_ int, op record.Op, _ []record.Op, _ int) bool {
			es, _ := list.Elements(op.Value)
			return twice(es)
		}
	}
	return func(_ int, _ record.Op, own []record.Op, _ int) bool { return len(own) == 0 }
}

// finished tells whether a read shows the key as a transaction left it: its last
// write, or all that it appended.
func finished(read record.Op, w *record.Transaction) bool {
	done := true
	for _, o := range w.Ops {
		if o.Key != read.Key || !o.Kind.Writes() {
			continue
		}
		if o.Kind == record.Append {
			done = done && shows(read, o)
		} else {
			done = shows(read, o)
		}
	}
	return done
}

// disagrees tells whether a transaction read a list of key such that neither it
// nor what t read at place i begins with the other. With clear set only lists that
// hold nothing twice count, and of these what others appended: what a transaction
// itself appends comes, to it, right after what it saw.
func disagrees(t *record.Transaction, i int, key string, id verdict.TxnID, clear bool, lookup Lookup) bool {
	w, ok := lookup.Find(id)
	if !ok {
		return false
	}
	es := elements(t, i, clear)
	return slices.ContainsFunc(places(w, key), func(j int) bool {
		other := elements(w, j, clear)
		return !(clear && (twice(es) || twice(other))) && list.Common(es, other) < min(len(es), len(other))
	})
}

// outOfOrder tells whether the first element of a transaction in the list that t read at
// place i is not the first one that it appended.
func outOfOrder(t *record.Transaction, i int, id verdict.TxnID, lookup Lookup) bool {
	w, ok := lookup.Find(id)
	if !ok {
		return false
	}
	own := list.Appended(w.Ops, t.Ops[i].Key)
	es := elements(t, i, true)
	at := slices.IndexFunc(es, func(e record.Value) bool { return slices.Contains(own, e) })
	return at >= 0 && es[at] != own[0]
}

// twice tells whether a list holds an element more than once.
func twice(es []record.Value) bool {
	_, times := list.Repeated(es)
	return times > 0
}

// places are where t reads a key.
func places(t *record.Transaction, key string) []int {
	var out []int
	for i, op := range t.Ops {
		if op.Kind == record.Read && op.Key == key {
			out = append(out, i)
		}
	}
	return out
}

// elements are those of the list that t read at place i, with others set without
// those at its end that t had appended itself by then.
func elements(t *record.Transaction, i int, others bool) []record.Value {
	es, _ := list.Elements(t.Ops[i].Value)
	if !others {
		return es
	}
	own := list.Appended(t.Ops[:i], t.Ops[i].Key)
	if n := len(es) - len(own); n >= 0 && slices.Equal(es[n:], own) {
		es = es[:n]
	}
	return es
}

// lists tells whether somebody in the evidence appends to the violation's key.
func lists(v verdict.Violation, lookup Lookup) bool {
	return slices.ContainsFunc(v.Evidence, func(id verdict.TxnID) bool {
		w, ok := lookup.Find(id)
		return ok && len(list.Appended(w.Ops, v.Key)) > 0
	})
}

// nobodys are the elements, of a list of the violation's key, that nobody in the
// evidence appends.
func nobodys(v verdict.Violation, lookup Lookup, es []record.Value) []record.Value {
	appended := map[record.Value]bool{}
	for _, id := range v.Evidence {
		if w, ok := lookup.Find(id); ok {
			for _, e := range list.Appended(w.Ops, v.Key) {
				appended[e] = true
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(es), func(e record.Value) bool { return appended[e] })
}

// Repeated is, of a violation that is called non-repeatable reads, the reader and
// the key, if its record shows two values of that; false of any other.
func Repeated(v verdict.Violation, n Name, lookup Lookup) (reader verdict.TxnID, key string, ok bool) {
	switch {
	case v.Kind == verdict.NonRepeatableRead && len(v.Txns) > 0:
		reader, key = v.Txns[0], v.Key
	case v.Kind == verdict.Cycle && n.Shape() == intra[verdict.NonRepeatableRead].name:
		at := slices.IndexFunc(v.Cycle, func(e verdict.Edge) bool { return e.Type == verdict.RW })
		if at < 0 { // it shows in the reasons of its edges
			return 0, "", false
		}
		reader, key = v.Cycle[at].From, v.Cycle[at].Key
	default:
		return 0, "", false
	}
	t, found := lookup.Find(reader)
	if !found {
		return 0, "", false
	}
	first := FirstRead(t, key)
	return reader, key, slices.ContainsFunc(t.Ops, func(op record.Op) bool {
		return op.Kind == record.Read && op.Key == key && op.Value != t.Ops[first].Value
	})
}

// Foreign are the elements of a list of the violation's key that nobody in the
// evidence appends, and whether the key is a list at all.
func Foreign(v verdict.Violation, lookup Lookup, value record.Value) ([]record.Value, bool) {
	es, ok := list.Elements(value)
	if !ok || !lists(v, lookup) {
		return nil, false
	}
	return nobodys(v, lookup, es), true
}

// Overwriters are the two transactions of a divergence that read one version
// and both overwrote it; false when the violation is no such.
func Overwriters(v verdict.Violation, lookup Lookup) (a, b verdict.TxnID, ok bool) {
	if v.Kind != verdict.Divergence || len(v.Txns) < 2 {
		return 0, 0, false
	}
	at := Read(v, lookup)
	if at < 0 {
		return v.Txns[0], v.Txns[1], true
	}
	first, _ := lookup.Find(v.Txns[0])
	for _, id := range v.Txns[1:] {
		t, ok := lookup.Find(id)
		if !ok {
			continue
		}
		i := FirstRead(t, v.Key)
		if i >= 0 && t.Ops[i].Value == first.Ops[at].Value &&
			slices.ContainsFunc(t.Ops, func(op record.Op) bool { return op.Kind.Writes() && op.Key == v.Key }) {
			return v.Txns[0], id, true
		}
	}
	return v.Txns[0], v.Txns[1], true
}
