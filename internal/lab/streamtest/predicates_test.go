package streamtest

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/isowatch/isowatch/cmd/monitor/judge"
	"github.com/isowatch/isowatch/cmd/monitor/report"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/record/packed"
	"github.com/isowatch/isowatch/internal/lab/oracle"
	"github.com/isowatch/isowatch/internal/lab/oracle/tiny"
	"github.com/isowatch/isowatch/internal/lab/race"
)

// predicates makes a topic of a random history with predicates, and says what the definitions say of it, or check if
// it is longer.
func predicates(seed uint64, most int) (*topic, map[verdict.Level]verdict.Result) {
	rng := rand.New(rand.NewPCG(seed, 81))
	txns := tiny.Predicates(rng, most)
	if seed%5 == 0 {
		tiny.Log(rng, txns)
	}
	timed := rng.IntN(2) == 0
	seqs, ended := map[string]int64{}, map[string]int64{}
	t := &topic{assume: record.Assumptions{Initial: record.InitialAbsent, Coverage: record.CoverageComplete}, longest: 1,
		spaced: rng.IntN(2) == 0}
	for i := range txns {
		x := &txns[i]
		x.DB, x.Seq = record.DefaultDB, seqs[x.Session]
		seqs[x.Session]++
		if x.HasTimes = timed; timed {
			x.Start = max(int64(20*i+1), ended[x.Session]+1)
			x.End = x.Start + 10 + rng.Int64N(50)
			ended[x.Session] = x.End
			t.longest = max(t.longest, x.End-x.Start)
		}
	}
	for _, l := range verdict.Levels() {
		if l != verdict.LIN && (timed || l != verdict.SSER && l != verdict.StrongSI) && rng.IntN(3) > 0 {
			t.levels = append(t.levels, l)
		}
	}
	if !timed {
		t.longest = int64(len(txns)) + 1
	} else if rng.IntN(2) == 0 {
		t.lateness = 1 + rng.Int64N(8)
	}
	q := judge.Question{Records: packed.Of(txns), Levels: t.levels, Assume: t.assume}
	expanded, err := judge.Expanded(q.Records, t.assume)
	var h report.History
	if len(t.levels) == 0 || err != nil || expanded.Summary().Predicates > 0 || q.Records.Summary().Predicates == 0 ||
		!tiny.Possible(expanded.Transactions(), 0) || judge.Check(q, &h) != nil {
		return nil, nil
	}
	whole := map[verdict.Level]verdict.Result{}
	var defined map[verdict.Level]bool
	if most <= 4 {
		defined = oracle.Check(txns, record.Assumptions{}.Override(t.assume.Header()))
	}
	for _, r := range h.Results {
		l, _ := verdict.ParseLevel(r.Level)
		o := verdict.Result{Level: l, Outcome: verdict.Violated}
		if defined[l] || most > 4 && r.Verdict == verdict.Satisfied.String() {
			o.Outcome = verdict.Satisfied
		}
		if r.Verdict == verdict.Unknown.String() { // rc may be
			o.Reason = verdict.NotChecked
		}
		whole[l] = o
	}
	t.logs = publish(rng, txns, 1+rng.IntN(3), t.lateness)
	return t, whole
}

