// Package report is what `monitor check`, and `run --until-end`, say about a
// history: its JSON, its text, and the exit status that it means.
//
//	History            one per history, a line of JSON
//	 ├─ Error          if it can't be read
//	 ├─ Result         one per level
//	 │   ├─ Unknown    why it is undecided
//	 │   ├─ Anomaly    with evidence that proves it by itself
//	 │   └─ Stats
//	 └─ Guarantee      one per session guarantee, if all levels were asked for
//
// The order of the fields is part of the format.
package report

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/incremental/verdict"
)

// History is the report on one history.
type History struct {
	File         string `json:"file"`
	Format       string `json:"format"`
	DB           string `json:"db"`
	Transactions int    `json:"transactions"`
	Operations   int    `json:"operations"`
	Sessions     int    `json:"sessions"`
	Keys         int    `json:"keys"`
	// Continued: Sessions and Keys are those of the records that this run read; all else
	// is about what runs before read, too.
	Continued bool `json:"continued,omitempty"`
	// Uncounted: sessions and keys were not counted.
	Uncounted bool `json:"uncounted,omitempty"`
	// Mini: every transaction is a mini-transaction (MTC, Definitions 8 and 9).
	Mini      bool     `json:"mini_transactions,omitempty"`
	Strongest []string `json:"strongest"` // of the levels that were asked for, the maximal ones that hold
	Error     *Error   `json:"error"`     // why it can't be judged
	Results   []Result `json:"results"`   // one per level, in the order asked
	// Guarantees are the session guarantees, if all levels were asked for.
	Guarantees []Guarantee `json:"guarantees,omitempty"`

	// Stretches are the parts that a stream was judged in, if it was more than one or if
	// something is missing in it.
	Stretches []Stretch `json:"stretches,omitempty"`

	// Limit is the one that was reached before the end was read, so that the sizes
	// are not known; empty otherwise.
	Limit string `json:"-"`
	// All: every level was asked for, to learn which hold. One that does not apply
	// then leaves nothing undecided.
	All bool `json:"-"`
	// Took is the time of everything, reading included.
	Took time.Duration `json:"-"`
}

// Guarantee is what is known of a session guarantee.
type Guarantee struct {
	Guarantee string    `json:"guarantee"` // read-your-writes, …
	Verdict   string    `json:"verdict"`
	Reason    string    `json:"reason,omitempty"` // why it is unknown, if another guarantee is to blame
	Anomalies []Anomaly `json:"anomalies"`        // one, if it is violated
}

// Error says what is wrong with a history.
type Error struct {
	Line    int64  `json:"line"`  // 1-based; 0 where the format has no lines
	Field   string `json:"field"` // empty when it is not about a field
	Message string `json:"message"`
}

// Result is what is known of one level.
type Result struct {
	Level   string `json:"level"`
	Verdict string `json:"verdict"` // satisfied, violated, unknown or not-applicable
	// of all phases but decoding; levels that were judged together share all but explaining
	Seconds   float64   `json:"seconds"`
	Unknown   *Unknown  `json:"unknown"`
	Anomalies []Anomaly `json:"anomalies"`
	Notes     []string  `json:"notes,omitempty"` // what a reader should know of the verdict
	Stats     Stats     `json:"stats"`

	inferred bool // by infer
}

// Unknown says why a level is undecided.
type Unknown struct {
	Reason  string  `json:"reason"`  // timeout, memory, conflicts, not-checked or forgotten
	Decided float64 `json:"decided"` // the share that was decided, 0 to 1
	Count   int     `json:"count"`   // how many operations, transactions or constraints were not
}

// reasons say in words why something is not known.
var reasons = map[string]string{
	verdict.Timeout.String():    "the time was over before it was decided",
	verdict.Memory.String():     "the memory was used up before it was decided",
	verdict.Conflicts.String():  "the search took more steps than it may",
	verdict.NotChecked.String(): "no violation is told; some of it is not checked",
	verdict.Forgotten.String(): "no violation is told; each stretch is judged by itself, and what lies across them is " +
		"not decided",
}

// text says why it is unknown, and how much was decided, if that is known.
func (u *Unknown) text() string { return reasons[u.Reason] + " (" + u.Reason + ")" + u.open("; ") }

// open is what was left open, behind a separator. Where transactions were forgotten there is no share of them: each
// part of the stream is judged by itself. Where nothing is counted as open a share says nothing either.
func (u *Unknown) open(separator string) string {
	if u.Count == 0 || u.Reason == verdict.Forgotten.String() {
		return ""
	}
	return fmt.Sprintf("%s%s left open, %d%% decided", separator, humanize.Comma(int64(u.Count)),
		min(99, int(100*u.Decided)))
}

// Anomaly is one violation with its proof.
type Anomaly struct {
	Name string `json:"name"`
	Adya string `json:"adya"`
	// Level is the weakest of the levels asked for that it is proved to break: the
	// history is violated at that level.
	Level        string            `json:"level"`
	Transactions []string          `json:"transactions"`
	Cycle        []Edge            `json:"cycle"`
	Cases        [][]Edge          `json:"cases,omitempty"` // instead of a cycle: whatever is supposed, one of these
	Explanation  string            `json:"explanation"`
	History      []json.RawMessage `json:"history"` // records, header line first
	Events       []alerts.Nearby   `json:"events,omitempty"`

	// Alert is all that is known of it; not part of the JSON. Its ID is equal for an anomaly that several levels do not
	// allow.
	Alert alerts.Alert `json:"-"`
}

