package report

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/alerts/present"
	"github.com/isowatch/isowatch/incremental/verdict"
)

func verdicts(vs ...string) History {
	h := History{File: "h", DB: "default"}
	for i, v := range vs {
		r := Result{Level: []string{"si", "strong-si", "ser"}[i], Verdict: v}
		if v == "unknown" {
			r.Unknown = &Unknown{Reason: "timeout"}
		}
		h.Results = append(h.Results, r)
	}
	return h
}

func all(h History) History {
	h.All = true
	return h
}

func TestExit(t *testing.T) {
	broken := History{Error: &Error{Message: "x"}}
	for _, tc := range []struct {
		name string
		hs   []History
		want int
	}{
		{"none", nil, 0},
		{"satisfied", []History{verdicts("satisfied", "satisfied")}, 0},
		{"one level violated", []History{verdicts("satisfied", "violated")}, 1},
		{"one level unknown", []History{verdicts("satisfied", "unknown")}, 3},
		{"violated goes before unknown", []History{verdicts("unknown", "violated")}, 1},
		{"violated goes before broken", []History{broken, verdicts("violated"), verdicts("unknown")}, 1},
		{"broken goes before unknown", []History{verdicts("unknown"), broken}, 2},
		{"unknown goes before satisfied", []History{verdicts("unknown"), verdicts("satisfied")}, 3},
		{"not applicable is not satisfied", []History{verdicts("not-applicable")}, 3},
		{"not applicable is nothing to decide when all are asked", []History{all(verdicts("satisfied", "not-applicable"))}, 0},
		{"unknown is undecided when all are asked", []History{all(verdicts("satisfied", "unknown"))}, 3},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := Exit(tc.hs); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}

func TestStrongest(t *testing.T) {
	for _, tc := range []struct {
		h    History
		want string
	}{
		{verdicts("satisfied", "violated", "violated"), "[si]"},
		{verdicts("satisfied", "satisfied", "satisfied"), "[strong-si ser]"},
		{verdicts("violated", "unknown", "violated"), "[]"},
	} {
		tc.h.Conclude(0)
		if got := "[" + strings.Join(tc.h.Strongest, " ") + "]"; got != tc.want {
			t.Errorf("%v: got %s, want %s", tc.h.Results, got, tc.want)
		}
	}
}

func full() History {
	h := History{File: "h.jsonl", Format: "isowatch", DB: "orders", Transactions: 10000, Operations: 1, Sessions: 25, Keys: 9731,
		Results: []Result{
			{Level: "si", Verdict: "satisfied", Seconds: 0.25, Anomalies: []Anomaly{}, Notes: []string{"no times"}},
			{Level: "strong-si", Verdict: "unknown", Unknown: &Unknown{Reason: "conflicts", Decided: 0.98, Count: 12}, Anomalies: []Anomaly{}},
			{Level: "ser", Verdict: "violated", Anomalies: []Anomaly{{
				Name: "write-skew", Adya: "G2-item", Level: "ser", Transactions: []string{"a"},
				Cycle:       []Edge{{From: "a", To: "b", Type: "rw", Key: "x"}},
				Explanation: "because", History: []json.RawMessage{json.RawMessage(`{"id":"a"}`)},
				Alert: alerts.Alert{ID: "write-skew of a", Name: "write-skew", Level: "ser", Summary: "a ─rw─▶ b", Explanation: "because"},
			}}, Stats: Stats{Stats: verdict.Stats{Choices: 12, Constraints: 1200, Pruned: 1190, Residual: 10, Conflicts: 3}, PeakBytes: 9, PhaseSeconds: Phases{Decode: 0.5}}},
		}}
	h.Conclude(0)
	return h
}

// TestJSON fixes the format, field order included.
func TestJSON(t *testing.T) {
	h := full()
	got, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	// The engine's counts come first, as verdict.Stats has them.
	counts := func(s verdict.Stats) string {
		b, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Trim(string(b), "{}")
	}
	stats0 := `"stats":{` + counts(verdict.Stats{}) + `,"peak_bytes":0,"phase_seconds":{"decode":0,"construct":0,"prune":0,"solve":0,"explain":0}}`
	want := `{"file":"h.jsonl","format":"isowatch","db":"orders","transactions":10000,"operations":1,"sessions":25,"keys":9731,` +
		`"strongest":["si"],"error":null,"results":[` +
		`{"level":"si","verdict":"satisfied","seconds":0.25,"unknown":null,"anomalies":[],"notes":["no times"],` + stats0 + `},` +
		`{"level":"strong-si","verdict":"unknown","seconds":0,"unknown":{"reason":"conflicts","decided":0.98,"count":12},"anomalies":[],` + stats0 + `},` +
		`{"level":"ser","verdict":"violated","seconds":0,"unknown":null,"anomalies":[{"name":"write-skew","adya":"G2-item","level":"ser","transactions":["a"],` +
		`"cycle":[{"from":"a","to":"b","type":"rw","key":"x"}],"explanation":"because","history":[{"id":"a"}]}],` +
		`"stats":{` + counts(h.Results[2].Stats.Stats) + `,"peak_bytes":9,"phase_seconds":{"decode":0.5,"construct":0,"prune":0,"solve":0,"explain":0}}}]}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestText(t *testing.T) {
	var b strings.Builder
	w := Text{W: &b}
	h := full()
	again := h.Results[2]
	again.Level = "sser"
	h.Results = append(h.Results, again)
	unread := History{File: "big.jsonl", Limit: "timeout", Results: []Result{{Level: "si", Verdict: "unknown", Unknown: &Unknown{Reason: "timeout"},
		Notes: []string{"the history was not read to its end"}}}}
	long := History{File: "long.jsonl", Results: []Result{{Level: "si", Verdict: "unknown", Unknown: &Unknown{Reason: "forgotten", Count: 7266}}}}
	broken := History{File: "b.jsonl", Error: &Error{Line: 3, Field: "ops[1]", Message: "unknown operation"}}
	if err := w.History(&h); err != nil {
		t.Fatal(err)
	}
	if err := w.History(&broken); err != nil {
		t.Fatal(err)
	}
	if err := w.History(&unread); err != nil {
		t.Fatal(err)
	}
	if err := w.History(&long); err != nil {
		t.Fatal(err)
	}
	want := `h.jsonl (orders): 10,000 transactions, 1 operation, 25 sessions, 9,731 keys
  si        satisfied  0.250 s
            no times
  strong-si unknown    0.000 s  the search took more steps than it may (conflicts); 12 left open, 98% decided
  ser       VIOLATED   0.000 s  1 anomaly: write-skew
            12 reads with several possible writers, 10 orders of writes searched, 3 dead ends met
  sser      VIOLATED   0.000 s  1 anomaly: write-skew
            12 reads with several possible writers, 10 orders of writes searched, 3 dead ends met

` + shown(t, h.Results[2].Anomalies[0]) + `
b.jsonl:3: can't be judged: ops[1]: unknown operation
big.jsonl: not read to its end
  si        unknown    0.000 s  the time was over before it was decided (timeout)
            the history was not read to its end
long.jsonl: 0 transactions, 0 operations, 0 sessions, 0 keys
  si        unknown    0.000 s  no violation is told; each stretch is judged by itself, and what lies across them is not decided (forgotten)
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestColorOnlyWhenAsked(t *testing.T) {
	var b strings.Builder
	h := full()
	if err := (Text{W: &b, Color: true}).History(&h); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), red+"VIOLATED ") {
		t.Errorf("%q", b.String())
	}
}

