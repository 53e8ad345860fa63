package judge

import (
	"fmt"
	"io"
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
	// Phase is told what is being done; may be nil.
	Phase func(string)
}

// Check judges a history at each level and fills in h, which has its names
// already. An error means that a proof did not hold: a bug in the monitor.
//
// Each level has an engine of its own: levels share little, and so their times and
// their memory are their own.
func Check(q Question, h *report.History) error {
	if q.Phase == nil {
		q.Phase = func(string) {}
	}
	count(q.Txns, h)
	var notes []string
	if n := holes(q.Txns); n > 0 && q.Assume.Coverage == record.CoverageComplete {
		// A hole is a gap in the capture, never an anomaly.
		q.Assume.Coverage = record.CoveragePartial
		notes = append(notes, fmt.Sprintf("coverage was partial: by their sessions' seq, %d transactions are missing", n))
	}
	h.Results = make([]report.Result, 0, len(q.Levels))
	for _, l := range q.Levels {
		r, err := q.level(l)
		if err != nil {
			return err
		}
		r.Notes = append(r.Notes, notes...)
		h.Results = append(h.Results, r)
	}
	h.Conclude()
	return nil
}

// holes counts the transactions that are missing inside sessions, by seq.
func holes(txns []record.Transaction) int64 {
	last := map[string]int64{}
	n := int64(0)
	for i := range txns {
		t := &txns[i]
		if !t.HasSeq {
			continue
		}
		if seq, ok := last[t.Session]; ok && t.Seq > seq+1 {
			n += t.Seq - seq - 1
		}
		last[t.Session] = t.Seq
	}
	return n
}

// level judges one level.
func (q *Question) level(l verdict.Level) (report.Result, error) {
	phases := report.Phases{Decode: q.Decoded.Seconds()}
	q.Phase("judging " + l.String())
	began := time.Now()
	o := q.Assume.Options([]verdict.Level{l}, q.AnomaliesMax, q.Conflicts)
	o.Proof = q.Replay
	e := incremental.New(o)
	for i := range q.Txns {
		e.Step(&q.Txns[i], 0)
	}
	phases.Construct = time.Since(began).Seconds()
	solving := time.Now()
	v := e.Close()[0]
	phases.Solve = time.Since(solving).Seconds()

	explaining := time.Now()
	r := Result(q.DB, v, q.Assume, lookup(q.Txns))
	phases.Explain = time.Since(explaining).Seconds()
	r.Seconds = time.Since(began).Seconds()
	r.Stats.PhaseSeconds = phases
	r.Stats.PeakBytes = limit.Peak()
	if q.Replay && v.Outcome == verdict.Satisfied {
		q.Phase("replaying the proof of " + l.String())
		if err := Replay(v, q.Assume, q.Txns); err != nil {
			return r, fmt.Errorf("level %s was found satisfied, but its proof does not hold: %w", l, err)
		}
	}
	return r, nil
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
	r := report.Result{Level: v.Level.String(), Verdict: v.Outcome.String(), Anomalies: []report.Anomaly{}, Notes: notes(v)}
	r.Stats.Stats = v.Stats
	if v.Outcome == verdict.Unknown {
		r.Unknown = &report.Unknown{Reason: v.Reason.String(), Decided: v.Decided, Count: v.Count}
	}
	ctx := a.Context(db, []verdict.Level{v.Level}, find)
	unproved := 0
	for _, violation := range v.Violations {
		alert, err := alerts.New(violation, ctx)
		if err != nil {
			unproved++
		}
		r.Anomalies = append(r.Anomalies, Anomaly(alert))
	}
	if unproved > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("the evidence of %d anomalies does not prove them by itself; please report this with the history", unproved))
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
