package incremental

import (
	"cmp"
	"math"
	"slices"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/incremental/version"
	"github.com/isowatch/isowatch/incremental/weak"
	"github.com/isowatch/isowatch/ingest/record"
)

// resolver finds out which version each read saw, or may have seen, and when that is certain, and tells the polygraphs
// and the weak levels.
type resolver struct {
	opt  *Options
	h    *history
	g    *graphs
	weak *weakChecks // or nil
	ev   *evidence
	out  *output
	stop *stopper

	waiting    waits                 // reads whose writer has not come, and some of whom it has
	deferred   []pendingRead         // batch: reads that wait until all candidates are admitted
	blocked    int                   // reads that could not be decided
	atClose    []pendingRead         // reads that only the end of the input decides
	doubtful   []pendingRead         // those of atClose whose readers may not have taken effect
	unanchored waits                 // the first lists read of keys that are not anchored
	suspended  map[ordinal][]anomaly // what uncertain transactions broke, if they took effect
	repeatsDue bool                  // lists that were read again are being decided
}

// anomaly reports a read that no level allows. One of a transaction that may not have taken effect is kept until it is
// known that it did: else it did not.
func (r *resolver) anomaly(kind verdict.Kind, index ordinal, c cellID, by verdict.TxnID) {
	a := anomaly{kind, index, c, by}
	if r.h.txns.At(index).doubt == uncertain {
		r.suspended[index] = append(r.suspended[index], a)
		r.impossible(index, verdict.G1)
		return
	}
	r.out.report(r.ev.anomaly(a))
}

// admit gives a transaction to the strands. One of unknown outcome waits until somebody may have read from it.
func (r *resolver) admit(index ordinal) {
	t := r.h.txns.At(index)
	if t.slot != none {
		return
	}
	if t.open && r.opt.Online && !t.arrived {
		t.arrived = true
		r.wakeReaders(index)
		return
	}
	r.admitTogether(index)
}

// admitTogether gives transactions to the strands, their predecessors in the order of slots being there or among them:
// one as it comes, or, in batch without times, all. It tells whether it was not to stop before.
func (r *resolver) admitTogether(some ...ordinal) bool {
	if !r.each(some, r.enter) {
		return false
	}
	for _, s := range r.g.strands {
		s.holds = r.g.holds(s)
	}
	ok := r.each(some, func(i ordinal) {
		for _, c := range r.h.slab(r.h.txns.At(i).writes) {
			r.g.write(i, c)
		}
	}) && r.each(some, func(i ordinal) {
		if r.opt.Online || r.h.txns.At(i).doubt != uncertain { // in batch those come last
			r.resolveAll(i)
		}
	})
	if !ok {
		return false
	}
	r.g.settle()
	return r.each(some, r.wakeReaders)
}

// each calls do with each, unless of many it is to stop before.
func (r *resolver) each(some []ordinal, do func(ordinal)) bool {
	for n, i := range some {
		if len(some) > 1 && n&1023 == 0 && r.stop.halted() {
			return false
		}
		do(i)
	}
	return true
}

// wakeReaders resolves the reads that waited for what index wrote: first those of
// transactions that overwrote it, which come after index. Until that is known they are
// unordered writers, and what others read of both may break a level in another way than it
// does when all is known: one anomaly would be found twice.
func (r *resolver) wakeReaders(index ordinal) {
	var others []pendingRead
	for _, c := range r.h.slab(r.h.txns.At(index).writes) {
		others = r.wake(c, others)
	}
	for _, read := range others {
		r.resolve(read.index, r.h.waitedFor(read.index, read.cell))
	}
}

// resolveAll resolves a transaction's reads.
func (r *resolver) resolveAll(index ordinal) {
	t := r.h.txns.At(index)
	if t.open {
		r.judgeFaults(index)
	}
	for _, c := range r.h.slab(t.reads) {
		r.resolve(index, c)
	}
	r.resolveRepeats(index)
}

