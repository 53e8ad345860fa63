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
func (e *Engine) decideList(index ordinal, c cellID) {
	k := e.h.cells.At(c).key
	t := e.h.txns.At(index)
	if e.h.isNothing(c) {
		e.readInitial(index, c)
		return
	}
	if e.h.cells.At(c).about&isList == 0 { // a list key never holds anything else
		e.readElse(index, c)
		return
	}
	if e.h.mayCome() && !e.h.unique() {
		e.wait(index, c)
		return
	}
	if e.h.sequences != nil && !e.repeatsDue && e.h.readCell(index, k) != c {
		e.weak.repeats = append(e.weak.repeats, pendingRead{index, c})
		return
	}
	l := e.h.elementsOf(c)
	if len(l.twice) > 0 && e.decideTwice(index, c, l) {
		return
	}
	if !e.appendersKnown(index, c, l) {
		return
	}
	lk := e.h.listOf(k)
	n := min(len(l.elements), len(lk.longest))
	if !slices.Equal(l.elements[:n], lk.longest[:n]) {
		if e.h.mayCome() && l.elements[0] != lk.longest[0] {
			e.wait(index, c) // for who emptied it between
			return
		}
		e.incompatible(index, lk.reader, k)
		return
	}
	if !e.wellFormed(index, c, l) {
		return
	}
	for _, el := range l.elements {
		if cl := e.h.cells.At(el); cl.final == none {
			cl.about |= givenUp
		}
	}
	if t.doubt == uncertain {
		e.decideUncertainList(index, c, len(l.elements) <= len(lk.longest))
		return
	}
	if !e.h.mayCome() {
		e.anchor(k)
	} else if lk.reader == none {
		e.unanchored = append(e.unanchored, waitingRead{index, c, e.h.deadline(index)})
	}
	if len(l.elements) > len(lk.longest) {
		lk.longest, lk.reader, lk.cell = l.elements, index, c
		e.extendList(k, lk, n)
	}
	e.read(index, c, e.lastRecorded(l.elements, k))
	if e.weak != nil {
		e.showWeak(index, c, l)
	}
}

// decideTwice decides a list that has elements twice: an anomaly if one of them
// was appended by a recorded transaction; unseen ones may have appended the same, and
// what else the list shows is as good as ever. It tells whether the read is dealt with,
// or waits.
func (e *Engine) decideTwice(index ordinal, c cellID, l *list) bool {
	for _, el := range l.twice {
		if w := e.h.cells.At(el).final; w != none {
			e.readAnomaly(verdict.DuplicateElements, index, c, e.h.txns.At(w).id)
			return true
		}
		if o := e.h.others(el); o.aborted != verdict.NoTxn && e.h.finallyAborted(index, o) {
			e.readAnomaly(verdict.AbortedRead, index, c, o.aborted)
			return true
		}
	}
	if e.h.lossy(e.h.cells.At(c).key) && e.h.mayCome() {
		e.wait(index, l.twice[0])
		return true
	}
	return false
}

// judgeLists reports the reads, taken for ones of initial values, of keys that
// turned out to hold lists, at the end of a stream.
func (e *Engine) judgeLists() {
	if e.opt.Initial != record.InitialAny {
		return
	}
	for k := range version.Key(e.h.perKey.Len()) {
		p := e.h.perKey.At(k)
		if e.h.lossy(k) || !p.isListKey() || p.initial == none || e.h.isNothing(p.initial) {
			continue
		}
		if e.plain { // no others are kept
			e.thinAir(p.reader, p.initial)
			continue
		}
		for r := range e.main.tab.Readers(e.initialVersion(k)) {
			if c := e.h.readCell(e.h.slotTx[r], k); c == p.initial {
				e.thinAir(e.h.slotTx[r], c)
			}
		}
	}
}

