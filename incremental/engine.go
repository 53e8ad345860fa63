package incremental

import (
	"cmp"
	"slices"

	"github.com/isowatch/isowatch/incremental/constraint"
	"github.com/isowatch/isowatch/incremental/sat"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/incremental/version"
	"github.com/isowatch/isowatch/ingest/record"
)

// defaultConflicts is the solver's budget when Options give none.
const defaultConflicts = 100_000

// Engine checks one history at one or more levels.
//
// A transaction is taken in (intake: names become numbers, what it breaks by
// itself is found), then admitted: its reads are resolved to versions, and the
// polygraphs are told. Online a transaction is admitted at once and a read
// waits for its writer until none can come any more; in batch all is admitted by
// Close, when every writer is known.
type Engine struct {
	opt    Options
	in     *intake
	shared []verdict.Violation // break every level of the engine
	nShare int
	checks []*check
	main   *strand   // its polygraphs are those of checks[i].poly
	extra  []*strand // re-readings without times that go on with the stream
	slotTx []uint32  // by slot: index of the transaction

	waiting    []waitingRead         // reads whose writer has not come, oldest first
	unadmitted []uint32              // taken in before the history's kind was known
	blocked    int                   // reads that could not be decided
	unseenOf   map[version.ID]cellID // the values of unseen writers' versions
	seen       map[string]bool       // violations told, once there are extra strands
	out        []verdict.Violation   // found since the last Tick
	lastLow    version.Slot          // first slot admitted since the last Tick
	opened     bool
	closedSet  bool // the read being decided has all its candidates
	closed     bool
}

type waitingRead struct {
	index uint32
	cell  cellID
	by    int64 // the latest time its writer's record can carry
}

// check is one level, or two that share a polygraph.
type check struct {
	level  verdict.Level
	split  bool
	timed  bool // real time is part of the level
	poly   *constraint.Polygraph
	strand *strand
	pruned bool // times are used though the level does not have them

	found       []verdict.Violation
	count       int
	notRealTime bool // satisfied or not, no order that keeps to the clocks explains it
	noTimes     bool
	budget      bool
}

// New makes an engine for the levels ser, sser, si and strong-si; it panics on
// others, which the caller must have refused.
func New(opt Options) *Engine {
	if opt.Conflicts == 0 {
		opt.Conflicts = defaultConflicts
	}
	e := &Engine{opt: opt, in: newIntake(), unseenOf: map[version.ID]cellID{}, seen: map[string]bool{}}
	for _, l := range opt.Levels {
		c := &check{level: l}
		switch l {
		case verdict.SER:
		case verdict.SSER:
			c.timed = true
		case verdict.SI:
			c.split = true
		case verdict.StrongSI:
			c.split, c.timed = true, true
		default:
			panic("incremental: level " + l.String() + " is not checked by this engine")
		}
		e.checks = append(e.checks, c)
	}
	return e
}

// Supported tells whether New takes the level.
func Supported(l verdict.Level) bool {
	return l == verdict.SER || l == verdict.SSER || l == verdict.SI || l == verdict.StrongSI
}

// Step takes in one transaction. The record is not kept: whoever calls keeps
// it under the returned number (0, 1, 2, … in the order of Step) for as long as
// evidence may be asked for. Records of a session come in session order; online
// they come, apart from late ones, in the order of their end. arrival is the
// broker's time, in nanoseconds, for records without times, and else ignored.
func (e *Engine) Step(t *record.Transaction, arrival int64) verdict.TxnID {
	id := verdict.TxnID(len(e.in.indexOf))
	index := e.in.take(t, id, arrival, e.report)
	if index == none {
		return id
	}
	if e.opt.Online {
		e.stream(index)
	}
	return id
}

// stream admits a transaction online. The first ones wait for one with times,
// which says how the history is to be kept, or for the first tick.
func (e *Engine) stream(index uint32) {
	e.unadmitted = append(e.unadmitted, index)
	if e.opened || e.in.timed > 0 {
		e.admitAll()
	}
}

