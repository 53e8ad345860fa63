package explain_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/isowatch/isowatch/alerts/explain"
	"github.com/isowatch/isowatch/alerts/name"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/internal/lab/alerttest"
	"github.com/isowatch/isowatch/internal/lab/oracle/script"
)

// A tree of possibilities is told only where the records show that it leaves
// nothing out; else the cases stand in a row.
func TestTreeIsComplete(t *testing.T) {
	const writers = `
		initial zero
		s1 T1: w(x,1) w(y,1)
		s2 T2: w(x,1) w(z,1)
		s3 T3: r(x,1) r(y,0) r(z,0)`
	const missed = `
		initial zero
		s1 T1: w(x,2)
		s1 T2: w(x,2)
		s1 T3: w(x,1)
		s1 T4: r(x,2)`
	presumed := []string{"T3 so T4 rw(x,order: T2 so T3 ww(x,case) T2) T3", "T3 so T4 rw(x,order: T1 so T3 ww(x,case) T1) T3"}
	both := []string{"T1 wr(x,case) T3 rw(y,initial) T1", "T2 wr(x,case) T3 rw(z,initial) T2"}
	for _, c := range []struct {
		title, history string
		cases          []string
		level          verdict.Level
		tree           bool
	}{
		{"two writers, two cases", writers, both, verdict.SI, true},
		{"a case is missing", writers, both[:1], verdict.SI, false},
		{"a third writer", writers + "\ns4 T4: w(x,1)", both, verdict.SI, false},
		{"a third writer that was aborted", writers + "\ns4 T4 aborted: w(x,1)", both, verdict.SI, true},
		{"a third writer that overwrote it itself", writers + "\ns4 T4: w(x,1) w(x,2)", both, verdict.SI, true},
		{"a third writer of unknown outcome", writers + "\ns4 T4 unknown: w(x,1)", both, verdict.SI, false},
		{"the initial value may have been read", strings.ReplaceAll(writers, "x,1", "x,0"), both, verdict.SI, false},
		{"nothing is supposed", writers, []string{"T1 so T2 wr(x) T1"}, verdict.SI, true},
		{"both orders", "s1 T1: w(x,1)\ns2 T2: w(x,2)", []string{"T1 ww(x,case) T2 so T1", "T2 ww(x,case) T1 so T2"}, verdict.SI, true},
		{"one order", "s1 T1: w(x,1)\ns2 T2: w(x,2)", []string{"T1 ww(x,case) T2 so T1"}, verdict.SI, false},
		{"a read of the initial value that somebody wrote too", writers + "\ns4 T4: w(y,0)", both, verdict.RC, false},
		{"cases that suppose nothing", writers, []string{"T1 so T2 wr(x) T1", "T2 wr(x) T1 so T2"}, verdict.SI, false},
		// Who wrote what T4 read is only in the reason.
		{"two writers of what was missed", missed, presumed, verdict.RA, true},
		{"one of them is left out", missed, presumed[:1], verdict.RA, false},
		{"it may be the initial value", strings.ReplaceAll(missed, "x,2", "x,0"), presumed, verdict.RA, false},
		{"a third writer of what was missed", missed + "\ns1 T5: w(x,2)", presumed, verdict.RA, false},
		{"in the reason of a reason", missed + "\ns5 T5: w(y,1)\ns6 T6: w(y,2)", []string{
			"T5 ww(y,order: T3 so T4 rw(x,order: T1 so T3 ww(x,case) T1) T3) T6 so T5", presumed[0]}, verdict.RA, true},
		// T3 updates T1's version: before or after T2 as T1 is, but only from si up.
		{"orders of one run of updates", "s1 T1: w(x,1)\ns2 T2: w(x,2)\ns3 T3: r(x,1) w(x,3)", []string{"T1 ww(x,case) T2 so T1", "T2 ww(x,case) T3 so T2"}, verdict.SI, true},
		{"the same, where updates may be lost", "s1 T1: w(x,1)\ns2 T2: w(x,2)\ns3 T3: r(x,1) w(x,3)", []string{"T1 ww(x,case) T2 so T1", "T2 ww(x,case) T3 so T2"}, verdict.PC, false},
	} {
		s, err := script.Parse(c.history)
		if err != nil {
			t.Fatal(err)
		}
		v := verdict.Violation{Kind: verdict.Unsatisfiable, Level: c.level, Read: -1}
		p := alerttest.NewParser(s.Txns)
		for _, text := range c.cases {
			v.Cases = append(v.Cases, p.Cycle(t, text))
		}
		for i := range s.Txns {
			v.Evidence = append(v.Evidence, verdict.TxnID(i))
		}
		text := explain.Explain(v, name.Name{}, alerttest.Lookup(s.Txns), nil).Text
		flat := strings.Contains(text, "Either:") || strings.Contains(text, "It can only be so:")
		if flat == c.tree {
			t.Errorf("%s: tree %v, want %v:\n%s", c.title, !flat, c.tree, text)
		}
	}
}

