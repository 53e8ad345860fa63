package present

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/alerts/explain"
	"github.com/isowatch/isowatch/alerts/name"
	"github.com/isowatch/isowatch/alerts/text"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/codec"
	"github.com/isowatch/isowatch/ingest/record"
)

// Options say how an alert is drawn.
type Options struct {
	Color bool
	// Command is how to check the evidence again, with %s for the level; empty:
	// it is not said.
	Command string
}

// Width is where lines are wrapped, in columns: it suits a terminal of usual width.
const Width = 100

// Bounds of what is drawn; the alert itself has everything.
const (
	edgesMax = 30 // of one cycle
	casesMax = 8
	txnsMax  = 30
	opsMax   = 40 // of one transaction
	// statementsMax is how many bytes are shown of what a transaction asked for.
	statementsMax = 400
)

// Text draws an alert. The only errors are those of w.
func Text(w io.Writer, a alerts.Alert, opt Options) error {
	p := &printer{opt: opt}
	p.title(a)
	p.picture(a)
	p.records(a)
	p.section("Why that can't be")
	p.indented(a.Explanation)
	p.section("What to look at next")
	for _, s := range explain.Next(a.Name, a.Aliases) {
		p.wrap("  • ", "    ", s)
	}
	p.last(a)
	_, err := io.WriteString(w, p.b.String())
	return err
}

func (p *printer) title(a alerts.Alert) {
	head := []string{p.style(severityStyle(a.Severity), "✗ "+text.Name(a.Name)), "breaks " + levels(a.Breaks)}
	if a.Adya != "" {
		head = append(head, text.Name(a.Adya))
	}
	if a.Guarantee != "" {
		head = append(head, "session guarantee "+text.Name(a.Guarantee))
	}
	if a.DB != "" && a.DB != record.DefaultDB {
		head = append(head, "database "+text.Name(a.DB))
	}
	if a.ClockDependent {
		head = append(head, "if the clocks are right")
	}
	first := head[0] + " · "
	p.wrapStyled(first, width("✗ "+text.Name(a.Name))+3, "  ", strings.Join(head[1:], " · "), 0)
	p.line("")
	p.wrap("  ", "  ", text.Printable(a.Summary))
	p.line("")
	for _, f := range facts(a) {
		p.wrapStyled("  "+p.style(faint, f[0]+":")+" ", width(f[0])+4, "    ", f[1], 0)
	}
}

// facts are what else is to be known of an alert: what it leaves unbroken, other
// names, clocks.
func facts(a alerts.Alert) [][2]string {
	var out [][2]string
	if len(a.Holds) > 0 {
		out = append(out, [2]string{"not broken by it", "up to " + strings.Join(names(a.Holds, levelName), " and ")})
	}
	if others := slices.DeleteFunc(slices.Clone(a.Aliases),
		func(s string) bool { return s == a.Adya || s == a.Name }); len(others) > 0 {
		out = append(out, [2]string{"also called", strings.Join(names(others, text.Name), ", ")})
	}
	clocks := "not needed for the proof"
	switch {
	case !a.ClockDependent && strings.HasSuffix(a.Adya, "-realtime"):
		clocks = "the proof needs the recorded times, which are the database's own"
	case a.ClockDependent:
		clocks = "the proof needs the recorded times: it holds if the clients' clocks differ by no more than the " +
			"configured skew"
	}
	out = append(out, [2]string{"clocks", clocks})
	if unless, ok := record.ParseInitial(a.InitialDependent); ok {
		out = append(out, [2]string{"assumed", name.Undeclared(unless)})
	}
	for _, e := range a.Events {
		out = append(out, [2]string{"around it", "it " + text.Printable(e.Told)})
	}
	return out
}

// namesMax bounds how many names are said in a row.
const namesMax = 16

func names(of []string, show func(string) string) []string {
	out := make([]string, 0, min(len(of), namesMax+1))
	for i, s := range of {
		if i == namesMax {
			return append(out, fmt.Sprintf("%d more", len(of)-namesMax))
		}
		out = append(out, show(s))
	}
	return out
}

// levelName is a level in words, if it is one.
func levelName(s string) string {
	if l, ok := verdict.ParseLevel(s); ok {
		return name.Level(l)
	}
	return text.Name(s)
}

// levels are the short names of those that are broken; the summary has words.
func levels(ls []string) string { return strings.Join(names(ls, text.Name), ", ") }

func (p *printer) picture(a alerts.Alert) {
	switch {
	case len(a.Cycle) > 0:
		p.section("The cycle")
		p.cycle(a.Cycle)
	case len(a.Cases) > 0:
		p.section(fmt.Sprintf("Every possibility runs into one of these %d cycles", len(a.Cases)))
		for i, c := range a.Cases {
			if i == casesMax {
				p.line("  %s", p.style(faint, fmt.Sprintf("… %d more", len(a.Cases)-casesMax)))
				break
			}
			if i > 0 {
				p.line("  or")
			}
			p.cycle(c)
		}
	}
}

