package judge

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/isowatch/isowatch/cmd/monitor/report"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/history"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/race"
)

// recorded is a question about a history that PostgreSQL's REPEATABLE READ made: 1,200 transactions of 12
// sessions, most of which met each other on 169 keys drawn with Zipf 1.5, with values of 1 to 20.
func recorded(t *testing.T, file string, levels ...verdict.Level) Question {
	t.Helper()
	hs, err := history.Open("testdata/"+file, history.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return Question{DB: "default", Txns: hs[0].Transactions, Levels: levels, Assume: record.Assumptions{}.Override(hs[0].Header), AnomaliesMax: 1, Replay: true}
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
		guarantees := func(h report.History) {
			fails := func(g report.Guarantee) bool { return g.Verdict != "satisfied" }
			for _, r := range h.Results {
				if r.Level == "cc" && r.Verdict == "satisfied" && (len(h.Guarantees) != len(verdict.Guarantees()) || slices.ContainsFunc(h.Guarantees, fails)) {
					t.Errorf("%s: causal consistency is known to hold, and of the session guarantees %v", file, h.Guarantees)
				}
			}
		}
		var h report.History
		if err := Check(q, &h); err != nil {
			t.Fatal(err)
		}
		guarantees(h)
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
				if h := evidence(t, a); unlimited(at, h.Header, h.Transactions) != verdict.Violated {
					t.Errorf("%s: %v: the evidence of %d transactions does not prove %s at %v", file, l, len(h.Transactions), a.Name, at)
				}
			}
		}
	}
}

const asksMax = 200_000

// A level whose share of the time was too short goes on where it was with what others have left of theirs, so that all are
// decided in little more time than that takes. Here each look at the time takes a millisecond, and nothing else does.
func TestSharesAreGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		took := decided(t, time.Hour)
		if again := decided(t, took*5/4); again <= took {
			t.Errorf("%v of %v: no share was too short", again, took)
		}
	})
}

// A level that fails leaves nothing behind of those that wait for their turn.
func TestNothingWaitsAfterAFailure(t *testing.T) {
	for share := 50 * time.Millisecond; share < 2*time.Second; share *= 2 {
		synctest.Test(t, func(t *testing.T) {
			q := slow(t, share)
			failed := errors.New("the disk is full")
			q.Proved = func(r verdict.Result) error {
				if r.Level == verdict.G1 {
					return nil
				}
				return failed
			}
			if err := Check(q, new(report.History)); err != nil && !errors.Is(err, failed) {
				t.Error(err)
			}
		})
	}
}

// slow is a question about all levels, of which each look at the time takes a millisecond.
func slow(t *testing.T, limit time.Duration) Question {
	t.Helper()
	q := recorded(t, "postgres-rr-domain20.jsonl.gz", AllLevels(record.ClockPrune)...)
	q.All, q.Replay, q.Named, q.Until = true, false, true, time.Now().Add(limit)
	until := q.Until
	q.Stop = func() verdict.Reason {
		if time.Sleep(time.Millisecond); time.Now().After(until) {
			return verdict.Timeout
		}
		return verdict.NoReason
	}
	return q
}

// decided is the time in which all levels are.
func decided(t *testing.T, limit time.Duration) (took time.Duration) {
	t.Helper()
	q, began := slow(t, limit), time.Now()
	var h report.History
	if err := Check(q, &h); err != nil {
		t.Fatal(err)
	}
	for _, r := range h.Results {
		if r.Unknown != nil {
			t.Errorf("in %v: %s is %s %+v", limit, r.Level, r.Verdict, r.Unknown)
		}
	}
	return time.Since(began)
}

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

// Levels that have a search in common have an engine in common; the weak levels come first, with a short search, and
// last, with a long one; and only where no level was asked that could answer for them, snapshot isolation is.
func TestPlan(t *testing.T) {
	for _, c := range []struct {
		levels string
		all    bool
		clock  record.Clock
		want   string
	}{
		{"si", false, record.ClockPrune, "si"},
		{"lin,sser,si,ser,strong-si", false, record.ClockPrune, "lin; sser,ser; si,strong-si"},
		{"rc,ra,cc,g1,pc,si,strong-si,ser,sser,lin", true, record.ClockPrune,
			"rc,ra,cc,g1 for a while; si,strong-si; ser,sser; lin; pc; rc,ra,cc,g1"},
		{"rc,si,sser", true, record.ClockIgnore, "rc for a while; si; sser; rc"},
		{"pc,si", false, record.ClockPrune, "pc; si"},
		{"rc,pc", false, record.ClockPrune, "rc for a while; pc; rc"},
		{"rc,lin", false, record.ClockPrune, "rc for a while; lin; unasked si; rc"},
	} {
		var levels []verdict.Level
		for _, name := range strings.Split(c.levels, ",") {
			l, _ := verdict.ParseLevel(name)
			levels = append(levels, l)
		}
		q := Question{Levels: levels, All: c.all, Assume: record.Assumptions{Clock: c.clock}, Txns: make([]record.Transaction, 1)}
		q.fillIn()
		var got []string
		for _, w := range q.plan() {
			text := strings.ReplaceAll(names(w.levels), ", ", ",")
			switch {
			case w.aux:
				text = "unasked " + text
			case w.choices > 0:
				text += " for a while"
			}
			got = append(got, text)
		}
		if got := strings.Join(got, "; "); got != c.want {
			t.Errorf("%s: %s, want %s", c.levels, got, c.want)
		}
	}
}