func (e *Engine) admitAll() {
	if !e.opened {
		e.open(e.opt.Clock != record.ClockIgnore && e.in.timed > 0)
	}
	for _, i := range e.unadmitted {
		e.admit(i)
	}
	e.unadmitted = e.unadmitted[:0]
}

// report notes a violation of every level.
func (e *Engine) report(v verdict.Violation) {
	e.nShare++
	v.Level = e.weakest()
	if e.opt.MaxViolations == 0 || len(e.shared) < e.opt.MaxViolations || e.opt.Online {
		e.shared = append(e.shared, v)
	}
	if e.opt.Online {
		e.out = append(e.out, v)
	}
}

// weakest is the weakest level asked for.
func (e *Engine) weakest() verdict.Level {
	w := e.checks[0].level
	for _, c := range e.checks[1:] {
		if w.Implies(c.level) {
			w = c.level
		}
	}
	return w
}

// open makes the main strand. timed: the history has times to use.
func (e *Engine) open(timed bool) {
	e.opened = true
	type kind struct{ split, realTime bool }
	at := map[kind]int{}
	var kinds []constraint.Config
	which := make([]int, len(e.checks))
	for i, c := range e.checks {
		// Online, times may come later.
		c.noTimes = c.timed && !timed && !e.opt.Online
		k := kind{c.split, c.timed && !c.noTimes || !c.timed && timed && e.prunable()}
		c.pruned = k.realTime && !c.timed
		if _, ok := at[k]; !ok {
			at[k] = len(kinds)
			kinds = append(kinds, e.config(k.split, k.realTime, !e.opt.Online))
		}
		which[i] = at[k]
	}
	e.main = newStrand(kinds)
	for i, c := range e.checks {
		c.poly, c.strand = e.main.polys[which[i]], e.main
	}
	if !e.opt.Online && e.opt.MaxViolations > 0 {
		for _, p := range e.main.polys {
			p.MaxFound = e.opt.MaxViolations
		}
	}
}

// prunable: times are worth using for a level that does not have them when
// hardly any transaction lacks them.
func (e *Engine) prunable() bool {
	return e.in.untimed <= 16+e.in.txns.Len()/1000
}

func (e *Engine) config(split, realTime, bulk bool) constraint.Config {
	c := constraint.Config{Split: split, RealTime: realTime, Bulk: bulk, Skew: e.opt.MaxSkew,
		Sessions: e.opt.Sessions == record.SessionsKeep, Chains: len(e.in.sessions)}
	if bulk {
		c.Slots = e.in.txns.Len()
	}
	return c
}

// admit gives a transaction to the strands, its predecessors in the order of
// slots being there.
func (e *Engine) admit(index uint32) {
	t := e.in.txns.At(index)
	e.enter(index)
	for _, c := range e.in.slab(t.writes) {
		e.write(index, c)
	}
	for _, c := range e.in.slab(t.reads) {
		e.resolve(index, c)
	}
	e.settle()
	for _, c := range e.in.slab(t.writes) {
		e.wake(c)
	}
}

func (e *Engine) settle() {
	e.main.settle()
	for _, s := range e.extra {
		s.settle()
	}
}

func (e *Engine) enter(index uint32) {
	t := e.in.txns.At(index)
	like := slotOps{e.in.slab(t.reads), e.in.slab(t.writes)}
	t.slot = e.main.add(t.session, t.start, t.end, t.timed, like)
	e.slotTx = append(e.slotTx, index)
	for _, s := range e.extra {
		s.add(t.session, t.start, t.end, t.timed, like)
	}
}

// write makes the version of a final write. Where several transactions wrote
// the value, each has a version, but no reader can be told apart.
func (e *Engine) write(index uint32, c cellID) {
	t, cl := e.in.txns.At(index), e.in.cells.At(c)
	v := e.main.write(t.slot, cl.key)
	for _, s := range e.extra {
		s.write(t.slot, cl.key)
	}
	if cl.final == index {
		cl.version = v
	}
}

