package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/alerts/name"
	"github.com/isowatch/isowatch/cmd/monitor/judge"
	"github.com/isowatch/isowatch/cmd/monitor/limit"
	"github.com/isowatch/isowatch/cmd/monitor/report"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/decode"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/record/packed"
	"github.com/isowatch/isowatch/window/store"
	"github.com/isowatch/isowatch/window/stream"
)

// totals are counted for the report of --until-end only: the sets grow with the
// stream.
type totals struct {
	sessions, keys map[string]struct{}
	continued      bool // a run before had counted others
	seconds        float64
	// found are the alerts of anomalies that this run met, by level: the first
	// anomaliesMax. Their records may be forgotten when the report is made.
	found map[string][]report.Anomaly
	// unproved and withheld are how many of a level are not told, suspected how many wait to be explained
	// or are only counted.
	unproved, withheld, suspected map[verdict.Level]int
}

// count takes in a history's records of a batch.
func (t *totals) count(b *decode.Batch, db string) {
	if t.sessions == nil {
		t.sessions, t.keys = map[string]struct{}{}, map[string]struct{}{}
	}
	var r packed.Reader
	for i := range b.Len() {
		txn := b.Block.At(i, &r)
		if txn.DB != db {
			continue
		}
		note(t.sessions, txn.Session)
		for j := range txn.Ops {
			note(t.keys, txn.Ops[j].Key)
		}
	}
}

// note puts a name into a set. It is a part of something large.
func note(set map[string]struct{}, name string) {
	if _, ok := set[name]; !ok {
		set[strings.Clone(name)] = struct{}{}
	}
}

// end judges what is left and reports: the input is over. What is stored stays in
// front of this: should the input go on after all, the next run goes on as if it
// had not ended.
func (w *worker) end(ctx context.Context) error {
	w.proved.met = met{w.history.Next(), metAtEnd}
	w.history.Flush()
	if err := w.work(ctx); err != nil {
		return err
	}
	ended := w.measure(stream.PartTick)
	results := w.history.Close()
	ended()
	if err := w.settle(ctx); err != nil {
		return err
	}
	r, err := w.verdicts(ctx, results)
	w.report = &r
	w.publish(time.Now(), true)
	return err
}

// anomaliesMax is how many anomalies a report of --until-end shows per level; all
// of them are alerts.
const anomaliesMax = 10

// verdicts is what --until-end says of the history.
func (w *worker) verdicts(ctx context.Context, results []verdict.Result) (report.History, error) {
	h, coverage, stats := w.history, record.CoveragePartial, w.history.Stats()
	if h.Complete() {
		coverage = record.CoverageComplete
	}
	out := report.History{File: w.name, Format: "isowatch", DB: w.db, Transactions: int(stats.Transactions),
		Operations: int(stats.Operations),
		Sessions:   len(w.totals.sessions), Keys: len(w.totals.keys), Continued: w.totals.continued, Uncounted: !w.untilEnd,
		Results: []report.Result{}}
	for i, r := range judge.Results(results) {
		r.Seconds = w.totals.seconds
		r.Stats.PeakBytes = limit.Peak()
		if coverage == record.CoveragePartial && w.cfg.Coverage == record.CoverageComplete {
			r.Notes = append(r.Notes, "coverage was partial: records were missing, or the input was not read from its beginning")
		}
		if n := w.totals.unproved[results[i].Level]; n > 0 {
			r.Notes = append(r.Notes, report.Unproved(n))
		}
		if n := w.totals.withheld[results[i].Level]; n > 0 {
			r.Notes = append(r.Notes, fmt.Sprintf("%d anomalies are not told, as a part of what proves them is forgotten", n))
		}
		suspected := 0
		for l, n := range w.totals.suspected {
			if l == results[i].Level || results[i].Level.Implies(l) {
				suspected += n
			}
		}
		if suspected > 0 {
			r.Notes = append(r.Notes, fmt.Sprintf("%d more anomalies are like others that are alerts; as far as there is room "+
				"they are kept, and explained by monitor alerts show (state suspected)", suspected))
		}
		out.Results = append(out.Results, r)
	}
	w.carry(out.Results)
	if err := w.recall(ctx, out.Results); err != nil {
		return out, fmt.Errorf("store %s: %w", w.cfg.Store.Path, err)
	}
	w.doubt(out.Results, results)
	known, _ := h.Standing()
	out.Stretches = stretches(known, judge.Read(w.cfg.Levels, w.cfg.Clock))
	out.Mini = h.State().Mini
	out.Conclude(anomaliesMax)
	return out, nil
}

// keep notes an alert for the report.
func (t *totals) keep(a alerts.Alert) {
	if t.found == nil {
		t.found = map[string][]report.Anomaly{}
	}
	for _, level := range a.Breaks {
		t.found[level] = with(t.found[level], a)
	}
}

// untold notes an anomaly that is no alert, as nothing proves it, or nothing does any more.
func (t *totals) untold(level verdict.Level, withheld bool) {
	if t.unproved == nil {
		t.unproved, t.withheld = map[verdict.Level]int{}, map[verdict.Level]int{}
	}
	if withheld {
		t.withheld[level]++
	} else {
		t.unproved[level]++
	}
}

// suspect notes an anomaly of which there are enough alerts.
func (t *totals) suspect(level verdict.Level) {
	if t.suspected == nil {
		t.suspected = map[verdict.Level]int{}
	}
	t.suspected[level]++
}

