package incremental

import (
	"slices"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/incremental/version"
	"github.com/isowatch/isowatch/ingest/record"
)

// An engine holds one segment of a stream: what it has taken in it never forgets.
// To forget is to go on with a new engine, which takes first what of the past a
// later transaction may still refer to (docs/decisions/0032):
//
//	Lose(key)…       the keys of which a write is forgotten
//	Step(stub)…      the last writers of these keys, reduced to those writes: Options.Seeds of them
//	Step(overlap)…   the latest records once more
//	Step(record)…    what is new
//
// This is sound because a history from which operations are taken away has no
// more dependencies than before, as long as the writes among them are known to be
// missing: every conclusion from the absence of a write (thin air, initial
// version, the only candidate) is withheld for a lossy key. What it can't find is a
// cycle through what is gone.

// Lose says of a key, before the first Step that touches it, that a write of it may be missing: nothing is concluded from
// the absence of one, as with partial coverage. mixed: of its writes some were appends to a list and some were not, or
// one wrote nobody knows what, which may be what somebody aborted wrote as well.
func (e *Engine) Lose(key string, mixed bool) {
	p := e.h.perKey.At(e.h.keyNumber(key))
	p.lossy = true
	p.mixed = p.mixed || mixed
}

// LoseTimes says when records are missing, in place of what was said before: somewhere in each of these spans of time, by
// which the transactions' ends are meant, whatever they wrote, and whoever they were, as clients may try again in
// another session. A read of what was aborted is not taken for an aborted read if a missing record may be that of another
// attempt, which committed the same.
func (e *Engine) LoseTimes(when Losses) { e.opt.Lost = append(e.opt.Lost[:0], when...) }

// seeded: the stubs are all taken: what comes from here on has ended at
// the end of the last one or later. Where they alone make the engine laden, it gives up, and
// finds nothing.
func (e *Engine) seeded() {
	e.h.stubs = version.Slot(len(e.h.slotTx))
	for _, i := range e.unadmitted {
		if !e.h.txns.At(i).open {
			e.h.stubs++
		}
	}
	if len(e.unadmitted) > 0 {
		e.admitAll()
	}
}

// Base takes in a stub that was not among Options.Seeds: there may be too
// many of them, so that a key's are taken when the key is first touched. It
// precedes what the first transaction after the seeds precedes by the clock; what
// preceded it, and its session, are forgotten. One that has no such place, as it has no times, may take effect at any
// time, or times are not used, is not taken, and Base returns false: then what it wrote is lost, and a read of that is
// from it, also if another attempt to write the same was aborted.
func (e *Engine) Base(t *record.Transaction) (verdict.TxnID, bool) {
	times := t.Status == record.Committed && t.HasTimes && e.h.stubs != none && e.opt.Clock != record.ClockIgnore
	if times && (e.g.opened || e.h.timed > 0) {
		e.admitAll()
		if times = e.g.allRealTime(); times && e.h.first == none {
			e.h.first = e.h.firstTimed()
		}
	}
	switch {
	case !times:
		for i := range t.Ops {
			e.loseWrite(&t.Ops[i])
		}
		return verdict.NoTxn, false
	case e.h.first == none: // nothing that has times has come since
		id := e.Step(t, t.End)
		e.h.stubs = version.Slot(len(e.h.slotTx))
		return id, true
	}
	e.in.base = true
	id := e.Step(t, t.End)
	e.in.base = false
	return id, true
}

// loseWrite is Lose of one write that is left out.
func (e *Engine) loseWrite(op *record.Op) {
	e.Lose(op.Key, false)
	of := e.h.cellOf
	if op.Kind == record.Append {
		of = e.h.elementOf
	}
	e.h.cells.At(of(e.h.keyNumber(op.Key), op.Value)).about |= outside
}

// Frontier calls take with the transactions among the first n, by Step, that wrote what
// a later one may still read, and the numbers of the keys of that (Engine.Number), which are
// good until take returns: of each key the last writers, where it is not proved which is
// the last. In the order of Step. A writer is later than another if it read what that
// wrote, follows it in its session, or began after it ended, by the clocks. At most
// perKey are kept of a key. The result is how many writers that were not known to be
// overwritten are not among them. O(writes).
func (e *Engine) Frontier(n verdict.TxnID, perKey int, take func(id verdict.TxnID, keys []version.Key)) (dropped int) {
	f := lastWriters{h: e.h, last: make([]uint32, e.h.perKey.Len()), kept: make([]kept, 0, e.h.perKey.Len()),
		perKey: perKey}
	for k := range f.last {
		f.last[k] = none
	}
	for i := e.h.before(n); i > 0; i-- {
		if i&255 == 0 && e.stop.halted() {
			return
		}
		f.add(i - 1)
	}
	var keys []version.Key
	for i := len(f.kept); i > 0 && !e.stop.halted(); {
		index := f.kept[i-1].index
		for keys = keys[:0]; i > 0 && f.kept[i-1].index == index; i-- {
			keys = append(keys, f.kept[i-1].key)
		}
		take(e.h.txns.At(index).id, keys)
	}
	return f.dropped
}

// lastWriters collects the last writers of keys, from the latest transaction to the first. Package window/frontier,
// which is given them, asks the same again of what it has; to ask here spares it most.
type lastWriters struct {
	h       *history
	last    []uint32 // by key: the writer kept last, in kept
	kept    []kept
	perKey  int
	dropped int
}

