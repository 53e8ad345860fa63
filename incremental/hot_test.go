package incremental_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/isowatch/isowatch/incremental"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/generate"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/oracle/tiny"
)

// Streams of many concurrent writers of a few keys, far longer than what the definitions can be
// tried on: online, with times, orders chosen at ticks and what is open solved bit by bit, the verdicts are those
// of the whole history without times, which takes none of these ways.
func TestHotKeysAgreeWithBatch(t *testing.T) {
	levels := []verdict.Level{verdict.PC, verdict.SI, verdict.SER}
	var told [2]int
	for n := range max(*histories/10, 70) {
		rng := rand.New(rand.NewPCG(*seedFrom+uint64(n), 17))
		cfg := generate.Config{Level: []verdict.Level{verdict.PC, verdict.SI, verdict.SER, verdict.SSER}[rng.IntN(4)], Workload: generate.BlindW, Seed: rng.Uint64(),
			Keys: 2 + rng.IntN(6), Distribution: generate.Zipf, Operations: 2 + rng.IntN(3), Sessions: 3 + rng.IntN(8), Transactions: 30 + rng.IntN(170), Initial: record.InitialAbsent}
		if rng.IntN(2) == 0 {
			cfg.Workload, cfg.Operations = generate.General, 2+rng.IntN(3)
		}
		g, err := generate.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		var txns []record.Transaction
		for x := range g.Transactions() {
			txns = append(txns, x)
		}
		opt := incremental.Options{Levels: levels, Assumptions: record.Assumptions{Initial: cfg.Initial, Clock: record.ClockIgnore}}
		batch := incremental.New(opt)
		for i := range txns {
			batch.Step(&txns[i], 0)
		}
		want := batch.Close()

		opt.Clock, opt.Online, opt.UniqueValues, opt.SolveAt = record.ClockPrune, true, true, 1+rng.IntN(40)
		if tiny.Possible(txns, 0) { // at levels without real time some read of what began after they ended
			opt.MaxTransaction = longest(txns)
		}
		if n%2 == 0 {
			spaced(&opt)
		}
		every := 1 + rng.IntN(30)
		e := incremental.New(opt)
		for i := range txns {
			e.Step(&txns[i], 0)
			if i%every == every-1 {
				e.Tick(txns[i].End)
			}
		}
		for i, r := range e.Close() {
			if r.Outcome != want[i].Outcome {
				t.Fatalf("seed %d, %+v, tick every %d, solved at %d: %v is %v online, %v in batch", *seedFrom+uint64(n), cfg, every, opt.SolveAt, r.Level, r.Outcome, want[i].Outcome)
			}
			switch r.Outcome {
			case verdict.Satisfied:
				told[0]++
			case verdict.Violated:
				told[1]++
			}
		}
	}
	if says := fmt.Sprintf("%d satisfied, %d violated", told[0], told[1]); told[0] < 40 || told[1] < 20 {
		t.Errorf("the sample tells little: %s", says)
	} else {
		t.Log(says)
	}
}
