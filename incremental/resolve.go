package incremental

import (
	"slices"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/incremental/version"
	"github.com/isowatch/isowatch/incremental/weak"
	"github.com/isowatch/isowatch/ingest/record"
)

// admit gives a transaction to the strands, its predecessors in the order of
// slots being there. One of unknown outcome waits until somebody may have read
// from it.
func (e *Engine) admit(index ordinal) {
	t := e.in.txns.At(index)
	if t.slot != none {
		return
	}
	if t.open && e.opt.Online && !t.arrived {
		t.arrived = true
		e.wakeReaders(index)
		return
	}
	e.enter(index)
	for _, s := range e.strands {
		s.holds = e.holds(s)
	}
	for _, c := range e.in.slab(t.writes) {
		e.write(index, c)
	}
	if e.opt.Online || t.doubt != uncertain { // in batch those come last
		e.resolveAll(index)
	}
	e.settle()
	e.wakeReaders(index)
}

// wakeReaders resolves the reads that waited for what index wrote: first those of
// transactions that overwrote it, which come after index. Until that is known they are
// unordered writers, and what others read of both may break a level in another way than it
// does when all is known: one anomaly would be found twice.
func (e *Engine) wakeReaders(index ordinal) {
	var others []pendingRead
	for _, c := range e.in.slab(e.in.txns.At(index).writes) {
		others = e.wake(c, others)
	}
	for _, r := range others {
		e.resolve(r.index, e.waitedFor(r.index, r.cell))
	}
}

// resolveAll resolves a transaction's reads.
func (e *Engine) resolveAll(index ordinal) {
	t := e.in.txns.At(index)
	if t.open {
		e.judgeFaults(index)
	}
	for _, c := range e.in.slab(t.reads) {
		e.resolve(index, c)
	}
	e.resolveRepeats(index)
}

// judgeFaults says what a transaction of unknown outcome breaks by itself.
func (e *Engine) judgeFaults(index ordinal) {
	faults := e.in.faults[index]
	if len(faults) == 0 {
		return
	}
	if e.in.txns.At(index).doubt == uncertain {
		least := verdict.LIN
		for _, f := range faults {
			if least == verdict.LIN || least.Implies(f.v.Level) {
				least = f.v.Level
			}
		}
		e.impossible(index, least)
		return
	}
	for _, f := range faults { // who shows that it took effect may have written what it read, as others may
		for _, c := range f.reads {
			e.showWriters(&f.v, c)
		}
		e.report(f.v)
	}
	delete(e.in.faults, index)
}

// suspend: index, which is uncertain, can't have taken effect, or it is as report
// says.
func (e *Engine) suspend(index ordinal, report func()) {
	e.suspended[index] = append(e.suspended[index], report)
	e.impossible(index, verdict.G1)
}

// impossible: an uncertain transaction can't have taken effect, by what breaks
// base. That of all levels with a polygraph is at least ra.
func (e *Engine) impossible(index ordinal, base verdict.Level) {
	if e.weak != nil {
		e.weak.ruleOut(index, base)
	}
	for _, s := range e.strands {
		s.impossible(e.in.txns.At(index).slot)
	}
}

func (e *Engine) settle() {
	for _, s := range e.strands {
		if !e.holds(s) {
			s.settle()
		}
	}
}

// holds tells whether blocks wait for the reads of their transactions. Where values may
// repeat these are known only when no writer can come any more. Till then, without times,
// nothing but sessions would order the blocks of all that wait: every two of a key would
// be a pair to be kept, and to be looked at again at each read that is decided.
func (e *Engine) holds(s *strand) bool {
	return e.opt.Online && !e.Unique() && (!e.closed || e.giving) && s.untimed && len(s.polys) > 0
}

// settleHeld gives the polygraphs the blocks of transactions whose reads are known,
// watermark being what it is for giveUp.
func (e *Engine) settleHeld(watermark int64) {
	for _, s := range e.strands {
		if e.holds(s) {
			s.settleOf(func(w version.Slot) bool { return e.deadline(e.slotTx[w]) < watermark })
		} else {
			s.settle()
		}
	}
}