// judgeFaults says what a transaction of unknown outcome breaks by itself.
func (r *resolver) judgeFaults(index ordinal) {
	faults := r.h.faults[index]
	if len(faults) == 0 {
		return
	}
	if r.h.txns.At(index).doubt == uncertain {
		least := verdict.LIN
		for _, f := range faults {
			if least == verdict.LIN || least.Implies(f.v.Level) {
				least = f.v.Level
			}
		}
		r.impossible(index, least)
		return
	}
	for _, f := range faults { // who shows that it took effect may have written what it read, as others may
		for _, c := range f.reads {
			r.ev.showWriters(&f.v, c)
		}
		r.out.report(f.v)
	}
	delete(r.h.faults, index)
}

// impossible: an uncertain transaction can't have taken effect, by what breaks
// base. That of all levels with a polygraph is at least ra.
func (r *resolver) impossible(index ordinal, base verdict.Level) {
	if r.weak != nil {
		r.weak.ruleOut(index, base)
	}
	for _, s := range r.g.strands {
		s.impossible(r.h.txns.At(index).slot)
	}
}

// enter gives a transaction its slot.
func (r *resolver) enter(index ordinal) {
	t := r.h.txns.At(index)
	reads, writes := t.reads.len(), t.writes.len()
	if r.g.plain {
		reads, writes = 0, 0
	}
	for i, s := range r.g.strands {
		slot := s.add(r.g.txnFor(t), t.lsn, reads, writes)
		if i == 0 {
			t.slot = slot
			r.h.slotTx = append(r.h.slotTx, index)
		}
	}
	if r.weak != nil {
		r.weak.enter(t, index)
	}
}

// wake resolves the reads that waited for a value's writer, of transactions that overwrote
// it, and appends the others to dst.
func (r *resolver) wake(c cellID, dst []pendingRead) []pendingRead {
	cl := r.h.cells.At(c)
	if cl.waiting != none && (!r.opt.Online || r.h.unique() && !r.h.common(cl)) {
		key := cl.key
		r.h.release(c, func(index ordinal) {
			if r.h.writesTo(index, key) {
				r.resolve(index, r.h.waitedFor(index, c))
			} else {
				dst = append(dst, pendingRead{index, c})
			}
		})
	}
	return dst
}

// resolve finds the version that a transaction's external read of a cell saw,
// if that is decided, and tells the strands.
func (r *resolver) resolve(index ordinal, c cellID) {
	// else it may turn out a list
	if r.h.saysNothing(c) && !(r.h.perKey.At(r.h.cells.At(c).key).bare() && r.h.isNothing(c)) {
		return
	}
	if r.opt.Online && !r.h.closed && (!r.h.unique() || r.h.common(r.h.cells.At(c))) {
		r.wait(index, c) // for all candidates
		return
	}
	r.decide(index, c)
}

// decide finds the version of a read of which all that will be known is known,
// or its candidates.
func (r *resolver) decide(index ordinal, c cellID) {
	cl := r.h.cells.At(c)
	key := r.h.perKey.At(cl.key)
	switch {
	case r.h.saysNothing(c):
		return
	case (!r.h.unseenUnique() || r.opt.UnseenUnique == nil && r.h.replaced && key.isListKey()) && r.h.lossy(cl.key):
		if cl.about&(hasOthers|isList) != 0 || cl.final != none {
			r.block(index, c) // an unseen transaction may have written it as well
		}
		return
	case r.h.unknowable(cl.key):
		r.block(index, c)
		return
	case key.isListKey():
		r.decideList(index, c)
		return
	}
	w, several := r.h.onlyWriter(index, c)
	switch {
	case several && r.h.mayCome():
		r.wait(index, c)
	case w != none && r.h.turnsOut(c): // it may be what the key held at first as well
		r.atClose = append(r.atClose, pendingRead{index, c})
	case several && r.h.unseens(c):
	case several:
		r.decideAmong(index, c)
	case w != none:
		r.readFrom(index, w, c)
	case !r.h.mayCome() || r.h.unique() && r.h.exposed(index, c):
		r.absent(index, c)
	default:
		r.wait(index, c)
	}
}

