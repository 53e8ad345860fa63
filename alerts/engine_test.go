package alerts_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/alerts/name"
	"github.com/isowatch/isowatch/incremental"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/alerttest"
	"github.com/isowatch/isowatch/internal/lab/oracle"
	"github.com/isowatch/isowatch/internal/lab/oracle/script"
	"github.com/isowatch/isowatch/internal/lab/oracle/tiny"
	"github.com/isowatch/isowatch/internal/lab/race"
)

// engine runs the engine over a history.
func engine(h record.Header, txns []record.Transaction, levels ...verdict.Level) []verdict.Result {
	o := record.Assumptions{}.Override(h)
	e := incremental.New(incremental.Options{Assumptions: record.Assumptions{UnseenUnique: new(true), Initial: o.Initial, Coverage: o.Coverage, Clock: o.Clock, Sessions: o.Sessions, MaxSkew: o.MaxSkew}, Levels: levels})
	for i := range txns {
		e.Step(&txns[i], 0)
	}
	return e.Close()
}

// engineJudge is the judge that the monitor uses.
func engineJudge(l verdict.Level, h record.Header, txns []record.Transaction) verdict.Outcome {
	return engine(h, txns, l)[0].Outcome
}

// engineFind is the finder that the monitor uses.
func engineFind(l verdict.Level, h record.Header, txns []record.Transaction) []verdict.Violation {
	return engine(h, txns, l)[0].Violations
}

// Whatever the engine finds in random histories becomes an alert whose evidence
// the oracle condemns, at a level that the whole history breaks too.
func TestEngineAndOracleAgree(t *testing.T) {
	n := uint64(race.Draws(200, 2000))
	names := map[string]int{}
	for seed := range n {
		rng := rand.New(rand.NewPCG(seed, 3))
		s := tiny.Random(rng, tiny.Config{Txns: 6, Times: true, Aborted: true, Partial: true, Keys: int(seed % 4), Mutations: 3})
		if seed%4 == 0 {
			initial := record.InitialAny
			s.Header.Initial = &initial
		}
		levels := verdict.Levels()
		rng.Shuffle(len(levels), func(i, j int) { levels[i], levels[j] = levels[j], levels[i] })
		levels = levels[:2+rng.IntN(len(levels)-1)]
		whole := oracle.Check(s.Txns, record.Assumptions{}.Override(s.Header))
		for _, r := range engine(s.Header, s.Txns, levels...) {
			for _, v := range r.Violations {
				ctx := context(s, levels...)
				ctx.Judge, ctx.Find = engineJudge, engineFind
				_, ctx.OneKey = whole[verdict.LIN]
				a, err := alerts.New(v, ctx)
				if err != nil {
					t.Fatalf("seed %d, %v: %v\n%s\n%+v", seed, levels, err, script.Format(s), v)
				}
				names[a.Name]++
				recheck(t, a)
				for _, b := range a.Breaks {
					l, _ := verdict.ParseLevel(b)
					if holds, judged := whole[l]; holds || !judged || !slices.Contains(levels, l) {
						t.Errorf("%s is said to break %s of %v", a.Name, b, levels)
					}
				}
				if t.Failed() {
					t.Fatalf("seed %d:\n%s\n%s", seed, script.Format(s), a.JSON())
				}
			}
		}
	}
	for _, name := range []string{"thin-air-read", "aborted-read", "not-my-own-write", "circular-information-flow", "non-monotonic-read", "non-repeatable-reads",
		"fractured-read", "session-guarantee-violation", "causality-violation", "lost-update", "write-skew", "stale-read"} {
		if names[name] == 0 && !race.Brief() { // the short sample is too small for all
			t.Errorf("no %s was found: %v", name, names)
		}
	}
	t.Log(names)
}

// A session guarantee that the engine says is broken becomes an alert that says
// which, and the oracle agrees.
func TestGuarantees(t *testing.T) {
	n := uint64(race.Draws(300, 1500))
	found := map[string]int{}
	for seed := range n {
		rng := rand.New(rand.NewPCG(seed, 11))
		s := tiny.Random(rng, tiny.Config{Txns: 6, Mutations: 3})
		o := record.Assumptions{}.Override(s.Header)
		e := incremental.New(incremental.Options{Assumptions: record.Assumptions{UnseenUnique: new(true), Initial: o.Initial, Coverage: o.Coverage, Sessions: o.Sessions}, Levels: []verdict.Level{verdict.CC}, Guarantees: true})
		for i := range s.Txns {
			e.Step(&s.Txns[i], 0)
		}
		for _, g := range e.Close()[0].Guarantees {
			for _, v := range g.Violations {
				if v.Kind != verdict.Cycle || !slices.ContainsFunc(v.Cycle, func(e verdict.Edge) bool { return e.Type == verdict.RW || e.Why == verdict.ByOrder }) {
					continue // a read anomaly, or information flow: no guarantee survives these
				}
				ctx := context(s, verdict.CC)
				ctx.Judge = engineJudge // and nothing to make it another anomaly, which may break another guarantee or none
				a, err := alerts.New(v, ctx)
				if err != nil {
					t.Fatalf("seed %d: %v\n%s%+v", seed, err, script.Format(s), v)
				}
				recheck(t, a)
				if a.Guarantee != g.Guarantee.String() || oracle.HoldsGuarantee(g.Guarantee, s.Txns, o) {
					t.Errorf("seed %d: %v is called %s, %q\n%s%s", seed, g.Guarantee, a.Name, a.Guarantee, script.Format(s), a.Explanation)
				}
				found[a.Guarantee]++
			}
		}
	}
	t.Log(found)
	for _, g := range verdict.Guarantees() {
		if found[g.String()] == 0 && !race.Brief() {
			t.Errorf("%v was never found broken", g)
		}
	}
}

