package judge

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/isowatch/isowatch/cmd/monitor/certfile"
	"github.com/isowatch/isowatch/cmd/monitor/report"
	"github.com/isowatch/isowatch/incremental"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/generate"
	"github.com/isowatch/isowatch/ingest/history"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/record/packed"
	"github.com/isowatch/isowatch/internal/lab/oracle/script"
	"github.com/isowatch/isowatch/internal/lab/oracle/tiny"
	"github.com/isowatch/isowatch/internal/lab/race"
)

func TestLevels(t *testing.T) {
	for _, tc := range []struct {
		ask   []verdict.Level
		clock record.Clock
		want  string
	}{
		{[]verdict.Level{verdict.SI, verdict.SER}, record.ClockPrune, "[si ser]"},
		{[]verdict.Level{verdict.SI, verdict.SER}, record.ClockEnforce, "[strong-si sser]"},
		{[]verdict.Level{verdict.SSER, verdict.SER, verdict.SER}, record.ClockEnforce, "[sser]"},
		{[]verdict.Level{verdict.SI}, record.ClockIgnore, "[si]"},
		{[]verdict.Level{verdict.StrongSI}, record.ClockIgnore, "level strong-si holds real time, which the clock setting ignore takes away"},
		{[]verdict.Level{verdict.SI, verdict.LIN}, record.ClockIgnore, "level lin holds real time, which the clock setting ignore takes away"},
		{[]verdict.Level{verdict.LIN, verdict.CC}, record.ClockEnforce, "[lin cc]"},
	} {
		ls, err := Levels(tc.ask, tc.clock)
		got := fmt.Sprint(ls)
		if err != nil {
			got = err.Error()
		}
		if got != tc.want {
			t.Errorf("%v with clock %v: got %s, want %s", tc.ask, tc.clock, got, tc.want)
		}
	}
}

func TestOverride(t *testing.T) {
	zero, skew := record.InitialZero, int64(5)
	a := record.Assumptions{Coverage: record.CoveragePartial}.Override(record.Header{Initial: &zero, MaxSkew: &skew})
	if want := (record.Assumptions{Initial: zero, Coverage: record.CoveragePartial, MaxSkew: 5}); !reflect.DeepEqual(a, want) {
		t.Errorf("got %+v, want %+v", a, want)
	}
}

// question makes a history and asks for levels.
func question(t *testing.T, c generate.Config, levels ...verdict.Level) Question {
	t.Helper()
	g, err := generate.New(c)
	if err != nil {
		t.Fatal(err)
	}
	q := Question{DB: record.DefaultDB, Txns: slices.Collect(g.Transactions()), Levels: levels, Replay: true, Decoded: time.Second}
	q.Assume = q.Assume.Override(g.Header())
	return q
}

// TestCheckReplaysWhatItFindsSatisfied: the independent checker agrees, with
// times and without, under every clock.
func TestCheckReplaysWhatItFindsSatisfied(t *testing.T) {
	for _, noTimes := range []bool{false, true} {
		for _, clock := range []record.Clock{record.ClockPrune, record.ClockIgnore} {
			q := question(t, generate.Config{Level: verdict.SER, Transactions: 500, Keys: 60, Sessions: 6, Seed: 2, NoTimes: noTimes}, verdict.SI, verdict.SER)
			q.Assume.Clock = clock
			var h report.History
			if err := Check(q, &h); err != nil {
				t.Fatalf("no times %v, clock %v: %v", noTimes, clock, err)
			}
			if got := strings.Join(h.Strongest, " "); got != "ser" {
				t.Errorf("no times %v, clock %v: strongest %q", noTimes, clock, got)
			}
			if h.Transactions != 500 || h.Sessions != 6 || h.Keys != 60 || h.Operations == 0 {
				t.Errorf("sizes %+v", h)
			}
			if p := h.Results[0].Stats.PhaseSeconds; p.Decode != 1 {
				t.Errorf("phases %+v", p)
			}
		}
	}
}

