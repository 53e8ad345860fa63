// Package anomalies reads testdata/anomalies for tests: a history for each of the 14
// anomalies of MTC, and the table of what they break.
package anomalies

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/history"
)

// Case is one anomaly.
type Case struct {
	Name    string // in kebab case
	File    string // the path of the history
	History history.History
	// Levels has every level: Violated, Satisfied, or NotApplicable.
	Levels map[verdict.Level]verdict.Outcome
}

// Weakest is the weakest level that it breaks.
func (c Case) Weakest() verdict.Level {
	out := verdict.SSER // which every anomaly breaks
	for l, o := range c.Levels {
		if o == verdict.Violated && out.Implies(l) {
			out = l
		}
	}
	return out
}

// count is how many there are: MTC, Table I.
const count = 14

// Load reads dir, which is testdata/anomalies as seen from the test's own folder.
func Load(t *testing.T, dir string) []Case {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "levels.txt"))
	if err != nil {
		t.Fatal(err)
	}
	var levels []verdict.Level
	var out []Case
	for i, line := range strings.Split(string(text), "\n") {
		cells := strings.Fields(line)
		switch {
		case len(cells) == 0 || strings.HasPrefix(line, "#"):
		case levels == nil:
			for _, c := range cells[1:] {
				l, ok := verdict.ParseLevel(c)
				if !ok {
					t.Fatalf("levels.txt:%d: no level is called %q", i+1, c)
				}
				levels = append(levels, l)
			}
			if len(levels) != len(verdict.Levels()) {
				t.Fatalf("levels.txt:%d: %d levels, want all %d", i+1, len(levels), len(verdict.Levels()))
			}
		case len(cells) != 1+len(levels):
			t.Fatalf("levels.txt:%d: %d cells, want %d", i+1, len(cells), 1+len(levels))
		default:
			c := Case{Name: cells[0], File: filepath.Join(dir, cells[0]+".jsonl"), Levels: map[verdict.Level]verdict.Outcome{}}
			for j, l := range levels {
				o, ok := map[string]verdict.Outcome{"x": verdict.Violated, ".": verdict.Satisfied,
					"-": verdict.NotApplicable}[cells[1+j]]
				if !ok {
					t.Fatalf("levels.txt:%d: %v is %q, want x, . or -", i+1, l, cells[1+j])
				}
				c.Levels[l] = o
			}
			hs, err := history.Open(c.File, history.Options{})
			if err != nil || len(hs) != 1 {
				t.Fatalf("%s: %d histories, %v", c.File, len(hs), err)
			}
			c.History = hs[0]
			out = append(out, c)
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil || len(files) != count || len(out) != count {
		t.Fatalf("%d histories and %d lines in levels.txt, want %d (%v)", len(files), len(out), count, err)
	}
	return out
}
