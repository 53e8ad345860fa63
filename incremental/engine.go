package incremental

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/isowatch/isowatch/incremental/budget"
	"github.com/isowatch/isowatch/incremental/constraint"
	"github.com/isowatch/isowatch/incremental/sat"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/incremental/version"
	"github.com/isowatch/isowatch/ingest/record"
)

// defaultConflicts is the solver's budget when Options give none.
const defaultConflicts = 100_000

// defaultSolveAt is Options.SolveAt when Options give none.
const defaultSolveAt = 8192

// defaultSteps is Options.Steps when Options give none: some third of a millisecond. The pairs of a
// hot key that is written blindly take less for some thousands of transactions, whatever usual takes
// a hundredth. stepsAtFirst is for how many transactions an engine has steps before any has come.
const (
	defaultSteps = 1 << 15
	stepsAtFirst = 64
)

// defaultBytesMax is Options.BytesMax when Options give none.
const defaultBytesMax = 256 << 20

// Engine checks one history at one or more levels.
//
// A transaction is taken in (intake: names become numbers, what it breaks by
// itself is found), then admitted: its reads are resolved to versions, and the
// polygraphs are told. Online a transaction is admitted at once and a read
// waits for its writer until none can come any more; in batch all is admitted by
// Close, when every writer is known.
type Engine struct {
	opt Options
	in  *intake
	h   *history
	// shared are read anomalies and divergences: what breaks every level that is,
	// or implies, the one they are noted with.
	shared  []verdict.Violation
	nShared map[verdict.Level]int // by that level
	checks  []*check              // levels that want a polygraph
	weak    *weakChecks           // those that don't, or nil
	// witness is a level that nobody asked for, or nil: where it holds it answers for weak levels whose reads may be
	// of several writers, which takes them a long search. It goes as soon as it does not.
	witness *check
	results []func() verdict.Result
	// plain: no polygraph is asked for, so that versions are made of lists only.
	plain bool
	// strands are readings of the history, all with the same slots and versions.
	// The first serves for look-ups; where pc is asked for it is that one's. While
	// no read has several candidates and no time misled, levels that agree on what
	// a read says of versions, and on sessions, share one; afterwards each level
	// kind has its own.
	strands []*strand
	main    *strand

	waiting    []waitingRead        // reads whose writer has not come, oldest first
	looked     int                  // how many of them giveUp has looked at
	unadmitted []ordinal            // taken in before the history's kind was known
	deferred   []pendingRead        // batch: reads that wait until all candidates are admitted
	blocked    int                  // reads that could not be decided
	atClose    []pendingRead        // reads that only the end of the input decides
	doubtful   []pendingRead        // of these, by transactions that may not have taken effect
	unanchored []waitingRead        // the first lists read of keys that are not anchored, oldest first
	suspended  map[ordinal][]func() // what uncertain transactions broke, if they took effect
	seen       map[string]bool      // violations told, once there are extra strands
	out        []verdict.Violation  // found since the last Tick
	opened     bool
	// ambiguities: some reads have several candidates, or transactions of unknown
	// outcome may have been read from. Then strands have one polygraph each.
	ambiguities bool
	stopped     verdict.Reason // the work was ended early
	// budget is what all stages draw from; online so much is granted with each transaction.
	budget     *budget.Budget
	overloaded bool      // stubs alone have made it Laden: nothing more is admitted
	repeatsDue bool      // lists that were read again are being decided
	seenWarm   uint32    // written, and never read, so that the reads of warm are not optimised away
	spare      []*strand // of Options.Spare, not used again yet
	rereads    int       // how often the history was read again
}

type waitingRead struct {
	index ordinal
	cell  cellID
	by    int64 // the latest time its writer's record can carry
}

// check is one level, or two that share a polygraph.
type check struct {
	level  verdict.Level
	split  bool
	prefix bool // pc
	single bool // lin: without session order, and of single objects only
	timed  bool // real time is part of the level
	poly   *constraint.Polygraph
	strand *strand
	pruned bool // times are used though the level does not have them

	found       []verdict.Violation
	unproved    int  // findings that only times show, where it can't be read again
	partly      bool // of what was found for it, some was only counted
	notRealTime bool // satisfied or not, no order that keeps to the clocks explains it
	noTimes     bool
	budget      bool
	// rest is how many Ticks go without a search, as the last ones met their budget;
	// rests how many will after the next one that does.
	rest, rests int
	// next is how many slots there have to be for a Tick to search, as the last search
	// was of much again; passed is how many Ticks have gone without one for that.
	next, passed int
	left         bool // the last Tick went without a search, for either reason
	cost         int  // steps that the last search took
}

