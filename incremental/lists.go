package incremental

import (
	"slices"
	"strings"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/incremental/version"
	"github.com/isowatch/isowatch/ingest/record"
)

// Lists (docs/decisions/0011; Elle).
//
// A key that is appended to, and never written otherwise, holds a list that only
// grows. All lists read of it are prefixes of the longest; that gives the order
// of the versions up to there, each the immediate successor of the one before.
// An element that was appended and is not in the longest list came later.
//
//	longest read  [a b c d]      T1 appended a b, T2 c, T3 d, T4 e
//	versions      initial → T1 → T2 → T3        T4 some time after T3
//
// An element names its transaction, so no read of a list is ambiguous; keys for
// which that does not hold, or that are written as a whole too, are not checked.
//
// Online, somebody may still come who emptied the list, or wrote it as a whole. Whatever
// they did, who appended neighbours in a list that was read followed each other. But that
// nothing was before the first element, that two lists don't begin alike, and what was
// read of an empty list, says something only when nobody can come any more.

// sameList: what the transaction at hand found at k, as a list, is what its first
// read found. Nothing, and what is no list at all once it has been appended to,
// count as the empty list.
func (in *intake) sameList(k version.Key, st *keyState, c cellID) bool {
	if !in.h.isNothing(c) {
		return false
	}
	return in.h.perKey.At(k).appended && in.h.isNothing(st.read) || st.apps > 0 && in.h.cells.At(st.read).about&isList == 0
}

// withoutOwn is the list that a transaction found, given what it read after
// appending to it itself; false if its own elements aren't the last.
func (in *intake) withoutOwn(k version.Key, v record.Value) (record.Value, bool) {
	if v.Kind != record.KindList {
		return v, false
	}
	var own []byte
	for _, a := range in.apps {
		if a.key == k {
			own = append(own, ',')
			own = a.element.AppendJSON(own)
		}
	}
	switch {
	case v.Text == "["+string(own[1:])+"]":
		return record.Value{Kind: record.KindList, Text: "[]"}, true
	case strings.HasSuffix(v.Text, string(own)+"]"):
		return record.Value{Kind: record.KindList, Text: v.Text[:len(v.Text)-len(own)-1] + "]"}, true
	}
	return v, false
}

// decideList finds the version that an external read of a list saw, and what
// the list says about the order of versions.
func (r *resolver) decideList(index ordinal, c cellID) {
	k := r.h.cells.At(c).key
	t := r.h.txns.At(index)
	if r.h.isNothing(c) {
		r.readInitial(index, c)
		return
	}
	if r.h.cells.At(c).about&isList == 0 { // a list key never holds anything else
		r.readElse(index, c)
		return
	}
	if r.h.mayCome() && !r.h.unique() {
		r.wait(index, c)
		return
	}
	if r.h.sequences != nil && !r.repeatsDue && r.h.readCell(index, k) != c {
		r.weak.repeats = append(r.weak.repeats, pendingRead{index, c})
		return
	}
	l := r.h.elementsOf(c)
	if len(l.twice) > 0 && r.decideTwice(index, c, l) {
		return
	}
	if !r.appendersKnown(index, c, l) {
		return
	}
	lk := r.h.listOf(k)
	n := min(len(l.elements), len(lk.longest))
	if !slices.Equal(l.elements[:n], lk.longest[:n]) {
		if r.h.mayCome() && l.elements[0] != lk.longest[0] {
			r.wait(index, c) // for who emptied it between
			return
		}
		r.anomaly(verdict.IncompatibleOrder, index, c, r.h.txns.At(lk.reader).id)
		return
	}
	if !r.wellFormed(index, c, l) {
		return
	}
	for _, el := range l.elements {
		if cl := r.h.cells.At(el); cl.final == none {
			cl.about |= givenUp
		}
	}
	if t.doubt == uncertain {
		r.decideUncertainList(index, c, len(l.elements) <= len(lk.longest))
		return
	}
	if !r.h.mayCome() {
		r.anchor(k)
	} else if lk.reader == none {
		r.unanchored.push(waitingRead{index, c, r.h.deadline(index)})
	}
	if len(l.elements) > len(lk.longest) {
		lk.longest, lk.reader, lk.cell = l.elements, index, c
		r.extendList(k, lk, n)
	}
	r.read(index, c, r.g.lastRecorded(l.elements, k))
	if r.weak != nil {
		r.weak.show(index, c, l)
	}
}

