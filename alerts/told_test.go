package alerts_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/alerts/name"
	"github.com/isowatch/isowatch/internal/lab/golden"
	"github.com/isowatch/isowatch/internal/lab/oracle/script"
)

// testdata/told.txt has histories, and below "-- told at" what alerts say of each, where
// all levels are promised and the engine is asked for one at a time: an anomaly that is
// found at several levels has one name and one level at all of them.
func TestTold(t *testing.T) {
	const file = "testdata/told.txt"
	const mark = "-- told at "
	intro, blocks := golden.Blocks(t, file, mark)
	var got strings.Builder
	got.WriteString(intro)
	for _, block := range blocks {
		fmt.Fprintf(&got, "\n== %s\n%s\n", block.Title, strings.TrimRight(block.Given, "\n"))
		s, err := script.Parse(block.Given)
		if err != nil {
			t.Fatalf("%s: %v", block.Title, err)
		}
		told, order := map[string][]string{}, []string{}
		ids := map[string]alerts.Alert{}
		for _, level := range name.Ordered() {
			for _, v := range engine(s.Header, s.Txns, level)[0].Violations {
				ctx := context(s, name.Ordered()...)
				ctx.Judge, ctx.Find = engineJudge, engineFind
				a, err := alerts.New(v, ctx)
				if err != nil {
					t.Fatalf("%s at %v: %v", block.Title, level, err)
				}
				reaches(t, a)
				words := indented(a)
				if was, ok := ids[a.ID]; ok && (was.Name != a.Name || was.Level != a.Level || was.Adya != a.Adya) {
					t.Errorf("%s at %v: one id, but\n%s\n%s", block.Title, level, indented(was), words)
				}
				if ids[a.ID] = a; told[words] == nil {
					order = append(order, words)
				}
				if !slices.Contains(told[words], level.String()) {
					told[words] = append(told[words], level.String())
				}
			}
		}
		for _, words := range order {
			fmt.Fprintf(&got, mark+"%s\n%s", strings.Join(told[words], " "), words)
		}
	}
	golden.Check(t, file, got.String())
}

// indented is what an alert says, and its evidence.
func indented(a alerts.Alert) string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s, %s: %s; weakest %s, holds %s\n%s\n", a.Name, a.Adya, strings.Join(a.Breaks, " "), a.Weakest, strings.Join(a.Holds, " "), a.Summary)
	for _, line := range strings.Split(strings.TrimRight(a.Explanation, "\n"), "\n") {
		out.WriteString("  " + line + "\n")
	}
	for _, line := range a.Evidence[1:] {
		_, ops, _ := strings.Cut(string(line), `"id":`)
		out.WriteString("  | " + ops + "\n")
	}
	return out.String()
}
