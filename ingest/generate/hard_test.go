package generate

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/isowatch/isowatch/incremental"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/oracle"
	"github.com/isowatch/isowatch/internal/lab/oracle/script"
)

// satisfiable tries all assignments.
func (f *formula) satisfiable() bool {
	for assignment := range 1 << f.variables {
		if !slices.ContainsFunc(f.clauses, func(c []literal) bool {
			return !slices.ContainsFunc(c, func(l literal) bool { return (assignment>>l.variable&1 == 1) != l.negated })
		}) {
			return true
		}
	}
	return false
}

// Small formulas' histories hold ser and si exactly if the formula is
// satisfiable, by the oracle.
func TestHardAgreesWithOracle(t *testing.T) {
	x, y := literal{0, false}, literal{1, false}
	notX, notY := literal{0, true}, literal{1, true}
	for _, f := range []formula{
		{1, [][]literal{{x}}},
		{1, [][]literal{{notX}}},
		{1, [][]literal{{x, notX}}},
		{1, [][]literal{{x, x}}},
		{1, [][]literal{{x}, {x}}},
		{1, [][]literal{{x}, {notX}}},
		{2, [][]literal{{x, notY}}},
		{2, [][]literal{{x}, {y}}},
		{2, [][]literal{{notX}, {x, y}}},
		{2, [][]literal{{y}, {notY}}},
	} {
		for seed := range uint64(3) {
			txns := f.history(record.DefaultDB, rand.New(rand.NewPCG(seed, 0)))
			for _, l := range []verdict.Level{verdict.SER, verdict.SI} {
				if got := oracle.Holds(l, txns, record.Assumptions{}); got != f.satisfiable() {
					t.Errorf("%v: %v is %v, want %v:\n%s", f, l, got, f.satisfiable(), script.Format(script.Script{Txns: txns}))
				}
			}
		}
	}
}

// Larger ones by the engine, on both sides of the threshold.
func TestHardAgreesWithTheFormula(t *testing.T) {
	seen := map[bool]int{}
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 9))
		f := formula{variables: 3 + rng.IntN(6)}
		for range 2 + rng.IntN(7*f.variables) {
			f.clauses = append(f.clauses, randomClause(rng, f.variables))
		}
		want := f.satisfiable()
		seen[want]++
		txns := f.history(record.DefaultDB, rng)
		e := incremental.New(incremental.Options{Levels: []verdict.Level{verdict.SER, verdict.SI}})
		for i := range txns {
			e.Step(&txns[i], 0)
		}
		for _, r := range e.Close() {
			if got := r.Outcome; got != verdict.Satisfied && want || got != verdict.Violated && !want {
				t.Errorf("seed %d: %v is %v; the formula is satisfiable: %v", seed, r.Level, got, want)
			}
		}
	}
	if seen[true] < 15 || seen[false] < 15 {
		t.Errorf("satisfiable or not: %v", seen)
	}
}

func TestHardRecords(t *testing.T) {
	h, err := NewHard(HardConfig{DB: "d", Seed: 4, Variables: 20})
	if err != nil {
		t.Fatal(err)
	}
	txns := slices.Collect(h.Transactions())
	if n := 2*20 + 3*clauseSize*85; len(txns) != n || h.Len() != n { // 85 = 4.26 · 20
		t.Errorf("%d transactions, want %d", len(txns), n)
	}
	seq, written, ids := map[string]int64{}, map[string]map[record.Value]bool{}, map[string]bool{}
	for _, x := range txns {
		if x.DB != "d" || x.HasTimes || !x.HasSeq || x.Seq != seq[x.Session] || ids[x.ID] {
			t.Fatalf("%+v", x)
		}
		seq[x.Session]++
		ids[x.ID] = true
		for _, op := range x.Ops {
			if written[op.Key] == nil {
				written[op.Key] = map[record.Value]bool{}
			}
			if written[op.Key][op.Value] == (op.Kind == record.Write) {
				t.Fatalf("%s: %v is written twice, or read before", x.ID, op)
			}
			written[op.Key][op.Value] = true
		}
	}
	again, _ := NewHard(HardConfig{DB: "d", Seed: 4, Variables: 20})
	if d := cmp.Diff(txns, slices.Collect(again.Transactions())); d != "" {
		t.Error(d)
	}
	for _, cfg := range []HardConfig{{Variables: 2}, {Variables: -1}, {Ratio: -1}, {Ratio: 101}} {
		if _, err := NewHard(cfg); err == nil {
			t.Errorf("%+v is accepted", cfg)
		}
	}
}
