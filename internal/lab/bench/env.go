package bench

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/isowatch/isowatch/cmd/monitor/report"
	"github.com/isowatch/isowatch/internal/lab/rig"
)

// Options say how to measure.
type Options struct {
	Corpus  string        // directory of recorded histories; empty: none
	Runs    int           // of each history
	Scale   float64       // of the sizes; 1 is what targets are for
	Timeout time.Duration // of each run
	Peer    string        // AWDIT's program; empty: none
	// Monitor is the program that is measured; empty: it is built.
	Monitor string
	// Transactions is how many each topic of the suite stream has, before Scale; Encoding the form of their records,
	// and Set what is configured otherwise than by default, key=value.
	Transactions int64
	Encoding     string
	Set          []string
	// Reading is how long a row of the suite stream reads its topic at most; what was judged by then is
	// what is measured. 0: to the end.
	Reading time.Duration
	// Progress is told what is being done, Done what came of a row; may be nil.
	Progress func(label string)
	Done     func(Result)
}

// Env is what rows measure in.
type Env struct {
	opt      Options
	dir      string // of generated histories
	made     map[string]string
	measured map[string]Measured

	// Of the suite stream.
	encoding rig.Encoding
	brokers  map[string]rig.Broker // by kind, once they are started
	topics   map[string]topic      // that are filled
	stores   int                   // names given out
}

// newEnv prepares a directory. Close must be called.
func newEnv(ctx context.Context, opt Options) (*Env, error) {
	if opt.Progress == nil {
		opt.Progress = func(string) {}
	}
	if opt.Done == nil {
		opt.Done = func(Result) {}
	}
	opt.Set = append([]string{skewDefault}, opt.Set...)
	if opt.Transactions == 0 {
		opt.Transactions = TransactionsDefault
	}
	encoding, err := rig.EncodingNamed(cmp.Or(opt.Encoding, EncodingDefault))
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "isowatch-bench-")
	if err != nil {
		return nil, fmt.Errorf("make a directory for histories: %w", err)
	}
	if opt.Monitor == "" {
		opt.Progress("building the monitor")
		if opt.Monitor, err = rig.Build(ctx, dir); err != nil {
			return nil, errors.Join(err, os.RemoveAll(dir))
		}
	}
	return &Env{opt: opt, dir: dir, made: map[string]string{}, measured: map[string]Measured{}, encoding: encoding,
		brokers: map[string]rig.Broker{}, topics: map[string]topic{}}, nil
}

// What Options leave open.
const (
	TransactionsDefault = 3_000_000
	EncodingDefault     = "protobuf"
	ReadingDefault      = 20 * time.Second
	// skewDefault is what window.max_skew is in the suite stream unless Options.Set says otherwise: who
	// makes the records has one clock, and with the default of the configuration a high rate makes
	// hundreds of transactions concurrent.
	skewDefault = "window.max_skew=0s"
)

func (e *Env) close() error {
	var errs []error
	for _, b := range e.brokers {
		errs = append(errs, b.Close())
	}
	return errors.Join(append(errs, os.RemoveAll(e.dir))...)
}

// command is a run of the monitor that ends with the context.
func (e *Env) command(ctx context.Context, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, e.opt.Monitor, args...)
}

// Spec is a history to be generated.
type Spec struct {
	Level        string
	Workload     string
	Transactions int
	Keys         int
	Variables    int      // of the workload hard, in place of both
	Flags        []string // further ones of generate
}

// args are the flags of generate, at a scale.
func (s Spec) args(scale float64) []string {
	n := func(full int) string { return strconv.Itoa(max(int(math.Round(float64(full)*scale)), 10)) }
	args := []string{"--level", s.Level, "--workload", s.Workload, "--seed", "1"}
	if s.Variables > 0 {
		args = append(args, "--variables", n(s.Variables))
	} else {
		args = append(args, "--transactions", n(s.Transactions), "--keys", n(s.Keys))
	}
	return append(args, s.Flags...)
}

