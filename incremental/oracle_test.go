package incremental_test

import (
	"cmp"
	"flag"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/isowatch/isowatch/incremental"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/oracle"
	"github.com/isowatch/isowatch/internal/lab/oracle/script"
	"github.com/isowatch/isowatch/internal/lab/oracle/tiny"
	"github.com/isowatch/isowatch/internal/lab/race"
	"github.com/isowatch/isowatch/internal/lab/seeds"
)

var (
	histories = flag.Int("histories", race.Draws(12, 120), "random histories for each way of checking and each kind of history")
	seedFrom  = seeds.First
	failures  = flag.Int("failures", 1, "kinds of disagreement to show for each way and kind of history")
)

var strong = []verdict.Level{verdict.SI, verdict.StrongSI, verdict.SER, verdict.SSER}

// levelSets are what may be asked of one engine at once; each history is given to
// an engine for one of them, and to one for each level of it alone.
var levelSets = [][]verdict.Level{
	verdict.Levels(),
	{verdict.RC, verdict.RA, verdict.CC, verdict.SI, verdict.SER, verdict.SSER},
	verdict.Levels(),
	{verdict.G1, verdict.RC, verdict.RA, verdict.CC},
	strong,
	verdict.Levels(),
	{verdict.PC, verdict.SI, verdict.CC},
	{verdict.LIN, verdict.G1, verdict.PC, verdict.StrongSI, verdict.SER},
}

// levelsFor are those of levelSets that a seed has; with lin, where that applies.
func levelsFor(seed uint64, txns []record.Transaction) []verdict.Level {
	out := levelSets[seed%uint64(len(levelSets))]
	if lin := verdict.LIN; slices.Contains(oracle.Levels(txns), lin) && !slices.Contains(out, lin) {
		return append(slices.Clone(out), lin)
	}
	return out
}

// ignoreClock leaves real time out, and the levels that ask for it.
func ignoreClock(o *incremental.Options) {
	o.Clock = record.ClockIgnore
	o.Levels = slices.DeleteFunc(slices.Clone(o.Levels), func(l verdict.Level) bool {
		return l == verdict.SSER || l == verdict.StrongSI || l == verdict.LIN
	})
}

// A way is one way through the engine; all must agree with the oracle.
type way struct {
	name   string
	cfg    tiny.Config
	change func(*incremental.Options)
	online bool
	quiet  bool // no ticks
}

var plain = tiny.Config{Aborted: true, Mutations: 2, Weak: 40, OneKey: 20}
var timed = tiny.Config{Aborted: true, Mutations: 2, Times: true, Weak: 30, OneKey: 20}
var instants = tiny.Config{Aborted: true, Mutations: 1, Times: true, Weak: 30, OneKey: 20}
var partial = tiny.Config{Aborted: true, Mutations: 2, Times: true, Partial: true, PartialLists: true, Weak: 40}
var wild = tiny.Config{Aborted: true, Mutations: 2, Times: true, Weak: 30, OneKey: 10, Partial: true, Duplicates: true, Unknown: true, Appends: true, PartialLists: true, Mixed: true}
var many = tiny.Config{Txns: 6, Keys: 2, Sessions: 6, Ops: 3, Mutations: 1}

// A kind is what histories have in them; every way is tried with every kind.
type kind struct {
	name string
	set  func(*tiny.Config)
}

var kinds = []kind{
	{"unique", func(*tiny.Config) {}},
	{"duplicates", func(c *tiny.Config) {
		c.Keys, c.Duplicates, c.Values, c.Always, c.Updates, c.Mutations = 2, true, 2, true, 50, 3
	}},
	{"unknown", func(c *tiny.Config) { c.Keys, c.Unknown, c.Updates, c.Mutations = 2, true, 50, 5 }},
	{"lists", func(c *tiny.Config) { c.Appends, c.Always, c.Mutations = true, true, min(c.Mutations, 1) }},
	{"lists, unknown", func(c *tiny.Config) { c.Appends, c.Always, c.Unknown, c.Updates, c.Mutations = true, true, true, 30, 2 }},
	{"duplicates, unknown", func(c *tiny.Config) {
		c.Keys, c.Duplicates, c.Values, c.Always, c.Unknown, c.Updates, c.Mutations = 2, true, 2, true, true, 50, 4
	}},
	{"deletes", func(c *tiny.Config) {
		c.Keys, c.Ops, c.Common, c.Updates, c.Mutations = 2, 3, 40, 50, min(c.Mutations, 1)
	}},
	{"put back", func(c *tiny.Config) {
		c.Keys, c.Duplicates, c.Values, c.Back, c.Unknown, c.Mutations = 2, true, 2, 50, true, 3
	}},
	{"weak", func(c *tiny.Config) { c.Txns, c.Ops, c.Mutations, c.Weak, c.OneKey = 6, 5, 1, 100, 0 }},
	{"weak, duplicates", func(c *tiny.Config) {
		c.Keys, c.Ops, c.Duplicates, c.Values, c.Always, c.Mutations, c.Weak, c.OneKey = 2, 5, true, 2, true, 1, 100, 0
	}},
	{"one key", func(c *tiny.Config) { c.OneKey, c.Unknown = 100, true }},
	{"all", func(c *tiny.Config) {
		c.Duplicates, c.Values, c.Unknown, c.Appends, c.Mixed, c.Updates, c.Mutations = true, 2, true, true, true, 30, 3
	}},
}

