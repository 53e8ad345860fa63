package alerts_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/codec"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/alerttest"
	"github.com/isowatch/isowatch/internal/lab/golden"
	"github.com/isowatch/isowatch/internal/lab/oracle/script"
)

func context(s script.Script, levels ...verdict.Level) alerts.Context {
	opt := record.Assumptions{}.Override(s.Header)
	return alerts.Context{DB: "orders", Levels: levels, Assumptions: opt, Lookup: alerttest.Lookup(s.Txns), Judge: alerttest.Judge, Now: 1732160000123456789}
}

// recheck reads the evidence as `monitor check` would and has the oracle judge
// it.
func recheck(t *testing.T, a alerts.Alert) []record.Transaction {
	t.Helper()
	h, err := codec.DecodeHeader(a.Evidence[0])
	if err != nil {
		t.Fatalf("%s: %v", a.Evidence[0], err)
	}
	txns := make([]record.Transaction, len(a.Evidence)-1)
	for i, line := range a.Evidence[1:] {
		if err := codec.Decode(line, &txns[i]); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
	}
	l, ok := verdict.ParseLevel(a.Level)
	if !ok {
		t.Fatalf("level %q", a.Level)
	}
	if alerttest.Judge(l, h, txns) != verdict.Violated && !alerttest.TooLarge(txns) {
		t.Errorf("the evidence is no violation of %v:\n%s", l, script.Format(script.Script{Header: h, Txns: txns}))
	}
	return txns
}

// The evidence of every anomaly proves it by itself at the level of the alert,
// with few transactions, whatever level was promised.
func TestEvidenceProves(t *testing.T) {
	for _, c := range alerttest.Cases {
		if c.History == "" {
			continue
		}
		t.Run(c.Title, func(t *testing.T) {
			for _, levels := range [][]verdict.Level{{verdict.RA, verdict.SI, verdict.SER, verdict.SSER}, {verdict.SER, verdict.SSER}, {verdict.SSER}, verdict.Levels()[:verdict.LIN]} {
				s, v := c.Load(t)
				// What else happened, before and after, is not to be in it.
				busy := script.Script{Header: s.Header, Txns: slices.Concat(s.Txns, other(t).Txns)}
				for i := range other(t).Txns {
					v.Evidence = append(v.Evidence, verdict.TxnID(len(s.Txns)+i))
				}
				a, err := alerts.New(v, context(busy, levels...))
				if err != nil {
					t.Fatal(err)
				}
				txns := recheck(t, a)
				if len(txns) > len(s.Txns) {
					t.Errorf("%d transactions where %d prove it", len(txns), len(s.Txns))
				}
				if a.Name != c.Want.Name || a.Level != a.Breaks[0] || a.ClockDependent != c.Want.ClockDependent {
					t.Errorf("%s at %s of %v", a.Name, a.Level, a.Breaks)
				}
			}
		})
	}
}

