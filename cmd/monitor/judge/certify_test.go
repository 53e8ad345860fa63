package judge_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/isowatch/isowatch/cmd/monitor/certfile"
	"github.com/isowatch/isowatch/cmd/monitor/judge"
	"github.com/isowatch/isowatch/cmd/monitor/report"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/oracle/script"
	"github.com/isowatch/isowatch/internal/lab/oracle/tiny"
	"github.com/isowatch/isowatch/internal/lab/race"
)

// shapes are kinds of small histories, each with what makes certificates hard.
var shapes = map[string]tiny.Config{
	"unique":     {Txns: 6, Times: true, Aborted: true, Unknown: true, Mutations: 2},
	"duplicates": {Txns: 6, Duplicates: true, Always: true, Values: 2, Aborted: true, Unknown: true, Mutations: 2},
	"put back":   {Txns: 6, Duplicates: true, Values: 2, Aborted: true, Unknown: true, Mutations: 2, Back: 50},
	"lists":      {Txns: 6, Appends: true, Aborted: true, Unknown: true, Mutations: 1},
	"partial":    {Txns: 6, Times: true, Partial: true, Appends: true, PartialLists: true, Unknown: true, Mutations: 2},
	"one key":    {Txns: 6, Keys: 1, Times: true, Duplicates: true, Unknown: true, Mutations: 1},
}

// Every level that is satisfied gets a certificate, which is written, read and
// verified; also those that are satisfied because a stronger one is.
func TestSatisfiedIsProved(t *testing.T) {
	for name, cfg := range shapes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proved, named := map[verdict.Level]int{}, 0
			for seed := range uint64(race.Draws(150, 400)) {
				s := tiny.Random(rand.New(rand.NewPCG(seed, 41)), cfg)
				assume := record.Assumptions{}.Override(s.Header)
				if seed%5 == 0 {
					assume.Sessions = record.SessionsIgnore
				}
				c, h := certified(t, s.Txns, assume)
				for _, r := range h.Results {
					l, ok := verdict.ParseLevel(r.Level)
					if has := slices.Contains(c.Levels(), l); !ok || has != (r.Verdict == verdict.Satisfied.String()) {
						t.Fatalf("seed %d: %s is %s, and proved is %v\n%s", seed, r.Level, r.Verdict, has, script.Format(s))
					}
				}
				for _, p := range judge.Verify(c, s.Txns, assume, nil) {
					if p.Verdict != report.Verified {
						t.Fatalf("seed %d: %+v\n%s", seed, p, script.Format(s))
					}
				}
				for _, p := range c.Proofs {
					proved[p.Level]++
					for _, step := range p.Steps {
						if step.Read {
							named++
						}
					}
				}
			}
			for _, l := range verdict.Levels() {
				if l != verdict.LIN && proved[l] < 20 {
					t.Errorf("%v was satisfied %d times only", l, proved[l])
				}
			}
			if (name == "duplicates" || name == "put back") != (named > 0) && name != "one key" {
				t.Errorf("%d writers were named", named)
			}
			if name == "one key" && (proved[verdict.LIN] < 20 || named == 0) {
				t.Errorf("lin was satisfied %d times only, and %d writers were named", proved[verdict.LIN], named)
			}
		})
	}
}

// What was read of a key that is appended to and written, and that nobody recorded wrote, an unseen transaction may have written:
// with partial coverage, and values that repeat, it proves nothing, and all levels have a certificate.
func TestUnseenValueOfAMixedKey(t *testing.T) {
	for _, text := range []string{"5", "null"} {
		s, err := script.Parse("s1 A: append(y,4) append(y,4) w(y,[])\ns2 B: r(y," + text + ")\ns3 C: w(z,7)\ns4 D: w(z,7)")
		if err != nil {
			t.Fatal(err)
		}
		assume := record.Assumptions{Coverage: record.CoveragePartial}
		c, h := certified(t, s.Txns, assume)
		proofs := judge.Verify(c, s.Txns, assume, []verdict.Level{verdict.G1, verdict.CC, verdict.SER})
		for _, p := range proofs {
			if p.Verdict != report.Verified {
				t.Errorf("%s: %+v", text, p)
			}
		}
		if len(proofs) < 3 {
			t.Errorf("%s: %d proofs of %+v", text, len(proofs), h.Results)
		}
	}
}

// certified judges a history at every level, and returns the certificate as it is
// read from the file that was written.
func certified(t *testing.T, txns []record.Transaction, assume record.Assumptions) (*certfile.Certificate, report.History) {
	t.Helper()
	c := certfile.New(txns, judge.Of(txns, assume))
	var h report.History
	q := judge.Question{DB: record.DefaultDB, Txns: txns, Levels: verdict.Levels(), Assume: assume, AnomaliesMax: 1, Replay: true,
		Proved: func(r verdict.Result) error { return c.Add(r, txns) }}
	if err := judge.Check(q, &h); err != nil {
		t.Fatal(fmt.Errorf("%w\n%s", err, script.Format(script.Script{Txns: txns})))
	}
	var file bytes.Buffer
	if err := certfile.Write(&file, c); err != nil {
		t.Fatal(err)
	}
	c, err := certfile.NewReader(&file).Next()
	if err != nil {
		t.Fatal(err)
	}
	return c, h
}