// written has lists that somebody writes as a whole, empty ones above all.
func written(c *tiny.Config) {
	c.Txns, c.Keys, c.Ops, c.Appends, c.Always, c.Whole, c.Mutations = 7, 2, 3, true, true, 25, min(c.Mutations, 1)
}

func unchanged(*incremental.Options) {}

// byDatabase takes times for the database's own. si and ser are not asked then, but what they are read as, and not both.
func byDatabase(snapshot bool) func(*incremental.Options) {
	return func(o *incremental.Options) {
		o.Clock, o.MaxSkew = record.ClockDatabase, 0
		o.Levels = slices.DeleteFunc(slices.Clone(o.Levels), func(l verdict.Level) bool {
			serial := l == verdict.SSER || l == verdict.LIN
			return l == verdict.SI || l == verdict.SER || serial && snapshot || l == verdict.StrongSI && !snapshot
		})
		if snapshot {
			o.Levels = append(o.Levels, verdict.StrongSI)
		} else {
			o.Levels = append(o.Levels, verdict.SSER)
		}
		slices.Sort(o.Levels)
		o.Levels = slices.Compact(o.Levels)
	}
}

var ways = []way{
	{name: "chains", cfg: plain, change: unchanged},
	{name: "chains, blind", cfg: many, change: unchanged},
	{name: "banded", cfg: timed, change: unchanged},
	{name: "banded, ser", cfg: timed, change: func(o *incremental.Options) { o.Levels = []verdict.Level{verdict.SER} }},
	{name: "partial", cfg: partial, change: unchanged},
	{name: "partial, nothing unique", cfg: partial, change: func(o *incremental.Options) { o.UnseenUnique = new(false) }},
	{name: "clock ignored", cfg: timed, change: ignoreClock},
	{name: "bits", cfg: timed, change: func(o *incremental.Options) { o.Sessions = record.SessionsIgnore }},
	{name: "database clock, si", cfg: instants, change: byDatabase(true)},
	{name: "database clock, ser", cfg: instants, change: byDatabase(false)},
	{name: "one violation", cfg: timed, change: func(o *incremental.Options) { o.MaxViolations = 1 }},
	{name: "online, chains", cfg: plain, online: true, change: unchanged},
	{name: "online, chains, no ticks", cfg: plain, online: true, quiet: true, change: unchanged},
	{name: "online, banded, no ticks", cfg: timed, online: true, quiet: true, change: unchanged},
	{name: "online, banded", cfg: timed, online: true, change: unchanged},
	{name: "online, database clock, si", cfg: instants, online: true, change: byDatabase(true)},
	{name: "online, database clock, ser", cfg: instants, online: true, change: byDatabase(false)},
	{name: "online, partial", cfg: partial, online: true, change: unchanged},
}

// Every level, all representations of reachability, online and batch, agree
// with the definitions on random histories, valid and mutated, of every kind;
// every satisfied verdict of the batch way has a proof that replays, and every
// violation evidence that proves it.
func TestAgreesWithOracle(t *testing.T) {
	batch, online := summed(t, "batch"), summed(t, "online")
	for _, w := range ways {
		sum := batch
		if w.online {
			sum = online
		}
		for _, k := range kinds {
			t.Run(w.name+"/"+k.name, func(t *testing.T) {
				t.Parallel()
				cfg := w.cfg
				k.set(&cfg)
				compare(t, sum, func(seed uint64) (stream, bool) { return w.draw(seed, cfg), true })
			})
		}
	}
}

// What the database's log says of who wrote first is held to, and held against what clients saw.
func TestAgreesWithOracleByTheLog(t *testing.T) {
	sum := summed(t, "by the log")
	for _, w := range ways {
		for _, k := range kinds {
			t.Run(w.name+"/"+k.name, func(t *testing.T) {
				t.Parallel()
				cfg := w.cfg
				k.set(&cfg)
				compare(t, sum, func(seed uint64) (stream, bool) {
					st := w.draw(seed, cfg)
					tiny.Log(rand.New(rand.NewPCG(seed, 17)), st.txns)
					return st, true
				})
			})
		}
	}
}

// Whoever empties a list, or writes it as a whole, may come behind all who read what that left. Few histories show it, so there
// are more of them.
func TestListsThatAreWritten(t *testing.T) {
	for _, w := range ways {
		cfg := w.cfg
		written(&cfg)
		for seed := range uint64(race.Draws(150, 3000)) {
			if st := w.draw(seed, cfg); len(st.opt.Levels) > 0 {
				if c := st.examine(newTally()); c != nil {
					t.Fatalf("%s, seed %d: %s: %s\n%v", w.name, seed, c.class, c.says, &st)
				}
			}
		}
	}
}