// Edge is a dependency of a cycle.
type Edge struct {
	From string `json:"from"`
	To   string `json:"to"`
	Type string `json:"type"`
	Key  string `json:"key"`
}

// Stats count the work for one level.
type Stats struct {
	verdict.Stats
	PeakBytes    uint64 `json:"peak_bytes"` // of the whole process so far
	PhaseSeconds Phases `json:"phase_seconds"`
}

// Phases are seconds by phase. Decoding is shared by all levels.
type Phases struct {
	Decode    float64 `json:"decode"`
	Construct float64 `json:"construct"`
	Prune     float64 `json:"prune"`
	Solve     float64 `json:"solve"`
	Explain   float64 `json:"explain"`
}

// Unproved is the note on anomalies of a level that evidence does not prove.
func Unproved(n int) string {
	return fmt.Sprintf("the evidence of %d anomalies does not prove them by itself, as far as it was judged; please report this with the history", n)
}

// infer decides what is undecided and follows from another level's verdict: what
// breaks a level breaks those that imply it, also what was found at a stronger one; what satisfies one satisfies those
// that it implies. A session guarantee is violated by what breaks a level and is called so.
func (h *History) infer() {
	for i := range h.Guarantees {
		g := &h.Guarantees[i]
		for _, r := range h.Results {
			of := func(a Anomaly) bool { return a.Alert.Guarantee == g.Guarantee }
			if at := slices.IndexFunc(r.Anomalies, of); at >= 0 && g.Verdict == verdict.Unknown.String() {
				g.Verdict, g.Reason, g.Anomalies = verdict.Violated.String(), "", r.Anomalies[at:at+1]
			}
		}
	}
	for i := range h.Results {
		r := &h.Results[i]
		l, ok := verdict.ParseLevel(r.Level)
		if !ok || r.Verdict != verdict.Unknown.String() {
			continue
		}
		for j := range h.Results {
			from := &h.Results[j]
			m, ok := verdict.ParseLevel(from.Level)
			if !ok || from.inferred {
				continue
			}
			breaks := slices.DeleteFunc(slices.Clone(from.Anomalies), func(a Anomaly) bool {
				weakest, ok := verdict.ParseLevel(a.Level)
				return !ok || !l.Implies(weakest)
			})
			switch {
			case from.Verdict == verdict.Violated.String() && l.Implies(m):
				r.Anomalies = from.Anomalies
			case from.Verdict == verdict.Violated.String() && len(breaks) > 0:
				r.Anomalies = breaks
			case from.Verdict == verdict.Satisfied.String() && m.Implies(l):
			default:
				continue
			}
			r.Notes = append(r.Notes, fmt.Sprintf("follows from %s; by itself it was not decided: %s", from.Level,
				r.Unknown.Reason))
			r.Verdict, r.Unknown, r.inferred = from.Verdict, nil, true
			break
		}
	}
}

// Conclude fills in what follows from all results together: what is undecided by
// itself, the order of the anomalies, that there are as many as are told, and Strongest.
func (h *History) Conclude(anomaliesMax int) {
	h.infer()
	h.weakestFirst(anomaliesMax)
	for i := range h.Results {
		if r := &h.Results[i]; anomaliesMax > 0 && len(r.Anomalies) >= anomaliesMax {
			r.Notes = append(slices.Clip(r.Notes),
				fmt.Sprintf("there may be more: no more than %s of a level are told", count(anomaliesMax, "anomaly")))
		}
	}
	var hold []verdict.Level
	for _, r := range h.Results {
		if l, ok := verdict.ParseLevel(r.Level); ok && r.Verdict == verdict.Satisfied.String() {
			hold = append(hold, l)
		}
	}
	h.Strongest = verdict.Names(verdict.Maximal(hold))
}

// The exit statuses of a report.
const (
	ExitSatisfied = 0
	ExitViolated  = 1
	ExitUnusable  = 2
	ExitUndecided = 3
)

// Exit is the status that several histories mean together: a violation goes
// before an unusable history, and that before an undecided one.
func Exit(hs []History) int {
	worst := ExitSatisfied
	for i := range hs {
		worst = Worse(worst, hs[i].Exit())
	}
	return worst
}

// Exit is the status that one history means.
func (h *History) Exit() int {
	status := ExitSatisfied
	if h.Error != nil {
		status = ExitUnusable
	}
	for _, r := range h.Results {
		switch r.Verdict {
		case verdict.Violated.String():
			return ExitViolated
		case verdict.Satisfied.String():
		case verdict.NotApplicable.String():
			if !h.All {
				status = Worse(status, ExitUndecided)
			}
		default:
			status = Worse(status, ExitUndecided)
		}
	}
	return status
}

// Worse returns the status that goes before the other.
func Worse(a, b int) int {
	for _, s := range []int{ExitViolated, ExitUnusable, ExitUndecided} {
		if a == s || b == s {
			return s
		}
	}
	return ExitSatisfied
}
