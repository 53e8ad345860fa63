package incremental_test

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/isowatch/isowatch/incremental"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/oracle/script"
	"github.com/isowatch/isowatch/internal/lab/oracle/tiny"
)

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

var blind = tiny.Config{Txns: 6, Keys: 2, Sessions: 6, Ops: 3, Mutations: 1, Times: true, Weak: 30}

var courses = []course{
	{name: "in order, ticks rarely", cfg: timed, tick: 3},
	{name: "in order, bounded", cfg: timed, tick: 1, bounded: true},
	{name: "late", cfg: timed, lateness: 6, tick: 2},
	{name: "late, bounded", cfg: timed, lateness: 6, tick: 1, bounded: true},
	{name: "late, no ticks", cfg: timed, lateness: 20, tick: 1000},
	{name: "blind", cfg: blind, tick: 2, bounded: true},
	{name: "blind, late", cfg: blind, tick: 2, lateness: 4},
	{name: "blind, bounded", cfg: blind, tick: 2, bounded: true},
	{name: "blind, late, solved early", cfg: blind, tick: 4, lateness: 4,
		change: func(o *incremental.Options) { o.SolveAt = 1 }},
	{name: "mixed", cfg: timed, tick: 2, untimed: 30},
	{name: "mixed, late", cfg: timed, tick: 2, untimed: 30, lateness: 5, bounded: true},
	{name: "blind, mixed, solved early", cfg: blind, tick: 1, untimed: 25, lateness: 3, bounded: true, change: func(o *incremental.Options) { o.SolveAt, o.UniqueValues = 1, false }},
	{name: "stepped", cfg: timed, tick: 2, stepped: 30},
	{name: "stepped, late", cfg: blind, tick: 2, stepped: 30, lateness: 4},
	{name: "sessions ignored", cfg: timed, tick: 2, bounded: true, change: func(o *incremental.Options) { o.Sessions = record.SessionsIgnore }},
	{name: "sessions ignored, late", cfg: blind, tick: 2, lateness: 5, change: func(o *incremental.Options) { o.Sessions = record.SessionsIgnore }},
	{name: "partial", cfg: partial, tick: 1, lateness: 4, bounded: true},
	{name: "clock ignored", cfg: timed, tick: 2, lateness: 4, change: ignoreClock},
	{name: "clock ignored, bounded", cfg: timed, tick: 1, lateness: 2, bounded: true, change: ignoreClock},
	{name: "blind, clock ignored, bounded", cfg: blind, tick: 2, lateness: 4, bounded: true, change: func(o *incremental.Options) {
		ignoreClock(o)
		o.UniqueValues = false
	}},
	{name: "blind, untimed, spaced", cfg: blind, tick: 1, untimed: 100, bounded: true, change: spaced},
	{name: "blind, mixed, spaced", cfg: blind, tick: 1, untimed: 25, lateness: 3, change: spaced},
	{name: "clock ignored, spaced", cfg: timed, tick: 1, lateness: 2, bounded: true, change: func(o *incremental.Options) {
		ignoreClock(o)
		spaced(o)
	}},
	{name: "one violation", cfg: timed, tick: 2, change: func(o *incremental.Options) { o.MaxViolations = 1 }},
}

// spaced has most ticks leave what is open to later ones.
func spaced(o *incremental.Options) { o.Spacing = 1 << 20 }

// However a history comes in, the stream's verdicts are those of the
// definitions, and no tick ever tells what is not so.
func TestCoursesAgreeWithOracle(t *testing.T) {
	sum := summed(t, "online")
	for _, c := range courses {
		for _, k := range kinds {
			t.Run(c.name+"/"+k.name, func(t *testing.T) {
				t.Parallel()
				cfg := c.cfg
				k.set(&cfg)
				cfg.Mixed = false // who has not seen the append can't know that it is a list
				compare(t, sum, func(seed uint64) (stream, bool) { return c.draw(seed, cfg) })
			})
		}
	}
}

// draw makes a history with times and lets it come in.
func (c *course) draw(seed uint64, cfg tiny.Config) (stream, bool) {
	rng := rand.New(rand.NewPCG(seed, 11))
	s := tiny.Random(rng, cfg)
	if len(s.Txns) == 0 || !s.Txns[0].HasTimes {
		return stream{}, false
	}
	st := c.stream(rng, s, cfg, levelsFor(seed, s.Txns))
	return st, true
}

// stream draws an order of arrival and ticks.
func (c *course) stream(rng *rand.Rand, s script.Script, cfg tiny.Config, levels []verdict.Level) stream {
	def := record.Assumptions{}.Override(s.Header)
	st := stream{txns: slices.Clone(s.Txns), opt: incremental.Options{Levels: levels, Assumptions: record.Assumptions{UnseenUnique: new(true), Initial: def.Initial, Coverage: def.Coverage, Sessions: def.Sessions, Clock: def.Clock, MaxSkew: def.MaxSkew}, Online: true, UniqueValues: !cfg.Duplicates && !cfg.Mixed && rng.IntN(2) == 0}}
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
		st.tick[i] = noTick
		if rng.IntN(c.tick) == 0 {
			st.tick[i] = least - rng.Int64N(3)
		}
		least = min(least, st.end[i])
	}
	if c.bounded && tiny.Possible(st.txns, def.MaxSkew) {
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
	if rng.IntN(2) == 0 { // so that what is new is solved alone in small histories, too
		st.opt.SolveAt = 1 + rng.IntN(8)
	}
	if c.change != nil {
		c.change(&st.opt)
	}
	return st
}
