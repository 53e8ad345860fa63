package alerts_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/alerts/picture"
	"github.com/isowatch/isowatch/alerts/present"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/alerttest"
	"github.com/isowatch/isowatch/internal/lab/race"
)

// lost is a lost update by transactions of these ids, of a key.
func lost(t *testing.T, key string, ids [3]string, values [3]record.Value) (verdict.Violation, alerts.Context) {
	t.Helper()
	ops := [3][]record.Op{{{Kind: record.Write, Key: key, Value: values[0]}}}
	txns := make([]record.Transaction, 3)
	for i, id := range ids {
		if i > 0 {
			ops[i] = []record.Op{{Kind: record.Read, Key: key, Value: values[0]}, {Kind: record.Write, Key: key, Value: values[i]}}
		}
		txns[i] = record.Transaction{ID: id, Session: "s" + id, Status: record.Committed, Ops: ops[i]}
	}
	ctx := alerts.Context{DB: "shop", Levels: []verdict.Level{verdict.SI}, Assumptions: record.Assumptions{Coverage: record.CoverageComplete}, Judge: engineJudge, Find: engineFind, Lookup: alerttest.Lookup(txns)}
	h := record.Header{Initial: &ctx.Initial, Coverage: &ctx.Coverage, Clock: &ctx.Clock, Sessions: &ctx.Sessions}
	r := engine(h, txns, verdict.SI)[0]
	if len(r.Violations) != 1 {
		t.Fatalf("%d violations", len(r.Violations))
	}
	return r.Violations[0], ctx
}

// An alert that would be too large is told all the same, in the size that it may have, and
// says what is not as it was recorded. Its id is what it always is; its evidence proves it
// as long as there is any.
func TestNewWithin(t *testing.T) {
	long := func(c string) string { return strings.Repeat(c, 600_000) }
	short := [3]record.Value{record.Int(1), record.Int(2), record.Int(3)}
	for i, c := range []struct {
		name     string
		key      string
		ids      [3]string
		values   [3]record.Value
		evidence bool
		says     string
	}{
		{"small", "x", [3]string{"I", "A", "B"}, short, true, ""},
		{"long values", "x", [3]string{"I", "A", "B"}, [3]record.Value{record.String(long("0")), record.String(long("1")), record.String(long("2"))}, true, "given by its hash"},
		{"a long key", long("x"), [3]string{"I", "A", "B"}, short, true, "given by its hash"},
		{"long ids", "x", [3]string{long("I"), long("A"), long("B\x00")}, short, false, "its evidence (3 transactions) is left out"},
		{"everything is long", long("\x01"), [3]string{long("I"), long("A"), long("B")}, [3]record.Value{record.String(long("\x02")), record.String(long("1")), record.String(long("2"))}, false, "its evidence (3 transactions) is left out"},
	} {
		if race.Brief() && i%2 > 0 {
			continue // megabytes take seconds with it
		}
		t.Run(c.name, func(t *testing.T) {
			v, ctx := lost(t, c.key, c.ids, c.values)
			ctx.Budget = &budgeted{} // of what is left of the evidence more may go
			whole, err := alerts.New(v, ctx)
			if err != nil {
				t.Fatal(err)
			}
			a, err := alerts.NewWithin(v, ctx, alerts.WithinMin)
			if err != nil {
				t.Fatal(err)
			}
			if n := len(a.JSON()); n > alerts.WithinMin {
				t.Errorf("it has %d bytes", n)
			}
			if a.ID != whole.ID || a.Name != whole.Name || a.Level != whole.Level || len(a.Transactions) != len(whole.Transactions) || len(a.Cycle) != len(whole.Cycle) {
				t.Errorf("it is %s %s, not %s %s", a.Name, a.ID, whole.Name, whole.ID)
			}
			if c.says == "" && !bytes.Equal(a.JSON(), whole.JSON()) || !strings.Contains(a.Explanation, c.says) {
				t.Errorf("it says %q", a.Explanation[max(0, len(a.Explanation)-600):])
			}
			if maySmaller(a) != c.evidence {
				t.Errorf("does it say that there may be less evidence? %v", maySmaller(a))
			}
			if (len(a.Evidence) > 0) != c.evidence {
				t.Errorf("there are %d lines of evidence", len(a.Evidence))
			}
			if c.evidence {
				condemned(t, a)
			}
			var out bytes.Buffer
			if err := present.Text(&out, a, present.Options{Command: "monitor check --level %s"}); err != nil || strings.Contains(out.String(), "check it again") != c.evidence || !strings.Contains(strings.Join(strings.Fields(out.String()), " "), c.says) {
				t.Errorf("as text: %v", err)
			}
			if err := present.HTML(&out, []alerts.Alert{a}, present.PageOptions{}); err != nil || len(picture.Cycle(a)) == 0 || len(picture.Timeline(a)) == 0 || len(picture.Dot(a)) == 0 {
				t.Errorf("as a page: %v", err)
			}
			if !json.Valid(a.JSON()) {
				t.Error("it is no JSON")
			}
		})
	}
}

// condemned has the evidence of an alert judged.
func condemned(t *testing.T, a alerts.Alert) {
	t.Helper()
	h, txns := evidence(t, a)
	level, _ := verdict.ParseLevel(a.Level)
	if got := engineJudge(level, h, txns); got != verdict.Violated {
		t.Errorf("the evidence is %v", got)
	}
}
