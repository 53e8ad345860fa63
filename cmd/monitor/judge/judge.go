// Package judge runs the engine over a whole history that is in memory: what
// `monitor check` does with a file, and what alerts do with their evidence to be
// sure that it proves what they say.
package judge

import (
	"errors"
	"fmt"
	"slices"

	"github.com/isowatch/isowatch/alerts/name"
	"github.com/isowatch/isowatch/incremental"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
)

// Levels applies the clock to what is asked: under enforce and database, si is read as
// strong-si and ser as sser. A level that holds real time can't be asked with a
// clock that is ignored, and by the database's clock the order of commits (ser) says nothing of that of starts (si):
// one of them can be asked.
func Levels(ask []verdict.Level, clock record.Clock) ([]verdict.Level, error) {
	for _, l := range ask {
		if beyond(l, clock) {
			return nil, fmt.Errorf("level %s holds real time, which the clock setting ignore takes away", l)
		}
	}
	levels := Read(ask, clock)
	if clock == record.ClockDatabase && verdict.MixOrders(levels) {
		return nil, errors.New("by the database's clock si is held to its starts and commits, and ser to its commits: ask " +
			"for one of them")
	}
	return levels, nil
}

// AllLevels are all levels, as the clock has them read. Those that hold real time are
// among them also where clocks are ignored: Check reports that they do not apply. By the database's clock ser is not
// among them.
func AllLevels(clock record.Clock) []verdict.Level {
	all := verdict.Levels()
	if clock == record.ClockDatabase { // see Levels
		all = slices.DeleteFunc(all, verdict.Level.OrdersCommits)
	}
	return Read(all, clock)
}

// Read is what the levels asked mean under a clock, each once.
func Read(ask []verdict.Level, clock record.Clock) []verdict.Level {
	var out []verdict.Level
	for _, l := range ask {
		if l = name.Effective(l, clock); !slices.Contains(out, l) {
			out = append(out, l)
		}
	}
	return out
}

// beyond tells whether a level holds real time while clocks are ignored.
func beyond(l verdict.Level, clock record.Clock) bool {
	return clock == record.ClockIgnore && l.RealTime()
}

// bare is what small says, with one anomaly and no description of it. Times that are no part of the level change
// no verdict, and of a few transactions they cost more than they save.
func bare(level verdict.Level, h record.Header, txns []record.Transaction, extra incremental.Options) verdict.Result {
	if h.Clock != nil && *h.Clock == record.ClockPrune && !level.RealTime() && len(txns) <= untimedMax {
		h.Clock = new(record.ClockIgnore)
	}
	extra.MaxViolations, extra.Bare = 1, true
	return small(level, h, txns, extra)
}

// untimedMax bounds the transactions that are judged without times where these decide
// nothing.
const untimedMax = 1024

// Prover judges what alerts take for their evidence, within a budget of counted steps: of an anomaly
// that is hard to prove there is a proof first, and as much smaller a one as the budget allows. It is an alerts.Budget.
type Prover struct {
	stop  func() verdict.Reason
	steps int // that it has once something was found violated
	taken int
	end   int // of taken; 0 until something was found violated
	most  int // steps of one judgement
	used  int // by the one at hand
	asks  int // of the engine at hand
	cut   bool
}

// NewProver is a prover that ends early as soon as stop gives a reason, which may be nil: what it says then is
// good for nothing. Once it has found something violated it has so many steps left; 0 means ProofSteps.
func NewProver(stop func() verdict.Reason, steps int) *Prover {
	if steps == 0 {
		steps = ProofSteps
	}
	return &Prover{stop: stop, steps: steps, most: judgeLeast}
}

// ProofSteps is what making one proof small may cost as a rule, in steps of about a microsecond: one for each
// transaction that is judged, and askSteps each time that an engine asks whether to stop, as it does after so
// much work; but asksFree times it asks whatever it does.
const ProofSteps = 200_000

