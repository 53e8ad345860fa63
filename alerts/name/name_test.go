package name_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/isowatch/isowatch/alerts/name"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/alerttest"
	"github.com/isowatch/isowatch/internal/lab/oracle"
	"github.com/isowatch/isowatch/internal/lab/oracle/script"
)

// strong are the levels that the engine decides today, all are what it may.
var strong = []verdict.Level{verdict.SI, verdict.StrongSI, verdict.SER, verdict.SSER}

func TestNames(t *testing.T) {
	for _, c := range alerttest.Cases {
		t.Run(c.Title, func(t *testing.T) {
			s, v := c.Load(t)
			v.ClockDependent = false // the name knows by itself
			got := name.Of(v, alerttest.Lookup(s.Txns), name.Asked{Levels: verdict.Levels()})
			breaks := got.Breaks
			got.Breaks = nil
			if d := cmp.Diff(c.Want, got); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
			if len(s.Txns) > 0 {
				confirm(t, s, got, breaks)
			}
		})
	}
}

// confirm asks the oracle whether all levels that are said to be broken are,
// and the others hold.
func confirm(t *testing.T, s script.Script, n name.Name, breaks []verdict.Level) {
	t.Helper()
	if n.Guarantee != "" {
		i := slices.IndexFunc(verdict.Guarantees(), func(g verdict.Guarantee) bool { return g.String() == n.Guarantee })
		if i < 0 || oracle.HoldsGuarantee(verdict.Guarantees()[i], s.Txns, record.Assumptions{}.Override(s.Header)) {
			t.Errorf("%s is said to be broken; it holds, or is no guarantee", n.Guarantee)
		}
	}
	holds := oracle.Check(s.Txns, record.Assumptions{}.Override(s.Header))
	for l, ok := range holds {
		switch broken := slices.Contains(breaks, l); {
		case l == verdict.LIN && !broken: // that is asked of the evidence
		case broken && ok:
			t.Errorf("%v is said to be broken; it holds", l)
		case !broken && !ok && !(l == verdict.SSER && !n.ClockDependent):
			t.Errorf("%v is broken, but not said to be", l)
		}
	}
}

// The example of non-repeatable reads that go backwards: the engine's level
// wins where it is weaker than the name's.
func TestEngineKnowsAWeakerLevel(t *testing.T) {
	v := verdict.Violation{Kind: verdict.NonRepeatableRead, Level: verdict.RC, Txns: []verdict.TxnID{0}}
	got := name.Of(v, nil, name.Asked{Levels: []verdict.Level{verdict.SI, verdict.RC}})
	if d := cmp.Diff([]verdict.Level{verdict.RC, verdict.SI}, got.Breaks); d != "" {
		t.Error(d)
	}
}

func TestBreaks(t *testing.T) {
	for _, c := range []struct {
		weakest, proved verdict.Level
		asked           []verdict.Level
		clock           record.Clock
		want            []verdict.Level
	}{
		{verdict.SI, verdict.SI, strong, record.ClockPrune, strong},
		{verdict.SER, verdict.SER, strong, record.ClockPrune, []verdict.Level{verdict.SER, verdict.SSER}},
		{verdict.StrongSI, verdict.StrongSI, strong, record.ClockPrune, []verdict.Level{verdict.StrongSI, verdict.SSER}},
		{verdict.RA, verdict.SI, []verdict.Level{verdict.SER, verdict.SI}, record.ClockPrune, []verdict.Level{verdict.SI, verdict.SER}},
		// Enforced clocks make si mean strong-si.
		{verdict.StrongSI, verdict.StrongSI, []verdict.Level{verdict.SI}, record.ClockEnforce, []verdict.Level{verdict.SI}},
		{verdict.StrongSI, verdict.StrongSI, []verdict.Level{verdict.SI, verdict.SER}, record.ClockEnforce, []verdict.Level{verdict.SI, verdict.SER}},
		{verdict.SSER, verdict.SSER, []verdict.Level{verdict.SI, verdict.SER}, record.ClockEnforce, []verdict.Level{verdict.SER}},
		// What the engine says it was asked is broken, whatever the name says.
		{verdict.SER, verdict.SI, []verdict.Level{verdict.SI}, record.ClockPrune, []verdict.Level{verdict.SI}},
		{verdict.SI, verdict.SI, nil, record.ClockPrune, []verdict.Level{verdict.SI}},
	} {
		got := name.Breaks(c.weakest, c.proved, name.Asked{Levels: c.asked, Clock: c.clock})
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%v of %v, clock %v: -want +got:\n%s", c.weakest, c.asked, c.clock, d)
		}
	}
}

