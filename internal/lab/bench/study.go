package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/isowatch/isowatch/incremental"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/history"
)

// Study judges one history by several variants of the engine, in this process.
type Study struct {
	Name     string
	Work     string
	Level    verdict.Level
	Spec     Spec
	Variants []Variant
}

// Variant is the engine with some of it switched off.
type Variant struct {
	Name string
	Set  func(*incremental.Options)
	// Peer is what a paper counts for the same variant of its own.
	Peer Peer
}

// Ablation is what one variant of a study did. The order of the fields is part of
// the format.
type Ablation struct {
	Study   string  `json:"study"`
	Work    string  `json:"work"`
	Level   string  `json:"level"`
	Variant string  `json:"variant"`
	Verdict string  `json:"verdict"`
	Why     string  `json:"why,omitempty"` // if it is unknown, or was not measured
	Seconds float64 `json:"seconds"`       // the median; decoding excluded
	verdict.Stats
	Peer Peer `json:"peer"`
}

// measure runs every variant on the same decoded history.
func (s *Study) measure(ctx context.Context, e *Env) []Ablation {
	failed := func(err error) []Ablation {
		return []Ablation{{Study: s.Name, Work: s.Work, Level: s.Level.String(), Why: err.Error()}}
	}
	file, err := e.Generated(ctx, s.Spec)
	if err != nil {
		return failed(err)
	}
	hs, err := history.Open(file, history.Options{})
	if err != nil {
		return failed(err)
	}
	var out []Ablation
	for _, v := range s.Variants {
		if err := ctx.Err(); err != nil {
			return append(out, failed(context.Cause(ctx))...)
		}
		e.opt.Progress(fmt.Sprintf("study %s, %s", s.Name, v.Name))
		out = append(out, s.variant(ctx, e, v, &hs[0]))
	}
	return out
}

// variant runs one variant as often as was asked for.
func (s *Study) variant(ctx context.Context, e *Env, v Variant, h *history.History) Ablation {
	a := Ablation{Study: s.Name, Work: s.Work, Level: s.Level.String(), Variant: v.Name, Peer: v.Peer}
	var seconds []float64
	for range e.opt.Runs {
		began := time.Now()
		o := incremental.Options{Levels: []verdict.Level{s.Level}, MaxViolations: 1, Conflicts: studyConflicts,
			Stop: func() verdict.Reason {
				if ctx.Err() != nil || time.Since(began) > e.opt.Timeout {
					return verdict.Timeout
				}
				return verdict.NoReason
			}}
		if v.Set != nil {
			v.Set(&o)
		}
		engine := incremental.New(o)
		for i := range h.Transactions {
			engine.Step(&h.Transactions[i], 0)
		}
		r := engine.Close()[0]
		seconds = append(seconds, time.Since(began).Seconds())
		a.Verdict, a.Stats = r.Outcome.String(), r.Stats
		if r.Outcome == verdict.Unknown {
			a.Why = r.Reason.String()
			break
		}
	}
	a.Seconds = median(seconds)
	return a
}

// studyConflicts is the budget of a variant: time is what ends it.
const studyConflicts = 1 << 30