// enter gives a transaction its slot.
func (e *Engine) enter(index ordinal) {
	t := e.in.txns.At(index)
	reads, writes := t.reads.len(), t.writes.len()
	if e.plain {
		reads, writes = 0, 0
	}
	for i, s := range e.strands {
		slot := s.add(e.txnFor(t), reads, writes)
		if i == 0 {
			t.slot = slot
			e.slotTx = append(e.slotTx, index)
		}
	}
	if e.weak != nil {
		e.enterWeak(t, index)
	}
}

// txnFor is what strands are told of a transaction.
func (e *Engine) txnFor(t *txn) strandTxn {
	x := strandTxn{session: t.session, start: t.start, end: t.end, timed: t.timed, open: t.open,
		uncertain: t.doubt == uncertain, prev: none}
	if t.base {
		x.base, x.first, x.timed = true, none, false
		if t.timed && t.end <= e.in.txns.At(e.slotTx[e.first]).end {
			x.first = e.first
		}
	}
	if t.prev != none {
		x.prev = e.in.txns.At(t.prev).slot
	}
	return x
}

// write makes the version of a final write; the elements that a transaction
// appended to a list are one.
func (e *Engine) write(index ordinal, c cellID) {
	t, cl := e.in.txns.At(index), e.in.cells.At(c)
	if e.alone(cl.key) || e.plain && !e.in.perKey.At(cl.key).appended {
		return
	}
	v := version.ID(none)
	if e.in.perKey.At(cl.key).appended {
		v = e.main.writeOf(t.slot, cl.key) // of an element before
	}
	if v == none {
		for i, s := range e.strands {
			w := s.write(t.slot, cl.key)
			if i == 0 {
				v = w
			}
		}
	}
	if cl.final == index {
		cl.version = v
	}
}

// alone: no other transaction touches the key, so that its versions order
// nothing.
func (e *Engine) alone(k version.Key) bool { return !e.opt.Online && !e.in.perKey.At(k).shared }

// readCell is what a transaction's external read of k found, or none.
func (e *Engine) readCell(index ordinal, k version.Key) cellID {
	for _, c := range e.in.slab(e.in.txns.At(index).reads) {
		if e.in.cells.At(c).key == k {
			return c
		}
	}
	return none
}

// wake resolves the reads that waited for a value's writer, of transactions that overwrote
// it, and appends the others to dst.
func (e *Engine) wake(c cellID, dst []pendingRead) []pendingRead {
	cl := e.in.cells.At(c)
	if cl.waiting != none && (!e.opt.Online || e.Unique() && !e.common(cl)) {
		key := cl.key
		e.in.release(c, func(index ordinal) {
			if e.writesTo(index, key) {
				e.resolve(index, e.waitedFor(index, c))
			} else {
				dst = append(dst, pendingRead{index, c})
			}
		})
	}
	return dst
}

// writesTo tells whether a transaction wrote a key.
func (e *Engine) writesTo(index ordinal, k version.Key) bool {
	return slices.ContainsFunc(e.in.slab(e.in.txns.At(index).writes),
		func(c cellID) bool { return e.in.cells.At(c).key == k })
}

// waitedFor is index's read that waited for c: of c itself, or of a list with
// that element.
func (e *Engine) waitedFor(index ordinal, c cellID) cellID {
	for _, r := range e.in.slab(e.in.txns.At(index).reads) {
		if r == c {
			return c
		}
	}
	if slices.Contains(e.in.sequences[index], c) {
		return c
	}
	return e.readCell(index, e.in.cells.At(c).key)
}

// resolve finds the version that a transaction's external read of a cell saw,
// if that is decided, and tells the strands.
func (e *Engine) resolve(index ordinal, c cellID) {
	// else it may turn out a list
	if e.saysNothing(c) && !(e.in.perKey.At(e.in.cells.At(c).key).bare() && e.in.isNothing(c)) {
		return
	}
	if e.opt.Online && !e.closed && (!e.Unique() || e.common(e.in.cells.At(c))) {
		e.wait(index, c) // for all candidates
		return
	}
	e.decide(index, c)
}

// mayCome: somebody may have written what is read whose record is still to come.
func (e *Engine) mayCome() bool { return e.opt.Online && !e.closed && !e.closedSet }

// common: the value is one that many write, as they delete what is there or put it back to what it was:
// null, the empty list, and what every key is known to hold at first. That values are unique is not said of it.
func (e *Engine) common(cl *cell) bool { return cl.about&e.in.common != 0 }

