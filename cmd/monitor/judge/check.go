package judge

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/alerts/name"
	"github.com/isowatch/isowatch/alerts/present"
	"github.com/isowatch/isowatch/cmd/monitor/limit"
	"github.com/isowatch/isowatch/cmd/monitor/report"
	"github.com/isowatch/isowatch/incremental"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
)

// Question is a history and what is asked of it.
type Question struct {
	DB      string
	Txns    []record.Transaction // each session's in session order
	Levels  []verdict.Level      // as Levels gave them
	Assume  Assumptions
	Decoded time.Duration // spent on decoding, for the report

	AnomaliesMax int // reported with evidence per level; 0: all
	Conflicts    int // the solver's budget; 0: the default
	// Replay checks the proof of every satisfied verdict; one that fails is an
	// error of Check.
	Replay bool
	// Proved gets every satisfied verdict with the order that proves it; may be
	// nil. What it answers is an error of Check.
	Proved func(verdict.Result) error
	// Stop is asked often while it works; another answer than NoReason ends the
	// work, and what is undecided then is unknown for that reason. It must be
	// cheap, and go on answering the same. May be nil.
	Stop func() verdict.Reason
	// Phase is told what is being done; may be nil.
	Phase func(string)
	// Known is told what is known so far, whenever that is more: of use to who
	// can't wait until Check returns. May be nil.
	Known func(report.History)

	proved []verdict.Result // what Proved was given
}

// stopEvery is how many transactions an engine takes between two looks at Stop.
const stopEvery = 1 << 10

// Check judges a history at each level and fills in h, which has its names
// already. An error means that a proof did not hold, which is a bug in the monitor,
// or is one of Proved.
//
// Each level has an engine of its own: levels share little, and so their times and
// their memory are their own.
func Check(q Question, h *report.History) error {
	q.fillIn()
	count(q.Txns, h)
	var notes []string
	assume, missing := q.Assume.Of(q.Txns)
	if assume != q.Assume {
		notes = append(notes, fmt.Sprintf("coverage was partial: by their sessions' seq, %d transactions are missing", missing))
	}
	q.Assume = assume
	h.Results = make([]report.Result, 0, len(q.Levels))
	tell := func(more ...report.Result) {
		known := *h
		known.Results = append(slices.Clone(h.Results), more...)
		q.Known(known)
	}
	tell()
	for _, l := range q.Levels {
		r, err := q.level(l, func(r report.Result) {
			r.Notes = append(slices.Clone(r.Notes), notes...)
			tell(r)
		})
		if err != nil {
			return err
		}
		r.Notes = append(r.Notes, notes...)
		h.Results = append(h.Results, r)
		tell()
	}
	h.Infer()
	h.Conclude()
	return q.proveInferred(h)
}

func (q *Question) fillIn() {
	if q.Phase == nil {
		q.Phase = func(string) {}
	}
	if q.Stop == nil {
		q.Stop = func() verdict.Reason { return verdict.NoReason }
	}
	if q.Known == nil {
		q.Known = func(report.History) {}
	}
}

// GiveUp completes the report on a history whose work was ended from outside: what
// is not decided yet is unknown.
func GiveUp(h *report.History, levels []verdict.Level, why verdict.Reason) {
	for _, l := range levels {
		decided := func(r report.Result) bool { return r.Level == l.String() }
		if !slices.ContainsFunc(h.Results, decided) {
			h.Results = append(h.Results, undecided(l, why, h.Transactions))
		}
	}
	h.Infer()
	h.Conclude()
}

// undecided is the report on a level of which nothing is known.
func undecided(l verdict.Level, why verdict.Reason, transactions int) report.Result {
	return report.Result{Level: l.String(), Verdict: verdict.Unknown.String(), Anomalies: []report.Anomaly{},
		Unknown: &report.Unknown{Reason: why.String(), Count: transactions}}
}

// level judges one level. violated is told that it is, before what explains it is
// worked out.
func (q *Question) level(l verdict.Level, violated func(report.Result)) (report.Result, error) {
	phases := report.Phases{Decode: q.Decoded.Seconds()}
	q.Phase("judging " + l.String())
	began := time.Now()
	o := q.Assume.Options([]verdict.Level{l}, q.AnomaliesMax, q.Conflicts)
	o.Proof = q.Replay || q.Proved != nil
	o.Stop = q.Stop
	e := incremental.New(o)
	for i := range q.Txns {
		if i%stopEvery == 0 {
			if why := q.Stop(); why != verdict.NoReason {
				// An engine that has not seen all writers must not be asked.
				r := undecided(l, why, len(q.Txns))
				r.Seconds = time.Since(began).Seconds()
				return r, nil
			}
		}
		e.Step(&q.Txns[i], 0)
	}
	phases.Construct = time.Since(began).Seconds()
	solving := time.Now()
	v := e.Close()[0]
	phases.Solve = time.Since(solving).Seconds()

	if v.Outcome == verdict.Violated {
		q.Phase("explaining what breaks " + l.String())
		violated(report.Result{Level: l.String(), Verdict: v.Outcome.String(), Seconds: time.Since(began).Seconds(), Anomalies: []report.Anomaly{},
			Notes: append(notes(v), fmt.Sprintf("%d anomalies are not shown: the limit was reached before they were explained", len(v.Violations)))})
	}
	explaining := time.Now()
	r := q.explained(v, lookup(q.Txns))
	phases.Explain = time.Since(explaining).Seconds()
	r.Seconds = time.Since(began).Seconds()
	r.Stats.PhaseSeconds = phases
	r.Stats.PeakBytes = limit.Peak()
	return r, q.prove(v)
}

