package oracle_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/oracle"
	"github.com/isowatch/isowatch/internal/lab/oracle/script"
	"github.com/isowatch/isowatch/internal/lab/oracle/tiny"
	"github.com/isowatch/isowatch/internal/lab/race"
)

var everything = tiny.Config{Txns: 6, Sessions: 4, Keys: 2, Times: true, Duplicates: true, Aborted: true, Unknown: true, Partial: true, Appends: true, PartialLists: true, Mutations: 3, Weak: 25, OneKey: 10, Back: 10}

func random(seed uint64, cfg tiny.Config) (script.Script, record.Assumptions) {
	s := tiny.Random(rand.New(rand.NewPCG(seed, 7)), cfg)
	return s, record.Assumptions{}.Override(s.Header)
}

// The levels are defined in two ways that share nothing; that the implications
// between them come out right on random histories is evidence for both.
func TestLevelsImplyLevels(t *testing.T) {
	only := map[verdict.Level]int{}  // histories that l is a strongest level of
	lists := map[verdict.Level]int{} // of these, with lists
	for seed := range uint64(race.Draws(2000, 12_000)) {
		s, opt := random(seed, everything)
		got := oracle.Check(s.Txns, opt)
		var hold []verdict.Level
		for _, l := range oracle.Levels(s.Txns) {
			if !got[l] {
				continue
			}
			hold = append(hold, l)
			for m, holds := range got {
				if l.Implies(m) && !holds {
					t.Fatalf("seed %d: %v holds and %v doesn't:\n%s", seed, l, m, script.Format(s))
				}
			}
		}
		for _, l := range verdict.Maximal(hold) {
			only[l]++
			if usesLists(s.Txns) {
				lists[l]++
			}
		}
	}
	for _, l := range verdict.Levels() {
		if (only[l] < 5 || lists[l] < 2) && !race.Brief() {
			t.Errorf("%v is the strongest level of %d histories, %d with lists: the sample tells little about it", l, only[l], lists[l])
		}
	}
}

// Causal consistency is every session guarantee, and each of them a commit
// order; read atomic sees at least what its session wrote. No guarantee implies
// another.
func TestLevelsImplyGuarantees(t *testing.T) {
	only := map[verdict.Guarantee]int{} // histories that break it alone
	lists := 0
	for seed := range uint64(race.Draws(1500, 6000)) {
		s, opt := random(seed, everything)
		hold := map[verdict.Guarantee]bool{}
		count := 0
		for _, g := range verdict.Guarantees() {
			hold[g] = oracle.HoldsGuarantee(g, s.Txns, opt)
			if hold[g] {
				count++
			}
		}
		check := func(l verdict.Level, implies bool, m any) {
			if !implies {
				t.Fatalf("seed %d: %v holds: %v; this does not: %v:\n%s", seed, l, oracle.Holds(l, s.Txns, opt), m, script.Format(s))
			}
		}
		cc, ra, g1 := oracle.Holds(verdict.CC, s.Txns, opt), oracle.Holds(verdict.RA, s.Txns, opt), oracle.Holds(verdict.G1, s.Txns, opt)
		check(verdict.CC, !cc || count == len(hold), hold)
		check(verdict.RA, !ra || hold[verdict.ReadYourWrites], hold)
		check(verdict.G1, g1 || count == 0, hold)
		if count == len(hold)-1 {
			for g, holds := range hold {
				if !holds {
					only[g]++
				}
			}
			if usesLists(s.Txns) {
				lists++
			}
		}
	}
	for _, g := range verdict.Guarantees() {
		if only[g] < 2 && !race.Brief() {
			t.Errorf("%v is the one broken guarantee of %d histories: the sample tells little about it", g, only[g])
		}
	}
	if lists < 5 && !race.Brief() {
		t.Errorf("%d histories with lists break one guarantee", lists)
	}
}

func usesLists(txns []record.Transaction) bool {
	return slices.ContainsFunc(txns, func(x record.Transaction) bool {
		return slices.ContainsFunc(x.Ops, func(op record.Op) bool { return op.Kind == record.Append })
	})
}

// Who sees less must believe more: what holds under complete coverage holds
// under partial; what holds with real time holds without; dropping session
// order breaks nothing.
func TestAssumingLessBreaksNothing(t *testing.T) {
	for seed := range uint64(race.Draws(600, 2500)) {
		s, opt := random(seed, everything)
		before := oracle.Check(s.Txns, opt)
		for name, less := range map[string]func(*record.Assumptions){
			"partial coverage": func(o *record.Assumptions) { o.Coverage = record.CoveragePartial },
			"no sessions":      func(o *record.Assumptions) { o.Sessions = record.SessionsIgnore },
			"more skew":        func(o *record.Assumptions) { o.MaxSkew += 3 },
		} {
			weaker := opt
			less(&weaker)
			for l, holds := range oracle.Check(s.Txns, weaker) {
				if before[l] && !holds {
					t.Fatalf("seed %d: %v holds, but not with %s:\n%s", seed, l, name, script.Format(s))
				}
			}
		}
	}
}

// BenchmarkCheck judges five transactions at the four strong levels.
func BenchmarkCheck(b *testing.B) {
	seed := uint64(0)
	for b.Loop() {
		seed++
		s, opt := random(seed, tiny.Config{Mutations: 2})
		for _, l := range []verdict.Level{verdict.SI, verdict.StrongSI, verdict.SER, verdict.SSER} {
			oracle.Holds(l, s.Txns, opt)
		}
	}
}
