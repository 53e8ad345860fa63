package app

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/cmd/monitor/report"
	"github.com/isowatch/isowatch/config"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/codec"
	"github.com/isowatch/isowatch/ingest/record"
)

// recordsFile is a new file of records.
func recordsFile(t *testing.T, name string, txns []record.Transaction) string {
	t.Helper()
	var lines []byte
	for i := range txns {
		lines = append(codec.AppendJSON(lines, &txns[i]), '\n')
	}
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, lines, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestReportTellsStoredAlerts: what a report of --until-end shows are alerts that are in the
// store, each once, whenever they were found; and a second run, which finds nothing new,
// shows what is in the store.
func TestReportTellsStoredAlerts(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("..", "..", "..", "testdata", "anomalies", "*.jsonl"))
	if err != nil || len(files) < 10 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	given := len(files)
	many := planted(t, 2000)
	last := many[len(many)-1].End
	files = append(files, recordsFile(t, "many.jsonl", many), recordsFile(t, "at-the-end.jsonl", append(many, lostUpdate(99, last)...)))
	for i, file := range files {
		for _, segments := range []bool{false, true} {
			if segments && i < given {
				continue // they are shorter than one
			}
			t.Run(filepath.Base(file)+map[bool]string{true: " in segments"}[segments], func(t *testing.T) {
				c := testConfig(nil)
				c.Source = config.Source{File: &config.File{Path: file}}
				c.Levels = []verdict.Level{verdict.RC, verdict.RA, verdict.CC, verdict.SI, verdict.SER, verdict.SSER, verdict.LIN}
				if c.Initial = record.InitialAbsent; i < given {
					c.Initial = record.InitialZero
				}
				var set []func(*App)
				if segments {
					c.Window.Segment, c.Window.Overlap = 200, 50
					set = append(set, fine)
				}
				st := newMemStore()
				r := start(t, c, st, true, set...)
				if err := r.wait(t); err != nil {
					t.Fatal(err)
				}
				first := shownAlerts(t, r.App, st)
				again := start(t, c, st, true, set...)
				if err := again.wait(t); err != nil {
					t.Fatal(err)
				}
				if second := shownAlerts(t, again.App, st); !slices.Equal(first, second) {
					t.Errorf("at first %q, of a second run %q", first, second)
				}
			})
		}
	}
}

// TestEachLevelHasAnAlert: two transactions of a session are enough to break si; what breaks lin, which knows no
// sessions, is told as the same but needs a third. Both are in the store.
func TestEachLevelHasAnAlert(t *testing.T) {
	t.Parallel()
	read := record.Op{Kind: record.Read, Key: "x", Value: record.Null}
	txns := []record.Transaction{
		{HasTimes: true, Start: 1e9, End: 1e9 + 1e6, Ops: []record.Op{{Kind: record.Write, Key: "x", Value: record.Int(12)}}},
		{Ops: []record.Op{read, {Kind: record.Write, Key: "x", Value: record.Null}}},
		{HasTimes: true, Start: 2e9, End: 2e9 + 1, Ops: []record.Op{read}}}
	for i := range txns {
		txns[i].DB, txns[i].Session, txns[i].ID = record.DefaultDB, "s", fmt.Sprint("s#", i)
	}
	c, st := testConfig(nil), newMemStore()
	c.Source = config.Source{File: &config.File{Path: recordsFile(t, "in.jsonl", txns)}}
	c.Levels = []verdict.Level{verdict.SI, verdict.LIN}
	r := start(t, c, st, true)
	if err := r.wait(t); err != nil {
		t.Fatal(err)
	}
	if shown := shownAlerts(t, r.App, st); len(shown) != 2 {
		t.Errorf("%q", shown)
	}
}

