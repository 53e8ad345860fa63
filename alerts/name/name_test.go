package name_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/isowatch/isowatch/alerts/name"
	"github.com/isowatch/isowatch/incremental/oracle"
	"github.com/isowatch/isowatch/incremental/oracle/script"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
)

// strong are the levels that the engine decides today, all are what it may.
var strong = []verdict.Level{verdict.SI, verdict.StrongSI, verdict.SER, verdict.SSER}

// cases are violations by hand. The cycle is written as in "T1 wr(x) T2 rw(y)
// T1"; a reason other than the usual one follows the key: "ww(x,order)". The
// oracle confirms every level that a name claims, and that exact ones hold at
// everything weaker.
var cases = []struct {
	title   string
	history string
	kind    verdict.Kind
	level   verdict.Level // what the engine says
	txns    string        // for kinds without cycle
	cycle   string
	cases   []string
	want    name.Name // Breaks are tested against all levels
	inexact bool      // the history breaks weaker levels in another way too
}{
	{
		title: "thin air", history: "initial zero\ns1 T1: r(x,7)",
		kind: verdict.ThinAirRead, level: verdict.SI, txns: "T1",
		want: name.Name{Name: "thin-air-read", Weakest: verdict.G1, Severity: name.Critical},
	},
	{
		title: "aborted", history: "s1 T1 aborted: w(x,1)\ns2 T2: r(x,1)",
		kind: verdict.AbortedRead, level: verdict.SI, txns: "T2 T1",
		want: name.Name{Name: "aborted-read", Adya: "G1a", Weakest: verdict.G1, Severity: name.Critical},
	},
	{
		title: "future", history: "initial zero\ns1 T1: r(x,5) w(x,5)",
		kind: verdict.FutureRead, level: verdict.SI, txns: "T1",
		want: name.Name{Name: "future-read", Adya: "internal", Weakest: verdict.G1, Severity: name.Critical},
	},
	{
		title: "not my last write", history: "s1 T1: w(x,1) w(x,2) r(x,1)",
		kind: verdict.NotMyLastWrite, level: verdict.SI, txns: "T1",
		want: name.Name{Name: "not-my-last-write", Adya: "internal", Weakest: verdict.G1, Severity: name.Critical},
	},
	{
		title: "not my own write", history: "s1 T1: w(x,1)\ns2 T2: w(x,2) r(x,1)",
		kind: verdict.NotMyOwnWrite, level: verdict.SI, txns: "T2 T1",
		want: name.Name{Name: "not-my-own-write", Adya: "internal", Weakest: verdict.G1, Severity: name.Critical},
	},
	{
		title: "intermediate", history: "s1 T1: w(x,1) w(x,2)\ns2 T2: r(x,1)",
		kind: verdict.IntermediateRead, level: verdict.SI, txns: "T2 T1",
		want: name.Name{Name: "intermediate-read", Adya: "G1b", Weakest: verdict.G1, Severity: name.Critical},
	},
	{
		title: "non-repeatable", history: "initial zero\ns1 T1: w(x,1)\ns2 T2: r(x,0) r(x,1)",
		kind: verdict.NonRepeatableRead, level: verdict.SI, txns: "T2 T1",
		want: name.Name{Name: "non-repeatable-reads", Adya: "internal", Weakest: verdict.RA, Severity: name.Critical},
	},
	{
		title: "divergence", history: "s1 T0: w(x,0)\ns1 T1: r(x,0) w(x,1)\ns2 T2: r(x,0) w(x,2)",
		kind: verdict.Divergence, level: verdict.SI, txns: "T1 T2 T0",
		want: name.Name{Name: "lost-update", Adya: "G-single", Weakest: verdict.SI, Severity: name.Critical},
	},
	{
		title: "session guarantee", history: "initial zero\ns1 T1: w(x,1)\ns1 T2: r(x,0)",
		kind: verdict.Cycle, level: verdict.SI, cycle: "T1 so T2 rw(x,initial) T1",
		want: name.Name{Name: "session-guarantee-violation", Adya: "G-single-process", Weakest: verdict.RA, Severity: name.Critical},
	},
	{
		title: "session guarantee, a transaction between", history: "initial zero\ns1 T1: w(x,1)\ns1 T3: w(y,1)\ns1 T2: r(x,0)",
		kind: verdict.Cycle, level: verdict.SI, cycle: "T1 so T3 so T2 rw(x,initial) T1",
		want: name.Name{Name: "session-guarantee-violation", Adya: "G-single-process", Weakest: verdict.RA, Severity: name.Critical},
	},
	{
		title: "non-monotonic", history: "initial zero\ns1 T1: w(x,1) w(y,1)\ns2 T2: r(x,1) r(y,0)",
		kind: verdict.Cycle, level: verdict.SI, cycle: "T1 wr(x) T2 rw(y,initial) T1",
		want: name.Name{Name: "non-monotonic-read", Adya: "G-single", Weakest: verdict.RC, Severity: name.Critical},
	},
	{
		title: "non-monotonic on one key", history: "initial zero\ns1 T1: w(x,1)\ns2 T2: r(x,1) r(x,0)",
		kind: verdict.Cycle, level: verdict.RC, cycle: "T1 wr(x) T2 rw(x,initial) T1",
		want: name.Name{Name: "non-monotonic-read", Adya: "G-single", Weakest: verdict.RC, Severity: name.Critical},
	},
	{
		title: "fractured", history: "initial zero\ns1 T1: w(x,1) w(y,1)\ns2 T2: r(x,0) r(y,1)",
		kind: verdict.Cycle, level: verdict.SI, cycle: "T2 rw(x,initial) T1 wr(y) T2",
		want: name.Name{Name: "fractured-read", Adya: "G-single", Weakest: verdict.RA, Severity: name.Critical},
	},
	{
		title: "fractured, shown by an overwrite", history: "initial zero\ns1 T1: w(x,1) w(y,1)\ns2 T2: r(x,0) r(y,1) w(y,2)",
		kind: verdict.Cycle, level: verdict.SI, cycle: "T1 ww(y,overwrite) T2 rw(x,initial) T1",
		want: name.Name{Name: "fractured-read", Adya: "G-single", Weakest: verdict.RA, Severity: name.Critical},
	},
	{
		title: "causality", history: "initial zero\ns1 T1: w(post,1)\ns2 T2: r(post,1) w(reply,1)\ns3 T3: r(reply,1) r(post,0)",
		kind: verdict.Cycle, level: verdict.SI, cycle: "T1 wr(post) T2 wr(reply) T3 rw(post,initial) T1",
		want: name.Name{Name: "causality-violation", Adya: "G-single", Weakest: verdict.CC, Severity: name.Critical},
	},
	{
		title: "causality in a session", history: "initial zero\ns1 T1: w(x,1)\ns2 T2: r(x,1)\ns2 T3: r(x,0)",
		kind: verdict.Cycle, level: verdict.SI, cycle: "T1 wr(x) T2 so T3 rw(x,initial) T1",
		want: name.Name{Name: "causality-violation", Adya: "G-single-process", Weakest: verdict.CC, Severity: name.Critical},
	},
	{
		title: "long fork", history: "initial zero\ns1 T1: w(x,1)\ns2 T2: w(y,1)\ns3 T3: r(x,1) r(y,0)\ns4 T4: r(x,0) r(y,1)",
		kind: verdict.Cycle, level: verdict.SI, cycle: "T1 wr(x) T3 rw(y,initial) T2 wr(y) T4 rw(x,initial) T1",
		want: name.Name{Name: "long-fork", Adya: "G-nonadjacent", Weakest: verdict.PC, Severity: name.Critical},
	},
	{
		title: "lost update", history: "initial zero\ns1 T1: r(x,0) w(x,1)\ns2 T2: r(x,0) w(x,2)\ns2 T3: r(x,2)",
		kind: verdict.Cycle, level: verdict.SI, cycle: "T1 ww(x,order) T2 rw(x,initial) T1",
		want: name.Name{Name: "lost-update", Adya: "G-single", Weakest: verdict.SI, Severity: name.Critical},
	},
	{
		title: "lost update, as serializability finds it", history: "initial zero\ns1 T1: r(x,0) w(x,1)\ns2 T2: r(x,0) w(x,2)",
		kind: verdict.Cycle, level: verdict.SER, cycle: "T1 rw(x,initial) T2 rw(x,initial) T1",
		want: name.Name{Name: "lost-update", Adya: "G2-item", Weakest: verdict.SI, Severity: name.Critical},
	},
	{
		title: "a skew whose writers conflict", history: "initial zero\ns1 T1: r(x,0) r(y,0) w(x,1) w(z,1)\ns2 T2: r(x,0) r(y,0) w(y,1) w(z,2)",
		kind: verdict.Cycle, level: verdict.SER, cycle: "T1 rw(y,initial) T2 rw(x,initial) T1",
		want: name.Name{Name: "lost-update", Adya: "G2-item", Weakest: verdict.SI, Severity: name.Critical},
	},
	{
		title: "write skew", history: "initial zero\ns1 T1: r(x,0) r(y,0) w(x,1)\ns2 T2: r(x,0) r(y,0) w(y,1)",
		kind: verdict.Cycle, level: verdict.SER, cycle: "T1 rw(y,initial) T2 rw(x,initial) T1",
		want: name.Name{Name: "write-skew", Adya: "G2-item", Weakest: verdict.SER, Severity: name.Error},
	},
	{
		title: "read-only anomaly", history: "initial zero\ns1 T1: r(x,0) r(y,0) w(x,-11)\ns2 T2: r(y,0) w(y,20)\ns3 T3: r(x,0) r(y,20)",
		kind: verdict.Cycle, level: verdict.SER, cycle: "T3 rw(x,initial) T1 rw(y,initial) T2 wr(y) T3",
		want: name.Name{Name: "read-only-anomaly", Adya: "G2-item", Weakest: verdict.SER, Severity: name.Error},
	},
	{
		title: "skew of three", history: "initial zero\ns1 T1: r(x,0) w(y,1)\ns2 T2: r(y,0) w(z,1)\ns3 T3: r(z,0) w(x,1)",
		kind: verdict.Cycle, level: verdict.SER, cycle: "T1 rw(x,initial) T3 rw(z,initial) T2 rw(y,initial) T1",
		want: name.Name{Name: "serialization-cycle", Adya: "G2-item", Weakest: verdict.SER, Severity: name.Error},
	},
	{
		title: "read skew by a prefix", history: "initial zero\ns1 T1: w(x,1) w(z,1)\ns1 T4: r(z,2)\ns2 T2: w(z,2) w(y,1)\ns3 T3: r(y,1) r(x,0)",
		kind: verdict.Cycle, level: verdict.SI, cycle: "T1 ww(z,order: T2 ww(z) T1 so T4 rw(z,overwrite) T2) T2 wr(y) T3 rw(x,initial) T1",
		want: name.Name{Name: "read-skew", Adya: "G-single", Weakest: verdict.PC, Severity: name.Critical},
	},
	{
		title: "concurrent writers of two keys", history: "initial zero\ns1 T1: w(x,1) w(y,1)\ns2 T2: r(y,0) w(x,2)\ns1 T3: r(x,2)",
		kind: verdict.Cycle, level: verdict.SI, cycle: "T1 ww(x,order) T2 rw(y,initial) T1",
		want: name.Name{Name: "read-skew", Adya: "G-single", Weakest: verdict.SI, Severity: name.Critical},
	},
	{
		title: "snapshot cycle", kind: verdict.Cycle, level: verdict.SI,
		cycle: "T1 ww(x,case) T2 rw(y) T3 wr(z) T4 rw(v) T1",
		want:  name.Name{Name: "snapshot-cycle", Adya: "G-nonadjacent", Weakest: verdict.SI, Severity: name.Critical},
	},
	{
		title: "dirty write", kind: verdict.Cycle, level: verdict.SI,
		cycle: "T1 ww(x,case) T2 ww(y,case) T1",
		want:  name.Name{Name: "dirty-write", Adya: "G0", Weakest: verdict.RC, Severity: name.Critical},
	},
	{
		title: "session's writes turned round", kind: verdict.Cycle, level: verdict.SI,
		cycle: "T1 so T2 ww(x,case) T1",
		want:  name.Name{Name: "session-guarantee-violation", Adya: "G0-process", Weakest: verdict.RC, Severity: name.Critical},
	},
	{
		title: "circular information flow", history: "initial zero\ns1 T1: w(x,1) r(y,1)\ns2 T2: w(y,1) r(x,1)",
		kind: verdict.Cycle, level: verdict.SI, cycle: "T1 wr(x) T2 wr(y) T1",
		want: name.Name{Name: "circular-information-flow", Adya: "G1c", Weakest: verdict.G1, Severity: name.Critical},
	},
	{
		title: "read from later in the session", history: "initial zero\ns1 T1: r(x,1)\ns1 T2: w(x,1)",
		kind: verdict.Cycle, level: verdict.SI, cycle: "T1 so T2 wr(x) T1",
		want: name.Name{Name: "circular-information-flow", Adya: "G1c-process", Weakest: verdict.G1, Severity: name.Critical},
	},
	{
		title: "stale read", history: "initial zero\ns1 T1: w(x,1) @10-20\ns2 T2: r(x,0) @21-30",
		kind: verdict.Cycle, level: verdict.StrongSI, cycle: "T1 rt T2 rw(x,initial) T1",
		want: name.Name{Name: "stale-read", Adya: "G-single-realtime", Weakest: verdict.StrongSI, ClockDependent: true, Severity: name.Warning},
	},
	{
		title: "read before it was written", history: "initial zero\ns1 T1: r(x,1) @10-20\ns2 T2: w(x,1) @30-40",
		kind: verdict.Cycle, level: verdict.StrongSI, cycle: "T1 rt T2 wr(x) T1",
		want: name.Name{Name: "real-time-violation", Adya: "G1c-realtime", Weakest: verdict.StrongSI, ClockDependent: true, Severity: name.Warning},
	},
	{
		title: "real time through two anti-dependencies", history: "initial zero\ns1 B: r(z,0) w(b,1) @10-50\ns2 C: w(z,1) @11-20\ns3 A: r(b,0) @30-40",
		kind: verdict.Cycle, level: verdict.SSER, cycle: "A rw(b,initial) B rw(z,initial) C rt A",
		want: name.Name{Name: "real-time-violation", Adya: "G2-item-realtime", Weakest: verdict.SSER, ClockDependent: true, Severity: name.Warning},
	},
	{
		title: "a write order by the clock", kind: verdict.Cycle, level: verdict.StrongSI,
		cycle: "T1 ww(x,order: T2 ww(x) T1 rt T2) T2 rw(y) T1",
		want:  name.Name{Name: "read-skew", Adya: "G-single-realtime", Weakest: verdict.StrongSI, ClockDependent: true, Severity: name.Warning},
	},
	{
		title: "lost update by a blind write", kind: verdict.Unsatisfiable, level: verdict.SI,
		history: "initial zero\ns1 T1: w(x,1)\ns1 T4: r(x,2)\ns1 T5: r(x,3)\ns2 T2: w(x,2)\ns3 T3: r(x,1) w(x,3)",
		cases:   []string{"T1 so T4 rw(x,case) T1", "T2 ww(x,case) T3 rw(x,overwrite) T2", "T2 wr(x) T4 so T5 rw(x,case) T2"},
		want:    name.Name{Name: "lost-update", Adya: "G-single-process", Weakest: verdict.SI, Severity: name.Critical},
	},
	{
		title: "all cases alike", kind: verdict.Unsatisfiable, level: verdict.SER,
		cases: []string{"T1 rw(x,case) T2 rw(y,case) T1", "T2 rw(x,case) T1 rw(y,case) T2"},
		want:  name.Name{Name: "write-skew", Adya: "G2-item", Weakest: verdict.SER, Severity: name.Error},
	},
	{
		title: "a case needs the clock", kind: verdict.Unsatisfiable, level: verdict.SSER,
		cases: []string{"T1 rw(x,case) T2 rw(y,case) T1", "T2 rw(x,case) T1 rt T2"},
		want:  name.Name{Name: "real-time-violation", Adya: "G2-item-realtime", Weakest: verdict.SSER, ClockDependent: true, Severity: name.Warning},
	},
	{
		title: "no cases told", kind: verdict.Unsatisfiable, level: verdict.SER,
		want: name.Name{Name: "serialization-cycle", Weakest: verdict.SER, Severity: name.Error},
	},
}

