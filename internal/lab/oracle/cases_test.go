package oracle_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/oracle"
	"github.com/isowatch/isowatch/internal/lab/oracle/script"
)

// TestCases judges the histories of testdata. The folder is the verdict: it
// names the strongest levels that hold ("none", or several joined by +). Adding
// a case is adding a file.
func TestCases(t *testing.T) {
	files, err := filepath.Glob("testdata/*/*.txt")
	if err != nil || len(files) < 40 {
		t.Fatalf("found %d cases, error %v", len(files), err)
	}
	for _, file := range files {
		folder := filepath.Base(filepath.Dir(file))
		t.Run(folder+"/"+filepath.Base(file), func(t *testing.T) {
			var strongest []verdict.Level
			if folder != "none" {
				for _, name := range strings.Split(folder, "+") {
					l, ok := verdict.ParseLevel(name)
					if !ok {
						t.Fatalf("folder %s names no level", folder)
					}
					strongest = append(strongest, l)
				}
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			s, err := script.Parse(string(text))
			if err != nil {
				t.Fatal(err)
			}
			got := oracle.Check(s.Txns, record.Assumptions{}.Override(s.Header))
			for l, holds := range got {
				want := false
				for _, m := range strongest {
					want = want || m.Implies(l)
				}
				if l != verdict.LIN && holds != want {
					t.Errorf("%v: holds = %v, want %v", l, holds, want)
				}
			}
		})
	}
}

func TestLinearizability(t *testing.T) {
	for _, c := range []struct {
		text string
		want bool
	}{
		{"initial zero\ns1 A: w(x,1) @1-2\ns2 B: r(x,1) @3-4", true},
		{"initial zero\ns1 A: w(x,1) @1-2\ns2 B: r(x,0) @3-4", false},
		{"initial zero\ns1 A: w(x,1) @1-3\ns2 B: r(x,0) @2-4", true},
		{"initial zero\ns1 A: r(x,0) w(x,1) @1-3\ns2 B: r(x,0) w(x,2) @2-4", false},
		{"initial zero\ns1 A: w(x,1)\ns1 B: r(x,0)", true}, // sessions alone order nothing
		// Each key by itself is linearizable, and so is the whole.
		{"initial zero\ns1 A: w(x,1) @1-2\ns2 B: w(y,1) @3-4\ns3 C: r(y,1) @5-6\ns3 D: r(x,1) @7-8", true},
	} {
		s, err := script.Parse(c.text)
		if err != nil {
			t.Fatal(err)
		}
		if got := oracle.Holds(verdict.LIN, s.Txns, record.Assumptions{}.Override(s.Header)); got != c.want {
			t.Errorf("lin = %v, want %v:\n%s", got, c.want, c.text)
		}
	}
}