// saysNothing: with partial coverage an unseen writer may have deleted the key, or put back what it held at
// first. Nobody unseen is presumed to do so to lists; a key that is one and written, too, is not checked.
func (e *Engine) saysNothing(c cellID) bool {
	cl := e.in.cells.At(c)
	return e.lossy(cl.key) && !e.in.perKey.At(cl.key).appended && e.common(cl)
}

// decide finds the version of a read of which all that will be known is known,
// or its candidates.
func (e *Engine) decide(index ordinal, c cellID) {
	cl := e.in.cells.At(c)
	key := e.in.perKey.At(cl.key)
	switch {
	case e.saysNothing(c):
		return
	case (!e.UnseenUnique() || e.opt.UnseenAsSeen && e.in.replaced && key.isListKey()) && e.lossy(cl.key):
		if cl.about&(hasOthers|isList) != 0 || cl.final != none {
			e.block(index, c) // an unseen transaction may have written it as well
		}
		return
	case e.unknowable(cl.key):
		e.block(index, c)
		return
	case key.isListKey():
		e.decideList(index, c)
		return
	}
	w, several := e.onlyWriter(index, c)
	switch {
	case several && e.mayCome():
		e.wait(index, c)
	case w != none && e.turnsOut(c): // it may be what the key held at first as well
		e.atClose = append(e.atClose, pendingRead{index, c})
	case several && e.unseens(c):
	case several:
		e.decideAmong(index, c)
	case w != none:
		e.readFrom(index, w, c)
	case !e.mayCome() || e.Unique() && e.exposed(index, c):
		e.absent(index, c)
	default:
		e.wait(index, c)
	}
}

// block counts a read that can't be decided. One that only the weak levels know
// of, as its key was read before, leaves the others decided.
func (e *Engine) block(index ordinal, c cellID) {
	if e.in.sequences != nil && e.readCell(index, e.in.cells.At(c).key) != c {
		e.weak.blocked++
		return
	}
	e.blocked++
}

// onlyWriter is the only transaction other than index that the value can be
// from, or none; several tells that there is more than one possibility, the
// initial state and unseen writers counted.
func (e *Engine) onlyWriter(index ordinal, c cellID) (w ordinal, several bool) {
	w = none
	n := 0
	if cl := e.in.cells.At(c); cl.final != none && cl.more == none { // nearly always
		if cl.final != index {
			w, n = cl.final, 1
		}
	} else {
		for x := range e.in.writersOf(c) {
			if x != index {
				w = x
				n++
			}
			if n == 2 {
				break
			}
		}
	}
	if n > 0 && e.mayBeInitial(e.in.cells.At(c)) {
		n++
	}
	return w, n > 1
}

// readFrom takes in that index read what w, and no other, can have written.
func (e *Engine) readFrom(index, w ordinal, c cellID) {
	t := e.in.txns.At(index)
	if t.doubt == uncertain {
		e.decideAmong(index, c)
		return
	}
	if !e.arrived(w) {
		e.wait(index, c)
		return
	}
	e.tookEffect(w, pendingRead{index, c})
	switch x := e.in.txns.At(w); {
	case x.slot != none && e.plain:
		e.readWeak(index, c, x.slot)
	case x.slot != none && e.in.cells.At(c).final == w && e.in.cells.At(c).version != none:
		e.read(index, c, e.in.cells.At(c).version)
	case x.slot != none && e.main.writeOf(x.slot, e.in.cells.At(c).key) != none:
		e.read(index, c, e.main.writeOf(x.slot, e.in.cells.At(c).key))
	case e.opt.Online:
		e.wait(index, c)
	default: // the writer has a later slot and will wake it
		e.in.wait(c, index)
	}
}

// arrived: it is w's turn, or past it, to be admitted. Online its predecessors
// have been.
func (e *Engine) arrived(w ordinal) bool {
	x := e.in.txns.At(w)
	return !x.open || x.arrived || !e.opt.Online
}

