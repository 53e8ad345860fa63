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
	opt    *Options
	h      *history
	ev     *evidence
	out    *output
	stop   *stopper
	levels []*weakCheck // weakest first
	budget *budget.Share
	// choices are reads with several possible writers, and all reads of transactions
	// that may not have taken effect.
	choices   []pendingRead
	exclusive [][2]ordinal              // pairs of transactions of which one at most took effect
	ruledOut  map[ordinal]verdict.Level // transactions that can't have taken effect, by what breaks the level
	held      int                       // bytes of the checker that budget was told of
	gaveUp    bool                      // something was not worked off, as the budget had ended
	searched  bool                      // choices were searched, which is done once, at the end
	blocked   int                       // reads that could not be decided, of keys read before
	repeats   []pendingRead             // lists that a transaction read again
	keys      []version.Key             // scratch
}

type weakCheck struct {
	level verdict.Level
	name  weak.Level
	found []verdict.Violation
	// Where there are choices, and the level was decided with them; zero else.
	outcome  verdict.Outcome
	open     int              // if violated: the choices that this does not rest on
	order    []version.Slot   // if satisfied: one that satisfies the level
	from     []verdict.Source // if satisfied: whom the reads of choices are of in that order
	excluded map[ordinal]bool // if satisfied: the uncertain transactions that are not in it
}

var weakNames = map[verdict.Level]weak.Level{verdict.G1: weak.G1, verdict.RC: weak.RC, verdict.RA: weak.RA,
	verdict.CC: weak.CC}

var guaranteeNames = map[verdict.Guarantee]weak.Level{
	verdict.ReadYourWrites: weak.ReadYourWrites, verdict.MonotonicReads: weak.MonotonicReads,
	verdict.MonotonicWrites: weak.MonotonicWrites, verdict.WritesFollowReads: weak.WritesFollowReads,
}

func newWeakChecks(sessions bool, levels []verdict.Level) *weakChecks {
	w := &weakChecks{ruledOut: map[ordinal]verdict.Level{}}
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

// searchWriters decides, when no Tick comes any more, the weak levels whose reads may be of several writers: the
// cheapest first, and none that follows: a weaker one is broken, or a stronger one holds.
func (e *Engine) searchWriters() {
	if e.weak == nil || len(e.weak.choices)+len(e.r.doubtful) == 0 {
		return
	}
	e.weak.searched = true
	for _, c := range e.weak.levels {
		if c.outcome != verdict.Violated { // it may have been asked before
			c.outcome = verdict.Unknown
		}
	}
	if e.stop.halted() || e.witnessed() {
		return
	}
	answered := func(l verdict.Level) bool {
		return slices.ContainsFunc(e.weak.levels,
			func(c *weakCheck) bool { return l.Implies(c.level) && e.out.broken(c.level, c.found) }) ||
			e.opt.Online && slices.ContainsFunc(e.g.checks,
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
			if e.openReads()+e.weak.blocked <= len(e.r.doubtful) { // else a candidate may be missing
				e.weak.decideChoices(c, shares[i], e.r.doubtful)
			}
		}
		shares[i].Leave()
	}
}

// weakResult is the verdict on a weak level.
func (e *Engine) weakResult(l verdict.Level) verdict.Result {
	c := e.weak.check(weakNames[l])
	r := verdict.Result{Level: l, Partial: e.h.someUnseen(),
		Stats: verdict.Stats{Choices: len(e.weak.choices), Inferred: e.weak.Inferred}}
	shared, violated := e.out.sharedOf(l)
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
	open, notChecked := 0, e.openReads()+e.weak.blocked+len(e.weak.repeats)+len(e.h.suspects)
	switch {
	case c.outcome == verdict.Unknown || !e.weak.searched:
		open = len(e.weak.choices)
	case c.outcome == verdict.Violated:
		open = c.open
	case c.outcome == verdict.Satisfied && len(e.r.doubtful) > 0:
		notChecked = 0
	}
	if violated || c.outcome == verdict.Violated {
		r.Outcome = verdict.Violated
	}
	switch {
	case r.Outcome == verdict.Violated && !e.opt.Online: // nothing more was looked for
	case e.stop.reason != verdict.NoReason:
		r.Reason = e.stop.reason
	case e.weak.gaveUp:
		r.Reason, r.Count = verdict.Conflicts, 1
	case notChecked > 0 || open > 0:
		r.Reason, r.Count = verdict.NotChecked, notChecked+open
		r.Pending = e.h.pending(e.r.atClose, e.r.doubtful, e.weak.repeats, e.weak.choices)
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
			r.Order, r.Sources = e.weak.commitOrder(c), c.from
		}
	}
	return r
}

