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

// teller tells of one violation.
type teller struct {
	records
	n     name.Name
	found Found
}

// Explain puts a violation into words; found may be nil. The time is linear in the size of the
// violation and of the records of its transactions, the length bounded.
func Explain(v verdict.Violation, n name.Name, lookup name.Lookup, found Found) Explanation {
	t := teller{records: newRecords(v, lookup), n: n, found: found}
	out := Explanation{Summary: t.sentence() + breaks(n.Breaks)}
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
		t.outcomes(w, v.Txns)
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
	t.steps(w, 1, c, 0, true)
	t.outcomes(w, nil, c)
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
	comes := "$from comes before $to"
	for _, e := range c {
		orders, comes = append(orders, t.say(comes, e)), "$from before $to"
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

// steps tells the edges of a cycle, with the reasons of those that were inferred below them; orders says whether
// what an edge means for the order of its transactions is told too.
func (t teller) steps(w *writer, depth int, c []verdict.Edge, reasons int, orders bool) {
	for i, e := range c {
		if w.full() {
			return
		}
		if i == stepsMax {
			w.line(depth, "… and %s.", text.Count(len(c)-stepsMax, "more step", "more steps"))
			return
		}
		when, order, said := "", "", t.edge(e)
		switch {
		case orders && (e.Type == verdict.RW || e.Type == verdict.WR):
			order = t.say("; so $from comes before $to", e) // where that isn't plain
			fallthrough
		case orders:
			if i > 0 && i == len(c)-1 && e.Why != verdict.ByCase && !strings.HasPrefix(said, "suppose ") {
				when = "but "
			}
		case e.Type == verdict.RW && t.n.Shape() == "non-monotonic-read":
			when = "after that, "
		}
		if read, ok := t.presumed(c, e); ok {
			when, said = "", t.say("$edge; $b_to $b_then after that version", read, e)
		}
		w.line(depth, "%d. %s%s%s.", i+1, when, said, order)
		switch {
		case e.Why == verdict.ByOrder && len(e.Because) > 0 && reasons == reasonMax:
			w.line(depth+1, "The opposite order leads to a contradiction too.")
		case e.Why == verdict.ByOrder && len(e.Because) > 0:
			runs := ""
			if t.hasRuns() && !name.Exactly(e, t.lookup) { // the order supposed there is not of the versions of e itself
				runs = oneRun(e.Key)
			}
			w.line(depth+1, "For if it were the other way round%s:", runs)
			t.steps(w, depth+2, e.Because, reasons+1, true)
			w.line(depth+1, "which leads back to %s: a contradiction.", t.first(e.Because))
		case e.Why == verdict.ByElimination && len(e.Others) > 0 && reasons == reasonMax:
			w.line(depth+1, "Each other writer leads to a contradiction too.")
		case e.Why == verdict.ByElimination && len(e.Others) > 0:
			t.elimination(w, depth+1, e, reasons)
		}
	}
}

// oneRun says why the order of two versions of a key is that of others.
func oneRun(key string) string {
	return fmt.Sprintf(" (updates of %s follow each other without a gap there, so the order of one is that of all)",
		text.Name(key))
}

func (t teller) cases(w *writer) {
	if len(t.v.Cases) == 0 {
		w.line(0, "%s", t.sentence())
		return
	}
	t.outcomes(w, nil, t.v.Cases...)
	if n, ok := tree(t.records); ok {
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
		t.steps(w, 1, c, 0, true)
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
	t.outcomes(w, []verdict.TxnID{a, b})
	w.line(0, "Whichever of the two came second should have seen the first one's write, or failed to commit. Neither did.")
}

// rules are what the levels ask for, and what the next weaker one would allow.
var rules = map[verdict.Level]struct {
	asks   string
	weaker verdict.Level
	allows string
}{
	verdict.G1: {asks: "No isolation level allows that."},
	verdict.RC: {asks: "From read committed upwards, all writes have one order, and sessions keep to it."},
	verdict.RA: {"From read atomic upwards, a transaction sees all of another one or nothing, and what came before it " +
		"in its session.", verdict.RC, " Read committed would allow this."},
	verdict.CC: {"From causal consistency upwards, who sees an effect sees its causes.", verdict.RA,
		" Read atomic would allow this."},
	verdict.PC: {"From prefix consistency upwards, everybody sees the transactions up to some point of one common " +
		"order, and none after it.", verdict.CC, " Causal consistency would allow this."},
	verdict.SI: {"Under snapshot isolation a transaction reads from one snapshot, and of two that write the same key at " +
		"the same time only one may commit.", verdict.PC, " Prefix consistency would allow this."},
	verdict.SER: {"There is no serial order that explains what was read.", verdict.SI,
		" Each transaction alone saw a proper snapshot: snapshot isolation would allow this."},
	verdict.StrongSI: {"What had ended before a transaction started is to come before it.", verdict.SI,
		" Without real-time order this would be allowed."},
	verdict.SSER: {asks: "There is no serial order that explains what was read and keeps to real time."},
}

// rule says why the levels that are broken do not allow it, and whether weaker
// ones would, unless that is open.
func rule(n name.Name, open []verdict.Level) string {
	r, ok := rules[n.Weakest]
	asks, allows := r.asks, r.allows
	if slices.Contains(open, r.weaker) {
		allows = ""
	}
	base, _, _ := strings.Cut(n.Adya, "-")
	sequential := !strings.HasSuffix(n.Adya, "-process") && !strings.HasSuffix(n.Adya, "-realtime")
	switch shape := n.Shape(); {
	case len(n.Breaks) > 0 && n.Breaks[0] == verdict.LIN && n.Weakest != verdict.G1:
		asks, allows = "Under linearizability each transaction takes effect at one moment between its start and its end, "+
			"and sees what was there then.", ""
	case !ok:
		asks = name.Level(n.Weakest) + " forbids that."
	case n.Weakest == verdict.RC && shape == "non-monotonic-read":
		asks = "Read committed lets a transaction see newer data as it goes on, never older."
	case n.Weakest == verdict.RC && sequential && (base == "G0" || base == "G1c"): // where g1 is said not to be broken
		allows = " Adya's read committed (PL-2) forbids that too; committed reads (g1) asks nothing of the order of writes."
	case n.Weakest == verdict.RA && shape == "non-repeatable-reads":
		asks, allows = "From read atomic upwards, a key that is read twice has the same value both times.", ""
	}
	clock := ""
	if n.ClockDependent {
		clock = " The proof uses the recorded times: it holds if the clients' clocks differ by no more than the configured " +
			"skew."
	}
	if s := name.Undeclared(n.Unless); s != "" {
		clock += " " + s
	}
	return asks + allows + clock
}
