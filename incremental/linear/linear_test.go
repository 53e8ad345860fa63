package linear_test

import (
	"math/rand/v2"
	"testing"

	"github.com/isowatch/isowatch/incremental"
	"github.com/isowatch/isowatch/incremental/linear"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/oracle"
	"github.com/isowatch/isowatch/internal/lab/oracle/script"
	"github.com/isowatch/isowatch/internal/lab/oracle/tiny"
	"github.com/isowatch/isowatch/internal/lab/race"
)

// What is decided is what the oracle says of complete histories, and what the engine says of all: evidence is
// judged by either.
func TestAgreesWithOracleAndEngine(t *testing.T) {
	counted := map[string]int{}
	for seed := range uint64(race.Few(2_000, 20_000)) {
		cfg := tiny.Config{Txns: 8, Times: true, Duplicates: seed%2 == 0, Aborted: true, Unknown: true, Partial: seed%3 == 0,
			Keys: int(seed % 4), Mutations: int(seed % 6), OneKey: 95, Common: int(seed%7) * 5, Appends: seed%8 == 0}
		if seed%5 == 0 {
			cfg.OneKey = 0
		}
		s := tiny.Random(rand.New(rand.NewPCG(seed, 19)), cfg)
		if seed%5 == 0 { // all keys are parts of one object
			for i := range s.Txns {
				for j := range s.Txns[i].Ops {
					s.Txns[i].Ops[j].Key = "o = " + s.Txns[i].Ops[j].Key
				}
			}
		}
		opt := oracle.FromHeader(s.Header)
		partial := opt.Coverage == record.CoveragePartial
		holds, decided := linear.Decide(s.Txns, linear.Options{Initial: opt.Initial, Partial: partial, MaxSkew: opt.MaxSkew})
		if !decided {
			counted["left to the engine"]++
			continue
		}
		e := incremental.New(incremental.Options{Levels: []verdict.Level{verdict.LIN}, Initial: opt.Initial, Coverage: opt.Coverage, MaxSkew: opt.MaxSkew,
			UnseenUnique: true})
		for i := range s.Txns {
			e.Step(&s.Txns[i], 0)
		}
		if r := e.Close()[0]; (r.Outcome == verdict.Satisfied) != holds || r.Outcome == verdict.Unknown {
			t.Fatalf("seed %d: holds %v, the engine says %v\n%s", seed, holds, r.Outcome, script.Format(s))
		}
		if want := oracle.Holds(verdict.LIN, s.Txns, opt); want != holds && (!partial || want) {
			t.Fatalf("seed %d: holds %v, the oracle says %v\n%s", seed, holds, want, script.Format(s))
		}
		switch {
		case holds:
			counted["linearizable"]++
		case partial:
			counted["not, of partial coverage"]++
		default:
			counted["not"]++
		}
	}
	for _, what := range []string{"linearizable", "not", "not, of partial coverage", "left to the engine"} {
		if counted[what] < 10 {
			t.Errorf("%d are %s: %v", counted[what], what, counted)
		}
	}
}

// A search that takes too long is no verdict.
func TestTooLong(t *testing.T) {
	op := func(kind record.OpKind, n, start, end int64) record.Transaction {
		return record.Transaction{HasTimes: true, Start: start, End: end, Ops: []record.Op{{Kind: kind, Key: "x", Value: record.Int(n)}}}
	}
	var txns []record.Transaction
	for n := range int64(6) {
		txns = append(txns, op(record.Write, n, n, 100))
	}
	txns = append(txns, op(record.Read, 1, 110, 120), op(record.Read, 2, 130, 140)) // only one of them was the last
	if holds, decided := linear.Decide(txns, linear.Options{}); holds || !decided {
		t.Errorf("holds %v, decided %v; want a violation", holds, decided)
	}
	if _, decided := linear.Decide(txns, linear.Options{Steps: 10}); decided {
		t.Error("decided within 10 steps")
	}
}

// Of two that read and write the same, only the one that wrote what it read itself can have read it of the initial
// state.
func TestSameButForWhoWrote(t *testing.T) {
	op := func(kind record.OpKind, v record.Value) record.Op { return record.Op{Kind: kind, Key: "x", Value: v} }
	found, made := op(record.Read, record.Null), op(record.Write, record.Int(1))
	txns := []record.Transaction{
		{Status: record.Unknown, Ops: []record.Op{found, made}},
		{Status: record.Unknown, Ops: []record.Op{found, op(record.Write, record.Null), made}},
		{Ops: []record.Op{op(record.Read, record.Int(1))}},
	}
	if holds, decided := linear.Decide(txns, linear.Options{}); !holds || !decided {
		t.Errorf("holds %v, decided %v; the second one, and then the read", holds, decided)
	}
}
