package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/cmd/monitor/judge"
	"github.com/isowatch/isowatch/cmd/monitor/report"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/history"
	"github.com/isowatch/isowatch/internal/lab/anomalies"
	"github.com/isowatch/isowatch/window/store"
)

const anomaliesDir = "../../testdata/anomalies"

// monitor is inProcess for what has to succeed, or to find something.
func monitor(t *testing.T, args ...string) (stdout string, status int) {
	t.Helper()
	status, stdout, stderr := inProcess(t, args...)
	if status == exitUnusable || status == exitEnvironment {
		t.Fatalf("monitor %s: status %d: %s", strings.Join(args, " "), status, stderr)
	}
	return stdout, status
}

// reported runs a command line that reports on one history, as JSON.
func reported(t *testing.T, args ...string) (report.History, int) {
	t.Helper()
	out, status := monitor(t, args...)
	var h report.History
	if err := json.Unmarshal([]byte(out), &h); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	return h, status
}

// TestAnomaliesByCheck: `monitor check --level all` of each of MTC's anomalies lists
// exactly the levels that it breaks, names the anomaly at each of them, and shows
// evidence that proves it by itself at the weakest.
func TestAnomaliesByCheck(t *testing.T) {
	for _, c := range anomalies.Load(t, anomaliesDir) {
		t.Run(c.Name, func(t *testing.T) {
			h, status := reported(t, "check", "--level", "all", "--output", "json", c.File)
			if status != exitViolated || !h.Mini || len(h.Results) != len(verdict.Levels()) {
				t.Errorf("status %d, mini-transactions %v, %d levels", status, h.Mini, len(h.Results))
			}
			var hold []verdict.Level
			for _, r := range h.Results {
				l, _ := verdict.ParseLevel(r.Level)
				want := c.Levels[l]
				if r.Verdict != want.String() {
					t.Errorf("%s is %s, want %v", r.Level, r.Verdict, want)
				}
				if want == verdict.Satisfied {
					hold = append(hold, l)
				}
				if want != verdict.Violated {
					continue
				}
				if len(r.Anomalies) == 0 || r.Anomalies[0].Name != c.Name {
					t.Errorf("%s has %d anomalies, the first is no %s", r.Level, len(r.Anomalies), c.Name)
					continue
				}
				first := r.Anomalies[0]
				weakest, _ := verdict.ParseLevel(first.Level)
				if l != verdict.LIN && weakest != c.Weakest() {
					t.Errorf("%s: the anomaly is said to break %v, want %v", r.Level, weakest, c.Weakest())
				}
				proves(t, weakest, first)
			}
			var strongest []string
			for _, l := range verdict.Maximal(hold) {
				strongest = append(strongest, l.String())
			}
			if !slices.Equal(h.Strongest, strongest) {
				t.Errorf("strongest %v, want %v", h.Strongest, strongest)
			}
		})
	}
}

// proves judges the evidence of an anomaly.
func proves(t *testing.T, l verdict.Level, a report.Anomaly) {
	t.Helper()
	var lines strings.Builder
	for _, line := range a.History {
		lines.Write(append(line, '\n'))
	}
	hs, err := history.Read("evidence", strings.NewReader(lines.String()), history.Options{})
	if err != nil || len(hs) != 1 {
		t.Fatalf("%d histories, %v in\n%s", len(hs), err, &lines)
	}
	if got := judge.NewProver(nil, 1<<40).Judge(l, hs[0].Header, hs[0].Transactions); got != verdict.Violated {
		t.Errorf("the evidence of %s is %v at %v:\n%s", a.Name, got, l, &lines)
	}
}

// TestAnomaliesInText: the text draws the anomaly once, however many levels it breaks.
func TestAnomaliesInText(t *testing.T) {
	for _, c := range anomalies.Load(t, anomaliesDir) {
		out, _ := monitor(t, "check", "--level", "all", c.File)
		if n := strings.Count(out, "✗ "); n != 1 || !strings.Contains(out, "✗ "+c.Name+" ") {
			t.Errorf("%s is drawn %d times:\n%s", c.Name, n, out)
		}
		if !strings.Contains(out, "; mini-transactions\n") {
			t.Errorf("%s is not called a history of mini-transactions:\n%s", c.Name, out)
		}
	}
}

