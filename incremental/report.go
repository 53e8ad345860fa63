package incremental

import (
	"slices"

	"github.com/isowatch/isowatch/incremental/constraint"
	"github.com/isowatch/isowatch/incremental/graph"
	"github.com/isowatch/isowatch/incremental/sat"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/incremental/version"
)

// collect turns what the polygraphs found into violations of the levels, after
// checking again what rests on times.
func (e *Engine) collect() {
	for before := -1; before != e.g.rereads; {
		before = e.g.rereads
		e.collectOnce()
	}
}

// collectOnce is collect, but for what polygraphs have found that are made meanwhile.
func (e *Engine) collectOnce() {
	var polys []*constraint.Polygraph
	for _, c := range e.g.checks {
		if !slices.Contains(polys, c.poly) {
			polys = append(polys, c.poly)
		}
	}
	for _, p := range polys {
		found := p.TakeFound()
		var users []*check
		for _, c := range e.g.checks {
			if c.poly == p {
				users = append(users, c)
			}
		}
		for i := range found {
			for _, c := range users {
				if c.poly == p {
					e.judge(c, &found[i])
				}
			}
		}
		for _, c := range users {
			c.partly = c.partly || c.poly == p && p.Unexplained > 0 // they may be of what the level does not forbid
		}
	}
}

// judge decides whether what the polygraph found breaks check c. What rests on times that are no part of the level only
// counts if exhibits break it without them; else it is refuted, and the whole history is read again without times.
func (e *Engine) judge(c *check, f *constraint.Violation) {
	if !e.out.applies(c.level) || e.opt.Bare && !e.opt.Online && e.out.broken(c.level, c.found) {
		return
	}
	if c == e.out.witness { // nobody wants to know why
		c.found = append(c.found, verdict.Violation{Kind: verdict.Cycle, Level: c.level})
		return
	}
	counts := c.timed || !f.Assumed // whatever proves it
	if counts && e.opt.Bare && !e.opt.Online {
		c.found = append(c.found, verdict.Violation{Kind: verdict.Cycle, Level: c.level})
		return
	}
	if counts && e.opt.Online && c.poly.Spent(2) && len(c.found) > 0 {
		c.poly.Unexplained++
		c.partly = true
		return
	}
	p := e.ev.confirm(c, f, counts)
	_, violated := e.out.sharedOf(c.level)
	switch {
	case !counts && !p.enough:
		c.notRealTime = true   // times alone say violated
		if e.h.first != none { // what it would be read again from is not all
			c.unproved++
		} else {
			e.retreat(c, f)
		}
	case violated && !p.enough:
		c.poly.Unexplained++ // it may follow only from what was read: a transaction took effect that can't have
	default:
		e.out.tell(c, e.ev.cited(c, p))
	}
}

// retreat reads the history again without what only times say of c: without the clocks of the sessions that f rests on,
// as a client whose clock stepped is no reason to go without all, or as the level is defined. From then on it goes
// without times.
func (e *Engine) retreat(c *check, f *constraint.Violation) {
	pruned := func(k *check) bool { return k.pruned }
	if f != nil && e.distrust(c, f) {
		e.g.again(true, pruned)
	} else {
		pruned = func(k *check) bool { return k == c }
		e.g.again(false, pruned)
	}
	for _, k := range e.g.checks {
		if pruned(k) && (e.opt.Online || !e.out.broken(k.level, k.found)) {
			e.decide.solve(k)
		}
	}
}

// distrust gives up, for as long as the engine lives, the clocks of the sessions that f rests on. It is false where
// that is of none, nearly all would have no times then, the history was read again too often, or a level has real time,
// for which times are no help but part of what is judged.
func (e *Engine) distrust(c *check, f *constraint.Violation) bool {
	if !e.opt.Online || e.g.rereads >= rereadsMax ||
		slices.ContainsFunc(e.g.checks, func(k *check) bool { return k.timed }) {
		return false
	}
	blamed := false
	for _, list := range slices.Concat([][]graph.Edge{f.Cycle, f.Rest}, f.Cases) {
		for _, ed := range list {
			for _, n := range [2]graph.Node{ed.From, ed.To} {
				if t := e.h.txns.At(e.h.slotTx[c.poly.Parts().Slot(n)]); ed.Type == verdict.RT && !t.base {
					e.h.last[t.session].distrusted, blamed = true, true
				}
			}
		}
	}
	if !blamed {
		return false
	}
	for i := range ordinal(e.h.txns.Len()) {
		if t := e.h.txns.At(i); t.timed && !t.base && e.h.last[t.session].distrusted {
			t.timed = false
			e.h.timed--
			if e.h.untimed++; int(i) < e.opt.Seeds {
				e.h.untimedSeeds++
			}
		}
	}
	return e.h.prunable()
}

