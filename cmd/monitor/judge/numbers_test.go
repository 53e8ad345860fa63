package judge_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/isowatch/isowatch/cmd/monitor/judge"
	"github.com/isowatch/isowatch/cmd/monitor/report"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/record/packed"
	"github.com/isowatch/isowatch/internal/lab/oracle/script"
)

// A session in which each transaction reads what the one before it wrote, at times that ascend, by numbers that may run
// against them: that is held against no database, and said. What a database does against a session's order is found.
func TestNumbersAgainstClocks(t *testing.T) {
	const n = 40
	for _, c := range []struct {
		name   string
		number func(i int) int
		step   int64 // of the clock, half way
		breaks bool
		want   verdict.Outcome
		noted  bool
	}{
		{"in order", func(i int) int { return i + 1 }, 0, false, verdict.Satisfied, false},
		{"in order, broken", func(i int) int { return i + 1 }, 0, true, verdict.Violated, false},
		{"a clock steps back", func(i int) int { return i + 1 }, -1e9, false, verdict.Satisfied, false},
		{"a clock steps back, broken", func(i int) int { return i + 1 }, -1e9, true, verdict.Violated, true},
		{"backwards", func(i int) int { return n - i }, 0, false, verdict.Satisfied, true},
		{"backwards, broken", func(i int) int { return n - i }, 0, true, verdict.Violated, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			var txns []record.Transaction
			add := func(session string, seq int, at int64, ops ...record.Op) {
				txns = append(txns, record.Transaction{DB: record.DefaultDB, Session: session, Seq: int64(seq), HasSeq: true, ID: fmt.Sprint(session, "#", seq), HasTimes: true, Start: at, End: at + 1000, Ops: ops})
			}
			for i := range n {
				at := int64(1e18) + int64(i)*1e7
				if i >= n/2 {
					at += c.step
				}
				read := record.Null
				if i > 0 {
					read = record.Int(int64(i))
				}
				add("s", c.number(i), at, record.Op{Kind: record.Read, Key: "x", Value: read}, record.Op{Kind: record.Write, Key: "x", Value: record.Int(int64(i + 1))})
			}
			slices.SortFunc(txns, func(a, b record.Transaction) int { return int(a.Seq - b.Seq) })
			if c.breaks {
				add("g", 1, 2e18, record.Op{Kind: record.Write, Key: "y", Value: record.Int(1)})
				add("g", 2, 2e18+1e7, record.Op{Kind: record.Read, Key: "y", Value: record.Null})
			}
			levels := []verdict.Level{verdict.G1, verdict.SI, verdict.SER}
			for _, certified := range []bool{false, true} {
				var h report.History
				var proved []string
				assume := record.Assumptions{Initial: record.InitialAbsent, Clock: record.ClockPrune, Coverage: record.CoverageComplete, Sessions: record.SessionsKeep, MaxSkew: 5e6}
				q := judge.Question{DB: record.DefaultDB, Txns: slices.Clone(txns), Levels: levels, Assume: assume}
				if certified {
					q.Proved = func(r verdict.Result) error { proved = append(proved, r.Level.String()); return nil }
				}
				if err := judge.Check(q, &h); err != nil {
					t.Fatal(err)
				}
				for _, r := range h.Results[1:] {
					said := slices.ContainsFunc(r.Notes, func(n string) bool { return strings.Contains(n, "no certificate is written") })
					if said != (certified && c.noted) || certified && slices.Contains(proved, r.Level) != (c.want == verdict.Satisfied && !c.noted) {
						t.Errorf("%s: certificate asked for: %v, of %q; notes %q", r.Level, certified, proved, r.Notes)
					}
					noted := slices.ContainsFunc(r.Notes, func(n string) bool { return strings.Contains(n, "neither was used") })
					if r.Verdict != c.want.String() || noted != c.noted || len(r.Anomalies) > 1 {
						t.Errorf("%s is %s with %d anomalies, %q", r.Level, r.Verdict, len(r.Anomalies), r.Notes)
					}
				}
			}
		})
	}
}

