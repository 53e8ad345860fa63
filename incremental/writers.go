package incremental

import (
	"math"
	"slices"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/incremental/version"
	"github.com/isowatch/isowatch/ingest/record"
)

// alone: no other transaction touches the key, so that its versions order
// nothing.
func (h *history) alone(k version.Key) bool { return !h.opt.Online && !h.perKey.At(k).shared }

// readCell is what a transaction's external read of k found, or none.
func (h *history) readCell(index ordinal, k version.Key) cellID {
	for _, c := range h.slab(h.txns.At(index).reads) {
		if h.cells.At(c).key == k {
			return c
		}
	}
	return none
}

// writesTo tells whether a transaction wrote a key.
func (h *history) writesTo(index ordinal, k version.Key) bool {
	return slices.ContainsFunc(h.slab(h.txns.At(index).writes),
		func(c cellID) bool { return h.cells.At(c).key == k })
}

// waitedFor is index's read that waited for c: of c itself, or of a list with
// that element.
func (h *history) waitedFor(index ordinal, c cellID) cellID {
	for _, r := range h.slab(h.txns.At(index).reads) {
		if r == c {
			return c
		}
	}
	if slices.Contains(h.sequences[index], c) {
		return c
	}
	return h.readCell(index, h.cells.At(c).key)
}

// mayCome: somebody may have written what is read whose record is still to come.
func (h *history) mayCome() bool { return h.opt.Online && !h.closed && !h.closedSet }

// common: the value is one that many write, as they delete what is there or put it back to what it was:
// null, the empty list, and what every key is known to hold at first. That values are unique is not said of it.
func (h *history) common(cl *cell) bool { return cl.about&h.commonly != 0 }

// saysNothing: with partial coverage an unseen writer may have deleted the key, or put back what it held at
// first. Nobody unseen is presumed to do so to lists; a key that is one and written, too, is not checked.
func (h *history) saysNothing(c cellID) bool {
	cl := h.cells.At(c)
	return h.lossy(cl.key) && !h.perKey.At(cl.key).appended && h.common(cl)
}

// onlyWriter is the only transaction other than index that the value can be
// from, or none; several tells that there is more than one possibility, the
// initial state and unseen writers counted.
func (h *history) onlyWriter(index ordinal, c cellID) (w ordinal, several bool) {
	w = none
	n := 0
	if cl := h.cells.At(c); cl.final != none && cl.more == none { // nearly always
		if cl.final != index {
			w, n = cl.final, 1
		}
	} else {
		for x := range h.writersOf(c) {
			if x != index {
				w = x
				n++
			}
			if n == 2 {
				break
			}
		}
	}
	if n > 0 && h.mayBeInitial(h.cells.At(c)) {
		n++
	}
	return w, n > 1
}

// arrived: it is w's turn, or past it, to be admitted. Online its predecessors
// have been.
func (h *history) arrived(w ordinal) bool {
	x := h.txns.At(w)
	return !x.open || x.arrived || !h.opt.Online
}

// candidateSteps is what it costs to look at a possible writer of a read, or to put it in its place among the others.
const candidateSteps = 4

// unknowable: who wrote what was read of the key can't be known by what is kept of the records.
func (h *history) unknowable(k version.Key) bool {
	key := h.perKey.At(k)
	return h.opaque || key.appended && !key.isListKey()
}

// isOpen tells whether it is not known, or not yet, who may have written what index read of c.
func (h *history) isOpen(index ordinal, c cellID) bool {
	waitsFor := func(c cellID) bool {
		for r := range h.waitersOf(c) {
			if r == index {
				return true
			}
		}
		return false
	}
	return h.unknowable(h.cells.At(c).key) || waitsFor(c) || h.cells.At(c).about&isList != 0 &&
		slices.ContainsFunc(h.elementsOf(c).elements, waitsFor)
}

// holdsInitial tells whether every key is known to hold the cell's value at
// first.
func (h *history) holdsInitial(cl *cell) bool {
	switch h.initial(cl.key) {
	case record.InitialAbsent:
		return cl.about&isNull != 0
	case record.InitialZero:
		return cl.about&isZero != 0
	}
	return false
}

// unmade: whoever wrote the cell's value, if anybody did, had read it there before. So the first of them read what
// the key held at first, or what an unseen transaction wrote; and whoever else reads it may have read that.
func (cl *cell) unmade() bool { return cl.about&(isMade|outside) == 0 }

