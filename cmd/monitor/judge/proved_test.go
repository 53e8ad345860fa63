package judge_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/isowatch/isowatch/cmd/monitor/judge"
	"github.com/isowatch/isowatch/cmd/monitor/report"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/oracle/script"
	"github.com/isowatch/isowatch/internal/lab/oracle/tiny"
	"github.com/isowatch/isowatch/internal/lab/race"
)

// TestWhatIsViolatedIsProved: of a level that is violated something is proved, in histories with all that makes proving
// hard at once: keys that are written and appended to, values that nobody wrote, holes, repeated values, unknown
// outcomes, clocks that step back, whatever is assumed.
func TestWhatIsViolatedIsProved(t *testing.T) {
	violated := 0
	for n := *seed; n < *seed+uint64(race.Draws(1000, 20_000)); n++ {
		rng := rand.New(rand.NewPCG(n, 991))
		one := func(of int) bool { return rng.IntN(of) == 0 }
		s := tiny.Random(rng, tiny.Config{Txns: 3 + rng.IntN(6), Keys: 1 + rng.IntN(3), Ops: 2 + rng.IntN(3), Sessions: 2 + rng.IntN(4),
			Mutations: 1 + rng.IntN(4), Times: one(2), Duplicates: one(2), Values: 2 + rng.IntN(2), Common: 30 * rng.IntN(2),
			Aborted: one(2), Unknown: one(2), Partial: one(3), Appends: one(2), PartialLists: one(2), Mixed: one(2),
			Whole: 20 * rng.IntN(2), Always: one(2), Updates: 40 * rng.IntN(2), Back: 15 * rng.IntN(3), Weak: 25 * rng.IntN(3)})
		if len(s.Txns) < 4 {
			continue
		}
		spoil(rng, s.Txns)
		if one(2) {
			at := rng.IntN(len(s.Txns))
			s.Txns = slices.Delete(s.Txns, at, at+1) // its seq is a hole
		}
		if one(2) {
			s.Header.Initial = &[]record.Initial{record.InitialAny, record.InitialAbsent, record.InitialZero}[rng.IntN(3)]
		}
		if one(3) {
			unique := one(2)
			s.Header.UniqueValues = &unique
		}
		levels := slices.DeleteFunc(verdict.Levels(), func(l verdict.Level) bool { return l == verdict.LIN || one(2) })
		if len(levels) == 0 {
			continue
		}
		var h report.History
		q := judge.Question{DB: record.DefaultDB, Txns: s.Txns, Levels: levels, Assume: record.Assumptions{}.Override(s.Header), AnomaliesMax: 5}
		if err := judge.Check(q, &h); err != nil {
			t.Fatal(err)
		}
		for _, r := range h.Results {
			if r.Verdict != "violated" {
				continue
			}
			if violated++; len(r.Anomalies) == 0 || slices.ContainsFunc(r.Notes, func(note string) bool { return note == report.Unproved(len(r.Anomalies)) }) {
				t.Fatalf("seed %d, %v: nothing of %s is proved: %q\n%s", n, levels, r.Level, r.Notes, script.Format(s))
			}
		}
	}
	if violated < 500 {
		t.Errorf("%d levels are violated, which tells little", violated)
	}
}

// spoil has transactions read values that perhaps nobody wrote, and some clocks step back.
func spoil(rng *rand.Rand, txns []record.Transaction) {
	values := []record.Value{record.Null, record.Int(0), record.Int(1), record.Int(7), record.Int(8), {Kind: record.KindList, Text: "[]"}}
	for range rng.IntN(4) {
		x := &txns[rng.IntN(len(txns))]
		op := record.Op{Kind: record.Read, Key: []string{"x", "y", "z"}[rng.IntN(3)], Value: values[rng.IntN(len(values))]}
		x.Ops = slices.Insert(slices.Clone(x.Ops), rng.IntN(len(x.Ops)+1), op)
	}
	if rng.IntN(6) > 0 {
		return
	}
	for i := range txns {
		if x := &txns[i]; x.HasTimes && rng.IntN(4) == 0 {
			x.Start -= rng.Int64N(30)
			x.End = x.Start + rng.Int64N(x.End-x.Start+1)
		}
	}
}