// Generated is the file of a history, made when it is first asked for.
func (e *Env) Generated(ctx context.Context, s Spec) (string, error) {
	args := append([]string{"generate"}, s.args(e.opt.Scale)...)
	line := strings.Join(args, " ")
	if path, ok := e.made[line]; ok {
		return path, nil
	}
	e.opt.Progress("generating " + s.Workload)
	path := filepath.Join(e.dir, fmt.Sprintf("%d-%s.jsonl", len(e.made), s.Workload))
	f, err := os.Create(path)
	if err != nil {
		return "", fmt.Errorf("generate a history: %w", err)
	}
	defer f.Close()
	var said bytes.Buffer
	cmd := e.command(ctx, args...)
	cmd.Stdout, cmd.Stderr = f, &said
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("monitor %s: %w: %s", line, cause(ctx, err), firstLine(said.Bytes()))
	}
	if err := f.Close(); err != nil {
		return "", fmt.Errorf("generate a history: %w", err)
	}
	e.made[line] = path
	return path, nil
}

// checked is what one run of check did.
type checked struct {
	seconds   float64
	peak      uint64
	histories []report.History
}

// check runs `monitor check` once.
func (e *Env) check(ctx context.Context, args ...string) (checked, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, e.opt.Timeout, &lateError{e.opt.Timeout})
	defer cancel()
	args = append([]string{"check", "--output", "json", "--quiet"}, args...)
	var out, said bytes.Buffer
	cmd := e.command(ctx, args...)
	cmd.Stdout, cmd.Stderr = &out, &said
	began := time.Now()
	err := cmd.Run()
	c := checked{seconds: time.Since(began).Seconds()}
	if cmd.ProcessState == nil || ctx.Err() != nil {
		return c, fmt.Errorf("monitor check: %w", cause(ctx, err))
	}
	status := cmd.ProcessState.ExitCode()
	if status != report.ExitSatisfied && status != report.ExitViolated && status != report.ExitUndecided {
		return c, fmt.Errorf("monitor %s: %w: %s", strings.Join(args, " "), err, firstLine(said.Bytes()))
	}
	for line := range bytes.Lines(out.Bytes()) {
		var h report.History
		if err := json.Unmarshal(line, &h); err != nil {
			return c, fmt.Errorf("monitor %s: its report is unreadable: %w", strings.Join(args, " "), err)
		}
		c.histories = append(c.histories, h)
		for _, r := range h.Results {
			c.peak = max(c.peak, r.Stats.PeakBytes)
		}
	}
	// The system counts the memory of a new process from the size of the one that
	// started it; its figure tells nothing below that.
	if all := maxResident(cmd.ProcessState); all > ownMaxResident() {
		c.peak = max(c.peak, all)
	}
	return c, nil
}

// cause is why a command ended: what ended its context, if that did.
func cause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

func firstLine(text []byte) string {
	line, _, _ := bytes.Cut(bytes.TrimSpace(text), []byte("\n"))
	return string(line)
}

// Check measures a history, given by its file: the median of the runs.
func (e *Env) Check(ctx context.Context, file, level string, flags ...string) (Measured, error) {
	args := append([]string{"--level", level}, flags...)
	args = append(args, file)
	key := strings.Join(args, " ")
	if m, ok := e.measured[key]; ok {
		return m, nil
	}
	m := Measured{Histories: 1, Runs: e.opt.Runs, How: "monitor check " + key}
	var seconds []float64
	for run := range e.opt.Runs {
		e.opt.Progress(fmt.Sprintf("checking %s at %s, run %d of %d", filepath.Base(file), level, run+1, e.opt.Runs))
		c, err := e.check(ctx, args...)
		if err != nil {
			return m, err
		}
		seconds = append(seconds, c.seconds)
		m.PeakBytes = max(m.PeakBytes, c.peak)
		m.Verdicts = verdicts(c.histories)
		m.operations = operations(c.histories)
	}
	m.Seconds = median(seconds)
	e.measured[key] = m
	return m, nil
}

// verdicts counts results by verdict.
func verdicts(hs []report.History) map[string]int {
	out := map[string]int{}
	for _, h := range hs {
		if h.Error != nil {
			out["unreadable"]++
		}
		for _, r := range h.Results {
			out[r.Verdict]++
		}
	}
	return out
}

