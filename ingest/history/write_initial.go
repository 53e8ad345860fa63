package history

import (
	"iter"
	"slices"

	"github.com/isowatch/isowatch/ingest/record"
)

// What was read before anybody wrote it, on its way out. Elsewhere than in our own
// records that state has one name per format, 0 or null or none, and every write is
// known. So it is found out which reads are of the initial state, and refused what
// the format would make another statement of:
//
//   - Where the header does not say what keys held (initial any), a key held one
//     value that is not known: the one that was read and that nobody but its reader
//     wrote. The reads of it are marked, operation by operation, as the same value may
//     be a transaction's own write later. Nothing else becomes the initial value; what
//     others read of what was only put back may be either, and is refused.
//   - Where writes are missing (coverage partial), a read of what nobody wrote says
//     nothing, and is out of thin air where none are missing.
//   - What transactions of unknown outcome read counts if they took effect, which
//     they can't be known to have if nobody can have read from them.

// kindInitial is the kind of the initial value of a key of which the header does
// not say what it held; its text is what was read.
const kindInitial record.ValueKind = 255

// Who wrote a value, if not one transaction alone: by its place.
const byNobody, bySeveral = -1, -2

// isNothing tells what a list is before anything was appended.
func isNothing(v record.Value) bool {
	return v.IsNull() || v.Kind == record.KindList && v.Text == "[]"
}

// initial is what the header says that keys hold.
func (w *writer) initial() record.Initial {
	if w.h.Header.Initial == nil {
		return record.InitialAny
	}
	return *w.h.Header.Initial
}

// isInitial tells whether v, which was read, is what key held before anybody wrote
// it. A list is empty at first, whatever the header says.
func (w *writer) isInitial(key string, v record.Value) bool {
	switch {
	case v.Kind == kindInitial:
		return true
	case w.lists[key]:
		return isNothing(v)
	case w.initial() == record.InitialZero:
		return v == record.Int(0)
	case w.initial() == record.InitialAbsent:
		return v.IsNull()
	}
	return false
}

// isInitialOp tells whether op reads or writes what its key holds before anybody
// writes it. An appended element is none of that, nor is an empty list that is
// written to a key.
func (w *writer) isInitialOp(op record.Op) bool {
	switch {
	case op.Kind == record.Append, op.Kind == record.Write && op.Value.Kind == record.KindList:
		return false
	}
	return w.isInitial(op.Key, op.Value)
}

// planInitial finds the reads of the initial state.
func (w *writer) planInitial() error {
	w.lists = map[string]bool{}
	changed := map[string]bool{}
	for t := range w.txns {
		for _, op := range w.txns[t].Ops {
			switch op.Kind {
			case record.Append:
				w.lists[op.Key] = true
			case record.Write:
				changed[op.Key] = true
			}
		}
	}
	w.findCounting()
	missing := w.missing()
	if !missing {
		w.findEmpty(changed)
	}
	switch {
	case missing:
		return w.planMissing()
	case w.initial() == record.InitialAny:
		return w.planUnknownInitial()
	}
	return nil
}

// findEmpty finds the lists that nobody changes: an empty one is read of them.
func (w *writer) findEmpty(changed map[string]bool) {
	for t := range w.txns {
		for _, op := range w.txns[t].Ops {
			if w.counts[t] && op.Kind == record.Read && isNothing(op.Value) && !op.Value.IsNull() && !changed[op.Key] {
				w.lists[op.Key] = true
			}
		}
	}
}

// missing: there were writes that the history does not have.
func (w *writer) missing() bool {
	if w.h.Header.Coverage != nil && *w.h.Header.Coverage == record.CoveragePartial {
		return true
	}
	return record.Missing(w.txns) > 0
}

// external are the reads of a transaction that tell of others, and their places: those of keys that it has not
// written by then, and all of lists.
func (w *writer) external(t int) iter.Seq2[int, record.Op] {
	return func(yield func(int, record.Op) bool) {
		wrote := map[string]bool{}
		for i, op := range w.txns[t].Ops {
			switch {
			case op.Kind != record.Read:
				wrote[op.Key] = true
			case wrote[op.Key] && !w.lists[op.Key]:
			case !yield(i, op):
				return
			}
		}
	}
}

