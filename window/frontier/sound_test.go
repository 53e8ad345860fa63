package frontier_test

import (
	"bytes"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/isowatch/isowatch/incremental"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/generate"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/oracle"
	"github.com/isowatch/isowatch/internal/lab/oracle/script"
	"github.com/isowatch/isowatch/internal/lab/oracle/tiny"
	"github.com/isowatch/isowatch/internal/lab/seeds"
	"github.com/isowatch/isowatch/window/frontier"
)

// A failure prints the seed; -histories 1 -seed SEED repeats it.
var (
	histories = flag.Int("histories", 400, "random histories of each kind")
	seedFrom  = seeds.First
)

// forgetting is how a history is cut and what its engines are told.
type forgetting struct {
	cuts    []int // the frontier has what is before; an engine begins at each
	options frontier.Options
	byKey   bool // coverage is complete, but for lossy keys
	base    bool // stubs are given when their keys are first touched
	restart bool // the frontier is kept and restored at each cut
	engine  incremental.Options
}

// released puts records in the order in which an order releases them: of sessions'
// first records the one that ended first. Times that contradict their session are
// dropped.
func released(txns []record.Transaction) []record.Transaction {
	var out []record.Transaction
	left := slices.Clone(txns)
	for len(left) > 0 {
		next := -1
		for i := range left {
			if slices.ContainsFunc(left[:i], func(t record.Transaction) bool { return t.Session == left[i].Session }) {
				continue
			}
			if next < 0 || left[i].HasTimes && left[next].HasTimes && left[i].End < left[next].End {
				next = i
			}
		}
		out = append(out, left[next])
		left = slices.Delete(left, next, next+1)
	}
	type clock struct{ start, end int64 }
	last := map[string]clock{}
	for i := range out {
		t := &out[i]
		if t.Status != record.Committed || !t.HasTimes {
			continue
		}
		if l, ok := last[t.Session]; ok && (t.Start < l.start || t.End < l.end) {
			t.HasTimes = false
			continue
		}
		last[t.Session] = clock{t.Start, t.End}
	}
	return out
}