// block counts a read that can't be decided. One that only the weak levels know
// of, as its key was read before, leaves the others decided.
func (r *resolver) block(index ordinal, c cellID) {
	if r.h.sequences != nil && r.h.readCell(index, r.h.cells.At(c).key) != c {
		r.weak.blocked++
		return
	}
	r.blocked++
}

// readFrom takes in that index read what w, and no other, can have written.
func (r *resolver) readFrom(index, w ordinal, c cellID) {
	t := r.h.txns.At(index)
	if t.doubt == uncertain {
		r.decideAmong(index, c)
		return
	}
	if r.h.mayCome() && !r.h.arrived(w) {
		r.wait(index, c)
		return
	}
	r.tookEffect(w, pendingRead{index, c})
	switch x := r.h.txns.At(w); {
	case x.slot != none && r.g.plain:
		r.weak.read(index, c, x.slot)
	case x.slot != none && r.h.cells.At(c).final == w && r.h.cells.At(c).version != none:
		r.read(index, c, r.h.cells.At(c).version)
	case x.slot != none && r.g.main.tab.WriteOf(x.slot, r.h.cells.At(c).key) != none:
		r.read(index, c, r.g.main.tab.WriteOf(x.slot, r.h.cells.At(c).key))
	case r.h.mayCome():
		r.wait(index, c)
	default: // the writer has a later slot and will wake it
		r.h.wait(c, index)
	}
}

// tookEffect: a transaction that is in the history read from w, so w is in the
// history, whatever its client knows.
func (r *resolver) tookEffect(w ordinal, by pendingRead) {
	x := r.h.txns.At(w)
	if !x.open {
		return
	}
	if _, ok := r.h.vouchers[w]; !ok {
		r.h.vouchers[w] = by
	}
	if x.doubt == tookEffect {
		return
	}
	before := x.doubt
	x.doubt = tookEffect
	if before == uncertain {
		for _, s := range r.g.strands {
			s.include(x.slot)
		}
		if r.weak != nil {
			r.h.eachAppended(x, func(k version.Key) { r.weak.Appended(k, x.slot) })
		}
		r.settleClaims(w)
		r.settleDoubts(w)
		r.judgeFaults(w)
		for _, a := range r.suspended[w] {
			r.out.report(r.ev.anomaly(a))
		}
		delete(r.suspended, w)
	} else if r.opt.Online {
		r.admit(w)
	}
}

// settleDoubts decides the lists that w read that were not checked as long as it was uncertain.
func (r *resolver) settleDoubts(w ordinal) {
	var due []pendingRead
	r.doubtful = slices.DeleteFunc(r.doubtful, func(read pendingRead) bool {
		if read.index == w {
			due = append(due, read)
		}
		return read.index == w
	})
	r.blocked -= len(due)
	for _, read := range due {
		r.decideList(read.index, read.cell)
	}
}

// mayHaveTakenEffect: somebody may have read from w.
func (r *resolver) mayHaveTakenEffect(w ordinal) {
	if x := r.h.txns.At(w); x.open && x.doubt == unread {
		x.doubt = uncertain
		if r.opt.Online {
			r.admit(w)
		}
	}
}