// Where numbers and clock of a session contradict each other neither is believed, however many sessions there are and however little
// they differ; what does not contradict is.
func TestNumbersOfShortSessions(t *testing.T) {
	for _, c := range []struct {
		name                string
		backwards, forwards int // sessions of so many
		per                 int // transactions
		apart               int64
		clock               record.Clock
		want                verdict.Outcome
		noted               string
	}{
		{"all of two", 20, 0, 2, 1e7, record.ClockPrune, verdict.Satisfied, "20 transactions contradict each other, in 20 sessions"},
		{"all of three", 20, 0, 3, 1e7, record.ClockPrune, verdict.Satisfied, "40 transactions contradict each other, in 20 sessions"},
		{"one", 1, 20, 2, 1e7, record.ClockPrune, verdict.Satisfied, "1 transactions contradict each other, in 1 sessions"},
		{"one alone", 1, 0, 2, 1e7, record.ClockPrune, verdict.Satisfied, "1 transactions contradict each other, in 1 sessions"},
		{"one that is faster than clocks differ", 1, 0, 40, 1e6, record.ClockPrune, verdict.Satisfied, "39 transactions contradict each other, in 1 sessions"},
		{"half", 20, 20, 2, 1e7, record.ClockPrune, verdict.Satisfied, "20 transactions contradict each other, in 20 sessions"},
		{"clocks that say nothing", 20, 0, 2, 1e7, record.ClockIgnore, verdict.Violated, ""},
		{"the database's own clock", 20, 0, 2, 1e7, record.ClockDatabase, verdict.Violated, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var txns []record.Transaction
			at, last := int64(1e18), record.Null
			for i := range c.per {
				for s := range c.backwards + c.forwards {
					seq := i + 1
					if s < c.backwards {
						seq = c.per - i
					}
					session, next := fmt.Sprint("s", s), record.Int(int64(len(txns)+1))
					txns = append(txns, record.Transaction{DB: record.DefaultDB, Session: session, Seq: int64(seq), HasSeq: true, ID: fmt.Sprint(session, "#", seq), HasTimes: true, Start: at, End: at + 1000,
						Ops: []record.Op{{Kind: record.Read, Key: "x", Value: last}, {Kind: record.Write, Key: "x", Value: next}}})
					at, last = at+c.apart, next
				}
			}
			slices.SortStableFunc(txns, func(a, b record.Transaction) int { return int(a.Seq - b.Seq) })
			assume := record.Assumptions{Initial: record.InitialAbsent, Clock: c.clock, Coverage: record.CoverageComplete, Sessions: record.SessionsKeep, MaxSkew: 5e6}
			q := judge.Question{DB: record.DefaultDB, Txns: txns, Levels: []verdict.Level{verdict.SER}, Assume: assume}
			bare := q
			bare.Txns, bare.Records = nil, packed.Of(txns)
			var h, again report.History
			if err := cmp.Or(judge.Check(q, &h), judge.Check(bare, &again)); err != nil {
				t.Fatal(err)
			}
			if d := gocmp.Diff(h.Results[0].Notes, again.Results[0].Notes); d != "" || h.Results[0].Verdict != again.Results[0].Verdict {
				t.Errorf("of records alone: %s, %s", again.Results[0].Verdict, d)
			}
			r := h.Results[0]
			if r.Verdict != c.want.String() || strings.Contains(strings.Join(r.Notes, "; "), "contradict each other") != (c.noted != "") || !strings.Contains(strings.Join(r.Notes, "; "), c.noted) {
				t.Errorf("%s with %q", r.Verdict, r.Notes)
			}
		})
	}
}

// Where times are not used that a level with real time needs, the level says so.
func TestTimesThatAreNotUsedAreSaid(t *testing.T) {
	s, err := script.Parse("s1 A: w(x,1) @1-9\ns1 B: w(x,2) @5-6\ns1 C: r(x,1) @7-8")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range judged(t, s.Txns, record.Assumptions{}, []verdict.Level{verdict.LIN, verdict.SER}).Results {
		said := slices.ContainsFunc(r.Notes, func(n string) bool { return strings.HasPrefix(n, "2 transactions without times, as these contradict") })
		if said != (r.Level == verdict.LIN.String()) {
			t.Errorf("%s notes %q", r.Level, r.Notes)
		}
	}
}
