package incremental

import (
	"slices"

	"github.com/isowatch/isowatch/incremental/budget"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/incremental/version"
	"github.com/isowatch/isowatch/incremental/weak"
)

// weakChecks are the levels that want no polygraph: g1, rc, ra and cc. Their
// checker has the engine's slots for transactions.
type weakChecks struct {
	*weak.Checker
	levels []*weakCheck // weakest first
	budget *budget.Share
	// choices are reads with several possible writers, and those of transactions
	// that may not have taken effect.
	choices   []pendingRead
	exclusive [][2]ordinal
	ruledOut  map[ordinal]verdict.Level // transactions that can't have taken effect, by what breaks the level
	held      int                       // bytes that budget knows of
	gaveUp    bool                      // something was not worked off, as the budget had ended
	searched  bool                      // whom the choices are of was searched for
	blocked   int                       // reads that could not be decided, of keys read before
	repeats   []pendingRead             // lists that a transaction read again
	keys      []version.Key             // scratch
	told      map[string]verdict.Level  // by the transactions of a cycle: the weakest level it was told of
}

type weakCheck struct {
	level verdict.Level
	name  weak.Level
	found []verdict.Violation
	order []version.Slot   // that satisfies the level, if the choices have been made
	from  []verdict.Source // what was chosen
	// outcome of a history with choices, once decided; open are the choices that it does
	// not rest on if it is that they can't be made, excluded the uncertain transactions that
	// are not in the order.
	outcome  verdict.Outcome // zero without choices
	open     int
	excluded map[ordinal]bool
}

var weakNames = map[verdict.Level]weak.Level{verdict.G1: weak.G1, verdict.RC: weak.RC, verdict.RA: weak.RA,
	verdict.CC: weak.CC}

var guaranteeNames = map[verdict.Guarantee]weak.Level{
	verdict.ReadYourWrites: weak.ReadYourWrites, verdict.MonotonicReads: weak.MonotonicReads,
	verdict.MonotonicWrites: weak.MonotonicWrites, verdict.WritesFollowReads: weak.WritesFollowReads,
}

func newWeakChecks(sessions bool, levels []verdict.Level) *weakChecks {
	w := &weakChecks{ruledOut: map[ordinal]verdict.Level{}, told: map[string]verdict.Level{}}
	var names []weak.Level
	for l, name := range weakNames {
		if slices.Contains(levels, l) {
			names = append(names, name)
			w.levels = append(w.levels, &weakCheck{level: l, name: name})
		}
	}
	slices.Sort(names)
	slices.SortFunc(w.levels, func(a, b *weakCheck) int { return int(a.name) - int(b.name) })
	w.Checker = weak.New(sessions, names...)
	return w
}

// ruleOut notes that an uncertain transaction can't have taken effect at base and
// the levels that imply it.
func (w *weakChecks) ruleOut(index ordinal, base verdict.Level) {
	if was, ok := w.ruledOut[index]; !ok || was.Implies(base) {
		w.ruledOut[index] = base
	}
}

// enterWeak gives a transaction to the checker, under its slot.
func (e *Engine) enterWeak(t *txn, index ordinal) {
	w := e.weak
	w.keys = w.keys[:0]
	for _, c := range e.h.external(index) {
		w.keys = append(w.keys, e.h.cells.At(c).key)
	}
	n := len(w.keys)
	for _, c := range e.h.slab(t.writes) {
		if k := e.h.cells.At(c).key; len(w.keys) == n || w.keys[len(w.keys)-1] != k {
			w.keys = append(w.keys, k)
		}
	}
	prev := version.Slot(none)
	if t.prev != none {
		prev = e.h.txns.At(t.prev).slot
	}
	slot := w.Add(uint32(t.session), prev, t.open || t.base, w.keys[:n], w.keys[n:])
	if t.doubt != uncertain {
		e.h.eachAppended(t, func(k version.Key) { w.Appended(k, slot) })
	}
}

// readWeak tells the checker of a resolved read.
func (e *Engine) readWeak(index ordinal, c cellID, from version.Slot) {
	if e.weak == nil { // and no polygraph either
		return
	}
	slot := e.h.txns.At(index).slot
	for i, r := range e.h.external(index) {
		if r == c {
			e.weak.Read(slot, i, from)
		}
	}
}

// showWeak tells the checker of the transactions whose elements a list shows,
// but for the last, which readWeak has told of.
func (e *Engine) showWeak(index ordinal, c cellID, l *list) {
	slot := e.h.txns.At(index).slot
	from := e.h.shownBy(l)
	for i, r := range e.h.external(index) {
		for n := 0; r == c && n < len(from)-1; n++ {
			e.weak.Shows(slot, i, from[n])
		}
	}
}

