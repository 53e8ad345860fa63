package judge

import (
	"testing"

	"github.com/isowatch/isowatch/cmd/monitor/report"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/history"
	"github.com/isowatch/isowatch/ingest/record"
)

// recorded is a question about a history that PostgreSQL's REPEATABLE READ made: 1,200 transactions of 12
// sessions, most of which met each other on 169 keys drawn with Zipf 1.5, with values of 1 to 20.
func recorded(t *testing.T, file string, levels ...verdict.Level) Question {
	t.Helper()
	hs, err := history.Open("testdata/"+file, history.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return Question{DB: "default", Txns: hs[0].Transactions, Levels: levels, Assume: Assumptions{}.Override(hs[0].Header), AnomaliesMax: 1, Replay: true}
}

// Where values repeat each level has an answer of its own, and each answer its proof, within a number of
// looks at the time that is small: what is hard by itself follows from others, and nothing that explains one level
// keeps another from being decided.
func TestRepeatedValuesAreDecided(t *testing.T) {
	want := map[verdict.Level]string{verdict.SSER: "violated", verdict.SER: "violated", verdict.LIN: "not-applicable"}
	for _, file := range []string{"postgres-rr-domain20.jsonl.gz", "postgres-rr-domain20-no-times.jsonl.gz"} {
		q := recorded(t, file, AllLevels(record.ClockPrune)...)
		q.All = true
		asked := 0
		q.Stop = func() verdict.Reason {
			if asked++; asked > asksMax {
				return verdict.Timeout
			}
			return verdict.NoReason
		}
		proved := map[verdict.Level]bool{}
		q.Proved = func(r verdict.Result) error { proved[r.Level] = true; return nil }
		var h report.History
		if err := Check(q, &h); err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %d looks", file, asked)
		for i, r := range h.Results {
			l := q.Levels[i]
			is := want[l]
			if is == "" {
				is = "satisfied"
			}
			if r.Verdict != is || proved[l] != (is == "satisfied") || (is == "violated") != (len(r.Anomalies) > 0) {
				t.Errorf("%s: %v is %s, proved: %v, with %d anomalies", file, l, r.Verdict, proved[l], len(r.Anomalies))
			}
			for _, a := range r.Anomalies {
				at, _ := verdict.ParseLevel(a.Level)
				if h := evidence(t, a); Evidence(at, h.Header, h.Transactions) != verdict.Violated {
					t.Errorf("%s: %v: the evidence of %d transactions does not prove %s at %v", file, l, len(h.Transactions), a.Name, at)
				}
			}
		}
		for _, g := range h.Guarantees {
			if g.Verdict != "satisfied" {
				t.Errorf("%s: %s is %s, and causal consistency holds", file, g.Guarantee, g.Verdict)
			}
		}
	}
}

const asksMax = 200_000

// A weak level that is asked alone is decided too, with a proof of its own.
func TestWeakLevelAlone(t *testing.T) {
	for _, l := range []verdict.Level{verdict.CC, verdict.RA, verdict.RC} {
		q := recorded(t, "postgres-rr-domain20.jsonl.gz", l)
		var proved []verdict.Level
		q.Proved = func(r verdict.Result) error { proved = append(proved, r.Level); return nil }
		var h report.History
		if err := Check(q, &h); err != nil {
			t.Fatal(err)
		}
		if len(h.Results) != 1 || h.Results[0].Verdict != "satisfied" || len(proved) != 1 || proved[0] != l {
			t.Errorf("%v: %+v, proved: %v", l, h.Results, proved)
		}
	}
}

// A proof is made small within its budget: when that is spent, nothing is judged any more, and that is said.
func TestProver(t *testing.T) {
	s := fourWriters()
	for _, c := range []struct {
		steps int
		want  []verdict.Outcome
		cut   bool
	}{
		{1000, []verdict.Outcome{verdict.Satisfied, verdict.Violated, verdict.Violated, verdict.Satisfied}, false},
		{3, []verdict.Outcome{verdict.Satisfied, verdict.Violated, verdict.Violated, verdict.Unknown}, true},
	} {
		p := NewProver(nil, c.steps)
		for i, txns := range [][]record.Transaction{s[:1], s, s[:3], s[:1]} {
			if got := p.Judge(verdict.SI, Assumptions{Coverage: record.CoverageComplete}.Header(), txns); got != c.want[i] {
				t.Errorf("%d steps: the %d-th is %v, want %v", c.steps, i, got, c.want[i])
			}
		}
		if p.Cut() != c.cut {
			t.Errorf("%d steps: cut is %v", c.steps, p.Cut())
		}
	}
}

// fourWriters are a transaction that writes x, two that overwrite what it wrote, and one beside them.
func fourWriters() []record.Transaction {
	w := func(id, session string, ops ...record.Op) record.Transaction {
		return record.Transaction{ID: id, Session: session, Ops: ops}
	}
	read := record.Op{Kind: record.Read, Key: "x", Value: record.Int(1)}
	write := func(v int64) record.Op { return record.Op{Kind: record.Write, Key: "x", Value: record.Int(v)} }
	return []record.Transaction{w("A", "a", write(1)), w("B", "b", read, write(2)), w("C", "c", read, write(3)),
		w("D", "d", record.Op{Kind: record.Write, Key: "y", Value: record.Int(1)})}
}
