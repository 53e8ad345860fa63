package judge_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/isowatch/isowatch/cmd/monitor/judge"
	"github.com/isowatch/isowatch/cmd/monitor/report"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/oracle/script"
	"github.com/isowatch/isowatch/internal/lab/oracle/tiny"
	"github.com/isowatch/isowatch/internal/lab/race"
)

// beheaded are the transactions that are left when the first of some sessions are lost, so
// that the first number that is left shows it; nil if none can be.
func beheaded(rng *rand.Rand, txns []record.Transaction) []record.Transaction {
	own := map[string]int{}
	for _, x := range txns {
		own[x.Session]++
	}
	base := rng.Int64N(2)
	least := int(record.SeqFirstMax + 1 - base)
	lost := map[string]int{}
	out := slices.Clone(txns)
	for i := range out {
		out[i].Seq += base
		s := out[i].Session
		if _, drawn := lost[s]; !drawn {
			if lost[s] = 0; own[s] > least && rng.IntN(3) > 0 {
				lost[s] = least + rng.IntN(own[s]-least)
			}
		}
	}
	out = slices.DeleteFunc(out, func(x record.Transaction) bool {
		lost[x.Session]--
		return lost[x.Session] >= 0
	})
	if len(out) == len(txns) {
		return nil
	}
	return out
}

// Where all was to be there, and the first transactions of sessions are lost, nothing is told
// that the whole history has not done; and what is told is proved.
func TestLostHeadsAccuseNobody(t *testing.T) {
	robbed, accused := 0, 0
	for name, cfg := range shapes {
		cfg.Partial, cfg.Txns = false, 9
		for seed := range uint64(race.Few(100, 300)) {
			s := tiny.Random(rand.New(rand.NewPCG(seed, 43)), cfg)
			assume := record.Assumptions{}.Override(s.Header)
			left := beheaded(rand.New(rand.NewPCG(seed, 44)), s.Txns)
			if left == nil || assume.Coverage != record.CoverageComplete || !tiny.Unique(s.Txns, assume.Initial) {
				continue // unseen writers are taken not to repeat values
			}
			robbed++
			of := func(txns []record.Transaction) (h report.History) {
				if err := judge.Check(judge.Question{DB: record.DefaultDB, Txns: txns, Levels: verdict.Levels(), Assume: assume, Replay: true}, &h); err != nil {
					t.Fatalf("%s, seed %d: %v", name, seed, err)
				}
				return h
			}
			whole, now := of(s.Txns), of(left)
			for i, r := range now.Results {
				if !slices.ContainsFunc(r.Notes, func(n string) bool { return strings.Contains(n, "coverage was partial") }) {
					t.Fatalf("%s, seed %d: %s says nothing of what is missing: %q", name, seed, r.Level, r.Notes)
				}
				if r.Verdict != verdict.Violated.String() {
					continue
				}
				if accused++; whole.Results[i].Verdict == verdict.Satisfied.String() {
					t.Fatalf("%s, seed %d: %s is %s, and was not before\n%s\nleft is\n%s", name, seed, r.Level, r.Verdict, script.Format(s), script.Format(script.Script{Header: s.Header, Txns: left}))
				}
			}
		}
	}
	if t.Logf("%d histories with lost heads, %d levels violated", robbed, accused); robbed < 200 || accused == 0 {
		t.Error("that tells little")
	}
}
