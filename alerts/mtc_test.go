package alerts_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/alerts/present"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/history"
	"github.com/isowatch/isowatch/internal/lab/golden"
	"github.com/isowatch/isowatch/internal/lab/oracle"
	"github.com/isowatch/isowatch/internal/lab/oracle/script"
)

// The 14 anomalies of MTC, Table I, as the engine finds them at the weakest level
// that they break and at a stronger one: they are called what MTC calls them,
// break what levels.txt says, are the same alert at either level, and look as the
// golden file of the anomaly has it.
func TestMTC(t *testing.T) {
	for _, c := range mtc(t) {
		t.Run(c.name, func(t *testing.T) {
			hs, err := history.Open(filepath.Join("../testdata/anomalies", c.name+".jsonl"), history.Options{})
			if err != nil || len(hs) != 1 {
				t.Fatalf("%d histories, %v", len(hs), err)
			}
			s := script.Script{Header: hs[0].Header, Txns: hs[0].Transactions}
			var b strings.Builder
			var first alerts.Alert
			for i, level := range c.levels {
				a := only(t, s, level, c)
				var breaks []string
				for _, l := range c.broken {
					breaks = append(breaks, l.String())
				}
				if a.Name != c.name || !slices.Equal(a.Breaks, breaks) {
					t.Errorf("at %v: %s, which breaks %v; want %s, %v", level, a.Name, a.Breaks, c.name, breaks)
				}
				if i > 0 && a.ID != first.ID {
					t.Errorf("at %v and %v: two ids", level, c.levels[0])
				}
				if i == 0 {
					first = a
				}
				b.WriteString("== found at " + level.String() + "\n")
				if err := present.Text(&b, a, present.Options{}); err != nil {
					t.Fatal(err)
				}
				b.WriteByte('\n')
			}
			golden.Check(t, "testdata/mtc/"+c.name+".golden", b.String())
			var indented bytes.Buffer
			if err := json.Indent(&indented, first.JSON(), "", "  "); err != nil {
				t.Fatal(err)
			}
			indented.WriteByte('\n')
			golden.Check(t, "testdata/mtc/"+c.name+".json", indented.String())
		})
	}
}

// only is the alert that the engine's violations of a level become, where all
// levels are promised: it may tell one thing in two ways.
func only(t *testing.T, s script.Script, level verdict.Level, c anomaly) alerts.Alert {
	t.Helper()
	var out []alerts.Alert
	for _, v := range engine(s.Header, s.Txns, level)[0].Violations {
		ctx := context(s, verdict.Levels()...)
		ctx.Judge, ctx.Find = engineJudge, engineFind
		ctx.OneKey = slices.Contains(oracle.Levels(s.Txns), verdict.LIN)
		a, err := alerts.New(v, ctx)
		if err != nil {
			t.Fatalf("%v: %v", level, err)
		}
		recheck(t, a)
		for _, weaker := range c.broken { // it stands at every level that it is said to break
			rest := a
			rest.Level = weaker.String()
			recheck(t, rest)
		}
		if len(out) == 0 || out[0].ID != a.ID {
			out = append(out, a)
		}
	}
	if len(out) != 1 {
		t.Fatalf("%v: %d alerts, want 1: %+v", level, len(out), out)
	}
	return out[0]
}

type anomaly struct {
	name   string
	broken []verdict.Level // weakest first
	levels []verdict.Level // at which it is looked for
}

// mtc reads testdata/anomalies/levels.txt.
func mtc(t *testing.T) []anomaly {
	t.Helper()
	text, err := os.ReadFile("../testdata/anomalies/levels.txt")
	if err != nil {
		t.Fatal(err)
	}
	var columns []string
	var out []anomaly
	for line := range strings.Lines(string(text)) {
		cells := strings.Fields(line)
		switch {
		case len(cells) == 0 || strings.HasPrefix(line, "#"):
		case columns == nil:
			columns = cells
		default:
			a := anomaly{name: cells[0]}
			for i := 1; i < len(cells); i++ {
				if l, ok := verdict.ParseLevel(columns[i]); ok && cells[i] == "x" {
					a.broken = append(a.broken, l)
				}
			}
			a.levels = []verdict.Level{a.broken[0], verdict.SI}
			if !verdict.SI.Implies(a.broken[0]) || a.broken[0] == verdict.SI {
				a.levels[1] = verdict.SSER
			}
			out = append(out, a)
		}
	}
	if len(out) != 14 {
		t.Fatalf("%d anomalies in levels.txt, want 14", len(out))
	}
	return out
}
