package history

import "github.com/isowatch/isowatch/ingest/record"

// Values on their way out. A format has one way to say that a key was read before
// anybody wrote it, the history may have another, or none (initial any). So first
// it is found out which reads are of the initial state; then whether the other
// values fit; if one does not, all are numbered.

// planValues checks what values say, and numbers them if need be.
func (w *writer) planValues() error {
	zeros := map[string]bool{} // keys to which a transaction that committed wrote 0
	if w.spec.initial == initialMark {
		zeros = committedZeros(w.txns)
	}
	var misfit *record.Value
	for t := range w.txns {
		for i, op := range w.txns[t].Ops {
			if w.isInitialOp(op) {
				if err := w.checkInitialOp(t, i, misfit == nil); err != nil {
					return err
				}
				continue
			}
			if w.spec.lists && op.Kind == record.Read && isNothing(op.Value) {
				return w.cannot(t, i, "it reads %s, which is not what key %.80q held at first, as an empty list and nil are there",
					op.Value, op.Key)
			}
			items, err := w.items(t, i, op)
			if err != nil {
				return err
			}
			for _, v := range items {
				if misfit == nil && !w.fits(v, zeros[op.Key]) {
					misfit = &v
				}
			}
		}
	}
	if misfit == nil || !w.spec.numbers {
		return nil
	}
	w.note("values are numbered from 1, as %.40s is none that the format can say", *misfit)
	return w.numberValues()
}

// checkInitialOp refuses an operation on what a key held first where the format has no
// word for it; fit: so far all values can be written as they are.
func (w *writer) checkInitialOp(t, i int, fit bool) error {
	op := w.txns[t].Ops[i]
	switch {
	case op.Kind == record.Read && w.spec.initial == initialNone && w.txns[t].Status == record.Committed:
		return w.cannot(t, i, "it reads %s, which key %.80q held before anybody wrote it, and the format has no initial state", op.Value, op.Key)
	case op.Kind == record.Write && !w.spec.overwrites:
		return w.cannot(t, i, "it writes %s, which key %.80q held before anybody wrote it, and the format can't say that "+
			"again", op.Value, op.Key)
	}
	if op.Value.Kind != record.KindInt && op.Value.Kind != record.KindNull && fit && w.spec.initial == initialCode {
		w.note("what keys held before anybody wrote them is written as 0: here %.40s", op.Value)
	}
	return nil
}

// numberValues gives every value a number, in the order in which they come.
func (w *writer) numberValues() error {
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
	switch {
	case op.Kind != record.Read:
	case w.spec.lists && op.Value.Kind == record.KindList:
		return op.Value.Elements(), nil
	case !w.spec.scalars:
		return nil, w.cannot(t, i, "it reads %.40s, which is no list", op.Value)
	}
	return []record.Value{op.Value}, nil
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
