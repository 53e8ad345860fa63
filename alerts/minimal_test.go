package alerts_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/alerts/shrink"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/codec"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/oracle/script"
	"github.com/isowatch/isowatch/internal/lab/oracle/tiny"
	"github.com/isowatch/isowatch/internal/lab/race"
)

// Of the evidence of what the engine finds no transaction and no operation can be
// left out, in the ways that are honest (see package shrink); and it is evidence of what
// is told: who takes part is in it, with the operations of each step. One evidence is one
// alert.
func TestNothingCanBeLeftOut(t *testing.T) {
	n := uint64(race.Draws(100, 400))
	all, smaller := 0, 0
	for _, level := range []verdict.Level{verdict.G1, verdict.RC, verdict.RA, verdict.CC, verdict.PC, verdict.SI, verdict.SER, verdict.SSER} {
		for seed := range n {
			s := busy(seed)
			told := map[string]string{} // by evidence, the id of its alert
			for _, v := range engine(s.Header, s.Txns, level)[0].Violations {
				ctx := context(s, level)
				calls := 0
				ctx.Judge = func(l verdict.Level, h record.Header, txns []record.Transaction) verdict.Outcome {
					calls++
					return engineJudge(l, h, txns)
				}
				first, err := alerts.New(v, ctx)
				if err != nil {
					t.Fatalf("seed %d, %v: %v", seed, level, err)
				}
				calls, ctx.Find = 0, engineFind
				a, err := alerts.New(v, ctx)
				if err != nil {
					t.Fatalf("seed %d, %v: %v", seed, level, err)
				}
				if calls >= 256 {
					t.Errorf("seed %d, %v: the judge was asked %d times", seed, level, calls)
				}
				all++
				if len(strings.Join(lines(a), "")) < len(strings.Join(lines(first), "")) {
					smaller++
				}
				if id, ok := told[strings.Join(lines(a), "")]; ok && id != a.ID {
					t.Errorf("two alerts of one evidence: %s and %s", id, a.ID)
				}
				told[strings.Join(lines(a), "")] = a.ID
				minimal(t, a)
				exhibited(t, a)
				if t.Failed() {
					t.Fatalf("seed %d, %v: %s\n%s", seed, level, script.Format(s), a.JSON())
				}
			}
		}
	}
	t.Logf("of %d alerts %d are of a smaller anomaly than the one that was found", all, smaller)
	if smaller*50 < all {
		t.Errorf("of %d alerts only %d are of a smaller anomaly than the one that was found: the test is too easy", all, smaller)
	}
}

// busy is a random history that breaks much.
func busy(seed uint64) script.Script {
	rng := rand.New(rand.NewPCG(seed, 21))
	return tiny.Random(rng, tiny.Config{Txns: 9, Times: true, Aborted: true, Partial: seed%2 == 0, Duplicates: seed%3 == 0, Mutations: 3, Updates: 40})
}

// An alert of whose evidence more might be left out says so, and no other: what says nothing
// has nothing that can be left out.
func TestEvidenceThatMayBeSmallerSaysSo(t *testing.T) {
	said, whole := 0, 0
	for seed := range uint64(60) {
		s := busy(seed)
		for _, v := range engine(s.Header, s.Txns, verdict.SER)[0].Violations {
			for _, calls := range []int{0, 1, 4, 16} {
				ctx := context(s, verdict.SER)
				ctx.Judge, ctx.Find = engineJudge, engineFind
				if calls > 0 {
					b := &budgeted{left: calls}
					ctx.Judge, ctx.Budget = b.judge, b
				}
				a, err := alerts.New(v, ctx)
				if err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				if maySmaller(a) {
					if said++; calls == 0 {
						t.Errorf("seed %d: %d transactions of evidence:\n%s", seed, len(a.Evidence)-1, a.Explanation)
					}
					continue
				}
				whole++
				minimal(t, a)
			}
		}
	}
	if said < 20 || whole < 20 {
		t.Errorf("%d say that the evidence may be smaller, and %d do not", said, whole)
	}
	s := ring(60)
	ctx := context(s, verdict.SER)
	b := &budgeted{left: 20}
	ctx.Judge, ctx.Find, ctx.Budget = b.judge, engineFind, b
	a, err := alerts.New(engine(s.Header, s.Txns, verdict.SER)[0].Violations[0], ctx)
	if err != nil {
		t.Fatal(err)
	}
	if again := a.Unfinished(); !maySmaller(a) || again.Explanation != a.Explanation {
		t.Errorf("of %d transactions:\n%s", len(a.Evidence)-1, again.Explanation)
	}
}