// prove does what was asked with the proof of a satisfied verdict.
func (q *Question) prove(v verdict.Result) error {
	if v.Outcome != verdict.Satisfied {
		return nil
	}
	if q.Replay {
		q.Phase("replaying the proof of " + v.Level.String())
		if err := Replay(v, q.Assume, q.Txns); err != nil {
			return fmt.Errorf("level %s was found satisfied, but its proof does not hold: %w", v.Level, err)
		}
	}
	if q.Proved == nil {
		return nil
	}
	q.proved = append(q.proved, v)
	return q.Proved(v)
}

// proveInferred hands on the proofs of levels that are satisfied because others are.
func (q *Question) proveInferred(h *report.History) error {
	own := slices.Clone(q.proved)
	for i, l := range q.Levels {
		if h.Results[i].Verdict != verdict.Satisfied.String() || slices.ContainsFunc(own, func(v verdict.Result) bool { return v.Level == l }) {
			continue
		}
		for _, v := range own {
			if v.Level.Implies(l) {
				from := v.Level
				v.Level, v.Order = l, weaken(v.Order, from, l)
				if err := q.prove(v); err != nil {
					return err
				}
				break
			}
		}
	}
	return nil
}

// count fills in the size of the history.
func count(txns []record.Transaction, h *report.History) {
	sessions, keys := map[string]struct{}{}, map[string]struct{}{}
	h.Transactions, h.Operations = len(txns), 0
	for i := range txns {
		t := &txns[i]
		h.Operations += len(t.Ops)
		sessions[t.Session] = struct{}{}
		for j := range t.Ops {
			keys[t.Ops[j].Key] = struct{}{}
		}
	}
	h.Sessions, h.Keys = len(sessions), len(keys)
}

func lookup(txns []record.Transaction) name.Lookup {
	return func(id verdict.TxnID) (*record.Transaction, bool) {
		if int(id) >= len(txns) {
			return nil, false
		}
		return &txns[id], true
	}
}

// Result is the report on one level of the history db. Times are the caller's.
func Result(db string, v verdict.Result, a Assumptions, find name.Lookup) report.Result {
	q := Question{DB: db, Assume: a}
	q.fillIn()
	return q.explained(v, find)
}

// explained is the report on a level, with the anomalies made into alerts.
func (q *Question) explained(v verdict.Result, find name.Lookup) report.Result {
	r := report.Result{Level: v.Level.String(), Verdict: v.Outcome.String(), Anomalies: []report.Anomaly{}, Notes: notes(v)}
	r.Stats.Stats = v.Stats
	if v.Outcome == verdict.Unknown {
		r.Unknown = &report.Unknown{Reason: v.Reason.String(), Decided: v.Decided, Count: v.Count}
	}
	ctx := q.Assume.Context(q.DB, []verdict.Level{v.Level}, find)
	ctx.Judge = func(level verdict.Level, h record.Header, txns []record.Transaction) verdict.Outcome {
		return evidence(level, h, txns, q.Stop)
	}
	unproved, hurried := 0, 0
	for _, violation := range v.Violations {
		alert, err := alerts.New(violation, ctx)
		a := Anomaly(alert)
		switch {
		case err != nil && q.Stop() != verdict.NoReason:
			hurried++
			a.Level = v.Level.String() // a weaker one was not tried
		case err != nil:
			unproved++
		}
		r.Anomalies = append(r.Anomalies, a)
	}
	if unproved > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("the evidence of %d anomalies does not prove them by itself; please report this with the history", unproved))
	}
	if hurried > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("the evidence of %d anomalies was neither made small nor judged again, as the limit was reached", hurried))
	}
	if why := q.Stop(); why != verdict.NoReason && v.Outcome == verdict.Violated {
		r.Notes = append(r.Notes, "there may be more: the limit of "+why.String()+" was reached")
	}
	return r
}

// Context is what alerts are made in when the history is judged under these
// assumptions.
func (a Assumptions) Context(db string, levels []verdict.Level, find name.Lookup) alerts.Context {
	return alerts.Context{
		DB: db, Levels: levels,
		Initial: a.Initial, Coverage: a.Coverage, Clock: a.Clock, Sessions: a.Sessions, MaxSkew: a.MaxSkew,
		Lookup: find, Judge: Evidence,
	}
}

// Anomaly is an alert as reports show it.
func Anomaly(a alerts.Alert) report.Anomaly {
	out := report.Anomaly{Name: a.Name, Adya: a.Adya, Level: a.Level, Transactions: a.Transactions,
		Cycle: make([]report.Edge, len(a.Cycle)), Explanation: a.Summary + "\n" + a.Explanation, History: a.Evidence}
	for i, e := range a.Cycle {
		out.Cycle[i] = report.Edge{From: e.From, To: e.To, Type: e.Type, Key: e.Key}
	}
	out.Draw = func(w io.Writer, color bool) error { return present.Text(w, a, present.Options{Color: color}) }
	return out
}

// notes are what a reader should know beside the verdict.
func notes(v verdict.Result) []string {
	var out []string
	if v.RealTimeOnly && v.Outcome == verdict.Satisfied {
		out = append(out, "real-time only: an order that also keeps to the clocks does not exist")
	}
	if v.NoTimes {
		out = append(out, "the records have no times: real-time order is empty")
	}
	if v.Partial {
		out = append(out, "partial: see docs/soundness.md for what is assumed")
	}
	return out
}
