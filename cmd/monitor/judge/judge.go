// Package judge runs the engine over a whole history that is in memory: what
// `monitor check` does with a file, and what alerts do with their evidence to be
// sure that it proves what they say.
package judge

import (
	"fmt"
	"math"
	"slices"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/alerts/shrink"
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
	return a
}

// Header states every assumption.
func (a Assumptions) Header() record.Header {
	return record.Header{Initial: &a.Initial, Sessions: &a.Sessions, Clock: &a.Clock, Coverage: &a.Coverage, MaxSkew: &a.MaxSkew}
}

// Levels applies the clock to what is asked: under enforce, si is read as
// strong-si and ser as sser. A level that holds real time can't be asked with a
// clock that is ignored.
func Levels(ask []verdict.Level, clock record.Clock) ([]verdict.Level, error) {
	for _, l := range ask {
		if (Assumptions{Clock: clock}).beyond(l) {
			return nil, fmt.Errorf("level %s holds real time, which the clock setting ignore takes away", l)
		}
	}
	return read(ask, clock), nil
}

// AllLevels are all levels, as the clock has them read. Those that hold real time are
// among them also where clocks are ignored: Check reports that they do not apply.
func AllLevels(clock record.Clock) []verdict.Level { return read(verdict.Levels(), clock) }

// read is what the levels asked mean under a clock, each once.
func read(ask []verdict.Level, clock record.Clock) []verdict.Level {
	var out []verdict.Level
	for _, l := range ask {
		switch {
		case clock == record.ClockEnforce && l == verdict.SI:
			l = verdict.StrongSI
		case clock == record.ClockEnforce && l == verdict.SER:
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
		UnseenUnique:  true, // what partial coverage means for a file; docs/soundness.md
	}
}

// Evidence judges a few records at one level, as `monitor check` would when it
// reads them with that header in front.
func Evidence(level verdict.Level, h record.Header, txns []record.Transaction) verdict.Outcome {
	return bare(level, h, txns, nil)
}

// bare is the outcome that small has, with one anomaly and no description of it. Times that are no part of the level change
// no verdict, and of a few transactions they cost more than they save.
func bare(level verdict.Level, h record.Header, txns []record.Transaction, stop func() verdict.Reason) verdict.Outcome {
	if h.Clock != nil && *h.Clock == record.ClockPrune && !realTime(level) && len(txns) <= untimedMax {
		ignore := record.ClockIgnore
		h.Clock = &ignore
	}
	return small(level, h, txns, incremental.Options{MaxViolations: 1, Bare: true, Stop: stop}).Outcome
}

// untimedMax bounds the transactions that are judged without times where these decide
// nothing.
const untimedMax = 256

// Found is what Evidence finds, of which the first would be told.
func Found(level verdict.Level, h record.Header, txns []record.Transaction) []verdict.Violation {
	return found(level, h, txns, nil)
}

// found is Found with stop, see small.
func found(level verdict.Level, h record.Header, txns []record.Transaction, stop func() verdict.Reason) []verdict.Violation {
	return small(level, h, txns, incremental.Options{MaxViolations: foundMax, Stop: stop}).Violations
}

// Until is Evidence and Found that end early as soon as stop gives a reason: what they say
// then is good for nothing. nil: never.
func Until(stop func() verdict.Reason) (shrink.Judge, alerts.Finder) {
	return func(level verdict.Level, h record.Header, txns []record.Transaction) verdict.Outcome {
			return bare(level, h, txns, stop)
		}, func(level verdict.Level, h record.Header, txns []record.Transaction) []verdict.Violation {
			return found(level, h, txns, stop)
		}
}

// foundMax bounds the anomalies that are looked for in the evidence of one.
const foundMax = 8

// small judges a few records at one level, as extra says beside what the header does. With
// its Stop it ends early: what is then not known to be violated is unknown.
func small(level verdict.Level, h record.Header, txns []record.Transaction, extra incremental.Options) verdict.Result {
	a := Assumptions{}.Override(h)
	levels, err := Levels([]verdict.Level{level}, a.Clock)
	if err != nil {
		return verdict.Result{Level: level, Outcome: verdict.NotApplicable}
	}
	stop := extra.Stop
	o := a.Options(levels, extra.MaxViolations, 0)
	o.Stop, o.Bare = stop, extra.Bare
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