// Without records every cycle still has a name.
func TestNamesWithoutRecords(t *testing.T) {
	p := alerttest.NewParser(nil)
	for text, want := range map[string]string{
		"T1 wr(x) T2 rw(y) T1":             "fractured-read",
		"T1 rw(x) T2 rw(y) T1":             "write-skew",
		"T1 rw(x) T2 rw(y) T3 wr(y) T1":    "serialization-cycle",
		"T1 rw(x) T2 wr(y) T3 wr(z) T1":    "causality-violation",
		"T1 rw(x) T2 ww(x,case) T1":        "lost-update",
		"T1 rw(x) T2 ww(y,case) T1":        "snapshot-cycle",
		"T1 rt T2 ww(y,case) T1":           "real-time-violation",
		"T1 rt T2 rw(x) T3 rw(y) T1":       "real-time-violation",
		"T1 wr(x) T2 wr(y) T3 so T4 so T1": "circular-information-flow",
		"T1 ww(x,overwrite) T2 rw(x) T1":   "non-repeatable-reads", // T2 saw what it overwrote
	} {
		v := verdict.Violation{Kind: verdict.Cycle, Level: verdict.SER, Cycle: p.Cycle(t, text)}
		if got := name.Of(v, nil, name.Asked{}); got.Name != want {
			t.Errorf("%s: %s, want %s", text, got.Name, want)
		}
	}
}

// A reason may be deep and share its parts; naming must not take exponential
// time over it, and what it did not look at counts as the checked level.
func TestDeepReasons(t *testing.T) {
	e := verdict.Edge{From: 0, To: 1, Type: verdict.WW, Key: "x", Why: verdict.ByOrder}
	for range 64 {
		e = verdict.Edge{From: 0, To: 1, Type: verdict.WW, Key: "x", Why: verdict.ByOrder, Because: []verdict.Edge{e, e, e}}
	}
	v := verdict.Violation{Kind: verdict.Cycle, Level: verdict.SI, Cycle: []verdict.Edge{e, {From: 1, To: 0, Type: verdict.SO}}}
	if got := name.Of(v, nil, name.Asked{}); got.Weakest != verdict.SI {
		t.Errorf("weakest %v, want si", got.Weakest)
	}
}

// The same for the cycles that rule out other writers, of which there may be
// hundreds at every depth.
func TestManyEliminations(t *testing.T) {
	e := verdict.Edge{From: 0, To: 1, Type: verdict.WR, Key: "x", Why: verdict.ByCase}
	for range 16 {
		c := []verdict.Edge{e, {From: 1, To: 0, Type: verdict.SO}}
		others := make([][]verdict.Edge, 300)
		for i := range others {
			others[i] = c
		}
		e = verdict.Edge{From: 0, To: 1, Type: verdict.WR, Key: "x", Why: verdict.ByElimination, Others: others}
	}
	v := verdict.Violation{Kind: verdict.Cycle, Level: verdict.SER, Cycle: []verdict.Edge{e, {From: 1, To: 0, Type: verdict.SO}}}
	if got := name.Of(v, nil, name.Asked{}); got.Weakest != verdict.SER {
		t.Errorf("weakest %v, want ser, as not all reasons were looked at", got.Weakest)
	}
}

func TestOverwriters(t *testing.T) {
	s, err := script.Parse("s1 T0: w(x,0)\ns1 T1: r(y,0) r(x,0) w(x,1)\ns2 T2: r(x,0) w(x,2)")
	if err != nil {
		t.Fatal(err)
	}
	for _, txns := range [][]verdict.TxnID{{1, 0, 2}, {1, 2}, {1, 2, 0}} {
		a, b, ok := name.Overwriters(verdict.Violation{Kind: verdict.Divergence, Key: "x", Read: 1, Txns: txns}, alerttest.Lookup(s.Txns))
		if a != 1 || b != 2 || !ok {
			t.Errorf("%v: %d, %d, %v", txns, a, b, ok)
		}
	}
	if _, _, ok := name.Overwriters(verdict.Violation{Kind: verdict.Cycle, Txns: []verdict.TxnID{0, 1}}, nil); ok {
		t.Error("a cycle has no overwriters")
	}
}

func TestLevelsInWords(t *testing.T) {
	for _, l := range verdict.Levels() {
		if got := name.Level(l); !strings.HasSuffix(got, "("+l.String()+")") {
			t.Errorf("%v has no words: %q", l, got)
		}
	}
}

// The 14 anomalies of MTC, Table I, all have a case.
func TestMTC(t *testing.T) {
	for _, want := range strings.Fields(`thin-air-read aborted-read future-read not-my-last-write not-my-own-write intermediate-read
		non-repeatable-reads session-guarantee-violation non-monotonic-read fractured-read causality-violation long-fork lost-update write-skew`) {
		if !slices.ContainsFunc(alerttest.Cases, func(c alerttest.Case) bool { return c.Want.Name == want }) {
			t.Errorf("no case is called %s", want)
		}
	}
}