// guarantees judges the four session guarantees of a history that was checked at cc.
func (e *Engine) guarantees() []verdict.GuaranteeResult {
	var out []verdict.GuaranteeResult
	base, broken := e.out.sharedOf(verdict.G1)
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
		case e.stop.reason != verdict.NoReason || e.weak.gaveUp ||
			e.openReads()+e.weak.blocked+len(e.weak.choices) > 0:
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
		v := e.ev.weakViolation(e.weak.Path, found[0], verdict.CC)
		if e.ev.vouch(&v); e.out.unprovable(&v) {
			r.Outcome = verdict.Unknown
			return
		}
		r.Outcome = verdict.Violated
		r.Violations = append(r.Violations, v)
	}
}

// ruleOut notes that an uncertain transaction can't have taken effect at base and
// the levels that imply it.
func (w *weakChecks) ruleOut(index ordinal, base verdict.Level) {
	if was, ok := w.ruledOut[index]; !ok || was.Implies(base) {
		w.ruledOut[index] = base
	}
}

// enterWeak gives a transaction to the checker, under its slot.
func (w *weakChecks) enter(t *txn, index ordinal) {
	w.keys = w.keys[:0]
	for _, c := range w.h.external(index) {
		w.keys = append(w.keys, w.h.cells.At(c).key)
	}
	n := len(w.keys)
	for _, c := range w.h.slab(t.writes) {
		if k := w.h.cells.At(c).key; len(w.keys) == n || w.keys[len(w.keys)-1] != k {
			w.keys = append(w.keys, k)
		}
	}
	prev := version.Slot(none)
	if t.prev != none {
		prev = w.h.txns.At(t.prev).slot
	}
	slot := w.Add(uint32(t.session), prev, t.open || t.base, w.keys[:n], w.keys[n:])
	if t.doubt != uncertain {
		w.h.eachAppended(t, func(k version.Key) { w.Appended(k, slot) })
	}
}

// readWeak tells the checker of a resolved read.
func (w *weakChecks) read(index ordinal, c cellID, from version.Slot) {
	if w == nil { // and no polygraph either
		return
	}
	slot := w.h.txns.At(index).slot
	for i, r := range w.h.external(index) {
		if r == c {
			w.Read(slot, i, from)
		}
	}
}

// showWeak tells the checker of the transactions whose elements a list shows,
// but for the last, which readWeak has told of.
func (w *weakChecks) show(index ordinal, c cellID, l *list) {
	slot := w.h.txns.At(index).slot
	from := w.h.shownBy(l)
	for i, r := range w.h.external(index) {
		for n := 0; r == c && n < len(from)-1; n++ {
			w.Shows(slot, i, from[n])
		}
	}
}

// tickWeak works off what came since the last call.
func (w *weakChecks) tick(last bool) {
	if w == nil || last && w.stop.halted() {
		return
	}
	w.Take = func(steps int) bool {
		on := w.budget.Certain(steps)
		w.gaveUp = w.gaveUp || !on
		return on
	}
	found := w.Tick(last && !w.opt.Online)
	held := w.Bytes()
	w.budget.Hold(held - w.held)
	w.held = held
	for _, v := range found {
		c := w.check(v.Level)
		if c == nil { // a cycle of the base, and g1 was not asked for
			c = w.levels[0]
		}
		if w.opt.MaxViolations == 0 || len(c.found) < w.opt.MaxViolations || w.opt.Online {
			w.out.tellWeak(c, w.ev.weakViolation(w.Path, v, c.level))
		}
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

// commitOrder is the order that satisfies a level.
func (w *weakChecks) commitOrder(c *weakCheck) []verdict.Event {
	order := c.order
	if order == nil {
		order = w.Order(c.name)
	}
	var out []verdict.Event
	for _, s := range order {
		if i := w.h.slotTx[s]; w.h.txns.At(i).doubt != uncertain || !c.excluded[i] {
			out = append(out, verdict.Event{Txn: w.h.txnOf(s), Commit: true})
		}
	}
	return out
}