// TestLines: several histories, a line each, and what they come to.
func TestLines(t *testing.T) {
	var b strings.Builder
	w := Text{W: &b}
	h := full()
	h.Took = 750 * time.Millisecond
	h.Results[2].Anomalies = append(h.Results[2].Anomalies, Anomaly{Name: "lost-update"}, Anomaly{Name: "write-skew"})
	broken := History{File: "b.jsonl", Error: &Error{Line: 3, Field: "ops[1]", Message: "unknown operation"}}
	plain := verdicts("satisfied", "not-applicable")
	unexplained := verdicts("violated")
	all := Tally{}
	for _, h := range []History{h, broken, plain, unexplained} {
		all.Add(&h)
		if err := w.Line(&h); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Summary(&all); err != nil {
		t.Fatal(err)
	}
	all.Took = 1500 * time.Millisecond
	if err := w.Summary(&all); err != nil {
		t.Fatal(err)
	}
	want := `h.jsonl (orders): si satisfied, strong-si unknown (conflicts, 12 left open, 98% decided), ser VIOLATED (2 write-skew, lost-update)  0.750 s
b.jsonl:3: can't be judged: ops[1]: unknown operation
h: si satisfied, strong-si not-applicable  0.000 s
h: si VIOLATED  0.000 s
4 histories: si 2 satisfied, 1 violated; strong-si 1 unknown, 1 not-applicable; ser 1 violated; 1 can't be judged
4 histories: si 2 satisfied, 1 violated; strong-si 1 unknown, 1 not-applicable; ser 1 violated; 1 can't be judged; 1.500 s
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if all.Exit() != ExitViolated {
		t.Errorf("exit %d", all.Exit())
	}
}

// TestInfer: levels imply levels, one step from what was decided itself.
func TestInfer(t *testing.T) {
	for _, tc := range []struct{ levels, want string }{
		{"si unknown, ser satisfied", "si satisfied, ser satisfied"},
		{"si violated, ser unknown", "si violated, ser violated"},
		{"si unknown, ser violated", "si unknown, ser violated"},
		{"si satisfied, ser unknown", "si satisfied, ser unknown"},
		{"ser unknown, strong-si satisfied", "ser unknown, strong-si satisfied"},
		{"si unknown, strong-si unknown, ser unknown, sser satisfied", "si satisfied, strong-si satisfied, ser satisfied, sser satisfied"},
		{"sser unknown, strong-si violated, ser satisfied", "sser violated, strong-si violated, ser satisfied"},
		{"si not-applicable, sser satisfied", "si not-applicable, sser satisfied"},
	} {
		var h History
		for _, l := range strings.Split(tc.levels, ", ") {
			level, v, _ := strings.Cut(l, " ")
			r := Result{Level: level, Verdict: v, Anomalies: []Anomaly{}}
			switch v {
			case "unknown":
				r.Unknown = &Unknown{Reason: "timeout"}
			case "violated":
				r.Anomalies = append(r.Anomalies, Anomaly{Name: "lost-update"})
			}
			h.Results = append(h.Results, r)
		}
		h.infer()
		var got []string
		for _, r := range h.Results {
			got = append(got, r.Level+" "+r.Verdict)
			if (r.Unknown != nil) != (r.Verdict == "unknown") || (len(r.Anomalies) > 0) != (r.Verdict == "violated") {
				t.Errorf("%s: %+v", tc.levels, r)
			}
		}
		if strings.Join(got, ", ") != tc.want {
			t.Errorf("%s: got %s, want %s", tc.levels, got, tc.want)
		}
	}
}

// drawn is an anomaly that breaks a level and what that implies.
func drawn(name, level string, ids ...string) Anomaly {
	said := name + " of " + strings.Join(ids, ", ")
	return Anomaly{Name: name, Level: level, Transactions: ids, Alert: alerts.Alert{ID: said, Name: name, Level: level, Transactions: ids, Summary: said}}
}

// shown is how an anomaly stands in the text.
func shown(t *testing.T, a Anomaly) string {
	t.Helper()
	var b strings.Builder
	if err := present.Text(&b, a.Alert, present.Options{}); err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll("  "+strings.ReplaceAll(strings.TrimSuffix(b.String(), "\n"), "\n", "\n  ")+"\n", "\n  \n", "\n\n")
}

// survey is the report on a history of which all levels were asked.
func survey() History {
	h := History{File: "h.jsonl", DB: "default", Transactions: 4, Operations: 8, Sessions: 4, Keys: 2, All: true, Mini: true, Took: 1500 * time.Millisecond}
	for _, l := range verdict.Levels() {
		r := Result{Level: l.String(), Verdict: "satisfied", Anomalies: []Anomaly{}}
		switch {
		case l == verdict.LIN:
			r.Verdict, r.Notes = "not-applicable", []string{"a transaction has several keys"}
		case l == verdict.PC:
			r.Verdict, r.Unknown = "unknown", &Unknown{Reason: "conflicts", Decided: 0.5, Count: 1200}
		case l.Implies(verdict.SI):
			r.Verdict, r.Notes = "violated", []string{"partial"}
		}
		switch l {
		case verdict.SI:
			r.Anomalies = []Anomaly{drawn("lost-update", "si", "T1", "T2")}
		case verdict.StrongSI:
			r.Anomalies = []Anomaly{drawn("stale-read", "strong-si", "T1", "T3")}
		case verdict.SER:
			r.Anomalies = []Anomaly{drawn("write-skew", "ser", "T3", "T4"), drawn("lost-update", "si", "T1", "T2"), drawn("lost-update", "si", "T1", "T2")}
		case verdict.SSER:
			r.Anomalies = []Anomaly{drawn("write-skew", "ser", "T3", "T4")}
		}
		h.Results = append(h.Results, r)
	}
	h.Guarantees = []Guarantee{{Guarantee: "read-your-writes", Verdict: "satisfied"}, {Guarantee: "monotonic-reads", Verdict: "violated",
		Anomalies: []Anomaly{drawn("causality-violation", "cc", "T1", "T2")}}, {Guarantee: "monotonic-writes", Verdict: "unknown"}, {Guarantee: "writes-follow-reads", Verdict: "satisfied"}}
	return h
}

// TestLattice: all levels in a table, the strongest first, and each anomaly once.
func TestLattice(t *testing.T) {
	var b strings.Builder
	w := Text{W: &b}
	h := survey()
	h.Conclude(0)
	if err := w.History(&h); err != nil {
		t.Fatal(err)
	}
	if err := w.Line(&h); err != nil {
		t.Fatal(err)
	}
	want := `h.jsonl: 4 transactions, 8 operations, 4 sessions, 2 keys; mini-transactions
  sser       strict serializability     VIOLATED   by lost-update and 1 more
  ser        serializability            VIOLATED   by lost-update and 1 more
  strong-si  strong snapshot isolation  VIOLATED   by lost-update and 1 more
  si         snapshot isolation         VIOLATED   by lost-update
  pc         prefix consistency         unknown    the search took more steps than it may (conflicts); 1,200 left open, 50% decided
  cc         causal consistency         satisfied  strongest
  ra         read atomic                satisfied
  rc         read committed             satisfied
  g1         committed reads            satisfied
  lin        linearizability            not-applicable
  session guarantees: read-your-writes, writes-follow-reads hold; monotonic-reads VIOLATED (causality-violation of T1, T2); monotonic-writes unknown
  judged in 1.500 s
  sser, ser, strong-si, si: partial
  lin: a transaction has several keys

` + shown(t, drawn("lost-update", "si", "T1", "T2")) + `
` + shown(t, drawn("stale-read", "strong-si", "T1", "T3")) + `
` + shown(t, drawn("write-skew", "ser", "T3", "T4")) + `
h.jsonl: strongest cc; pc unknown (conflicts, 1,200 left open, 50% decided); si VIOLATED (lost-update); strong-si VIOLATED (lost-update, stale-read); ser sser VIOLATED (lost-update, write-skew)  1.500 s
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for i := range h.Guarantees {
		h.Guarantees[i].Verdict = "satisfied"
	}
	if got, want := w.guarantees(h.Guarantees), "all hold: read-your-writes, monotonic-reads, monotonic-writes, writes-follow-reads"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestWeakestFirst: a level lists first what breaks the weakest level that it implies,
// whatever its own search met; the limit cuts what comes last.
func TestWeakestFirst(t *testing.T) {
	for _, tc := range []struct {
		limit int
		want  string
	}{
		{0, "si: lost-update | strong-si: lost-update, stale-read | ser: lost-update, write-skew | sser: lost-update, write-skew"},
		{1, "si: lost-update | strong-si: lost-update | ser: lost-update | sser: lost-update"},
	} {
		h := survey()
		h.Conclude(tc.limit)
		var got []string
		for _, r := range h.Results {
			if r.Verdict == "violated" {
				got = append(got, r.Level+": "+r.names())
			}
		}
		if strings.Join(got, " | ") != tc.want {
			t.Errorf("limit %d: got %s, want %s", tc.limit, strings.Join(got, " | "), tc.want)
		}
	}
}

// TestVerification: what is said of certificates, and what it means.
func TestVerification(t *testing.T) {
	var b strings.Builder
	w := Text{W: &b}
	op := 2
	for _, tc := range []struct {
		v    Verification
		exit int
	}{
		{Verification{File: "h", DB: "default", Transactions: 2, Proofs: []Proof{{Level: "si", Verdict: Verified}}}, 0},
		{Verification{File: "h", DB: "a", Transactions: 1, Proofs: []Proof{{Level: "si", Verdict: Verified},
			{Level: "ser", Verdict: Refuted, Line: 7, Transaction: "a#1", Operation: &op, Message: "reads 1"}, {Level: "sser", Verdict: Missing, Message: "no proof"}}}, 1},
		{Verification{File: "h", Proofs: []Proof{{Level: "sser", Verdict: Missing, Message: "no proof"}}}, 2},
		{Verification{File: "h"}, 2},
		{Verification{File: "h", Error: &Error{Line: 3, Message: "no record"}}, 2},
		{Verification{File: "h", Unknown: &Unknown{Reason: "timeout"}}, 3},
	} {
		tc.v.Certificate = "c"
		if got := tc.v.Exit(); got != tc.exit {
			t.Errorf("%+v: exit %d, want %d", tc.v, got, tc.exit)
		}
		if err := w.Verification(&tc.v); err != nil {
			t.Fatal(err)
		}
	}
	want := `h: 2 transactions, 1 proof in c
  si        verified
h (a): 1 transaction, 2 proofs in c
  si        verified
  ser       REFUTED   line 7: a#1, operation 2: reads 1
  sser      missing   no proof
h: 0 transactions, 0 proofs in c
  sser      missing   no proof
h: c proves nothing of it: no level
h:3: can't be judged: no record
h: unknown: timeout
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestNothingReachesTheTerminal: what files, databases and records are called is shown, but
// does nothing to the terminal that shows it.
func TestNothingReachesTheTerminal(t *testing.T) {
	const evil = "d\x1b[2J\x9b\r\u202e"
	h := full()
	h.File, h.DB = evil, evil
	for i := range h.Results {
		h.Results[i].Notes = []string{evil}
	}
	broken := History{File: evil, DB: evil, Error: &Error{Line: 3, Field: evil, Message: evil}}
	endless := History{File: evil, DB: evil, Limit: "timeout"}
	var b strings.Builder
	out := Text{W: &b}
	for _, h := range []History{h, all(h), broken, endless} {
		if err := out.History(&h); err != nil {
			t.Fatal(err)
		}
		if err := out.Line(&h); err != nil {
			t.Fatal(err)
		}
	}
	for _, v := range []Verification{
		{File: evil, DB: evil, Certificate: evil},
		{File: evil, DB: evil, Certificate: evil, Unknown: &Unknown{Reason: "timeout"}},
		{File: evil, DB: evil, Certificate: evil, Error: broken.Error},
		{File: evil, DB: evil, Certificate: evil, Proofs: []Proof{{Level: "si", Verdict: Refuted, Transaction: evil, Message: evil}}},
	} {
		if err := out.Verification(&v); err != nil {
			t.Fatal(err)
		}
	}
	if got := b.String(); strings.ContainsAny(got, "\x1b\r\u202e") || strings.Contains(got, "\x9b") || !strings.Contains(got, `d\x1b[2J\x9b\r\u202e (d\x1b[2J\x9b\r\u202e)`) {
		t.Errorf("%q", got)
	}
}