// shownAlerts are the alerts that the only report shows, sorted, which the store has, and says of that they break the
// level.
func shownAlerts(t *testing.T, a *App, st *memStore) []string {
	t.Helper()
	reports := a.Reports()
	if len(reports) != 1 {
		t.Fatalf("%d reports", len(reports))
	}
	ids, all := st.ids(), map[string]bool{}
	for _, r := range reports[0].Results {
		here := map[string]bool{}
		for _, x := range r.Anomalies {
			if !slices.Contains(ids, x.Alert.ID) {
				t.Errorf("%s: %s %s is not in the store, which has %q", r.Level, x.Name, x.Alert.ID, ids)
			} else if a, err := alerts.Parse(st.alerts[x.Alert.ID].Body); err != nil || !slices.Contains(a.Breaks, r.Level) {
				t.Errorf("%s: the store has that %s %s breaks %q, %v", r.Level, x.Name, x.Alert.ID, a.Breaks, err)
			}
			if here[x.Alert.ID] {
				t.Errorf("%s: %s %s is listed twice", r.Level, x.Name, x.Alert.ID)
			}
			here[x.Alert.ID], all[x.Alert.ID] = true, true
		}
		if (r.Verdict == verdict.Violated.String()) != (len(r.Anomalies) > 0) {
			t.Errorf("%s is %s, by %d anomalies", r.Level, r.Verdict, len(r.Anomalies))
		}
	}
	var text bytes.Buffer
	if err := (report.Text{W: &text}).History(&reports[0]); err != nil {
		t.Fatal(err)
	}
	var out []string
	for id := range all {
		out = append(out, id)
		if n := strings.Count(text.String(), id); n != 1 {
			t.Errorf("the text names %s %d times:\n%s", id, n, text.String())
		}
	}
	if len(all) == 0 {
		t.Error("nothing is shown")
	}
	slices.Sort(out)
	return out
}

// A level that was broken by what is not told alone, as nothing proves it any more, is not
// reported as violated: it is unknown, as what is forgotten is needed to tell; so it is of a
// run that takes this one over. Where an anomaly is told beside it, it is violated.
func TestReportOfForgottenProofs(t *testing.T) {
	t.Parallel()
	txns := unprovable()
	last := txns[len(txns)-1].End
	for _, tc := range []struct {
		name   string
		beside []record.Transaction
		levels []verdict.Level
		want   map[string]string
		exit   int
	}{
		{"alone", nil, []verdict.Level{verdict.SER}, map[string]string{"ser": "unknown"}, report.ExitUndecided},
		{"at several levels", nil, []verdict.Level{verdict.SI, verdict.SER, verdict.SSER}, map[string]string{"si": "unknown", "ser": "unknown", "sser": "unknown"}, report.ExitUndecided},
		{"beside one that is told", lostUpdate(99, last), []verdict.Level{verdict.SER}, map[string]string{"ser": "violated"}, report.ExitViolated},
		{"beside one of a weaker level", lostUpdate(99, last), []verdict.Level{verdict.SI, verdict.SER}, map[string]string{"si": "violated", "ser": "violated"}, report.ExitViolated},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := testConfig(nil)
			c.Source = config.Source{File: &config.File{Path: recordsFile(t, "stream.jsonl", append(slices.Clone(txns), tc.beside...))}}
			c.Levels, c.Initial = tc.levels, record.InitialAbsent
			c.Window.Segment, c.Window.Overlap = 16, 1
			st := newMemStore("r")
			for run := range 2 {
				r := start(t, c, st, true, fine)
				if err := r.wait(t); err != nil {
					t.Fatal(err)
				}
				reports := r.Reports()
				for _, x := range reports[0].Results {
					if x.Verdict != tc.want[x.Level] || (x.Verdict == verdict.Violated.String()) != (len(x.Anomalies) > 0) {
						t.Errorf("run %d: %s is %s by %d anomalies, want %s", run, x.Level, x.Verdict, len(x.Anomalies), tc.want[x.Level])
					}
					if u := x.Unknown; u != nil && u.Reason != verdict.Forgotten.String() {
						t.Errorf("run %d: %s is unknown for %+v", run, x.Level, u)
					}
				}
				if got := report.Exit(reports); got != tc.exit {
					t.Errorf("run %d: exit status %d, want %d", run, got, tc.exit)
				}
			}
			clear(st.alerts) // somebody has removed what was told
			st.order = nil
			r := start(t, c, st, true, fine)
			if err := r.wait(t); err != nil {
				t.Fatal(err)
			}
			if got := report.Exit(r.Reports()); got != tc.exit {
				t.Errorf("without the alerts: exit status %d, want %d", got, tc.exit)
			}
		})
	}
}