// run gives a history to engines that begin at the cuts, and returns what they
// find violated, and at how many levels.
func (g *forgetting) run(t *testing.T, txns []record.Transaction) (broken map[verdict.Level]verdict.Violation) {
	broken = map[verdict.Level]verdict.Violation{}
	f := frontier.New(g.options)
	done := 0
	for i, cut := range g.cuts {
		for ; done < cut; done++ {
			f.Forget(&txns[done], int64(done))
		}
		if g.restart {
			var err error
			var b bytes.Buffer
			if err = f.Snapshot(&b); err == nil {
				f, err = frontier.Restore(g.options, b.Bytes())
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		to := len(txns)
		if i+1 < len(g.cuts) {
			to = min(to, g.cuts[i+1]+3)
		}
		g.segment(f, txns[cut:to], cut, to < len(txns), broken)
	}
	return broken
}

func (g *forgetting) segment(f *frontier.Frontier, txns []record.Transaction, from int, open bool, broken map[verdict.Level]verdict.Violation) {
	opt := g.engine
	if !g.byKey {
		opt.Coverage = record.CoveragePartial
	}
	e := incremental.New(opt)
	loaded := map[string]bool{}
	lose := func(key string, st frontier.State) {
		e.Lose(key, st&frontier.Written != 0 && st&frontier.Appended != 0)
	}
	if !g.base {
		for _, x := range txns {
			for _, op := range x.Ops {
				if st := f.State(op.Key); !loaded[op.Key] && st&frontier.Lossy != 0 {
					lose(op.Key, st)
				}
				loaded[op.Key] = true
			}
		}
		stubs, ok := f.All(math.MaxInt)
		if !ok {
			panic("not all keys are in memory")
		}
		for _, s := range stubs {
			for _, op := range s.Txn.Ops {
				if st := f.State(op.Key); !loaded[op.Key] && st&frontier.Lossy != 0 {
					lose(op.Key, st)
				}
				loaded[op.Key] = true
			}
			e.Step(&s.Txn, s.Arrival)
		}
	}
	for i := range txns {
		for _, op := range txns[i].Ops {
			if loaded[op.Key] || !g.base {
				continue
			}
			loaded[op.Key] = true
			st := f.State(op.Key)
			stubs := f.Stubs(op.Key)
			for _, s := range stubs {
				if !s.Txn.HasTimes || s.Txn.Status != record.Committed {
					st |= frontier.Lossy // it can't be given
				}
			}
			if st&frontier.Lossy != 0 || len(stubs) > 0 {
				lose(op.Key, st)
			}
			for _, s := range stubs {
				e.Base(&s.Txn)
			}
		}
		arrival := int64(from + i)
		if txns[i].HasTimes {
			arrival = txns[i].End
		}
		e.Step(&txns[i], arrival)
		if i%3 == 2 {
			note(broken, e.Tick(math.MinInt64).Violations)
		}
	}
	note(broken, e.Tick(math.MinInt64).Violations)
	if open && g.byKey { // who was read may come after the segment
		return
	}
	for _, r := range e.Close() {
		note(broken, r.Violations)
	}
}

func note(broken map[verdict.Level]verdict.Violation, found []verdict.Violation) {
	for _, v := range found {
		broken[v.Level] = v
	}
}

// kindsOfHistories are what may be in a history that has to stay innocent.
var kindsOfHistories = []struct {
	name string
	cfg  tiny.Config
}{
	{"plain", tiny.Config{Txns: 6, Mutations: 1, Aborted: true}},
	{"timed", tiny.Config{Txns: 6, Mutations: 2, Aborted: true, Times: true}},
	{"updates", tiny.Config{Txns: 7, Keys: 2, Updates: 70, Mutations: 1, Times: true}},
	{"weak", tiny.Config{Txns: 6, Ops: 5, Weak: 100, Mutations: 1}},
	{"unknown", tiny.Config{Txns: 6, Keys: 2, Unknown: true, Aborted: true, Updates: 40, Mutations: 2, Times: true}},
	{"lists", tiny.Config{Txns: 6, Appends: true, Always: true, Aborted: true, Mutations: 1, Times: true}},
	{"lists, unknown", tiny.Config{Txns: 6, Appends: true, Always: true, Unknown: true, Updates: 30, Mutations: 1}},
	{"put back", tiny.Config{Txns: 7, Keys: 2, Back: 40, Unknown: true, Mutations: 1, Times: true}},
	{"one key", tiny.Config{Txns: 6, OneKey: 100, Unknown: true, Mutations: 1, Times: true}},
}

func (g *forgetting) String() string {
	return fmt.Sprintf("cuts at %v, %+v, by key %v, base %v, restarts %v", g.cuts, g.options, g.byKey, g.base, g.restart)
}

func drawForgetting(rng *rand.Rand, n int, h record.Assumptions) forgetting {
	g := forgetting{
		options: frontier.Options{MaxSkew: h.MaxSkew, MaxPerKey: []int{1, 2, 8}[rng.IntN(3)]},
		base:    rng.IntN(3) == 0,
		restart: rng.IntN(4) == 0,
		byKey:   h.Coverage == record.CoverageComplete && rng.IntN(2) == 0,
		engine: incremental.Options{Assumptions: record.Assumptions{Initial: h.Initial, Coverage: h.Coverage, Sessions: h.Sessions, Clock: h.Clock, MaxSkew: h.MaxSkew, UnseenUnique: new(true)},
			UniqueValues: true, Online: true},
	}
	for at := 1 + rng.IntN(max(1, n-1)); at < n; at += 1 + rng.IntN(n) {
		g.cuts = append(g.cuts, at)
	}
	g.engine.Levels = verdict.Levels()
	if rng.IntN(2) == 0 {
		g.engine.Levels = g.engine.Levels[rng.IntN(len(g.engine.Levels)):]
	}
	return g
}

// What a frontier remembers in place of a history's beginning accuses nobody of
// what the whole history has not done, and is worth something.
func TestNobodyIsAccused(t *testing.T) {
	for _, k := range kindsOfHistories {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			sound, accused := 0, 0
			for i := range *histories {
				seed := *seedFrom + uint64(i)
				rng := rand.New(rand.NewPCG(seed, 5))
				s := tiny.Random(rng, k.cfg)
				txns := released(s.Txns)
				opt := record.Assumptions{}.Override(s.Header)
				g := drawForgetting(rng, len(txns), opt)
				g.engine.UniqueValues, g.engine.UnseenUnique = k.cfg.Back == 0, new(k.cfg.Back == 0) // a stream gives that up
				g.engine.Levels = slices.DeleteFunc(g.engine.Levels, func(l verdict.Level) bool { return !slices.Contains(oracle.Levels(txns), l) })
				if len(g.engine.Levels) == 0 {
					continue
				}
				broken := g.run(t, txns)
				holds := oracle.Check(txns, opt)
				for _, l := range g.engine.Levels {
					if holds[l] {
						sound++
					}
				}
				accused += len(broken)
				for l, v := range broken {
					if holds[l] {
						t.Fatalf("seed %d: %v is said broken, but holds: %+v\n%v\n%s", seed, l, v, &g, script.Format(script.Script{Header: s.Header, Txns: txns}))
					}
				}
			}
			t.Logf("%d levels hold, %d are found broken", sound, accused)
			if *histories >= 100 && (sound < 100 || accused == 0) {
				t.Error("the sample tells little")
			}
		})
	}
}

