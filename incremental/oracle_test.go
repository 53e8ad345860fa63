package incremental_test

import (
	"cmp"
	"flag"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/isowatch/isowatch/incremental"
	"github.com/isowatch/isowatch/incremental/certificate"
	"github.com/isowatch/isowatch/incremental/oracle"
	"github.com/isowatch/isowatch/incremental/oracle/script"
	"github.com/isowatch/isowatch/incremental/oracle/tiny"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
)

var (
	histories = flag.Int("histories", 4000, "random histories for each way of checking")
	seedFrom  = flag.Uint64("seed", 1, "the first seed")
)

var strong = []verdict.Level{verdict.SI, verdict.StrongSI, verdict.SER, verdict.SSER}

// A way is one way through the engine; all must agree with the oracle.
type way struct {
	name   string
	cfg    tiny.Config
	change func(*incremental.Options)
	online bool
}

var plain = tiny.Config{Aborted: true, Mutations: 2}
var timed = tiny.Config{Aborted: true, Mutations: 2, Times: true}
var wild = tiny.Config{Aborted: true, Mutations: 2, Times: true, Partial: true, Duplicates: true, Unknown: true, Appends: true}
var many = tiny.Config{Txns: 6, Keys: 2, Sessions: 6, Ops: 3, Mutations: 1}

var ways = []way{
	{name: "chains", cfg: plain, change: func(o *incremental.Options) {}},
	{name: "chains/blind", cfg: many, change: func(o *incremental.Options) {}},
	{name: "banded", cfg: timed, change: func(o *incremental.Options) {}},
	{name: "banded/ser", cfg: timed, change: func(o *incremental.Options) { o.Levels = []verdict.Level{verdict.SER} }},
	{name: "banded/partial", cfg: tiny.Config{Aborted: true, Mutations: 2, Times: true, Partial: true}, change: func(o *incremental.Options) {}},
	{name: "ignore", cfg: timed, change: func(o *incremental.Options) {
		o.Clock = record.ClockIgnore
		o.Levels = []verdict.Level{verdict.SI, verdict.SER}
	}},
	{name: "bits", cfg: timed, change: func(o *incremental.Options) { o.Sessions = record.SessionsIgnore }},
	{name: "wild", cfg: wild, change: func(o *incremental.Options) {}},
	{name: "online/wild", cfg: wild, online: true, change: func(o *incremental.Options) {}},
	{name: "online/chains", cfg: plain, online: true, change: func(o *incremental.Options) {}},
	{name: "online/banded", cfg: timed, online: true, change: func(o *incremental.Options) {}},
	{name: "online/partial", cfg: tiny.Config{Aborted: true, Mutations: 2, Times: true, Partial: true}, online: true, change: func(o *incremental.Options) {}},
}

// Every level, all representations of reachability, online and batch, agree
// with the definitions on random histories, valid and mutated; and every
// satisfied verdict has a proof that replays.
func TestAgreesWithOracle(t *testing.T) {
	for _, w := range ways {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			decided := map[verdict.Outcome]int{}
			for i := range *histories {
				compare(t, w, *seedFrom+uint64(i), decided)
				if t.Failed() {
					return
				}
			}
			t.Logf("verdicts: %v", decided)
			if decided[verdict.Satisfied] == 0 || decided[verdict.Violated] == 0 {
				t.Errorf("the sample tells little: %v", decided)
			}
		})
	}
}

func compare(t *testing.T, w way, seed uint64, decided map[verdict.Outcome]int) {
	s := tiny.Random(rand.New(rand.NewPCG(seed, 7)), w.cfg)
	def := oracle.FromHeader(s.Header)
	opt := incremental.Options{Levels: strong, Initial: def.Initial, Coverage: def.Coverage, Sessions: def.Sessions,
		Clock: def.Clock, MaxSkew: def.MaxSkew, Proof: true, Online: w.online, UniqueValues: !w.cfg.Duplicates, UnseenUnique: true}
	w.change(&opt)
	def.Sessions, def.Clock = opt.Sessions, opt.Clock
	for _, l := range opt.Levels {
		if opt.Clock == record.ClockIgnore && (l == verdict.SSER || l == verdict.StrongSI) {
			return
		}
	}
	want := oracle.Check(s.Txns, def)
	results, order := run(s, opt)
	clean := true // nothing in it that is not checked yet
	for _, x := range s.Txns {
		clean = clean && x.Status != record.Unknown
	}
	for _, r := range results {
		decided[r.Outcome]++
		// With partial coverage an unseen writer is a candidate without order, so
		// that a violation that needs its place in the order is not seen.
		partial := opt.Coverage == record.CoveragePartial
		bad := r.Outcome == verdict.Satisfied && !want[r.Level] && !partial || r.Outcome == verdict.Violated && want[r.Level] ||
			r.Outcome == verdict.Unknown && clean && !w.cfg.Duplicates && !w.cfg.Appends
		if bad {
			t.Errorf("%s: seed %d: %v: engine says %v (%v, %d), the definition %v:\n%s%v", w.name, seed, r.Level, r.Outcome, r.Reason, r.Count, want[r.Level],
				script.Format(s), r.Violations)
			return
		}
		if r.Outcome != verdict.Satisfied || w.online || partial {
			continue
		}
		if err := certificate.Replay(r.Level, order, r.Order, certificate.Options{Initial: opt.Initial, Coverage: opt.Coverage,
			Sessions: opt.Sessions, Clock: opt.Clock, MaxSkew: opt.MaxSkew}); err != nil {
			t.Errorf("%s: seed %d: %v: the proof fails: %v\n%s%v", w.name, seed, r.Level, err, script.Format(s), r.Order)
			return
		}
	}
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
