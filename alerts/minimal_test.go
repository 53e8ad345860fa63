package alerts_test

import (
	"math/rand/v2"
	"testing"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/alerts/shrink"
	"github.com/isowatch/isowatch/incremental/oracle/script"
	"github.com/isowatch/isowatch/incremental/oracle/tiny"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/codec"
	"github.com/isowatch/isowatch/ingest/record"
)

// Of the evidence of what the engine finds no transaction and no operation can be
// left out, in the ways that are honest (see package shrink), but what the alert is
// about: the few alerts of which a shorter story could be told by other means are
// counted, as are those where the judge may not be asked any more.
func TestNothingCanBeLeftOut(t *testing.T) {
	n := uint64(600)
	if testing.Short() {
		n = 150
	}
	all, more, bounded := 0, 0, 0
	for _, level := range []verdict.Level{verdict.RC, verdict.CC, verdict.PC, verdict.SI, verdict.SER} {
		for seed := range n {
			rng := rand.New(rand.NewPCG(seed, 21))
			s := tiny.Random(rng, tiny.Config{Txns: 9, Times: true, Aborted: true, Duplicates: seed%3 == 0, Mutations: 3, Updates: 40})
			for _, v := range engine(s.Header, s.Txns, level)[0].Violations {
				ctx := context(s, level)
				calls := 0
				ctx.Judge = func(l verdict.Level, h record.Header, txns []record.Transaction) verdict.Outcome {
					calls++
					return engineJudge(l, h, txns)
				}
				a, err := alerts.New(v, ctx)
				if err != nil {
					t.Fatalf("seed %d, %v: %v", seed, level, err)
				}
				all++
				if calls >= shrink.CallsDefault {
					bounded++
				}
				h, err := codec.DecodeHeader(a.Evidence[0])
				if err != nil {
					t.Fatal(err)
				}
				txns := recheck(t, a)
				l, _ := verdict.ParseLevel(a.Level)
				rest, _ := shrink.Shrink(txns, func(txns []record.Transaction) bool { return engineJudge(l, h, txns) == verdict.Violated },
					shrink.Options{Unseen: *h.Coverage == record.CoveragePartial, Calls: 2000})
				if size(rest) < size(txns) {
					if more++; testing.Verbose() && more < 12 {
						t.Logf("seed %d, %v: %s %v\n%swhere this is enough:\n%s", seed, level, a.Name, a.Cycle, script.Format(script.Script{Header: h, Txns: txns}), script.Format(script.Script{Txns: rest}))
					}
				}
			}
		}
	}
	if all < int(n) || bounded*100 > all || more*10 > all {
		t.Errorf("%d alerts, of %d more could be left out, of %d the judge was asked as often as it may be", all, more, bounded)
	}
	t.Logf("%d alerts, of %d more could be left out, of %d the judge was asked as often as it may be", all, more, bounded)
}

// size is the number of transactions and operations.
func size(txns []record.Transaction) int {
	n := len(txns)
	for i := range txns {
		n += len(txns[i].Ops)
	}
	return n
}
