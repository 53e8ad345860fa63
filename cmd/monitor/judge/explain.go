package judge

import (
	"fmt"
	"slices"

	"github.com/dustin/go-humanize/english"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/alerts/name"
	"github.com/isowatch/isowatch/cmd/monitor/report"
	"github.com/isowatch/isowatch/incremental/verdict"
)

// Results are the reports on levels, without anomalies. Times are the caller's.
func Results(vs []verdict.Result) []report.Result {
	out := make([]report.Result, 0, len(vs))
	for _, v := range vs {
		out = append(out, resultOf(v))
	}
	return out
}

// resultOf is the report on a level, without anomalies.
func resultOf(v verdict.Result) report.Result {
	r := report.Result{Level: v.Level.String(), Verdict: v.Outcome.String(), Anomalies: []report.Anomaly{},
		Notes: notes(v)}
	r.Stats.Stats = v.Stats
	if v.Outcome == verdict.Satisfied && v.ProvedBy != v.Level && v.ProvedBy.Implies(v.Level) {
		r.Notes = append(r.Notes, fmt.Sprintf("it was decided by %v, which holds and implies it", v.ProvedBy))
	}
	if v.Outcome == verdict.Unknown {
		r.Unknown = &report.Unknown{Reason: v.Reason.String(), Decided: v.Decided, Count: v.Count}
	}
	return r
}

// explainer makes reports of results. What several levels do not allow is explained
// once.
type explainer struct {
	q    *Question
	find name.Lookup
	// single: no transaction has several objects.
	single bool
	told   map[string]explained
	// left are the steps that all anomalies of a level have for making their evidence small, steps those
	// of the next.
	left, steps int
}

// explained is a violation as reports show it, and whether its evidence is not proved.
type explained struct {
	level   verdict.Level // the weakest asked for that it breaks
	anomaly report.Anomaly
	err     error
}

func newExplainer(q *Question, find name.Lookup) *explainer {
	return &explainer{q: q, find: find, told: map[string]explained{}}
}

// first is the report on a level before anything is explained: if it is violated with one anomaly, as it was
// found, or with the names of all if these are all that is asked for.
func (x *explainer) first(v verdict.Result) report.Result {
	r := resultOf(v)
	if v.Outcome != verdict.Violated {
		return r
	}
	if x.q.Named {
		asked := name.Asked{Levels: x.q.Levels, Clock: x.q.Assume.Clock}
		for _, violation := range v.Violations {
			n := name.Of(name.Plain(violation, x.find), x.find, asked)
			r.Anomalies = append(r.Anomalies, report.Anomaly{Name: n.Name, Level: n.Breaks[0].String(),
				Alert: alerts.Alert{ID: Same(violation, asked, x.find)}})
		}
		return r
	}
	alert, err := x.asFound(v.Violations[0], judgeLeast)
	a := Anomaly(alert)
	if err != nil {
		a.Level = v.Level.String() // a weaker one was not tried
		r.Notes = append(r.Notes, hurry(1))
	}
	r.Anomalies = append(r.Anomalies, a)
	if n := len(v.Violations) - 1; n > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("%d more anomalies are not shown: the limit was reached before they were "+
			"explained", n))
	}
	return r
}

// context is what the history's alerts are made in.
func (x *explainer) context() alerts.Context {
	return alerts.Context{DB: x.q.DB, Levels: x.q.Levels, Assumptions: x.q.Assume, Lookup: x.find, OneKey: x.single,
		Found: x.q.rowsFound()}
}

// asFound is the alert of a violation, with evidence that was not made small; an error says that so many steps, which it
// has whatever the limits, did not show that it proves.
func (x *explainer) asFound(v verdict.Violation, steps int) (alerts.Alert, error) {
	ctx := x.context()
	var proving *Prover
	proving = NewProver(func() verdict.Reason {
		if proving.All() > steps {
			return verdict.Timeout
		}
		return verdict.NoReason
	}, 1)
	ctx.Judge, ctx.Budget = proving.Judge, proving
	alert, err := alerts.New(v, ctx)
	x.left -= proving.All()
	return alert.Unfinished(), err
}