// cycle draws the transactions below each other, and the way back at the left.
func (p *printer) cycle(c []alerts.Edge) {
	for i, e := range c {
		lead := "│ "
		if i == 0 {
			lead = "┌▶"
		}
		if i == edgesMax {
			p.line("  │ %s", p.style(faint, fmt.Sprintf("… %d more steps", len(c)-edgesMax)))
			break
		}
		id := text.Name(e.From)
		if e.From == "" {
			id = "(a writer that was not recorded)"
		}
		p.line("  %s %s", lead, p.style(bold, id))
		label := e.Type
		if e.Key != "" {
			label += " " + text.Name(e.Key)
		}
		head := "  │  │ " + p.style(typeStyle(e.Type), label)
		if e.Why != "" {
			p.wrapStyled(head+"  ", 6+width(label)+2, "  │  │ ", text.Printable(e.Why), faint)
		} else {
			p.line("%s", head)
		}
		if i < len(c)-1 {
			p.line("  │  ▼")
		}
	}
	p.line("  └──┘")
}

// records shows what the clients of the evidence saw.
func (p *printer) records(a alerts.Alert) {
	if len(a.Evidence) < 2 {
		return
	}
	p.section("What the clients saw")
	for i, line := range a.Evidence[1:] {
		if i == txnsMax {
			p.line("  %s", p.style(faint, fmt.Sprintf("… %d more in the evidence", len(a.Evidence)-1-txnsMax)))
			return
		}
		t, err := newTxn(line)
		if err != nil {
			p.line("  a record that can't be read: %s", text.Printable(err.Error()))
			continue
		}
		facts := []string{p.style(bold, t.ID), "session " + t.Session}
		if t.Status != record.Committed.String() {
			facts = append(facts, p.style(red, t.Status))
		}
		if t.Start != "" {
			facts = append(facts, t.Start+", "+t.Took)
		}
		p.line("  %s", strings.Join(facts, "  "))
		if t.Statements != "" {
			p.wrap("      asked   ", "              ", t.Statements)
		}
		for _, op := range t.Ops {
			p.line("      %s", op)
		}
		if t.More > 0 {
			p.line("      %s", p.style(faint, fmt.Sprintf("… %d more operations", t.More)))
		}
	}
}

// txn is what a client saw, as it is shown.
type txn struct {
	ID, Session, Status, Start, Took, Statements string
	Ops                                          []string
	More                                         int // operations that are not shown
}

// newTxn is a record; its times are to the microsecond, in UTC.
func newTxn(line []byte) (txn, error) {
	var t record.Transaction
	if err := codec.Decode(line, &t); err != nil {
		return txn{}, err
	}
	out := txn{ID: text.Name(t.ID), Session: text.Session(&t), Status: t.Status.String(),
		Statements: text.Cut(text.Printable(t.Statements), statementsMax), More: max(len(t.Ops)-opsMax, 0)}
	if t.HasTimes {
		out.Start, out.Took = time.Unix(0, t.Start).UTC().Format("2006-01-02 15:04:05.000000"),
			time.Duration(t.End-t.Start).String()
	}
	for _, op := range t.Ops[:len(t.Ops)-out.More] {
		out.Ops = append(out.Ops, operation(op))
	}
	return out, nil
}

func operation(op record.Op) string {
	if row, ok := text.Row(op.Key, op.Value); ok && op.Kind == record.Read {
		return "read    " + row
	} else if ok && op.Kind == record.Write {
		return "write   " + row
	}
	switch op.Kind {
	case record.Read:
		return "read    " + text.Name(op.Key) + " = " + text.Value(op.Value)
	case record.Write:
		if op.Value.IsNull() {
			return "delete  " + text.Name(op.Key)
		}
		return "write   " + text.Name(op.Key) + " = " + text.Value(op.Value)
	case record.Append:
		return "append  " + text.Value(op.Value) + " to " + text.Name(op.Key)
	case record.PredicateRead:
		return "read    " + text.Name(op.Key) + " where " + text.Name(op.Where) + ": " + text.Value(op.Value)
	}
	return "write   " + text.Name(op.Key) + " where " + text.Name(op.Where) + ": " + text.Value(op.Value)
}

func (p *printer) last(a alerts.Alert) {
	p.line("")
	if p.opt.Command != "" && len(a.Evidence) > 0 {
		p.line("  %s", p.style(faint, "check it again: "+fmt.Sprintf(p.opt.Command, text.Name(a.Level))))
	}
	count := ""
	if a.Count > 1 {
		count = fmt.Sprintf("  seen %d times", a.Count)
	}
	p.line("  %s", p.style(faint, "alert "+text.Name(a.ID)+count))
}