// rereadsMax is how often the history is read again before no clock is distrusted any more.
const rereadsMax = 8

// doesWithout tells, at the end, whether the history satisfies c's level if
// those uncertain transactions did not take effect of which a read was not
// checked; then c is judged by that.
func (e *Engine) doesWithout(c *check) bool {
	if !e.h.closed {
		return false
	}
	s := e.g.copy(e.g.config(c, c.timed && !c.noTimes, true))
	for _, r := range e.r.doubtful {
		s.impossible(e.h.txns.At(r.index).slot)
	}
	s.finish(false)
	p := s.polys[0]
	if p.Found > 0 || p.Solve(e.opt.Conflicts) != sat.Sat || p.Found > 0 {
		return false
	}
	c.poly, c.strand, c.notRealTime = p, s, false
	return true
}

// result is the verdict on one level.
func (e *Engine) result(c *check) verdict.Result {
	if c.single && e.h.several {
		return verdict.Result{Level: c.level, Outcome: verdict.NotApplicable}
	}
	r := verdict.Result{Level: c.level, NoTimes: c.timed && e.h.timed == 0, Stats: c.poly.Stats,
		Unexplained: c.poly.Unexplained,
		Partial:     e.h.someUnseen()}
	if c.timed {
		r.Disbelieved = e.h.disbelieved
	}
	if most := c.poly.MaxFound; !e.opt.Online && most > 0 {
		r.Unexplained += max(0, c.poly.Found-most)
	}
	shared, violated := e.out.sharedOf(c.level)
	r.Violations = append(shared, c.found...)
	if violated || len(c.found) > 0 {
		r.Outcome = verdict.Violated
	}
	if r.Outcome != verdict.Violated || e.opt.Online {
		e.left(c, &r)
	}
	switch {
	case r.Outcome == verdict.Violated:
	case r.Reason != verdict.NoReason:
		r.Outcome = verdict.Unknown
	default:
		r.Outcome, r.ProvedBy, r.RealTimeOnly = verdict.Satisfied, c.level, c.notRealTime
		if e.opt.Proof && !e.opt.Online {
			r.Order = c.poly.Order()
			for i := range r.Order {
				r.Order[i].Txn = e.h.txnOf(version.Slot(r.Order[i].Txn))
			}
		}
	}
	return r
}

// openReads is how many operations and reads are not decided, and findings that rest on such.
func (e *Engine) openReads() int { return e.h.skipped + e.r.blocked + e.out.blocked + len(e.r.atClose) }

// left says in r why something is left open of c's level, if anything is, and how much.
func (e *Engine) left(c *check, r *verdict.Result) {
	notChecked := e.openReads() + len(e.h.suspects)
	if c.partly {
		notChecked++
	}
	switch {
	case e.stop.reason != verdict.NoReason:
		r.Reason, r.Count, r.Decided = e.stop.reason, c.poly.Undecided(), c.poly.Decided()
	case c.budget || e.opt.Online && c.poly.GaveUp():
		r.Reason, r.Count, r.Decided = verdict.Conflicts, c.poly.Undecided(), c.poly.Decided()
	case c.unproved > 0:
		r.Reason, r.Count = verdict.Forgotten, c.unproved
	case notChecked > 0 && (r.Outcome == verdict.Violated || notChecked != len(e.r.doubtful) || !e.doesWithout(c)):
		r.Reason, r.Count, r.Pending = verdict.NotChecked, notChecked, e.h.pending(e.r.atClose, e.r.doubtful)
		r.Decided = 1 - min(1, float64(notChecked)/float64(max(1, e.h.total)))
	}
}