// unseens: an unseen writer, who has no place in any order, may have written c; another read of the same value may have
// found another one's. So a read of it proves nothing.
func (h *history) unseens(c cellID) bool {
	cl := h.cells.At(c)
	return h.lossy(cl.key) && cl.unmade()
}

// mayBeInitial: a read of the cell's value may be of what its key held at first, or of what an unseen
// transaction wrote, whoever is seen to have written it. What somebody made is neither, unless the
// initial value is declared.
func (h *history) mayBeInitial(cl *cell) bool {
	return h.holdsInitial(cl) || (h.initial(cl.key) == record.InitialAny || h.lossy(cl.key)) && cl.unmade()
}

// exposed: the only writer of the value, as values are unique, did not commit it as
// it stands.
func (h *history) exposed(index ordinal, c cellID) bool {
	o := h.others(c)
	return o.interOf(index) != none || o.aborted != verdict.NoTxn && h.uniqueAttempts()
}

// deadline is the latest end that the record of a writer of what index read can
// carry: the writer began before index ended.
func (h *history) deadline(index ordinal) int64 {
	t := h.txns.At(index)
	if h.opt.MaxTransaction == 0 {
		return maxTime
	}
	wait := h.opt.MaxTransaction + h.opt.MaxSkew
	if t.order > maxTime-wait {
		return maxTime
	}
	return t.order + wait
}

const maxTime = int64(^uint64(0) >> 1)

// sameInitial: a and b are the same, or both the empty list.
func (h *history) sameInitial(a, b cellID) bool {
	if a == b || !h.isNothing(a) || !h.isNothing(b) {
		return a == b
	}
	p := h.perKey.At(h.cells.At(a).key)
	return p.appended || p.bare() && h.whole()
}

// whole: nothing more will be taken in.
func (h *history) whole() bool { return !h.opt.Online || h.closed }

// turnsOut: what a key held at first, if it is c, depends on whether it turns out to hold
// lists: one holds nothing at first, and for that there are two words.
func (h *history) turnsOut(c cellID) bool {
	cl := h.cells.At(c)
	p := h.perKey.At(cl.key)
	if p.scalar || h.whole() {
		return false
	}
	initial := h.initial(cl.key)
	return cl.about&isEmpty != 0 || cl.about&isNull != 0 && initial != record.InitialAbsent &&
		(initial == record.InitialZero || p.initial == none || h.isNothing(p.initial))
}

// emptyList: c is what a list holds at first, and its key is one that nobody changed.
func (h *history) emptyList(c cellID) bool {
	p := h.perKey.At(h.cells.At(c).key)
	return p.bare() && p.emptied && h.isNothing(c)
}

// showsInitial: what index read of k is what that held at first, if index took effect.
func (h *history) showsInitial(index ordinal, k version.Key) {
	if p := h.perKey.At(k); p.reader == none || h.txns.At(p.reader).doubt == uncertain && h.txns.At(index).
		doubt != uncertain {
		p.reader = index
	}
}

// finallyAborted: nobody but who was aborted can have appended an element that index
// read, or can be somebody whose record is still to come.
func (h *history) finallyAborted(index ordinal, o otherWriters) bool {
	return (!h.mayCome() || h.uniqueAttempts()) && !h.maybeRetried(index, o)
}

// appendsOf are the elements that a transaction appended to k, in order.
func (h *history) appendsOf(index ordinal, k version.Key) []cellID {
	all := h.slab(h.txns.At(index).writes)
	from := slices.IndexFunc(all, func(c cellID) bool { return h.cells.At(c).key == k })
	var out []cellID
	for _, c := range all[from:] {
		if h.cells.At(c).key == k {
			out = append(out, c)
		}
	}
	return out
}

// firstTimed is the first slot after the seeds that has a known end, or none.
func (h *history) firstTimed() version.Slot {
	for s := h.stubs; s < version.Slot(len(h.slotTx)); s++ {
		if t := h.txns.At(h.slotTx[s]); t.timed && !t.open {
			return s
		}
	}
	return none
}

// before is how many transactions that are not aborted are among the first n.
func (h *history) before(n verdict.TxnID) ordinal {
	for i := min(int(n), len(h.indexOf)); i > 0; i-- {
		if x := h.indexOf[i-1]; x != none {
			return x + 1
		}
	}
	return 0
}

