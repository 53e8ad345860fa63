package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/generate"
	"github.com/isowatch/isowatch/ingest/record"
)

// Every suite's rows can be named, and say what they are about.
func TestSuites(t *testing.T) {
	for _, s := range Suites() {
		if got, ok := Named(s.Name); !ok || got.About == "" {
			t.Errorf("%s: %v, %q", s.Name, ok, got.About)
		}
		seen := map[string]bool{}
		for _, name := range s.Names() {
			if seen[name] || strings.ContainsAny(name, ", ") {
				t.Errorf("%s: the name %q is used twice or can't be given to --only", s.Name, name)
			}
			seen[name] = true
		}
		for _, r := range s.Rows {
			if r.Work == "" || r.Measure == nil || r.Peer.Figure != "" && r.Peer.Source == "" || !strings.HasSuffix(r.Name, "-"+r.Level) && !strings.Contains(r.Level, ",") {
				t.Errorf("%+v", r)
			}
		}
	}
	if _, ok := Named("none"); ok {
		t.Error("there is a suite called none")
	}
}

func TestSelect(t *testing.T) {
	s := Suite{Name: "s", Rows: []Row{{Name: "a-ser"}, {Name: "a-si"}, {Name: "ab-ser"}}}
	for only, want := range map[string]string{"": "a-ser a-si ab-ser", "a": "a-ser a-si", "ab-ser": "ab-ser", "ab a-si": "a-si ab-ser"} {
		got, err := s.Select(strings.Fields(only))
		if names := strings.Join(got.Names(), " "); err != nil || names != want {
			t.Errorf("%q selects %q, %v; want %q", only, names, err, want)
		}
	}
	if _, err := s.Select([]string{"a", "b"}); err == nil || err.Error() != `suite s has nothing that is called "b": there is a-ser, a-si, ab-ser` {
		t.Error(err)
	}
}

// A row is compared with its target, and a wrong verdict counts more than any
// figure.
func TestStatus(t *testing.T) {
	target := Target{Seconds: 1, MB: 10, Growth: 1.2}
	for _, tc := range []struct {
		name   string
		m      Measured
		err    error
		expect string
		target Target
		scale  float64
		want   Status
	}{
		{"within", Measured{Seconds: 1, PeakBytes: 10_000_000, Growth: 1.2}, nil, "", target, 1, OK},
		{"slow", Measured{Seconds: 1.01}, nil, "", target, 1, Over},
		{"big", Measured{PeakBytes: 10_000_001}, nil, "", target, 1, Over},
		{"growing", Measured{Growth: 1.21}, nil, "", target, 1, Over},
		{"a power above", Measured{Exponent: 1.6}, nil, "", Target{Exponent: 1.5}, 1, Over},
		{"a power within", Measured{Exponent: 1.5, Seconds: 9}, nil, "", Target{Exponent: 1.5}, 1, OK},
		{"too much of the sum", Measured{Share: 0.61}, nil, "", Target{Share: 0.6}, 1, Over},
		{"too few a second", Measured{PerSecond: 99}, nil, "", Target{PerSecond: 100}, 1, Over},
		{"enough a second", Measured{PerSecond: 100}, nil, "", Target{PerSecond: 100}, 1, OK},
		{"no target", Measured{Seconds: 9}, nil, "", Target{}, 1, Unrated},
		{"another size", Measured{Seconds: 9}, nil, "", target, 0.5, Unrated},
		{"right", Measured{Verdicts: map[string]int{"satisfied": 3}}, nil, satisfied, target, 1, OK},
		{"wrong", Measured{Verdicts: map[string]int{"satisfied": 3, "violated": 1}}, nil, satisfied, target, 1, Wrong},
		{"wrong at another size", Measured{Verdicts: map[string]int{"satisfied": 3}}, nil, violated, target, 0.5, Wrong},
		{"unreadable", Measured{Verdicts: map[string]int{"unreadable": 3}}, nil, violated, target, 1, Wrong},
		{"undecided", Measured{Verdicts: map[string]int{"satisfied": 3, "unknown": 1}}, nil, satisfied, target, 1, Undecided},
		{"undecided, any verdict", Measured{Verdicts: map[string]int{"unknown": 1}}, nil, "", target, 1, Undecided},
		{"both", Measured{Verdicts: map[string]int{"violated": 1, "unknown": 1}}, nil, satisfied, target, 1, Wrong},
		{"skipped", Measured{}, fmt.Errorf("row: %w", skipf("not there")), "", target, 1, Skipped},
		{"late", Measured{}, fmt.Errorf("row: %w", &lateError{time.Second}), "", target, 1, TimedOut},
		{"failed", Measured{}, errors.New("no such file"), "", target, 1, Failed},
	} {
		row := Row{Expect: tc.expect, Target: tc.target, Measure: func(context.Context, *Env) (Measured, error) { return tc.m, tc.err }}
		r := row.run(t.Context(), &Env{opt: Options{Scale: tc.scale}})
		if r.Status != tc.want || (r.Measured == nil) != (tc.err != nil) {
			t.Errorf("%s: %+v, want %s", tc.name, r, tc.want)
		}
		if said := r.Why != ""; said == slices.Contains([]Status{OK, Over, Unrated}, tc.want) {
			t.Errorf("%s: says %q", tc.name, r.Why)
		}
		if got := (&Report{Rows: []Result{r}}).Failed(); got == 1 != (tc.want == Failed) {
			t.Errorf("%s: %d failed", tc.name, got)
		}
	}
}