// wake resolves the reads that waited for a value's writer.
func (e *Engine) wake(c cellID) {
	if e.in.cells.At(c).about&duplicate != 0 {
		e.opt.UniqueValues = false // so much for the assumption
	}
	if e.in.cells.At(c).waiting != none && (!e.opt.Online || e.opt.UniqueValues) {
		e.in.release(c, func(index uint32) { e.resolve(index, c) })
	}
}

// resolve finds the version that a transaction's external read of a cell saw,
// if that is decided, and tells the strands.
func (e *Engine) resolve(index uint32, c cellID) {
	if e.saysNothing(c) {
		return
	}
	if e.opt.Online && !e.opt.UniqueValues && !e.closed {
		e.wait(index, c) // for all candidates
		return
	}
	e.decide(index, c)
}

// saysNothing: with partial coverage an unseen writer may have deleted the key,
// or put back what it held at first.
func (e *Engine) saysNothing(c cellID) bool {
	cl := e.in.cells.At(c)
	return e.opt.Coverage == record.CoveragePartial && (cl.about&isNull != 0 || e.holdsInitial(cl))
}

// decide finds the version of a read of which all that will be known is known.
func (e *Engine) decide(index uint32, c cellID) {
	if e.saysNothing(c) {
		return
	}
	cl := e.in.cells.At(c)
	if cl.final != none && !e.ambiguous(c) {
		switch w := e.in.txns.At(cl.final); {
		case cl.final == index:
			e.readOwnLater(index, c)
		case w.slot != none && cl.version != none:
			e.read(index, cl.version)
		case e.opt.Online:
			e.wait(index, c)
		default: // the writer has a later slot and will wake it
			e.in.wait(c, index)
		}
		return
	}
	switch {
	case e.ambiguous(c):
		e.blocked++
	case !e.opt.Online || e.closed || e.closedSet || e.opt.UniqueValues && e.expected(c):
		e.absent(index, c)
	default:
		e.wait(index, c)
	}
}

// wait keeps a read until its writer, or any other, can't come any more.
func (e *Engine) wait(index uint32, c cellID) {
	e.in.wait(c, index)
	e.waiting = append(e.waiting, waitingRead{index, c, e.deadline(index)})
}

