package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/isowatch/isowatch/alerts/name"
	"github.com/isowatch/isowatch/alerts/text"
	"github.com/isowatch/isowatch/incremental/verdict"
)

// Explanation is a violation in words.
type Explanation struct {
	// Summary is one or two sentences on one line: what happened and what
	// that breaks.
	Summary string
	// Text is the proof: lines ending in \n, indented by two spaces per level.
	Text string
}

// Bounds of an explanation: steps that are told of one cycle, cases that are
// told, how deep reasons of reasons go, and lines in all. The cycle of an alert is complete
// in any case; this is what a person reads.
const (
	stepsMax  = 40
	casesMax  = 16
	reasonMax = 2
	linesMax  = 500

	togetherMax = 8 // transactions of a cycle that are all told again in the end
)

// Found is how many rows a statement of a transaction, by its ID, found that read a register as not matching; false if
// that is not known.
type Found func(id, register string) (rows int, known bool)

// Explain puts a violation into words; found may be nil. The time is linear in the size of the
// violation and of the records of its transactions, the length bounded.
func Explain(v verdict.Violation, n name.Name, lookup name.Lookup, found Found) Explanation {
	t := newTeller(v, n, lookup)
	t.found = found
	var out Explanation
	out.Summary = t.sentence()
	out.Summary += breaks(n.Breaks)
	w := &writer{}
	switch v.Kind {
	case verdict.Cycle:
		t.cycle(w, v.Cycle)
	case verdict.Unsatisfiable:
		t.cases(w)
	case verdict.Divergence:
		t.divergence(w)
	case verdict.IncompatibleOrder:
		t.incompatibleSteps(w)
	default:
		w.line(0, "%s", t.sentence())
		t.outcomesOf(w, v.Txns, nil)
	}
	t.guarantee(w)
	w.line(0, "%s", rule(n, v.Open))
	out.Text = w.b.String()
	return out
}

// breaks is the sentence about the levels: the first in words, the others by
// their short names.
func breaks(ls []verdict.Level) string {
	if len(ls) == 0 {
		return ""
	}
	s := " That breaks " + name.Level(ls[0])
	if len(ls) > 1 {
		s += ", and with it " + enumerate(verdict.Names(ls[1:]))
	}
	return s + "."
}

// writer collects indented lines.
// Of what is told below the first level it leaves out what comes after linesMax
// lines, and says so.
type writer struct {
	b     strings.Builder
	lines int
	cut   bool
}

func (w *writer) line(depth int, format string, args ...any) {
	if w.lines++; depth > 0 && w.lines > linesMax {
		if !w.cut {
			w.cut = true
			w.b.WriteString("… and more; the cycles are in the alert.\n")
		}
		return
	}
	w.b.WriteString(strings.Repeat("  ", depth))
	fmt.Fprintf(&w.b, format, args...)
	w.b.WriteByte('\n')
}

// full tells whether no more will be told; to go on would be in vain.
func (w *writer) full() bool { return w.cut }

func (t teller) cycle(w *writer, c []verdict.Edge) {
	if m, ok := t.missedWrite(c); ok {
		t.missedSteps(w, m)
		return
	}
	w.line(0, "What was seen, and what follows:")
	t.steps(w, 1, c, 0)
	t.outcomes(w, c)
	w.line(0, "%s", t.together(c))
}

// together is what the steps of a cycle come to: that each transaction comes before
// the next, and so before itself.
func (t teller) together(c []verdict.Edge) string {
	if len(c) < 2 || len(c) > togetherMax {
		return fmt.Sprintf("Each step puts a transaction before the next, and the last step leads back to the first: %s "+
			"would have to come before itself.", t.first(c))
	}
	var orders []string
	for i, e := range c {
		comes := "before"
		if i == 0 {
			comes = "comes before"
		}
		orders = append(orders, fmt.Sprintf("%s %s %s", t.txn(e.From), comes, t.txn(e.To)))
	}
	return fmt.Sprintf("Together: %s. So %s would have to come before itself: a contradiction.", enumerate(orders),
		t.first(c))
}