// restsMax is the most Ticks in a row that go without a search as others met their
// budget.
const restsMax = 64

// restsSilent is up to how many a silence of the stream ends.
const restsSilent = 4

// defaultSpacing is Options.Spacing when Options give none. A search that is worth fewer
// than spacedLeast transactions is made at every Tick; and every spacedTicks-th Tick
// searches, so that nobody waits for long where few transactions come.
const (
	defaultSpacing = 128
	spacedLeast    = 128
	spacedTicks    = 8
)

// New makes an engine for levels, which are not empty.
func New(opt Options) *Engine {
	if opt.Conflicts == 0 {
		opt.Conflicts = defaultConflicts
	}
	if opt.ChoiceWork == 0 {
		opt.ChoiceWork = defaultChoiceWork
	}
	if opt.SolveAt == 0 {
		opt.SolveAt = defaultSolveAt
	}
	if opt.Spacing == 0 {
		opt.Spacing = defaultSpacing
	}
	if opt.Steps == 0 {
		opt.Steps = defaultSteps
	}
	if opt.BytesMax == 0 && opt.Online {
		opt.BytesMax = defaultBytesMax
	}
	e := &Engine{opt: opt, nShared: map[verdict.Level]int{}, h: newHistory(), budget: budget.Unlimited(),
		suspended: map[ordinal][]func(){}, seen: map[string]bool{}}
	e.h.opt, e.in = &e.opt, newIntake(e.h)
	if old := opt.Spare; old != nil {
		e.h.reuse(old.h)
		e.in.touched = old.in.touched[:0]
		e.spare, e.h.slotTx, e.waiting = old.strands, old.h.slotTx[:0], old.waiting[:0]
		old.strands, old.main = nil, nil
		e.opt.Spare = nil
	}
	if opt.Online {
		e.budget = &budget.Budget{}
		e.budget.Grant(stepsAtFirst*opt.Steps, 0)
	}
	e.budget.HeldMax = opt.BytesMax
	e.h.reads = e.budget.Share()
	if opt.Stop != nil {
		e.budget.Stop = e.halted
	}
	e.h.expect(opt.Expect)
	if e.h.instants = opt.Clock == record.ClockDatabase; e.h.instants {
		e.opt.MaxSkew = 0 // it is one clock
	}
	e.h.seeds, e.h.attempts, e.h.commonly = opt.Seeds, maxTime, isNull|isEmpty
	if opt.Initial == record.InitialZero {
		e.h.commonly |= isZero
	}
	if opt.MaxTransaction != 0 {
		e.h.attempts = opt.MaxTransaction + opt.MaxSkew
	}
	e.opt.Lost = slices.Clone(opt.Lost)
	e.h.own, e.h.keys.own = opt.Online, opt.Online // records of streams come in large blocks
	var weaker []verdict.Level
	for _, l := range opt.Levels {
		c := &check{level: l}
		switch l {
		case verdict.G1, verdict.RC, verdict.RA, verdict.CC:
			weaker = append(weaker, l)
			e.results = append(e.results, func() verdict.Result { return e.weakResult(l) })
			continue
		case verdict.SSER:
			c.timed = true
		case verdict.SI:
			c.split = true
		case verdict.StrongSI:
			c.split, c.timed = true, true
		case verdict.PC:
			c.split, c.prefix = true, true
		case verdict.LIN:
			c.timed, c.single = true, true
		}
		e.checks = append(e.checks, c)
		e.results = append(e.results, func() verdict.Result { return e.result(c) })
	}
	if len(weaker) > 0 {
		e.weak = newWeakChecks(opt.Sessions == record.SessionsKeep, weaker)
		e.weak.budget = e.budget.Share()
		e.h.ordered = true
		if opt.Online && !opt.UniqueValues && !slices.ContainsFunc(opt.Levels,
			func(l verdict.Level) bool { return l.Implies(verdict.PC) }) {
			e.witness = &check{level: verdict.SI, split: true}
			e.checks = append(e.checks, e.witness)
		}
	}
	e.plain = len(e.checks) == 0
	return e
}

// Mini tells whether the history so far consists of mini-transactions: one or two
// reads, at most two writes, each of a key that was read before, and no value
// written twice to a key (MTC, Definition 9).
func (e *Engine) Mini() bool { return e.h.large == 0 && !e.h.again }

// SingleObjects: every transaction so far keeps to one object (record.Object),
// which lin is about.
func (e *Engine) SingleObjects() bool { return !e.h.several }

// Predicates tells whether some transaction so far, which may have committed, has predicate operations: these are
// counted.
func (e *Engine) Predicates() bool { return e.h.predicates }