// decideTwice decides a list that has elements twice: an anomaly if one of them
// was appended by a recorded transaction; unseen ones may have appended the same, and
// what else the list shows is as good as ever. It tells whether the read is dealt with,
// or waits.
func (r *resolver) decideTwice(index ordinal, c cellID, l *list) bool {
	for _, el := range l.twice {
		if w := r.h.cells.At(el).final; w != none {
			r.anomaly(verdict.DuplicateElements, index, c, r.h.txns.At(w).id)
			return true
		}
		if o := r.h.others(el); o.aborted != verdict.NoTxn && r.h.finallyAborted(index, o) {
			r.anomaly(verdict.AbortedRead, index, c, o.aborted)
			return true
		}
	}
	if r.h.lossy(r.h.cells.At(c).key) && r.h.mayCome() {
		r.wait(index, l.twice[0])
		return true
	}
	return false
}

// judgeLists reports the reads, taken for ones of initial values, of keys that
// turned out to hold lists, at the end of a stream.
func (r *resolver) judgeLists() {
	if r.opt.Initial != record.InitialAny {
		return
	}
	for k := range version.Key(r.h.perKey.Len()) {
		p := r.h.perKey.At(k)
		if r.h.lossy(k) || r.h.initial(k) != record.InitialAny || !p.isListKey() || p.initial == none ||
			r.h.isNothing(p.initial) {
			continue
		}
		if r.g.plain { // no others are kept
			r.anomaly(verdict.ThinAirRead, p.reader, p.initial, verdict.NoTxn)
			continue
		}
		for reader := range r.g.main.tab.Readers(r.g.initialVersion(k)) {
			if c := r.h.readCell(r.h.slotTx[reader], k); c == p.initial {
				r.anomaly(verdict.ThinAirRead, r.h.slotTx[reader], c, verdict.NoTxn)
			}
		}
	}
}

// decideUncertainList is the end of decideList for a transaction that may not
// have taken effect. What it shows beyond what others read, the order of
// versions, would hold only if it did; that is not checked, and counts as such
// unless the history turns out to do without the transaction.
func (r *resolver) decideUncertainList(index ordinal, c cellID, known bool) {
	if !known {
		r.blocked++
		r.doubtful = append(r.doubtful, pendingRead{index, c})
		return
	}
	r.choose(index, c)
}

// ruleOutReaders says, at the end, of who may not have taken effect that it did not, where its list has an element
// of one that can't have.
func (r *resolver) ruleOutReaders() {
	for before := -1; before != len(r.doubtful); {
		before = len(r.doubtful)
		r.doubtful = slices.DeleteFunc(r.doubtful, func(read pendingRead) bool {
			for _, el := range r.h.elementsOf(read.cell).elements {
				if w := r.h.cells.At(el).final; w != none && len(r.suspended[w]) > 0 {
					r.blocked--
					r.anomaly(verdict.AbortedRead, read.index, read.cell, r.h.txns.At(w).id)
					return true
				}
			}
			return false
		})
	}
}

// readElse is a read of something that a list key can't hold, unless it turns
// out to be written by other means too.
func (r *resolver) readElse(index ordinal, c cellID) {
	switch {
	case r.h.lossy(r.h.cells.At(c).key):
	case r.h.mayCome():
		r.wait(index, c)
	default:
		r.anomaly(verdict.ThinAirRead, index, c, verdict.NoTxn)
	}
}