func (t teller) first(c []verdict.Edge) string {
	if len(c) == 0 {
		return "one of them"
	}
	return t.txn(c[0].From)
}

// steps tells the edges of a cycle, with the reasons of those that were
// inferred below them.
func (t teller) steps(w *writer, depth int, c []verdict.Edge, reasons int) {
	t.stepsTo(w, depth, c, reasons, true)
}

// stepsTo is steps; orders says whether what an edge means for the order of its
// transactions is told too.
func (t teller) stepsTo(w *writer, depth int, c []verdict.Edge, reasons int, orders bool) {
	for i, e := range c {
		if w.full() {
			return
		}
		if i == stepsMax {
			w.line(depth, "… and %s.", text.Count(len(c)-stepsMax, "more step", "more steps"))
			return
		}
		when, order := "", ""
		switch {
		case orders:
			order = t.order(e)
			if i > 0 && i == len(c)-1 && e.Why != verdict.ByCase && !strings.HasPrefix(t.edge(e), "suppose ") {
				when = "but "
			}
		case e.Type == verdict.RW && t.n.Shape() == "non-monotonic-read":
			when = "after that, "
		}
		if read, ok := t.presumed(c, e); ok {
			w.line(depth, "%d. %s; %s %s after that version%s.", i+1, t.edge(read), t.txn(e.To), t.written(e.To, e.Key).did(),
				order)
		} else {
			w.line(depth, "%d. %s%s%s.", i+1, when, t.edge(e), order)
		}
		switch {
		case e.Why == verdict.ByOrder && len(e.Because) > 0 && reasons == reasonMax:
			w.line(depth+1, "The opposite order leads to a contradiction too.")
		case e.Why == verdict.ByOrder && len(e.Because) > 0:
			w.line(depth+1, "For if it were the other way round%s:", t.run(e))
			t.steps(w, depth+2, e.Because, reasons+1)
			w.line(depth+1, "which leads back to %s: a contradiction.", t.first(e.Because))
		case e.Why == verdict.ByElimination && len(e.Others) > 0 && reasons == reasonMax:
			w.line(depth+1, "Each other writer leads to a contradiction too.")
		case e.Why == verdict.ByElimination && len(e.Others) > 0:
			t.elimination(w, depth+1, e, reasons)
		}
	}
}

// run explains why the supposed order in the reason of an edge is not between the
// versions of the edge itself, if so.
func (t teller) run(e verdict.Edge) string {
	if !t.hasRuns() || name.Exactly(e, t.lookup) {
		return ""
	}
	return fmt.Sprintf(" (updates of %s follow each other without a gap there, so the order of one is that of all)",
		text.Name(e.Key))
}

// order says what an edge means for the order, where that isn't plain.
func (t teller) order(e verdict.Edge) string {
	if e.Type == verdict.RW || e.Type == verdict.WR {
		return fmt.Sprintf("; so %s comes before %s", t.txn(e.From), t.txn(e.To))
	}
	return ""
}

func (t teller) cases(w *writer) {
	if len(t.v.Cases) == 0 {
		w.line(0, "%s", t.sentence())
		return
	}
	t.outcomes(w, t.v.Cases...)
	if n, ok := t.tree(); ok {
		t.branches(w, 0, n)
		w.line(0, "There is no other possibility.")
		return
	}
	for i, c := range t.v.Cases {
		if i == casesMax {
			w.line(0, "… and %s, each with a contradiction of its own.",
				text.Count(len(t.v.Cases)-casesMax, "more possibility", "more possibilities"))
			break
		}
		start := "Or else:"
		switch {
		case i == 0 && len(t.v.Cases) == 1:
			start = "It can only be so:"
		case i == 0:
			start = "Either:"
		}
		w.line(0, "%s", start)
		t.steps(w, 1, c, 0)
		w.line(1, "so %s would have to come before itself: a contradiction.", t.first(c))
	}
	w.line(0, "There is no other possibility.")
}