// What is left open beside an anomaly is told: of the level, and of the stretch, which is partial. Of
// the anomaly alone nothing of the kind is said.
func TestReportOfWhatIsOpenBesideAnAnomaly(t *testing.T) {
	t.Parallel()
	found := lostUpdate(1, 1_700_000_000e9)
	open := found[2]
	open.ID, open.Session, open.Ops = "open", "open", []record.Op{{Kind: record.PredicateRead, Key: "t", Where: "v > 1", Value: record.Value{Kind: record.KindObject, Text: "{}"}}}
	for _, tc := range []struct {
		name string
		txns []record.Transaction
		open bool
	}{{"alone", found, false}, {"beside", append(slices.Clone(found), open), true}} {
		t.Run(tc.name, func(t *testing.T) {
			c := testConfig(nil)
			c.Source = config.Source{File: &config.File{Path: recordsFile(t, "stream.jsonl", tc.txns)}}
			c.Levels = []verdict.Level{verdict.SI}
			st := newMemStore("r")
			for run := range 2 {
				r := start(t, c, st, true, fine)
				if err := r.wait(t); err != nil {
					t.Fatal(err)
				}
				h := r.Reports()[0]
				said := slices.Contains(h.Results[0].Notes, "there may be more: not everything was decided (not-checked)")
				partial := len(h.Stretches) == 1 && slices.Equal(h.Stretches[0].Why, []string{"undecided"})
				if x := h.Results[0]; x.Verdict != verdict.Violated.String() || said != tc.open || partial != tc.open || !tc.open && len(h.Stretches) > 0 {
					t.Errorf("run %d: %s, %q; %+v", run, x.Verdict, x.Notes, h.Stretches)
				}
			}
		})
	}
}

// TestViolatedStaysSo: a level that was violated is so in the report at the end, also if it
// turns out afterwards, in another run, that it is not about such transactions.
func TestViolatedStaysSo(t *testing.T) {
	t.Parallel()
	in, st := newInput(t, "in.jsonl"), newMemStore("r")
	const second = int64(time.Second)
	one := func(session string, seq int64, at int64, ops ...record.Op) record.Transaction {
		return record.Transaction{DB: record.DefaultDB, Session: session, Seq: seq, HasSeq: true, ID: fmt.Sprint(session, "#", seq), HasTimes: true, Start: at * second, End: (at + 1) * second, Ops: ops}
	}
	write := func(key string, v int64) record.Op {
		return record.Op{Kind: record.Write, Key: key, Value: record.Int(v)}
	}
	c := in.follow("unused")
	c.Levels = []verdict.Level{verdict.SER, verdict.LIN}
	report := func() string {
		t.Helper()
		r := start(t, c, st, true, fine)
		if err := r.wait(t); err != nil {
			t.Fatal(err)
		}
		out := []string{verdicts(t, r.App, record.DefaultDB)}
		for _, x := range r.Reports()[0].Results {
			for _, a := range x.Anomalies {
				out = append(out, x.Level+" "+a.Alert.ID)
			}
			out = append(out, x.Notes...)
		}
		return strings.Join(out, "\n")
	}
	in.add(t, one("a", 1, 1, write("x", 1)), one("b", 1, 3, record.Op{Kind: record.Read, Key: "x", Value: record.Null}))
	for seq := int64(2); seq < 11; seq++ { // nobody can come any more who deleted x
		in.add(t, one("a", seq, 180+2*seq, write("x", seq)))
	}
	first := report()
	if !strings.Contains(first, "lin violated") || !strings.Contains(first, "lin "+st.ids()[0]) {
		t.Fatalf("at first: %s", first)
	}
	in.add(t, one("a", 11, 3600, write("x", 40), write("y", 40)))
	for run := range 2 {
		if got := report(); !strings.HasPrefix(got, strings.Split(first, "\n")[0]) || !strings.Contains(got, "lin "+st.ids()[0]) || !strings.Contains(got, "before the first that has several") {
			t.Errorf("run %d after that: %s\nat first: %s", run, got, first)
		}
	}
	// Another version wrote the state: what was told stands.
	k, err := parseCheckpoint(record.DefaultDB, st.checkpoints[record.DefaultDB])
	if err != nil {
		t.Fatal(err)
	}
	k.state = older(k.state)
	st.checkpoints[record.DefaultDB] = k.append(nil)
	if got := report(); !strings.Contains(got, "lin violated") || !strings.Contains(got, "lin "+st.ids()[0]) {
		t.Errorf("after another version: %s", got)
	}
	// With another configuration it is for that one to say.
	c.Initial = record.InitialAny
	if got := report(); strings.Contains(got, "lin violated") {
		t.Errorf("judged anew: %s", got)
	}
}