// resolveRepeats resolves what a transaction read again, and found changed.
func (e *Engine) resolveRepeats(index ordinal) {
	seq, ok := e.h.sequences[index]
	if !ok {
		return
	}
	first := e.h.slab(e.h.txns.At(index).reads)
	for i, c := range seq {
		if !slices.Contains(first, c) && !slices.Contains(seq[:i], c) {
			e.resolve(index, c)
		}
	}
}

// judgeRepeats decides the lists that were read again, for which nobody can come any more, in the order in which they
// came: one whose time is up waits for those before it.
func (e *Engine) judgeRepeats() {
	if e.weak == nil {
		return
	}
	e.repeatsDue, e.h.closedSet = true, true
	for len(e.weak.repeats) > 0 && (e.h.closed || e.h.deadline(e.weak.repeats[0].index) < e.h.watermark) {
		r := e.weak.repeats[0]
		e.weak.repeats = e.weak.repeats[1:]
		e.decide(r.index, r.cell)
	}
	e.repeatsDue, e.h.closedSet = false, false
}

// tickWeak works off what came since the last call.
func (e *Engine) tickWeak(last bool) {
	if e.weak == nil || last && e.halted() {
		return
	}
	e.weak.Take = func(steps int) bool {
		on := e.weak.budget.Certain(steps)
		e.weak.gaveUp = e.weak.gaveUp || !on
		return on
	}
	found := e.weak.Tick(last && !e.opt.Online)
	held := e.weak.Bytes()
	e.weak.budget.Hold(held - e.weak.held)
	e.weak.held = held
	for _, v := range found {
		c := e.weak.check(v.Level)
		if c == nil { // a cycle of the base, and g1 was not asked for
			c = e.weak.levels[0]
		}
		if e.opt.MaxViolations == 0 || len(c.found) < e.opt.MaxViolations || e.opt.Online {
			e.tellWeak(c, e.weakViolation(e.weak.Path, v, c.level))
		}
	}
}

// searchWriters decides, when no Tick comes any more, the weak levels whose reads may be of several writers: the
// cheapest first, and none that follows: a weaker one is broken, or a stronger one holds.
func (e *Engine) searchWriters() {
	if e.weak == nil || len(e.weak.choices)+len(e.doubtful) == 0 {
		return
	}
	e.weak.searched = true
	for _, c := range e.weak.levels {
		if c.outcome != verdict.Violated { // it may have been asked before
			c.outcome = verdict.Unknown
		}
	}
	if e.halted() || e.witnessed() {
		return
	}
	answered := func(l verdict.Level) bool {
		return slices.ContainsFunc(e.weak.levels,
			func(c *weakCheck) bool { return l.Implies(c.level) && e.broken(c.level, c.found) }) ||
			e.opt.Online && slices.ContainsFunc(e.checks,
				func(c *check) bool { return c.level.Implies(l) && e.result(c).Outcome == verdict.Satisfied })
	}
	open := slices.DeleteFunc(slices.Clone(e.weak.levels), func(c *weakCheck) bool { return answered(c.level) })
	shares := make([]*budget.Share, len(open))
	for i := range open {
		shares[i] = e.budget.Share()
	}
	e.budget.Grant(searchSteps, 0)
	for i, c := range open {
		if !answered(c.level) { // of one before
			e.decideChoices(c, shares[i])
		}
		shares[i].Leave()
	}
}

// check is the one of a level, or nil.
func (w *weakChecks) check(l weak.Level) *weakCheck {
	for _, c := range w.levels {
		if c.name == l {
			return c
		}
	}
	return nil
}

// tellWeak records a violation, unless it is unprovable, and tells of it unless a weaker level had it.
func (e *Engine) tellWeak(c *weakCheck, v verdict.Violation) (violated bool) {
	e.vouch(&v)
	if e.unprovable(&v) {
		return false
	}
	c.found = append(c.found, v)
	if e.opt.Online && !e.toldWeaker(c.level, v) {
		e.out = append(e.out, v)
	}
	return true
}

// toldWeaker tells whether a cycle of the same transactions has been told of at a
// level that l implies.
func (e *Engine) toldWeaker(l verdict.Level, v verdict.Violation) bool {
	if e.weak == nil || v.Kind != verdict.Cycle {
		return false
	}
	name := canonical(v)
	was, ok := e.weak.told[name]
	if ok && was != l && l.Implies(was) {
		return true
	}
	if !ok || was.Implies(l) {
		e.weak.told[name] = l
	}
	return false
}

