package streamtest

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/cmd/monitor/judge"
	"github.com/isowatch/isowatch/cmd/monitor/report"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/codec"
	"github.com/isowatch/isowatch/ingest/generate"
	"github.com/isowatch/isowatch/ingest/record"
)

// broken is the weakest level that each anomaly which can be planted breaks.
var broken = map[string]verdict.Level{
	"thin-air-read": verdict.G1, "aborted-read": verdict.G1, "future-read": verdict.G1, "not-my-last-write": verdict.G1,
	"not-my-own-write": verdict.G1, "intermediate-read": verdict.G1, "non-monotonic-read": verdict.RC,
	"non-repeatable-reads": verdict.RA, "session-guarantee-violation": verdict.RA, "fractured-read": verdict.RA,
	"causality-violation": verdict.CC, "long-fork": verdict.PC, "lost-update": verdict.SI, "write-skew": verdict.SER,
}

// names are those of violations found in batch.
func (t *topic) names(all map[verdict.Level]verdict.Result) []string {
	txns := t.all()
	find := func(id verdict.TxnID) (*record.Transaction, bool) { return &txns[id], true }
	var out []string
	for _, l := range t.levels {
		for _, v := range all[l].Violations {
			ctx := alerts.Context{DB: record.DefaultDB, Levels: t.levels, Assumptions: t.assume, Lookup: find}
			p := judge.NewProver(nil, 1<<40)
			ctx.Judge, ctx.Find = p.Judge, p.Find
			a, err := alerts.New(v, ctx)
			if err != nil {
				return []string{err.Error()}
			}
			out = append(out, a.Name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// again is what check tells of an alert's evidence: ids and names.
func (t *topic) again(tt *testing.T, a alerts.Alert) []string {
	tt.Helper()
	header, err := codec.DecodeHeader(a.Evidence[0])
	if err != nil {
		tt.Fatal(err)
	}
	q := judge.Question{DB: a.DB, Levels: t.levels, Assume: record.Assumptions{}.Override(header)}
	for _, line := range a.Evidence[1:] {
		var x record.Transaction
		if err := codec.Decode(line, &x); err != nil {
			tt.Fatal(err)
		}
		q.Txns = append(q.Txns, x)
	}
	var h report.History
	if err := judge.Check(q, &h); err != nil {
		tt.Fatal(err)
	}
	var out []string
	for _, r := range h.Results {
		for _, x := range r.Anomalies {
			if said := x.Alert.ID + " " + x.Name; !slices.Contains(out, said) {
				out = append(out, said)
			}
		}
	}
	return out
}

// What is planted is found under its name, in a stream as in batch, and nobody else is
// accused. Whoever checks the evidence is told the same alert.
func TestPlantedAnomaliesHaveTheirNames(t *testing.T) {
	for _, name := range generate.Anomalies() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(6) {
				g, err := generate.New(generate.Config{Level: verdict.SSER, Workload: generate.General, Anomaly: name, Planted: 1, Seed: seed, Sessions: 20, Keys: 40, Transactions: 30})
				if err != nil {
					t.Fatal(err)
				}
				var txns []record.Transaction
				tp := &topic{levels: []verdict.Level{broken[name]}, unique: true}
				for x := range g.Transactions() {
					txns = append(txns, x)
					tp.longest = max(tp.longest, x.End-x.Start)
				}
				rng := rand.New(rand.NewPCG(seed, 71))
				tp.logs = publish(rng, txns, 2, 0)
				if batch := tp.names(tp.whole()); !slices.Equal(batch, []string{name}) {
					t.Errorf("seed %d: batch: %q", seed, batch)
				}
				r := run{topic: tp, cfg: tp.config(), batch: 3, seed: seed}
				o, err := r.play()
				if err != nil {
					t.Fatal(err)
				}
				if len(o.found) == 0 {
					t.Errorf("seed %d: nothing is found in the stream", seed)
				}
				for _, x := range o.found {
					innocent := func(id string) bool { return !slices.Contains(g.Planted()[0].Transactions, id) }
					if x.err != nil || x.alert.Name != name || slices.ContainsFunc(x.alert.Transactions, innocent) {
						t.Errorf("seed %d: %v: %s", seed, x.err, x.alert.Summary)
					}
					if got := tp.again(t, x.alert); !slices.Equal(got, []string{x.alert.ID + " " + x.alert.Name}) {
						t.Errorf("seed %d: %s %s is %v when its evidence is checked", seed, x.alert.ID, x.alert.Name, got)
					}
				}
			}
		})
	}
}
