package history

import (
	"fmt"
	"strconv"

	"github.com/isowatch/isowatch/ingest/record"
)

// Porcupine's store of strings: a write is a put of a text, a read and then a write
// of the same key an append to the string of what was read, and a get shows
// all texts from the put on; see porcupine_strings.go for the way back. An append is
// one only if a committed get shows it: else nothing would tell what it found.

// stringsWriter puts together what gets show.
type stringsWriter struct {
	*terms
	own    bool // texts are the values themselves
	texts  map[record.Value]string
	found  map[record.Cell]record.Cell // by what an append wrote: what it read
	wrote  map[record.Cell]int         // which transaction
	shown  map[record.Cell]bool
	length int // bytes put together so far
}

// stringsMax bounds what gets show together: each shows all that was appended before.
const stringsMax = 1 << 30

func writePorcupineKV(w *writer) error {
	s := &stringsWriter{terms: newTerms(w, false), own: w.h.Format == porcupineKV, texts: map[record.Value]string{},
		found: map[record.Cell]record.Cell{}, wrote: map[record.Cell]int{}, shown: map[record.Cell]bool{}}
	if !s.own {
		w.note("values are texts from <1>, in the order in which they appear, so that a string shows what it was put " +
			"together from")
	}
	if err := s.gather(); err != nil {
		return err
	}
	ms, err := w.moments()
	if err != nil {
		return err
	}
	w.noteSilent()
	processes := w.numbered(1<<63 - 1)
	for _, m := range ms {
		txn := &w.txns[m.txn]
		kind := "invoke"
		if m.end {
			kind = completions[txn.Status]
		}
		last := txn.Ops[len(txn.Ops)-1]
		f, value := "get", "nil"
		switch {
		case last.Kind == record.Write:
			_, appends := lastText(last.Value)
			f = either(len(txn.Ops) == 2 || s.own && appends, "append", "put")
			value = s.quoted(last)
		case m.end && txn.Status == record.Committed:
			text, err := s.whole(m.txn, last)
			if err != nil {
				return err
			}
			value = string(record.AppendJSONString(nil, text))
		}
		key := string(record.AppendJSONString(nil, last.Key))
		if v, ok := s.decode(key); !ok || v != last.Key {
			return w.cannot(m.txn, 0, "the key %.80q has characters that EDN has no word for", last.Key)
		}
		w.line(fmt.Appendf(w.buf[:0], "{:process %d, :type :%s, :f :%s, :key %s, :value %s}",
			processes[w.session[m.txn]], kind, f, key, value))
	}
	return nil
}

// gather checks that every transaction is one operation, and finds what appends found.
func (s *stringsWriter) gather() error {
	for t := range s.w.txns {
		if err := s.gatherOps(t); err != nil {
			return err
		}
	}
	s.gatherShown()
	return s.checkAppends()
}

// gatherOps notes what a transaction wrote, and upon what if it appends.
func (s *stringsWriter) gatherOps(t int) error {
	txn := &s.w.txns[t]
	swap := len(txn.Ops) == 2 && txn.Ops[0].Kind == record.Read && txn.Ops[1].Kind == record.Write &&
		txn.Ops[0].Key == txn.Ops[1].Key
	switch {
	case !swap && len(txn.Ops) != 1:
		return s.w.cannot(t, -1, "the format has gets, puts, and appends (a read, then a write of the same key), one a "+
			"transaction")
	case swap && txn.Status == record.Aborted:
		return s.w.cannot(t, -1, "it appends, and aborted, so that nothing tells what it found")
	}
	for _, op := range txn.Ops {
		s.text(op)
		if op.Kind != record.Write {
			continue
		}
		v := op.Cell()
		if by, twice := s.wrote[v]; twice && !s.w.isInitial(op.Key, op.Value) {
			if _, appended := s.found[v]; appended || swap {
				return s.w.cannot(t, -1, "it writes %.40s to key %.80q, as transaction %.80q does, and one of them appends: a "+
					"string could not show which", op.Value, op.Key, s.w.txns[by].ID)
			}
		}
		s.wrote[v] = t
		if swap {
			if s.w.isInitial(op.Key, op.Value) {
				return s.w.cannot(t, 1, "it gives a key back what it held at first, and an append can't")
			}
			s.found[v] = txn.Ops[0].Cell()
		}
	}
	return nil
}

// gatherShown finds what gets show: what they returned, and what that was appended to.
func (s *stringsWriter) gatherShown() {
	for t := range s.w.txns {
		if txn := &s.w.txns[t]; len(txn.Ops) == 1 && txn.Ops[0].Kind == record.Read && txn.Status == record.Committed {
			for v := txn.Ops[0].Cell(); !s.shown[v]; {
				s.shown[v] = true
				if before, ok := s.found[v]; ok {
					v = before
				}
			}
		}
	}
}

// checkAppends refuses appends of which nothing tells what they found.
func (s *stringsWriter) checkAppends() error {
	for t := range s.w.txns {
		txn := &s.w.txns[t]
		if len(txn.Ops) < 2 {
			continue
		}
		v := txn.Ops[1].Cell()
		if !s.shown[v] {
			return s.w.cannot(t, 0, "no transaction that committed and only reads shows what it wrote, so that nothing would "+
				"tell what it found")
		}
		if _, written := s.wrote[s.found[v]]; !written && !s.w.isInitial(v.Key, s.found[v].Value) {
			return s.w.cannot(t, 0, "it found %.40s, which nobody wrote, and an append can't show that", s.found[v].Value)
		}
	}
	return nil
}

// text is the text of a value: what is put or appended.
func (s *stringsWriter) text(op record.Op) string {
	if s.w.isInitialOp(op) {
		return ""
	}
	if text, known := s.texts[op.Value]; known {
		return text
	}
	text := "<" + strconv.Itoa(len(s.texts)+1) + ">"
	if s.own {
		text, _ = lastText(op.Value)
	}
	s.texts[op.Value] = text
	return text
}

func (s *stringsWriter) quoted(op record.Op) string {
	return string(record.AppendJSONString(nil, s.text(op)))
}

// whole is the string that a get shows.
func (s *stringsWriter) whole(t int, op record.Op) (string, error) {
	var parts []string
	length := 0
	seen := map[record.Cell]bool{}
	for v := op.Cell(); ; {
		if seen[v] {
			return "", s.w.cannot(t, 0, "what it read was appended to itself, in a circle")
		}
		seen[v] = true
		part := s.text(record.Op{Kind: record.Read, Key: v.Key, Value: v.Value})
		parts = append(parts, part)
		length += len(part)
		before, appended := s.found[v]
		if !appended {
			break
		}
		v = before
	}
	if s.length += length; s.length > stringsMax {
		return "", s.w.cannot(t, 0, "strings show all that was appended to them, and come to more than %d bytes", stringsMax)
	}
	whole := make([]byte, 0, length)
	for i := len(parts) - 1; i >= 0; i-- {
		whole = append(whole, parts[i]...)
	}
	return string(whole), nil
}
