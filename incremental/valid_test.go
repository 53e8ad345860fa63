package incremental_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/isowatch/isowatch/incremental"
	"github.com/isowatch/isowatch/incremental/certificate"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/generate"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/race"
)

// A load is a workload of the generator's, with times.
var loads = []generate.Config{
	{Level: verdict.SSER, Workload: generate.General, Keys: 40, Sessions: 8, Transactions: 1200},
	{Level: verdict.SSER, Workload: generate.General, Keys: 400, Sessions: 12, Transactions: 2000, ReadShare: 0.3, Distribution: generate.Zipf},
	{Level: verdict.SSER, Workload: generate.General, Keys: 100, Sessions: 6, Transactions: 800, AbortRate: 0.2, MaxSkew: 300 * time.Microsecond},
	{Level: verdict.SSER, Workload: generate.BlindW, Keys: 30, Sessions: 10, Transactions: 1200, Operations: 4},
	{Level: verdict.SSER, Workload: generate.BlindW, Keys: 3000, Sessions: 10, Transactions: 2500, Initial: record.InitialZero},
	{Level: verdict.SSER, Workload: generate.BlindW, Keys: 200, Sessions: 16, Transactions: 600, ReadShare: 0.2, Initial: record.InitialAbsent},
	{Level: verdict.SSER, Workload: generate.Mini, Keys: 50, Sessions: 10, Transactions: 3000},
	{Level: verdict.SSER, Workload: generate.Mini, Keys: 1000, Sessions: 40, Transactions: 2000, AbortRate: 0.1, Initial: record.InitialZero},
}

func produce(t *testing.T, cfg generate.Config) []record.Transaction {
	t.Helper()
	g, err := generate.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	var out []record.Transaction
	for x := range g.Transactions() {
		out = append(out, x)
	}
	return out
}

// implied are the levels of the engine's that a history of a level satisfies.
func implied(l verdict.Level) []verdict.Level {
	var out []verdict.Level
	for _, m := range verdict.Levels() {
		if l.Implies(m) {
			out = append(out, m)
		}
	}
	return out
}

// What a store did that keeps a level is satisfied at it, with a proof that
// replays; online no tick ever says otherwise.
func TestValidHistoriesAreSatisfied(t *testing.T) {
	for i, load := range loads {
		for _, level := range verdict.Levels() {
			if race.Brief() && (i+int(level))%4 != 0 {
				continue // each load at every fourth level
			}
			t.Run(fmt.Sprintf("load %d/%v", i, level), func(t *testing.T) {
				t.Parallel()
				cfg := load
				cfg.Level, cfg.Seed = level, uint64(100+i)
				txns := produce(t, cfg)
				opt := incremental.Options{Levels: implied(level), Assumptions: record.Assumptions{UnseenUnique: new(true), Initial: cfg.Initial, MaxSkew: int64(cfg.MaxSkew)}, Proof: true}
				for _, partial := range []record.Coverage{record.CoverageComplete, record.CoveragePartial} {
					opt.Coverage = partial
					checkValid(t, txns, opt)
				}
				opt.Coverage = record.CoverageComplete
				for _, unique := range []bool{false, true} {
					if !unique && load.Transactions > 1200 {
						continue // every read waits; much the same, and slow
					}
					opt.Online, opt.UniqueValues, opt.MaxTransaction = true, unique, longest(txns)
					checkStream(t, txns, opt)
				}
			})
		}
	}
}

func checkValid(t *testing.T, txns []record.Transaction, opt incremental.Options) {
	t.Helper()
	e := incremental.New(opt)
	for i := range txns {
		e.Step(&txns[i], 0)
	}
	for _, r := range e.Close() {
		satisfied(t, r)
		if r.Outcome == verdict.Satisfied && opt.Coverage == record.CoverageComplete {
			if err := certificate.Replay(r, txns, record.Assumptions{Initial: opt.Initial, MaxSkew: opt.MaxSkew}); err != nil {
				t.Errorf("%v: the proof fails: %v", r.Level, err)
			}
		}
	}
}

// satisfied checks the verdict on a history that is valid.
func satisfied(t *testing.T, r verdict.Result) {
	t.Helper()
	if r.Outcome != verdict.Satisfied {
		t.Errorf("%v: %v (%v, %d): %d violations, the first %+v", r.Level, r.Outcome, r.Reason, r.Count, len(r.Violations), r.Violations[:min(1, len(r.Violations))])
	}
}

func longest(txns []record.Transaction) int64 {
	n := int64(1)
	for _, x := range txns {
		n = max(n, x.End-x.Start)
	}
	return n
}

// checkStream feeds txns, which come in the order of their ends, with ticks.
func checkStream(t *testing.T, txns []record.Transaction, opt incremental.Options) {
	t.Helper()
	e := incremental.New(opt)
	for i := range txns {
		e.Step(&txns[i], 0)
		if i%97 == 96 {
			if out := e.Tick(txns[i].End); len(out.Violations) > 0 {
				t.Fatalf("after %d transactions: %+v", i, out.Violations[0])
			}
		}
	}
	for _, r := range e.Close() {
		satisfied(t, r)
	}
}
