package bench

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
)

// Report is what a suite found. The order of the fields is part of the format.
type Report struct {
	Suite   string   `json:"suite"`
	About   string   `json:"about"`
	Machine Machine  `json:"machine"`
	Runs    int      `json:"runs"`
	Scale   float64  `json:"scale"`
	Rows    []Result `json:"rows"`
}

// Machine is where it was measured.
type Machine struct {
	OS   string `json:"os"`
	Arch string `json:"arch"`
	CPUs int    `json:"cpus"`
	Go   string `json:"go"`
}

// Run measures a suite. Rows that fail are in the report; the error is of what
// keeps all of them from being measured, or of the context. The report has what was measured by then.
func Run(ctx context.Context, s Suite, opt Options) (r Report, err error) {
	e, err := newEnv(ctx, opt)
	if err != nil {
		return Report{}, err
	}
	defer func() { err = errors.Join(err, e.close()) }()
	about := s.About
	if s.Head != nil {
		about += s.Head(e)
	}
	r = Report{Suite: s.Name, About: about, Runs: opt.Runs, Scale: opt.Scale, Rows: []Result{},
		Machine: Machine{OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.NumCPU(), Go: runtime.Version()}}
	say, n := e.opt.Progress, 0
	e.opt.Progress = func(label string) {
		say(fmt.Sprintf("%d of %d: %s", n, len(s.Rows), label))
	}
	for _, row := range s.Rows {
		n++
		result := row.run(ctx, e)
		if ctx.Err() != nil {
			return r, context.Cause(ctx)
		}
		r.Rows = append(r.Rows, result)
		e.opt.Done(result)
	}
	return r, nil
}

// Failed counts what could not be measured.
func (r *Report) Failed() int {
	n := 0
	for _, row := range r.Rows {
		if row.Status == Failed {
			n++
		}
	}
	return n
}

// run measures a row and compares.
func (row *Row) run(ctx context.Context, e *Env) Result {
	r := Result{Name: row.Name, Work: row.Work, Level: row.Level, Target: row.Target, Peer: row.Peer}
	m, err := row.Measure(ctx, e)
	var skipped *skipError
	var late *lateError
	switch {
	case errors.As(err, &skipped):
		r.Status, r.Why = Skipped, err.Error()
	case errors.As(err, &late):
		r.Status, r.Why = TimedOut, late.Error()
	case err != nil:
		r.Status, r.Why = Failed, err.Error()
	default:
		r.Measured = &m
		r.Status, r.Why = row.compare(&m, e.opt.Scale)
	}
	return r
}

// compare says whether the target was met, which is for full sizes only.
func (row *Row) compare(m *Measured, scale float64) (Status, string) {
	for _, v := range slices.Sorted(maps.Keys(m.Verdicts)) {
		if row.Expect != "" && v != row.Expect && v != undecided {
			return Wrong, fmt.Sprintf("all must be %s", row.Expect)
		}
	}
	if why := m.Stream.wrong(); why != "" {
		return Wrong, why
	}
	if m.Verdicts[undecided] > 0 {
		return Undecided, "what was measured is not the whole work"
	}
	t := row.Target
	if scale != 1 || t == (Target{}) {
		return Unrated, ""
	}
	if t.missed(m) {
		return Over, ""
	}
	return OK, ""
}

// missed tells whether any of the figures is not within the target.
func (t Target) missed(m *Measured) bool {
	latency, s := 0.0, m.Stream
	if s == nil {
		s = &Streamed{}
	}
	if s.Latency != nil {
		latency = s.Latency.P99
	}
	above := func(target, figure float64) bool { return target > 0 && figure > target }
	return above(t.Seconds, m.Seconds) || above(t.MB, float64(m.PeakBytes)/1e6) || above(t.Growth, m.Growth) ||
		above(t.Exponent, m.Exponent) || above(t.Share, m.Share) || above(t.Latency, latency) ||
		above(t.Flat, s.Memory.growth()) || above(t.Even, s.CPU.growth()) || m.PerSecond < t.PerSecond
}