// Whenever the time ends, nothing is told that is not so.
func TestWhatIsToldIsSo(t *testing.T) {
	violated := []verdict.Level{verdict.SER, verdict.SSER}
	undecided := map[string]bool{}
	for looks := 1; looks < 10_000; looks = race.Few(9, 3)*looks + 1 {
		q := recorded(t, "postgres-rr-domain20-no-times.jsonl.gz", AllLevels(record.ClockPrune)...)
		q.All, q.Replay = true, false
		asked := 0
		q.Stop = func() verdict.Reason {
			if asked++; asked > looks {
				return verdict.Timeout
			}
			return verdict.NoReason
		}
		var h report.History
		if err := Check(q, &h); err != nil {
			t.Fatal(err)
		}
		for _, r := range h.Results {
			if r.Verdict == "violated" && !slices.Contains(violated, level(r)) || r.Verdict == "satisfied" && slices.Contains(violated, level(r)) {
				t.Fatalf("after %d looks %s is %s", looks, r.Level, r.Verdict)
			}
			if r.Unknown != nil {
				undecided[r.Level+" "+r.Unknown.Reason] = true
			}
		}
		if asked <= looks {
			break
		}
	}
	for _, want := range []string{"g1 timeout", "cc timeout", "si timeout", "ser timeout", "pc timeout"} {
		if !undecided[want] {
			t.Errorf("%s was never told; these were: %v", want, undecided)
		}
	}
}

func level(r report.Result) verdict.Level {
	l, _ := verdict.ParseLevel(r.Level)
	return l
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
			if got := p.Judge(verdict.SI, record.Assumptions{Coverage: record.CoverageComplete}.Header(), txns); got != c.want[i] {
				t.Errorf("%d steps: the %d-th is %v, want %v", c.steps, i, got, c.want[i])
			}
		}
		if p.Cut() != c.cut {
			t.Errorf("%d steps: cut is %v", c.steps, p.Cut())
		}
	}
}

// What is judged when the steps have been spent ends there, and not when it is done.
func TestProverEndsAJudgement(t *testing.T) {
	h := record.Assumptions{Coverage: record.CoverageComplete}.Header()
	blind := make([]record.Transaction, 600) // each second one reads what the one before wrote
	for i := range blind {
		kind := []record.OpKind{record.Write, record.Read}[i%2]
		blind[i] = record.Transaction{ID: fmt.Sprint(i), Session: fmt.Sprint(i % 50), Ops: []record.Op{{Kind: kind, Key: "x", Value: record.Int(int64(i / 2))}}}
	}
	p := NewProver(nil, len(blind)/2)
	if got := p.Judge(verdict.SI, h, fourWriters()); got != verdict.Violated {
		t.Fatalf("%v, want a proof", got)
	}
	if got := p.Judge(verdict.SI, h, blind); got != verdict.Unknown || !p.Cut() || p.All() > 3*len(blind) {
		t.Errorf("%v after %d steps, cut is %v", got, p.All(), p.Cut())
	}
	if got := NewProver(nil, len(blind)/2).Judge(verdict.SI, h, blind); got != verdict.Satisfied {
		t.Errorf("%v where nothing was proved before", got)
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

// What took many proposals of who wrote what was read to find takes as many to prove.
func TestWhatWasHardToFindIsProved(t *testing.T) {
	for _, l := range []verdict.Level{verdict.RA, verdict.CC} {
		q := recorded(t, "repeated-60.jsonl.gz", l)
		var h report.History
		if err := Check(q, &h); err != nil {
			t.Fatal(err)
		}
		r := h.Results[0]
		if r.Verdict != "violated" || len(r.Anomalies) != 1 || slices.Contains(r.Notes, report.Unproved(1)) {
			t.Fatalf("%v is %s with %d anomalies: %q", l, r.Verdict, len(r.Anomalies), r.Notes)
		}
		a := r.Anomalies[0]
		at, _ := verdict.ParseLevel(a.Level)
		if h := evidence(t, a); unlimited(at, h.Header, h.Transactions) != verdict.Violated {
			t.Errorf("%v: the evidence of %d transactions does not prove %s at %v", l, len(h.Transactions), a.Name, at)
		}
	}
}
