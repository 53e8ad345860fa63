package incremental_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/isowatch/isowatch/incremental"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/generate"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/oracle/script"
	"github.com/isowatch/isowatch/internal/lab/oracle/tiny"
)

// rough is a stream of concurrent writers of a few keys in which records come late, up to 40% have
// no times and some an unknown outcome, and reads may wait for other writers of what they read; into some an
// anomaly is planted.
func rough(t *testing.T, rng *rand.Rand) stream {
	cfg := generate.Config{Level: []verdict.Level{verdict.PC, verdict.SI, verdict.SER, verdict.SSER}[rng.IntN(4)], Workload: generate.BlindW, Seed: rng.Uint64(),
		Keys: 2 + rng.IntN(6), Distribution: generate.Zipf, Operations: 2 + rng.IntN(3), Sessions: 4 + rng.IntN(7), Transactions: 20 + rng.IntN(100), Initial: record.InitialAbsent}
	if rng.IntN(2) == 0 {
		cfg.Workload = generate.General
	}
	if rng.IntN(4) == 0 {
		cfg.Anomaly, cfg.Planted = []string{"long-fork", "write-skew", "lost-update"}[rng.IntN(3)], 1
	}
	txns := produce(t, cfg)
	length := longest(txns)
	if unknown := rng.IntN(2) * rng.IntN(12); unknown > 0 {
		for i := range txns {
			if txns[i].Status == record.Committed && rng.IntN(100) < unknown {
				txns[i].Status = record.Unknown
			}
		}
	}
	c := course{tick: 1 + rng.IntN(30), bounded: rng.IntN(4) > 0, untimed: rng.IntN(9) * 5, change: func(o *incremental.Options) {
		o.SolveAt = 1 + rng.IntN(20)
		if length%2 == 0 {
			spaced(o)
		}
	}}
	if rng.IntN(2) == 0 {
		c.lateness = 1 + rng.Int64N(2*length)
	}
	return c.stream(rng, script.Script{Header: record.Header{Initial: &cfg.Initial}, Txns: txns}, tiny.Config{Duplicates: rng.IntN(2) == 0}, []verdict.Level{verdict.PC, verdict.SI, verdict.SER})
}

// Whatever the shape of a stream of hot keys, solved bit by bit it gets the verdicts of the whole
// history without times, and no tick tells of a level what the whole satisfies.
func TestRoughHotKeysAgreeWithBatch(t *testing.T) {
	var told [2]int
	undecided := 0
	for n := range max(*histories/2, 60) {
		seed := *seedFrom + uint64(n)
		st := rough(t, rand.New(rand.NewPCG(seed, 18)))
		opt := incremental.Options{Levels: st.opt.Levels, Assumptions: record.Assumptions{Initial: st.opt.Initial, UnseenUnique: new(true), Clock: record.ClockIgnore}}
		batch := incremental.New(opt)
		for i := range st.txns {
			batch.Step(&st.txns[i], 0)
		}
		want := batch.Close()
		fail := func(says string) {
			t.Helper()
			t.Fatalf("seed %d, solved at %d: %s\n%v", seed, st.opt.SolveAt, says, &st)
		}
		said := st.feed(st.opt)
		for i, r := range said.results {
			switch {
			case r.Outcome == verdict.Unknown || want[i].Outcome == verdict.Unknown:
				undecided++
			case r.Outcome != want[i].Outcome:
				fail(fmt.Sprintf("%v is %v online, %v in batch", r.Level, r.Outcome, want[i].Outcome))
			default:
				told[r.Outcome]++
			}
			broken := slices.ContainsFunc(said.ticked, func(v verdict.Violation) bool { return r.Level == v.Level || r.Level.Implies(v.Level) })
			if broken && want[i].Outcome == verdict.Satisfied {
				fail(fmt.Sprintf("a tick tells what %v does not allow, in batch it is satisfied", r.Level))
			}
		}
	}
	if says := fmt.Sprintf("%d satisfied, %d violated, %d undecided", told[verdict.Satisfied], told[verdict.Violated], undecided); told[verdict.Satisfied] < 40 || told[verdict.Violated] < 20 || undecided > (told[0]+told[1])/20 {
		t.Errorf("the sample tells little: %s", says)
	} else {
		t.Log(says)
	}
}
