package incremental

import (
	"maps"
	"math"
	"slices"

	"github.com/isowatch/isowatch/incremental/budget"
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
// A transaction is taken in (intake: names become numbers, what it breaks by itself is found), then admitted: its reads
// are resolved to versions, and the polygraphs are told. Online a transaction is admitted at once and a read waits for
// its writer until none can come any more; in batch all is admitted by Close, when every writer is known.
//
// Each stage knows those before it and those that it gives to, none knows the Engine, which says only when: who is
// admitted, when it is solved, and what becomes of a finding that does not hold.
type Engine struct {
	opt    Options
	stop   *stopper
	budget *budget.Budget // what all stages draw from; online so much is granted with each transaction

	in     *intake     // records as numbers
	h      *history    // what is known of them
	r      *resolver   // whom reads are of
	g      *graphs     // the polygraphs, and the levels that want one
	weak   *weakChecks // the levels that don't, or nil
	decide *decider    // when they are solved
	ev     *evidence   // findings as violations
	out    *output     // what is told

	unadmitted []ordinal // taken in before the history's kind was known
	overloaded bool      // stubs alone have made it Laden: nothing more is admitted
	seenWarm   uint32    // written, and never read, so that the reads of Warm are not optimised away
}

// stopper asks whether to end early, and remembers why.
type stopper struct {
	ask    func() verdict.Reason // Options.Stop
	reason verdict.Reason
}

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
	e := &Engine{opt: opt, budget: budget.Unlimited(), stop: &stopper{ask: opt.Stop}, h: newHistory()}
	if opt.Online {
		e.budget = &budget.Budget{}
		e.budget.Grant(stepsAtFirst*opt.Steps, 0)
	}
	e.budget.HeldMax = opt.BytesMax
	if opt.Stop != nil {
		e.budget.Stop = e.stop.halted
	}
	if opt.Seeds == 0 {
		e.h.stubs = 0
	}
	e.h.opt, e.h.reads, e.in = &e.opt, e.budget.Share(), newIntake(e.h)
	e.g = &graphs{opt: &e.opt, h: e.h, budget: e.budget}
	e.decide = &decider{opt: &e.opt, h: e.h, budget: e.budget}
	e.ev = &evidence{opt: &e.opt, h: e.h, g: e.g, stop: e.stop}
	e.out = &output{opt: &e.opt, h: e.h, ev: e.ev, nShared: map[verdict.Level]int{}, seen: map[string]bool{}}
	e.r = &resolver{opt: &e.opt, h: e.h, g: e.g, ev: e.ev, out: e.out, stop: e.stop,
		suspended: map[ordinal][]anomaly{}}
	if opt.Clock == record.ClockDatabase {
		e.opt.MaxSkew = 0 // it is one clock
	}
	e.h.attempts, e.h.commonly = maxTime, isNull|isEmpty
	if opt.Initial == record.InitialZero {
		e.h.commonly |= isZero
	}
	if opt.MaxTransaction != 0 {
		e.h.attempts = opt.MaxTransaction + opt.MaxSkew
	}
	if e.opt.Lost = slices.Clone(opt.Lost); opt.Lossy {
		e.opt.Lost = Losses{{From: math.MinInt64, To: math.MaxInt64}} // it is not known when
	}
	e.h.own, e.h.keys.own = opt.Online, opt.Online // records of streams come in large blocks
	var weaker []verdict.Level
	for _, l := range opt.Levels {
		c := &check{level: l}
		switch l {
		case verdict.G1, verdict.RC, verdict.RA, verdict.CC:
			weaker = append(weaker, l)
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
		e.g.checks = append(e.g.checks, c)
	}
	if len(weaker) > 0 {
		e.weak = newWeakChecks(opt.Sessions == record.SessionsKeep, weaker)
		e.weak.opt, e.weak.h, e.weak.ev, e.weak.out, e.weak.stop = &e.opt, e.h, e.ev, e.out, e.stop
		e.weak.budget, e.r.weak = e.budget.Share(), e.weak
		e.out.weakest = map[string]verdict.Level{}
		e.h.ordered = true
		if opt.Online && !opt.UniqueValues && !slices.ContainsFunc(opt.Levels,
			func(l verdict.Level) bool { return l.Implies(verdict.PC) }) {
			e.out.witness = &check{level: verdict.SI, split: true}
			e.g.checks = append(e.g.checks, e.out.witness)
		}
	}
	e.g.plain = len(e.g.checks) == 0
	return e
}

// Step takes in one transaction. The record is not kept: whoever calls keeps
// it under the returned number (0, 1, 2, … in the order of Step) for as long as
// evidence may be asked for. Records of a session come in session order; online
// they come, apart from late ones, in the order of their end. arrival is the
// broker's time, in nanoseconds, for records without times, and else ignored.
// keys are the numbers of the operations' keys, as Number gives them, or none: then Step looks them up.
func (e *Engine) Step(t *record.Transaction, arrival int64, keys ...version.Key) verdict.TxnID {
	if e.opt.Online && len(keys) > 0 && t.Status != record.Aborted {
		e.seenWarm = e.g.warm(t.Ops, keys)
	}
	id := verdict.TxnID(len(e.h.indexOf))
	e.in.known = keys
	for _, v := range e.in.read(t, id, arrival) {
		e.out.report(v)
	}
	index := e.in.commit(t, id, arrival)
	if index != none && e.opt.Online {
		e.stream(index)
	}
	if len(e.h.woken) > 0 {
		e.r.resolveWoken()
	}
	if int(id)+1 == e.opt.Seeds {
		e.seeded()
	}
	return id
}

// NoKey stands for a key that Number has not been asked for.
const NoKey = none

// Number sets those of the numbers that are NoKey to the number of the key called name(i). Numbers are given in the
// order in which keys are asked for. Who takes records out of blocks with tables of names looks up a name once and not
// at each operation; of many, what that needs is fetched side by side.
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

// stream admits a transaction online. The first ones wait for one with times,
// which says how the history is to be kept, for the first tick, or until they are many.
func (e *Engine) stream(index ordinal) {
	e.unadmitted = append(e.unadmitted, index)
	e.budget.Grant(e.opt.Steps, e.opt.BytesEach)
	if e.g.opened || e.h.timed > 0 || e.h.untimed-e.h.untimedSeeds >= untimedMany {
		e.timesCame()
		if e.h.several {
			e.g.dropSingle()
		}
		e.admitAll()
		e.collectEarly()
		e.dropWitness()
		e.decide.early(e.g.checks)
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
	if !e.g.opened || e.h.timed == 0 || !slices.ContainsFunc(e.g.checks, without) {
		return
	}
	e.collect()
	var users []*check
	for _, c := range e.g.checks {
		if without(c) {
			c.noTimes = false
			users = append(users, c)
		}
	}
	e.g.again(true, func(c *check) bool { return slices.Contains(users, c) })
}

// untimedMany is how many transactions without times are taken for a history that has none.
const untimedMany = 64

// untimedEvery is after how many transactions without times it is asked, between
// Ticks too, whether times are worth using.
const untimedEvery = 256

// settleSuspects reports what is known now to be one.
func (e *Engine) settleSuspects(all bool) {
	for _, v := range e.h.settleSuspects(all) {
		e.out.report(v)
	}
}

func (e *Engine) admitAll() {
	if !e.g.opened {
		e.g.open(e.opt.Clock != record.ClockIgnore && e.h.timed > 0)
	}
	for _, i := range e.unadmitted {
		if int(i) < e.opt.Seeds && e.laden() {
			e.overloaded = true
			e.budget.End()
		}
		if !e.overloaded {
			e.r.admit(i)
		}
	}
	e.unadmitted = e.unadmitted[:0]
}

// dropWitness gives up the level that nobody asked for, if it is of no use any more.
func (e *Engine) dropWitness() {
	c := e.out.witness
	if c == nil || c.poly == nil || len(c.found) == 0 && !c.poly.Budget.Ended() {
		return
	}
	e.out.witness = nil
	e.g.checks = slices.DeleteFunc(e.g.checks, func(x *check) bool { return x == c })
	e.g.drop(c.poly)
}

// halted asks Options.Stop whether to end early, and remembers why.
func (s *stopper) halted() bool {
	if s.reason == verdict.NoReason && s.ask != nil {
		s.reason = s.ask()
	}
	return s.reason != verdict.NoReason
}

// Tick says that no record ending before watermark will come. It closes what
// waited for such records, and solves what is open, or leaves that to a later Tick or to
// Solve where it is much, and little has come since it was solved last. After Close it tells what that found.
func (e *Engine) Tick(watermark int64) Output {
	if !e.opt.Online || e.h.closed || !e.g.opened && len(e.unadmitted) == 0 {
		return e.output()
	}
	e.admitAll()
	e.h.watermark = watermark
	e.settleSuspects(false)
	e.r.giveUp(watermark)
	e.r.judgeRepeats()
	e.reconsider()
	e.weak.tick(false)
	for _, c := range e.g.checks {
		e.decide.inTurn(c)
	}
	e.collect()
	e.dropWitness()
	return e.output()
}

// Solve solves what Ticks have left to later ones: all, and whom reads at weak levels are of, for when none comes; else
// where it may be that none comes soon, but what has met its budget again and again rests on: a stream with few records
// is silent after each.
func (e *Engine) Solve(all bool) Output {
	rests := restsSilent
	if all {
		rests = restsMax
	}
	if e.decide.left(e.g.checks, rests) {
		e.collect()
	}
	if all {
		e.dropWitness()
		e.searchWriters()
	}
	return e.output()
}

// reconsider drops the use of times where too many transactions turn out to
// have none.
func (e *Engine) reconsider() {
	if e.h.first != none {
		return
	}
	prunable := e.h.prunable()
	for _, c := range e.g.checks {
		if c.pruned && (!prunable || e.g.sprawls(c)) {
			e.retreat(c, nil)
		}
	}
}

// State is what is known of all transactions so far, and how much of what it may the engine has used.
type State struct {
	// Mini: the history consists of mini-transactions: one or two reads, at most two writes, each of a key that was
	// read before, and no value written twice to a key (MTC, Definition 9).
	Mini bool
	// SingleObjects: every transaction keeps to one object (record.Object), which lin is about.
	SingleObjects bool
	// Predicates: some transaction which may have committed has predicate operations: these are counted.
	Predicates bool
	// Unique: Options.UniqueValues was set, and has held. UniqueAttempts: likewise.
	Unique, UniqueAttempts bool
	// UnseenUnique: that is believed of who was not seen. Where nothing is said of it, not any more once two
	// transactions, neither of them aborted, wrote the same value to the same key, whichever, or one wrote back what it
	// read: who makes values so may have made any of them before. Null, and what keys are known to hold at first, show
	// nothing of other values, and may be anybody's in any case.
	UnseenUnique bool
	// Full: so much of what it may (steps, memory) is used up that another one had better take over, which begins with
	// little: where all is used up, it has given up what was open. Laden: it is, and the better part of that is the
	// closures of stubs.
	Full, Laden bool
	// GaveUp: what was granted is used up: from now on nothing is found but what the records show by themselves.
	GaveUp bool
}

// State says how things stand. O(levels).
func (e *Engine) State() State {
	return State{Mini: e.h.large == 0 && !e.h.again, SingleObjects: !e.h.several, Predicates: e.h.predicates,
		Unique: e.h.unique(), UniqueAttempts: e.h.uniqueAttempts(), UnseenUnique: e.h.unseenUnique(),
		Full: e.budget.Half(), Laden: e.laden(), GaveUp: e.budget.Ended()}
}

// laden is State.Laden.
func (e *Engine) laden() bool {
	return e.opt.Seeds > 0 && e.budget.Half() &&
		e.closureBytes()*e.opt.Seeds >= e.opt.BytesMax/4*max(1, len(e.h.slotTx))
}

// closureBytes is the memory that reachability takes.
func (e *Engine) closureBytes() (n int) {
	for _, s := range e.g.strands {
		for _, p := range s.polys {
			n += p.Bytes()
		}
	}
	return n
}

// output is what was found since the last one.
func (e *Engine) output() Output {
	out := Output{Violations: e.out.told}
	e.out.untimed(out.Violations)
	for i := range out.Violations {
		out.Violations[i].Torn = e.torn(&out.Violations[i])
	}
	e.out.told = nil
	return out
}

// collectEarly judges, between Ticks, what was found where times may be to blame: then
// the level has to go without them at once, as whatever is found from then on is of no
// use and costs a search each. It is told at the next Tick.
func (e *Engine) collectEarly() {
	if slices.ContainsFunc(e.g.checks, func(c *check) bool { return c.pruned && c.poly.Pending() > 0 }) {
		e.collect()
	}
}

// Results are the verdicts so far, which more input and Close may make worse.
func (e *Engine) Results() []verdict.Result {
	if !e.g.opened {
		return nil
	}
	return e.allResults()
}

func (e *Engine) allResults() []verdict.Result {
	out := make([]verdict.Result, len(e.opt.Levels))
	for i, l := range e.opt.Levels {
		out[i] = e.resultOf(l)
		e.out.untimed(out[i].Violations)
	}
	verdict.Infer(out, out)
	if e.witnessed() {
		verdict.Infer(out, []verdict.Result{e.result(e.out.witness)})
	}
	return out
}

// resultOf is the verdict on a level that was asked for.
func (e *Engine) resultOf(l verdict.Level) verdict.Result {
	if _, weaker := weakNames[l]; weaker {
		return e.weakResult(l)
	}
	if !e.out.applies(l) {
		return verdict.Result{Level: l, Outcome: verdict.NotApplicable}
	}
	at := slices.IndexFunc(e.g.checks, func(c *check) bool { return c.level == l })
	return e.result(e.g.checks[at])
}

// witnessed: the level that nobody asked for holds.
func (e *Engine) witnessed() bool {
	return e.out.witness != nil && e.out.witness.poly != nil && e.result(e.out.witness).Outcome == verdict.Satisfied
}

// Close says that the input has ended and gives the verdicts, one per level of
// Options in that order. Violations that a Tick reported are in them too.
func (e *Engine) Close() []verdict.Result {
	e.settleSuspects(true)
	for _, index := range slices.Sorted(maps.Keys(e.h.faults)) {
		if e.h.txns.At(index).doubt == tookEffect { // as was known before
			e.r.judgeFaults(index)
		}
	}
	if e.opt.Online {
		e.closeOnline()
	} else {
		e.closeBatch()
	}
	out := e.allResults()
	if cc := slices.IndexFunc(out, func(r verdict.Result) bool { return r.Level == verdict.CC }); cc >= 0 &&
		e.opt.Guarantees && out[cc].Outcome != verdict.Satisfied {
		out[cc].Guarantees = e.guarantees()
	}
	return out
}

func (e *Engine) closeOnline() {
	e.admitAll()
	e.h.closed = true
	e.r.giveUp(maxTime)
	for _, r := range e.r.atClose {
		e.r.decide(r.index, r.cell)
	}
	e.r.atClose = nil
	e.g.settle()
	e.r.judgeLists()
	e.r.judgeRepeats()
	e.r.ruleOutReaders()
	e.weak.tick(true)
	for _, c := range e.g.checks {
		e.decide.solve(c)
	}
	e.collect()
	e.dropWitness()
	e.searchWriters()
}

// closeBatch admits everything: with times one after the other in the order of their end, as a
// stream would come; without, all together.
func (e *Engine) closeBatch() {
	e.h.closed = true
	if len(e.h.lists) == 0 {
		e.h.slots = nil // no value is looked up any more
	}
	e.r.findAmbiguities()
	timed := e.opt.Clock != record.ClockIgnore && e.h.timed > 0
	e.g.open(timed)
	order := e.r.batchOrder()
	if e.g.realTime() && e.g.allRealTime() {
		e.r.admitByTime(order)
	} else if e.r.admitTogether(order...) {
		e.r.resolveDeferred(order)
		for _, s := range e.g.strands {
			s.finish(len(e.out.shared) > 0)
		}
	}
	e.r.judgeRepeats()
	e.r.ruleOutReaders()
	e.weak.tick(true)
	for _, c := range e.g.checks {
		if !e.out.broken(c.level, c.found) && e.stop.reason == verdict.NoReason && c.poly.Found == 0 {
			e.decide.solve(c)
		}
	}
	e.collect()
	e.searchWriters()
}