func (t teller) divergence(w *writer) {
	a, b, ok := name.Overwriters(t.v, t.lookup)
	if !ok {
		w.line(0, "%s", t.sentence())
		return
	}
	key := t.v.Key
	w.line(0, "What was seen:")
	for i, pair := range [][2]verdict.TxnID{{a, b}, {b, a}} {
		read := t.readNotOf(pair[0], key, pair[1])
		w.line(1, "%d. %s read %v%s, and %s.", i+1, t.txn(pair[0]), read, t.whose(read), t.written(pair[0], key).did())
	}
	t.outcomesOf(w, []verdict.TxnID{a, b}, nil)
	w.line(0, "Whichever of the two came second should have seen the first one's write, or failed to commit. Neither did.")
}

// pl2 says of a cycle of writes that Adya's read committed forbids it, where g1 is said not
// to be broken.
func pl2(n name.Name) string {
	base, _, _ := strings.Cut(n.Adya, "-")
	if base != "G0" && base != "G1c" || strings.HasSuffix(n.Adya, "-process") || strings.HasSuffix(n.Adya, "-realtime") {
		return ""
	}
	return " Adya's read committed (PL-2) forbids that too; committed reads (g1) asks nothing of the order of writes."
}

// rule says why the levels that are broken do not allow it, and whether weaker
// ones would, unless that is open.
func rule(n name.Name, open []verdict.Level) string {
	clock := ""
	if n.ClockDependent {
		clock = " The proof uses the recorded times: it holds if the clients' clocks differ by no more than the configured " +
			"skew."
	}
	if s := name.Undeclared(n.Unless); s != "" {
		clock += " " + s
	}
	if len(n.Breaks) > 0 && n.Breaks[0] == verdict.LIN && n.Weakest != verdict.G1 {
		return "Under linearizability each transaction takes effect at one moment between its start and its end, and sees " +
			"what was there then." + clock
	}
	allows := func(weaker verdict.Level, says string) string {
		if slices.Contains(open, weaker) {
			return ""
		}
		return says
	}
	switch n.Weakest {
	case verdict.G1:
		return "No isolation level allows that." + clock
	case verdict.RC:
		if n.Shape() != "non-monotonic-read" {
			return "From read committed upwards, all writes have one order, and sessions keep to it." + pl2(n) + clock
		}
		return "Read committed lets a transaction see newer data as it goes on, never older." + clock
	case verdict.RA:
		if n.Shape() == "non-repeatable-reads" {
			return "From read atomic upwards, a key that is read twice has the same value both times." + clock
		}
		return "From read atomic upwards, a transaction sees all of another one or nothing, and what came before it in its " +
			"session." + allows(verdict.RC, " Read committed would allow this.") + clock
	case verdict.CC:
		return "From causal consistency upwards, who sees an effect sees its causes." +
			allows(verdict.RA, " Read atomic would allow this.") + clock
	case verdict.PC:
		return "From prefix consistency upwards, everybody sees the transactions up to some point of one common order, and " +
			"none after it." + allows(verdict.CC, " Causal consistency would allow this.") + clock
	case verdict.SI:
		return "Under snapshot isolation a transaction reads from one snapshot, and of two that write the same key at the " +
			"same time only one may commit." + allows(verdict.PC, " Prefix consistency would allow this.") + clock
	case verdict.SER:
		return "There is no serial order that explains what was read." + allows(verdict.SI,
			" Each transaction alone saw a proper snapshot: snapshot isolation would allow this.") + clock
	case verdict.StrongSI:
		return "What had ended before a transaction started is to come before it." +
			allows(verdict.SI, " Without real-time order this would be allowed.") + clock
	case verdict.SSER:
		return "There is no serial order that explains what was read and keeps to real time." + clock
	}
	return name.Level(n.Weakest) + " forbids that." + clock
}
