package history

import (
	"encoding/json"
	"fmt"

	"github.com/isowatch/isowatch/ingest/codec"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/reject"
)

// Values on their way out. A format has one way to say that a key was read before
// anybody wrote it, the history may have another, or none (initial any). So first
// it is found out which reads are of the initial state; then whether the other
// values fit; if one does not, all are numbered.

// version is a value at a key.
type version struct {
	key   string
	value record.Value
}

// planInitial finds what keys held first where the header does not say: the
// value, if there is one, that was read and that nobody else wrote. The first
// such, if there are several: the others are out of thin air then, whichever is
// taken.
func (w *writer) planInitial() error {
	partial := w.h.Header.Coverage != nil && *w.h.Header.Coverage == record.CoveragePartial
	known := w.h.Header.Initial != nil && *w.h.Header.Initial != record.InitialAny
	if known && !partial {
		return nil
	}
	const several = -1
	writers := map[version]int{}
	txns := w.h.Transactions // those left out have written too
	for t := range txns {
		for _, op := range txns[t].Ops {
			if op.Kind != record.Write && op.Kind != record.Append {
				continue
			}
			v := version{op.Key, op.Value}
			if by, ok := writers[v]; !ok {
				writers[v] = t
			} else if by != t {
				writers[v] = several
			}
		}
	}
	if !known {
		w.first = map[string]record.Value{}
	}
	// What an aborted transaction read binds nobody, and what one of unknown outcome
	// did only if it took effect.
	for _, status := range []record.Status{record.Committed, record.Unknown, record.Aborted} {
		for t := range txns {
			if txns[t].Status != status {
				continue
			}
			mine := map[version]bool{}
			for i, op := range txns[t].Ops {
				v := version{op.Key, op.Value}
				if op.Kind != record.Read {
					mine[v] = true
					continue
				}
				if by, ok := writers[v]; ok && by != t || mine[v] || isItems(op.Value) {
					continue
				}
				if partial && status == record.Committed {
					e := reject.In(fmt.Sprintf("ops[%d] of transaction %.80q", i, txns[t].ID), reject.Unsupported,
						"%s can't express it: it reads what nobody in the history wrote, which is none of its violations, as the header says that writes are missing (coverage: partial)", w.opt.Format)
					return e.At(whole(w.h.File))
				}
				if _, taken := w.first[op.Key]; !taken && !known {
					w.first[op.Key] = op.Value
				}
			}
		}
	}
	return nil
}

// isItems tells a list with elements, which others may have appended.
func isItems(v record.Value) bool { return v.Kind == record.KindList && v.Text != "[]" }

// isInitial tells whether v is what key holds before anybody writes it.
func (w *writer) isInitial(key string, v record.Value) bool {
	if v.Kind == record.KindList && v.Text == "[]" && w.spec.lists {
		v = record.Null // an empty list is no list
	}
	initial := record.InitialAny
	if w.h.Header.Initial != nil {
		initial = *w.h.Header.Initial
	}
	switch initial {
	case record.InitialZero:
		return v == record.Int(0)
	case record.InitialAbsent:
		return v.IsNull()
	}
	first, ok := w.first[key]
	if ok && first.Kind == record.KindList {
		first = record.Null
	}
	return ok && v == first
}

// isInitialOp tells whether op reads or writes what its key holds before anybody
// writes it. An appended element is none of that.
func (w *writer) isInitialOp(op record.Op) bool {
	return op.Kind != record.Append && w.isInitial(op.Key, op.Value)
}

