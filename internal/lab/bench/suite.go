package bench

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Suite is a table of measurements.
type Suite struct {
	Name  string
	About string
	Head  func(*Env) string // what About says further of how it is measured; may be nil
	Rows  []Row
	// Runs and Scale are those of Options unless something else is asked for; 0: 3 runs, full size.
	Runs  int
	Scale float64
}

// Suites lists all suites.
func Suites() []Suite { return []Suite{strong(), weak(), cliffs(), streams()} }

// Named finds a suite.
func Named(name string) (Suite, bool) {
	for _, s := range Suites() {
		if s.Name == name {
			return s, true
		}
	}
	return Suite{}, false
}

// Row is one piece of work at one level.
type Row struct {
	Name   string // for --only
	Work   string // what is done, for people
	Level  string
	Target Target
	Peer   Peer
	// Expect is the verdict that every history must get; empty: any.
	Expect  string
	Measure func(ctx context.Context, e *Env) (Measured, error)
}

// Target is what is to be reached; a zero field is none.
type Target struct {
	Seconds float64 `json:"seconds,omitempty"`
	MB      float64 `json:"mb,omitempty"` // 10^6 bytes
	Growth  float64 `json:"growth,omitempty"`
	// Exponent is that of time as a power of the size.
	Exponent float64 `json:"exponent,omitempty"`
	// Share is that of the sum of several measurements.
	Share float64 `json:"share,omitempty"`
	// PerSecond is how many transactions of each second there should be at least.
	PerSecond float64 `json:"per_second,omitempty"`
	// Flat is how much more memory, and Even how much more work for each transaction, the last
	// tenth of a stream may take than the second: 1.05 is 5% more.
	Flat float64 `json:"flat,omitempty"`
	Even float64 `json:"even,omitempty"`
	// Latency is the seconds within which 99% of the alerts have to be there.
	Latency float64 `json:"latency,omitempty"`
}

// Peer is what a paper states for the same work, on its authors' machine.
type Peer struct {
	Figure string `json:"figure"` // empty: it states none
	Source string `json:"source"`
}

// Measured is what a row found.
type Measured struct {
	Histories int `json:"histories"`
	Runs      int `json:"runs"` // of each history
	// Seconds are the median of the runs; of several histories the worst one's,
	// or their average if the row says so.
	Seconds float64 `json:"seconds"`
	// PeakBytes is the greatest resident size of any run.
	PeakBytes uint64 `json:"peak_bytes"`
	// Growth is by how much more the time has grown than the history.
	Growth float64 `json:"growth,omitempty"`
	// Exponent is of the power of the size that the time grows with.
	Exponent float64 `json:"exponent,omitempty"`
	// Share is the time of several levels at once, of the sum of each alone.
	Share float64 `json:"share,omitempty"`
	// PerSecond is how many transactions of a second there were.
	PerSecond float64 `json:"per_second,omitempty"`
	// Verdicts counts histories by verdict.
	Verdicts map[string]int `json:"verdicts,omitempty"`
	// Stream is what there is to say of a stream.
	Stream *Streamed `json:"stream,omitempty"`
	// How repeats one of the runs.
	How string `json:"how,omitempty"`
	// Peer is what another checker did on the same history, if there is one.
	Peer *PeerRun `json:"peer,omitempty"`

	operations int // of the history
}

// Status says how a row ended; a closed set.
type Status string

// The statuses.
const (
	OK        Status = "ok"        // within the target
	Over      Status = "over"      // not within it
	Unrated   Status = "measured"  // nothing to compare with: no target, or another size
	Wrong     Status = "wrong"     // another verdict than expected
	Undecided Status = "undecided" // some history got no verdict
	TimedOut  Status = "timeout"   // stopped, as it took too long
	Skipped   Status = "skipped"   // its recordings are not there
	Failed    Status = "failed"    // the measurement itself did not work
)

// Result is a row and what came of it. The order of the fields is part of the
// format.
type Result struct {
	Name     string    `json:"name"`
	Work     string    `json:"work"`
	Level    string    `json:"level"`
	Status   Status    `json:"status"`
	Why      string    `json:"why,omitempty"` // unless ok, over or measured
	Measured *Measured `json:"measured,omitempty"`
	Target   Target    `json:"target"`
	Peer     Peer      `json:"peer"`
}

// skipError is the error of a row whose recordings are not there.
type skipError struct{ why string }

func (s *skipError) Error() string { return s.why }

func skipf(format string, args ...any) error { return &skipError{fmt.Sprintf(format, args...)} }

// lateError is the error of a run that was stopped.
type lateError struct{ after time.Duration }

func (l *lateError) Error() string { return fmt.Sprintf("stopped after %v", l.after) }

// Select keeps the rows that are asked for: each of only is a name, or
// the beginning of several up to a "-". Empty: all. The error names what there is.
func (s Suite) Select(only []string) (Suite, error) {
	if len(only) == 0 {
		return s, nil
	}
	used := make([]bool, len(only))
	wanted := func(name string) bool {
		found := false
		for i, o := range only {
			if name == o || strings.HasPrefix(name, o+"-") {
				used[i], found = true, true
			}
		}
		return found
	}
	var rows []Row
	for _, r := range s.Rows {
		if wanted(r.Name) {
			rows = append(rows, r)
		}
	}
	if i := slices.Index(used, false); i >= 0 {
		return s, fmt.Errorf("suite %s has nothing that is called %q: there is %s", s.Name, only[i],
			strings.Join(s.Names(), ", "))
	}
	s.Rows = rows
	return s, nil
}

// Names lists the rows.
func (s Suite) Names() []string {
	var out []string
	for _, r := range s.Rows {
		out = append(out, r.Name)
	}
	return out
}