// with adds an alert to what is shown of a level, if it is not there and there is room.
func with(shown []report.Anomaly, a alerts.Alert) []report.Anomaly {
	again := func(x report.Anomaly) bool { return x.Alert.ID == a.ID }
	if len(shown) >= anomaliesMax || slices.ContainsFunc(shown, again) {
		return shown
	}
	return append(shown, judge.Anomaly(a))
}

// asked are the levels that are read as this one under the clock; alerts name them.
func (w *worker) asked(level string) (out []string) {
	for _, l := range verdict.Levels() {
		if name.Effective(l, w.cfg.Clock).String() == level {
			out = append(out, l.String())
		}
	}
	return append(out, level)
}

// broken tells whether an alert says that a level is.
func (w *worker) broken(level string) bool { return slices.ContainsFunc(w.asked(level), w.told.broken) }

// carry puts into the results what was found: a level that was violated remains so,
// whatever has been forgotten since, also if a run before this one found it. What is shown
// are the alerts that were raised, so that whoever reads the report finds them in the store.
func (w *worker) carry(results []report.Result) {
	for i := range results {
		r := &results[i]
		found := []report.Anomaly{}
		for _, level := range w.asked(r.Level) {
			for _, x := range w.totals.found[level] {
				same := func(y report.Anomaly) bool { return x.Alert.ID == y.Alert.ID }
				if len(found) < anomaliesMax && !slices.ContainsFunc(found, same) {
					found = append(found, x)
				}
			}
		}
		if len(found) > 0 || w.broken(r.Level) && r.Verdict != verdict.Violated.String() {
			judge.Told(r, found)
		}
	}
}

// recall adds to what is violated the alerts of runs before this one, as far as there is
// room, the newest first: those that are explained and of this history, and not of one of that name in
// another input that the store was used for. Once, when the input is over: O(alerts in the store) at most.
func (w *worker) recall(ctx context.Context, results []report.Result) error {
	wanting := 0
	for i := range results {
		if lacks(&results[i]) {
			wanting++
		}
	}
	if wanting == 0 {
		return nil
	}
	var damaged error
	err := w.keeper.AlertsBefore(ctx, 0, func(_ uint64, stored store.Alert) bool {
		var a alerts.Alert
		if !w.told.has(stored.ID) {
			return true
		}
		if a, damaged = alerts.Parse(stored.Body); damaged != nil {
			return false
		}
		if len(a.Suspicion) > 0 {
			return true
		}
		for i := range results {
			r := &results[i]
			level, _ := verdict.ParseLevel(r.Level)
			if !lacks(r) || !slices.ContainsFunc(a.Breaks, func(broken string) bool { // under levels that were asked for then
				l, known := verdict.ParseLevel(broken)
				return known && level.Implies(name.Effective(l, w.cfg.Clock))
			}) {
				continue
			}
			if r.Anomalies = with(slices.Clip(r.Anomalies), a); !lacks(r) {
				wanting--
			}
		}
		return wanting > 0
	})
	return errors.Join(err, damaged)
}

// doubt has those levels be unknown that nothing is known to break but what is not told, as
// what proves it is forgotten: a violation is reported with its proof, or not at all. So are those that only an alert of
// another configuration says are broken: what that is of may be kept no more.
func (w *worker) doubt(out []report.Result, results []verdict.Result) {
	all := int(w.history.Stats().Withheld)
	for i, v := range results {
		r := &out[i]
		if r.Verdict == verdict.Satisfied.String() && w.told.doubted() &&
			slices.ContainsFunc(w.asked(r.Level), func(l string) bool { return w.status.broken(w.db, l) }) {
			r.Verdict, r.Unknown = verdict.Unknown.String(), &report.Unknown{Reason: verdict.Forgotten.String()}
			r.Notes = append(r.Notes, "alerts say that it is broken, which were raised under another configuration")
			continue
		}
		if r.Verdict != verdict.Violated.String() || len(r.Anomalies) > 0 || all == 0 || w.totals.unproved[v.Level] > 0 ||
			w.broken(r.Level) {
			continue
		}
		n := w.totals.withheld[v.Level]
		if n == 0 { // they were found by runs before, or by another level
			n = all
		}
		r.Verdict, r.Unknown = verdict.Unknown.String(), &report.Unknown{Reason: verdict.Forgotten.String(), Count: n}
	}
}

// lacks tells whether a level is violated by more than is shown, perhaps.
func lacks(r *report.Result) bool {
	return r.Verdict == verdict.Violated.String() && len(r.Anomalies) < anomaliesMax
}

// stretches are those of a history for a report: none if there is one, and that is
// complete for every level that is asked for.
func stretches(all []stream.Stretch, levels []verdict.Level) []report.Stretch {
	if len(all) == 1 && !slices.ContainsFunc(levels,
		func(l verdict.Level) bool { return all[0].At(l) != stream.Complete }) {
		return nil
	}
	out := make([]report.Stretch, 0, len(all))
	for _, s := range all {
		r := report.Stretch{Transactions: [2]uint64{s.From, s.To}, From: s.Begin, To: s.End,
			Completeness: map[string]string{}, Why: s.Partial.Names()}
		for _, l := range levels {
			r.Completeness[l.String()] = s.At(l).String()
		}
		out = append(out, r)
	}
	return out
}