// planValues checks what values say, and numbers them if need be.
func (w *writer) planValues() error {
	committedZero := map[string]bool{}
	if w.spec.initial == initialMark {
		for t := range w.txns {
			for _, op := range w.txns[t].Ops {
				if op.Kind == record.Write && op.Value == record.Int(0) && w.txns[t].Status == record.Committed {
					committedZero[op.Key] = true
				}
			}
		}
	}
	var misfit record.Value
	fit := true
	for t := range w.txns {
		for i, op := range w.txns[t].Ops {
			if w.isInitialOp(op) {
				switch {
				case op.Kind == record.Read && w.spec.initial == initialNone && w.txns[t].Status == record.Committed:
					return w.cannot(t, i, "it reads %s, which key %.80q held before anybody wrote it, and the format has no initial state", op.Value, op.Key)
				case op.Kind == record.Write && !w.spec.overwrites:
					return w.cannot(t, i, "it writes %s, which key %.80q held before anybody wrote it, and the format can't say that again", op.Value, op.Key)
				}
				if op.Value.Kind != record.KindInt && op.Value.Kind != record.KindNull && fit && w.spec.initial == initialCode {
					w.note("what keys held before anybody wrote them is written as 0: here %.40s", op.Value)
				}
				continue
			}
			items, err := w.items(t, i, op)
			if err != nil {
				return err
			}
			for _, v := range items {
				if fit && !w.fits(v, committedZero[op.Key]) {
					misfit, fit = v, false
				}
			}
		}
	}
	if fit || !w.spec.numbers {
		return nil
	}
	w.note("values are numbered from 1, as %.40s is none that the format can say", misfit)
	w.codes = map[record.Value]uint64{}
	for t := range w.txns {
		for i, op := range w.txns[t].Ops {
			if w.isInitialOp(op) {
				continue
			}
			items, err := w.items(t, i, op)
			if err != nil {
				return err
			}
			for _, v := range items {
				if _, known := w.codes[v]; !known {
					w.codes[v] = uint64(len(w.codes)) + 1
				}
			}
		}
	}
	return nil
}

// items are the elements of a list that is read, in formats of lists, and else
// the value itself.
func (w *writer) items(t, i int, op record.Op) ([]record.Value, error) {
	if !w.spec.lists || op.Kind != record.Read || op.Value.Kind != record.KindList {
		if !w.spec.scalars && op.Kind == record.Read {
			return nil, w.cannot(t, i, "it reads %.40s, which is no list", op.Value)
		}
		return []record.Value{op.Value}, nil
	}
	var raw []json.RawMessage
	if err := json.Unmarshal([]byte(op.Value.Text), &raw); err != nil {
		return nil, w.cannot(t, i, "the list %.40s is no JSON: %v", op.Value, err)
	}
	items := make([]record.Value, len(raw))
	for j := range raw {
		v, err := codec.ParseValue(raw[j])
		if err != nil {
			return nil, w.cannot(t, i, "the list %.40s is no JSON: %v", op.Value, err)
		}
		items[j] = v
	}
	return items, nil
}

// fits tells whether the format can say a value that is not the initial one.
func (w *writer) fits(v record.Value, committedZero bool) bool {
	if !w.spec.numbers {
		return true
	}
	n := uint64(v.Num)
	switch {
	case v.Kind == record.KindInt && v.Num < 0:
		return w.spec.signed
	case v.Kind == record.KindNumber:
		var ok bool
		if n, ok = canonical(v.Text); !ok {
			return false
		}
	case v.Kind != record.KindInt:
		return false
	}
	if n == 0 && (w.spec.initial == initialCode || w.spec.initial == initialMark && !committedZero) {
		return false // it would be taken for the initial state
	}
	return n <= w.spec.valueMax
}

// coded is what to write for a value that is not the initial one.
func (w *writer) coded(v record.Value) record.Value {
	if w.codes == nil {
		return v
	}
	return record.Int(int64(w.codes[v]))
}

// number is coded as a number, with 0 for the initial value where that is
// how a format says it.
func (w *writer) number(op record.Op) (n uint64, initial bool) {
	if w.isInitialOp(op) {
		return 0, true
	}
	v := w.coded(op.Value)
	if v.Kind == record.KindNumber {
		n, _ = canonical(v.Text)
		return n, false
	}
	return uint64(v.Num), false
}
