package incremental_test

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/isowatch/isowatch/incremental"
	"github.com/isowatch/isowatch/incremental/oracle"
	"github.com/isowatch/isowatch/incremental/oracle/script"
	"github.com/isowatch/isowatch/incremental/oracle/tiny"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
)

// A stream is a history as it may come in: in some order, with ticks that are
// true of it.
type stream struct {
	txns []record.Transaction // in the order of arrival, each session's in order
	end  []int64              // when each truly ended, whether its record says so or not
	tick []int64              // the watermark told after each; 0: none
	late bool                 // some records come after ones that ended later
	opt  incremental.Options
}

// A course is one way in which a history's records reach an online engine.
type course struct {
	name string
	cfg  tiny.Config
	// lateness is how much later than an earlier record one may have ended.
	lateness int64
	// tick is how many records there are to a tick, on average.
	tick int
	// bounded tells the engine how long transactions run, so that ticks give up
	// waiting for writers.
	bounded bool
	// untimed and stepped are shares in percent: of records without times, and
	// of those whose session's clock had stepped back.
	untimed, stepped int
	change           func(*incremental.Options)
}

var blind = tiny.Config{Txns: 6, Keys: 2, Sessions: 6, Ops: 3, Mutations: 1, Times: true}

// A key that is found to be a list only after its first reads were decided is
// no matter of clocks: no lists.
var wildUnlisted = tiny.Config{Aborted: true, Mutations: 2, Times: true, Partial: true, Duplicates: true, Unknown: true}

var courses = []course{
	{name: "in order, ticks rarely", cfg: timed, tick: 3},
	{name: "in order, bounded", cfg: timed, tick: 1, bounded: true},
	{name: "late", cfg: timed, lateness: 6, tick: 2},
	{name: "late, bounded", cfg: timed, lateness: 6, tick: 1, bounded: true},
	{name: "late, no ticks", cfg: timed, lateness: 20, tick: 1000},
	{name: "blind", cfg: blind, tick: 2, bounded: true},
	{name: "blind, late", cfg: blind, tick: 2, lateness: 4},
	{name: "mixed", cfg: timed, tick: 2, untimed: 30},
	{name: "mixed, late", cfg: timed, tick: 2, untimed: 30, lateness: 5, bounded: true},
	{name: "stepped", cfg: timed, tick: 2, stepped: 30},
	{name: "stepped, late", cfg: blind, tick: 2, stepped: 30, lateness: 4},
	{name: "sessions ignored", cfg: timed, tick: 2, bounded: true, change: func(o *incremental.Options) { o.Sessions = record.SessionsIgnore }},
	{name: "sessions ignored, late", cfg: blind, tick: 2, lateness: 5, change: func(o *incremental.Options) { o.Sessions = record.SessionsIgnore }},
	{name: "partial", cfg: tiny.Config{Aborted: true, Mutations: 2, Times: true, Partial: true}, tick: 1, lateness: 4, bounded: true},
	{name: "clock ignored", cfg: timed, tick: 2, lateness: 4, change: func(o *incremental.Options) {
		o.Clock = record.ClockIgnore
		o.Levels = []verdict.Level{verdict.SI, verdict.SER}
	}},
	{name: "wild", cfg: wildUnlisted, tick: 1, lateness: 4, bounded: true},
	{name: "wild, mixed", cfg: wildUnlisted, tick: 2, untimed: 30},
	{name: "one violation", cfg: timed, tick: 2, change: func(o *incremental.Options) { o.MaxViolations = 1 }},
}

// However a history comes in, the stream's verdicts are those of the
// definitions, and no tick ever tells what is not so.
func TestCoursesAgreeWithOracle(t *testing.T) {
	for _, c := range courses {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			told := map[verdict.Outcome]int{}
			for i := range *histories {
				seed := *seedFrom + uint64(i)
				follow(t, c, seed, told)
				if t.Failed() {
					return
				}
			}
			t.Logf("verdicts: %v", told)
			if told[verdict.Satisfied] == 0 || told[verdict.Violated] == 0 {
				t.Errorf("the sample tells little: %v", told)
			}
		})
	}
}

