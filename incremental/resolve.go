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
	t := e.h.txns.At(index)
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
	for _, c := range e.h.slab(t.writes) {
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
	for _, c := range e.h.slab(e.h.txns.At(index).writes) {
		others = e.wake(c, others)
	}
	for _, r := range others {
		e.resolve(r.index, e.h.waitedFor(r.index, r.cell))
	}
}

// resolveAll resolves a transaction's reads.
func (e *Engine) resolveAll(index ordinal) {
	t := e.h.txns.At(index)
	if t.open {
		e.judgeFaults(index)
	}
	for _, c := range e.h.slab(t.reads) {
		e.resolve(index, c)
	}
	e.resolveRepeats(index)
}

// judgeFaults says what a transaction of unknown outcome breaks by itself.
func (e *Engine) judgeFaults(index ordinal) {
	faults := e.h.faults[index]
	if len(faults) == 0 {
		return
	}
	if e.h.txns.At(index).doubt == uncertain {
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
	delete(e.h.faults, index)
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
		s.impossible(e.h.txns.At(index).slot)
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
	return e.opt.Online && !e.h.unique() && (!e.h.closed || e.h.giving) && s.untimed && len(s.polys) > 0
}

// settleHeld gives the polygraphs the blocks of transactions whose reads are known,
// watermark being what it is for giveUp.
func (e *Engine) settleHeld(watermark int64) {
	for _, s := range e.strands {
		if e.holds(s) {
			s.settleOf(func(w version.Slot) bool { return e.h.deadline(e.h.slotTx[w]) < watermark })
		} else {
			s.settle()
		}
	}
}

// enter gives a transaction its slot.
func (e *Engine) enter(index ordinal) {
	t := e.h.txns.At(index)
	reads, writes := t.reads.len(), t.writes.len()
	if e.plain {
		reads, writes = 0, 0
	}
	for i, s := range e.strands {
		slot := s.add(e.txnFor(t), reads, writes)
		if i == 0 {
			t.slot = slot
			e.h.slotTx = append(e.h.slotTx, index)
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
		if t.timed && t.end <= e.h.txns.At(e.h.slotTx[e.h.first]).end {
			x.first = e.h.first
		}
	}
	if t.prev != none {
		x.prev = e.h.txns.At(t.prev).slot
	}
	return x
}

// write makes the version of a final write; the elements that a transaction
// appended to a list are one.
func (e *Engine) write(index ordinal, c cellID) {
	t, cl := e.h.txns.At(index), e.h.cells.At(c)
	if e.h.alone(cl.key) || e.plain && !e.h.perKey.At(cl.key).appended {
		return
	}
	v := version.ID(none)
	if e.h.perKey.At(cl.key).appended {
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

// wake resolves the reads that waited for a value's writer, of transactions that overwrote
// it, and appends the others to dst.
func (e *Engine) wake(c cellID, dst []pendingRead) []pendingRead {
	cl := e.h.cells.At(c)
	if cl.waiting != none && (!e.opt.Online || e.h.unique() && !e.h.common(cl)) {
		key := cl.key
		e.h.release(c, func(index ordinal) {
			if e.h.writesTo(index, key) {
				e.resolve(index, e.h.waitedFor(index, c))
			} else {
				dst = append(dst, pendingRead{index, c})
			}
		})
	}
	return dst
}

// resolve finds the version that a transaction's external read of a cell saw,
// if that is decided, and tells the strands.
func (e *Engine) resolve(index ordinal, c cellID) {
	// else it may turn out a list
	if e.h.saysNothing(c) && !(e.h.perKey.At(e.h.cells.At(c).key).bare() && e.h.isNothing(c)) {
		return
	}
	if e.opt.Online && !e.h.closed && (!e.h.unique() || e.h.common(e.h.cells.At(c))) {
		e.wait(index, c) // for all candidates
		return
	}
	e.decide(index, c)
}

// decide finds the version of a read of which all that will be known is known,
// or its candidates.
func (e *Engine) decide(index ordinal, c cellID) {
	cl := e.h.cells.At(c)
	key := e.h.perKey.At(cl.key)
	switch {
	case e.h.saysNothing(c):
		return
	case (!e.h.unseenUnique() || e.opt.UnseenAsSeen && e.h.replaced && key.isListKey()) && e.h.lossy(cl.key):
		if cl.about&(hasOthers|isList) != 0 || cl.final != none {
			e.block(index, c) // an unseen transaction may have written it as well
		}
		return
	case e.h.unknowable(cl.key):
		e.block(index, c)
		return
	case key.isListKey():
		e.decideList(index, c)
		return
	}
	w, several := e.h.onlyWriter(index, c)
	switch {
	case several && e.h.mayCome():
		e.wait(index, c)
	case w != none && e.h.turnsOut(c): // it may be what the key held at first as well
		e.atClose = append(e.atClose, pendingRead{index, c})
	case several && e.h.unseens(c):
	case several:
		e.decideAmong(index, c)
	case w != none:
		e.readFrom(index, w, c)
	case !e.h.mayCome() || e.h.unique() && e.h.exposed(index, c):
		e.absent(index, c)
	default:
		e.wait(index, c)
	}
}

// block counts a read that can't be decided. One that only the weak levels know
// of, as its key was read before, leaves the others decided.
func (e *Engine) block(index ordinal, c cellID) {
	if e.h.sequences != nil && e.h.readCell(index, e.h.cells.At(c).key) != c {
		e.weak.blocked++
		return
	}
	e.blocked++
}

// readFrom takes in that index read what w, and no other, can have written.
func (e *Engine) readFrom(index, w ordinal, c cellID) {
	t := e.h.txns.At(index)
	if t.doubt == uncertain {
		e.decideAmong(index, c)
		return
	}
	if !e.h.arrived(w) {
		e.wait(index, c)
		return
	}
	e.tookEffect(w, pendingRead{index, c})
	switch x := e.h.txns.At(w); {
	case x.slot != none && e.plain:
		e.readWeak(index, c, x.slot)
	case x.slot != none && e.h.cells.At(c).final == w && e.h.cells.At(c).version != none:
		e.read(index, c, e.h.cells.At(c).version)
	case x.slot != none && e.main.writeOf(x.slot, e.h.cells.At(c).key) != none:
		e.read(index, c, e.main.writeOf(x.slot, e.h.cells.At(c).key))
	case e.opt.Online:
		e.wait(index, c)
	default: // the writer has a later slot and will wake it
		e.h.wait(c, index)
	}
}

// tookEffect: a transaction that is in the history read from w, so w is in the
// history, whatever its client knows.
func (e *Engine) tookEffect(w ordinal, by pendingRead) {
	x := e.h.txns.At(w)
	if !x.open {
		return
	}
	if _, ok := e.h.vouchers[w]; !ok {
		e.h.vouchers[w] = by
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
			e.h.eachAppended(x, func(k version.Key) { e.weak.Appended(k, x.slot) })
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
	if x := e.h.txns.At(w); x.open && x.doubt == unread {
		x.doubt = uncertain
		if e.opt.Online {
			e.admit(w)
		}
	}
}

// decideAmong tells the strands of a read with several candidates, or of an
// uncertain transaction's.
func (e *Engine) decideAmong(index ordinal, c cellID) {
	if !e.opt.Online && !e.h.closedSet {
		e.deferred = append(e.deferred, pendingRead{index, c})
		return
	}
	cl := e.h.cells.At(c)
	if e.opt.Initial == record.InitialAny && e.h.unmade(cl) && !e.h.perKey.At(cl.key).isListKey() {
		if !e.becomesInitial(index, c) {
			e.notInitial(index, c)
			return
		}
		e.h.showsInitial(index, cl.key)
	}
	for w := range e.h.writersOf(c) {
		if !e.h.reads.Take(candidateSteps) {
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
	if e.h.readCell(index, e.h.cells.At(c).key) != c {
		return // polygraphs know of a key's first read only
	}
	e.separate()
	t := e.h.txns.At(index)
	var cands []version.ID
	if slices.ContainsFunc(e.checks, func(c *check) bool { return !c.poly.Budget.Ended() }) { // else nobody looks at them
		cands = e.candidates(index, c)
	}
	for _, s := range e.strands {
		s.choose(t.slot, e.h.cells.At(c).key, cands, t.doubt == uncertain)
	}
}

// candidates are the versions that a read of c by index can be of: those of the
// value's admitted writers, by line and slot, and the initial one before them.
func (e *Engine) candidates(index ordinal, c cellID) []version.ID {
	var out []version.ID
	cl := e.h.cells.At(c)
	if e.h.perKey.At(cl.key).isListKey() {
		if cl.about&isList != 0 {
			return append(out, e.lastRecorded(e.h.elementsOf(c).elements, cl.key))
		}
		return append(out, e.initialVersion(cl.key))
	}
	if w, _ := e.h.onlyWriter(index, c); w == none {
		if v := e.main.tab.InitialOf(cl.key); v != none {
			out = append(out, v)
		}
		return out
	}
	if e.h.mayBeInitial(cl) && !e.h.lossy(cl.key) {
		out = append(out, e.initialVersion(cl.key))
	}
	n := len(out)
	for w := range e.h.writersOf(c) {
		if x := e.h.txns.At(w); w != index && x.slot != none {
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
	e.h.reads.Use(candidateSteps * len(out))
	return out
}

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
	e.h.wait(c, index)
	e.waiting = append(e.waiting, waitingRead{index, c, e.h.deadline(index)})
}

// exclusionBytes is what it takes to say that of two transactions at most one took effect.
const exclusionBytes = 64

// becomesInitial tells whether the value can be, or is, what its key held at
// first, where that is not declared: one value per key. Of transactions that may
// not have taken effect and read different values at most one did, and none if
// somebody surely read another one.
func (e *Engine) becomesInitial(index ordinal, c cellID) bool {
	k := e.h.cells.At(c).key
	p := e.h.perKey.At(k)
	if p.initial != none {
		return e.h.sameInitial(p.initial, c)
	}
	t := e.h.txns.At(index)
	if t.doubt != uncertain {
		e.settleInitial(k, c)
		return true
	}
	for _, o := range e.h.claims[k] {
		if e.h.reads.Hold(exclusionBytes); !e.h.reads.Take(candidateSteps) {
			e.block(index, c)
			break
		}
		if other := e.h.txns.At(o.index); !e.h.sameInitial(o.cell, c) {
			for _, s := range e.strands {
				s.exclude(t.slot, other.slot)
			}
			if e.weak != nil {
				e.weak.exclusive = append(e.weak.exclusive, [2]ordinal{index, o.index})
			}
		}
	}
	e.h.claims[k] = append(e.h.claims[k], pendingRead{index, c})
	return true
}

// settleInitial: the key held c at first.
func (e *Engine) settleInitial(k version.Key, c cellID) {
	e.h.perKey.At(k).initial = c
	if len(e.h.claims) == 0 {
		return
	}
	for _, o := range e.h.claims[k] {
		if !e.h.sameInitial(o.cell, c) {
			e.notInitial(o.index, o.cell)
		}
	}
	delete(e.h.claims, k)
}

// notInitial: what index, which may not have taken effect, read is not what the key held
// at first, as it claimed; if it did, that is an anomaly.
func (e *Engine) notInitial(index ordinal, c cellID) {
	if e.h.turnsOut(c) { // that a key holds nothing and that it holds an empty list may be the same
		e.atClose = append(e.atClose, pendingRead{index, c})
		return
	}
	if e.h.cells.At(c).final == index {
		e.readAnomaly(verdict.FutureRead, index, c, verdict.NoTxn)
		return
	}
	e.thinAir(index, c)
}

// settleClaims: index, which read initial values, is in the history.
func (e *Engine) settleClaims(index ordinal) {
	for _, c := range e.h.slab(e.h.txns.At(index).reads) {
		k := e.h.cells.At(c).key
		if slices.Contains(e.h.claims[k], pendingRead{index, c}) {
			e.settleInitial(k, c)
			if p := e.h.perKey.At(k); p.reader != none && e.h.txns.At(p.reader).doubt == uncertain {
				p.reader = index
			}
		}
	}
}

// absent resolves a read of a value that no other transaction wrote last.
func (e *Engine) absent(index ordinal, c cellID) {
	cl := e.h.cells.At(c)
	complete := !e.h.lossy(cl.key)
	o := e.h.others(c)
	switch {
	case e.h.unseens(c):
	case complete && e.opt.Initial == record.InitialAny && e.h.unmade(cl) && e.becomesInitial(index, c):
		e.readInitial(index, c)
	case complete && e.h.holdsInitial(cl) && !(e.opt.Initial == record.InitialZero && e.h.perKey.At(cl.key).bare() &&
		!e.becomesInitial(index, c)):
		e.readInitial(index, c)
	case complete && e.h.turnsOut(c):
		e.atClose = append(e.atClose, pendingRead{index, c})
	case o.interOf(index) != none:
		e.readAnomaly(verdict.IntermediateRead, index, c, e.h.txns.At(o.interOf(index)).id)
	case o.aborted != verdict.NoTxn && cl.about&outside == 0 && !e.h.maybeRetried(index, o):
		e.readAnomaly(verdict.AbortedRead, index, c, o.aborted)
	case !complete || o.aborted != verdict.NoTxn: // an unseen writer, here too
	case o.inter == index || cl.final == index && !e.h.holdsInitial(cl):
		e.readAnomaly(verdict.FutureRead, index, c, verdict.NoTxn)
	case e.opt.Initial == record.InitialAny && e.tookOwnForInitial(index, c):
	case e.h.emptyList(c) && e.opt.Initial == record.InitialZero && cl.about&isNull != 0 && !e.h.perKey.At(cl.key).surely:
		e.block(index, c) // only if who read the empty list took effect it is one
	case e.h.emptyList(c) && (e.opt.Initial == record.InitialAbsent || e.becomesInitial(index, c)):
		e.readInitial(index, c)
	default:
		e.thinAir(index, c)
	}
}

// tookOwnForInitial: what was taken for the initial value of c's key is what its reader
// itself wrote later. As index read another value that nobody wrote, it is that reader who
// read from the future, and c what the key held at first.
func (e *Engine) tookOwnForInitial(index ordinal, c cellID) bool {
	k := e.h.cells.At(c).key
	p := e.h.perKey.At(k)
	if e.h.txns.At(index).doubt == uncertain || p.initial == none || p.reader == none || e.h.cells.At(p.initial).
		final != p.reader {
		return false
	}
	reader, own := p.reader, p.initial
	p.reader, p.initial = index, c
	e.readAnomaly(verdict.FutureRead, reader, own, verdict.NoTxn)
	return true
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

func (e *Engine) readInitial(index ordinal, c cellID) {
	k := e.h.cells.At(c).key
	e.h.showsInitial(index, k)
	if e.h.alone(k) {
		return
	}
	if e.plain && !e.h.perKey.At(k).isListKey() {
		if e.h.txns.At(index).doubt == uncertain {
			e.choose(index, c)
			return
		}
		e.readWeak(index, c, weak.Initial)
		return
	}
	v := e.initialVersion(k)
	if e.h.txns.At(index).doubt == uncertain {
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
	if e.h.sequences != nil && e.h.readCell(index, e.h.cells.At(c).key) != c {
		return // polygraphs know of a key's first read only
	}
	slot := e.h.txns.At(index).slot
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