// appendersKnown tells whether the transactions that appended the elements
// have been admitted; if not, the read waits for one, or is an anomaly.
func (r *resolver) appendersKnown(index ordinal, c cellID, l *list) bool {
	k := r.h.cells.At(c).key
	complete := !r.h.lossy(k)
	for _, el := range l.elements {
		cl := r.h.cells.At(el)
		o := r.h.others(el)
		switch {
		case cl.final == index:
			r.anomaly(verdict.FutureRead, index, c, verdict.NoTxn)
			return false
		case cl.final != none:
			if !r.h.arrived(cl.final) {
				r.h.wait(el, index)
				return false
			}
			if r.h.txns.At(index).doubt == uncertain {
				r.mayHaveTakenEffect(cl.final)
			} else {
				r.tookEffect(cl.final, pendingRead{index, c})
			}
			if r.h.txns.At(cl.final).slot == none || cl.version == none {
				r.h.wait(el, index)
				return false
			}
		case o.aborted != verdict.NoTxn && r.h.finallyAborted(index, o):
			r.anomaly(verdict.AbortedRead, index, c, o.aborted)
			return false
		case r.h.mayCome():
			r.wait(index, el)
			return false
		case complete && o.aborted == verdict.NoTxn:
			r.anomaly(verdict.ThinAirRead, index, c, verdict.NoTxn)
			return false
		}
	}
	return true
}

// wellFormed checks that each transaction's elements stand together, whole and
// in order.
func (r *resolver) wellFormed(index ordinal, c cellID, l *list) bool {
	for i := 0; i < len(l.elements); {
		w := r.h.cells.At(l.elements[i]).final
		if w == none {
			i++
			continue
		}
		own := r.h.appendsOf(w, r.h.cells.At(c).key)
		m := 0
		for m < len(own) && i+m < len(l.elements) && l.elements[i+m] == own[m] {
			m++
		}
		switch {
		case m == len(own):
		case m == 0:
			r.anomaly(verdict.IncompatibleOrder, index, c, r.h.txns.At(w).id)
			return false
		default:
			r.anomaly(verdict.IntermediateRead, index, c, r.h.txns.At(w).id)
			return false
		}
		i += m
	}
	return true
}

// extendList puts the versions of the longest list in order, from element n on.
// What unseen transactions appended between them does not matter: between two
// recorded versions that follow each other in a list there is no third.
func (r *resolver) extendList(k version.Key, lk *listKey, n int) {
	prev := r.g.lastRecorded(lk.longest[:n], k)
	for _, el := range lk.longest[n:] {
		w := r.h.cells.At(el).final
		if w == none {
			continue
		}
		v := r.g.versionBy(w, k)
		if v == prev {
			continue
		}
		if lk.anchored || r.g.main.tab.At(prev).Kind != version.Initial {
			r.succeed(prev, v)
		}
		if r.weak != nil {
			r.weak.ListOrder(k, r.h.txns.At(w).slot)
		}
		prev = v
	}
}

// succeed: v is the next after prev, as a list shows.
func (r *resolver) succeed(prev, v version.ID) {
	told := false // by one strand: of the others, a polygraph may have decided what hides it there
	for _, s := range r.g.strands {
		if late, first, clash := s.follow(prev, v); clash && !s.loose && !told {
			told = true
			r.out.report(r.ev.missed(s.tab.At(late).Writer, first))
		}
	}
}

// anchor: nobody can come any more who wrote k before what is first in its longest list was read.
func (r *resolver) anchor(k version.Key) {
	lk := r.h.listOf(k)
	switch {
	case lk.anchored:
		return
	case !r.h.perKey.At(k).isListKey():
		r.blocked++ // somebody has come
		return
	}
	lk.anchored = true
	for _, el := range lk.longest {
		if w := r.h.cells.At(el).final; w != none {
			r.succeed(r.g.initialVersion(k), r.g.versionBy(w, k))
			break
		}
	}
	if r.weak != nil {
		r.weak.Anchored(k)
	}
}