// By the database's clock a session may run backwards: at levels that are held to it that is told, as what it is, and at
// pc it is nothing.
func TestSessionsAgainstInstants(t *testing.T) {
	for _, w := range ways {
		if w.online || !strings.HasPrefix(w.name, "database clock") {
			continue
		}
		for seed := range uint64(race.Draws(300, 3000)) {
			st := w.draw(seed, w.cfg)
			rng := rand.New(rand.NewPCG(seed, 11))
			a, b := &st.txns[rng.IntN(len(st.txns))], &st.txns[rng.IntN(len(st.txns))]
			if a.Session != b.Session || len(st.opt.Levels) == 0 {
				continue
			}
			a.Start, a.End, b.Start, b.End = b.Start, b.End, a.Start, a.End
			if c := st.examine(newTally()); c != nil {
				t.Fatalf("%s, seed %d: %s: %s\n%v", w.name, seed, c.class, c.says, &st)
			}
		}
	}
}

// summed is a tally for subtests, which is logged in the end.
func summed(t *testing.T, name string) func(*tally) {
	var mu sync.Mutex
	sum := newTally()
	t.Cleanup(func() { t.Logf("%s: %v", name, sum) })
	return func(part *tally) {
		mu.Lock()
		defer mu.Unlock()
		sum.add(part)
	}
}

// compare examines the streams that draw makes, and shows what is wrong, small.
func compare(t *testing.T, sum func(*tally), draw func(seed uint64) (stream, bool)) {
	told, shown := newTally(), map[string]bool{} // classes
	for i := range *histories {
		seed := *seedFrom + uint64(i)
		st, ok := draw(seed)
		if !ok || len(st.opt.Levels) == 0 {
			continue
		}
		if c := st.examine(told); c != nil && !shown[c.class] {
			shown[c.class] = true
			small, again := st.shrunk(c.class)
			if again == nil {
				again = c // it went away: not the same twice
			}
			t.Errorf("seed %d, levels %v: %s: %s\n%v", seed, small.opt.Levels, again.class, again.says, &small)
			if len(shown) >= *failures {
				return
			}
		}
	}
	sum(told)
	if *histories >= 30 && (told.of(verdict.Satisfied)+told.of(verdict.Unknown) == 0 || told.of(verdict.Violated) == 0) {
		t.Errorf("the sample tells little: %v", told)
	}
}

// draw makes a history as it is fed in this way: in batch as it stands, online
// in the order of ends with a tick after each transaction.
func (w *way) draw(seed uint64, cfg tiny.Config) stream {
	s := tiny.Random(rand.New(rand.NewPCG(seed, 7)), cfg)
	def := record.Assumptions{}.Override(s.Header)
	st := stream{txns: slices.Clone(s.Txns), opt: incremental.Options{Levels: levelsFor(seed, s.Txns), Assumptions: record.Assumptions{Initial: def.Initial, Coverage: def.Coverage, Sessions: def.Sessions, Clock: def.Clock, MaxSkew: def.MaxSkew, UnseenUnique: new(true)}, Proof: true, Online: w.online, UniqueValues: !cfg.Duplicates && tiny.Unique(s.Txns, def.Initial)}}
	w.change(&st.opt)
	if w.online && len(st.txns) > 0 && st.txns[0].HasTimes {
		slices.SortStableFunc(st.txns, func(a, b record.Transaction) int { return cmp.Compare(a.End, b.End) })
	}
	for i := range st.txns {
		st.end = append(st.end, int64(i))
		st.tick = append(st.tick, st.txns[i].End)
		if w.quiet {
			st.tick[i] = noTick
		}
	}
	return st
}

// run feeds a history to an engine: in batch as it stands, online in the order
// of ends with a tick after each transaction. It returns the order stepped in.
func run(s script.Script, opt incremental.Options) ([]verdict.Result, []record.Transaction) {
	txns := slices.Clone(s.Txns)
	e := incremental.New(opt)
	if opt.Online && len(txns) > 0 && txns[0].HasTimes {
		slices.SortStableFunc(txns, func(a, b record.Transaction) int { return cmp.Compare(a.End, b.End) })
	}
	for i := range txns {
		e.Step(&txns[i], int64(i))
		if opt.Online {
			e.Tick(txns[i].End)
		}
	}
	return e.Close(), txns
}

// Where the second read of a key, which contradicts the first, is what shows that a transaction of unknown outcome took
// effect, the evidence of what it breaks has that read.
func TestSecondReadVouches(t *testing.T) {
	w := way{cfg: instants, online: true, change: byDatabase(true)}
	w.cfg.Keys, w.cfg.Unknown, w.cfg.Updates, w.cfg.Mutations = 2, true, 50, 5
	st := w.draw(90186, w.cfg)
	if c := st.examine(newTally()); c != nil {
		t.Errorf("%s: %s\n%v", c.class, c.says, &st)
	}
}