// tookEffect: a transaction that is in the history read from w, so w is in the
// history, whatever its client knows.
func (e *Engine) tookEffect(w ordinal, by pendingRead) {
	x := e.in.txns.At(w)
	if !x.open {
		return
	}
	if _, ok := e.vouchers[w]; !ok {
		e.vouchers[w] = by
	}
	if x.doubt == tookEffect {
		return
	}
	before := x.doubt
	x.doubt = tookEffect
	if before == uncertain {
		for _, s := range e.strands {
			s.include(x.slot)
		}
		if e.weak != nil {
			e.appendedTo(x, func(k version.Key) { e.weak.Appended(k, x.slot) })
		}
		e.settleClaims(w)
		e.settleDoubts(w)
		e.judgeFaults(w)
		for _, report := range e.suspended[w] {
			report()
		}
		delete(e.suspended, w)
	} else if e.opt.Online {
		e.admit(w)
	}
}

// settleDoubts decides the lists that w read that were not checked as long as it was uncertain.
func (e *Engine) settleDoubts(w ordinal) {
	var due []pendingRead
	e.doubtful = slices.DeleteFunc(e.doubtful, func(r pendingRead) bool {
		if r.index == w {
			due = append(due, r)
		}
		return r.index == w
	})
	e.blocked -= len(due)
	for _, r := range due {
		e.decideList(r.index, r.cell)
	}
}

// mayHaveTakenEffect: somebody may have read from w.
func (e *Engine) mayHaveTakenEffect(w ordinal) {
	if x := e.in.txns.At(w); x.open && x.doubt == unread {
		x.doubt = uncertain
		if e.opt.Online {
			e.admit(w)
		}
	}
}

// decideAmong tells the strands of a read with several candidates, or of an
// uncertain transaction's.
func (e *Engine) decideAmong(index ordinal, c cellID) {
	if !e.opt.Online && !e.closedSet {
		e.deferred = append(e.deferred, pendingRead{index, c})
		return
	}
	cl := e.in.cells.At(c)
	if e.opt.Initial == record.InitialAny && e.unmade(cl) && !e.in.perKey.At(cl.key).isListKey() {
		if !e.becomesInitial(index, c) {
			e.notInitial(index, c)
			return
		}
		e.showsInitial(index, cl.key)
	}
	for w := range e.in.writersOf(c) {
		if !e.reads.Take(candidateSteps) {
			e.block(index, c)
			return
		}
		if w != index {
			e.mayHaveTakenEffect(w)
		}
	}
	e.choose(index, c)
}

// choose tells the strands of a read's candidates.
func (e *Engine) choose(index ordinal, c cellID) {
	if e.weak != nil {
		e.weak.choices = append(e.weak.choices, pendingRead{index, c})
	}
	if e.readCell(index, e.in.cells.At(c).key) != c {
		return // polygraphs know of a key's first read only
	}
	e.separate()
	t := e.in.txns.At(index)
	var cands []version.ID
	if slices.ContainsFunc(e.checks, func(c *check) bool { return !c.poly.Budget.Ended() }) { // else nobody looks at them
		cands = e.candidates(index, c)
	}
	for _, s := range e.strands {
		s.choose(t.slot, e.in.cells.At(c).key, cands, t.doubt == uncertain)
	}
}

// candidates are the versions that a read of c by index can be of: those of the
// value's admitted writers, by line and slot, and the initial one before them.
func (e *Engine) candidates(index ordinal, c cellID) []version.ID {
	var out []version.ID
	cl := e.in.cells.At(c)
	if e.in.perKey.At(cl.key).isListKey() {
		if cl.about&isList != 0 {
			return append(out, e.lastRecorded(e.in.elementsOf(c).elements, cl.key))
		}
		return append(out, e.initialVersion(cl.key))
	}
	if w, _ := e.onlyWriter(index, c); w == none {
		if v := e.main.tab.InitialOf(cl.key); v != none {
			out = append(out, v)
		}
		return out
	}
	if e.mayBeInitial(cl) && !e.lossy(cl.key) {
		out = append(out, e.initialVersion(cl.key))
	}
	n := len(out)
	for w := range e.in.writersOf(c) {
		if x := e.in.txns.At(w); w != index && x.slot != none {
			v := cl.version
			if cl.final != w || v == none {
				v = e.main.writeOf(x.slot, cl.key)
			}
			if v != none {
				out = append(out, v)
			}
		}
	}
	e.main.byLine(out[n:])
	e.reads.Use(candidateSteps * len(out))
	return out
}

// candidateSteps is what it costs to look at a possible writer of a read, or to put it in its place among the others.
const candidateSteps = 4