// budgeted is a budget of calls.
type budgeted struct {
	left int
	cut  bool
}

func (b *budgeted) judge(l verdict.Level, h record.Header, txns []record.Transaction) verdict.Outcome {
	b.left--
	return engineJudge(l, h, txns)
}

func (b *budgeted) Over() bool {
	b.cut = b.cut || b.left <= 0
	return b.left <= 0
}

func (b *budgeted) Cut() bool { return b.cut }

func maySmaller(a alerts.Alert) bool {
	return strings.Contains(a.Explanation, "\n\nThe evidence may be smaller:")
}

func lines(a alerts.Alert) []string {
	out := make([]string, len(a.Evidence))
	for i, l := range a.Evidence {
		out[i] = string(l)
	}
	return out
}

// minimal: of an alert's evidence nothing can be left out where times and steps of sessions that it can do
// without do not count: what is told by fewer of these may take more operations.
func minimal(t *testing.T, a alerts.Alert) {
	t.Helper()
	h, err := codec.DecodeHeader(a.Evidence[0])
	if err != nil {
		t.Fatal(err)
	}
	txns := recheck(t, a)
	l, _ := verdict.ParseLevel(a.Level)
	violated := func(txns []record.Transaction) bool { return engineJudge(l, h, txns) == verdict.Violated }
	without := func(change func(cut []record.Transaction, i int)) {
		for i := range txns {
			cut := slices.Clone(txns)
			if change(cut, i); violated(cut) {
				txns = cut
			}
		}
	}
	without(func(cut []record.Transaction, i int) { cut[i].HasTimes, cut[i].Start, cut[i].End = false, 0, 0 })
	without(func(cut []record.Transaction, i int) { // the session is cut in two
		session := cut[i].Session
		for j := i; j < len(cut); j++ {
			if cut[j].Session == session {
				cut[j].Session += "'"
			}
		}
	})
	rest := shrink.Shrink(txns, violated, shrink.Options{Unseen: *h.Coverage == record.CoveragePartial, Undeclared: *h.Coverage == record.CoveragePartial || *h.Initial == record.InitialAny})
	if size(rest) < size(txns) {
		t.Errorf("%s %v\n%swhere this is enough:\n%s", a.Name, a.Cycle, script.Format(script.Script{Header: h, Txns: txns}), script.Format(script.Script{Txns: rest}))
	}
}

// exhibited: who takes part is in the evidence, with what each step is about.
func exhibited(t *testing.T, a alerts.Alert) {
	t.Helper()
	did := map[[2]string]bool{}
	for _, txn := range recheck(t, a) {
		did[[2]string{txn.ID, ""}] = true
		for _, op := range txn.Ops {
			did[[2]string{txn.ID, op.Key}] = true
		}
	}
	for _, id := range a.Transactions {
		if !did[[2]string{id, ""}] {
			t.Errorf("%s of %v, which is not in its evidence", a.Name, id)
		}
	}
	for _, e := range slices.Concat(append(a.Cases, a.Cycle)...) {
		if !did[[2]string{e.From, e.Key}] || !did[[2]string{e.To, e.Key}] {
			t.Errorf("%s: the evidence does not show %+v", a.Name, e)
		}
	}
}

// size is the number of transactions and operations.
func size(txns []record.Transaction) int {
	n := len(txns)
	for i := range txns {
		n += len(txns[i].Ops)
	}
	return n
}