// decideUncertainList is the end of decideList for a transaction that may not
// have taken effect. What it shows beyond what others read, the order of
// versions, would hold only if it did; that is not checked, and counts as such
// unless the history turns out to do without the transaction.
func (e *Engine) decideUncertainList(index ordinal, c cellID, known bool) {
	if !known {
		e.blocked++
		e.doubtful = append(e.doubtful, pendingRead{index, c})
		return
	}
	e.choose(index, c)
}

// ruleOutReaders says, at the end, of who may not have taken effect that it did not, where its list has an element
// of one that can't have.
func (e *Engine) ruleOutReaders() {
	for before := -1; before != len(e.doubtful); {
		before = len(e.doubtful)
		e.doubtful = slices.DeleteFunc(e.doubtful, func(r pendingRead) bool {
			out := slices.ContainsFunc(e.h.elementsOf(r.cell).elements, func(el cellID) bool {
				w := e.h.cells.At(el).final
				return w != none && len(e.suspended[w]) > 0
			})
			if out {
				e.blocked--
				e.suspend(r.index, func() {})
			}
			return out
		})
	}
}

// readElse is a read of something that a list key can't hold, unless it turns
// out to be written by other means too.
func (e *Engine) readElse(index ordinal, c cellID) {
	switch {
	case e.h.lossy(e.h.cells.At(c).key):
	case e.h.mayCome():
		e.wait(index, c)
	default:
		e.thinAir(index, c)
	}
}

// appendersKnown tells whether the transactions that appended the elements
// have been admitted; if not, the read waits for one, or is an anomaly.
func (e *Engine) appendersKnown(index ordinal, c cellID, l *list) bool {
	k := e.h.cells.At(c).key
	complete := !e.h.lossy(k)
	for _, el := range l.elements {
		cl := e.h.cells.At(el)
		o := e.h.others(el)
		switch {
		case cl.final == index:
			e.readAnomaly(verdict.FutureRead, index, c, verdict.NoTxn)
			return false
		case cl.final != none:
			if !e.h.arrived(cl.final) {
				e.h.wait(el, index)
				return false
			}
			if e.h.txns.At(index).doubt == uncertain {
				e.mayHaveTakenEffect(cl.final)
			} else {
				e.tookEffect(cl.final, pendingRead{index, c})
			}
			if e.h.txns.At(cl.final).slot == none || cl.version == none {
				e.h.wait(el, index)
				return false
			}
		case o.aborted != verdict.NoTxn && e.h.finallyAborted(index, o):
			e.readAnomaly(verdict.AbortedRead, index, c, o.aborted)
			return false
		case e.h.mayCome():
			e.wait(index, el)
			return false
		case complete && o.aborted == verdict.NoTxn:
			e.thinAir(index, c)
			return false
		}
	}
	return true
}

// wellFormed checks that each transaction's elements stand together, whole and
// in order.
func (e *Engine) wellFormed(index ordinal, c cellID, l *list) bool {
	for i := 0; i < len(l.elements); {
		w := e.h.cells.At(l.elements[i]).final
		if w == none {
			i++
			continue
		}
		own := e.h.appendsOf(w, e.h.cells.At(c).key)
		m := 0
		for m < len(own) && i+m < len(l.elements) && l.elements[i+m] == own[m] {
			m++
		}
		switch {
		case m == len(own):
		case m == 0:
			e.incompatible(index, w, e.h.cells.At(c).key)
			return false
		default:
			e.readAnomaly(verdict.IntermediateRead, index, c, e.h.txns.At(w).id)
			return false
		}
		i += m
	}
	return true
}

// versionBy is what index made of k.
func (e *Engine) versionBy(index ordinal, k version.Key) version.ID {
	return e.main.writeOf(e.h.txns.At(index).slot, k)
}

