package present_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/alerts/present"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/alerttest"
	"github.com/isowatch/isowatch/internal/lab/golden"
	"github.com/isowatch/isowatch/internal/lab/oracle"
	"github.com/isowatch/isowatch/internal/lab/oracle/script"
)

const command = "monitor check --level %s evidence.jsonl"

func alert(t *testing.T, s script.Script, v verdict.Violation) alerts.Alert {
	t.Helper()
	ctx := alerts.Context{DB: "orders", Levels: []verdict.Level{verdict.SI, verdict.SER, verdict.SSER}, Lookup: alerttest.Lookup(s.Txns), Now: 1}
	if !v.Level.Implies(verdict.SI) { // all that apply
		ctx.Levels, ctx.OneKey = verdict.Levels(), slices.Contains(oracle.Levels(s.Txns), verdict.LIN)
	}
	if s.Header.Initial != nil {
		ctx.Initial = *s.Header.Initial
	}
	a, err := alerts.New(v, ctx)
	if err != nil && len(s.Txns) > 0 {
		t.Fatal(err)
	}
	return a
}

func draw(t *testing.T, a alerts.Alert, opt present.Options) string {
	t.Helper()
	var b strings.Builder
	if err := present.Text(&b, a, opt); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// One file per anomaly.
func TestGolden(t *testing.T) {
	for _, c := range alerttest.Cases {
		if c.History == "" {
			continue
		}
		t.Run(c.Title, func(t *testing.T) {
			s, v := c.Load(t)
			got := draw(t, alert(t, s, v), present.Options{Command: command})
			golden.Check(t, "testdata/"+strings.NewReplacer(" ", "-", ",", "", ":", "", "'", "").Replace(c.Title)+".golden", got)
			for i, line := range strings.Split(got, "\n") {
				if n := len([]rune(line)); n > present.Width {
					t.Errorf("line %d has %d columns", i+1, n)
				}
			}
		})
	}
}

// bank is a lost update as a person meets it: long ids, times.
const bank = `
	setup orders/setup~1: w(acct-1,100) @1732160000000000000-1732160000000900000
	orders/api-1 orders/api-1/7f3a~7: r(acct-1,100) w(acct-1,90) @1732160000123456789-1732160000125000000
	orders/api-3 orders/api-3/99c1~42: r(acct-1,100) r(acct-2,"rené") w(acct-1,80) @1732160000123999789-1732160000126000000`

func bankAlert(t *testing.T) alerts.Alert {
	t.Helper()
	s, err := script.Parse(bank)
	if err != nil {
		t.Fatal(err)
	}
	for i := range s.Txns { // the notation has no # in ids and no : in keys
		s.Txns[i].ID = strings.Replace(s.Txns[i].ID, "~", "#", 1)
		for j := range s.Txns[i].Ops {
			s.Txns[i].Ops[j].Key = strings.Replace(s.Txns[i].Ops[j].Key, "-", ":", 1)
		}
	}
	v := verdict.Violation{Kind: verdict.Divergence, Level: verdict.SI, Key: "acct:1", Read: 0, Txns: []verdict.TxnID{1, 2, 0}, Evidence: []verdict.TxnID{0, 1, 2}}
	return alert(t, s, v)
}

func TestStyles(t *testing.T) {
	a := bankAlert(t)
	golden.Check(t, "testdata/style-plain.golden", draw(t, a, present.Options{Command: command}))
	golden.Check(t, "testdata/style-color.golden", draw(t, a, present.Options{Command: command, Color: true}))
	if got := draw(t, a.Again(2), present.Options{}); !strings.HasSuffix(got, "  seen 2 times\n") {
		t.Errorf("it does not say how often:\n%s", got)
	}
}

// Escape sequences come only from us, and only when asked for.
func TestHostile(t *testing.T) {
	evil := "\x1b[2J\u202e\x07<script>" + strings.Repeat("long ", 100_000)
	txns := []record.Transaction{
		{DB: evil, Session: evil, ID: evil + "1", Ops: []record.Op{{Kind: record.Read, Key: evil}, {Kind: record.Write, Key: evil, Value: record.String(evil)}}},
		{DB: evil, Session: evil, ID: evil + "2", Ops: []record.Op{{Kind: record.Read, Key: evil}, {Kind: record.Append, Key: evil, Value: record.String(evil)}, {Kind: record.PredicateRead, Key: evil, Where: evil}}},
	}
	v := verdict.Violation{Kind: verdict.Divergence, Level: verdict.SI, Key: evil, Read: 0, Txns: []verdict.TxnID{0, 1}, Evidence: []verdict.TxnID{0, 1}}
	a := alert(t, script.Script{Txns: txns}, v)
	a.DB, a.Name, a.Adya, a.Guarantee, a.Breaks = evil, evil, evil, evil, []string{evil}
	got := draw(t, a, present.Options{})
	for _, r := range got {
		if r != '\n' && !strconv.IsPrint(r) {
			t.Fatalf("%q got through", r)
		}
	}
	if len(got) > 20_000 {
		t.Errorf("%d bytes", len(got))
	}
}

// Long cycles, many cases, many transactions are drawn in part.
func TestLong(t *testing.T) {
	a := bankAlert(t)
	a.Cycle = nil
	var long []alerts.Edge
	for i := range 1000 {
		long = append(long, alerts.Edge{From: strconv.Itoa(i), To: strconv.Itoa((i + 1) % 1000), Type: "so"})
	}
	for range 100 {
		a.Cases = append(a.Cases, long)
	}
	for range 1000 {
		a.Evidence = append(a.Evidence, a.Evidence[1])
	}
	got := draw(t, a, present.Options{})
	if n := strings.Count(got, "\n"); n > 1200 {
		t.Errorf("%d lines", n)
	}
	for _, want := range []string{"… 970 more steps", "… 92 more", "… 973 more in the evidence"} {
		if !strings.Contains(got, want) {
			t.Errorf("it doesn't say %q", want)
		}
	}
}

// An alert of another monitor may hold what this one can't read.
func TestForeign(t *testing.T) {
	got := draw(t, alerts.Alert{Name: "new-anomaly", Evidence: []json.RawMessage{[]byte(`{}`), []byte(`{"session":1}`)}, Cycle: []alerts.Edge{{Type: "xx"}}}, present.Options{})
	for _, want := range []string{"new-anomaly", "can't be read", "not recorded"} {
		if !strings.Contains(got, want) {
			t.Errorf("it doesn't say %q:\n%s", want, got)
		}
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("pipe closed") }

func TestWriteError(t *testing.T) {
	if err := present.Text(broken{}, alerts.Alert{}, present.Options{}); err == nil {
		t.Error("no error")
	}
}