func follow(t *testing.T, c course, seed uint64, told map[verdict.Outcome]int) {
	rng := rand.New(rand.NewPCG(seed, 11))
	s := tiny.Random(rng, c.cfg)
	if len(s.Txns) == 0 || !s.Txns[0].HasTimes {
		return
	}
	st := c.stream(rng, s)
	want := definition(st.txns, st.opt)
	say := func(format string, args ...any) {
		t.Errorf("%s: seed %d: %s\nticks %v, max_transaction %d, unique values %v, in this order:\n%s", c.name, seed, fmt.Sprintf(format, args...), st.tick,
			st.opt.MaxTransaction, st.opt.UniqueValues, script.Format(script.Script{Header: s.Header, Txns: st.txns}))
	}
	e := incremental.New(st.opt)
	var ticked []verdict.Violation
	for i := range st.txns {
		e.Step(&st.txns[i], st.end[i])
		if st.tick[i] != 0 {
			ticked = append(ticked, e.Tick(st.tick[i]).Violations...)
		}
	}
	for _, v := range ticked {
		if want[v.Level] {
			say("a tick says %v broken: %+v", v.Level, v)
			return
		}
	}
	for _, r := range e.Close() {
		told[r.Outcome]++
		missed := r.Outcome == verdict.Satisfied && !want[r.Level] && st.opt.Coverage == record.CoverageComplete &&
			!(st.late && (r.Level == verdict.SSER || r.Level == verdict.StrongSI))
		undecided := r.Outcome == verdict.Unknown && !c.cfg.Duplicates && !(r.NoTimes && c.untimed > 0)
		switch {
		case missed, undecided, r.Outcome == verdict.Violated && want[r.Level]:
			say("%v: engine says %v (%v, %d), the definition %v: %+v", r.Level, r.Outcome, r.Reason, r.Count, want[r.Level], r.Violations)
			return
		}
		timely, ok := map[verdict.Level]verdict.Level{verdict.SER: verdict.SSER, verdict.SI: verdict.StrongSI}[r.Level]
		if holds, known := want[timely]; r.RealTimeOnly && (!ok || r.Outcome != verdict.Satisfied || known && holds) {
			say("%v: %v, with a note that real time is not kept; %v holds: %v", r.Level, r.Outcome, timely, holds)
			return
		}
		for _, v := range r.Violations {
			if want[v.Level] {
				say("%v is said broken by %+v", v.Level, v)
				return
			}
			if ok, why := proves(v, r.Level, st.txns, st.opt); !ok {
				say("the evidence of %v %v at %v proves nothing:\n%s%+v", v.Level, v.Kind, r.Level, why, v)
				return
			}
		}
	}
}

// stream draws an order of arrival and ticks.
func (c *course) stream(rng *rand.Rand, s script.Script) stream {
	def := oracle.FromHeader(s.Header)
	st := stream{txns: slices.Clone(s.Txns), opt: incremental.Options{Levels: strong, UnseenUnique: true, Initial: def.Initial, Coverage: def.Coverage,
		Sessions: def.Sessions, Clock: def.Clock, MaxSkew: def.MaxSkew, Online: true, UniqueValues: !c.cfg.Duplicates && rng.IntN(2) == 0}}
	type arriving struct {
		txn record.Transaction
		at  int64
	}
	var in []arriving
	last := map[string]int64{}
	for _, x := range st.txns {
		at := x.End
		if c.lateness > 0 {
			at += rng.Int64N(c.lateness + 1)
		}
		at = max(at, last[x.Session])
		last[x.Session] = at
		in = append(in, arriving{x, at})
	}
	slices.SortStableFunc(in, func(a, b arriving) int { return cmp.Compare(a.at, b.at) })
	for i, a := range in {
		st.txns[i] = a.txn
		st.end = append(st.end, a.txn.End)
	}
	least := int64(1 << 40) // the least end still to come
	st.tick = make([]int64, len(st.txns))
	for i := len(in) - 1; i >= 0; i-- {
		if rng.IntN(c.tick) == 0 {
			st.tick[i] = least - rng.Int64N(3)
		}
		least = min(least, st.end[i])
	}
	if c.bounded && possible(st.txns, def.MaxSkew) {
		for _, x := range st.txns {
			st.opt.MaxTransaction = max(st.opt.MaxTransaction, x.End-x.Start, 1)
		}
	}
	for i := range st.txns {
		x := &st.txns[i]
		if rng.IntN(100) < c.untimed {
			x.Start, x.End, x.HasTimes = 0, 0, false
		}
		if rng.IntN(100) < c.stepped {
			x.Start -= rng.Int64N(6)
			x.End = x.Start + rng.Int64N(x.End-x.Start+1)
		}
	}
	latest := int64(math.MinInt64)
	for _, x := range trusted(st.txns) {
		if x.HasTimes {
			st.late = st.late || x.End < latest
			latest = max(latest, x.End)
		}
	}
	if c.change != nil {
		c.change(&st.opt)
	}
	return st
}