// Snapshot isolation's rule of unbroken runs of updates, which makes cycles of a
// run that begins with the initial version: where somebody in the cycle read that
// version itself, it is told without the rule, as weak levels tell it.
func TestPlain(t *testing.T) {
	for _, c := range []struct{ title, history, cycle, want, name string }{
		{"an update of the initial version is an anti-dependency too", "initial zero\ns1 T1: w(x,1)\ns1 T2: r(x,0) w(x,2)",
			"T2 ww(x,initial) T1 so T2", "T2 rw(x,initial) T1 so T2", "session-guarantee-violation"},
		{"a later update", "initial zero\ns1 T1: w(x,1)\ns1 T2: r(x,3) w(x,2)\ns2 T3: r(x,0) w(x,3)",
			"T2 ww(x,initial) T1 so T2", "T2 ww(x,initial) T1 so T2", "snapshot-cycle"},
		{"none beside another anti-dependency", "initial zero\ns1 T1: w(x,1) r(y,0)\ns2 T2: r(x,0) w(x,2) w(y,1)",
			"T2 ww(x,initial) T1 rw(y,initial) T2", "T2 ww(x,initial) T1 rw(y,initial) T2", "snapshot-cycle"},
		{"a reader of the initial version missed all that follow",
			"initial zero\ns1 T1: r(x,1)\ns1 T4: r(x,0)\ns2 T3: w(x,1)\ns3 T2: r(x,0) w(x,2)",
			"T2 ww(x,initial) T3 wr(x) T1 so T4 rw(x) T2", "T4 rw(x,initial) T3 wr(x) T1 so T4", "causality-violation"},
		{"a reader of the first update did not", "initial zero\ns1 T1: r(x,1)\ns1 T4: r(x,2)\ns2 T3: w(x,1)\ns3 T2: r(x,0) w(x,2)\ns4 T5: r(x,2) w(x,5)",
			"T5 ww(x,initial) T3 wr(x) T1 so T4 rw(x) T5", "T5 ww(x,initial) T3 wr(x) T1 so T4 rw(x) T5", "snapshot-cycle"},
		{"a version on top of the initial one is not that", "initial absent\ns1 T2: r(z,null) w(z,4)\ns2 T1: w(x,1) w(z,3)\ns3 T4: r(x,1) r(z,4)",
			"T4 rw(z,initial) T1 wr(x) T4", "T4 rw(z,initial) T1 wr(x) T4", "read-skew"},
	} {
		s, err := script.Parse(c.history)
		if err != nil {
			t.Fatal(err)
		}
		p, lookup := alerttest.NewParser(s.Txns), alerttest.Lookup(s.Txns)
		v := verdict.Violation{Kind: verdict.Cycle, Level: verdict.SI, Read: -1, Cycle: p.Cycle(t, c.cycle)}
		for i := range s.Txns {
			v.Evidence = append(v.Evidence, verdict.TxnID(i))
		}
		got := name.Plain(v, lookup)
		if d := cmp.Diff(p.Cycle(t, c.want), got.Cycle); d != "" {
			t.Errorf("%s: -want +got:\n%s", c.title, d)
		}
		n := name.Of(got, lookup, name.Asked{Levels: verdict.Levels()})
		if n.Name != c.name {
			t.Errorf("%s: %s, want %s", c.title, n.Name, c.name)
		}
		confirm(t, s, n, n.Breaks)
	}
}

// Which of several reads of a key a violation is about, where the engine does not
// say.
func TestReadOfSeveral(t *testing.T) {
	for _, c := range []struct {
		kind    verdict.Kind
		history string // the first transaction is the reader, the others are the rest
		want    int
	}{
		{verdict.IntermediateRead, "s1 A: r(x,2) r(x,1)\ns2 B: w(x,1) w(x,2)", 1},
		{verdict.IntermediateRead, "s1 A: r(x,[1,2]) r(x,[1])\ns2 B: append(x,1) append(x,2)", 1},
		{verdict.IntermediateRead, "s1 A: r(x,9) r(x,2)\ns2 B: w(x,1) w(x,2)", 1}, // none is of its middle; at least of B
		{verdict.AbortedRead, "s1 A: r(x,9) r(x,1)\ns2 B aborted: w(x,1)", 1},
		{verdict.IncompatibleOrder, "s1 A: r(x,[1]) r(x,[2,1])\ns2 B: r(x,[1,2])", 1},
		{verdict.IncompatibleOrder, "s1 A: append(x,1) r(x,[1]) r(x,[3,1])\ns2 B: r(x,[2,1])", 2}, // the first saw nothing of others
		{verdict.IncompatibleOrder, "s1 A: r(x,[3,2,3]) r(x,[2,3])\ns2 B: r(x,[1])", 1},
		{verdict.IncompatibleOrder, "s1 A: r(x,[3,2,3])\ns2 B: r(x,[1])", 0},
		{verdict.DuplicateElements, "s1 A: r(x,[1]) r(x,[1,2,1])", 1},
	} {
		s, err := script.Parse(c.history)
		if err != nil {
			t.Fatal(err)
		}
		v := verdict.Violation{Kind: c.kind, Key: "x", Read: -1}
		for i := range s.Txns {
			v.Txns, v.Evidence = append(v.Txns, verdict.TxnID(i)), append(v.Evidence, verdict.TxnID(i))
		}
		if got := name.Read(v, alerttest.Lookup(s.Txns)); got != c.want {
			t.Errorf("%v: %d, want %d\n%s", c.kind, got, c.want, c.history)
		}
	}
}