// The same with duplicate values, unknown outcomes and lists: what the engine
// exhibits is enough for evidence that it condemns, the oracle condemns, and
// that is a part of the history, all of whose possible writers it has.
func TestEngineEvidenceOfAmbiguousHistories(t *testing.T) {
	n := uint64(race.Draws(300, 4000))
	names, whys := map[string]int{}, map[verdict.Why]int{}
	for seed := range n {
		s, rng := ambiguous(seed, 3)
		level := oneOf(rng, s.Txns)
		for _, r := range engine(s.Header, s.Txns, level) {
			for _, v := range r.Violations {
				ctx := context(s, level)
				ctx.Judge, ctx.Find = engineJudge, engineFind
				a, err := alerts.New(v, ctx)
				if err != nil {
					t.Fatalf("seed %d, %v: %v\n%s\n%+v", seed, level, err, script.Format(s), v)
				}
				names[a.Name]++
				for _, e := range slices.Concat(append(v.Cases, v.Cycle)...) {
					whys[e.Why]++
				}
				rest := recheck(t, a)
				part(t, s.Txns, rest)
				candidates(t, s.Txns, rest, a)
				if t.Failed() {
					t.Fatalf("seed %d, %v:\n%s\n%s\n%+v", seed, level, script.Format(s), a.JSON(), v)
				}
			}
		}
	}
	for _, name := range []string{"incompatible-order", "duplicate-elements", "thin-air-read", "intermediate-read", "lost-update", "session-guarantee-violation"} {
		if names[name] == 0 && !race.Brief() {
			t.Errorf("no %s was found: %v", name, names)
		}
	}
	t.Log(names, whys)
}

// The engine finds in each case by hand an anomaly of the name that the case has,
// unless a strong level inferred an order there: then there are several ways to see it.
func TestEngineNames(t *testing.T) {
	for _, c := range alerttest.Cases {
		if c.History == "" || c.Level.Implies(verdict.SI) && (strings.Contains(c.Cycle, "order") || len(c.Cases) > 0) {
			continue
		}
		s, _ := c.Load(t)
		for _, r := range engine(s.Header, s.Txns, c.Level) {
			if r.Reason == verdict.NotChecked {
				continue // as long as the engine says that it does not check what is there
			}
			var got []string
			for _, v := range r.Violations {
				ctx := context(s, c.Want.Weakest, c.Level) // of less, the evidence may show less
				ctx.Judge, ctx.Find = engineJudge, engineFind
				a, err := alerts.New(v, ctx)
				if err != nil {
					t.Errorf("%s: %v", c.Title, err)
				}
				recheck(t, a)
				got = append(got, a.Name)
			}
			if !slices.Contains(got, c.Want.Name) {
				t.Errorf("%s at %v: %v, want %s", c.Title, c.Level, got, c.Want.Name)
			}
		}
	}
}

// Each read of a key read twice is missed by somebody, so that the cycle has no
// anti-dependency: it is in the reasons of its edges.
func TestRepeatedReadsInReasons(t *testing.T) {
	s, err := script.Parse(`initial any
s0 T1: r(x,3) r(x,5)
s0 T2: r(y,2) r(x,5)
s2 T3: w(y,2) w(x,3)
s3 T4: w(x,5)
`)
	if err != nil {
		t.Fatal(err)
	}
	for _, level := range []verdict.Level{verdict.RA, verdict.CC} {
		vs := engine(s.Header, s.Txns, level)[0].Violations
		if len(vs) == 0 {
			t.Fatalf("%v holds", level)
		}
		for _, v := range vs {
			ctx := context(s, level)
			ctx.Judge, ctx.Find = engineJudge, engineFind
			a, err := alerts.New(v, ctx)
			if err != nil {
				t.Fatal(err)
			}
			if reader, key, ok := name.Repeated(v, name.Name{Name: a.Name}, ctx.Lookup); ok && key != "x" {
				t.Errorf("%v: %d reads %s twice", level, reader, key)
			}
		}
	}
}
