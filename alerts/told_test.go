package alerts_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/alerts/name"
	"github.com/isowatch/isowatch/incremental/oracle/script"
)

// testdata/told.txt has histories, and below "-- told at" what alerts say of each, where
// all levels are promised and the engine is asked for one at a time: an anomaly that is
// found at several levels has one name and one level at all of them.
func TestTold(t *testing.T) {
	const file = "testdata/told.txt"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	intro, blocks, _ := strings.Cut(string(text), "\n== ")
	var got strings.Builder
	got.WriteString(intro)
	for _, block := range strings.Split(blocks, "\n== ") {
		title, rest, _ := strings.Cut(block, "\n")
		history, _, _ := strings.Cut(rest, "-- told at ")
		fmt.Fprintf(&got, "\n== %s\n%s\n", title, strings.TrimRight(history, "\n"))
		s, err := script.Parse(history)
		if err != nil {
			t.Fatalf("%s: %v", title, err)
		}
		told, order := map[string][]string{}, []string{}
		ids := map[string]alerts.Alert{}
		for _, level := range name.Ordered() {
			for _, v := range engine(s.Header, s.Txns, level)[0].Violations {
				ctx := context(s, name.Ordered()...)
				ctx.Judge, ctx.Find = engineJudge, engineFind
				a, err := alerts.New(v, ctx)
				if err != nil {
					t.Fatalf("%s at %v: %v", title, level, err)
				}
				reaches(t, a)
				words := indented(a)
				if was, ok := ids[a.ID]; ok && (was.Name != a.Name || was.Level != a.Level || was.Adya != a.Adya) {
					t.Errorf("%s at %v: one id, but\n%s\n%s", title, level, indented(was), words)
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
			fmt.Fprintf(&got, "-- told at %s\n%s", strings.Join(told[words], " "), words)
		}
	}
	if *update {
		if err := os.WriteFile(file, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if d := cmp.Diff(strings.Split(string(text), "\n"), strings.Split(got.String(), "\n")); d != "" && !*update {
		t.Errorf("-want +got (go test -update writes it anew):\n%s", d)
	}
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