// TestRunAnswersLikeCheck: several levels on one stream get the verdicts that check
// gives, from a file and from a topic, and an anomaly is one alert for all levels that
// it breaks, the weakest first.
func TestRunAnswersLikeCheck(t *testing.T) {
	t.Parallel()
	const levels = "rc,ra,cc,si,ser,sser"
	brokers, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(brokers.Close)
	broker := brokers.ListenAddrs()[0]
	answers := func(t *testing.T, file, anomaly string, source ...string) {
		t.Helper()
		dir := filepath.Join(t.TempDir(), "store")
		want, _ := reported(t, "check", "--level", levels, "--output", "json", file)
		got, status := reported(t, append([]string{"run", "--set", "coverage=complete", "--set", "initial=zero", "--until-end",
			"--level", levels, "--listen", "", "--store", dir, "--output", "json"}, source...)...)
		if status != want.Exit() {
			t.Errorf("status %d, want %d", status, want.Exit())
		}
		if strings.Join(got.Strongest, " ") != strings.Join(want.Strongest, " ") || got.Mini != want.Mini || got.Transactions != want.Transactions {
			t.Errorf("strongest %v, mini %v, %d transactions; check says %v, %v, %d", got.Strongest, got.Mini, got.Transactions, want.Strongest, want.Mini, want.Transactions)
		}
		var broken []string
		for i, r := range got.Results {
			w := want.Results[i]
			if r.Level != w.Level || r.Verdict != w.Verdict {
				t.Errorf("%s %s, check says %s %s", r.Level, r.Verdict, w.Level, w.Verdict)
			}
			if r.Verdict == verdict.Violated.String() {
				broken = append(broken, r.Level)
				if len(r.Anomalies) == 0 || r.Anomalies[0].Name != anomaly {
					t.Errorf("%s: no %s", r.Level, anomaly)
				}
			}
		}
		all := stored(t, dir)
		if anomaly == "" && len(all) == 0 {
			return
		}
		if len(all) != 1 {
			t.Fatalf("%d alerts: %v", len(all), all)
		}
		if a := all[0]; a.Name != anomaly || !slices.Equal(a.Breaks, broken) || a.Level != broken[0] || a.Count != 1 {
			t.Errorf("alert %s at %s, %d times, breaks %v; want %v", a.Name, a.Level, a.Count, a.Breaks, broken)
		}
	}
	both := func(name, file, anomaly string) {
		t.Run(name+"/file", func(t *testing.T) {
			t.Parallel()
			answers(t, file, anomaly, "--set", "source.file.path="+file)
		})
		t.Run(name+"/topic", func(t *testing.T) {
			t.Parallel()
			monitor(t, "replay", file, "--brokers", broker, "--topic", name, "--partitions", "3")
			answers(t, file, anomaly, "--brokers", broker, "--topic", name)
		})
	}
	for _, c := range anomalies.Load(t, anomaliesDir) {
		both(c.Name, c.File, c.Name)
	}
	for _, workload := range []string{"general", "mini"} {
		for _, anomaly := range []string{"", "long-fork"} {
			file := filepath.Join(t.TempDir(), "history.jsonl")
			out, _ := monitor(t, "generate", "--level", "sser", "--workload", workload, "--initial", "zero", "--transactions", "400", "--keys", "60",
				"--sessions", "6", "--seed", "11", "--anomaly", anomaly)
			if err := os.WriteFile(file, []byte(out), 0o600); err != nil {
				t.Fatal(err)
			}
			both("generated-"+workload+anomaly, file, anomaly)
		}
	}
}

// stored are the alerts in a store.
func stored(t *testing.T, dir string) (out []alerts.Alert) {
	t.Helper()
	st, err := store.Open(store.Options{Path: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	err = st.AlertsBefore(t.Context(), 0, func(_ uint64, s store.Alert) bool {
		a, err := alerts.Parse(s.Body)
		if err != nil {
			t.Error(err)
		}
		out = append(out, a)
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