// parts are the values that op reads or writes: of a list that is read the elements.
func (w *writer) parts(op record.Op) []record.Value {
	if op.Kind == record.Read && w.lists[op.Key] && op.Value.Kind == record.KindList {
		return op.Value.Elements()
	}
	return []record.Value{op.Value}
}

// findCounting finds the transactions whose reads count: those that committed, and
// those of unknown outcome that one of these may have read from.
func (w *writer) findCounting() {
	w.counts = make([]bool, len(w.txns))
	var todo []int
	maybe := map[record.Cell][]int{} // what transactions of unknown outcome wrote, and which
	for t := range w.txns {
		switch w.txns[t].Status {
		case record.Committed:
			w.counts[t] = true
			todo = append(todo, t)
		case record.Unknown:
			for _, op := range w.txns[t].Ops {
				if op.Kind != record.Read {
					v := op.Cell()
					maybe[v] = append(maybe[v], t)
				}
			}
		}
	}
	if len(maybe) == 0 {
		return
	}
	for len(todo) > 0 {
		t := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, op := range w.external(t) {
			for _, v := range w.parts(op) {
				for _, by := range maybe[record.Cell{Key: op.Key, Value: v}] {
					if by != t && !w.counts[by] {
						w.counts[by] = true
						todo = append(todo, by)
					}
				}
			}
		}
	}
}

// writersOf tells who wrote each value, and whether somebody made it: wrote it without having read it there before. Who
// had may have put back what the key held at first; where that was aborted, it was there before, and nobody wrote it.
func (w *writer) writersOf() func(key string, v record.Value) (by int, made bool) {
	by, made := map[record.Cell]int{}, map[record.Cell]bool{}
	for t := range w.txns {
		found, wrote := map[record.Cell]bool{}, map[string]bool{}
		for _, op := range w.txns[t].Ops {
			v := op.Cell()
			if op.Kind == record.Read {
				found[v] = found[v] || !wrote[op.Key]
				continue
			}
			wrote[op.Key] = true
			if !found[v] {
				made[v] = true
			} else if w.txns[t].Status == record.Aborted {
				continue
			}
			if other, ok := by[v]; !ok {
				by[v] = t
			} else if other != t {
				by[v] = bySeveral
			}
		}
	}
	return func(key string, v record.Value) (int, bool) {
		if t, ok := by[record.Cell{Key: key, Value: v}]; ok {
			return t, made[record.Cell{Key: key, Value: v}]
		}
		return byNobody, false
	}
}

// planMissing refuses reads of what nobody wrote, or may have written unseen.
func (w *writer) planMissing() error {
	writer := w.writersOf()
	for t := range w.txns {
		if !w.counts[t] {
			continue
		}
		for i, op := range w.external(t) {
			list := w.lists[op.Key]
			if op.Value.IsNull() || !list && w.isInitial(op.Key, op.Value) {
				return w.cannot(t, i, "it reads %s, which proves nothing as writes are missing (coverage: partial, or a hole in "+
					"seq), and would where none are", op.Value)
			}
			for _, v := range w.parts(op) {
				if _, made := writer(op.Key, v); !made || list && op.Value.Kind != record.KindList {
					return w.cannot(t, i, "it reads %s, which nobody else in the history wrote: none of its violations, as writes "+
						"are missing (coverage: partial, or a hole in seq), and one where none are", op.Value)
				}
			}
		}
	}
	return nil
}

// claim is what a key held first by what somebody read.
type claim struct {
	value record.Value
	sure  bool // by one that committed
	txn   int
}