// Step takes in one transaction. The record is not kept: whoever calls keeps
// it under the returned number (0, 1, 2, … in the order of Step) for as long as
// evidence may be asked for. Records of a session come in session order; online
// they come, apart from late ones, in the order of their end. arrival is the
// broker's time, in nanoseconds, for records without times, and else ignored.
func (e *Engine) Step(t *record.Transaction, arrival int64) verdict.TxnID {
	id := verdict.TxnID(len(e.h.indexOf))
	for _, v := range e.in.read(t, id, arrival) {
		e.report(v)
	}
	index := e.in.commit(t, id, arrival)
	if index != none && e.opt.Online {
		e.stream(index)
	}
	if len(e.h.woken) > 0 {
		e.wakeStirred()
	}
	return id
}

// Warm says that t will be stepped next, by StepKeys, after what Base is given of its
// keys: what that needs is fetched. It changes nothing.
func (e *Engine) Warm(t *record.Transaction, keys []version.Key) {
	if e.opt.Online && t.Status != record.Aborted {
		e.warm(t.Ops, keys)
	}
}

// StepKeys is Step where the keys of the operations have been looked up by Key.
func (e *Engine) StepKeys(t *record.Transaction, arrival int64, keys []version.Key) verdict.TxnID {
	e.in.known = keys
	id := e.Step(t, arrival)
	e.in.known = nil
	return id
}

// Key is the engine's number of a key, for StepKeys. Who takes records out of
// blocks with tables of names looks up a name once and not at each operation.
func (e *Engine) Key(name string) version.Key { return e.h.keyNumber(name) }

// Number sets those of the numbers that are NoKey to Key(name(i)). What it needs of many
// is fetched side by side.
func (e *Engine) Number(numbers []version.Key, name func(i int) string) {
	var hashes [warmMost]uint32
	var at [warmMost]int
	for from := 0; from < len(numbers); {
		n := 0
		for ; from < len(numbers) && n < warmMost; from++ {
			if numbers[from] == NoKey {
				hashes[n], at[n] = hashName(name(from)), from
				n++
			}
		}
		e.seenWarm = e.h.keys.warm(hashes[:n])
		for j, i := range at[:n] {
			numbers[i] = e.h.numberOf(name(i), hashes[j])
		}
	}
}

// NoKey is what Keys says of a key that has no number yet.
const NoKey = none

// Keys sets numbers[i] to the number of the key called name(i), of n, where it has
// one. Looking up many at once is faster than one by one.
func (e *Engine) Keys(n int, name func(i int) string, numbers []version.Key) {
	e.h.keys.find(n, name, numbers)
}

// stream admits a transaction online. The first ones wait for one with times,
// which says how the history is to be kept, for the first tick, or until they are many.
func (e *Engine) stream(index ordinal) {
	e.unadmitted = append(e.unadmitted, index)
	e.budget.Grant(e.opt.Steps, e.opt.BytesEach)
	if e.opened || e.h.timed > 0 || e.h.untimed-e.h.untimedSeeds >= untimedMany {
		e.timesCame()
		if e.h.several {
			e.dropSingle()
		}
		e.admitAll()
		e.collectEarly()
		e.dropWitness()
		e.solveEarly()
	}
	if e.h.untimed%untimedEvery == untimedEvery-1 && !e.h.txns.At(index).timed {
		e.reconsider()
	}
}

// timesCame reads what there is again for the levels that have real time once the first transaction
// comes that has times: before that they were judged without, as the closure that times are for is a
// matrix where there are none.
func (e *Engine) timesCame() {
	without := func(c *check) bool { return c.timed && c.noTimes }
	if !e.opened || e.h.timed == 0 || !slices.ContainsFunc(e.checks, without) {
		return
	}
	e.collect()
	var users []*check
	for _, c := range e.checks {
		if without(c) {
			c.noTimes = false
			users = append(users, c)
		}
	}
	e.again(true, func(c *check) bool { return slices.Contains(users, c) })
}

// untimedMany is how many transactions without times are taken for a history that has none.
const untimedMany = 64

// untimedEvery is after how many transactions without times it is asked, between
// Ticks too, whether times are worth using.
const untimedEvery = 256

// wakeStirred looks again at reads of which it is known now that what they found
// was aborted, or overwritten by its own transaction.
func (e *Engine) wakeStirred() {
	for _, c := range e.h.woken {
		if e.h.cells.At(c).waiting != none && e.opt.Online && e.opened && e.h.unique() && !e.h.common(e.h.cells.At(c)) {
			e.h.release(c, func(index ordinal) { e.resolve(index, e.h.waitedFor(index, c)) })
		}
	}
	e.h.woken = e.h.woken[:0]
	e.settle()
}

