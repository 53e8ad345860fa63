package report

import (
	"fmt"
	"io"
	"slices"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/alerts/picture"
	"github.com/isowatch/isowatch/alerts/present"
	"github.com/isowatch/isowatch/alerts/text"
	"github.com/isowatch/isowatch/incremental/verdict"
)

// Drawings are the forms of a Drawing.
func Drawings() []string { return []string{"dot", "svg", "html"} }

// Drawing collects histories, and writes what is wrong with them as pictures: one
// document for all. It keeps the evidence of no more anomalies than are drawn.
type Drawing struct {
	histories []present.PageHistory
	lines     []string // of each history, what is known of its levels
	alerts    []alerts.Alert
	sources   []string
}

// Add adds a history.
func (d *Drawing) Add(h *History) {
	name := h.name()
	if h.File == "-" {
		name = "standard input"
	}
	out := present.PageHistory{File: name, Holding: h.Strongest}
	switch {
	case h.Error != nil:
		out.Failed = true
		out.Facts = "can't be judged: " + h.Error.text()
		if h.Error.Line > 0 {
			out.Facts = fmt.Sprintf("line %d ", h.Error.Line) + out.Facts
		}
		d.lines = append(d.lines, name+": can't be judged")
	case h.Limit != "":
		out.Facts = "not read to its end: the limit of " + h.Limit + " was reached"
		d.lines = append(d.lines, name+": "+Text{}.levels(h))
	default:
		out.Facts = fmt.Sprintf("%s, %s, %s, %s", count(h.Transactions, "transaction"), count(h.Operations, "operation"),
			count(h.Sessions, "session"), count(h.Keys, "key"))
		d.lines = append(d.lines, name+": "+Text{}.levels(h))
	}
	results := make([]*Result, len(h.Results))
	for i := range h.Results {
		results[i] = &h.Results[i]
	}
	if h.All {
		results = h.lattice()
	}
	for _, r := range results {
		l := present.PageLevel{Level: r.Level, Verdict: r.Verdict, Notes: slices.Clone(r.Notes)}
		if u := r.Unknown; u != nil {
			l.Notes = append(l.Notes, u.text())
		}
		out.Levels = append(out.Levels, l)
	}
	d.histories = append(d.histories, out)
	for _, a := range h.distinct() {
		one := a.Alert
		if len(d.alerts) >= present.PageMax { // it is counted, and not drawn
			one = alerts.Alert{Name: one.Name}
		}
		d.alerts = append(d.alerts, one)
		d.sources = append(d.sources, name)
	}
}

// Write writes the document in one of the forms of Drawings.
func (d *Drawing) Write(w io.Writer, form string) error {
	switch form {
	case "html":
		return present.HTML(w, d.alerts, present.PageOptions{Title: d.title(), Histories: d.histories, Sources: d.sources})
	case "svg":
		_, err := w.Write(picture.Sheet(d.title(), d.alerts))
		return err
	}
	if len(d.alerts) == 0 {
		_, err := w.Write(picture.DotNothing(d.title()))
		return err
	}
	for i := range d.alerts {
		if i == present.PageMax {
			_, err := fmt.Fprintf(w, "// %d more anomalies are not drawn\n", len(d.alerts)-i)
			return err
		}
		if _, err := w.Write(picture.Dot(d.alerts[i])); err != nil {
			return err
		}
	}
	return nil
}

// title says what the document is about, in a line.
func (d *Drawing) title() string {
	if len(d.histories) == 1 {
		return d.lines[0]
	}
	violated, failed, open := 0, 0, 0
	for _, h := range d.histories {
		is := func(v verdict.Outcome) bool {
			return slices.ContainsFunc(h.Levels, func(l present.PageLevel) bool { return l.Verdict == v.String() })
		}
		switch {
		case h.Failed:
			failed++
		case is(verdict.Violated):
			violated++
		case is(verdict.Unknown):
			open++
		}
	}
	s := fmt.Sprintf("%s: %d violated", text.Count(len(d.histories), "history", "histories"), violated)
	if open > 0 {
		s += fmt.Sprintf(", %d undecided", open)
	}
	if failed > 0 {
		s += fmt.Sprintf(", %d that can't be judged", failed)
	}
	return s
}
