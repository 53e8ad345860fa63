package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/dustin/go-humanize/english"

	"github.com/isowatch/isowatch/alerts/name"
	"github.com/isowatch/isowatch/alerts/present"
	"github.com/isowatch/isowatch/alerts/text"
	"github.com/isowatch/isowatch/incremental/verdict"
)

// Text writes reports for people. The zero value writes without color.
type Text struct {
	W     io.Writer
	Color bool
	// Drawn: the anomalies were drawn before, and are named alone.
	Drawn bool
}

// ANSI colors of verdicts.
const (
	red    = "\x1b[1;31m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	dim    = "\x1b[2m"
	plain  = "\x1b[0m"
)

func (t Text) paint(color, s string) string {
	if !t.Color {
		return s
	}
	return color + s + plain
}

// History writes one report: a line about the history, a line per level, and then
// every anomaly as it was drawn, once, however many levels do not allow it.
func (t Text) History(h *History) error {
	var b strings.Builder
	name := h.name()
	switch {
	case h.Error != nil:
		b.WriteString(t.broken(h) + "\n")
	case h.Limit != "":
		fmt.Fprintf(&b, "%s: not read to its end\n", name)
	default:
		fmt.Fprintf(&b, "%s: %s, %s", name, count(h.Transactions, "transaction"), count(h.Operations, "operation"))
		switch {
		case h.Uncounted:
		case h.Continued:
			b.WriteString(", those of runs before included; of the records that this run read: ")
		default:
			b.WriteString(", ")
		}
		if !h.Uncounted {
			fmt.Fprintf(&b, "%s, %s", count(h.Sessions, "session"), count(h.Keys, "key"))
		}
		if h.Mini {
			b.WriteString("; mini-transactions")
		}
		b.WriteByte('\n')
	}
	if h.All {
		t.lattice(&b, h)
	} else {
		for i := range h.Results {
			t.result(&b, &h.Results[i])
		}
	}
	t.stretches(&b, h.Stretches)
	if !t.Drawn {
		if err := t.anomalies(&b, h); err != nil {
			return err
		}
	}
	_, err := io.WriteString(t.W, b.String())
	return err
}

// name is the file, and the database if it is not the only one. Both come from outside.
func (h *History) name() string {
	if h.DB != "" && h.DB != "default" {
		return text.Printable(h.File) + " (" + text.Printable(h.DB) + ")"
	}
	return text.Printable(h.File)
}

// broken says why a history can't be judged.
func (t Text) broken(h *History) string {
	at := text.Printable(h.File)
	if h.Error.Line > 0 {
		at += fmt.Sprintf(":%d", h.Error.Line)
	}
	return at + ": " + t.paint(red, "can't be judged:") + " " + h.Error.text()
}

func (e *Error) text() string {
	if e.Field != "" {
		return text.Printable(e.Field + ": " + e.Message)
	}
	return text.Printable(e.Message)
}

// result writes one level.
func (t Text) result(b *strings.Builder, r *Result) {
	said, more := t.verdict(r)
	fmt.Fprintf(b, "  %-9s %s  %s%s\n", r.Level, said, t.paint(dim, fmt.Sprintf("%.3f s", r.Seconds)), more)
	if w := r.Stats.work(); w != "" {
		fmt.Fprintf(b, "            %s\n", t.paint(dim, w))
	}
	for _, n := range r.Notes {
		fmt.Fprintf(b, "            %s\n", t.paint(dim, text.Printable(n)))
	}
}

// verdict is what is known of a level, and why.
func (t Text) verdict(r *Result) (said, more string) {
	switch r.Verdict {
	case verdict.Satisfied.String():
		said = t.paint(green, "satisfied")
	case verdict.Violated.String():
		said, more = t.paint(red, "VIOLATED "), "  "+count(len(r.Anomalies), "anomaly")
		if found := r.names(); found != "" {
			more += ": " + found
		}
	case verdict.Unknown.String():
		said = t.paint(yellow, "unknown  ")
		if u := r.Unknown; u != nil {
			more = "  " + u.text()
		}
	default:
		said = r.Verdict
	}
	return said, more
}

// lattice writes a line per level, the strongest first, with what breaks it, and what
// is known beside: notes, each once, and the session guarantees.
func (t Text) lattice(b *strings.Builder, h *History) {
	results := h.lattice()
	for _, r := range results {
		said, more := t.verdict(r)
		words := ""
		if l, ok := verdict.ParseLevel(r.Level); ok {
			words = strings.TrimSuffix(name.Level(l), " ("+r.Level+")")
		}
		switch {
		case r.Verdict == verdict.Violated.String() && len(r.Anomalies) > 0:
			more = "  by " + r.Anomalies[0].Name
			if n := len(r.Anomalies) - 1; n > 0 {
				more += fmt.Sprintf(" and %d more", n)
			}
		case slices.Contains(h.Strongest, r.Level):
			more = "  strongest"
		}
		fmt.Fprintf(b, "  %-9s  %-25s  %s%s\n", r.Level, words, said, more)
	}
	if len(h.Guarantees) > 0 {
		b.WriteString("  session guarantees: " + t.guarantees(h.Guarantees) + "\n")
	}
	if h.Took > 0 {
		fmt.Fprintf(b, "  %s\n", t.paint(dim, fmt.Sprintf("judged in %.3f s", h.Took.Seconds())))
	}
	for _, n := range gather(results) {
		fmt.Fprintf(b, "  %s\n", t.paint(dim, text.Printable(n)))
	}
}

// guarantees are the session guarantees in a line, by what is known of them: what holds
// first, then what is violated.
func (t Text) guarantees(all []Guarantee) string {
	of := map[string][]string{}
	order, violated := []string{"hold"}, 1
	for i := range all {
		g := &all[i]
		said := g.Verdict
		switch g.Verdict {
		case verdict.Satisfied.String():
			said = "hold"
		case verdict.Violated.String():
			said = t.paint(red, "VIOLATED")
			for _, a := range g.Anomalies {
				said += fmt.Sprintf(" (%s of %s)", a.Name, idList(a.Transactions))
			}
		case verdict.Unknown.String():
			if g.Reason != "" {
				said = "not judged, as " + g.Reason
			}
		}
		switch {
		case slices.Contains(order, said):
		case g.Verdict == verdict.Violated.String():
			order = slices.Insert(order, violated, said)
			violated++
		default:
			order = append(order, said)
		}
		of[said] = append(of[said], g.Guarantee)
	}
	var parts []string
	for _, said := range order {
		switch names := of[said]; {
		case len(names) == len(all):
			parts = append(parts, "all "+said+": "+strings.Join(names, ", "))
		case len(names) > 0:
			parts = append(parts, strings.Join(names, ", ")+" "+said)
		}
	}
	return strings.Join(parts, "; ")
}

// gather are the notes of levels, each once with the levels that it is of, unless that is
// every one that applies.
func gather(results []*Result) []string {
	of := map[string][]string{}
	var order []string
	apply := 0
	for _, r := range results {
		if r.Verdict != verdict.NotApplicable.String() {
			apply++
		}
		all := r.Notes
		if w := r.Stats.work(); w != "" {
			all = append([]string{w}, all...)
		}
		for _, n := range all {
			if of[n] == nil {
				order = append(order, n)
			}
			of[n] = append(of[n], r.Level)
		}
	}
	out := make([]string, len(order))
	for i, n := range order {
		out[i] = strings.Join(of[n], ", ") + ": " + n
		if len(of[n]) == apply {
			out[i] = n
		}
	}
	return out
}

// distinct are the anomalies that break the levels, each once, the weakest level's
// first.
func (h *History) distinct() []*Anomaly {
	var all []*Anomaly
	for i := range h.Results {
		for j := range h.Results[i].Anomalies {
			a := &h.Results[i].Anomalies[j]
			if !slices.ContainsFunc(all, func(o *Anomaly) bool { return o.Alert.ID == a.Alert.ID }) {
				all = append(all, a)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b *Anomaly) int { return height(a.Level) - height(b.Level) })
	return all
}

// anomalies draws what breaks the levels.
func (t Text) anomalies(b *strings.Builder, h *History) error {
	all := h.distinct()
	for _, a := range all {
		b.WriteByte('\n')
		var drawing strings.Builder
		if err := present.Text(&drawing, a.Alert, present.Options{Color: t.Color}); err != nil {
			return err
		}
		for line := range strings.Lines(drawing.String()) {
			if line != "\n" {
				b.WriteString("  ")
			}
			b.WriteString(line)
		}
	}
	if len(all) > 0 {
		b.WriteByte('\n')
	}
	return nil
}

// work says what was hard in a level, if anything was.
func (s *Stats) work() string {
	var parts []string
	if s.Choices > 0 {
		parts = append(parts, count(s.Choices, "read")+" with several possible writers")
	}
	if s.Residual > 0 {
		parts = append(parts, count(s.Residual, "order")+" of writes searched")
	}
	if s.Conflicts > 0 {
		parts = append(parts, count(s.Conflicts, "dead end")+" met")
	}
	return strings.Join(parts, ", ")
}

// idList joins transactions' ids, which come from outside.
func idList(ids []string) string {
	out := make([]string, len(ids))
	for i, id := range ids {
		out[i] = text.Name(id)
	}
	return strings.Join(out, ", ")
}

// count writes "1 key" or "2,000 keys".
func count(n int, what string) string { return english.Plural(n, what, "") }
