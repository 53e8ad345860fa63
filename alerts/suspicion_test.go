package alerts_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/alerts/veil"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/internal/lab/oracle/script"
	"github.com/isowatch/isowatch/internal/lab/oracle/tiny"
	"github.com/isowatch/isowatch/internal/lab/race"
)

// TestExplainedLate: what is kept of an anomaly makes the alert that would have been made at once, with the same
// id and evidence to the byte, after it has been stored and read; whatever is in the history, and once only. Where
// data is hidden none of it is kept, and the alert's id is the same.
func TestExplainedLate(t *testing.T) {
	n := uint64(race.Draws(150, 1500))
	explained := 0
	for seed := range n {
		rng := rand.New(rand.NewPCG(seed, 17))
		s := tiny.Random(rng, tiny.Config{Txns: 7, Times: seed%2 == 0, Aborted: true, Partial: true, Keys: int(seed % 4), Mutations: 3})
		for _, level := range []verdict.Level{verdict.RA, verdict.SER} {
			for _, r := range engine(s.Header, s.Txns, level) {
				for _, v := range r.Violations {
					ctx := context(s, verdict.RA, verdict.SI, verdict.SER)
					ctx.Judge, ctx.Find = engineJudge, engineFind
					want, err := alerts.New(v, ctx)
					if err != nil {
						t.Fatalf("seed %d: %v", seed, err)
					}
					kept := suspected(t, v, ctx)
					if kept.ID == want.ID {
						t.Fatalf("seed %d: what is suspected has the id of the alert", seed)
					}
					got, err := kept.Explained(engineJudge, engineFind, nil, alerts.WithinMin)
					if err != nil || !bytes.Equal(got.JSON(), want.JSON()) {
						t.Fatalf("seed %d at %v: %v\n%s\nexplained late it is\n%s\nwant\n%s", seed, level, err, script.Format(s), got.JSON(), want.JSON())
					}
					if again, err := got.Explained(nil, nil, nil, 0); err != nil || !bytes.Equal(again.JSON(), got.JSON()) {
						t.Fatalf("seed %d: an alert is explained again: %v", seed, err)
					}
					recheck(t, got)
					ctx.Veil = veil.New(veil.Hash, []byte("0123456789abcdef"))
					hidden := suspected(t, v, ctx)
					got, err = hidden.Explained(engineJudge, engineFind, nil, alerts.WithinMin)
					if err != nil || got.ID != want.ID || got.Values != "hash" {
						t.Fatalf("seed %d: hidden, the alert is %s (%q), want %s: %v", seed, got.ID, got.Values, want.ID, err)
					}
					explained++
				}
			}
		}
	}
	if explained < int(n)/2 {
		t.Errorf("only %d were explained", explained)
	}
}

// suspected is what is read back of what is kept of an anomaly, for which nothing is judged.
func suspected(t *testing.T, v verdict.Violation, ctx alerts.Context) alerts.Alert {
	t.Helper()
	ctx.Judge, ctx.Find = nil, nil
	a, err := alerts.Suspect(v, ctx)
	if err != nil {
		t.Fatal(err)
	}
	if a, err = alerts.Parse(a.JSON()); err != nil || a.State != alerts.Suspected {
		t.Fatalf("%s: %v", a.State, err)
	}
	return a
}

// TestTooMuchToBeKept: what takes a whole segment to be proved is not kept.
func TestTooMuchToBeKept(t *testing.T) {
	v := verdict.Violation{Kind: verdict.Unsatisfiable, Level: verdict.SER}
	for i := range verdict.TxnID(300) {
		v.Evidence = append(v.Evidence, i)
	}
	if _, err := alerts.Suspect(v, alerts.Context{}); !errors.Is(err, alerts.ErrLarge) {
		t.Errorf("%v, want ErrLarge", err)
	}
}