// lossy: somebody who was not seen may have written the key.
func (h *history) lossy(k version.Key) bool { return h.perKey.At(k).lossy || h.unseen(k) }

// unseen: that is so as it was declared.
func (h *history) unseen(k version.Key) bool {
	p := h.perKey.At(k)
	return p.unseen || h.partial() && !p.whole
}

// initial is what is declared of what a key holds at first.
func (h *history) initial(k version.Key) record.Initial {
	if h.perKey.At(k).whole {
		return record.InitialAbsent
	}
	return h.opt.Initial
}

// sawAgain notes, if it is so, that a value was written to the key before.
func (h *history) sawAgain(k version.Key, is bool) {
	if is && !(h.repeated && h.drawn) {
		h.repeated, h.drawn = true, h.drawn || !h.perKey.At(k).whole
	}
}

// uniqueAttempts is State.UniqueAttempts.
func (h *history) uniqueAttempts() bool { return h.opt.UniqueAttempts && !h.retried }

// unseenUnique is State.UnseenUnique.
func (h *history) unseenUnique() bool {
	if h.opt.UnseenUnique == nil {
		return !h.drawn
	}
	return *h.opt.UnseenUnique
}

// unique is State.Unique.
func (h *history) unique() bool { return h.opt.UniqueValues && !h.repeated }

// maybeRetried: the value that index read, and that nobody recorded is known to have committed, may be
// that of another attempt whose record is lost. Its writer then is unseen. Such an attempt may have been
// made before, as one whose answer is lost is tried again, and ended no later than what index waits for.
func (h *history) maybeRetried(index ordinal, o otherWriters) bool {
	return !h.uniqueAttempts() && h.opt.Lost.touch(o.since, h.deadline(index))
}

// before is a time that much earlier.
func before(at, much int64) int64 {
	if much == maxTime || at < math.MinInt64+much {
		return math.MinInt64
	}
	return at - much
}

func (h *history) txnOf(s version.Slot) verdict.TxnID { return h.txns.At(h.slotTx[s]).id }

// undecided calls f with the transactions of some reads, and of suspects, that are not decided as yet. What is not known
// when no writer can come any more is open for good, though the input's end may decide it: a monitor's has none.
func (h *history) undecided(f func(ordinal), reads ...[]pendingRead) {
	if h.closed {
		return
	}
	for _, r := range slices.Concat(reads...) {
		if h.deadline(r.index) >= h.watermark {
			f(r.index)
		}
	}
	for _, s := range h.suspects {
		if i := h.indexOf[s.v.Txns[0]]; i != none && h.deadline(i) >= h.watermark {
			f(i)
		}
	}
}

// pending is how many they are.
func (h *history) pending(reads ...[]pendingRead) (n int) {
	h.undecided(func(ordinal) { n++ }, reads...)
	return n
}

// prunable: times are worth using for a level that does not have them unless nearly all
// transactions lack them. One without has a place between those around it in its session and
// those that read from it, as long as these have times.
func (h *history) prunable() bool {
	seeds := min(h.opt.Seeds, h.txns.Len())
	return h.untimed-h.untimedSeeds <= 16+(h.txns.Len()-seeds)/8*7
}

// precededBy: whatever begins at start or later follows index by the clock.
func (h *history) precededBy(index ordinal, start int64) bool {
	t := h.txns.At(index)
	return t.timed && !t.open && t.end < start && start-t.end > h.opt.MaxSkew
}

// eachAppended calls f with the keys that a transaction appended to.
func (h *history) eachAppended(t *txn, f func(version.Key)) {
	last := version.Key(none)
	for _, c := range h.slab(t.writes) {
		if k := h.cells.At(c).key; k != last && h.perKey.At(k).appended {
			f(k)
			last = k
		}
	}
}

// shownBy are the recorded transactions whose elements a list shows, in order.
func (h *history) shownBy(l *list) []version.Slot {
	var out []version.Slot
	for _, el := range l.elements {
		if w := h.cells.At(el).final; w != none {
			if s := h.txns.At(w).slot; s != none && (len(out) == 0 || out[len(out)-1] != s) {
				out = append(out, s)
			}
		}
	}
	return out
}

func (h *history) partial() bool { return h.opt.Coverage == record.CoveragePartial }

// someUnseen tells whether coverage is partial, or that of a table.
func (h *history) someUnseen() bool { return h.partial() || h.opt.Tables.Has(record.CoveragePartial) }