// extendList puts the versions of the longest list in order, from element n on.
// What unseen transactions appended between them does not matter: between two
// recorded versions that follow each other in a list there is no third.
func (e *Engine) extendList(k version.Key, lk *listKey, n int) {
	prev := e.lastRecorded(lk.longest[:n], k)
	for _, el := range lk.longest[n:] {
		w := e.h.cells.At(el).final
		if w == none {
			continue
		}
		v := e.versionBy(w, k)
		if v == prev {
			continue
		}
		if lk.anchored || e.main.tab.At(prev).Kind != version.Initial {
			e.succeed(prev, v)
		}
		if e.weak != nil {
			e.weak.ListOrder(k, e.h.txns.At(w).slot)
		}
		prev = v
	}
}

// succeed: v is the next after prev, as a list shows.
func (e *Engine) succeed(prev, v version.ID) {
	told := false // by one strand: of the others, a polygraph may have decided what hides it there
	for _, s := range e.strands {
		if late, first, clash := s.follow(prev, v); clash && !s.loose && !told {
			told = true
			e.missed(s.tab.At(late).Writer, first)
		}
	}
}

// anchor: nobody can come any more who wrote k before what is first in its longest list was read.
func (e *Engine) anchor(k version.Key) {
	lk := e.h.listOf(k)
	switch {
	case lk.anchored:
		return
	case !e.h.perKey.At(k).isListKey():
		e.blocked++ // somebody has come
		return
	}
	lk.anchored = true
	for _, el := range lk.longest {
		if w := e.h.cells.At(el).final; w != none {
			e.succeed(e.initialVersion(k), e.versionBy(w, k))
			break
		}
	}
	if e.weak != nil {
		e.weak.Anchored(k)
	}
}

// lastRecorded is the version of k that a list of elements shows, as far as
// recorded transactions made it.
func (e *Engine) lastRecorded(elements []cellID, k version.Key) version.ID {
	for i := len(elements) - 1; i >= 0; i-- {
		if w := e.h.cells.At(elements[i]).final; w != none {
			return e.versionBy(w, k)
		}
	}
	return e.initialVersion(k)
}

// missed reports that slot late, which wrote the key of first too, did not see
// first in what it read, though a list shows that first is before its own.
func (e *Engine) missed(late version.Slot, first version.ID) {
	k, w := e.main.tab.At(first).Key, e.main.tab.At(first).Writer
	key := e.h.nameOf(k)
	a, b := e.h.txnOf(late), e.h.txnOf(w)
	viol := verdict.Violation{Kind: verdict.Cycle, Level: verdict.SI, Txns: []verdict.TxnID{a, b}, Key: key, Read: -1,
		Cycle: []verdict.Edge{
			{From: a, To: b, Type: verdict.RW, Key: key, Why: verdict.ByList},
			{From: b, To: a, Type: verdict.WW, Key: key, Why: verdict.ByList},
		}}
	x := newExhibits(e.h, e.main)
	x.all(late, k)
	x.write(w, k)
	x.all(e.h.txns.At(e.h.listOf(k).reader).slot, k)
	viol.Exhibits = x.list()
	e.report(viol)
}

// incompatible reports two transactions whose lists of k can't both be prefixes
// of one, or whose elements stand in an order that one of them did not append.
func (e *Engine) incompatible(index, other ordinal, k version.Key) {
	if e.h.txns.At(index).doubt == uncertain {
		e.suspend(index, func() { e.incompatible(index, other, k) })
		return
	}
	a, b := e.h.txns.At(index).id, e.h.txns.At(other).id
	key := e.h.nameOf(k)
	v := verdict.Violation{Kind: verdict.IncompatibleOrder, Level: verdict.G1, Txns: []verdict.TxnID{a, b}, Key: key,
		Read:     -1,
		Exhibits: []verdict.Exhibit{{Txn: a, All: []string{key}}, {Txn: b, All: []string{key}}}}
	if c := e.h.perKey.At(k).changer; c != a && c != b { // it is a list
		v.Exhibits = append(v.Exhibits, verdict.Exhibit{Txn: c, Writes: []string{key}})
	}
	e.reportRead(v)
}