// separate gives each polygraph a strand of its own, as levels may find
// different writers for the same read.
func (e *Engine) separate() {
	if e.ambiguities {
		return
	}
	e.ambiguities = true
	for _, several := range e.strands {
		for len(several.polys) > 1 {
			p := several.polys[len(several.polys)-1]
			several.polys = several.polys[:len(several.polys)-1]
			s := e.copy(p.Config())
			s.finish(false)
			s.polys[0].MaxFound = p.MaxFound
			for _, c := range e.checks {
				if c.poly == p {
					c.poly, c.strand = s.polys[0], s
				}
			}
			e.strands = append(e.strands, s)
		}
	}
}

// wait keeps a read until somebody writes c, or nobody can any more. c is what
// was read, or an element of it.
func (e *Engine) wait(index ordinal, c cellID) {
	e.in.wait(c, index)
	e.waiting = append(e.waiting, waitingRead{index, c, e.deadline(index)})
}

// unknowable: who wrote what was read of the key can't be known by what is kept of the records.
func (e *Engine) unknowable(k version.Key) bool {
	key := e.in.perKey.At(k)
	return e.in.opaque || key.appended && !key.isListKey()
}

// isOpen tells whether it is not known, or not yet, who may have written what index read of c.
func (e *Engine) isOpen(index ordinal, c cellID) bool {
	waitsFor := func(c cellID) bool {
		for r := range e.in.waitersOf(c) {
			if r == index {
				return true
			}
		}
		return false
	}
	return e.unknowable(e.in.cells.At(c).key) || waitsFor(c) || e.in.cells.At(c).about&isList != 0 &&
		slices.ContainsFunc(e.in.elementsOf(c).elements, waitsFor)
}

// holdsInitial tells whether every key is known to hold the cell's value at
// first.
func (e *Engine) holdsInitial(cl *cell) bool {
	switch e.opt.Initial {
	case record.InitialAbsent:
		return cl.about&isNull != 0
	case record.InitialZero:
		return cl.about&isZero != 0
	}
	return false
}

// unmade: whoever wrote the cell's value, if anybody did, had read it there before. So the first of them read what
// the key held at first, or what an unseen transaction wrote; and whoever else reads it may have read that.
func (e *Engine) unmade(cl *cell) bool { return cl.about&(isMade|outside) == 0 }

// unseens: an unseen writer, who has no place in any order, may have written c; another read of the same value may have
// found another one's. So a read of it proves nothing.
func (e *Engine) unseens(c cellID) bool {
	cl := e.in.cells.At(c)
	return e.lossy(cl.key) && e.unmade(cl)
}

// mayBeInitial: a read of the cell's value may be of what its key held at first, or of what an unseen
// transaction wrote, whoever is seen to have written it. What somebody made is neither, unless the
// initial value is declared.
func (e *Engine) mayBeInitial(cl *cell) bool {
	return e.holdsInitial(cl) || (e.opt.Initial == record.InitialAny || e.lossy(cl.key)) && e.unmade(cl)
}

// exposed: the only writer of the value, as values are unique, did not commit it as
// it stands.
func (e *Engine) exposed(index ordinal, c cellID) bool {
	o := e.in.others(c)
	return o.interOf(index) != none || o.aborted != verdict.NoTxn && e.UniqueAttempts()
}

// deadline is the latest end that the record of a writer of what index read can
// carry: the writer began before index ended.
func (e *Engine) deadline(index ordinal) int64 {
	t := e.in.txns.At(index)
	if e.opt.MaxTransaction == 0 {
		return maxTime
	}
	wait := e.opt.MaxTransaction + e.opt.MaxSkew
	if t.order > maxTime-wait {
		return maxTime
	}
	return t.order + wait
}

const maxTime = int64(^uint64(0) >> 1)

// exclusionBytes is what it takes to say that of two transactions at most one took effect.
const exclusionBytes = 64