// decideAmong tells the strands of a read with several candidates, or of an
// uncertain transaction's.
func (r *resolver) decideAmong(index ordinal, c cellID) {
	if !r.opt.Online && !r.h.closedSet {
		r.deferred = append(r.deferred, pendingRead{index, c})
		return
	}
	cl := r.h.cells.At(c)
	if r.h.initial(cl.key) == record.InitialAny && cl.unmade() && !r.h.perKey.At(cl.key).isListKey() {
		if !r.becomesInitial(index, c) {
			r.notInitial(index, c)
			return
		}
		r.h.showsInitial(index, cl.key)
	}
	if !r.h.reads.Take(candidateSteps) {
		r.block(index, c)
		return
	}
	if r.h.open > 0 {
		for w := range r.h.writersOf(c) {
			if !r.h.reads.Take(candidateSteps) {
				r.block(index, c)
				return
			}
			if w != index {
				r.mayHaveTakenEffect(w)
			}
		}
	}
	r.choose(index, c)
}

// choose tells the strands of a read's candidates.
func (r *resolver) choose(index ordinal, c cellID) {
	if r.weak != nil {
		r.weak.choices = append(r.weak.choices, pendingRead{index, c})
	}
	if r.h.readCell(index, r.h.cells.At(c).key) != c {
		return // polygraphs know of a key's first read only
	}
	r.g.separate()
	t := r.h.txns.At(index)
	var cands []version.ID
	if slices.ContainsFunc(r.g.checks, func(c *check) bool { return !c.poly.Budget.Ended() }) { // else nobody looks at them
		cands = r.g.candidates(index, c)
	}
	for _, s := range r.g.strands {
		s.choose(t.slot, r.h.cells.At(c).key, cands, t.doubt == uncertain)
	}
}

// wait keeps a read until somebody writes c, or nobody can any more. c is what
// was read, or an element of it.
func (r *resolver) wait(index ordinal, c cellID) {
	r.h.wait(c, index)
	r.waiting.push(waitingRead{index, c, r.h.deadline(index)})
}

// exclusionBytes is what it takes to say that of two transactions at most one took effect.
const exclusionBytes = 64

// becomesInitial tells whether the value can be, or is, what its key held at
// first, where that is not declared: one value per key. Of transactions that may
// not have taken effect and read different values at most one did, and none if
// somebody surely read another one.
func (r *resolver) becomesInitial(index ordinal, c cellID) bool {
	k := r.h.cells.At(c).key
	p := r.h.perKey.At(k)
	if p.initial != none {
		return r.h.sameInitial(p.initial, c)
	}
	t := r.h.txns.At(index)
	if t.doubt != uncertain {
		r.settleInitial(k, c)
		return true
	}
	for _, o := range r.h.claims[k] {
		if r.h.reads.Hold(exclusionBytes); !r.h.reads.Take(candidateSteps) {
			r.block(index, c)
			break
		}
		if other := r.h.txns.At(o.index); !r.h.sameInitial(o.cell, c) {
			for _, s := range r.g.strands {
				s.exclude(t.slot, other.slot)
			}
			if r.weak != nil {
				r.weak.exclusive = append(r.weak.exclusive, [2]ordinal{index, o.index})
			}
		}
	}
	r.h.claims[k] = append(r.h.claims[k], pendingRead{index, c})
	return true
}

// settleInitial: the key held c at first.
func (r *resolver) settleInitial(k version.Key, c cellID) {
	r.h.perKey.At(k).initial = c
	if len(r.h.claims) == 0 {
		return
	}
	for _, o := range r.h.claims[k] {
		if !r.h.sameInitial(o.cell, c) {
			r.notInitial(o.index, o.cell)
		}
	}
	delete(r.h.claims, k)
}

// notInitial: what index, which may not have taken effect, read is not what the key held
// at first, as it claimed; if it did, that is an anomaly.
func (r *resolver) notInitial(index ordinal, c cellID) {
	if r.h.turnsOut(c) { // that a key holds nothing and that it holds an empty list may be the same
		r.atClose = append(r.atClose, pendingRead{index, c})
		return
	}
	if r.h.cells.At(c).final == index {
		r.anomaly(verdict.FutureRead, index, c, verdict.NoTxn)
		return
	}
	r.anomaly(verdict.ThinAirRead, index, c, verdict.NoTxn)
}

