// Package made has alerts as the engine makes them, for the tests of what shows
// them: the 14 anomalies of MTC, and others that are hard to draw.
package made

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/incremental"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/history"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/alerttest"
	"github.com/isowatch/isowatch/internal/lab/oracle/script"
)

// Case is an alert with what it is good for.
type Case struct {
	Title string
	Alert alerts.Alert
}

// anomalies are the names of MTC, Table I, weak ones first.
var anomalies = []string{
	"thin-air-read", "aborted-read", "future-read", "not-my-last-write", "not-my-own-write", "intermediate-read",
	"non-repeatable-reads",
	"session-guarantee-violation", "non-monotonic-read", "fractured-read", "causality-violation", "long-fork",
	"lost-update", "write-skew",
}

// Cases are all of them. The test runs in a directory two below the project's.
func Cases(t testing.TB) []Case {
	t.Helper()
	var out []Case
	for _, name := range anomalies {
		hs, err := history.Open(filepath.Join("../../testdata/anomalies", name+".jsonl"), history.Options{})
		if err != nil || len(hs) != 1 {
			t.Fatalf("%s: %d histories, %v", name, len(hs), err)
		}
		level := verdict.SI
		if name == "write-skew" {
			level = verdict.SER
		}
		a := find(t, script.Script{Header: hs[0].Header, Txns: hs[0].Transactions}, level)
		if a.Name != name {
			t.Fatalf("%s was found instead of %s", a.Name, name)
		}
		out = append(out, Case{name, a})
	}
	for _, o := range others {
		s, err := script.Parse(o.history)
		if err != nil {
			t.Fatalf("%s: %v", o.title, err)
		}
		rename(s.Txns)
		out = append(out, Case{o.title, find(t, s, o.level)})
	}
	return append(out, Case{"tree", tree(t)}, Case{"long-cycle", Long(t, 9)})
}

// rename makes ids and keys look as they do in practice: the notation has no # and
// no : in them.
func rename(txns []record.Transaction) {
	for i := range txns {
		txns[i].ID = strings.Replace(txns[i].ID, "~", "#", 1)
		for j := range txns[i].Ops {
			txns[i].Ops[j].Key = strings.Replace(txns[i].Ops[j].Key, "~", ":", 1)
		}
	}
}

var others = []struct {
	title   string
	level   verdict.Level
	history string
}{
	{"with-times", verdict.SI, `
		initial any
		setup setup~1: w(acct~1,100) @1732160000000000000-1732160000000900000
		orders/api-1 orders/api-1/7f3a~7: r(acct~1,100) w(acct~1,90) @1732160000123456789-1732160000125000000
		orders/api-3 orders/api-3/99c1~42: r(acct~1,100) w(acct~1,80) @1732160000123999789-1732160000126000000`},
	{"stale-read", verdict.SSER, `
		initial zero
		web-1 web-1~1: r(stock~9,0) w(stock~9,5) @1732160000000000000-1732160000002000000
		web-2 web-2~8: r(stock~9,0) @1732160003000000000-1732160003000400000`},
	{"lists", verdict.SI, `
		initial absent
		s1 T1: append(feed,1) append(feed,2)
		s2 T2: append(feed,3)
		s3 T3: r(feed,[1,2,3])
		s4 T4: r(feed,[3,1,2])`},
	{"read-only", verdict.SER, `
		initial zero
		s1 T1: r(x,0) r(y,0) w(x,-11) @10-60
		s2 T2: r(y,0) w(y,20) @20-30
		s3 T3: r(x,0) r(y,20) @40-50`},
	{"circle-of-three", verdict.SER, `
		initial zero
		s1 T1: r(x,0) w(y,1)
		s2 T2: r(y,0) w(z,1)
		s3 T3: r(z,0) w(x,1)`},
	{"unknown-outcome", verdict.SI, `
		initial zero
		s1 T1 unknown: r(x,0) w(x,1)
		s2 T2: r(x,0) w(x,2)
		s3 T3: r(x,1)`},
}

// find has the engine judge a history, and makes an alert of what it finds first.
func find(t testing.TB, s script.Script, level verdict.Level) alerts.Alert {
	t.Helper()
	for _, r := range judge(s.Header, s.Txns, level) {
		for _, v := range r.Violations {
			return alert(t, s, v)
		}
	}
	t.Fatalf("nothing was found at %v:\n%s", level, script.Format(s))
	return alerts.Alert{}
}

func judge(h record.Header, txns []record.Transaction, level verdict.Level) []verdict.Result {
	o := record.Assumptions{}.Override(h)
	o.UnseenUnique = new(true)
	e := incremental.New(incremental.Options{Assumptions: o, Levels: []verdict.Level{level}})
	for i := range txns {
		e.Step(&txns[i], 0)
	}
	return e.Close()
}

func alert(t testing.TB, s script.Script, v verdict.Violation) alerts.Alert {
	t.Helper()
	o := record.Assumptions{}.Override(s.Header)
	a, err := alerts.New(v, alerts.Context{
		DB: "orders", Levels: []verdict.Level{verdict.SI, verdict.SER, verdict.SSER}, Assumptions: o,
		Lookup: alerttest.Lookup(s.Txns), Now: 1732160000123456789,
		Judge: func(l verdict.Level, h record.Header, txns []record.Transaction) verdict.Outcome {
			return judge(h, txns, l)[0].Outcome
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// tree is an alert that no choice of writers and orders explains.
func tree(t testing.TB) alerts.Alert {
	t.Helper()
	for _, c := range alerttest.Cases {
		if c.Title == "no writer and no order" {
			s, v := c.Load(t)
			return alert(t, s, v)
		}
	}
	t.Fatal("there is no such case")
	return alerts.Alert{}
}

// Long is an alert with a cycle of n transactions, each of which read what the next
// overwrote.
func Long(t testing.TB, n int) alerts.Alert {
	t.Helper()
	var b strings.Builder
	b.WriteString("initial zero\n")
	for i := range n {
		fmt.Fprintf(&b, "s%d T%d: r(k%d,0) w(k%d,1)\n", i, i, i, (i+n-1)%n)
	}
	s, err := script.Parse(b.String())
	if err != nil {
		t.Fatal(err)
	}
	return find(t, s, verdict.SER)
}