// settleSuspects reports what is known now to be one.
func (e *Engine) settleSuspects(all bool) {
	for _, v := range e.h.settleSuspects(all) {
		e.report(v)
	}
}

func (e *Engine) admitAll() {
	if !e.opened {
		e.open(e.opt.Clock != record.ClockIgnore && e.h.timed > 0)
	}
	for _, i := range e.unadmitted {
		if int(i) < e.opt.Seeds && e.Laden() {
			e.overloaded = true
			e.budget.End()
		}
		if !e.overloaded {
			e.admit(i)
		}
	}
	e.unadmitted = e.unadmitted[:0]
}

// report notes a violation of the level that it carries, and of all that imply
// that.
func (e *Engine) report(v verdict.Violation) {
	base := v.Level
	if e.witness != nil && breaks(e.witness.level, base) {
		e.witness.found = append(e.witness.found, v)
	}
	if !slices.ContainsFunc(e.opt.Levels, func(l verdict.Level) bool { return breaks(l, base) && e.applies(l) }) {
		return
	}
	if !e.vouch(&v) {
		e.blocked++
		return
	}
	if e.unprovable(&v) {
		return
	}
	e.nShared[base]++
	if e.opt.MaxViolations == 0 || e.nShared[base] <= e.opt.MaxViolations || e.opt.Online {
		e.shared = append(e.shared, v)
	}
	if e.opt.Online {
		v.Level = e.weakestBrokenBy(base)
		e.out = append(e.out, v)
	}
}

// breaks tells whether what is no history of base is none of l. Those of lin are,
// key by key, histories of all levels but for session order.
func breaks(l, base verdict.Level) bool { return l == verdict.LIN || l.Implies(base) }

// applies: lin is not about transactions of several objects.
func (e *Engine) applies(l verdict.Level) bool { return l != verdict.LIN || !e.h.several }

// weakestBrokenBy is the weakest level asked for of those that what breaks base
// breaks.
func (e *Engine) weakestBrokenBy(base verdict.Level) verdict.Level {
	w := verdict.LIN
	for _, l := range e.opt.Levels {
		if breaks(l, base) && e.applies(l) && (w == verdict.LIN || w.Implies(l)) {
			w = l
		}
	}
	return w
}

// sharedOf are the reported violations that break l, and whether there are any,
// as not all are kept.
func (e *Engine) sharedOf(l verdict.Level) (out []verdict.Violation, violated bool) {
	for base, n := range e.nShared {
		violated = violated || n > 0 && breaks(l, base)
	}
	for _, v := range e.shared {
		if breaks(l, v.Level) && (e.opt.MaxViolations == 0 || len(out) < e.opt.MaxViolations || e.opt.Online) {
			v.Level = e.weakestBrokenBy(v.Level)
			out = append(out, v)
		}
	}
	return out, violated
}

// strandKind is what a strand is for: the levels of one share what a read says of
// versions, and whether sessions are ordered. In the order of strands.
type strandKind uint8

const (
	prefixStrand strandKind = iota
	strictStrand
	singleStrand
	strandKinds
)

func (c *check) strandKind() strandKind {
	switch {
	case c.prefix:
		return prefixStrand
	case c.single:
		return singleStrand
	}
	return strictStrand
}

// open makes the strands. timed: the history has times to use.
func (e *Engine) open(timed bool) {
	e.opened = true
	if e.h.several {
		e.dropSingle()
	}
	var cfgs [strandKinds][]constraint.Config
	which := make([]int, len(e.checks)) // place in cfgs of the kind
	for i, c := range e.checks {
		c.noTimes = c.timed && !timed && (!e.opt.Online || e.h.timed == 0) // online, they may come; see timesCame
		realTime := c.timed && !c.noTimes || !c.timed && timed && e.h.prunable()
		c.pruned = realTime && !c.timed
		cfg := e.config(c, realTime, !e.opt.Online)
		k := c.strandKind()
		if which[i] = slices.Index(cfgs[k], cfg); which[i] < 0 {
			which[i] = len(cfgs[k])
			cfgs[k] = append(cfgs[k], cfg)
		}
	}
	for k := range cfgs {
		var made []*strand
		if len(cfgs[k]) > 0 && !e.ambiguities {
			made = append(made, e.newStrand(cfgs[k]...))
		}
		for _, cfg := range cfgs[k] {
			if e.ambiguities {
				made = append(made, e.newStrand(cfg))
			}
		}
		for i, c := range e.checks {
			switch {
			case c.strandKind() != strandKind(k):
			case e.ambiguities:
				c.strand, c.poly = made[which[i]], made[which[i]].polys[0]
			default:
				c.strand, c.poly = made[0], made[0].polys[which[i]]
			}
		}
		e.strands = append(e.strands, made...)
	}
	if len(e.strands) == 0 {
		e.strands = append(e.strands, e.newStrand())
	}
	e.main = e.strands[0]
	e.spare = nil // strands know their engine, which knew the one before, and so on
	if !e.opt.Online && e.opt.MaxViolations > 0 {
		for _, c := range e.checks {
			c.poly.MaxFound = e.opt.MaxViolations
		}
	}
}