// KindSteps is what making the proofs of many anomalies small may cost together: of those of a level in a whole
// history, or of a kind in a segment of a stream.
const KindSteps = 2 * ProofSteps

// A judgement has judgeLeast steps at first, and four times as many after each that was too short, until something is
// proved, up to judgeMost. One that asks whether less proves the same has twice as many as the proof took, and no less
// than at first: fewer records are no harder as a rule.
const (
	judgeLeast = 20_000
	judgeMost  = judgeLeast << 6
	askSteps   = 40
	asksFree   = 8
)

// Cut tells whether anything was not judged, or not to the end, as the budget was spent or the prover stopped.
func (p *Prover) Cut() bool { return p.cut }

// All is how many steps were taken.
func (p *Prover) All() int { return p.taken }

// Over tells whether the budget is spent, or something is proved and it is to stop.
func (p *Prover) Over() bool {
	over := p.end > 0 && (p.taken >= p.end || p.stop != nil && p.stop() != verdict.NoReason)
	p.cut = p.cut || over
	return over
}

// Judge judges a few records at one level, as `monitor check` would when it reads them with that header in front,
// within the budget; beyond it all is unknown.
func (p *Prover) Judge(level verdict.Level, h record.Header, txns []record.Transaction) verdict.Outcome {
	if p.Over() {
		return verdict.Unknown
	}
	r := bare(level, h, txns, p.limits(len(txns)))
	p.taken += len(txns)
	switch {
	case r.Outcome == verdict.Violated && p.end == 0:
		p.end, p.most = p.taken+p.steps, max(judgeLeast, 2*p.used)
	case r.Outcome == verdict.Violated:
		p.most = max(p.most, 2*p.used)
	case r.Outcome == verdict.Unknown && p.end == 0:
		p.most = min(4*p.most, judgeMost)
	}
	return r.Outcome
}

// Find is what Judge finds, of which the first would be told.
func (p *Prover) Find(level verdict.Level, h record.Header, txns []record.Transaction) []verdict.Violation {
	if p.Over() {
		return nil
	}
	o := p.limits(len(txns))
	o.MaxViolations = foundMax
	r := small(level, h, txns, o)
	p.taken += len(txns)
	return r.Violations
}

// limits begins a judgement of so many transactions.
func (p *Prover) limits(txns int) incremental.Options {
	p.asks, p.used = 0, txns
	return incremental.Options{Stop: p.ask}
}

// ask is what an engine asks in the midst of its work.
func (p *Prover) ask() verdict.Reason {
	if p.asks++; p.asks > asksFree {
		p.used, p.taken = p.used+askSteps, p.taken+askSteps
	}
	why := verdict.NoReason
	if p.stop != nil {
		why = p.stop()
	}
	if why == verdict.NoReason && (p.used > p.most || p.Over()) {
		why = verdict.Conflicts
	}
	p.cut = p.cut || why != verdict.NoReason && p.end > 0
	return why
}

// foundMax bounds the anomalies that are looked for in the evidence of one.
const foundMax = 8

// small judges a few records at one level, within the limits of extra beside what the header says. With
// its Stop it ends early: what is then not known to be violated is unknown.
func small(level verdict.Level, h record.Header, txns []record.Transaction, extra incremental.Options) verdict.Result {
	a := record.Assumptions{}.Override(h)
	levels, err := Levels([]verdict.Level{level}, a.Clock)
	if err != nil {
		return verdict.Result{Level: level, Outcome: verdict.NotApplicable}
	}
	extra.Levels, extra.Assumptions = levels, a
	e := incremental.New(extra)
	for i := range txns {
		if stop := extra.Stop; stop != nil && i%stopEvery == 0 && stop() != verdict.NoReason {
			return verdict.Result{Level: level, Outcome: verdict.Unknown}
		}
		e.Step(&txns[i], 0)
	}
	for _, r := range e.Close() {
		return r
	}
	return verdict.Result{Level: level, Outcome: verdict.Unknown}
}