// other is what else happens in a history.
func other(t *testing.T) script.Script {
	s, err := script.Parse("s8 O1: w(o,51) @1-2\ns9 O2: r(o,51) w(o,52) w(p,53) @3-4\ns9 O3: r(p,53) @5-6")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Reads whose writers are not part of the evidence are left out before complete
// coverage is claimed: otherwise they would pass for initial versions or thin
// air.
func TestEvidenceClaimsNothingFalse(t *testing.T) {
	s, err := script.Parse(`
		s9 T9: w(z,9)
		s1 T1: r(z,9) r(x,7) w(x,1)
		s2 T2: r(x,7) w(x,2) r(z,9)`)
	if err != nil {
		t.Fatal(err)
	}
	v := verdict.Violation{Kind: verdict.Divergence, Level: verdict.SI, Key: "x", Read: 1, Txns: []verdict.TxnID{1, 2}, Evidence: []verdict.TxnID{1, 2}}
	a, err := alerts.New(v, context(s, verdict.SI))
	if err != nil {
		t.Fatal(err)
	}
	txns := recheck(t, a)
	h, _ := codec.DecodeHeader(a.Evidence[0])
	if *h.Coverage != record.CoverageComplete {
		t.Errorf("nobody is seen to write x = 7, and yet coverage is %v", *h.Coverage)
	}
	for _, txn := range txns {
		for _, op := range txn.Ops {
			if op.Key == "z" {
				t.Errorf("%s still reads z, which nobody here wrote", txn.ID)
			}
		}
		if txn.HasSeq {
			t.Errorf("%s has a sequence number, and with it a gap in a complete capture", txn.ID)
		}
	}
}

// Partial coverage is enough where the version that was lost is seen, and then
// it is claimed.
func TestEvidenceAssumesLittle(t *testing.T) {
	for _, c := range alerttest.Cases {
		if c.Title != "divergence" {
			continue
		}
		s, v := c.Load(t)
		a, err := alerts.New(v, context(s, verdict.SI))
		if err != nil {
			t.Fatal(err)
		}
		h, err := codec.DecodeHeader(a.Evidence[0])
		if err != nil || *h.Coverage != record.CoveragePartial {
			t.Errorf("coverage %v, error %v", h.Coverage, err)
		}
		return
	}
	t.Fatal("there is no such case")
}

// What the engine exhibits is tried first.
func TestExhibits(t *testing.T) {
	s, err := script.Parse("s0 T0: w(x,0) w(y,3)\ns1 T1: r(x,0) w(x,1) r(y,3) r(x,1)\ns2 T2: r(y,3) r(x,0) w(x,2)")
	if err != nil {
		t.Fatal(err)
	}
	v := verdict.Violation{Kind: verdict.Divergence, Level: verdict.SI, Key: "x", Read: 0, Txns: []verdict.TxnID{1, 2}, Evidence: []verdict.TxnID{0, 1, 2},
		Exhibits: []verdict.Exhibit{{Txn: 0, Writes: []string{"x"}}, {Txn: 1, Reads: []string{"x"}, Writes: []string{"x"}}, {Txn: 2, Reads: []string{"x"}, Writes: []string{"x"}}}}
	ctx := context(s, verdict.SI)
	var first []record.Transaction
	ctx.Judge = func(l verdict.Level, h record.Header, txns []record.Transaction) verdict.Outcome {
		if first == nil {
			first = slices.Clone(txns)
		}
		return alerttest.Judge(l, h, txns)
	}
	a, err := alerts.New(v, ctx)
	if err != nil {
		t.Fatal(err)
	}
	recheck(t, a)
	want, err := script.Parse("s0 T0: w(x,0)\ns1 T1: r(x,0) w(x,1)\ns2 T2: r(x,0) w(x,2)")
	if err != nil {
		t.Fatal(err)
	}
	for i := range want.Txns {
		want.Txns[i].HasSeq, want.Txns[i].Seq = false, 0 // a hole would look like a gap
	}
	if d := cmp.Diff(want.Txns, first); d != "" {
		t.Errorf("asked first about -want +got:\n%s", d)
	}
}

// An alert that proves nothing is an error, and still an alert with all records. Where a judge did not say, it is told
// from one that is refuted.
func TestUnproved(t *testing.T) {
	for _, says := range []verdict.Outcome{verdict.Satisfied, verdict.Unknown} {
		s, v := alerttest.Cases[7].Load(t)
		ctx := context(s, verdict.SI)
		ctx.Judge = func(verdict.Level, record.Header, []record.Transaction) verdict.Outcome { return says }
		a, err := alerts.New(v, ctx)
		if !errors.Is(err, alerts.ErrUnproved) || errors.Is(err, alerts.ErrUnjudged) != (says == verdict.Unknown) {
			t.Errorf("%s: error %v", says, err)
		}
		if a.ID == "" || a.Summary == "" || len(a.Evidence) != 1+len(s.Txns) {
			t.Errorf("%s: alert %+v", says, a)
		}
	}
}

func TestRecordsNotKept(t *testing.T) {
	_, v := alerttest.Cases[7].Load(t)
	ctx := context(script.Script{}, verdict.SI)
	a, err := alerts.New(v, ctx)
	if err == nil || errors.Is(err, alerts.ErrUnproved) || !strings.Contains(err.Error(), "3 of 3 records") {
		t.Errorf("error %v", err)
	}
	if a.Name != "lost-update" || len(a.Evidence) != 1 || a.ID == "" {
		t.Errorf("alert %s", a.JSON())
	}
}

// The level falls back to what the engine proved when the name promises more
// than the records show.
func TestLevelOfTheEngine(t *testing.T) {
	s, err := script.Parse("initial zero\ns1 T1: w(x,1) w(y,1) @1-10\ns2 T2: r(x,0) r(y,1) @2-9")
	if err != nil {
		t.Fatal(err)
	}
	p := alerttest.NewParser(s.Txns)
	v := verdict.Violation{Kind: verdict.Cycle, Level: verdict.SI, Cycle: p.Cycle(t, "T1 wr(y) T2 rw(x,initial) T1"), Txns: []verdict.TxnID{0, 1}, Evidence: []verdict.TxnID{0, 1}, Read: -1}
	ctx := context(s, verdict.RA, verdict.SI, verdict.SER)
	ctx.Judge = func(l verdict.Level, h record.Header, txns []record.Transaction) verdict.Outcome {
		if l == verdict.RA {
			return verdict.Unknown
		}
		return alerttest.Judge(l, h, txns)
	}
	a, err := alerts.New(v, ctx)
	if err != nil {
		t.Fatal(err)
	}
	if a.Level != "si" || !slices.Equal(a.Breaks, []string{"si", "ser"}) {
		t.Errorf("%s, %v", a.Level, a.Breaks)
	}
}

// An alert is told in the terms that weak levels share; see name.Plain.
func TestAlertsArePlain(t *testing.T) {
	s, err := script.Parse("initial zero\ns1 T1: w(x,1)\ns1 T2: r(x,0) w(x,2)")
	if err != nil {
		t.Fatal(err)
	}
	v := verdict.Violation{Kind: verdict.Cycle, Level: verdict.SI, Read: -1, Txns: []verdict.TxnID{1, 0}, Evidence: []verdict.TxnID{0, 1},
		Cycle: alerttest.NewParser(s.Txns).Cycle(t, "T2 ww(x,initial) T1 so T2")}
	a, err := alerts.New(v, context(s, verdict.RC, verdict.RA, verdict.SI))
	if err != nil {
		t.Fatal(err)
	}
	if a.Name != "session-guarantee-violation" || a.Level != "ra" || a.Cycle[0].Type != "rw" {
		t.Errorf("%s at %s: %+v", a.Name, a.Level, a.Cycle)
	}
}

// It is not asked for more than the engine proved: that would say nothing.
func TestLevelsTried(t *testing.T) {
	s, v := alerttest.Cases[7].Load(t)
	v.Level = verdict.SER
	ctx := context(s, verdict.SSER, verdict.SER, verdict.RA, verdict.SI)
	var tried []verdict.Level
	ctx.Judge = func(l verdict.Level, _ record.Header, _ []record.Transaction) verdict.Outcome {
		tried = append(tried, l)
		return verdict.Satisfied
	}
	_, err := alerts.New(v, ctx)
	if d := cmp.Diff([]verdict.Level{verdict.SI, verdict.SER}, slices.Compact(tried)); d != "" || !errors.Is(err, alerts.ErrUnproved) {
		t.Errorf("%v, tried -want +got:\n%s", err, d)
	}
}

// The id is that of the anomaly: not of the engine's numbers, nor of where the
// cycle was entered, nor of the level at which it was met.
func TestID(t *testing.T) {
	for _, c := range alerttest.Cases {
		if c.History == "" {
			continue
		}
		s, v := c.Load(t)
		id := func(s script.Script, v verdict.Violation, levels ...verdict.Level) string {
			a, err := alerts.New(v, context(s, levels...))
			if err != nil {
				t.Fatalf("%s: %v", c.Title, err)
			}
			return a.ID
		}
		want := id(s, v, verdict.SI, verdict.SER, verdict.SSER)
		if len(want) != 32 {
			t.Errorf("id %q", want)
		}
		if id(s, v, verdict.SER, verdict.SI, verdict.SSER) != want {
			t.Errorf("%s: the order of the levels matters", c.Title)
		}

		// Other numbers: ten transactions came before.
		shifted := v
		shift := func(id verdict.TxnID) verdict.TxnID { return id + 10 }
		shifted.Txns, shifted.Evidence = each(v.Txns, shift), each(v.Evidence, shift)
		shifted.Cycle = shiftEdges(v.Cycle, shift)
		shifted.Cases = nil
		for _, edges := range v.Cases {
			shifted.Cases = append(shifted.Cases, shiftEdges(edges, shift))
		}
		ctx := context(s, verdict.SI, verdict.SER, verdict.SSER)
		lookup := ctx.Lookup
		ctx.Lookup = func(id verdict.TxnID) (*record.Transaction, bool) { return lookup(id - 10) }
		if a, err := alerts.New(shifted, ctx); err != nil || a.ID != want {
			t.Errorf("%s: other numbers, another id (%v)", c.Title, err)
		}

		for i := range v.Cycle {
			turned := v
			turned.Cycle = slices.Concat(v.Cycle[i:], v.Cycle[:i])
			turned.Txns = slices.Concat(v.Txns[i:], v.Txns[:i])
			if id(s, turned, verdict.SI, verdict.SER, verdict.SSER) != want {
				t.Errorf("%s: entered at %d, another id", c.Title, i)
			}
		}
		other := context(s, verdict.SI, verdict.SER, verdict.SSER)
		other.DB = "billing"
		if a, _ := alerts.New(v, other); a.ID == want {
			t.Errorf("%s: two databases, one id", c.Title)
		}
	}
}

func each(ids []verdict.TxnID, f func(verdict.TxnID) verdict.TxnID) []verdict.TxnID {
	out := make([]verdict.TxnID, len(ids))
	for i, id := range ids {
		out[i] = f(id)
	}
	return out
}

func shiftEdges(edges []verdict.Edge, f func(verdict.TxnID) verdict.TxnID) []verdict.Edge {
	out := slices.Clone(edges)
	for i := range out {
		out[i].From, out[i].To = f(out[i].From), f(out[i].To)
		out[i].Because = shiftEdges(out[i].Because, f)
	}
	return out
}

// Different transactions make different anomalies, even where only the place of a comma
// differs; what they read and wrote does not.
func TestIDsDiffer(t *testing.T) {
	seen := map[string]string{}
	id := func(history string) string {
		s, err := script.Parse(history)
		if err != nil {
			t.Fatal(err)
		}
		v := verdict.Violation{Kind: verdict.AbortedRead, Level: verdict.SI, Key: s.Txns[1].Ops[0].Key, Txns: []verdict.TxnID{1, 0}, Evidence: []verdict.TxnID{0, 1}}
		a, err := alerts.New(v, context(s, verdict.SI))
		if err != nil {
			t.Fatal(err)
		}
		return a.ID
	}
	for _, history := range []string{
		"s1 T1 aborted: w(x,1) w(y,1)\ns2 T2: r(x,1) r(y,1)",
		"s1 T1x aborted: w(x,1) w(y,1)\ns2 T2: r(x,1) r(y,1)",
		"s1 T1 aborted: w(x,1) w(y,1)\ns2 T2x: r(x,1) r(y,1)",
		"s1 T aborted: w(x,1) w(y,1)\ns2 1T2: r(x,1) r(y,1)",
	} {
		a := id(history)
		if other, ok := seen[a]; ok {
			t.Errorf("one id for\n%s\nand\n%s", other, history)
		}
		seen[a] = history
	}
	for _, history := range []string{
		"s1 T1 aborted: w(x,2) w(y,1)\ns2 T2: r(x,2) r(y,1)",
		"s1 T1 aborted: w(z,7) w(y,1)\ns2 T2: r(z,7)",
		"s1 T1 aborted: w(x,1) w(y,1)\ns2 T2: r(y,1) r(x,1)",
	} {
		if seen[id(history)] == "" {
			t.Errorf("another id for\n%s", history)
		}
	}
}

// The JSON form is a contract: its fields, their order, their types.
func TestGoldenJSON(t *testing.T) {
	var got []byte
	for _, c := range alerttest.Cases {
		if c.History == "" {
			continue
		}
		s, v := c.Load(t)
		a, err := alerts.New(v, context(s, verdict.SI, verdict.SER, verdict.SSER))
		if err != nil {
			t.Fatal(err)
		}
		got = append(append(got, a.JSON()...), '\n')
		back, err := alerts.Parse(a.JSON())
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(a, back); d != "" {
			t.Errorf("%s: read back, -want +got:\n%s", c.Title, d)
		}
	}
	golden.Check(t, "testdata/alerts.golden.jsonl", got)
}

// Every field that the contract names is there, empty or not.
func TestFields(t *testing.T) {
	a, err := alerts.New(verdict.Violation{Kind: verdict.Unsatisfiable, Level: verdict.SER, Read: -1}, alerts.Context{})
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(a.JSON(), &fields); err != nil {
		t.Fatal(err)
	}
	for _, f := range []string{"version", "id", "db", "level", "breaks", "weakest", "holds", "name", "adya", "aliases", "keys", "clock_dependent", "severity", "state",
		"first_seen", "last_seen", "count", "summary", "explanation", "transactions", "cycle", "evidence", "links"} {
		if v, ok := fields[f]; !ok || string(v) == "null" {
			t.Errorf("%s is %s", f, v)
		}
	}
}

func TestAgain(t *testing.T) {
	a := alerts.Alert{Count: 1, FirstSeen: 5, LastSeen: 5, State: alerts.Fresh}
	b := a.Again(9)
	if b.Count != 2 || b.FirstSeen != 5 || b.LastSeen != 9 || b.State != alerts.Ongoing || a.Count != 1 {
		t.Errorf("%+v, then %+v", a, b)
	}
}

// What was raised in full is told in pseudonyms once these are asked for, and is the
// same alert.
func TestAfter(t *testing.T) {
	before := alerts.Alert{ID: "a", Count: 3, FirstSeen: 5, LastSeen: 7, Summary: "acct:1", Group: "g"}
	found := alerts.Alert{ID: "a", Count: 1, FirstSeen: 9, LastSeen: 9, State: alerts.Fresh, Summary: "k1", Values: "none"}
	want := alerts.Alert{ID: "a", Count: 4, FirstSeen: 5, LastSeen: 9, State: alerts.Ongoing, Summary: "k1", Values: "none", Group: "g"}
	if d := cmp.Diff(want, found.After(before)); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	found.Values = ""
	if d := cmp.Diff(before.Again(9), found.After(before)); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

func TestParseErrors(t *testing.T) {
	for _, text := range []string{"", "{", `{"version":2,"id":"a"}`, `[]`} {
		if _, err := alerts.Parse([]byte(text)); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
}

// Markup and control characters in keys reach the receiver as data, not raw.
func TestHostileJSON(t *testing.T) {
	evil := "</script>\u2028\x1b[2J"
	txns := []record.Transaction{
		{DB: "d", Session: evil, ID: evil + "1", Status: record.Aborted, Ops: []record.Op{{Kind: record.Write, Key: evil, Value: record.String(evil)}}},
		{DB: "d", Session: evil, ID: evil + "2", Ops: []record.Op{{Kind: record.Read, Key: evil, Value: record.String(evil)}}},
	}
	v := verdict.Violation{Kind: verdict.AbortedRead, Level: verdict.SI, Key: evil, Txns: []verdict.TxnID{1, 0}, Evidence: []verdict.TxnID{0, 1}}
	a, err := alerts.New(v, context(script.Script{Txns: txns}, verdict.SI))
	if err != nil {
		t.Fatal(err)
	}
	recheck(t, a)
	for _, r := range string(a.JSON()) {
		if r < 0x20 {
			t.Fatalf("raw %q in %s", r, a.JSON())
		}
	}
	if back, err := alerts.Parse(a.JSON()); err != nil || back.Transactions[0] != evil+"2" {
		t.Errorf("%v, %v", back.Transactions, err)
	}
}
