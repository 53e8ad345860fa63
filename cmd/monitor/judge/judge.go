// Package judge runs the engine over a whole history that is in memory: what
// `monitor check` does with a file, and what alerts do with their evidence to be
// sure that it proves what they say.
package judge

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/isowatch/isowatch/incremental"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
)

// Assumptions are all that a judgement depends on beside the records.
type Assumptions struct {
	Initial  record.Initial
	Sessions record.Sessions
	Clock    record.Clock
	Coverage record.Coverage
	MaxSkew  int64 // nanoseconds
	// Lossy: coverage is partial because records are known to be missing, and any of them may
	// be that of a second attempt.
	Lossy bool
	// UniqueValues: with partial coverage, nobody unseen wrote a value that a recorded
	// transaction wrote to the same key. Where nothing is said, that is believed unless the history
	// shows that values repeat.
	UniqueValues *bool
}

// Override replaces what the header states.
func (a Assumptions) Override(h record.Header) Assumptions {
	if h.Initial != nil {
		a.Initial = *h.Initial
	}
	if h.Sessions != nil {
		a.Sessions = *h.Sessions
	}
	if h.Clock != nil {
		a.Clock = *h.Clock
	}
	if h.Coverage != nil {
		a.Coverage = *h.Coverage
	}
	if h.MaxSkew != nil {
		a.MaxSkew = *h.MaxSkew
	}
	if h.UniqueValues != nil {
		a.UniqueValues = h.UniqueValues
	}
	return a
}

// Header states every assumption.
func (a Assumptions) Header() record.Header {
	return record.Header{Initial: &a.Initial, Sessions: &a.Sessions, Clock: &a.Clock, Coverage: &a.Coverage, MaxSkew: &a.MaxSkew, UniqueValues: a.UniqueValues}
}