// becomesInitial tells whether the value can be, or is, what its key held at
// first, where that is not declared: one value per key. Of transactions that may
// not have taken effect and read different values at most one did, and none if
// somebody surely read another one.
func (e *Engine) becomesInitial(index ordinal, c cellID) bool {
	k := e.in.cells.At(c).key
	p := e.in.perKey.At(k)
	if p.initial != none {
		return e.sameInitial(p.initial, c)
	}
	t := e.in.txns.At(index)
	if t.doubt != uncertain {
		e.settleInitial(k, c)
		return true
	}
	for _, o := range e.claims[k] {
		if e.reads.Hold(exclusionBytes); !e.reads.Take(candidateSteps) {
			e.block(index, c)
			break
		}
		if other := e.in.txns.At(o.index); !e.sameInitial(o.cell, c) {
			for _, s := range e.strands {
				s.exclude(t.slot, other.slot)
			}
			if e.weak != nil {
				e.weak.exclusive = append(e.weak.exclusive, [2]ordinal{index, o.index})
			}
		}
	}
	e.claims[k] = append(e.claims[k], pendingRead{index, c})
	return true
}

// settleInitial: the key held c at first.
func (e *Engine) settleInitial(k version.Key, c cellID) {
	e.in.perKey.At(k).initial = c
	if len(e.claims) == 0 {
		return
	}
	for _, o := range e.claims[k] {
		if !e.sameInitial(o.cell, c) {
			e.notInitial(o.index, o.cell)
		}
	}
	delete(e.claims, k)
}

// notInitial: what index, which may not have taken effect, read is not what the key held
// at first, as it claimed; if it did, that is an anomaly.
func (e *Engine) notInitial(index ordinal, c cellID) {
	if e.turnsOut(c) { // that a key holds nothing and that it holds an empty list may be the same
		e.atClose = append(e.atClose, pendingRead{index, c})
		return
	}
	if e.in.cells.At(c).final == index {
		e.readAnomaly(verdict.FutureRead, index, c, verdict.NoTxn)
		return
	}
	e.thinAir(index, c)
}

// settleClaims: index, which read initial values, is in the history.
func (e *Engine) settleClaims(index ordinal) {
	for _, c := range e.in.slab(e.in.txns.At(index).reads) {
		k := e.in.cells.At(c).key
		if slices.Contains(e.claims[k], pendingRead{index, c}) {
			e.settleInitial(k, c)
			if p := e.in.perKey.At(k); p.reader != none && e.in.txns.At(p.reader).doubt == uncertain {
				p.reader = index
			}
		}
	}
}

// sameInitial: a and b are the same, or both the empty list.
func (e *Engine) sameInitial(a, b cellID) bool {
	if a == b || !e.in.isNothing(a) || !e.in.isNothing(b) {
		return a == b
	}
	p := e.in.perKey.At(e.in.cells.At(a).key)
	return p.appended || p.bare() && e.whole()
}

// whole: nothing more will be taken in.
func (e *Engine) whole() bool { return !e.opt.Online || e.closed }

// turnsOut: what a key held at first, if it is c, depends on whether it turns out to hold
// lists: one holds nothing at first, and for that there are two words.
func (e *Engine) turnsOut(c cellID) bool {
	cl := e.in.cells.At(c)
	p := e.in.perKey.At(cl.key)
	if p.scalar || e.whole() {
		return false
	}
	return cl.about&isEmpty != 0 || cl.about&isNull != 0 && e.opt.Initial != record.InitialAbsent &&
		(e.opt.Initial == record.InitialZero || p.initial == none || e.in.isNothing(p.initial))
}

// absent resolves a read of a value that no other transaction wrote last.
func (e *Engine) absent(index ordinal, c cellID) {
	cl := e.in.cells.At(c)
	complete := !e.lossy(cl.key)
	o := e.in.others(c)
	switch {
	case e.unseens(c):
	case complete && e.opt.Initial == record.InitialAny && e.unmade(cl) && e.becomesInitial(index, c):
		e.readInitial(index, c)
	case complete && e.holdsInitial(cl) && !(e.opt.Initial == record.InitialZero && e.in.perKey.At(cl.key).bare() &&
		!e.becomesInitial(index, c)):
		e.readInitial(index, c)
	case complete && e.turnsOut(c):
		e.atClose = append(e.atClose, pendingRead{index, c})
	case o.interOf(index) != none:
		e.readAnomaly(verdict.IntermediateRead, index, c, e.in.txns.At(o.interOf(index)).id)
	case o.aborted != verdict.NoTxn && cl.about&outside == 0 && !e.maybeRetried(index, o):
		e.readAnomaly(verdict.AbortedRead, index, c, o.aborted)
	case !complete || o.aborted != verdict.NoTxn: // an unseen writer, here too
	case o.inter == index || cl.final == index && !e.holdsInitial(cl):
		e.readAnomaly(verdict.FutureRead, index, c, verdict.NoTxn)
	case e.opt.Initial == record.InitialAny && e.tookOwnForInitial(index, c):
	case e.emptyList(c) && e.opt.Initial == record.InitialZero && cl.about&isNull != 0 && !e.in.perKey.At(cl.key).surely:
		e.block(index, c) // only if who read the empty list took effect it is one
	case e.emptyList(c) && (e.opt.Initial == record.InitialAbsent || e.becomesInitial(index, c)):
		e.readInitial(index, c)
	default:
		e.thinAir(index, c)
	}
}

