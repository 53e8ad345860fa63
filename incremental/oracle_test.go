package incremental_test

import (
	"cmp"
	"flag"
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

var (
	histories = flag.Int("histories", 400, "random histories for each way of checking and each kind of history")
	seedFrom  = flag.Uint64("seed", 1, "the first seed")
	failures  = flag.Int("failures", 1, "disagreements to show for each way and kind")
)

var strong = []verdict.Level{verdict.SI, verdict.StrongSI, verdict.SER, verdict.SSER}

// A way is one way through the engine; all must agree with the oracle.
type way struct {
	name   string
	cfg    tiny.Config
	change func(*incremental.Options)
	online bool
	quiet  bool // no ticks
}

var plain = tiny.Config{Aborted: true, Mutations: 2}
var timed = tiny.Config{Aborted: true, Mutations: 2, Times: true}
var partial = tiny.Config{Aborted: true, Mutations: 2, Times: true, Partial: true, PartialLists: true}
var wild = tiny.Config{Aborted: true, Mutations: 2, Times: true, Partial: true, Duplicates: true, Unknown: true, Appends: true, PartialLists: true, Mixed: true}
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
	{"all", func(c *tiny.Config) {
		c.Duplicates, c.Values, c.Unknown, c.Appends, c.Mixed, c.Updates, c.Mutations = true, 2, true, true, true, 30, 3
	}},
}

func unchanged(*incremental.Options) {}

var ways = []way{
	{name: "chains", cfg: plain, change: unchanged},
	{name: "chains, blind", cfg: many, change: unchanged},
	{name: "banded", cfg: timed, change: unchanged},
	{name: "banded, ser", cfg: timed, change: func(o *incremental.Options) { o.Levels = []verdict.Level{verdict.SER} }},
	{name: "partial", cfg: partial, change: unchanged},
	{name: "partial, nothing unique", cfg: partial, change: func(o *incremental.Options) { o.UnseenUnique = false }},
	{name: "clock ignored", cfg: timed, change: func(o *incremental.Options) {
		o.Clock = record.ClockIgnore
		o.Levels = []verdict.Level{verdict.SI, verdict.SER}
	}},
	{name: "bits", cfg: timed, change: func(o *incremental.Options) { o.Sessions = record.SessionsIgnore }},
	{name: "one violation", cfg: timed, change: func(o *incremental.Options) { o.MaxViolations = 1 }},
	{name: "online, chains", cfg: plain, online: true, change: unchanged},
	{name: "online, chains, no ticks", cfg: plain, online: true, quiet: true, change: unchanged},
	{name: "online, banded, no ticks", cfg: timed, online: true, quiet: true, change: unchanged},
	{name: "online, banded", cfg: timed, online: true, change: unchanged},
	{name: "online, partial", cfg: partial, online: true, change: unchanged},
}

// Every level, all representations of reachability, online and batch, agree
// with the definitions on random histories, valid and mutated, of every kind;
// every satisfied verdict of the batch way has a proof that replays, and every
// violation evidence that proves it.
func TestAgreesWithOracle(t *testing.T) {
	for _, w := range ways {
		for _, k := range kinds {
			t.Run(w.name+"/"+k.name, func(t *testing.T) {
				t.Parallel()
				cfg := w.cfg
				k.set(&cfg)
				cfg.Mixed = cfg.Mixed && !w.online // who has not seen the append can't know that it is a list
				compare(t, func(seed uint64) (stream, bool) { return w.draw(seed, cfg), true })
			})
		}
	}
}

// compare examines the streams that draw makes, and shows what is wrong, small.
func compare(t *testing.T, draw func(seed uint64) (stream, bool)) {
	told, shown := newTally(), 0
	for i := range *histories {
		seed := *seedFrom + uint64(i)
		st, ok := draw(seed)
		if !ok {
			continue
		}
		if c := st.examine(told); c != nil {
			small, again := st.shrunk(c.class)
			if again == nil {
				again = c // it went away: not the same twice
			}
			t.Errorf("seed %d: %s: %s\n%v", seed, again.class, again.says, &small)
			if shown++; shown >= *failures {
				return
			}
		}
	}
	t.Logf("verdicts: %v; unknown: %v", told.outcomes, told.undecided)
	if told.outcomes[verdict.Satisfied]+told.outcomes[verdict.Unknown] == 0 || told.outcomes[verdict.Violated] == 0 {
		t.Errorf("the sample tells little: %v", told.outcomes)
	}
}

// draw makes a history as it is fed in this way: in batch as it stands, online
// in the order of ends with a tick after each transaction.
func (w *way) draw(seed uint64, cfg tiny.Config) stream {
	s := tiny.Random(rand.New(rand.NewPCG(seed, 7)), cfg)
	def := oracle.FromHeader(s.Header)
	st := stream{txns: slices.Clone(s.Txns), opt: incremental.Options{Levels: strong, Initial: def.Initial, Coverage: def.Coverage, Sessions: def.Sessions,
		Clock: def.Clock, MaxSkew: def.MaxSkew, Proof: true, Online: w.online, UniqueValues: !cfg.Duplicates && !cfg.Mixed, UnseenUnique: true}}
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