// hurry is the note on anomalies of which the evidence is as it was found.
func hurry(n int) string {
	return fmt.Sprintf("the evidence of %d anomalies was neither made small nor judged again, as the limit was reached", n)
}

// result is the report on a level, with the anomalies made into alerts.
func (x *explainer) result(v verdict.Result) report.Result {
	q := x.q
	var told, unproved []report.Anomaly
	hurried := 0
	x.left = KindSteps
	for i, violation := range v.Violations {
		x.steps = min(ProofSteps, max(x.left/(len(v.Violations)-i), ProofSteps/16))
		e := x.explain(violation, v.Level, false)
		switch {
		case e.err != nil && q.stopped() != verdict.NoReason:
			hurried++
			e.anomaly.Level = v.Level.String() // a weaker one was not tried
		case e.err != nil:
			e.anomaly.Level = v.Level.String()
			unproved = append(unproved, e.anomaly)
			continue
		}
		told = append(told, e.anomaly)
	}
	if len(told) > 0 { // it is violated whatever the others are
		v.Unexplained, unproved = v.Unexplained+len(unproved), nil
	}
	r := resultOf(v)
	r.Anomalies = append(append(r.Anomalies, told...), unproved...)
	if len(unproved) > 0 {
		r.Notes = append(r.Notes, report.Unproved(len(unproved)))
	}
	if hurried > 0 {
		r.Notes = append(r.Notes, hurry(hurried))
	}
	if why := q.stopped(); why != verdict.NoReason && v.Outcome == verdict.Violated {
		r.Notes = append(r.Notes, "there may be more: the limit of "+why.String()+" was reached")
	}
	return r
}

// explain makes an anomaly of a violation of a level, unless that was done for a level
// that this one implies. One of a session guarantee stays what it is, even where its
// evidence shows a smaller anomaly: that may break another guarantee, or none.
func (x *explainer) explain(v verdict.Violation, level verdict.Level, guarantee bool) explained {
	key := Same(v, name.Asked{Levels: x.q.Levels, Clock: x.q.Assume.Clock}, x.find)
	told := fmt.Sprintf("%v %s", guarantee, key)
	if e, ok := x.told[told]; ok && (e.err == nil || x.q.Stop() != verdict.NoReason) && level.Implies(e.level) {
		return e
	}
	ctx := x.context()
	proving := NewProver(x.q.stopped, x.steps)
	if ctx.Judge, ctx.Budget = proving.Judge, proving; !guarantee {
		ctx.Find = proving.Find
	}
	alert, err := alerts.New(v, ctx)
	x.left -= proving.All()
	switch stopped := x.q.stopped() != verdict.NoReason; {
	case stopped && err != nil && guarantee: // these are few, and share no steps
		alert, err = x.asFound(v, judgeLeast)
	case stopped && err != nil:
		alert, err = x.asFound(v, min(judgeLeast, x.left))
	case stopped:
		alert = alert.Unfinished()
	}
	alert = alert.Near(x.q.Events)
	e := explained{anomaly: Anomaly(alert), err: err}
	e.level, _ = verdict.ParseLevel(alert.Level)
	x.told[told] = e
	return e
}

// Same is equal for violations that are one anomaly, whatever level they were found at:
// what it is called and the transactions that make it up, whatever the order; of a
// read, also which.
func Same(v verdict.Violation, asked name.Asked, find name.Lookup) string {
	txns, read := v.Txns, ""
	switch v.Kind {
	case verdict.Cycle, verdict.Unsatisfiable:
	case verdict.Divergence:
		if a, b, ok := name.Overwriters(v, find); ok {
			txns = []verdict.TxnID{a, b}
		}
	default:
		read = fmt.Sprintf(" %d %q", v.Read, v.Key)
	}
	ids := make([]string, len(txns))
	for i, id := range txns {
		ids[i] = fmt.Sprintf("#%d", id)
		if r, ok := find.Find(id); ok {
			ids[i] = r.ID
		}
	}
	slices.Sort(ids)
	return fmt.Sprintf("%s %q%s", name.Of(v, find, asked).Name, slices.Compact(ids), read)
}