// planUnknownInitial finds what keys held first where the header does not say, and
// marks the reads of it. What a transaction that committed read is what the key
// held, if anything is: of several such values all but one are out of thin air,
// whichever is taken. Two different ones that are read only if their transactions took
// effect can't be said.
func (w *writer) planUnknownInitial() error {
	writer := w.writersOf()
	// initially tells whether the operation of t can only have read what the key held first.
	initially := func(t int, op record.Op) bool {
		if w.lists[op.Key] {
			return false
		}
		by, _ := writer(op.Key, op.Value)
		return by == byNobody || by == t
	}
	for t := range w.txns {
		if !w.counts[t] {
			continue
		}
		for i, op := range w.external(t) {
			if by, made := writer(op.Key, op.Value); !made && !w.lists[op.Key] && by != byNobody && by != t {
				return w.cannot(t, i, "it reads %s, which key %.80q may have held at first, and which somebody who had read it "+
					"put back: who of them it is from, the format would say", op.Value, op.Key)
			}
		}
	}
	first, err := w.firstValues(initially)
	if err != nil || len(first) == 0 {
		return err
	}
	w.txns = slices.Clone(w.txns)
	for t := range w.txns {
		w.markInitial(t, func(op record.Op) bool {
			c, claimed := first[op.Key]
			return claimed && c.value == op.Value && initially(t, op)
		})
	}
	return nil
}

// firstValues are what keys held first, by the reads that can only have read that.
func (w *writer) firstValues(initially func(t int, op record.Op) bool) (map[string]claim, error) {
	first := map[string]claim{}
	// What counts comes first. The rest binds nobody, and is called what it may be.
	for _, turn := range []func(t int) bool{
		func(t int) bool { return w.txns[t].Status == record.Committed },
		func(t int) bool { return w.txns[t].Status == record.Unknown && w.counts[t] },
		func(t int) bool { return !w.counts[t] },
	} {
		for t := range w.txns {
			if !turn(t) {
				continue
			}
			for i, op := range w.external(t) {
				if !initially(t, op) {
					continue
				}
				before, claimed := first[op.Key]
				switch {
				case !claimed:
					first[op.Key] = claim{op.Value, w.txns[t].Status == record.Committed, t}
				case before.value != op.Value && !before.sure && w.counts[t]:
					return nil, w.cannot(t, i, "it reads %.40s, and transaction %.80q reads %.40s, each of which is what key "+
						"%.80q held at first if its transaction, whose outcome is unknown, took effect",
						op.Value, w.txns[before.txn].ID, before.value, op.Key)
				}
			}
		}
	}
	return first, nil
}

// markInitial marks those external reads of t as reads of what the key held first.
// It changes a copy of t's operations.
func (w *writer) markInitial(t int, is func(record.Op) bool) {
	var marked []int
	for i, op := range w.external(t) {
		if is(op) {
			marked = append(marked, i)
		}
	}
	if len(marked) == 0 {
		return
	}
	ops := slices.Clone(w.txns[t].Ops)
	for _, i := range marked {
		ops[i].Value = record.Value{Kind: kindInitial, Text: ops[i].Value.String()}
	}
	w.txns[t].Ops = ops
}

// planNil refuses what a format would say of reads with nil, which stands for all
// that a key may hold at first, and for nothing where the outcome is unknown.
func (w *writer) planNil() error {
	for t := range w.txns {
		if !w.counts[t] {
			continue
		}
		last := map[string]record.Op{} // its own writes
		for i, op := range w.txns[t].Ops {
			if op.Kind != record.Read {
				last[op.Key] = op
				continue
			}
			own, wrote := last[op.Key]
			same := wrote && own.Kind == record.Write && own.Value == op.Value
			switch {
			case !w.isInitialOp(op):
			case w.txns[t].Status == record.Unknown && !(same && op.Value.IsNull()):
				return w.cannot(t, i, "it reads %.40s, which key %.80q held before anybody wrote it, and its outcome is unknown: "+
					"nil would say nothing there", op.Value, op.Key)
			case wrote && own.Kind == record.Write && isNothing(own.Value) && !(same && op.Value.IsNull()):
				return w.cannot(t, i, "it reads %s after it wrote %s, and nil would stand for both", op.Value, own.Value)
			}
		}
	}
	return nil
}
