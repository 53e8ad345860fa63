package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/isowatch/isowatch/alerts/text"
)

// Text writes reports for people. The zero value writes without color.
type Text struct {
	W     io.Writer
	Color bool
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

// History writes one report: a line about the history, a line per level, and
// every anomaly as it was drawn.
func (t Text) History(h *History) error {
	var b strings.Builder
	name := h.name()
	switch {
	case h.Error != nil:
		b.WriteString(t.broken(h) + "\n")
	case h.Limit != "":
		fmt.Fprintf(&b, "%s: not read to its end\n", name)
	default:
		fmt.Fprintf(&b, "%s: %s, %s, %s, %s\n", name, count(h.Transactions, "transaction"), count(h.Operations, "operation"),
			count(h.Sessions, "session"), count(h.Keys, "key"))
	}
	shown := map[string]string{}
	for i := range h.Results {
		if err := t.result(&b, &h.Results[i], shown); err != nil {
			return err
		}
	}
	_, err := io.WriteString(t.W, b.String())
	return err
}

// name is the file, and the database if it is not the only one.
func (h *History) name() string {
	if h.DB != "" && h.DB != "default" {
		return h.File + " (" + h.DB + ")"
	}
	return h.File
}

// broken says why a history can't be judged.
func (t Text) broken(h *History) string {
	at := h.File
	if h.Error.Line > 0 {
		at += fmt.Sprintf(":%d", h.Error.Line)
	}
	return at + ": " + t.paint(red, "can't be judged:") + " " + h.Error.text()
}

func (e *Error) text() string {
	if e.Field != "" {
		return e.Field + ": " + e.Message
	}
	return e.Message
}

// result writes one level. shown has the anomalies that were drawn, with their
// levels: one that several levels do not allow is drawn once.
func (t Text) result(b *strings.Builder, r *Result, shown map[string]string) error {
	var said, more string
	switch r.Verdict {
	case "satisfied":
		said = t.paint(green, "satisfied")
	case "violated":
		said, more = t.paint(red, "VIOLATED "), "  "+count(len(r.Anomalies), "anomaly")
	case "unknown":
		said = t.paint(yellow, "unknown  ")
		if u := r.Unknown; u != nil {
			more = fmt.Sprintf("  %s: %s left open, %.0f%% decided", u.Reason, humanize.Comma(int64(u.Count)), 100*u.Decided)
		}
	default:
		said = r.Verdict
	}
	fmt.Fprintf(b, "  %-9s %s  %s%s\n", r.Level, said, t.paint(dim, fmt.Sprintf("%.3f s", r.Seconds)), more)
	if w := r.Stats.work(); w != "" {
		fmt.Fprintf(b, "            %s\n", t.paint(dim, w))
	}
	for _, n := range r.Notes {
		fmt.Fprintf(b, "            %s\n", t.paint(dim, n))
	}
	drawn := false
	for _, a := range r.Anomalies {
		same := a.Name + "\x00" + strings.Join(a.Transactions, "\x00")
		if level, ok := shown[same]; ok {
			fmt.Fprintf(b, "            %s of %s, as drawn at %s\n", a.Name, idList(a.Transactions), level)
			continue
		}
		shown[same], drawn = r.Level, true
		b.WriteByte('\n')
		var drawing strings.Builder
		if err := a.Draw(&drawing, t.Color); err != nil {
			return err
		}
		for line := range strings.Lines(drawing.String()) {
			if line != "\n" {
				b.WriteString("  ")
			}
			b.WriteString(line)
		}
	}
	if drawn {
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
		parts = append(parts, count(s.Residual, "order")+" of writes left to search")
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
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	if s, ok := strings.CutSuffix(what, "y"); ok && !strings.HasSuffix(what, "key") {
		what = s + "ie"
	}
	return humanize.Comma(int64(n)) + " " + what + "s"
}
