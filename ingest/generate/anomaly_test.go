package generate

import (
	"slices"
	"testing"
	"time"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/oracle"
	"github.com/isowatch/isowatch/internal/lab/oracle/script"
	"github.com/isowatch/isowatch/internal/lab/race"
)

// weakestBroken is, for each anomaly, the weakest level that it breaks; it
// breaks those that imply this one, and no others.
var weakestBroken = map[string]verdict.Level{
	"thin-air-read": verdict.G1, "aborted-read": verdict.G1, "future-read": verdict.G1, "not-my-last-write": verdict.G1,
	"not-my-own-write": verdict.G1, "intermediate-read": verdict.G1, "non-monotonic-read": verdict.RC,
	"non-repeatable-reads": verdict.RA, "session-guarantee-violation": verdict.RA, "fractured-read": verdict.RA,
	"causality-violation": verdict.CC, "long-fork": verdict.PC, "lost-update": verdict.SI, "write-skew": verdict.SER,
	"phantom": verdict.RA, "predicate-lost-update": verdict.SI, "predicate-write-skew": verdict.SER,
	"incompatible-order": verdict.G1, "duplicate-elements": verdict.G1,
}

// Planted into a tiny history that would hold every level, an anomaly breaks
// exactly the levels it is known for, whatever the reader knows of the initial
// state; and it is found again by who didn't see the beginning.
func TestAnomaliesBreakExactlyTheirLevels(t *testing.T) {
	if len(anomalies)+len(listAnomalies)+len(predicateAnomalies) != len(weakestBroken) {
		t.Fatalf("%d anomalies, %d of lists", len(anomalies), len(listAnomalies))
	}
	for _, name := range slices.Concat(Anomalies(), PredicateAnomalies()) {
		t.Run(name, func(t *testing.T) {
			a := anomalyNamed(name)
			for seed := range uint64(race.Draws(50, 150)) {
				cfg := Config{Level: verdict.SSER, Seed: seed, Anomaly: name, Transactions: len(a.steps) + 2, Sessions: 4, Operations: 2, Keys: 2,
					Initial: record.Initial(seed % 3)}
				isPredicate := slices.Contains(PredicateAnomalies(), name)
				if isPredicate {
					cfg.Initial = record.InitialAbsent
				}
				if seed%2 == 0 {
					cfg.MaxSkew = 700_000
				}
				g, txns := history(t, cfg)
				if p := g.Planted(); len(p) != 1 || p[0].Anomaly != name || len(p[0].Transactions) != len(a.steps) {
					t.Fatalf("planted %v", p)
				}
				opt := record.Assumptions{}.Override(g.Header())
				for l, holds := range oracle.Check(txns, opt) {
					if want := !l.Implies(weakestBroken[name]); l != verdict.LIN && holds != want {
						t.Fatalf("seed %d: %v holds = %v, want %v:\n%s", seed, l, holds, want,
							script.Format(script.Script{Header: g.Header(), Txns: txns}))
					}
				}
				opt.Coverage = record.CoveragePartial
				if isPredicate {
					continue // that a row was not found shows nothing then
				}
				unseen := name == "thin-air-read" || name == "future-read" // may be of an unseen writer
				weakest := weakestBroken[name]
				if got := oracle.Holds(weakest, txns, opt); got != unseen {
					t.Fatalf("seed %d: under partial coverage %v holds = %v:\n%s", seed, weakest, got,
						script.Format(script.Script{Header: g.Header(), Txns: txns}))
				}
			}
		})
	}
}