func TestNames(t *testing.T) {
	for _, c := range cases {
		t.Run(c.title, func(t *testing.T) {
			s, err := script.Parse(c.history)
			if err != nil {
				t.Fatal(err)
			}
			p := parser{ids: map[string]verdict.TxnID{}}
			for _, txn := range s.Txns {
				p.id(txn.ID)
			}
			v := verdict.Violation{Kind: c.kind, Level: c.level, Read: -1}
			for _, w := range strings.Fields(c.txns) {
				v.Txns = append(v.Txns, p.id(w))
			}
			v.Cycle = p.cycle(t, c.cycle)
			for _, text := range c.cases {
				v.Cases = append(v.Cases, p.cycle(t, text))
			}
			got := name.Of(v, lookup(s.Txns), name.Asked{Levels: verdict.Levels()})
			breaks := got.Breaks
			got.Breaks = nil
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
			if len(s.Txns) > 0 {
				confirm(t, s, got, breaks, c.inexact)
			}
		})
	}
}

// confirm asks the oracle whether all levels that are said to be broken are,
// and the others hold.
func confirm(t *testing.T, s script.Script, n name.Name, breaks []verdict.Level, inexact bool) {
	t.Helper()
	holds := oracle.Check(s.Txns, oracle.FromHeader(s.Header))
	for l, ok := range holds {
		switch broken := slices.Contains(breaks, l); {
		case l == verdict.LIN: // stands apart
		case broken && ok:
			t.Errorf("%v is said to be broken; it holds", l)
		case !broken && !ok && !inexact && !(l == verdict.SSER && !n.ClockDependent):
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
	p := parser{ids: map[string]verdict.TxnID{}}
	for text, want := range map[string]string{
		"T1 wr(x) T2 rw(y) T1":             "fractured-read",
		"T1 rw(x) T2 rw(y) T1":             "write-skew",
		"T1 rw(x) T2 rw(y) T3 wr(y) T1":    "serialization-cycle",
		"T1 rw(x) T2 wr(y) T3 wr(z) T1":    "causality-violation",
		"T1 rw(x) T2 ww(x,case) T1":        "lost-update",
		"T1 rw(x) T2 ww(y,case) T1":        "read-skew",
		"T1 rt T2 ww(y,case) T1":           "real-time-violation",
		"T1 rt T2 rw(x) T3 rw(y) T1":       "real-time-violation",
		"T1 wr(x) T2 wr(y) T3 so T4 so T1": "circular-information-flow",
	} {
		v := verdict.Violation{Kind: verdict.Cycle, Level: verdict.SER, Cycle: p.cycle(t, text)}
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

func TestOverwriters(t *testing.T) {
	s, err := script.Parse("s1 T0: w(x,0)\ns1 T1: r(y,0) r(x,0) w(x,1)\ns2 T2: r(x,0) w(x,2)")
	if err != nil {
		t.Fatal(err)
	}
	for _, txns := range [][]verdict.TxnID{{1, 0, 2}, {1, 2}, {1, 2, 0}} {
		a, b, ok := name.Overwriters(verdict.Violation{Kind: verdict.Divergence, Key: "x", Read: 1, Txns: txns}, lookup(s.Txns))
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
	got := name.Levels([]verdict.Level{verdict.SI, verdict.SER})
	if want := "snapshot isolation (si) and serializability (ser)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func lookup(txns []record.Transaction) name.Lookup {
	return func(id verdict.TxnID) (*record.Transaction, bool) {
		if int(id) >= len(txns) {
			return nil, false
		}
		return &txns[id], true
	}
}

// parser reads cycles in the notation of cases.
type parser struct{ ids map[string]verdict.TxnID }

func (p parser) id(s string) verdict.TxnID {
	if _, ok := p.ids[s]; !ok {
		p.ids[s] = verdict.TxnID(len(p.ids))
	}
	return p.ids[s]
}

func (p parser) cycle(t *testing.T, text string) []verdict.Edge {
	t.Helper()
	out, err := p.parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// parse reads "T1 wr(x) T2 rw(y,initial) T1".
func (p parser) parse(text string) ([]verdict.Edge, error) {
	var words []string // at depth 0, separated by spaces
	depth := 0
	word := ""
	for _, r := range text + " " {
		switch {
		case r == ' ' && depth == 0:
			if word != "" {
				words = append(words, word)
			}
			word = ""
			continue
		case r == '(':
			depth++
		case r == ')':
			depth--
		}
		word += string(r)
	}
	var out []verdict.Edge
	for i := 0; i+2 < len(words); i += 2 {
		e := verdict.Edge{From: p.id(words[i]), To: p.id(words[i+2])}
		kind, rest, _ := strings.Cut(words[i+1], "(")
		rest = strings.TrimSuffix(rest, ")")
		var why string
		e.Key, why, _ = strings.Cut(rest, ",")
		why, because, _ := strings.Cut(why, ": ")
		switch kind {
		case "so":
			e.Type, e.Why = verdict.SO, verdict.BySession
		case "rt":
			e.Type, e.Why = verdict.RT, verdict.ByClock
		case "wr":
			e.Type, e.Why = verdict.WR, verdict.ByValue
		case "ww":
			e.Type, e.Why = verdict.WW, verdict.ByCase
		case "rw":
			e.Type, e.Why = verdict.RW, verdict.ByOverwrite
		default:
			return nil, fmt.Errorf("%q: no edge %q", text, kind)
		}
		switch why {
		case "":
		case "initial":
			e.Why = verdict.ByInitial
		case "overwrite":
			e.Why = verdict.ByOverwrite
		case "order":
			e.Why = verdict.ByOrder
		case "case":
			e.Why = verdict.ByCase
		default:
			return nil, fmt.Errorf("%q: no reason %q", text, why)
		}
		if because != "" {
			var err error
			if e.Because, err = p.parse(because); err != nil {
				return nil, err
			}
		}
		out = append(out, e)
	}
	return out, nil
}