// dropWitness gives up the level that nobody asked for, if it is of no use any more.
func (e *Engine) dropWitness() {
	c := e.witness
	if c == nil || c.poly == nil || len(c.found) == 0 && !c.poly.Budget.Ended() {
		return
	}
	e.witness = nil
	e.checks = slices.DeleteFunc(e.checks, func(x *check) bool { return x == c })
	e.drop(c.poly)
}

// dropSingle gives up lin: a transaction has several objects.
func (e *Engine) dropSingle() {
	i := slices.IndexFunc(e.checks, func(c *check) bool { return c.single })
	if i < 0 {
		return
	}
	poly := e.checks[i].poly
	e.checks = slices.Delete(e.checks, i, i+1)
	if poly != nil {
		e.drop(poly)
	} else {
		e.plain = len(e.checks) == 0
	}
}

func (e *Engine) newStrand(cfgs ...constraint.Config) *strand {
	s := newStrand(cfgs)
	if len(e.spare) > 0 {
		s.reuse(e.spare[0])
		e.spare[0], e.spare = nil, e.spare[1:]
	}
	if len(cfgs) > 0 && !cfgs[0].Bulk {
		s.expect(e.opt.Expect.Transactions)
	}
	s.candidates = func(slot version.Slot, k version.Key) []version.ID {
		index := e.h.slotTx[slot]
		return e.candidates(index, e.h.readCell(index, k))
	}
	for _, p := range s.polys {
		p.Budget = e.budget.Share()
	}
	return s
}

// halted asks Options.Stop whether to end early, and remembers why.
func (e *Engine) halted() bool {
	if e.stopped == verdict.NoReason && e.opt.Stop != nil {
		e.stopped = e.opt.Stop()
	}
	return e.stopped != verdict.NoReason
}

// sprawls: most transactions lack times, and for a while so few have had them that to use them costs
// more than it saves.
func (e *Engine) sprawls(c *check) bool {
	seeds := min(e.h.seeds, e.h.txns.Len())
	if e.h.untimed-e.h.untimedSeeds <= 16+(e.h.txns.Len()-seeds)/2 {
		return false
	}
	return c.poly.Sprawls(version.Slot(min(seeds, len(e.h.slotTx))))
}

func (e *Engine) config(k *check, realTime, bulk bool) constraint.Config {
	// A record that is late may be one whose clock was set back. Where levels have real time,
	// that would be a violation; where they don't, what rests on it is looked at again.
	late := realTime && !slices.ContainsFunc(e.checks, func(c *check) bool { return c.timed })
	c := constraint.Config{Late: late, Split: k.split, Prefix: k.prefix, RealTime: realTime, Bulk: bulk,
		Skew:     e.opt.MaxSkew,
		Sessions: e.opt.Sessions == record.SessionsKeep && !k.single, Chains: len(e.h.sessions)}
	if c.Instants = realTime && k.timed && e.h.instants; c.Instants {
		c.Late = true // its clock is not a client's, which may have been set back
	}
	c.Last = !e.opt.Online
	if bulk {
		c.Slots, c.RunFirst = e.h.txns.Len(), c.Last && e.weak == nil
	}
	return c
}

// Tick says that no record ending before watermark will come. It closes what
// waited for such records, and solves what is open, or leaves that to a later Tick or to
// SolveLeft where it is much, and little has come since it was solved last.
func (e *Engine) Tick(watermark int64) Output {
	if !e.opt.Online || !e.opened && len(e.unadmitted) == 0 {
		return e.Found()
	}
	e.admitAll()
	e.h.watermark = watermark
	e.settleSuspects(false)
	e.giveUp(watermark)
	e.judgeRepeats()
	e.reconsider()
	e.tickWeak(false)
	for _, c := range e.checks {
		e.solveInTurn(c)
	}
	e.collect()
	e.dropWitness()
	return e.Found()
}

