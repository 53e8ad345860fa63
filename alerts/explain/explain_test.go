package explain_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/isowatch/isowatch/alerts/explain"
	"github.com/isowatch/isowatch/alerts/name"
	"github.com/isowatch/isowatch/alerts/text"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/alerttest"
	"github.com/isowatch/isowatch/internal/lab/golden"
	"github.com/isowatch/isowatch/internal/lab/oracle/script"
)

var asked = name.Asked{Levels: []verdict.Level{verdict.SI, verdict.SER, verdict.SSER}}

// One file holds all explanations, to be read by a person from top to bottom.
func TestGolden(t *testing.T) {
	var b strings.Builder
	for _, c := range alerttest.Cases {
		s, v := c.Load(t)
		lookup := alerttest.Lookup(s.Txns)
		asked := asked
		if !c.Level.Implies(verdict.SI) { // ask for all levels that apply
			asked.Levels = verdict.Levels()
		}
		e := explain.Explain(v, name.Of(v, lookup, asked), lookup, nil)
		fmt.Fprintf(&b, "== %s\n%s\n--\n%s\n", c.Title, e.Summary, e.Text)
	}
	golden.Check(t, "testdata/explanations.golden", b.String())
}

// Every edge has words for every reason, with and without records.
func TestEdges(t *testing.T) {
	s, err := script.Parse("s1 A: r(x,0) w(x,1) @10-20\ns1 B: r(x,1) w(x,2) @30-40")
	if err != nil {
		t.Fatal(err)
	}
	lookup := alerttest.Lookup(s.Txns)
	for typ := verdict.SO; typ <= verdict.RW; typ++ {
		for why := verdict.BySession; why <= verdict.ByLog; why++ {
			e := verdict.Edge{From: 0, To: 1, Type: typ, Key: "x", Why: why}
			with := explain.Edge(verdict.Violation{Evidence: []verdict.TxnID{0, 1}}, e, lookup)
			if !strings.Contains(with, "A") || !strings.Contains(with, "B") {
				t.Errorf("%v %v: %q names not both", typ, why, with)
			}
			without := explain.Edge(verdict.Violation{}, e, nil)
			if !strings.Contains(without, "(not kept)") {
				t.Errorf("%v %v without records: %q", typ, why, without)
			}
		}
	}
	e := verdict.Edge{From: 0, To: 1, Type: verdict.WR, Key: "x", Why: verdict.ByValue}
	if got, want := explain.Edge(verdict.Violation{}, e, lookup), "B read x = 1, which A wrote"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	e = verdict.Edge{From: 0, To: 1, Type: verdict.RT, Why: verdict.ByClock}
	if got, want := explain.Edge(verdict.Violation{}, e, lookup), "A had ended 10ns before B started, by the clocks"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestLists(t *testing.T) {
	s, err := script.Parse("s1 A: append(l,17)\ns2 B: r(l,[3,17]) append(l,4)\ns3 C: w(m,null)")
	if err != nil {
		t.Fatal(err)
	}
	lookup := alerttest.Lookup(s.Txns)
	for _, c := range []struct {
		e    verdict.Edge
		want string
	}{
		{verdict.Edge{From: 0, To: 1, Type: verdict.WR, Key: "l", Why: verdict.ByValue}, "B read l = [3, 17], with the 17 that A appended"},
		{verdict.Edge{From: 0, To: 1, Type: verdict.WW, Key: "l", Why: verdict.ByCase}, "suppose that A appended 17 to l before B appended 4 to l"},
		{verdict.Edge{From: 1, To: 2, Type: verdict.WW, Key: "m", Why: verdict.ByCase}, "suppose that B wrote m before C deleted m"},
	} {
		if got := explain.Edge(verdict.Violation{}, c.e, lookup); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// What clients wrote can't make an explanation long or unprintable.
func TestHostileAndHuge(t *testing.T) {
	evil := strings.Repeat("\x1b[31m\u202e", 100_000)
	const n = 5000
	txns := make([]record.Transaction, n)
	v := verdict.Violation{Kind: verdict.Cycle, Level: verdict.SER, Read: -1}
	for i := range txns {
		txns[i] = record.Transaction{ID: evil, Session: evil, Ops: []record.Op{
			{Kind: record.Read, Key: evil, Value: record.String(evil)}, {Kind: record.Write, Key: evil, Value: record.String(evil)}}}
		v.Cycle = append(v.Cycle, verdict.Edge{From: verdict.TxnID(i), To: verdict.TxnID((i + 1) % n), Type: verdict.RW, Key: evil, Why: verdict.ByOverwrite})
		v.Txns = append(v.Txns, verdict.TxnID(i))
	}
	lookup := alerttest.Lookup(txns)
	e := explain.Explain(v, name.Of(v, lookup, asked), lookup, nil)
	if len(e.Summary)+len(e.Text) > 200_000 {
		t.Errorf("%d bytes", len(e.Summary)+len(e.Text))
	}
	if strings.Contains(e.Summary, "\n") || text.Printable(e.Summary) != e.Summary || text.Printable(strings.ReplaceAll(e.Text, "\n", "")) != strings.ReplaceAll(e.Text, "\n", "") {
		t.Error("something unprintable got through")
	}
}

func TestNext(t *testing.T) {
	for _, c := range append(alerttest.Cases, alerttest.Case{Want: name.Name{Name: "unheard-of"}}) {
		next := explain.Next(c.Want.Name, nil)
		if len(next) == 0 {
			t.Errorf("%s: nothing to look at", c.Want.Name)
		}
		if general := explain.Next("", nil); c.Title != "" && slices.Equal(next, general) {
			t.Errorf("%s: nothing of its own to look at", c.Want.Name)
		}
	}
}

// What a transaction read twice is told in the order in which it read it.
func TestOrderOfTwoReads(t *testing.T) {
	for _, c := range []struct{ reads, want string }{
		{"r(x,null) r(x,13)", "first null, then 13, which A wrote."},
		{"r(x,13) r(x,null)", "first 13, which A wrote, then null."},
	} {
		s, err := script.Parse("s1 A: w(x,13)\ns2 B: " + c.reads)
		if err != nil {
			t.Fatal(err)
		}
		v := verdict.Violation{Kind: verdict.Cycle, Level: verdict.RA, Read: -1, Txns: []verdict.TxnID{0, 1}, Evidence: []verdict.TxnID{0, 1}, Cycle: []verdict.Edge{
			{From: 0, To: 1, Type: verdict.WR, Key: "x", Why: verdict.ByValue}, {From: 1, To: 0, Type: verdict.RW, Key: "x", Why: verdict.ByInitial}}}
		n := name.Name{Name: "non-repeatable-reads", Weakest: verdict.RA, Breaks: []verdict.Level{verdict.RA}}
		if got := explain.Explain(v, n, alerttest.Lookup(s.Txns), nil).Summary; !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q in it", c.reads, got, c.want)
		}
	}
}