// Levels applies the clock to what is asked: under enforce and database, si is read as
// strong-si and ser as sser. A level that holds real time can't be asked with a
// clock that is ignored, and by the database's clock the order of commits (ser) says nothing of that of starts (si):
// one of them can be asked.
func Levels(ask []verdict.Level, clock record.Clock) ([]verdict.Level, error) {
	for _, l := range ask {
		if (Assumptions{Clock: clock}).beyond(l) {
			return nil, fmt.Errorf("level %s holds real time, which the clock setting ignore takes away", l)
		}
	}
	levels := read(ask, clock)
	if clock == record.ClockDatabase && verdict.MixOrders(levels) {
		return nil, errors.New("by the database's clock si is held to its starts and commits, and ser to its commits: ask for one of them")
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
	return read(all, clock)
}

// read is what the levels asked mean under a clock, each once.
func read(ask []verdict.Level, clock record.Clock) []verdict.Level {
	var out []verdict.Level
	for _, l := range ask {
		switch {
		case clock.Enforces() && l == verdict.SI:
			l = verdict.StrongSI
		case clock.Enforces() && l == verdict.SER:
			l = verdict.SSER
		}
		if !slices.Contains(out, l) {
			out = append(out, l)
		}
	}
	return out
}

// beyond tells whether a level holds real time while clocks are ignored.
func (a Assumptions) beyond(l verdict.Level) bool {
	return a.Clock == record.ClockIgnore && realTime(l)
}

// realTime tells whether times are part of a level.
func realTime(l verdict.Level) bool {
	return l == verdict.StrongSI || l == verdict.SSER || l == verdict.LIN
}

// Options are the engine's options for a whole history.
func (a Assumptions) Options(levels []verdict.Level, anomaliesMax, conflicts int) incremental.Options {
	var lost incremental.Losses
	if a.Lossy {
		lost = incremental.Losses{{From: math.MinInt64, To: math.MaxInt64}} // it is not known when
	}
	return incremental.Options{
		Lost:          lost,
		Levels:        levels,
		Initial:       a.Initial,
		Coverage:      a.Coverage,
		Clock:         a.Clock,
		Sessions:      a.Sessions,
		MaxSkew:       a.MaxSkew,
		Conflicts:     conflicts,
		MaxViolations: anomaliesMax,
		UnseenUnique:  a.UniqueValues == nil || *a.UniqueValues,
		UnseenAsSeen:  a.UniqueValues == nil,
	}
}

// Evidence judges a few records at one level, as `monitor check` would when it
// reads them with that header in front.
func Evidence(level verdict.Level, h record.Header, txns []record.Transaction) verdict.Outcome {
	return bare(level, h, txns, incremental.Options{}).Outcome
}

// bare is what small says, with one anomaly and no description of it. Times that are no part of the level change
// no verdict, and of a few transactions they cost more than they save.
func bare(level verdict.Level, h record.Header, txns []record.Transaction, extra incremental.Options) verdict.Result {
	if h.Clock != nil && *h.Clock == record.ClockPrune && !realTime(level) && len(txns) <= untimedMax {
		ignore := record.ClockIgnore
		h.Clock = &ignore
	}
	extra.MaxViolations, extra.Bare = 1, true
	return small(level, h, txns, extra)
}

// untimedMax bounds the transactions that are judged without times where these decide
// nothing.
const untimedMax = 1024

// Found is what Evidence finds, of which the first would be told.
func Found(level verdict.Level, h record.Header, txns []record.Transaction) []verdict.Violation {
	return small(level, h, txns, incremental.Options{MaxViolations: foundMax}).Violations
}

// Prover judges what alerts take for their evidence, within a budget of counted steps: of an anomaly
// that is hard to prove there is a proof first, and as much smaller a one as the budget allows.
type Prover struct {
	stop  func() verdict.Reason
	steps int // that it has
	spent int // since something was proved
	first int // until then
	limit int // conflicts of one search
	tries int // ChoiceWork of one
	asks  int // of the engine at hand
	// proved: something was found violated. Until then the budget does not count.
	proved bool
	cut    bool
}

// NewProver is a prover that ends early as soon as stop gives a reason, which may be nil: what it says then is
// good for nothing. Once it has found something violated it has so many steps left; 0 means ProofSteps.
func NewProver(stop func() verdict.Reason, steps int) *Prover {
	if steps == 0 {
		steps = ProofSteps
	}
	return &Prover{stop: stop, steps: steps, limit: searchLeast, tries: triesLeast}
}

// ProofSteps is what making one proof small may cost as a rule, in steps of about a microsecond: one for each
// transaction that is judged, and askSteps each time that an engine asks whether to stop, as it does after so
// much work; but asksFree times it asks whatever it does.
const ProofSteps = 400_000

// A search for a proof begins with searchLeast conflicts, and gets twice as many after each that was
// too short, up to searchMost. One that asks whether less proves the same gets no more than a little more than
// what the proof took: fewer records are no harder as a rule.
const (
	searchLeast = 250
	searchMost  = 4000
	askSteps    = 40
	asksFree    = 8
	// So much work begins the search for writers at a weak level; four times as much has each after one that was too
	// short, until something is proved, up to triesMost.
	triesLeast = 200_000
	triesMost  = triesLeast << 6
)

// Cut tells whether anything was not judged, or not to the end, as the budget was spent.
func (p *Prover) Cut() bool { return p.cut }

// Spent is how many steps were taken to make a proof small.
func (p *Prover) Spent() int { return p.spent }

// All is how many were taken, with those for the first proof.
func (p *Prover) All() int { return p.first + p.spent }

// Judge is Evidence within the budget; beyond it all is unknown.
func (p *Prover) Judge(level verdict.Level, h record.Header, txns []record.Transaction) verdict.Outcome {
	if p.over() {
		return verdict.Unknown
	}
	r := bare(level, h, txns, p.limits())
	p.spend(len(txns))
	switch {
	case r.Outcome == verdict.Violated:
		if !p.proved {
			p.proved, p.limit = true, searchLeast
		}
		p.limit = max(p.limit, min(2*r.Stats.Conflicts, searchMost))
	case r.Outcome == verdict.Unknown && p.proved:
		p.cut = true
	case r.Outcome == verdict.Unknown:
		p.limit, p.tries = min(2*p.limit, searchMost), min(4*p.tries, triesMost)
	}
	return r.Outcome
}

// Find is Found within the budget.
func (p *Prover) Find(level verdict.Level, h record.Header, txns []record.Transaction) []verdict.Violation {
	if p.over() {
		return nil
	}
	o := p.limits()
	o.MaxViolations = foundMax
	r := small(level, h, txns, o)
	p.spend(len(txns))
	return r.Violations
}

func (p *Prover) limits() incremental.Options {
	p.asks = 0
	return incremental.Options{Stop: p.ask, Conflicts: p.limit, ChoiceWork: p.tries}
}

// ask is what an engine asks in the midst of its work.
func (p *Prover) ask() verdict.Reason {
	if p.asks++; p.asks > asksFree {
		p.spend(askSteps)
	}
	switch {
	case p.over():
		return verdict.Conflicts
	case p.stop != nil:
		return p.stop()
	}
	return verdict.NoReason
}

// over tells whether the budget is spent.
func (p *Prover) over() bool {
	spent := p.proved && p.spent >= p.steps
	p.cut = p.cut || spent
	return spent
}

func (p *Prover) spend(n int) {
	if p.proved {
		p.spent += n
	} else {
		p.first += n
	}
}

// foundMax bounds the anomalies that are looked for in the evidence of one.
const foundMax = 8

// small judges a few records at one level, within the limits of extra beside what the header says. With
// its Stop it ends early: what is then not known to be violated is unknown.
func small(level verdict.Level, h record.Header, txns []record.Transaction, extra incremental.Options) verdict.Result {
	a := Assumptions{}.Override(h)
	levels, err := Levels([]verdict.Level{level}, a.Clock)
	if err != nil {
		return verdict.Result{Level: level, Outcome: verdict.NotApplicable}
	}
	stop := extra.Stop
	o := a.Options(levels, extra.MaxViolations, extra.Conflicts)
	o.Stop, o.Bare, o.ChoiceWork = stop, extra.Bare, extra.ChoiceWork
	e := incremental.New(o)
	for i := range txns {
		if stop != nil && i%stopEvery == 0 && stop() != verdict.NoReason {
			return verdict.Result{Level: level, Outcome: verdict.Unknown}
		}
		e.Step(&txns[i], 0)
	}
	for _, r := range e.Close() {
		return r
	}
	return verdict.Result{Level: level, Outcome: verdict.Unknown}
}