// The same of lists, at the levels that the oracle judges them at, whether the
// other transactions use lists or registers with duplicate values.
func TestListAnomaliesBreakExactlyTheirLevels(t *testing.T) {
	for _, name := range slices.Concat(Anomalies(), ListAnomalies()) {
		t.Run(name, func(t *testing.T) {
			a := anomalyNamed(name)
			for seed := range uint64(60) {
				cfg := Config{Level: verdict.SSER, Seed: seed, Anomaly: name, Transactions: len(a.steps) + 2, Sessions: 4, Operations: 2, Keys: 2,
					Initial: record.Initial(seed % 2), Workload: Append}
				if seed%3 == 0 && slices.Contains(ListAnomalies(), name) {
					cfg.Workload, cfg.Duplicates, cfg.DuplicateValues = General, 1, 2
				}
				g, txns := history(t, cfg)
				lists := false
				for _, id := range g.Planted()[0].Transactions {
					for _, x := range txns {
						for _, op := range x.Ops {
							lists = lists || x.ID == id && (op.Kind == record.Append || op.Value.Kind == record.KindList)
							if x.ID == id && op.Kind == record.Write {
								t.Fatalf("%s writes a register: %v", id, op)
							}
						}
					}
				}
				judged := oracle.Check(txns, record.Assumptions{}.Override(g.Header()))
				if len(judged) < 5 || !lists {
					t.Fatalf("judged at %d levels; lists: %v", len(judged), lists)
				}
				for l, holds := range judged {
					if want := !l.Implies(weakestBroken[name]); l != verdict.LIN && holds != want {
						t.Fatalf("seed %d: %v holds = %v, want %v:\n%s", seed, l, holds, want,
							script.Format(script.Script{Header: g.Header(), Txns: txns}))
					}
				}
			}
		})
	}
}

// Every planting is an anomaly by itself, in the middle of a busy history.
func TestPlantedInBusyHistories(t *testing.T) {
	for _, level := range verdict.Levels() {
		for i, name := range slices.Concat(Anomalies(), ListAnomalies()) {
			cfg := Config{Level: level, Seed: 1, Anomaly: name, Planted: 5, Transactions: 400, Keys: 10, Duplicates: 0.5, UnknownRate: 0.05}
			if level == verdict.LIN && anomalyNamed(name).keys() > 1 {
				continue
			}
			if i%2 == 0 && level != verdict.LIN {
				cfg.Workload = Mix
			}
			g, txns := history(t, cfg)
			where := map[string]int{}
			for i, x := range txns {
				where[x.ID] = i
			}
			if len(g.Planted()) != 5 {
				t.Fatalf("%s: planted %d times", name, len(g.Planted()))
			}
			for _, p := range g.Planted() {
				var alone []record.Transaction
				for i, x := range txns {
					for _, id := range p.Transactions {
						if where[id] == i {
							alone = append(alone, x)
						}
					}
				}
				opt := record.Assumptions{}.Override(g.Header())
				weakest := weakestBroken[name]
				if judged := oracle.Levels(alone); !slices.Contains(judged, weakest) {
					weakest = verdict.PC // the weakest that lists are judged at
				}
				if oracle.Holds(weakest, alone, opt) {
					t.Errorf("%s: %v holds:\n%s", name, weakest, script.Format(script.Script{Txns: alone}))
				}
				for _, l := range oracle.Levels(alone) {
					if l != verdict.LIN && !l.Implies(weakest) && !oracle.Holds(l, alone, opt) {
						t.Errorf("%s: %v is broken:\n%s", name, l, script.Format(script.Script{Txns: alone}))
					}
				}
			}
		}
	}
}

// An anomaly in a history of a weak level leaves the level alone, if it is one that
// the level allows: what its sessions learn of each other does not contradict what they see
// elsewhere.
func TestAnomaliesLeaveWeakerLevelsAlone(t *testing.T) {
	for _, level := range []verdict.Level{verdict.PC, verdict.CC, verdict.RA, verdict.RC} {
		for _, name := range Anomalies() {
			a := anomalyNamed(name)
			if level.Implies(weakestBroken[name]) {
				continue
			}
			others := 10
			if level == verdict.PC {
				others = 3 // it takes the oracle long
			}
			for seed := range uint64(race.Draws(50, 150)) {
				g, txns := history(t, Config{Level: level, Seed: seed, Anomaly: name, Transactions: len(a.steps) + others, Sessions: 4, Operations: 2, Keys: 1, Stale: 0.9,
					Pause: 10 * time.Microsecond})
				if !oracle.Holds(level, txns, record.Assumptions{}.Override(g.Header())) {
					t.Fatalf("%v, %s, seed %d: the level is broken:\n%s", level, name, seed, script.Format(script.Script{Header: g.Header(), Txns: txns}))
				}
			}
		}
	}
}