// ambiguous: several transactions may have written the value, or the initial
// state and one.
func (e *Engine) ambiguous(c cellID) bool {
	cl := e.in.cells.At(c)
	writers := 0
	if cl.final != none {
		writers++
	}
	if e.in.others(c).unknown != verdict.NoTxn {
		writers++
	}
	if e.holdsInitial(cl) {
		writers++
	}
	if e.opt.Coverage == record.CoveragePartial && !e.opt.UnseenUnique {
		writers++ // an unseen one
	}
	if writers > 1 || cl.about&duplicate != 0 || e.in.opaque {
		return true
	}
	return e.in.perKey[cl.key].appended // lists are not checked yet
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

// expected: no writer of the value need be waited for.
func (e *Engine) expected(c cellID) bool {
	cl := e.in.cells.At(c)
	return e.opt.Coverage == record.CoverageComplete && e.holdsInitial(cl)
}

// deadline is the latest end that the record of a writer of what index read can
// carry: the writer began before index ended.
func (e *Engine) deadline(index uint32) int64 {
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

// readOwnLater: the only transaction whose last write the value is, is the
// reader itself, later. It can only have read the initial state, which is a
// candidate for what no other transaction wrote in any way.
func (e *Engine) readOwnLater(index uint32, c cellID) {
	cl, o := e.in.cells.At(c), e.in.others(c)
	switch {
	case e.opt.Coverage == record.CoveragePartial: // or an unseen writer's
	case o.interOf(index) != none:
		e.readAnomaly(verdict.IntermediateRead, index, c, e.in.txns.At(o.interOf(index)).id)
	case o.aborted != verdict.NoTxn:
		e.readAnomaly(verdict.AbortedRead, index, c, o.aborted)
	case e.opt.Initial == record.InitialAny && e.becomesInitial(c):
		e.readInitial(index, cl.key)
	default:
		e.readAnomaly(verdict.FutureRead, index, c, verdict.NoTxn)
	}
}

// becomesInitial tells whether the value can be, or is, what its key held at
// first, where that is not declared: one value per key.
func (e *Engine) becomesInitial(c cellID) bool {
	p := &e.in.perKey[e.in.cells.At(c).key]
	if p.initial == none {
		p.initial = c
	}
	return p.initial == c
}

// absent resolves a read of a value that no committed transaction wrote last.
func (e *Engine) absent(index uint32, c cellID) {
	cl := e.in.cells.At(c)
	complete := e.opt.Coverage == record.CoverageComplete
	o := e.in.others(c)
	switch {
	case o.unknown != verdict.NoTxn:
		e.readUnseen(index, c)
	case complete && e.holdsInitial(cl):
		e.readInitial(index, cl.key)
	case o.inter == index:
		e.readOwnLater(index, c)
	case o.inter != none:
		e.readAnomaly(verdict.IntermediateRead, index, c, e.in.txns.At(o.inter).id)
	case o.aborted != verdict.NoTxn:
		e.readAnomaly(verdict.AbortedRead, index, c, o.aborted)
	case !complete:
		// An unseen writer, without any order; another read of the same value
		// may have found another one's.
	case e.opt.Initial == record.InitialAny && e.becomesInitial(c):
		e.readInitial(index, cl.key)
	case cl.about&isNull != 0 && e.opt.Initial == record.InitialZero && !e.in.perKey[cl.key].written && e.opt.Online && !e.closed:
		e.blocked++ // the key may turn out to be a list, which null says is empty
	default:
		e.thinAir(index, c)
	}
}

func (e *Engine) readInitial(index uint32, k version.Key) {
	v := e.main.tab.InitialOf(k)
	if v == none {
		v = e.source(k, version.Initial)
	}
	e.read(index, v)
}

func (e *Engine) readUnseen(index uint32, c cellID) {
	cl := e.in.cells.At(c)
	if cl.version == none {
		cl.version = e.source(cl.key, version.Unseen)
		e.unseenOf[cl.version] = c
	}
	e.read(index, cl.version)
}

// source makes a version without a writer in every strand; versions have the
// same numbers in all.
func (e *Engine) source(k version.Key, kind version.Kind) version.ID {
	for _, s := range e.extra {
		s.source(k, kind)
	}
	return e.main.source(k, kind)
}

// read tells the strands of a resolved read.
func (e *Engine) read(index uint32, v version.ID) {
	slot := e.in.txns.At(index).slot
	other, diverges := e.main.read(slot, v)
	if diverges {
		e.divergence(slot, e.main.tab.At(other).Writer, v)
		return
	}
	for _, s := range e.extra {
		s.read(slot, v)
	}
}

// Tick says that no record ending before watermark will come. It closes what
// waited for such records, and solves what is open.
func (e *Engine) Tick(watermark int64) Output {
	if !e.opt.Online || !e.opened && len(e.unadmitted) == 0 {
		return e.flush()
	}
	e.admitAll()
	e.giveUp(watermark)
	e.reconsider()
	low := version.Slot(len(e.slotTx))
	for _, c := range e.checks {
		e.solve(c)
	}
	for _, p := range e.main.polys {
		p.Choose(p.Low(e.lastLow))
	}
	e.collect()
	e.lastLow = low
	return e.flush()
}

// giveUp resolves the reads whose writer can't come any more, which are nearly
// in the order of their deadlines.
func (e *Engine) giveUp(watermark int64) {
	n := 0
	for n < len(e.waiting) && (e.waiting[n].by < watermark || e.closed) {
		if w := e.waiting[n]; e.in.unwait(w.cell, w.index) {
			e.closedSet = true
			e.decide(w.index, w.cell)
			e.closedSet = false
		}
		n++
	}
	e.waiting = slices.Delete(e.waiting, 0, n)
	e.settle()
}

// reconsider drops the use of times where too many transactions turn out to
// have none, which would make the banded closure slow.
func (e *Engine) reconsider() {
	if e.prunable() {
		return
	}
	for _, c := range e.checks {
		if c.pruned {
			e.retreat(c)
		}
	}
}

func (e *Engine) flush() Output {
	out := Output{Violations: e.out}
	e.out = nil
	return out
}

func (e *Engine) solve(c *check) {
	for c.budget = false; ; {
		switch c.poly.Solve(e.opt.Conflicts) {
		case sat.Sat:
			return
		case sat.Budget:
			c.budget = true
			return
		case sat.Unsat: // reported and given up; the rest may still be open
			if !e.opt.Online {
				return
			}
		}
	}
}

// Results are the verdicts so far, which more input and Close may make worse.
func (e *Engine) Results() []verdict.Result {
	if !e.opened {
		return nil
	}
	out := make([]verdict.Result, len(e.checks))
	for i, c := range e.checks {
		out[i] = e.result(c)
	}
	return out
}

// Close says that the input has ended and gives the verdicts, one per level of
// Options in that order. Violations that a Tick reported are in them too.
func (e *Engine) Close() []verdict.Result {
	e.closed = true
	if e.opt.Online {
		e.closeOnline()
	} else {
		e.closeBatch()
	}
	out := make([]verdict.Result, len(e.checks))
	for i, c := range e.checks {
		out[i] = e.result(c)
	}
	return out
}

func (e *Engine) closeOnline() {
	e.admitAll()
	e.giveUp(maxTime)
	for _, c := range e.checks {
		e.solve(c)
	}
	e.collect()
}

// closeBatch admits everything: with times in the order of their end, as a
// stream would come; without, in bulk.
func (e *Engine) closeBatch() {
	n := e.in.txns.Len()
	timed := e.opt.Clock != record.ClockIgnore && e.in.timed > 0
	e.open(timed)
	realTime := false
	for _, c := range e.checks {
		realTime = realTime || c.pruned || c.timed && !c.noTimes
	}
	order := make([]uint32, n)
	for i := range order {
		order[i] = uint32(i)
	}
	if realTime {
		slices.SortStableFunc(order, func(a, b uint32) int { return cmp.Compare(e.in.txns.At(a).order, e.in.txns.At(b).order) })
	}
	if realTime && e.allRealTime() {
		for _, i := range order {
			e.admit(i)
		}
	} else {
		for _, i := range order {
			e.enter(i)
		}
		for _, i := range order {
			for _, c := range e.in.slab(e.in.txns.At(i).writes) {
				e.write(i, c)
			}
		}
		for _, i := range order {
			for _, c := range e.in.slab(e.in.txns.At(i).reads) {
				e.resolve(i, c)
			}
		}
		e.main.settle()
		e.main.finish(e.nShare > 0)
	}
	if e.nShare == 0 {
		for _, c := range e.checks {
			if c.poly.Found == 0 {
				e.solve(c)
			}
		}
	}
	e.collect()
}

// allRealTime: every polygraph of the main strand has real time.
func (e *Engine) allRealTime() bool {
	for _, c := range e.checks {
		if !c.pruned && (!c.timed || c.noTimes) {
			return false
		}
	}
	return true
}

// ClosureBytes is the memory that reachability takes, for measurement.
func (e *Engine) ClosureBytes() int {
	n := 0
	for _, s := range append([]*strand{e.main}, e.extra...) {
		for _, p := range s.polys {
			n += p.Bytes()
		}
	}
	return n
}
