package app

import (
	"context"
	"slices"
	"strings"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/cmd/monitor/judge"
	"github.com/isowatch/isowatch/cmd/monitor/limit"
	"github.com/isowatch/isowatch/cmd/monitor/report"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/decode"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/record/packed"
	"github.com/isowatch/isowatch/window/stream"
)

// totals are counted for the report of --until-end only: the sets grow with the
// stream.
type totals struct {
	sessions, keys map[string]struct{}
	continued      bool // a run before had counted others
	seconds        float64
	// found are anomalies that were told, by level: the first anomaliesMax. Their
	// records may be forgotten when the report is made.
	found map[string][]report.Anomaly
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
	r := w.verdicts(results)
	w.report = &r
	return nil
}

// anomaliesMax is how many anomalies a report of --until-end shows per level; all
// of them are alerts.
const anomaliesMax = 10

// verdicts is what --until-end says of the history.
func (w *worker) verdicts(results []verdict.Result) report.History {
	h, coverage, stats := w.history, record.CoveragePartial, w.history.Stats()
	if h.Complete() {
		coverage = record.CoverageComplete
	}
	out := report.History{File: w.name, Format: "isowatch", DB: w.db, Transactions: int(stats.Transactions), Operations: int(stats.Operations),
		Sessions: len(w.totals.sessions), Keys: len(w.totals.keys), Continued: w.totals.continued, Results: []report.Result{}}
	for _, r := range judge.Results(w.db, results, w.assume(coverage), h.Lookup, anomaliesMax, w.veil) {
		r.Seconds = w.totals.seconds
		r.Stats.PeakBytes = limit.Peak()
		if coverage == record.CoveragePartial && w.cfg.Coverage == record.CoverageComplete {
			r.Notes = append(r.Notes, "coverage was partial: records were missing, or the input was not read from its beginning")
		}
		out.Results = append(out.Results, r)
	}
	w.carry(out.Results)
	out.Stretches = stretches(h.Stretches(), w.cfg.Levels)
	out.Mini = h.Mini()
	out.Conclude(anomaliesMax)
	return out
}

// keep notes an alert for the report.
func (t *totals) keep(a alerts.Alert) {
	if t.found == nil {
		t.found = map[string][]report.Anomaly{}
	}
	for _, level := range a.Breaks {
		if len(t.found[level]) < anomaliesMax {
			t.found[level] = append(t.found[level], judge.Anomaly(a))
		}
	}
}

// carry puts into the results what was told earlier: a level that was violated
// remains so, whatever has been forgotten since.
func (w *worker) carry(results []report.Result) {
	for i := range results {
		r := &results[i]
		for _, x := range w.totals.found[r.Level] {
			r.Verdict, r.Unknown = verdict.Violated.String(), nil
			again := func(y report.Anomaly) bool { return y.Name == x.Name && slices.Equal(y.Transactions, x.Transactions) }
			if !slices.ContainsFunc(r.Anomalies, again) && len(r.Anomalies) < anomaliesMax {
				r.Anomalies = append(r.Anomalies, x)
			}
		}
	}
}
