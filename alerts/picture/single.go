package picture

import (
	"slices"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/alerts/list"
	"github.com/isowatch/isowatch/alerts/name"
	"github.com/isowatch/isowatch/ingest/record"
)

// oneRead makes a picture of what one read shows, which has no cycle: the reader,
// with the read that can't be, and whose value it was.
func (s *scene) oneRead() {
	a := s.alert
	if len(a.Transactions) == 0 {
		return
	}
	reader, at, ok := s.find(a.Transactions[0])
	if !ok {
		s.rings = append(s.rings, []edge{{Edge: alerts.Edge{From: a.Transactions[0]}, single: true}})
		return
	}
	key := ""
	if len(a.Keys) > 0 {
		key = a.Keys[0]
	}
	var writer *record.Transaction
	place := -1
	if len(a.Transactions) > 1 {
		if w, i, ok := s.find(a.Transactions[1]); ok && i != at {
			writer, place = w, i
		}
	}
	read := s.wrongRead(reader, key, writer)
	s.mark(at, read, true)
	s.markOwn(reader, at, key, read)
	switch {
	case a.Name == "incompatible-order" && writer != nil:
		s.mark(place, readFrom(writer, key, nil), true)
		s.single(alerts.Edge{From: writer.ID, To: reader.ID, Type: disagree, Key: key})
	case writer != nil:
		s.mark(place, writeSeen(writer, key, reader, read), false)
		s.mark(place, name.LastWrite(writer, key), false) // which an intermediate read should have seen
		s.single(alerts.Edge{From: writer.ID, To: reader.ID, Type: "wr", Key: key})
	case a.Name == "thin-air-read":
		s.rings = append(s.rings, []edge{{Edge: alerts.Edge{To: reader.ID, Type: "wr", Key: key}, nobody: true,
			single: true}})
	default:
		s.rings = append(s.rings, []edge{{Edge: alerts.Edge{From: reader.ID}, single: true}})
	}
}

// disagree is the type of a line between two reads of which neither can be right if
// the other is.
const disagree = "≠"

func (s *scene) single(e alerts.Edge) {
	s.rings = append(s.rings, []edge{{Edge: e, single: true}})
}

// wrongRead is the read of key that can't be; -1 if there is none.
func (s *scene) wrongRead(t *record.Transaction, key string, writer *record.Transaction) int {
	var is func(i int, op record.Op) bool
	switch s.alert.Name {
	case "aborted-read", "intermediate-read":
		is = func(_ int, op record.Op) bool { return writer != nil && name.Shows(op, writer) }
	case "future-read":
		is = func(i int, op record.Op) bool {
			return name.Shows(op, &record.Transaction{Ops: t.Ops[i:]})
		}
	case "not-my-last-write", "not-my-own-write":
		is = func(i int, op record.Op) bool {
			last := name.LastWrite(&record.Transaction{Ops: t.Ops[:i]}, key)
			return last >= 0 && !name.Shows(op, &record.Transaction{Ops: t.Ops[last : last+1]})
		}
	case "non-repeatable-reads":
		is = func(i int, op record.Op) bool {
			return slices.ContainsFunc(t.Ops[:i],
				func(o record.Op) bool { return o.Kind == record.Read && o.Key == key && o.Value != op.Value })
		}
	case "thin-air-read":
		is = func(_ int, op record.Op) bool {
			return !slices.ContainsFunc(s.txns, func(w record.Transaction) bool { return name.Shows(op, &w) })
		}
	case "duplicate-elements":
		is = func(_ int, op record.Op) bool {
			es, _ := list.Elements(op.Value)
			_, n := list.Repeated(es)
			return n > 1
		}
	default:
		is = func(int, record.Op) bool { return true }
	}
	found := slices.IndexFunc(t.Ops, func(op record.Op) bool { return op.Kind == record.Read && op.Key == key })
	for i, op := range t.Ops {
		if op.Kind == record.Read && op.Key == key && is(i, op) {
			return i
		}
	}
	return found
}

// markOwn marks what the reader itself did to the key.
func (s *scene) markOwn(t *record.Transaction, at int, key string, read int) {
	for i, op := range t.Ops {
		if i != read && op.Key == key {
			s.mark(at, i, false)
		}
	}
}
