package alerts

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/isowatch/isowatch/ingest/codec"
	"github.com/isowatch/isowatch/ingest/record"
)

// nearMax is how far from its transactions an event may be that an alert tells of, nearMost how many it
// tells of.
const (
	nearMax  = 30 * time.Second
	nearMost = 8
)

// Nearby is an event near the transactions of an alert.
type Nearby struct {
	record.Event
	// Told says in words what happened, and how long before or after.
	Told string `json:"told"`
}

// Near is a with the events that happened around its transactions: the nearest, in the order in which they
// happened. Those about another database are not among them. What was found stays as it is.
func (a Alert) Near(events []record.Event) Alert {
	a.Events = nil
	if len(events) == 0 {
		return a
	}
	from, to, ok := a.span()
	if !ok {
		return a
	}
	away := func(e Nearby) int64 { return max(less(from, e.At), less(e.At, to), 0) }
	for _, e := range events {
		n := Nearby{Event: e}
		if (e.DB == "" || e.DB == a.DB) && away(n) <= int64(nearMax) {
			n.Told = told(e, from, to)
			a.Events = append(a.Events, n)
		}
	}
	slices.SortStableFunc(a.Events, func(x, y Nearby) int { return cmp.Compare(away(x), away(y)) })
	a.Events = a.Events[:min(len(a.Events), nearMost)]
	slices.SortStableFunc(a.Events, func(x, y Nearby) int { return cmp.Compare(x.At, y.At) })
	return a
}

// nearest is the event that is nearest to the transactions, the later one of two; it is the last before they
// began, if there is one.
func (a *Alert) nearest() (Nearby, bool) {
	if len(a.Events) == 0 {
		return Nearby{}, false
	}
	from, _, _ := a.span()
	out := a.Events[0]
	for _, e := range a.Events[1:] {
		if e.At <= from {
			out = e
		}
	}
	return out, true
}

// Circumstance is a sentence on the event that most likely has to do with the alert; empty if there is none.
func (a *Alert) Circumstance() string {
	e, ok := a.nearest()
	if !ok {
		return ""
	}
	return "It " + e.Told + "."
}

// span is when the transactions of an alert ran, by their clients' clocks. Evidence has no times where it does not
// need them; then it is only known when the last of them ended.
func (a *Alert) span() (from, to int64, ok bool) {
	from, to = math.MaxInt64, math.MinInt64
	for i, line := range a.Evidence {
		var t record.Transaction
		if i == 0 && codec.IsHeader(line) || codec.Decode(line, &t) != nil || !t.HasTimes ||
			!slices.Contains(a.Transactions, t.ID) {
			continue
		}
		from, to = min(from, t.Start), max(to, t.End)
	}
	if a.At != nil && a.At.Time > 0 {
		from, to = min(from, a.At.Time), max(to, a.At.Time)
	}
	return from, to, from <= to
}

// less is a-b, as far as a number goes.
func less(a, b int64) int64 {
	if d := a - b; (d > 0) == (a > b) {
		return d
	}
	if a > b {
		return math.MaxInt64
	}
	return math.MinInt64
}

// told says when something happened, beside when the transactions ran.
func told(e record.Event, from, to int64) string {
	what := e.Text
	if e.Node != "" {
		what = "node " + e.Node + " " + what
	}
	switch {
	case e.At < from && from == to:
		return "ended " + apart(from-e.At) + " after: " + what
	case e.At < from:
		return "began " + apart(from-e.At) + " after: " + what
	case e.At > to:
		return "ended " + apart(e.At-to) + " before: " + what
	}
	return "was going on for " + apart(e.At-from) + " when: " + what
}

// apart is a duration with three digits or less.
func apart(ns int64) string {
	d := time.Duration(ns)
	for unit := time.Second; unit >= time.Microsecond; unit /= 1000 {
		if d >= 100*unit {
			return d.Round(unit).String()
		}
		if d >= unit {
			return d.Round(unit / 100).String()
		}
	}
	return d.String()
}