// weakResult is the verdict on a weak level.
func (e *Engine) weakResult(l verdict.Level) verdict.Result {
	c := e.weak.check(weakNames[l])
	r := verdict.Result{Level: l, Partial: e.h.partial(),
		Stats: verdict.Stats{Choices: len(e.weak.choices), Inferred: e.weak.Inferred}}
	shared, violated := e.sharedOf(l)
	r.Violations = shared
	told := map[string]bool{}
	for _, weaker := range e.weak.levels { // weakest first
		if !l.Implies(weaker.level) {
			continue
		}
		for _, v := range weaker.found {
			name := canonical(v)
			if v.Kind != verdict.Cycle || !told[name] {
				r.Violations = append(r.Violations, v)
			}
			told[name] = true
			violated = true
		}
	}
	if e.opt.MaxViolations > 0 && !e.opt.Online && len(r.Violations) > e.opt.MaxViolations {
		r.Violations = r.Violations[:e.opt.MaxViolations]
	}
	open, notChecked := 0, e.h.skipped+e.blocked+e.weak.blocked+len(e.atClose)+len(e.weak.repeats)+len(e.h.suspects)
	switch {
	case c.outcome == verdict.Unknown || !e.weak.searched:
		open = len(e.weak.choices)
	case c.outcome == verdict.Violated:
		open = c.open
	case c.outcome == verdict.Satisfied && len(e.doubtful) > 0:
		notChecked = 0
	}
	if violated || c.outcome == verdict.Violated {
		r.Outcome = verdict.Violated
	}
	switch {
	case r.Outcome == verdict.Violated && !e.opt.Online: // nothing more was looked for
	case e.stopped != verdict.NoReason:
		r.Reason = e.stopped
	case e.weak.gaveUp:
		r.Reason, r.Count = verdict.Conflicts, 1
	case notChecked > 0 || open > 0:
		r.Reason, r.Count = verdict.NotChecked, notChecked+open
		r.Pending = e.h.pending(e.atClose, e.doubtful, e.weak.repeats, e.weak.choices)
		if notChecked == 0 {
			r.Reason = verdict.Conflicts
		}
		r.Decided = 1 - min(1, float64(r.Count)/float64(max(1, e.h.total)))
	}
	switch {
	case r.Outcome == verdict.Violated:
	case r.Reason != verdict.NoReason:
		r.Outcome = verdict.Unknown
	default:
		r.Outcome, r.ProvedBy = verdict.Satisfied, l
		if e.opt.Proof && !e.opt.Online {
			r.Order, r.Sources = e.commitOrder(c), c.from
		}
	}
	return r
}

// commitOrder is the order that satisfies a level.
func (e *Engine) commitOrder(c *weakCheck) []verdict.Event {
	order := c.order
	if order == nil {
		order = e.weak.Order(c.name)
	}
	var out []verdict.Event
	for _, s := range order {
		if i := e.h.slotTx[s]; e.h.txns.At(i).doubt != uncertain || !c.excluded[i] {
			out = append(out, verdict.Event{Txn: e.h.txnOf(s), Commit: true})
		}
	}
	return out
}

// Guarantees judges the four session guarantees, after Close, of a history that
// was checked at cc or another weak level; otherwise it returns nil. What causal
// consistency holds of, they hold of.
func (e *Engine) Guarantees() []verdict.GuaranteeResult {
	if e.weak == nil || !e.h.closed {
		return nil
	}
	var out []verdict.GuaranteeResult
	base, broken := e.sharedOf(verdict.G1)
	for _, c := range e.weak.levels {
		for _, v := range c.found {
			broken = broken || onlyBase(v)
		}
	}
	for _, g := range verdict.Guarantees() {
		r := verdict.GuaranteeResult{Guarantee: g, Outcome: verdict.Satisfied}
		switch {
		case broken: // reads that no order explains
			r.Outcome, r.Violations = verdict.Violated, base
		case e.stopped != verdict.NoReason || e.weak.gaveUp ||
			e.h.skipped+e.blocked+e.weak.blocked+len(e.atClose)+len(e.weak.choices) > 0:
			r.Outcome = verdict.Unknown
		default:
			e.judgeGuarantee(&r)
		}
		out = append(out, r)
	}
	return out
}

// onlyBase: the cycle is of session order and read-from alone.
func onlyBase(v verdict.Violation) bool {
	for _, ed := range v.Cycle {
		if ed.Type != verdict.SO && ed.Type != verdict.WR {
			return false
		}
	}
	return v.Kind == verdict.Cycle
}

func (e *Engine) judgeGuarantee(r *verdict.GuaranteeResult) {
	found, decided := e.weak.Judge(guaranteeNames[r.Guarantee])
	switch {
	case !decided:
		r.Outcome = verdict.Unknown
	case len(found) > 0:
		v := e.weakViolation(e.weak.Path, found[0], verdict.CC)
		if e.vouch(&v); e.unprovable(&v) {
			r.Outcome = verdict.Unknown
			return
		}
		r.Outcome = verdict.Violated
		r.Violations = append(r.Violations, v)
	}
}
