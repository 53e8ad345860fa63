package alerts_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/golden"
	"github.com/isowatch/isowatch/internal/lab/oracle"
	"github.com/isowatch/isowatch/internal/lab/oracle/script"
	"github.com/isowatch/isowatch/internal/lab/oracle/tiny"
	"github.com/isowatch/isowatch/internal/lab/race"
)

// testdata/names.txt is a table of anomalies: a history, the level at which the engine
// finds something, and what that is called in all words. Its evidence is judged by
// definition: it breaks the weakest level, and satisfies those that are said to hold.
func TestNamesOfHistories(t *testing.T) {
	const file = "testdata/names.txt"
	const mark = "-- found at "
	intro, blocks := golden.Blocks(t, file, mark)
	var got strings.Builder
	got.WriteString(intro)
	for _, block := range blocks {
		levels, _, _ := strings.Cut(block.Want, "\n")
		s, err := script.Parse(block.Given)
		if err != nil {
			t.Fatalf("%s: %v", block.Title, err)
		}
		fmt.Fprintf(&got, "\n== %s\n%s%s%s\n", block.Title, block.Given, mark, levels)
		asked := make([]verdict.Level, 0, 2)
		for _, w := range strings.Fields(levels) {
			l, err := verdict.FindLevel(w)
			if err != nil {
				t.Fatalf("%s: %v", block.Title, err)
			}
			asked = append(asked, l)
		}
		for _, a := range found(t, s, asked...) {
			reaches(t, a)
			fmt.Fprintf(&got, "name     %s\nadya     %s\naliases  %s\nbreaks   %s\nweakest  %s\nholds    %s\nclocks   %v\nkeys     %s\n", a.Name, a.Adya,
				strings.Join(a.Aliases, " "), strings.Join(a.Breaks, " "), a.Weakest, strings.Join(a.Holds, " "), a.ClockDependent, strings.Join(a.Keys, " "))
		}
	}
	golden.Check(t, file, strings.ReplaceAll(got.String(), " \n", "\n"))
}

// found are the alerts of what the engine finds at the first of some levels, where all
// of them are promised.
func found(t *testing.T, s script.Script, levels ...verdict.Level) []alerts.Alert {
	t.Helper()
	var out []alerts.Alert
	for _, v := range engine(s.Header, s.Txns, levels[0])[0].Violations {
		ctx := context(s, levels...)
		ctx.Judge, ctx.Find = engineJudge, engineFind
		a, err := alerts.New(v, ctx)
		if err != nil {
			t.Fatalf("%v\n%s", err, script.Format(s))
		}
		out = append(out, a)
	}
	return out
}

// reaches holds what an alert says of levels to the definitions.
func reaches(t *testing.T, a alerts.Alert) {
	t.Helper()
	h, txns := evidence(t, a)
	judged := oracle.Check(txns, record.Assumptions{}.Override(h))
	weakest, ok := verdict.ParseLevel(a.Weakest)
	if !ok || judged[weakest] {
		t.Errorf("%s: the evidence does not break %s\n%s", a.Name, a.Weakest, a.JSON())
	}
	for l, holds := range judged {
		said := slices.ContainsFunc(a.Holds, func(s string) bool {
			m, ok := verdict.ParseLevel(s)
			return ok && m.Implies(l)
		})
		if l != verdict.LIN && said != holds && (holds || !unseen(h, txns)) {
			t.Errorf("%s: the evidence satisfies %v: %v, and of those that hold the strongest are said to be %v\n%s", a.Name, l, holds, a.Holds, a.JSON())
		}
	}
}

// unseen tells whether coverage is partial and somebody read a list, or what is appended
// to: the oracle knows nothing of unseen appenders.
func unseen(h record.Header, txns []record.Transaction) bool {
	lists := map[string]bool{}
	for i := range txns {
		for _, op := range txns[i].Ops {
			lists[op.Key] = lists[op.Key] || op.Kind == record.Append || op.Value.Kind == record.KindList
		}
	}
	return *h.Coverage == record.CoveragePartial && slices.ContainsFunc(txns, func(t record.Transaction) bool {
		return slices.ContainsFunc(t.Ops, func(op record.Op) bool { return op.Kind == record.Read && lists[op.Key] })
	})
}

// Whatever the engine finds in random histories, at whatever level: the evidence
// breaks the weakest level that is named, and satisfies exactly what is said to hold.
func TestReach(t *testing.T) {
	n := uint64(race.Draws(300, 4000))
	names := map[string]int{}
	for seed := range n {
		rng := rand.New(rand.NewPCG(seed, 33))
		s := tiny.Random(rng, tiny.Config{Txns: 6, Times: seed%2 == 0, Aborted: seed%5 == 0, Keys: int(seed % 4), Mutations: 1 + int(seed%3)})
		if seed%3 == 2 {
			s, rng = ambiguous(seed, 33)
		}
		for _, a := range found(t, s, oneOf(rng, s.Txns)) {
			if reaches(t, a); t.Failed() {
				t.Fatalf("seed %d\n%s", seed, script.Format(s))
			}
			names[a.Weakest]++
		}
	}
	for _, l := range verdict.Levels() {
		if names[l.String()] == 0 && l != verdict.LIN && l != verdict.RC && !race.Brief() {
			t.Errorf("nothing that breaks %v: %v", l, names)
		}
	}
	t.Log(names)
}