// An exponent is that of the power law.
func TestSlope(t *testing.T) {
	for _, e := range []float64{0, 0.5, 1, 1.5, 2} {
		var xs, ys []float64
		for _, x := range []float64{100, 1000, 2500, 1e6} {
			xs, ys = append(xs, x), append(ys, 0.003*math.Pow(x, e))
		}
		if got, err := slope(xs, ys); err != nil || math.Abs(got-e) > 1e-9 {
			t.Errorf("the exponent of %v is %v, %v", e, got, err)
		}
	}
	if _, err := slope([]float64{5, 5}, []float64{1, 2}); err == nil {
		t.Error("histories of one size show growth")
	}
}

// Histories to fit a power to double, and keep the share of transactions and keys.
func TestSeveral(t *testing.T) {
	var got []string
	for _, s := range several(Spec{Transactions: 80, Keys: 16}, 3) {
		got = append(got, fmt.Sprint(s.Transactions, " ", s.Keys))
	}
	if d := cmp.Diff([]string{"20 4", "40 8", "80 16"}, got); d != "" {
		t.Error(d)
	}
}

func TestMedian(t *testing.T) {
	for _, tc := range []struct {
		xs   []float64
		want float64
	}{{[]float64{3}, 3}, {[]float64{9, 1}, 5}, {[]float64{9, 1, 2}, 2}, {[]float64{4, 1, 3, 2}, 2.5}} {
		if got := median(slices.Clone(tc.xs)); got != tc.want {
			t.Errorf("median of %v is %v", tc.xs, got)
		}
	}
}