// Larger histories that a store has made which gives a level: no engine of any
// segment says anything at it.
func TestLargeHistoriesAreNotAccused(t *testing.T) {
	loads := []generate.Config{
		{Level: verdict.SSER, Workload: generate.General},
		{Level: verdict.SSER, Workload: generate.General, UnknownRate: 0.05, AbortRate: 0.05},
		{Level: verdict.SSER, Workload: generate.BlindW},
		{Level: verdict.SSER, Workload: generate.Append, AbortRate: 0.05},
	}
	for i, cfg := range loads {
		for l := range verdict.Level(5) {
			t.Run(fmt.Sprintf("%v/%v", cfg.Workload, l), func(t *testing.T) {
				t.Parallel()
				for round := range 2 + *histories/200 {
					seed := *seedFrom + uint64(1000*i+round)
					rng := rand.New(rand.NewPCG(seed, uint64(l)))
					cfg := cfg
					cfg.Seed, cfg.Level, cfg.Transactions, cfg.Keys, cfg.Sessions = seed, l, 150+rng.IntN(150), 5+rng.IntN(60), 2+rng.IntN(8)
					cfg.MaxSkew = time.Duration(rng.IntN(2)) * time.Millisecond
					cfg.NoTimes = rng.IntN(3) == 0
					g, err := generate.New(cfg)
					if err != nil {
						t.Fatal(err)
					}
					txns := released(slices.Collect(g.Transactions()))
					how := drawForgetting(rng, len(txns), record.Assumptions{}.Override(g.Header()))
					how.cuts = how.cuts[:0]
					for at := 20 + rng.IntN(50); at < len(txns); at += 20 + rng.IntN(80) {
						how.cuts = append(how.cuts, at)
					}
					level, ok := verdict.ParseLevel(l.String())
					if !ok {
						t.Fatalf("level %v", l)
					}
					how.engine.Levels = []verdict.Level{level}
					if how.engine.Clock = record.ClockPrune; len(how.cuts) == 0 {
						continue
					}
					for l, v := range how.run(t, txns) {
						t.Errorf("seed %d: %v is said broken, but holds: %+v\n%v", seed, l, v, &how)
					}
				}
			})
		}
	}
}