// settleClaims: index, which read initial values, is in the history.
func (r *resolver) settleClaims(index ordinal) {
	for _, c := range r.h.slab(r.h.txns.At(index).reads) {
		k := r.h.cells.At(c).key
		if slices.Contains(r.h.claims[k], pendingRead{index, c}) {
			r.settleInitial(k, c)
			if p := r.h.perKey.At(k); p.reader != none && r.h.txns.At(p.reader).doubt == uncertain {
				p.reader = index
			}
		}
	}
}

// absent resolves a read of a value that no other transaction wrote last.
func (r *resolver) absent(index ordinal, c cellID) {
	cl := r.h.cells.At(c)
	complete, initial := !r.h.lossy(cl.key), r.h.initial(cl.key)
	o := r.h.others(c)
	switch {
	case r.h.unseens(c):
	case complete && initial == record.InitialAny && cl.unmade() && r.becomesInitial(index, c):
		r.readInitial(index, c)
	case complete && r.h.holdsInitial(cl) && !(initial == record.InitialZero && r.h.perKey.At(cl.key).bare() &&
		!r.becomesInitial(index, c)):
		r.readInitial(index, c)
	case complete && r.h.turnsOut(c):
		r.atClose = append(r.atClose, pendingRead{index, c})
	case o.interOf(index) != none:
		r.anomaly(verdict.IntermediateRead, index, c, r.h.txns.At(o.interOf(index)).id)
	case o.aborted != verdict.NoTxn && cl.about&outside == 0 && (r.h.uniqueAttempts() || !r.h.perKey.At(cl.key).mixed) &&
		!r.h.maybeRetried(index, o):
		r.anomaly(verdict.AbortedRead, index, c, o.aborted)
	case !complete || o.aborted != verdict.NoTxn: // an unseen writer, here too
	case o.inter == index || cl.final == index && !r.h.holdsInitial(cl):
		r.anomaly(verdict.FutureRead, index, c, verdict.NoTxn)
	case initial == record.InitialAny && r.tookOwnForInitial(index, c):
	case r.h.emptyList(c) && initial == record.InitialZero && cl.about&isNull != 0 && !r.h.perKey.At(cl.key).surely:
		r.block(index, c) // only if who read the empty list took effect it is one
	case r.h.emptyList(c) && (initial == record.InitialAbsent || r.becomesInitial(index, c)):
		r.readInitial(index, c)
	default:
		r.anomaly(verdict.ThinAirRead, index, c, verdict.NoTxn)
	}
}

// tookOwnForInitial: what was taken for the initial value of c's key is what its reader
// itself wrote later. As index read another value that nobody wrote, it is that reader who
// read from the future, and c what the key held at first.
func (r *resolver) tookOwnForInitial(index ordinal, c cellID) bool {
	k := r.h.cells.At(c).key
	p := r.h.perKey.At(k)
	if r.h.txns.At(index).doubt == uncertain || p.initial == none || p.reader == none || r.h.cells.At(p.initial).
		final != p.reader {
		return false
	}
	reader, own := p.reader, p.initial
	p.reader, p.initial = index, c
	r.anomaly(verdict.FutureRead, reader, own, verdict.NoTxn)
	return true
}

func (r *resolver) readInitial(index ordinal, c cellID) {
	k := r.h.cells.At(c).key
	r.h.showsInitial(index, k)
	if r.h.alone(k) {
		return
	}
	if r.g.plain && !r.h.perKey.At(k).isListKey() {
		if r.h.txns.At(index).doubt == uncertain {
			r.choose(index, c)
			return
		}
		r.weak.read(index, c, weak.Initial)
		return
	}
	v := r.g.initialVersion(k)
	if r.h.txns.At(index).doubt == uncertain {
		r.choose(index, c)
		return
	}
	r.read(index, c, v)
}