// kept is a transaction that wrote a key, and the one kept of it before.
type kept struct {
	index ordinal
	prev  uint32 // the place in kept before, or none
	key   version.Key
}

// add keeps a transaction for the keys that nobody kept is known to have
// overwritten.
func (f *lastWriters) add(index ordinal) {
	in := f.h
	t := in.txns.At(index)
	key := version.Key(none)
	for _, c := range in.slab(t.writes) {
		k := in.cells.At(c).key
		if k == key { // the elements that it appended to a list
			continue
		}
		key = k
		n, over := 0, false
		for at := f.last[k]; at != none && !over; at = f.kept[at].prev {
			n++
			over = f.overwrote(f.kept[at].index, index, k)
		}
		switch {
		case over:
		case n >= f.perKey:
			f.dropped++
		default:
			f.kept = append(f.kept, kept{index, f.last[k], k})
			f.last[k] = uint32(len(f.kept) - 1)
		}
	}
}

// overwrote tells whether what old wrote to k is known to be before what late
// wrote.
func (f *lastWriters) overwrote(late, old ordinal, k version.Key) bool {
	in := f.h
	l, o := in.txns.At(late), in.txns.At(old)
	switch {
	case l.open: // it may not have taken effect, or do so later
		return false
	case l.timed && o.timed && !o.open && l.start > o.end && l.start-o.end > f.h.opt.MaxSkew:
		return true
	case l.session == o.session && !o.open && !l.base && !o.base && f.h.opt.Sessions == record.SessionsKeep:
		return true
	}
	c := f.h.readCell(late, k)
	return c != none && in.cells.At(c).final == old && in.cells.At(c).more == none
}

// torn is Violation.Torn: a key that one of the exhibits reads is not known completely, and the writer of what was read
// is not among them, so that something follows from the absence of a write that may be missing.
func (e *Engine) torn(v *verdict.Violation) bool {
	if e.h.partial() && !e.opt.Tables.Has(record.CoverageComplete) {
		return false
	}
	wrote := map[verdict.TxnID][]string{}
	for _, x := range v.Exhibits {
		wrote[x.Txn] = slices.Concat(x.Writes, x.All)
	}
	for _, x := range v.Exhibits {
		for _, key := range slices.Concat(x.Reads, x.All) {
			if k := e.h.keyNumber(key); e.h.lossy(k) && !e.h.unseen(k) && !e.writerShown(x.Txn, k, wrote) {
				return true
			}
		}
	}
	return false
}

// writerShown tells whether the writer of what a transaction read of k, if it read
// it, is among those shown to have written it.
func (e *Engine) writerShown(id verdict.TxnID, k version.Key, wrote map[verdict.TxnID][]string) bool {
	if int(id) >= len(e.h.indexOf) || e.h.indexOf[id] == none {
		return true // it was aborted
	}
	shown := func(w verdict.TxnID) bool { return slices.Contains(wrote[w], e.h.nameOf(k)) }
	for _, c := range e.h.external(e.h.indexOf[id]) {
		if e.h.cells.At(c).key != k {
			continue
		}
		if e.h.perKey.At(k).isListKey() {
			return false
		}
		o, found := e.h.others(c), false
		for w := range e.h.writersOf(c) {
			if found = shown(e.h.txns.At(w).id); found {
				break
			}
		}
		found = found || o.aborted != verdict.NoTxn && shown(o.aborted) || o.inter != none && shown(e.h.txns.At(o.inter).id)
		if !found {
			return false
		}
	}
	return true
}

// Undecided calls f with the transactions, and a key, of which something is not decided that those decide who may still
// come, or that none comes; with some more than once. O(what waits).
//
//   - Reads: the writer of what it read has not come.
//   - Writes: it was aborted, and that is read; whether it was its value is not known before nobody else can come who
//     wrote it.
//   - All: it was the first to read the list; it is not known yet whether something was before the first element.
//   - No key: it is not decided whom a read is from, say, or something was found that the next Tick tells, or it is the
//     first of those that no search has seen.
//
// An engine that goes on in place of this one needs all with keys to find what those reads prove.
func (e *Engine) Undecided(f func(verdict.Exhibit)) {
	at := func(index ordinal) verdict.TxnID { return e.h.txns.At(index).id }
	keys := func(c cellID) []string { return []string{e.h.nameOf(e.h.cells.At(c).key)} }
	for _, w := range e.h.waiters {
		if w.index == none || e.h.saysNothing(w.cell) {
			continue
		}
		f(verdict.Exhibit{Txn: at(w.index), Reads: keys(w.cell)})
		if aborted := e.h.others(w.cell).aborted; aborted != verdict.NoTxn {
			f(verdict.Exhibit{Txn: aborted, Writes: keys(w.cell)})
		}
	}
	for _, w := range slices.Concat(e.r.unanchored.queue, e.r.unanchored.late) {
		f(verdict.Exhibit{Txn: at(w.index), All: keys(w.cell)})
	}
	reads := [][]pendingRead{e.r.atClose, e.r.doubtful}
	if e.weak != nil {
		reads = append(reads, e.weak.repeats, e.weak.choices)
	}
	e.h.undecided(func(index ordinal) { f(verdict.Exhibit{Txn: at(index)}) }, reads...)
	for _, v := range e.out.told {
		for _, t := range v.Evidence {
			f(verdict.Exhibit{Txn: t})
		}
	}
	for _, c := range e.g.checks {
		if c.left && int(c.searched) < e.h.txns.Len() {
			f(verdict.Exhibit{Txn: at(c.searched)})
		}
	}
}