// tookOwnForInitial: what was taken for the initial value of c's key is what its reader
// itself wrote later. As index read another value that nobody wrote, it is that reader who
// read from the future, and c what the key held at first.
func (e *Engine) tookOwnForInitial(index ordinal, c cellID) bool {
	k := e.in.cells.At(c).key
	p := e.in.perKey.At(k)
	if e.in.txns.At(index).doubt == uncertain || p.initial == none || p.reader == none || e.in.cells.At(p.initial).
		final != p.reader {
		return false
	}
	reader, own := p.reader, p.initial
	p.reader, p.initial = index, c
	e.readAnomaly(verdict.FutureRead, reader, own, verdict.NoTxn)
	return true
}

// emptyList: c is what a list holds at first, and its key is one that nobody changed.
func (e *Engine) emptyList(c cellID) bool {
	p := e.in.perKey.At(e.in.cells.At(c).key)
	return p.bare() && p.emptied && e.in.isNothing(c)
}

// initialVersion is the key's initial version, made when it is first needed.
func (e *Engine) initialVersion(k version.Key) version.ID {
	if v := e.main.tab.InitialOf(k); v != none {
		return v
	}
	v := version.ID(none)
	for i, s := range e.strands { // versions have the same numbers in all
		w := s.source(k, version.Initial)
		if i == 0 {
			v = w
		}
	}
	return v
}

// showsInitial: what index read of k is what that held at first, if index took effect.
func (e *Engine) showsInitial(index ordinal, k version.Key) {
	if p := e.in.perKey.At(k); p.reader == none || e.in.txns.At(p.reader).doubt == uncertain && e.in.txns.At(index).
		doubt != uncertain {
		p.reader = index
	}
}

func (e *Engine) readInitial(index ordinal, c cellID) {
	k := e.in.cells.At(c).key
	e.showsInitial(index, k)
	if e.alone(k) {
		return
	}
	if e.plain && !e.in.perKey.At(k).isListKey() {
		if e.in.txns.At(index).doubt == uncertain {
			e.choose(index, c)
			return
		}
		e.readWeak(index, c, weak.Initial)
		return
	}
	v := e.initialVersion(k)
	if e.in.txns.At(index).doubt == uncertain {
		e.choose(index, c)
		return
	}
	e.read(index, c, v)
}

// read tells the strands of a resolved read. The first in which it diverges says so: of
// the others, a polygraph may have decided what hides it there.
func (e *Engine) read(index ordinal, c cellID, v version.ID) {
	if e.weak != nil {
		e.readWeak(index, c, e.writerOf(v))
	}
	if e.in.sequences != nil && e.readCell(index, e.in.cells.At(c).key) != c {
		return // polygraphs know of a key's first read only
	}
	slot := e.in.txns.At(index).slot
	told := false
	for _, s := range e.strands {
		other, diverges := s.read(slot, v)
		first := diverges && !told
		told = told || diverges
		switch {
		case !first:
		case s.readOf(s.tab.At(other).Writer, s.tab.At(v).Key) != v: // a list shows it
			e.missed(slot, other)
		default:
			e.divergence(slot, s.tab.At(other).Writer, v)
		}
	}
}

// writerOf is the slot that made a version, as the weak levels' checker has it.
func (e *Engine) writerOf(v version.ID) version.Slot {
	switch x := e.main.tab.At(v); x.Kind {
	case version.Written:
		return x.Writer
	case version.Initial:
		return weak.Initial
	}
	return weak.Unseen
}