// TestReplayRefusesAWrongProof: the check behind --replay can fail.
func TestReplayRefusesAWrongProof(t *testing.T) {
	txn := func(id string, ops ...record.Op) record.Transaction {
		return record.Transaction{DB: "d", Session: id, ID: id, Ops: ops}
	}
	txns := []record.Transaction{
		txn("w", record.Op{Kind: record.Write, Key: "x", Value: record.Int(1)}),
		txn("r", record.Op{Kind: record.Read, Key: "x", Value: record.Int(1)}),
	}
	order := func(ids ...verdict.TxnID) (out []verdict.Event) {
		for _, id := range ids {
			out = append(out, verdict.Event{Txn: id, Commit: true})
		}
		return out
	}
	r := verdict.Result{Level: verdict.SER, ProvedBy: verdict.SER, Outcome: verdict.Satisfied, Order: order(0, 1)}
	if err := Replay(r, record.Assumptions{Initial: record.InitialAbsent}, txns); err != nil {
		t.Errorf("the right order: %v", err)
	}
	for name, wrong := range map[string][]verdict.Event{"reversed": order(1, 0), "short": order(0), "none": nil} {
		r.Order = wrong
		if Replay(r, record.Assumptions{Initial: record.InitialAbsent}, txns) == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if Replay(verdict.Result{Level: verdict.SER, Outcome: verdict.Unknown}, record.Assumptions{}, txns) == nil {
		t.Error("an undecided verdict was replayed")
	}
}

// TestEveryAnomalyHasEvidenceThatProvesIt: for each anomaly that can be planted,
// what check reports as its history is violated when it is read again.
func TestEveryAnomalyHasEvidenceThatProvesIt(t *testing.T) {
	for _, name := range slices.Concat(generate.Anomalies(), generate.PredicateAnomalies()) {
		t.Run(name, func(t *testing.T) {
			c := generate.Config{Level: verdict.SER, Transactions: 200, Keys: 40, Sessions: 6, Seed: 4, Anomaly: name}
			isPredicate := slices.Contains(generate.PredicateAnomalies(), name)
			if isPredicate {
				c.Initial = record.InitialAbsent
			}
			q := question(t, c, verdict.SER)
			var h report.History
			if err := Check(q, &h); err != nil {
				t.Fatal(err)
			}
			r := h.Results[0]
			if r.Verdict != "violated" || len(r.Anomalies) == 0 {
				t.Fatalf("%s with %d anomalies", r.Verdict, len(r.Anomalies))
			}
			for _, a := range r.Anomalies {
				if isPredicate && a.Name != name {
					t.Errorf("it is called %s", a.Name)
				}
				h := evidence(t, a)
				if got := unlimited(verdict.SER, h.Header, h.Transactions); got != verdict.Violated {
					t.Errorf("%s: the evidence is %s\n%s", a.Name, got, a.History)
				}
			}
		})
	}
}

// Where levels are asked of which none says anything of the other, evidence of an anomaly that breaks several still
// breaks them when it was made small: two updates of one session, of which the second missed the first, are no
// anomaly to lin without what both wrote; nor are two of which the first read what the second wrote, without what they
// read and wrote besides; nor to ser, where clocks show to strong-si that they are one.
func TestEvidenceBreaksLevelsBeside(t *testing.T) {
	for _, c := range []struct {
		levels  []verdict.Level
		history string
	}{
		{[]verdict.Level{verdict.SER, verdict.LIN}, "initial zero\ns T1: r(x,0) w(x,1)\ns T2: r(x,0) w(x,2)\n"},
		{[]verdict.Level{verdict.SER, verdict.LIN}, "initial zero\ns T1: r(x,1) w(x,null)\ns T2: r(x,null) w(x,1)\n"},
		{[]verdict.Level{verdict.StrongSI, verdict.SER}, "initial any\ns1 T1: r(x,0) w(x,3) @2-8\ns2 T2: r(x,3) w(x,0) @9-11\n"},
	} {
		s, err := script.Parse(c.history)
		if err != nil {
			t.Fatal(err)
		}
		q := Question{Records: packed.Of(s.Txns), Levels: c.levels, DB: "d", AnomaliesMax: 3}
		q.Assume = q.Assume.Override(s.Header)
		var h report.History
		if err := Check(q, &h); err != nil {
			t.Fatal(err)
		}
		for i, r := range h.Results {
			for _, a := range r.Anomalies {
				e := evidence(t, a)
				outcome := unlimited(c.levels[i], e.Header, e.Transactions)
				if outcome != verdict.Violated || !slices.Contains(a.Alert.Breaks, r.Level) {
					t.Errorf("%s: %s, which breaks %v, does not break it", r.Level, a.Name, a.Alert.Breaks)
				}
			}
			if len(r.Anomalies) == 0 {
				t.Errorf("%s is %s, without an anomaly", r.Level, r.Verdict)
			}
		}
	}
}

// unlimited judges evidence as a Prover does, however long that takes.
func unlimited(level verdict.Level, h record.Header, txns []record.Transaction) verdict.Outcome {
	return bare(level, h, txns, incremental.Options{}).Outcome
}

// evidence is what check reads of an anomaly's evidence.
func evidence(t *testing.T, a report.Anomaly) history.History {
	t.Helper()
	var lines strings.Builder
	for _, l := range a.History {
		lines.Write(append(l, '\n'))
	}
	hs, err := history.Read("evidence", strings.NewReader(lines.String()), history.Options{})
	if err != nil || len(hs) != 1 {
		t.Fatalf("%d histories, %v in\n%s", len(hs), err, &lines)
	}
	return hs[0]
}

// checked are the anomalies that check tells, by the ids of their alerts.
func checked(t *testing.T, q Question) map[string]report.Anomaly {
	t.Helper()
	var h report.History
	if err := Check(q, &h); err != nil {
		t.Fatal(err)
	}
	out := map[string]report.Anomaly{}
	for _, r := range h.Results {
		for _, a := range r.Anomalies {
			out[a.Alert.ID] = a
		}
	}
	return out
}

// Of who shows that a transaction of unknown outcome took effect nothing else is evidence that it read of the key: who may
// have written that is not there.
func TestWhoVouchesAccusesNobody(t *testing.T) {
	s, err := script.Parse(`s1 A unknown: r(x,77) w(x,2)
s2 B: r(x,77) w(x,1) w(x,0)
s3 C: w(x,1)
s4 D: r(x,2) r(x,1)`)
	if err != nil {
		t.Fatal(err)
	}
	var h report.History
	if err := Check(Question{Txns: s.Txns, Levels: verdict.Levels(), AnomaliesMax: 10}, &h); err != nil {
		t.Fatal(err)
	}
	for _, r := range h.Results {
		for _, a := range r.Anomalies {
			if a.Name != "non-repeatable-reads" && a.Name != "lost-update" {
				t.Errorf("%s: %s", r.Level, a.Alert.Summary)
			}
		}
	}
}

// A read of a key that is written and appended to is not checked, and shows of no unknown outcome that it took effect;
// nor does the empty list read by one that did not show that its key is a list, of which null says nothing.
func TestWhatIsNotCheckedVouchesForNobody(t *testing.T) {
	for text, initial := range map[string]record.Initial{
		"s1 A: append(x,1)\ns0 B: w(y,2)\ns0 C unknown: r(y,null) w(x,4)\ns1 D: r(x,4)": record.InitialAbsent,
		"s0 A: r(x,null)\ns1 B unknown: r(x,[]) r(y,1)":                                 record.InitialZero,
	} {
		s, err := script.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		var h report.History
		q := Question{Txns: s.Txns, Levels: []verdict.Level{verdict.PC, verdict.SER}, AnomaliesMax: 10,
			Assume: record.Assumptions{Initial: initial}}
		if err := Check(q, &h); err != nil {
			t.Fatal(err)
		}
		for _, r := range h.Results {
			if r.Verdict != "unknown" {
				t.Errorf("%s\n%s: %s %q", text, r.Level, r.Verdict, r.Notes)
			}
		}
	}
}

// What is told is proved: what was read of keys that nobody had written is a part of the proof where nothing less than
// the history proves; the list that shows that an unknown outcome took effect is, and no other one of its reader; and
// so is what a key held at first, whatever else nobody wrote its reader found there.
func TestToldIsProved(t *testing.T) {
	for _, tc := range []struct {
		script  string
		initial record.Initial
		level   verdict.Level
	}{
		{"s2 A unknown: r(x,null) w(x,1)\ns0 B: r(x,null) w(x,1)\ns1 C: w(x,2)\ns1 D: r(x,1) @17-17", record.InitialAny, verdict.StrongSI},
		{"s3 A unknown: append(y,2) r(x,null)\ns1 B: r(y,[]) r(y,[1,2])", record.InitialZero, verdict.RC},
		{"s0 A: r(x,0)\ns0 B: w(x,3)\ns0 C: r(x,[1]) r(x,3) r(x,0)", record.InitialAny, verdict.RC},
	} {
		s, err := script.Parse(tc.script)
		if err != nil {
			t.Fatal(err)
		}
		var h report.History
		q := Question{Txns: s.Txns, Levels: []verdict.Level{tc.level}, AnomaliesMax: 10, Assume: record.Assumptions{MaxSkew: 14, Initial: tc.initial}}
		if err := Check(q, &h); err != nil {
			t.Fatal(err)
		}
		r := h.Results[0]
		if r.Verdict != "violated" || len(r.Notes) > 0 {
			t.Errorf("%s\n%s: %q", tc.script, r.Verdict, r.Notes)
		}
	}
}

// No anomaly is said to break a level that holds: null and the empty list are different in a key of numbers, and both
// may have been there.
func TestNoneBreaksWhatHolds(t *testing.T) {
	s, err := script.Parse("s0 A: w(x,[])\ns0 B: r(x,null) r(x,[])\ns0 C: w(x,4)")
	if err != nil {
		t.Fatal(err)
	}
	var h report.History
	if err := Check(Question{Txns: s.Txns, Levels: verdict.Levels(), AnomaliesMax: 10}, &h); err != nil {
		t.Fatal(err)
	}
	holds := map[string]bool{}
	for _, r := range h.Results {
		holds[r.Level] = r.Verdict == "satisfied"
	}
	for _, r := range h.Results {
		for _, a := range r.Anomalies {
			if holds[a.Level] {
				t.Errorf("%v holds, and %s", a.Level, a.Alert.Summary)
			}
		}
	}
}

// What a transaction finds twice of a key to which it appends, and somebody else appended the same, or wrote it as a whole,
// is not checked: the reader alone would seem to have read what it wrote later, or a list in two orders, which breaks all.
func TestOwnElementOfAnother(t *testing.T) {
	for _, tc := range []struct {
		other, own string
		want       verdict.Outcome
	}{
		{"append(x,1)", "append(x,1) r(x,[1]) r(x,[1,1])", verdict.Unknown},
		{"append(x,2)", "append(x,1) r(x,[1]) r(x,[1,1])", verdict.Violated},
		{"append(x,1)", "r(x,[1]) r(x,[]) append(x,1)", verdict.Unknown},
		{"append(x,2)", "r(x,[2]) r(x,[]) append(x,1)", verdict.Violated},
		{"w(x,[1])", "r(x,[1]) r(x,[]) append(x,2)", verdict.Unknown},
		{"w(x,1) w(x,2)", "r(x,2) r(x,1) append(x,1)", verdict.Unknown},
	} {
		s, err := script.Parse("s0 A: " + tc.other + "\ns1 B: " + tc.own)
		if err != nil {
			t.Fatal(err)
		}
		var h report.History
		if err := Check(Question{Txns: s.Txns, Levels: []verdict.Level{verdict.RA}, AnomaliesMax: 10}, &h); err != nil {
			t.Fatal(err)
		}
		if r := h.Results[0]; r.Verdict != tc.want.String() {
			t.Errorf("%s, %s: %+v", tc.other, tc.own, r)
		}
	}
}

// A session guarantee that an anomaly is said to break is violated, though it can't be judged by itself, as a read has
// several possible writers.
func TestGuaranteeThatAnAnomalyBreaks(t *testing.T) {
	s, err := script.Parse("s0 A: w(x,12)\ns0 B: r(x,null) w(x,null)\ns0 C: r(x,null)")
	if err != nil {
		t.Fatal(err)
	}
	var h report.History
	if err := Check(Question{Txns: s.Txns, Levels: AllLevels(record.ClockPrune), All: true, AnomaliesMax: 10}, &h); err != nil {
		t.Fatal(err)
	}
	for _, g := range h.Guarantees {
		if (g.Verdict == "violated") != (g.Guarantee == "read-your-writes") || (len(g.Anomalies) > 0) != (g.Verdict == "violated") {
			t.Errorf("%+v", g)
		}
	}
	if len(h.Guarantees) != 4 {
		t.Errorf("%d guarantees", len(h.Guarantees))
	}
}

// Who checks the evidence of an anomaly, at the levels at which that was found, is told the
// same anomaly again: id, name, levels, transactions and words. Nothing else is told, unless
// the same transactions break another level in another way: one with real time, say.
func TestEvidenceIsTheSameAnomaly(t *testing.T) {
	all := 0
	most := slices.DeleteFunc(verdict.Levels(), func(l verdict.Level) bool { return l == verdict.LIN }) // lin may be asked of the evidence, where the whole has several objects
	for _, levels := range [][]verdict.Level{{verdict.SER}, {verdict.SI, verdict.SER}, {verdict.RC}, {verdict.CC, verdict.SI}, most} {
		for _, name := range generate.Anomalies() {
			for _, w := range []generate.Workload{generate.General, generate.Append} {
				q := question(t, generate.Config{Level: verdict.SSER, Workload: w, Transactions: 60, Keys: 40, Sessions: 6, Seed: uint64(len(levels)), Anomaly: name}, levels...)
				q.DB = "shop"
				for i := range q.Txns {
					q.Txns[i].DB = q.DB
				}
				for id, a := range checked(t, q) {
					all++
					h := evidence(t, a)
					again := checked(t, Question{DB: h.DB, Txns: h.Transactions, Assume: record.Assumptions{}.Override(h.Header), Levels: levels})
					if b := again[id].Alert; !bytes.Equal(a.Alert.JSON(), b.JSON()) {
						t.Errorf("%s of %v at %v: checked again\n%s\nit is\n%s", name, w, levels, a.Alert.JSON(), b.JSON())
					}
					for other, b := range again {
						if other != id && b.Level == a.Level {
							t.Errorf("%s of %v at %v: %s beside it", name, w, levels, b.Name)
						}
					}
				}
			}
		}
	}
	if all < 80 {
		t.Errorf("%d anomalies", all)
	}
}

// TestStop: whenever it is stopped, what is said is true: a valid history is never
// violated, a broken one never satisfied, and what is unknown says why. The later, the
// more is decided.
func TestStop(t *testing.T) {
	for _, anomaly := range []string{"", "lost-update"} {
		q := question(t, generate.Config{Level: verdict.SER, Transactions: 3000, Keys: 60, Sessions: 6, Seed: 2, Anomaly: anomaly}, verdict.SI, verdict.SER)
		q.Replay = false
		asked := 0
		q.Stop = func() verdict.Reason { asked++; return verdict.NoReason }
		var whole report.History
		if err := Check(q, &whole); err != nil {
			t.Fatal(err)
		}
		total := asked
		if total < 2*3000/stopEvery {
			t.Fatalf("asked %d times whether to stop", total)
		}
		decided := 0
		parts := race.Few(5, 16)
		for part := range parts + 1 {
			n := total * part / parts
			asked = 0
			q.Stop = func() verdict.Reason {
				if asked++; asked > n {
					return verdict.Memory
				}
				return verdict.NoReason
			}
			var h report.History
			if err := Check(q, &h); err != nil {
				t.Fatal(err)
			}
			now := 0
			for i, r := range h.Results {
				switch {
				case r.Verdict == "unknown" && r.Unknown.Reason == "memory" && r.Unknown.Decided >= 0 && r.Unknown.Decided < 1 && r.Unknown.Count > 0:
				case r.Verdict == whole.Results[i].Verdict && r.Unknown == nil && (r.Verdict == "violated") == (len(r.Anomalies) > 0):
					now++
				default:
					t.Fatalf("%q stopped after %d of %d: %s is %s, %+v", anomaly, n, total, r.Level, r.Verdict, r.Unknown)
				}
			}
			if now < decided {
				t.Errorf("%q stopped after %d of %d: %d levels decided, %d before", anomaly, n, total, now, decided)
			}
			decided = now
		}
		if decided != 2 {
			t.Errorf("%q: %d levels decided in the end", anomaly, decided)
		}
	}
}

// Who is stopped before what was found is explained has evidence that proves it all the same, small or not.
func TestEvidenceWithoutTimeLeft(t *testing.T) {
	for _, cfg := range []tiny.Config{
		{Aborted: true, Times: true, Weak: 40},
		{Keys: 2, Values: 2, Duplicates: true, Unknown: true, Aborted: true, Always: true},
		{Keys: 2, Appends: true, Unknown: true, Aborted: true, Always: true},
	} {
		told := 0
		for seed := range uint64(race.Few(100, 500)) {
			cfg.Txns, cfg.Mutations = 6, 1+int(seed%3)
			s := tiny.Random(rand.New(rand.NewPCG(seed, 3)), cfg)
			over := verdict.NoReason
			q := Question{Txns: s.Txns, Levels: AllLevels(record.ClockPrune), All: true, Assume: record.Assumptions{}.Override(s.Header), AnomaliesMax: 10,
				Stop: func() verdict.Reason { return over }}
			q.Phase = func(what string) {
				if strings.HasPrefix(what, "explaining") {
					over = verdict.Timeout
				}
			}
			var h report.History
			if err := Check(q, &h); err != nil {
				t.Fatal(err)
			}
			for _, r := range h.Results {
				for _, a := range r.Anomalies {
					told++
					at, _ := verdict.ParseLevel(a.Level)
					if h := evidence(t, a); unlimited(at, h.Header, h.Transactions) != verdict.Violated {
						t.Fatalf("seed %d: %s at %v proves nothing: %s\n%s\n%q", seed, a.Name, at, script.Format(s), a.History, r.Notes)
					}
				}
			}
		}
		if told < 50 {
			t.Errorf("%d anomalies are told", told)
		}
	}
}

// TestProved: the proofs of all that is satisfied are handed on, and what is said of
// them is heard.
func TestProved(t *testing.T) {
	q := question(t, generate.Config{Level: verdict.SER, Transactions: 200, Keys: 40, Sessions: 6, Seed: 4, Anomaly: "write-skew"}, verdict.SI, verdict.SER)
	var got []verdict.Level
	full := errors.New("the disk is full")
	q.Replay, q.Proved = false, func(r verdict.Result) error {
		got = append(got, r.Level)
		if err := Replay(r, q.Assume, q.Txns); err != nil {
			t.Error(err)
		}
		return full
	}
	var h report.History
	if err := Check(q, &h); !errors.Is(err, full) || !slices.Equal(got, []verdict.Level{verdict.SI}) {
		t.Errorf("proofs of %v, error %v", got, err)
	}
}

// TestVerify: each proof by itself; what is said of the history as a whole goes for
// all; levels that are wanted have to be there.
func TestVerify(t *testing.T) {
	q := question(t, generate.Config{Level: verdict.SER, Transactions: 200, Keys: 40, Sessions: 6, Seed: 4}, verdict.SI, verdict.SER)
	c := certfile.New(q.Txns, q.Assume)
	q.Proved = func(r verdict.Result) error { return c.Add(r, q.Txns) }
	if err := Check(q, &report.History{}); err != nil {
		t.Fatal(err)
	}
	say := func(ps []report.Proof) string {
		var out []string
		for _, p := range ps {
			out = append(out, p.Level+" "+p.Verdict)
		}
		return strings.Join(out, ", ")
	}
	verify := func(want string, a record.Assumptions, levels ...verdict.Level) {
		t.Helper()
		if got := say(Verify(c, q.Txns, a, levels)); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	verify("si verified, ser verified", q.Assume)
	verify("si verified, ser verified, sser missing", q.Assume, verdict.SER, verdict.SSER)
	other := q.Assume
	other.Sessions = record.SessionsIgnore
	verify("si refuted, ser refuted", other)
	for i := range c.Proofs {
		steps := c.Proofs[i].Steps
		c.Proofs[i].Steps = steps[:len(steps)-1]
		verify([]string{"si refuted, ser verified", "si verified, ser refuted"}[i], q.Assume)
		c.Proofs[i].Steps = steps
	}
	c.Records.Operations++
	verify("si refuted, ser refuted", q.Assume)
}

// TestProvesWhatIsWeaker: the order that proves a level proves a weaker one.
func TestProvesWhatIsWeaker(t *testing.T) {
	q := question(t, generate.Config{Level: verdict.SSER, Transactions: 300, Keys: 40, Sessions: 6, Seed: 4}, verdict.SSER)
	q.Proved = func(r verdict.Result) error {
		for _, to := range []verdict.Level{verdict.SER, verdict.StrongSI, verdict.SI, verdict.PC, verdict.CC, verdict.RC} {
			w := r
			w.Level = to
			if err := Replay(w, q.Assume, q.Txns); err != nil {
				t.Errorf("as %s: %v", to, err)
			}
		}
		return nil
	}
	var h report.History
	if err := Check(q, &h); err != nil || h.Results[0].Verdict != "satisfied" {
		t.Errorf("%v, %+v", err, h.Results)
	}
}

// TestProofsOfWhatFollows: a level that is undecided by itself, but follows from
// another, has a proof too.
func TestProofsOfWhatFollows(t *testing.T) {
	q := question(t, generate.Config{Level: verdict.SER, Transactions: 200, Keys: 40, Sessions: 6, Seed: 4}, verdict.SER, verdict.SI)
	var got []verdict.Level
	q.Stop = func() verdict.Reason {
		if len(got) > 0 {
			return verdict.Timeout
		}
		return verdict.NoReason
	}
	q.Proved = func(r verdict.Result) error {
		got = append(got, r.Level)
		return Replay(r, q.Assume, q.Txns)
	}
	var h report.History
	if err := Check(q, &h); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, []verdict.Level{verdict.SER, verdict.SI}) || h.Results[1].Verdict != "satisfied" || len(h.Results[1].Notes) == 0 {
		t.Errorf("proofs of %v; %+v", got, h.Results[1])
	}
}

// What breaks a session guarantee is proved by its evidence, also where time was over before it was explained.
func TestGuaranteesOfWhoIsStopped(t *testing.T) {
	told := 0
	for seed := range uint64(60) {
		s := tiny.Random(rand.New(rand.NewPCG(seed, 77)), tiny.Config{Txns: 7, Mutations: 1 + int(seed%3), Keys: 2, Appends: true, Unknown: true, Aborted: true, Always: true})
		over := verdict.NoReason
		q := Question{Txns: s.Txns, Levels: AllLevels(record.ClockPrune), All: true, Assume: record.Assumptions{}.Override(s.Header), AnomaliesMax: 10, Stop: func() verdict.Reason { return over }}
		q.Phase = func(what string) {
			if strings.HasPrefix(what, "judging the session") {
				over = verdict.Timeout
			}
		}
		var out report.History
		if err := Check(q, &out); err != nil {
			t.Fatal(err)
		}
		for _, g := range out.Guarantees {
			for _, a := range g.Anomalies {
				told++
				at, _ := verdict.ParseLevel(a.Level)
				if h := evidence(t, a); unlimited(at, h.Header, h.Transactions) != verdict.Violated {
					t.Errorf("seed %d: %s at %s is proved by nothing: %s", seed, a.Name, a.Level, a.History)
				}
			}
		}
	}
	if told == 0 {
		t.Error("nothing was told")
	}
}