// read tells the strands of a resolved read. The first in which it diverges says so: of
// the others, a polygraph may have decided what hides it there.
func (r *resolver) read(index ordinal, c cellID, v version.ID) {
	if r.weak != nil {
		r.weak.read(index, c, r.g.writerOf(v))
	}
	if r.h.sequences != nil && r.h.readCell(index, r.h.cells.At(c).key) != c {
		return // polygraphs know of a key's first read only
	}
	slot := r.h.txns.At(index).slot
	told := false
	for _, s := range r.g.strands {
		other, diverges := s.read(slot, v)
		first := diverges && !told
		told = told || diverges
		switch {
		case !first:
		case s.tab.ReadOf(s.tab.At(other).Writer, s.tab.At(v).Key) != v: // a list shows it
			r.out.report(r.ev.missed(slot, other))
		default:
			r.out.report(r.ev.divergence(slot, s.tab.At(other).Writer, v))
		}
	}
}

// resolveWoken looks again at reads of which it is known now that what they found
// was aborted, or overwritten by its own transaction.
func (r *resolver) resolveWoken() {
	for _, c := range r.h.woken {
		if r.h.cells.At(c).waiting != none && r.opt.Online && r.g.opened && r.h.unique() && !r.h.common(r.h.cells.At(c)) {
			r.h.release(c, func(index ordinal) { r.resolve(index, r.h.waitedFor(index, c)) })
		}
	}
	r.h.woken = r.h.woken[:0]
	r.g.settle()
}

// giveUp resolves the reads whose writer can't come any more.
func (r *resolver) giveUp(watermark int64) {
	r.h.giving = true
	for w := range r.waiting.due(watermark, r.h.closed) {
		if r.h.unwait(w.cell, w.index) {
			r.h.closedSet = true
			r.decide(w.index, r.h.waitedFor(w.index, w.cell))
			r.h.closedSet = false
		}
	}
	for w := range r.unanchored.due(watermark, r.h.closed) {
		r.anchor(r.h.cells.At(w.cell).key)
	}
	r.h.giving = false
	r.g.settleHeld(watermark)
}

// batchOrder is the order in which transactions get their slots.
func (r *resolver) batchOrder() []ordinal {
	order := make([]ordinal, 0, r.h.txns.Len())
	for i := range ordinal(r.h.txns.Len()) {
		if t := r.h.txns.At(i); !t.open || t.doubt != unread {
			order = append(order, i)
		}
	}
	if r.g.realTime() {
		slices.SortStableFunc(order, func(a, b ordinal) int {
			return cmp.Compare(r.h.txns.At(a).order,
				r.h.txns.At(b).order)
		})
	}
	return order
}

// findAmbiguities finds, in batch, the reads with several possible writers and
// the transactions of unknown outcome that are in the history or may be: the
// least fixpoint from the committed ones (docs/decisions/0010).
func (r *resolver) findAmbiguities() {
	var todo []ordinal
	promote := func(w ordinal, to doubt, by pendingRead) {
		if x := r.h.txns.At(w); x.open && x.doubt < to {
			if to == tookEffect {
				r.h.vouchers[w] = by
			}
			x.doubt = to
			todo = append(todo, w)
		}
	}
	if r.h.opaque || r.h.partial() && len(r.opt.Tables) == 0 && !r.h.unseenUnique() {
		return // no read proves anything
	}
	if r.h.open == 0 && len(r.h.refs) == 0 && !r.h.wroteFirst {
		return // nothing to be found
	}
	for i := range ordinal(r.h.txns.Len()) {
		if !r.h.txns.At(i).open {
			r.readFroms(i, tookEffect, promote)
		}
	}
	for len(todo) > 0 {
		i := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		r.readFroms(i, r.h.txns.At(i).doubt, promote)
	}
	for i := range ordinal(r.h.txns.Len()) {
		r.g.ambiguities = r.g.ambiguities || r.h.txns.At(i).doubt == uncertain
	}
}