// SolveLeft solves what Ticks have left to later ones, and whom reads at weak levels are of: for when none comes.
func (e *Engine) SolveLeft() Output {
	e.solveLeft(restsMax)
	e.dropWitness()
	e.searchWriters()
	return e.Found()
}

// SolveSilent solves what Ticks have left where it may be that none comes soon, but what has met its budget
// again and again rests on: a stream with few records is silent after each.
func (e *Engine) SolveSilent() Output {
	e.solveLeft(restsSilent)
	return e.Found()
}

func (e *Engine) solveLeft(rests int) {
	any := false
	for _, c := range e.checks {
		if c.left && (c.rest == 0 || c.rests <= rests) {
			e.solveAndRest(c)
			any = true
		}
	}
	if any {
		e.collect()
	}
}

// giveUp resolves the reads whose writer can't come any more, which are nearly in the order of their deadlines: but for
// those, among what came to wait since the last time, of who was seen late to have taken effect.
func (e *Engine) giveUp(watermark int64) {
	n := 0
	e.h.giving = true
	due := func(at int) bool {
		w := e.waiting[at]
		if w.by >= watermark && !e.h.closed {
			return false
		}
		if e.h.unwait(w.cell, w.index) {
			e.h.closedSet = true
			e.decide(w.index, e.h.waitedFor(w.index, w.cell))
			e.h.closedSet = false
		}
		return true
	}
	for n < len(e.waiting) && due(n) {
		n++
	}
	e.looked = max(e.looked, n)
	for end := len(e.waiting); e.looked < end; e.looked++ {
		due(e.looked)
	}
	e.looked -= n
	e.waiting = slices.Delete(e.waiting, 0, n)
	for n = 0; n < len(e.unanchored) && (e.unanchored[n].by < watermark || e.h.closed); n++ {
		e.anchor(e.h.cells.At(e.unanchored[n].cell).key)
	}
	e.unanchored = slices.Delete(e.unanchored, 0, n)
	e.h.giving = false
	e.settleHeld(watermark)
}

// reconsider drops the use of times where too many transactions turn out to
// have none.
func (e *Engine) reconsider() {
	if e.h.first != none {
		return
	}
	prunable := e.h.prunable()
	for _, c := range e.checks {
		if c.pruned && (!prunable || e.sprawls(c)) {
			e.retreat(c, nil)
		}
	}
}

// again reads the whole history again for the checks of which which is true, with the times
// that are left, or without any.
func (e *Engine) again(times bool, which func(*check) bool) {
	e.rereads++
	made := map[*constraint.Polygraph]*strand{}
	for _, c := range e.checks {
		if !which(c) {
			continue
		}
		old := c.poly
		if made[old] == nil {
			made[old] = e.copy(e.config(c, times, !times))
			e.strands = append(e.strands, made[old])
			made[old].finish(false)
		}
		c.strand, c.poly, c.pruned = made[old], made[old].polys[0], times && !c.timed
		c.poly.MaxFound, c.partly = e.opt.MaxViolations, false
		e.drop(old)
	}
}

// Full tells whether the engine has used up so much of what it may (steps, memory) that another one had better
// take over, which begins with little: it has, where all is used up, given up what was open.
func (e *Engine) Full() bool { return e.budget.Half() }

// Laden tells whether it is Full, and the better part of that is the closures of stubs.
func (e *Engine) Laden() bool {
	return e.Full() && e.ClosureBytes()*e.opt.Seeds >= e.opt.BytesMax/4*max(1, len(e.h.slotTx))
}

// GaveUp tells whether what was granted is used up: from then on nothing is found but what the
// records show by themselves.
func (e *Engine) GaveUp() bool { return e.budget.Ended() }

// Found are the violations found since the last Tick, by Close say.
func (e *Engine) Found() Output {
	out := Output{Violations: e.out}
	e.untimed(out.Violations)
	e.out = nil
	return out
}

// collectEarly judges, between Ticks, what was found where times may be to blame: then
// the level has to go without them at once, as whatever is found from then on is of no
// use and costs a search each. It is told at the next Tick.
func (e *Engine) collectEarly() {
	if slices.ContainsFunc(e.checks, func(c *check) bool { return c.pruned && c.poly.Pending() > 0 }) {
		e.collect()
	}
}

// solveEarly solves, between Ticks, what is open where that has become much, also beside what the
// last search cost. It costs little more in parts than all at once at the next Tick, and takes
// less memory. What it finds is told then.
func (e *Engine) solveEarly() {
	for _, c := range e.checks {
		if c.rest == 0 && c.poly.Unsettled() >= max(e.opt.SolveAt, c.cost/stepsForNew) && !c.poly.Budget.Ended() {
			e.solveAndRest(c)
		}
	}
}

