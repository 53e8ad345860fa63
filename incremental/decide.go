package incremental

import (
	"github.com/isowatch/isowatch/incremental/budget"
	"github.com/isowatch/isowatch/incremental/sat"
)

// decider says when levels are solved, and solves them: what is open is decided, or found to be a violation, which the
// polygraph keeps until it is taken.
type decider struct {
	opt    *Options
	h      *history
	budget *budget.Budget
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

func (d *decider) solve(c *check) {
	used := d.budget.Used()
	defer func() {
		c.cost = int(d.budget.Used() - used)
		c.left, c.passed, c.next, c.searched = false, 0, 0, ordinal(d.h.txns.Len())
		if wait := c.poly.Repeated() * d.opt.Spacing / 1024; wait >= spacedLeast {
			c.next = len(d.h.slotTx) + wait
		}
	}()
	for c.budget = false; ; {
		switch c.poly.Solve(d.opt.Conflicts) {
		case sat.Sat:
			return
		case sat.Budget:
			c.budget = true
			return
		case sat.Unsat: // reported and given up; the rest may still be open
			if !d.opt.Online {
				return
			}
		}
	}
}

// andRest is solve, after which a level that met its budget goes some Ticks without.
func (d *decider) andRest(c *check) {
	d.solve(c)
	c.rests = min(2*c.rests, restsMax)
	switch {
	case !c.budget:
		c.rests = 0
	case c.rests == 0:
		c.rests = 1
	}
	c.rest = c.rests
}

// inTurn is solve at a Tick: what is too hard is left alone for a while, the
// longer the more often it was met, so that a stream is not held up by it; and what is much
// until more has come.
func (d *decider) inTurn(c *check) {
	switch {
	case c.rest > 0:
		c.rest--
	case len(d.h.slotTx) < c.next && c.passed < spacedTicks-1:
		c.passed++
	default:
		d.andRest(c)
		return
	}
	c.left = true
}

// early solves, between Ticks, what is open where that has become much, also beside what the
// last search cost. It costs little more in parts than all at once at the next Tick, and takes
// less memory. What it finds is told then.
func (d *decider) early(checks []*check) {
	for _, c := range checks {
		if c.rest == 0 && c.poly.Unsettled() >= max(d.opt.SolveAt, c.cost/stepsForNew) && !c.poly.Budget.Ended() {
			d.andRest(c)
		}
	}
}

// stepsForNew is how many steps of a search a pair is worth that has come since.
const stepsForNew = 8

// left solves what Ticks have left to later ones, but for what has met its budget so often that it goes without more
// than some Ticks, and tells whether it solved anything.
func (d *decider) left(checks []*check, rests int) (any bool) {
	for _, c := range checks {
		if c.left && (c.rest == 0 || c.rests <= rests) {
			d.andRest(c)
			any = true
		}
	}
	return any
}