// guarantees are the reports on the session guarantees.
func (x *explainer) guarantees(all []verdict.GuaranteeResult) []report.Guarantee {
	out := make([]report.Guarantee, 0, len(all))
	for _, g := range all {
		r := report.Guarantee{Guarantee: g.Guarantee.String(), Verdict: g.Outcome.String(), Anomalies: []report.Anomaly{}}
		for _, v := range g.Violations {
			a := x.explain(v, v.Level, true).anomaly
			if other := a.Alert.Guarantee; other != "" && other != r.Guarantee {
				// The order of the writes contradicts the sessions: no guarantee has an
				// order to be judged in, and only one of them forbids that by itself.
				r.Verdict, r.Reason = verdict.Unknown.String(), "the order of writes breaks "+other
				continue
			}
			r.Anomalies = append(r.Anomalies, a)
		}
		out = append(out, r)
	}
	return out
}

// Anomaly is an alert as reports show it.
func Anomaly(a alerts.Alert) report.Anomaly {
	out := report.Anomaly{Name: a.Name, Adya: a.Adya, Level: a.Level, Transactions: a.Transactions,
		Cycle: edges(a.Cycle), Explanation: a.Summary + "\n" + a.Explanation, History: a.Evidence, Events: a.Events, Alert: a}
	for _, c := range a.Cases {
		out.Cases = append(out.Cases, edges(c))
	}
	return out
}

func edges(c []alerts.Edge) []report.Edge {
	out := make([]report.Edge, len(c))
	for i, e := range c {
		out[i] = report.Edge{From: e.From, To: e.To, Type: e.Type, Key: e.Key}
	}
	return out
}

// What is said of a level that is about transactions of one object each, where one has
// several: if nothing was found, and if something was before that one came.
const (
	noteSeveral = "it is about transactions of one object each, and one here has several"
	noteLater   = "it is about transactions of one object each: what is told was found before the first that has " +
		"several, and nothing more is judged"
)

// Told has the result of a level say that it is violated, by what was told before the input was
// over, whatever could be said of it at the end.
func Told(r *report.Result, anomalies []report.Anomaly) {
	if u := r.Unknown; u != nil && u.Reason != verdict.Forgotten.String() {
		r.Notes = append(r.Notes, noteOpen(u.Reason))
	}
	r.Verdict, r.Unknown, r.Anomalies = verdict.Violated.String(), nil, anomalies
	if i := slices.Index(r.Notes, noteSeveral); i >= 0 {
		r.Notes[i] = noteLater
	}
}

// noteOpen says of a violated level that something of it was left open.
func noteOpen(why string) string {
	return "there may be more: not everything was decided (" + why + ")"
}

// notes are what a reader should know beside the verdict.
func notes(v verdict.Result) []string {
	var out []string
	if v.Outcome == verdict.NotApplicable {
		out = append(out, noteSeveral)
	}
	if v.RealTimeOnly && v.Outcome == verdict.Satisfied {
		out = append(out, "it holds, but in no order that agrees with the recorded times; this level does not ask for "+
			"that, strong-si and sser do")
	}
	if v.Outcome == verdict.Violated && v.Reason != verdict.NoReason {
		out = append(out, noteOpen(v.Reason.String()))
	}
	if v.Outcome == verdict.Violated && v.Unexplained > 0 {
		out = append(out, fmt.Sprintf("%d more signs of anomalies were met, and only counted", v.Unexplained))
	}
	if v.NoTimes {
		out = append(out, "the records have no times: real-time order is empty")
	}
	if v.Disbelieved > 0 {
		out = append(out, english.Plural(v.Disbelieved, "transaction", "")+
			" without times, as these contradict those of earlier ones of the session: "+
			"a clock was set back, or the session's transactions overlap")
	}
	if v.Partial {
		out = append(out, "partial: see docs/soundness.md for what is assumed")
	}
	return out
}