// possible tells whether no read ended before its writer had started, by clocks
// that differ by at most skew: what MaxTransaction presumes.
func possible(txns []record.Transaction, skew int64) bool {
	start := map[record.Op]int64{}
	for _, w := range txns {
		for _, op := range w.Ops {
			if op.Kind == record.Write {
				start[record.Op{Key: op.Key, Value: op.Value}] = w.Start
			}
		}
	}
	for _, r := range txns {
		for _, op := range r.Ops {
			if at, ok := start[record.Op{Key: op.Key, Value: op.Value}]; ok && op.Kind == record.Read && at > r.End+skew {
				return false
			}
		}
	}
	return true
}

// definition asks the oracle, telling it of no times that the engine can't trust:
// those of a clock that stepped back within its session.
func definition(txns []record.Transaction, opt incremental.Options) map[verdict.Level]bool {
	want := map[verdict.Level]bool{}
	txns = trusted(txns)
	for _, l := range opt.Levels {
		want[l] = oracle.Holds(l, txns, oracle.Options{Initial: opt.Initial, Coverage: opt.Coverage, Sessions: opt.Sessions,
			Clock: opt.Clock, MaxSkew: opt.MaxSkew})
	}
	return want
}

func trusted(txns []record.Transaction) []record.Transaction {
	txns = slices.Clone(txns)
	start, end := map[string]int64{}, map[string]int64{}
	for i := range txns {
		x := &txns[i]
		if x.Status != record.Committed || !x.HasTimes {
			continue
		}
		if before, ok := end[x.Session]; ok && (x.Start < start[x.Session] || x.End < before) {
			x.HasTimes = false
			continue
		}
		start[x.Session], end[x.Session] = x.Start, x.End
	}
	return txns
}

// proves tells whether the oracle calls the evidence of v violated by itself,
// and cut down to its exhibits.
func proves(v verdict.Violation, level verdict.Level, txns []record.Transaction, opt incremental.Options) (bool, string) {
	txns = trusted(txns)
	def := oracle.Options{Initial: opt.Initial, Coverage: opt.Coverage, Sessions: opt.Sessions, Clock: opt.Clock, MaxSkew: opt.MaxSkew}
	var cut []record.Transaction
	for i, id := range v.Evidence {
		x := txns[id]
		if len(v.Exhibits) > 0 {
			x.Ops = exhibited(x.Ops, v.Exhibits[i])
		}
		cut = append(cut, x)
	}
	for _, id := range v.Txns {
		if !slices.Contains(v.Evidence, id) {
			return false, fmt.Sprintf("transaction %d takes part and is no evidence\n", id)
		}
	}
	if !slices.IsSorted(v.Evidence) {
		return false, "evidence is not sorted\n"
	}
	if oracle.Holds(level, cut, def) {
		return false, script.Format(script.Script{Txns: cut})
	}
	return true, ""
}

// exhibited are the operations that an exhibit names.
func exhibited(ops []record.Op, x verdict.Exhibit) []record.Op {
	var out []record.Op
	wrote := map[string]bool{}
	for _, op := range ops {
		isRead := op.Kind == record.Read
		if slices.Contains(x.All, op.Key) || isRead && !wrote[op.Key] && slices.Contains(x.Reads, op.Key) ||
			!isRead && slices.Contains(x.Writes, op.Key) {
			out = append(out, op)
		}
		wrote[op.Key] = wrote[op.Key] || !isRead
	}
	return out
}