// However many choices there are, the explanation stays short.
func TestLargeTreesAreCut(t *testing.T) {
	history := "initial zero\ns T: w(o,1)"
	var cases []string
	for _, key := range strings.Fields("a b c d e f g h") {
		history += "\ns" + key + " A" + key + ": w(" + key + ",1)\nt" + key + " B" + key + ": w(" + key + ",2)"
	}
	// Every combination of orders is a case of its own: 256.
	for n := range 256 {
		var c strings.Builder
		for i, key := range strings.Fields("a b c d e f g h") {
			a, b := "A"+key, "B"+key
			if n>>i&1 == 1 {
				a, b = b, a
			}
			c.WriteString(a + " ww(" + key + ",case) " + b + " so ")
		}
		text := c.String()
		cases = append(cases, text+strings.Fields(text)[0])
	}
	s, err := script.Parse(history)
	if err != nil {
		t.Fatal(err)
	}
	v := verdict.Violation{Kind: verdict.Unsatisfiable, Level: verdict.SI, Read: -1}
	p := alerttest.NewParser(s.Txns)
	for _, text := range cases {
		v.Cases = append(v.Cases, p.Cycle(t, text))
	}
	for i := range s.Txns {
		v.Evidence = append(v.Evidence, verdict.TxnID(i))
	}
	text := explain.Explain(v, name.Name{}, alerttest.Lookup(s.Txns), nil).Text
	if lines := strings.Count(text, "\n"); lines > 400 || !strings.Contains(text, "240 more possibilities") {
		t.Errorf("%d lines:\n%s", lines, text)
	}
}

// Of long lists what is told is where they differ, however long they are.
func TestLongLists(t *testing.T) {
	var a, b []string
	for i := range 1000 {
		a = append(a, strconv.Itoa(i))
	}
	b = slices.Clone(a)
	b[700], b[701] = b[701], b[700]
	s, err := script.Parse("s1 A: append(l,700)\ns2 B: append(l,701)\ns3 R: r(l,[" + strings.Join(a, ",") + "])\ns4 S: r(l,[" + strings.Join(b, ",") + "])")
	if err != nil {
		t.Fatal(err)
	}
	ids := []verdict.TxnID{0, 1, 2, 3}
	v := verdict.Violation{Kind: verdict.IncompatibleOrder, Level: verdict.SI, Key: "l", Read: 0, Txns: ids[2:], Evidence: ids}
	e := explain.Explain(v, name.Name{}, alerttest.Lookup(s.Txns), nil)
	for _, want := range []string{
		"R read l = […, 698, 699, 700, 701, 702, …] (1000 elements): element 701 is 700, which A appended.",
		"S read l = […, 698, 699, 701, 700, 702, …] (1000 elements): element 701 is 701, which B appended.",
	} {
		if !strings.Contains(e.Text, want) {
			t.Errorf("%q is not in\n%s", want, e.Text)
		}
	}
	edge := explain.Edge(v, verdict.Edge{From: 0, To: 1, Type: verdict.WW, Key: "l", Why: verdict.ByList}, alerttest.Lookup(s.Txns))
	if want := "R's l = […, 698, 699, 700, 701, 702, 703, …] (1000 elements) shows that A appended 700 right before B appended 701"; edge != want {
		t.Errorf("%s, want %s", edge, want)
	}
}

// A read with hundreds of possible writers, each ruled out by a read with as many,
// does not fill the screen.
func TestManyEliminationsAreCut(t *testing.T) {
	e := verdict.Edge{From: 0, To: 1, Type: verdict.WR, Key: "x", Why: verdict.ByCase}
	for range 16 {
		others := make([][]verdict.Edge, 300)
		for i := range others {
			others[i] = []verdict.Edge{e, {From: 1, To: 0, Type: verdict.SO}, e, e, e}
		}
		e = verdict.Edge{From: 0, To: 1, Type: verdict.WR, Key: "x", Why: verdict.ByElimination, Others: others}
	}
	v := verdict.Violation{Kind: verdict.Cycle, Level: verdict.SI, Cycle: []verdict.Edge{e, {From: 1, To: 0, Type: verdict.SO}}}
	text := explain.Explain(v, name.Name{}, nil, nil).Text
	if lines := strings.Count(text, "\n"); lines > 520 || !strings.Contains(text, "… and more") || !strings.Contains(text, "would have to come before itself") {
		t.Errorf("%d lines, ending in\n%s", lines, text[max(0, len(text)-500):])
	}
}