// stepsForNew is how many steps of a search a pair is worth that has come since.
const stepsForNew = 8

// solveInTurn is solve at a Tick: what is too hard is left alone for a while, the
// longer the more often it was met, so that a stream is not held up by it; and what is much
// until more has come.
func (e *Engine) solveInTurn(c *check) {
	switch {
	case c.rest > 0:
		c.rest--
	case len(e.h.slotTx) < c.next && c.passed < spacedTicks-1:
		c.passed++
	default:
		e.solveAndRest(c)
		return
	}
	c.left = true
}

func (e *Engine) solveAndRest(c *check) {
	e.solve(c)
	c.rests = min(2*c.rests, restsMax)
	switch {
	case !c.budget:
		c.rests = 0
	case c.rests == 0:
		c.rests = 1
	}
	c.rest = c.rests
}

func (e *Engine) solve(c *check) {
	used := e.budget.Used()
	defer func() {
		c.cost = int(e.budget.Used() - used)
		c.left, c.passed, c.next = false, 0, 0
		if wait := c.poly.Repeated() * e.opt.Spacing / 1024; wait >= spacedLeast {
			c.next = len(e.h.slotTx) + wait
		}
	}()
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
	return e.allResults()
}

func (e *Engine) allResults() []verdict.Result {
	out := make([]verdict.Result, len(e.results))
	for i, result := range e.results {
		out[i] = result()
		e.untimed(out[i].Violations)
	}
	verdict.Infer(out, out)
	if e.witnessed() {
		verdict.Infer(out, []verdict.Result{e.result(e.witness)})
	}
	return out
}

// witnessed: the level that nobody asked for holds.
func (e *Engine) witnessed() bool {
	return e.witness != nil && e.witness.poly != nil && e.result(e.witness).Outcome == verdict.Satisfied
}

// Close says that the input has ended and gives the verdicts, one per level of
// Options in that order. Violations that a Tick reported are in them too.
func (e *Engine) Close() []verdict.Result {
	e.settleSuspects(true)
	for _, index := range slices.Sorted(maps.Keys(e.h.faults)) {
		if e.h.txns.At(index).doubt == tookEffect { // as was known before
			e.judgeFaults(index)
		}
	}
	if e.opt.Online {
		e.closeOnline()
	} else {
		e.closeBatch()
	}
	return e.allResults()
}

func (e *Engine) closeOnline() {
	e.admitAll()
	e.h.closed = true
	e.giveUp(maxTime)
	for _, r := range e.atClose {
		e.decide(r.index, r.cell)
	}
	e.atClose = nil
	e.settle()
	e.judgeLists()
	e.judgeRepeats()
	e.ruleOutReaders()
	e.tickWeak(true)
	for _, c := range e.checks {
		e.solve(c)
	}
	e.collect()
	e.dropWitness()
	e.searchWriters()
}

// closeBatch admits everything: with times in the order of their end, as a
// stream would come; without, in bulk.
func (e *Engine) closeBatch() {
	e.h.closed = true
	e.findAmbiguities()
	timed := e.opt.Clock != record.ClockIgnore && e.h.timed > 0
	e.open(timed)
	order := e.batchOrder()
	if e.realTime() && e.allRealTime() {
		e.admitByTime(order)
	} else {
		e.admitInBulk(order)
	}
	e.judgeRepeats()
	e.ruleOutReaders()
	e.tickWeak(true)
	for _, c := range e.checks {
		if !e.broken(c.level, c.found) && e.stopped == verdict.NoReason && c.poly.Found == 0 {
			e.solve(c)
		}
	}
	e.collect()
	e.searchWriters()
}

// realTime: some polygraph uses times.
func (e *Engine) realTime() bool {
	for _, c := range e.checks {
		if c.pruned || c.timed && !c.noTimes {
			return true
		}
	}
	return false
}

// batchOrder is the order in which transactions get their slots.
func (e *Engine) batchOrder() []ordinal {
	order := make([]ordinal, 0, e.h.txns.Len())
	for i := range ordinal(e.h.txns.Len()) {
		if t := e.h.txns.At(i); !t.open || t.doubt != unread {
			order = append(order, i)
		}
	}
	if e.realTime() {
		slices.SortStableFunc(order, func(a, b ordinal) int {
			return cmp.Compare(e.h.txns.At(a).order,
				e.h.txns.At(b).order)
		})
	}
	return order
}