// TestPredicatesInStreams: what a stream says of a history with predicates is what the definitions say, with kills
// between, and however it came; and where it forgets all the time it accuses nobody.
func TestPredicatesInStreams(t *testing.T) {
	y, forgetful, across := &tally{}, &tally{}, 0
	for n := range race.Draws(600, 8000) {
		seed := *seedFrom + uint64(n)
		most, often := 4, 1
		switch {
		case n%32 == 31:
			most, often = 24, 4
		case n%4 == 3:
			most = 10
		}
		tp, whole := predicates(seed, most)
		if tp == nil {
			continue
		}
		rng := rand.New(rand.NewPCG(seed, 82))
		var first *outcome
		for way := range uint64(2) {
			r := run{topic: tp, cfg: tp.config(), batch: 1 + rng.IntN(7), seed: seed + way, kill: int(way) * 40}
			r.cfg.Overlap = often + int(seed%3) // it is judged often
			o, err := r.play()
			if err != nil {
				t.Fatalf("seed %d: %v\n%v", seed, err, tp)
			}
			y.add(o)
			if w := sound(o, whole); w != nil {
				t.Fatalf("seed %d: %s: %s\n%v", seed, w.class, w.says, tp)
			}
			for _, res := range o.results {
				want := whole[res.Level]
				open := want.Reason != verdict.NoReason && res.Outcome == verdict.Unknown
				if res.Outcome != want.Outcome && !open && !excused(o, tp, res.Level) {
					t.Fatalf("seed %d: %+v, by definition %v\n%v", seed, res, want.Outcome, tp)
				}
				proved := slices.ContainsFunc(slices.Collect(maps.Values(o.found)), func(x told) bool {
					return slices.Contains(x.alert.Breaks, res.Level.String())
				})
				if res.Outcome == verdict.Violated && !proved {
					t.Fatalf("seed %d: nothing is told that breaks %v\n%v", seed, res.Level, tp)
				}
			}
			if first == nil {
				first = o
			} else if w := r.compare(first, o); w != nil {
				t.Fatalf("seed %d: %s: %s\n%v", seed, w.class, w.says, tp)
			}
		}
		cfg := tp.tight(rng)
		cfg.Segment, cfg.Overlap = often*cfg.Segment, often*cfg.Overlap
		r := run{topic: tp, cfg: cfg, batch: 1 + rng.IntN(5), seed: seed, kill: rng.IntN(2) * 40}
		o, err := r.play()
		if err != nil {
			t.Fatalf("seed %d: %v\n%v", seed, err, tp)
		}
		forgetful.add(o)
		if r.kill > 0 {
			again := r
			again.kill = 0
			unkilled, err := again.play()
			if err != nil {
				t.Fatalf("seed %d: %v\n%v", seed, err, tp)
			}
			if w := r.compare(unkilled, o); w != nil {
				t.Fatalf("seed %d: forgetting: %s: %s\n%v", seed, w.class, w.says, tp)
			}
		}
		if w := sound(o, whole); w != nil {
			t.Fatalf("seed %d: forgetting: %s: %s\n%v", seed, w.class, w.says, tp)
		}
		if w := equal(o, tp, whole); w != nil {
			t.Fatalf("seed %d: forgetting: %s: %s\n%v", seed, w.class, w.says, tp)
		}
		for _, res := range o.results {
			if res.Outcome == verdict.Satisfied && o.stats.Segments > 0 {
				across++
			}
		}
	}
	t.Logf("%v\nwhere it forgets: %v; %d levels were satisfied over several segments", y, forgetful, across)
	if forgetful.found < 20 || across < 20 {
		t.Error("where it forgets it finds nothing, or decides nothing")
	}
}

// TestTablesInStreams: of a table of which somebody unseen may have written rows, a stream tells nothing that check does
// not, whatever it forgets, and something.
func TestTablesInStreams(t *testing.T) {
	y := &tally{}
	for n := range race.Draws(1500, 12000) {
		seed := *seedFrom + uint64(n)
		tp, _ := predicates(seed, 10)
		if tp == nil {
			continue
		}
		if tp.assume.Coverage = record.CoveragePartial; n%2 == 0 {
			tp.assume.Coverage, tp.assume.Tables = record.CoverageComplete, record.Tables{"t": record.CoveragePartial}
		}
		tp.unique = n%4 < 2 && tiny.Unique(tp.all(), record.InitialAbsent)
		q := judge.Question{Records: packed.Of(tp.all()), Levels: tp.levels, Assume: tp.assume}
		if tp.unique {
			q.Assume.UnseenUnique = new(true)
		}
		var h report.History
		if err := judge.Check(q, &h); err != nil {
			t.Fatal(err)
		}
		whole := map[verdict.Level]verdict.Result{}
		for _, r := range h.Results {
			l, _ := verdict.ParseLevel(r.Level)
			o := verdict.Result{Level: l, Outcome: verdict.Satisfied} // or unknown: nothing may be told
			if r.Verdict == verdict.Violated.String() {
				o.Outcome = verdict.Violated
			}
			whole[l] = o
		}
		rng := rand.New(rand.NewPCG(seed, 83))
		r := run{topic: tp, cfg: tp.config(), batch: 1 + rng.IntN(7), seed: seed, kill: rng.IntN(2) * 40}
		if r.cfg.Overlap = 1 + int(seed%3); n%3 == 0 {
			r.cfg = tp.tight(rng)
		}
		o, err := r.play()
		if err != nil {
			t.Fatalf("seed %d: %v\n%v", seed, err, tp)
		}
		y.add(o)
		if w := sound(o, whole); w != nil {
			t.Fatalf("seed %d: %s: %s\n%v", seed, w.class, w.says, tp)
		}
	}
	if t.Log(y); y.found < 5 {
		t.Error("nothing is found")
	}
}