// The recordings of a row are found by their names, or by what the manifest says
// of them, and there are fewer at a smaller scale.
func TestRecorded(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	find := func(scale float64, r recording) (string, error) {
		e := Env{opt: Options{Corpus: dir, Scale: scale}}
		files, err := e.recorded(r)
		for i := range files {
			files[i], _ = filepath.Rel(dir, files[i])
		}
		return strings.Join(files, " "), err
	}
	for i := range 10 {
		put(fmt.Sprintf("h-%d.gz", 9-i), "")
	}
	for scale, want := range map[float64]string{0.2: "h-0.gz h-1.gz", 0.01: "h-0.gz"} {
		if got, err := find(scale, recording{glob: "h-*.gz"}); got != want || err != nil {
			t.Errorf("at %v: %q, %v", scale, got, err)
		}
	}
	var skipped *skipError
	if _, err := find(1, recording{glob: "g-*", from: "somewhere"}); !errors.As(err, &skipped) || !strings.Contains(err.Error(), "g-*, from somewhere") {
		t.Error(err)
	}
	if _, err := find(1, recording{violated: "SI", from: "somewhere"}); !errors.As(err, &skipped) {
		t.Error(err)
	}
	put("manifest.jsonl", `{"file":"a","expect":{"SER":"violation"}}
{"file":"b","expect":{"SER":"ok"},"implied":{"SI":"violation"}}
{"file":"c","expect":{"SI":"violation"},"defs":"adya"}
{"file":"d","expect":{"SI":"violation"},"format":"3ts-log"}
`)
	for level, want := range map[string]string{"SER": "a", "SI": "b"} {
		if got, err := find(1, recording{violated: level}); got != want || err != nil {
			t.Errorf("%s: %q, %v", level, got, err)
		}
	}
	put("manifest.jsonl", "{\"file\":\"a\"}\n{]\n")
	if _, err := find(1, recording{violated: "SI"}); errors.As(err, &skipped) || err == nil || !strings.Contains(err.Error(), "manifest.jsonl:2: ") {
		t.Error(err)
	}
}

// The sizes that rows name are those that workloads bring.
func TestSpecs(t *testing.T) {
	var c generate.Config
	if err := c.Preset("hd"); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("--level ser --workload hd --seed 1 --transactions %d --keys %d --no-times", c.Transactions, c.Keys)
	if got := strings.Join(workload("hd", "ser").args(1), " "); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got := workload("hd", "ser").args(0.0001); !cmp.Equal(got[6:10], []string{"--transactions", "10", "--keys", "10"}) {
		t.Error(got)
	}
	// Aborted ones apart, there are 10,000 at si as well.
	for _, name := range []string{"rh", "bl", "wh", "hd"} {
		var c generate.Config
		if err := c.Preset(name); err != nil {
			t.Fatal(err)
		}
		c.Level, c.Seed, c.Transactions = verdict.SI, 1, workload(name, "si").Transactions
		g, err := generate.New(c)
		if err != nil {
			t.Fatal(err)
		}
		committed := 0
		for x := range g.Transactions() {
			if x.Status == record.Committed {
				committed++
			}
		}
		if committed < 10_000 || committed > 10_400 {
			t.Errorf("%s: %d of %d commit", name, committed, c.Transactions)
		}
	}
}

// A row that fails keeps no other from being measured; when a run is interrupted there is what was
// measured by then, and of the row at hand nothing.
func TestRowsAreKept(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	row := func(name string, err error) Row {
		return Row{Name: name, Measure: func(context.Context, *Env) (Measured, error) { return Measured{Seconds: 2}, err }}
	}
	last := Row{Name: "interrupted", Measure: func(ctx context.Context, _ *Env) (Measured, error) {
		cancel()
		return Measured{}, ctx.Err()
	}}
	var told []string
	r, err := Run(ctx, Suite{Name: "s", Rows: []Row{row("a", nil), row("b", errors.New("broken")), row("c", nil), last, row("never", nil)}},
		Options{Monitor: "none is asked for", Runs: 1, Scale: 1, Done: func(r Result) { told = append(told, r.Line()) }})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
	want := []string{"a: measured, 2.000", "b: failed: broken", "c: measured, 2.000"}
	if d := cmp.Diff(want, told); d != "" {
		t.Error(d)
	}
	if len(r.Rows) != 3 {
		t.Errorf("%d rows are kept", len(r.Rows))
	}
	var b strings.Builder
	if err := r.Text(&b); err != nil || !strings.Contains(b.String(), "\nc ") {
		t.Errorf("%v: %s", err, b.String())
	}
}