// findAmbiguities finds, in batch, the reads with several possible writers and
// the transactions of unknown outcome that are in the history or may be: the
// least fixpoint from the committed ones (docs/decisions/0010).
func (e *Engine) findAmbiguities() {
	var todo []ordinal
	promote := func(w ordinal, to doubt, by pendingRead) {
		if x := e.h.txns.At(w); x.open && x.doubt < to {
			if to == tookEffect {
				e.h.vouchers[w] = by
			}
			x.doubt = to
			todo = append(todo, w)
		}
	}
	if e.h.opaque || e.opt.Coverage == record.CoveragePartial && !e.h.unseenUnique() {
		return // no read proves anything
	}
	if e.h.open == 0 && len(e.h.refs) == 0 && !e.h.wroteFirst {
		return // nothing to be found
	}
	for i := range ordinal(e.h.txns.Len()) {
		if !e.h.txns.At(i).open {
			e.readFroms(i, tookEffect, promote)
		}
	}
	for len(todo) > 0 {
		i := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		e.readFroms(i, e.h.txns.At(i).doubt, promote)
	}
	for i := range ordinal(e.h.txns.Len()) {
		e.ambiguities = e.ambiguities || e.h.txns.At(i).doubt == uncertain
	}
}

// readFroms tells promote of the transactions of unknown outcome that index, which
// is in the history as far as sure says, read from or may have.
func (e *Engine) readFroms(index ordinal, sure doubt, promote func(w ordinal, to doubt, by pendingRead)) {
	for _, c := range e.h.external(index) {
		if e.h.saysNothing(c) || e.h.unknowable(e.h.cells.At(c).key) {
			continue
		}
		by := pendingRead{index, c}
		if e.h.cells.At(c).about&isList != 0 && e.h.perKey.At(e.h.cells.At(c).key).isListKey() {
			for _, el := range e.h.elementsOf(c).elements {
				if w := e.h.cells.At(el).final; w != none {
					promote(w, sure, by)
				}
			}
			continue
		}
		w, several := e.h.onlyWriter(index, c)
		switch {
		case several && e.h.unseens(c):
		case several:
			e.ambiguities = true
			for w := range e.h.writersOf(c) {
				if !e.h.reads.Take(1) {
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

// admitInBulk gives everything to the strands at once, those that are surely in
// the history first.
func (e *Engine) admitInBulk(order []ordinal) {
	for n, i := range order {
		if n&1023 == 0 && e.halted() {
			return
		}
		e.enter(i)
	}
	for _, s := range e.strands {
		s.holds = e.ambiguities
	}
	for n, i := range order {
		if n&1023 == 0 && e.halted() {
			return
		}
		for _, c := range e.h.slab(e.h.txns.At(i).writes) {
			e.write(i, c)
		}
	}
	for n, i := range order {
		if n&1023 == 0 && e.halted() {
			return
		}
		if e.h.txns.At(i).doubt != uncertain {
			e.resolveAll(i)
		}
	}
	e.resolveDeferred(order)
	if e.halted() {
		return
	}
	e.settle()
	for _, s := range e.strands {
		s.finish(len(e.shared) > 0)
	}
}

// resolveDeferred resolves what waited for all candidates to be admitted: reads
// with several, and those of uncertain transactions.
func (e *Engine) resolveDeferred(order []ordinal) {
	e.h.closedSet = true
	deferred := e.deferred
	e.deferred = nil
	for _, r := range deferred {
		e.decide(r.index, r.cell)
	}
	for _, i := range order {
		if e.h.txns.At(i).doubt == uncertain {
			e.resolveAll(i)
		}
	}
	e.h.closedSet = false
}

// admitByTime gives one transaction after the other to the strands. A read with
// several candidates waits until all have been admitted that began before its
// transaction ended; later ones follow it by the clock.
func (e *Engine) admitByTime(order []ordinal) {
	earliest := make([]int64, len(order)+1) // by place: the least start from there on
	earliest[len(order)] = maxTime
	for i := len(order) - 1; i >= 0; i-- {
		earliest[i] = earliest[i+1]
		if t := e.h.txns.At(order[i]); !t.timed {
			earliest[i] = math.MinInt64
		} else {
			earliest[i] = min(earliest[i], t.start)
		}
	}
	e.h.closedSet = true
	for n, i := range order {
		if n&255 == 0 && e.halted() {
			return
		}
		e.h.closedSet = false
		e.admit(i)
		e.h.closedSet = true
		for len(e.deferred) > 0 && e.h.precededBy(e.deferred[0].index, earliest[n+1]) {
			r := e.deferred[0]
			e.deferred = e.deferred[1:]
			e.decide(r.index, r.cell)
		}
	}
	e.resolveDeferred(order)
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
	for _, s := range e.strands {
		for _, p := range s.polys {
			n += p.Bytes()
		}
	}
	return n
}