// readFroms tells promote of the transactions of unknown outcome that index, which
// is in the history as far as sure says, read from or may have.
func (r *resolver) readFroms(index ordinal, sure doubt, promote func(w ordinal, to doubt, by pendingRead)) {
	for _, c := range r.h.external(index) {
		if r.h.saysNothing(c) || r.h.unknowable(r.h.cells.At(c).key) {
			continue
		}
		by := pendingRead{index, c}
		if r.h.cells.At(c).about&isList != 0 && r.h.perKey.At(r.h.cells.At(c).key).isListKey() {
			for _, el := range r.h.elementsOf(c).elements {
				if w := r.h.cells.At(el).final; w != none {
					promote(w, sure, by)
				}
			}
			continue
		}
		w, several := r.h.onlyWriter(index, c)
		switch {
		case several && r.h.unseens(c):
		case several:
			if r.g.ambiguities = true; r.h.open == 0 {
				continue
			}
			for w := range r.h.writersOf(c) {
				if !r.h.reads.Take(1) {
					return
				}
				if w != index {
					promote(w, uncertain, by)
				}
			}
		case w != none:
			promote(w, sure, by)
		}
	}
}

// resolveDeferred resolves what waited for all candidates to be admitted: reads
// with several, and those of uncertain transactions.
func (r *resolver) resolveDeferred(order []ordinal) {
	r.h.closedSet = true
	r.g.shared = map[cellID][]version.ID{}
	deferred := r.deferred
	r.deferred = nil
	for _, read := range deferred {
		r.decide(read.index, read.cell)
	}
	for _, i := range order {
		if r.h.txns.At(i).doubt == uncertain {
			r.resolveAll(i)
		}
	}
	r.h.closedSet, r.g.shared = false, nil
}

// admitByTime gives one transaction after the other to the strands. A read with
// several candidates waits until all have been admitted that began before its
// transaction ended; later ones follow it by the clock.
func (r *resolver) admitByTime(order []ordinal) {
	earliest := make([]int64, len(order)+1) // by place: the least start from there on
	earliest[len(order)] = maxTime
	for i := len(order) - 1; i >= 0; i-- {
		earliest[i] = earliest[i+1]
		if t := r.h.txns.At(order[i]); !t.timed {
			earliest[i] = math.MinInt64
		} else {
			earliest[i] = min(earliest[i], t.start)
		}
	}
	r.h.closedSet = true
	for n, i := range order {
		if n&255 == 0 && r.stop.halted() {
			return
		}
		r.h.closedSet = false
		r.admit(i)
		r.h.closedSet = true
		for len(r.deferred) > 0 && r.h.precededBy(r.deferred[0].index, earliest[n+1]) {
			read := r.deferred[0]
			r.deferred = r.deferred[1:]
			r.decide(read.index, read.cell)
		}
	}
	r.resolveDeferred(order)
}

// resolveRepeats resolves what a transaction read again, and found changed.
func (r *resolver) resolveRepeats(index ordinal) {
	seq, ok := r.h.sequences[index]
	if !ok {
		return
	}
	first := r.h.slab(r.h.txns.At(index).reads)
	for i, c := range seq {
		if !slices.Contains(first, c) && !slices.Contains(seq[:i], c) {
			r.resolve(index, c)
		}
	}
}

// judgeRepeats decides the lists that were read again, for which nobody can come any more, in the order in which they
// came: one whose time is up waits for those before it.
func (r *resolver) judgeRepeats() {
	if r.weak == nil {
		return
	}
	r.repeatsDue, r.h.closedSet = true, true
	for len(r.weak.repeats) > 0 && (r.h.closed || r.h.deadline(r.weak.repeats[0].index) < r.h.watermark) {
		read := r.weak.repeats[0]
		r.weak.repeats = r.weak.repeats[1:]
		r.decide(read.index, read.cell)
	}
	r.repeatsDue, r.h.closedSet = false, false
}
