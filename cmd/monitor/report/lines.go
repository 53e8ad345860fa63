package report

import (
	"fmt"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/isowatch/isowatch/incremental/verdict"
)

// Line writes one report on one line: what is wrong is named but not shown.
func (t Text) Line(h *History) error {
	if h.Error != nil {
		_, err := fmt.Fprintln(t.W, t.broken(h))
		return err
	}
	_, err := fmt.Fprintf(t.W, "%s: %s  %s\n", h.name(), t.levels(h),
		t.paint(dim, fmt.Sprintf("%.3f s", h.Took.Seconds())))
	return err
}

// levels are the levels in a line: each with what is known of it, or, if all were asked
// for, the strongest that hold, and then the others by what is known of them.
func (t Text) levels(h *History) string {
	if !h.All {
		out := make([]string, len(h.Results))
		for i := range h.Results {
			out[i] = h.Results[i].Level + " " + t.level(&h.Results[i])
		}
		return strings.Join(out, ", ")
	}
	hold := "none"
	if len(h.Strongest) > 0 {
		hold = strings.Join(h.Strongest, " ")
	}
	out := []string{"strongest " + t.paint(green, hold)}
	of := map[string][]string{}
	var order []string
	for i := range h.Results {
		r := &h.Results[i]
		if r.Verdict == verdict.Satisfied.String() || r.Verdict == verdict.NotApplicable.String() {
			continue
		}
		said := t.level(r)
		if of[said] == nil {
			order = append(order, said)
		}
		of[said] = append(of[said], r.Level)
	}
	for _, said := range order {
		out = append(out, strings.Join(of[said], " ")+" "+said)
	}
	return strings.Join(out, "; ")
}

// level is what is known of a level, in a line.
func (t Text) level(r *Result) string {
	switch r.Verdict {
	case verdict.Satisfied.String():
		return t.paint(green, r.Verdict)
	case verdict.Violated.String():
		s := t.paint(red, "VIOLATED")
		if found := r.names(); found != "" {
			s += " (" + found + ")"
		}
		return s
	case verdict.Unknown.String():
		s := t.paint(yellow, r.Verdict)
		if u := r.Unknown; u != nil {
			s += " (" + u.Reason + u.open(", ") + ")"
		}
		return s
	}
	return r.Verdict
}

// names are the kinds of anomalies in a level, each once, in the order in which
// they come.
func (r *Result) names() string {
	times := map[string]int{}
	var order []string
	for _, a := range r.Anomalies {
		if times[a.Name] == 0 {
			order = append(order, a.Name)
		}
		times[a.Name]++
	}
	for i, n := range order {
		if times[n] > 1 {
			order[i] = fmt.Sprintf("%d %s", times[n], n)
		}
	}
	return strings.Join(order, ", ")
}

// Tally counts the verdicts of several histories. The zero value has seen none.
type Tally struct {
	Histories int
	unusable  int
	status    int
	Took      time.Duration // told if it is set
	levels    []string      // in the order in which they came
	verdicts  map[string]*[4]int
}

// Add counts one history.
func (t *Tally) Add(h *History) {
	t.Histories++
	t.status = Worse(t.status, h.Exit())
	if h.Error != nil {
		t.unusable++
	}
	for _, r := range h.Results {
		if t.verdicts == nil {
			t.verdicts = map[string]*[4]int{}
		}
		if t.verdicts[r.Level] == nil {
			t.verdicts[r.Level] = new([4]int)
			t.levels = append(t.levels, r.Level)
		}
		for o := verdict.Satisfied; o <= verdict.NotApplicable; o++ {
			if o.String() == r.Verdict {
				t.verdicts[r.Level][o]++
			}
		}
	}
}

// Exit is the status that all of them mean together.
func (t *Tally) Exit() int { return t.status }

// Summary writes a line about several histories:
//
//	3 histories: si 2 satisfied, 1 unknown; ser 1 satisfied, 2 violated; 0.250 s
func (t Text) Summary(all *Tally) error {
	var parts []string
	for _, l := range all.levels {
		var said []string
		for o, color := range []string{green, red, yellow, dim} {
			if n := all.verdicts[l][o]; n > 0 {
				said = append(said, t.paint(color, humanize.Comma(int64(n))+" "+verdict.Outcome(o).String()))
			}
		}
		parts = append(parts, l+" "+strings.Join(said, ", "))
	}
	if all.unusable > 0 {
		parts = append(parts, t.paint(red, humanize.Comma(int64(all.unusable))+" can't be judged"))
	}
	if all.Took > 0 {
		parts = append(parts, fmt.Sprintf("%.3f s", all.Took.Seconds()))
	}
	_, err := fmt.Fprintf(t.W, "%s: %s\n", count(all.Histories, "history"), strings.Join(parts, "; "))
	return err
}