// operations counts those of all histories.
func operations(hs []report.History) int {
	n := 0
	for _, h := range hs {
		n += h.Operations
	}
	return n
}

func median(xs []float64) float64 {
	slices.Sort(xs)
	if n := len(xs); n%2 == 0 {
		return (xs[n/2-1] + xs[n/2]) / 2
	}
	return xs[len(xs)/2]
}

// generated measures a generated history.
func generated(s Spec, level string) func(context.Context, *Env) (Measured, error) {
	return func(ctx context.Context, e *Env) (Measured, error) {
		file, err := e.Generated(ctx, s)
		if err != nil {
			return Measured{}, err
		}
		m, err := e.Check(ctx, file, level)
		m.How = "monitor generate " + strings.Join(s.args(e.opt.Scale), " ") + " | " + strings.TrimSuffix(m.How, file) + "-"
		return m, err
	}
}

// growth compares two generated histories that differ in size alone: by how much more
// time grows than size. Measurements of other rows are used again.
func growth(small, large Spec, level string) func(context.Context, *Env) (Measured, error) {
	return func(ctx context.Context, e *Env) (Measured, error) {
		a, err := generated(small, level)(ctx, e)
		if err != nil {
			return a, err
		}
		b, err := generated(large, level)(ctx, e)
		if err != nil {
			return b, err
		}
		b.Growth = b.Seconds / a.Seconds / (float64(large.Transactions) / float64(small.Transactions))
		b.Histories = 2
		b.Verdicts = sum(a.Verdicts, b.Verdicts)
		return b, nil
	}
}

func sum(a, b map[string]int) map[string]int {
	out := map[string]int{}
	for _, m := range []map[string]int{a, b} {
		for k, n := range m {
			out[k] += n
		}
	}
	return out
}

// worst measures each of several recorded histories by itself and keeps the
// greatest figures.
func worst(r recording, level string) func(context.Context, *Env) (Measured, error) {
	return func(ctx context.Context, e *Env) (Measured, error) {
		files, err := e.recorded(r)
		if err != nil {
			return Measured{}, err
		}
		var w Measured
		for _, file := range files {
			m, err := e.Check(ctx, file, level)
			if err != nil {
				return w, fmt.Errorf("%s: %w", file, err)
			}
			if m.Seconds > w.Seconds {
				w.Seconds, w.How = m.Seconds, m.How
			}
			w.PeakBytes = max(w.PeakBytes, m.PeakBytes)
			w.Verdicts = sum(w.Verdicts, m.Verdicts)
			w.Histories, w.Runs = w.Histories+1, m.Runs
		}
		return w, nil
	}
}

// average measures many recorded histories in one process and takes what check says of each,
// so that the start of the process does not count.
func average(r recording, level string) func(context.Context, *Env) (Measured, error) {
	return func(ctx context.Context, e *Env) (Measured, error) {
		files, err := e.recorded(r)
		if err != nil {
			return Measured{}, err
		}
		m := Measured{Runs: e.opt.Runs, How: fmt.Sprintf("monitor check --level %s --jobs 1 %s …", level, files[0])}
		var seconds []float64
		for run := range e.opt.Runs {
			e.opt.Progress(fmt.Sprintf("checking %d histories at %s, run %d of %d", len(files), level, run+1, e.opt.Runs))
			c, err := e.check(ctx, append([]string{"--level", level, "--jobs", "1", "--anomalies", "1"}, files...)...)
			if err != nil {
				return m, err
			}
			total, n := 0.0, 0
			for _, h := range c.histories {
				for _, r := range h.Results {
					total, n = total+r.Seconds, n+1
				}
			}
			if n == 0 {
				return m, errors.New("no history was judged")
			}
			seconds = append(seconds, total/float64(n))
			m.PeakBytes, m.Histories, m.Verdicts = max(m.PeakBytes, c.peak), len(c.histories), verdicts(c.histories)
		}
		m.Seconds = median(seconds)
		return m, nil
	}
}
