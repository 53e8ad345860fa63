package judge

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/cmd/monitor/report"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/codec"
	"github.com/isowatch/isowatch/ingest/generate"
	"github.com/isowatch/isowatch/ingest/predicate"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/record/packed"
	"github.com/isowatch/isowatch/internal/lab/oracle"
	"github.com/isowatch/isowatch/internal/lab/oracle/script"
	"github.com/isowatch/isowatch/internal/lab/oracle/tiny"
	"github.com/isowatch/isowatch/internal/lab/race"
)

// TestPredicatesByDefinition: what the engine says of a history whose predicates have become registers is what the oracle
// says of the history itself, by the definition of a predicate read.
func TestPredicatesByDefinition(t *testing.T) {
	found := map[verdict.Level]map[string]int{}
	for seed := range uint64(race.Few(500, 4000)) {
		rng := rand.New(rand.NewPCG(seed, 77))
		txns := tiny.Predicates(rng, 4)
		if seed%3 == 0 {
			tiny.Log(rng, txns)
		}
		absent := record.InitialAbsent
		header := record.Header{Initial: &absent}
		h, notes := judgedBy(t, txns, header, seed%2 == 0)
		if strings.Contains(notes, "which no row has") { // all rows that there are have one column
			continue
		}
		if strings.Contains(notes, "predicates") {
			t.Fatalf("seed %d: %v", seed, notes)
		}
		defined := oracle.Check(txns, record.Assumptions{}.Override(header))
		for _, r := range h.Results {
			l, _ := verdict.ParseLevel(r.Level)
			if found[l] == nil {
				found[l] = map[string]int{}
			}
			found[l][r.Verdict]++
			holds, judged := defined[l]
			if want := outcome(holds, judged).String(); r.Verdict != want && (l != verdict.RC || r.Verdict != "unknown") && l != verdict.LIN {
				t.Fatalf("seed %d, %v: %v, by definition %v\n%s", seed, l, r.Verdict, want, script.Format(script.Script{Header: header, Txns: txns}))
			}
			if r.Verdict == "violated" && (len(r.Anomalies) == 0 || slices.Contains(r.Notes, report.Unproved(1)) || slices.Contains(r.Notes, report.Unproved(2))) {
				t.Fatalf("seed %d, %v: no proof: %v\n%s", seed, l, r, script.Format(script.Script{Header: header, Txns: txns}))
			}
			for _, a := range r.Anomalies {
				if broken, _ := verdict.ParseLevel(a.Level); defined[broken] {
					t.Fatalf("seed %d, %v: %s is told to break %v, which holds\n%s", seed, l, a.Name, broken, script.Format(script.Script{Header: header, Txns: txns}))
				}
			}
		}
	}
	for l, n := range found {
		if l != verdict.LIN && (n["satisfied"] < 100 || n["violated"] < 50 || n["unknown"] > 20 || n["unknown"] > 0 && l != verdict.RC) {
			t.Errorf("%v: %v", l, n)
		}
	}
}

// TestCommitsByDefinition: an order of commits is found exactly where g1 holds.
func TestCommitsByDefinition(t *testing.T) {
	found := map[bool]int{}
	for seed := range uint64(race.Few(300, 3000)) {
		txns := tiny.Predicates(rand.New(rand.NewPCG(seed, 99)), 4)
		h, err := predicate.Read(txns, nil, predicate.Unasked{}, func() bool { return false })
		if err != nil || included(txns) == 0 || packed.Of(txns).Summary().Predicates == 0 {
			continue
		}
		absent := record.InitialAbsent
		holds := oracle.Check(txns, record.Assumptions{}.Override(record.Header{Initial: &absent}))[verdict.G1]
		if order, _ := h.Order(predicate.Rules{Level: verdict.G1, Sessions: true}); holds != (order != nil) {
			t.Fatalf("seed %d: %v, an order: %v", seed, holds, order)
		}
		found[holds]++
	}
	if found[true] < 200 || found[false] < 20 {
		t.Error(found)
	}
}

// judged is what check says of a history at all levels, with every proof replayed, and its notes.
func judged(t *testing.T, txns []record.Transaction, header record.Header) (h report.History, notes string) {
	t.Helper()
	return judgedBy(t, txns, header, true)
}

// judgedBy is judged; without replay, rc and g1 may be decided by what nobody has a proof of.
func judgedBy(t *testing.T, txns []record.Transaction, header record.Header, replay bool) (h report.History, notes string) {
	t.Helper()
	q := Question{Records: packed.Of(txns), Assume: record.Assumptions{}.Override(header), Levels: verdict.Levels(), DB: "d", All: true, AnomaliesMax: 2}
	expanded, err := Expanded(q.Records, q.Assume)
	if err != nil {
		t.Fatal(err)
	}
	q.Txns = expanded.Transactions()
	q.Replay = replay && expanded.Summary().Predicates == 0 // they are judged
	if err := Check(q, &h); err != nil {
		t.Fatalf("%v\n%s", err, script.Format(script.Script{Header: header, Txns: txns}))
	}
	for _, r := range h.Results {
		notes += strings.Join(r.Notes, "\n")
	}
	return h, notes
}

// TestNoWeakerLevelIsClaimed: what breaks ra, but not what is weaker, as the rows of a statement have no order, or a
// predicate write need not have hit what it met, is told to break nothing weaker, though its records by themselves do.
func TestNoWeakerLevelIsClaimed(t *testing.T) {
	for _, lines := range []string{
		`{"session":"a","seq":1,"status":"committed","ops":[["w","t:2",{"v":3}]]}
{"session":"b","seq":1,"status":"committed","ops":[["rp",{"table":"t","where":"v > 2"},{"t:1":{"v":3},"t:2":{"v":3}}]]}
{"session":"a","seq":2,"status":"committed","ops":[["w","t:1",{"v":3}],["w","t:2",{"v":1}]]}
`,
		`{"session":"a","seq":1,"status":"committed","ops":[["w","t:2",{"v":1}]]}
{"session":"a","seq":2,"status":"committed","ops":[["wp",{"table":"t","where":"v != 3"},{"set":{"v":2}}],["rp",{"table":"t","where":"v != 0"},{}]]}
`,
	} {
		absent := record.InitialAbsent
		h, _ := judged(t, decoded(t, lines), record.Header{Initial: &absent})
		for _, r := range h.Results {
			for _, a := range r.Anomalies {
				if strings.Contains(a.Explanation, "ead committed would allow") || strings.Contains(lines, "wp") &&
					strings.Contains(a.Explanation, "would allow") {
					t.Errorf("%s: %s: it is not known what weaker levels would allow:\n%s", r.Level, a.Name, a.Explanation)
				}
				if weakest, _ := verdict.ParseLevel(a.Alert.Weakest); !weakest.Implies(verdict.RA) || a.Alert.Breaks[0] != a.Level {
					t.Errorf("%s: %s of %s breaks %v, the weakest is %s", r.Level, a.Name, a.Level, a.Alert.Breaks, a.Alert.Weakest)
				}
			}
			l, _ := verdict.ParseLevel(r.Level)
			if l != verdict.LIN && l.Implies(verdict.RA) != (r.Verdict == "violated") {
				t.Errorf("%s: %s", r.Level, r.Verdict)
			}
		}
	}
}

// TestWhatAWriteLeavesIsOfWhatItMet: a predicate write that sets some columns is supposed to have met a row as who is of
// unknown outcome left it. Where that one can't have taken effect, no order without it explains what was left.
func TestWhatAWriteLeavesIsOfWhatItMet(t *testing.T) {
	lines := `{"session":"a","seq":1,"status":"committed","ops":[["w","t:1",{"v":2,"s":"a"}],["w","t:2",{"v":0,"s":"a"}]]}
{"session":"b","seq":1,"status":"unknown","ops":[["wp",{"table":"t","where":"v == 0"},{"set":{"v":1}},["t:2"]],["rp",{"table":"t","where":"v == 2"},{}]]}
{"session":"c","seq":1,"status":"committed","ops":[["wp",{"table":"t","where":"v < 2"},{"set":{"s":"b"}}],["rp",{"table":"t","where":"v < 2"},{"t:2":{"v":1}}]]}
`
	absent := record.InitialAbsent
	h, _ := judged(t, decoded(t, lines), record.Header{Initial: &absent})
	for _, r := range h.Results {
		if l, _ := verdict.ParseLevel(r.Level); l.Implies(verdict.RA) && r.Verdict == "satisfied" {
			t.Errorf("%s: satisfied, though nobody left v = 1 in t:2", r.Level)
		}
	}
}

// TestHitTwice: a row that a predicate write names twice was hit once, and does not stand for one that it missed.
func TestHitTwice(t *testing.T) {
	absent := record.InitialAbsent
	for hits, want := range map[string]string{`["t:1","t:2"]`: "satisfied", `["t:2","t:1","t:2"]`: "satisfied",
		`["t:1"]`: "violated", `["t:1","t:1"]`: "violated", `["t:1","t:1","t:1"]`: "violated"} {
		lines := `{"session":"a","status":"committed","ops":[["w","t:1",{"v":1}],["w","t:2",{"v":1}]]}
{"session":"a","status":"committed","ops":[["wp",{"table":"t","where":"v == 1"},{"set":{"v":2}},` + hits + `]]}
`
		h, _ := judged(t, decoded(t, lines), record.Header{Initial: &absent})
		for _, r := range h.Results {
			if r.Level == "si" && r.Verdict != want {
				t.Errorf("%s: %s, want %s", hits, r.Verdict, want)
			}
		}
	}
}

// TestColumnsThatNobodyNamed: of a table of which somebody unseen may write rows, columns that statements named may be
// some of them, until a row was written or read by its key.
func TestColumnsThatNobodyNamed(t *testing.T) {
	partial := record.CoveragePartial
	statements := `{"session":"a","status":"committed","ops":[["wp",{"table":"t","where":"a < 9"},{"set":{"a":1}},["t:1","t:2"]]]}
{"session":"a","status":"committed","ops":[["wp",{"table":"t","where":"a < 9"},{"set":{"a":2}},["t:1","t:2"]]]}
{"session":"b","status":"committed","ops":[["rp",{"table":"t","where":"a < 9"},{"t:1":{"a":1},"t:2":{"a":2}}]]}
`
	for row, want := range map[string]string{`null`: "unknown", `{"a":10}`: "violated", `{"a":10,"b":1}`: "unknown"} {
		lines := `{"session":"a","status":"committed","ops":[["w","t:3",` + row + `]]}` + "\n" + statements
		h, _ := judged(t, decoded(t, lines), record.Header{Coverage: &partial})
		for _, r := range h.Results {
			if r.Level == "ra" && r.Verdict != want {
				t.Errorf("beside %s: %s, want %s", row, r.Verdict, want)
			}
		}
	}
}

// TestTablesWithin: of a key that may be a row of two tables nothing is said, whichever of them is named first.
func TestTablesWithin(t *testing.T) {
	absent := record.InitialAbsent
	written := `{"session":"a","status":"committed","ops":[["w","a:b:1",{"v":1}]]}` + "\n"
	inner := `{"session":"a","status":"committed","ops":[["rp",{"table":"a:b","where":"v == 1"},{}]]}` + "\n"
	outer := `{"session":"a","status":"committed","ops":[["rp",{"table":"a","where":"v == 2"},{}]]}` + "\n"
	for lines, want := range map[string]string{written + inner: "violated", written + outer: "satisfied",
		written + inner + outer: "unknown", written + outer + inner: "unknown"} {
		h, _ := judged(t, decoded(t, lines), record.Header{Initial: &absent})
		for _, r := range h.Results {
			if r.Level == "si" && r.Verdict != want {
				t.Errorf("%s: %s, want %s", lines, r.Verdict, want)
			}
		}
	}
}

// TestStopBesidePredicates: whenever it is stopped, what is told of predicates has the records that show it; and one level
// that has had its share of the time leaves to the others records of all that is asked for.
func TestStopBesidePredicates(t *testing.T) {
	absent := record.InitialAbsent
	header := record.Header{Initial: &absent}
	for _, seed := range []uint64{12, 92} {
		txns := tiny.Predicates(rand.New(rand.NewPCG(seed, 79)), 4)
		for n, stopped := 0, true; stopped; n++ {
			asked := 0
			q := Question{Records: packed.Of(txns), Assume: record.Assumptions{}.Override(header), AnomaliesMax: 10,
				Levels: []verdict.Level{verdict.SI, verdict.SER}}
			q.Stop = func() verdict.Reason {
				if asked++; asked > n {
					return verdict.Timeout
				}
				return verdict.NoReason
			}
			var h report.History
			if err := Check(q, &h); err != nil {
				t.Fatal(err)
			}
			stopped = asked > n
			for _, r := range h.Results {
				for _, a := range r.Anomalies {
					if len(a.History) < 2 {
						t.Fatalf("seed %d, stopped after %d: %s of %s has no records, but %v", seed, n, a.Name, r.Level, a.Transactions)
					}
				}
			}
		}
		q := Question{Records: packed.Of(txns), Assume: record.Assumptions{}.Override(header)}
		q.fillIn()
		q.seed()
		e, _ := q.feed(&work{levels: []verdict.Level{verdict.SER}})
		results := e.Close()
		q.share, q.pause = time.Now(), func() bool { t.Errorf("seed %d: others have their turn", seed); return false }
		if added := q.unexplained(results); added != (seed == 12) || q.Records.Len() != len(txns) {
			t.Errorf("seed %d: %v, %d records of %d", seed, added, q.Records.Len(), len(txns))
		}
	}
}

// TestTooMuchOfPredicates: where predicates come to more operations than there may be a level is as it is by definition, or unknown.
func TestTooMuchOfPredicates(t *testing.T) {
	open, told := 0, 0
	for seed := range uint64(race.Few(400, 4000)) {
		txns := tiny.Predicates(rand.New(rand.NewPCG(seed, 79)), 4)
		absent := record.InitialAbsent
		header := record.Header{Initial: &absent}
		q := Question{Records: packed.Of(txns), Assume: record.Assumptions{}.Override(header), Levels: verdict.Levels(), DB: "d", All: true, itemsMax: 4 + int(seed%10)}
		var h report.History
		if err := Check(q, &h); err != nil {
			t.Fatal(err)
		}
		defined := oracle.Check(txns, record.Assumptions{}.Override(header))
		for _, r := range h.Results {
			l, _ := verdict.ParseLevel(r.Level)
			switch holds, judged := defined[l]; {
			case l == verdict.LIN:
			case r.Verdict == "unknown":
				if open++; l != verdict.RC && !strings.Contains(strings.Join(r.Notes, "\n"), "predicates are not judged") {
					t.Fatalf("seed %d, %v: it is not said why: %v", seed, l, r)
				}
			case r.Verdict != outcome(holds, judged).String():
				t.Fatalf("seed %d, %v: %v\n%s", seed, l, r, script.Format(script.Script{Header: header, Txns: txns}))
			default:
				told++
			}
		}
	}
	if open < 80 || told < 100 {
		t.Errorf("%d unknown, %d told", open, told)
	}
}

// TestSupposedHits: where it is not known which rows predicate writes hit, a level is satisfied only if some rows explain it by
// definition, and violated only if none do.
func TestSupposedHits(t *testing.T) {
	satisfied, violated, open := 0, 0, 0
	for seed := range uint64(race.Few(40, 300)) {
		txns := tiny.Predicates(rand.New(rand.NewPCG(seed, 78)), 4)
		var unknown []*record.Op
		for i := range txns {
			for j := range txns[i].Ops {
				if op := &txns[i].Ops[j]; op.Kind == record.PredicateWrite {
					unknown = append(unknown, op)
					members := op.Value.Fields()
					delete(members, record.Hit)
					op.Value = record.ObjectOf(members)
				}
			}
		}
		if len(unknown) == 0 || len(unknown) > 2 {
			continue
		}
		absent := record.InitialAbsent
		header := record.Header{Initial: &absent}
		h, _ := judged(t, txns, header)
		some := map[verdict.Level]bool{}
		for hits := range 1 << (3 * len(unknown)) {
			for i, op := range unknown {
				members, text := op.Value.Fields(), "["
				for row := range 3 {
					if hits>>(3*i+row)&1 != 0 {
						text += fmt.Sprintf(`"t:%d",`, row+1)
					}
				}
				members[record.Hit] = record.Value{Kind: record.KindList, Text: strings.TrimSuffix(text, ",") + "]"}
				op.Value = record.ObjectOf(members)
			}
			for l, holds := range oracle.Check(txns, record.Assumptions{}.Override(header)) {
				some[l] = some[l] || holds
			}
		}
		for _, r := range h.Results {
			l, _ := verdict.ParseLevel(r.Level)
			for _, a := range r.Anomalies {
				for _, name := range append(a.Alert.Breaks, a.Alert.Weakest) {
					if broken, _ := verdict.ParseLevel(name); some[broken] {
						t.Fatalf("seed %d: %s is told to break %v, by definition it holds\n%s", seed, a.Name, broken,
							script.Format(script.Script{Header: header, Txns: txns}))
					}
				}
			}
			switch {
			case l == verdict.LIN:
			case r.Verdict == "satisfied" && some[l]:
				satisfied++
			case r.Verdict == "violated" && !some[l]:
				violated++
			case r.Verdict == "satisfied", r.Verdict == "violated" && some[l]:
				t.Fatalf("seed %d, %v: %v, by definition %v\n%s", seed, l, r.Verdict, some[l], script.Format(script.Script{Header: header, Txns: txns}))
			case r.Verdict == "unknown" && some[l]:
				open++
			}
		}
	}
	if t.Logf("%d satisfied, %d violated, %d left open that some rows explain", satisfied, violated, open); satisfied < 10*open || violated < 20 {
		t.Errorf("%d satisfied, %d violated, %d left open that some rows explain", satisfied, violated, open)
	}
}

// TestFigure1 is the history of Vbox's Figure 1: all rows that are 2 become 3, and then one of two that became 2 together is
// read, and not the other. It is not known which of them was hit.
func TestFigure1(t *testing.T) {
	const writes = `{"session":"a","seq":1,"status":"committed","ops":[["w","t:x",{"v":1}],["w","t:y",{"v":1}]]}
{"session":"b","seq":1,"status":"committed","ops":[["w","t:x",{"v":2}],["w","t:y",{"v":2}]]}
{"session":"c","seq":1,"status":"committed","ops":[["wp",{"table":"t","where":"v == 2"},{"set":{"v":3}}]]}
`
	const read = `{"session":"d","seq":1,"status":"committed","ops":[["rp",{"table":"t","where":"v == 2"},{"t:x":{"v":2}}]]}
`
	absent := record.InitialAbsent
	for history, want := range map[string]string{writes: "satisfied", writes + read: "violated"} {
		q := Question{Records: packed.Of(decoded(t, history)), Assume: record.Assumptions{}.Override(record.Header{Initial: &absent}), Levels: []verdict.Level{verdict.SER}, DB: "d"}
		var h report.History
		if err := Check(q, &h); err != nil {
			t.Fatal(err)
		}
		r := h.Results[0]
		if r.Verdict != want || want == "violated" && (len(r.Anomalies) == 0 || r.Anomalies[0].Name != "phantom") {
			t.Errorf("%v, want %s\n%s", r, want, history)
		}
	}
}

// TestPredicateWriteSkew: two look for the same rows, and each adds one that the other did not see. It is told of rows and the condition.
func TestPredicateWriteSkew(t *testing.T) {
	txns := decoded(t, `{"session":"a","seq":1,"status":"committed","ops":[["w","shift:1",{"on":1}]]}
{"session":"b","seq":1,"status":"committed","ops":[["rp",{"table":"shift","where":"on = 1"},{"shift:1":{"on":1}}],["w","shift:2",{"on":1}]]}
{"session":"c","seq":1,"status":"committed","ops":[["rp",{"table":"shift","where":"on = 1"},{"shift:1":{"on":1}}],["w","shift:3",{"on":1}]]}
`)
	absent := record.InitialAbsent
	q := Question{Records: packed.Of(txns), Assume: record.Assumptions{}.Override(record.Header{Initial: &absent}), Levels: []verdict.Level{verdict.SI, verdict.SER}, DB: "d"}
	var h report.History
	if err := Check(q, &h); err != nil {
		t.Fatal(err)
	}
	if h.Results[0].Verdict != "satisfied" || len(h.Results[1].Anomalies) != 1 {
		t.Fatal(h.Results)
	}
	a := h.Results[1].Anomalies[0].Alert
	if want := `b#1 looked for rows where "on == 1" and found 1; a second, shift:3, which c#1 had made one of them, was not there`; !strings.Contains(a.Summary, want) || a.Name != "predicate-write-skew" {
		t.Errorf("%v\n%s\nwant\n%s", a.Aliases, a.Summary, want)
	}
}

// decoded are records, one a line.
func decoded(t *testing.T, lines string) (txns []record.Transaction) {
	t.Helper()
	for line := range strings.Lines(lines) {
		var x record.Transaction
		if err := codec.New(codec.Options{}).Decode([]byte(line), &x); err != nil {
			t.Fatal(err)
		}
		txns = append(txns, x)
	}
	return txns
}

// TestPartFindsItsRecords: whatever breaks a level, also one that was not judged as a weaker one is broken, is of records
// that are found, and prove it, whenever it is stopped.
func TestPartFindsItsRecords(t *testing.T) {
	inferred := 0
	for seed := range uint64(race.Few(150, 10000)) {
		r := rand.New(rand.NewPCG(seed, 78))
		txns := tiny.Predicates(r, 4)
		levels := slices.DeleteFunc(verdict.Levels(), func(l verdict.Level) bool { return l == verdict.LIN || r.IntN(3) == 0 })
		left := r.IntN(60)
		stop := func() verdict.Reason {
			if left--; left < 0 {
				return verdict.Timeout
			}
			return verdict.NoReason
		}
		q := Question{Records: packed.Of(txns), Levels: levels, AnomaliesMax: 1, Stop: stop, Assume: record.Assumptions{Initial: record.InitialAbsent, Coverage: record.CoverageComplete},
			Unasked: predicate.Unasked{Txn: func(int) bool { return false }}}
		if seed%2 > 0 { // with few of them left out, as where they are open
			q.Unasked = predicate.Unasked{Txn: func(x int) bool { return uint64(x)*(seed+1)%7 == 0 },
				Key: func(key string) bool { return uint64(key[len(key)-1])*(seed+1)%7 == 0 }}
		}
		results, find, _ := q.Part()
		for i, res := range results {
			for _, v := range res.Violations {
				for _, id := range v.Evidence {
					if _, ok := find(i)(id); !ok {
						t.Fatalf("seed %d: %v at %v names a transaction that is not there", seed, v.Kind, res.Level)
					}
				}
				p := NewProver(nil, 1<<40)
				if a, err := alerts.New(v, alerts.Context{DB: "d", Levels: levels, Assumptions: q.Assume, Lookup: find(i), Judge: p.Judge, Find: p.Find}); err != nil {
					t.Fatalf("seed %d: %s at %v: %v\n%s\n%+v", seed, a.Name, res.Level, err, script.Format(script.Script{Txns: txns}), v)
				}
				if v.Level != res.Level {
					inferred++
				}
			}
		}
	}
	if inferred == 0 {
		t.Error("no level was broken as another is")
	}
}

// TestOrderOfPredicates: histories of which the times say nearly in which order they ran are decided, and no register is made.
func TestOrderOfPredicates(t *testing.T) {
	for _, c := range []struct {
		at    verdict.Level
		asked []verdict.Level
		of    generate.Workload
		timed bool
		skew  time.Duration
	}{
		{verdict.SSER, []verdict.Level{verdict.SSER, verdict.SER}, generate.Predicates, true, 0},
		{verdict.SSER, []verdict.Level{verdict.SSER}, generate.Predicates, true, time.Minute},
		{verdict.SER, []verdict.Level{verdict.SER, verdict.CC}, generate.Predicates, true, 0},
		{verdict.SSER, []verdict.Level{verdict.SSER}, generate.Booking, true, 0},
		{verdict.SSER, []verdict.Level{verdict.SSER}, generate.Unique, true, 0},
		{verdict.SSER, []verdict.Level{verdict.SER, verdict.SI}, generate.Predicates, false, 0},
		{verdict.StrongSI, []verdict.Level{verdict.StrongSI, verdict.PC}, generate.Predicates, true, 0},
		{verdict.SI, []verdict.Level{verdict.SI, verdict.CC}, generate.Predicates, true, 0},
		{verdict.SI, []verdict.Level{verdict.SI}, generate.Booking, true, 0},
	} {
		for seed := range uint64(race.Few(2, 8)) {
			g, err := generate.New(generate.Config{Level: c.at, Workload: c.of, Transactions: 400, Keys: 300, Seed: seed, Operations: 2, NoTimes: !c.timed, AbortRate: 0.05, UnknownRate: 0.01})
			if err != nil {
				t.Fatal(err)
			}
			absent, skew := record.InitialAbsent, int64(c.skew)
			q := Question{Records: packed.Of(slices.Collect(g.Transactions())), Assume: record.Assumptions{}.Override(record.Header{Initial: &absent, MaxSkew: &skew}), Levels: c.asked, DB: "d"}
			var h report.History
			if err := Check(q, &h); err != nil {
				t.Fatal(err)
			}
			for _, r := range h.Results {
				if r.Verdict != "satisfied" || r.Stats.PhaseSeconds.Construct > 0 {
					t.Errorf("seed %d: %+v: %+v", seed, c, r)
				}
			}
		}
	}
}

// TestTwoThatBookOneSpan: where each of two missed the other's booking, that is what is told, whatever else breaks the
// level with fewer of the reads.
func TestTwoThatBookOneSpan(t *testing.T) {
	for seed := range uint64(race.Few(1, 4)) {
		g, err := generate.New(generate.Config{Level: verdict.SI, Workload: generate.Booking, Transactions: 500, Keys: 12, Operations: 2, Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		absent := record.InitialAbsent
		q := Question{Records: packed.Of(slices.Collect(g.Transactions())), Assume: record.Assumptions{}.Override(record.Header{Initial: &absent}), Levels: []verdict.Level{verdict.SER}, AnomaliesMax: 10, DB: "d"}
		var h report.History
		if err := Check(q, &h); err != nil {
			t.Fatal(err)
		}
		skews := 0
		for _, a := range h.Results[0].Anomalies {
			if a.Name == "predicate-write-skew" {
				skews++
			}
		}
		if skews < 5 {
			t.Errorf("seed %d: %s with %d write skews among %d anomalies", seed, h.Results[0].Verdict, skews, len(h.Results[0].Anomalies))
		}
	}
}

// TestPartIsBounded: how often it is asked whether to stop, and how many operations there are, is bounded where all of
// a history is judged as well as where not all was asked.
func TestPartIsBounded(t *testing.T) {
	g, err := generate.New(generate.Config{Level: verdict.PC, Workload: generate.Predicates, ReadShare: 0.5, Operations: 1, Transactions: 1500, Keys: 500, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	records := packed.Of(slices.Collect(g.Transactions()))
	for _, unasked := range []predicate.Unasked{{}, {Txn: func(int) bool { return false }}} {
		asked := 0
		q := Question{Records: records, Levels: []verdict.Level{verdict.RC, verdict.SI}, AnomaliesMax: 1, BytesMax: 8 << 20, Unasked: unasked, Assume: record.Assumptions{Initial: record.InitialAbsent, Coverage: record.CoverageComplete},
			Stop: func() verdict.Reason { asked++; return verdict.NoReason }}
		results, _, _ := q.Part()
		if len(results) != 2 || results[1].Outcome != verdict.Unknown || asked > partAsks+records.Len()/2 {
			t.Errorf("all: %v: asked %d times: %.300v", !unasked.Any(), asked, results)
		}
	}
}

// TestWhatStatementsOfSeveralRowsReadIsNoEvidence: what breaks rc does so without statements that read several rows, so
// that nobody is said to have read what they did: b read a row that c wrote, of whom nothing is told.
func TestWhatStatementsOfSeveralRowsReadIsNoEvidence(t *testing.T) {
	one := `["r","t:2",{"v":1}],["r","t:1",null]`
	several := `["rp",{"table":"t","where":"v > 0"},{"t:1":{"v":6},"t:2":{"v":1}}]`
	for _, ops := range []string{one + "," + several, several + "," + one} {
		absent := record.InitialAbsent
		txns := decoded(t, `{"session":"a","seq":1,"status":"committed","ops":[["w","t:1",{"v":1}],["w","t:2",{"v":1}]]}
{"session":"c","seq":1,"status":"committed","ops":[["w","t:1",{"v":6}]]}
{"session":"b","seq":1,"status":"committed","ops":[`+ops+`]}
`)
		var h report.History
		q := Question{Records: packed.Of(txns), Assume: record.Assumptions{}.Override(record.Header{Initial: &absent}),
			Levels: []verdict.Level{verdict.RC}, DB: "d", AnomaliesMax: 2}
		if err := Check(q, &h); err != nil {
			t.Fatal(err)
		}
		r := h.Results[0]
		if r.Verdict != "violated" || len(r.Anomalies) == 0 || slices.Contains(r.Notes, report.Unproved(1)) {
			t.Errorf("%s: %v", ops, r)
		}
		for _, a := range r.Anomalies {
			if a.Name != "non-monotonic-read" {
				t.Errorf("%s: it is called %s:\n%s\n%s", ops, a.Name, a.Explanation, a.History)
			}
		}
	}
}

// TestTablesByDefinition: of tables of which somebody unseen may have written rows, what is told is so, and what is
// satisfied is, by definition, whoever may have written what; beside tables of which all is known.
func TestTablesByDefinition(t *testing.T) {
	found := map[string]map[string]int{}
	partial, complete, absent := record.CoveragePartial, record.CoverageComplete, record.InitialAbsent
	for seed := range uint64(race.Few(400, 3000)) {
		txns := split(tiny.Predicates(rand.New(rand.NewPCG(seed, 78)), 3))
		// Three rows take the oracle long; without predicates the definition of null is another one.
		if strings.Contains(fmt.Sprint(txns), "t:3") || packed.Of(txns).Summary().Predicates == 0 {
			continue
		}
		header := map[uint64]record.Header{
			0: {Coverage: &partial},
			1: {Initial: &absent, Tables: record.Tables{"t": partial}},
			2: {Coverage: &partial, Tables: record.Tables{"u": complete}},
			3: {Initial: &absent, Tables: record.Tables{"t": partial, "u": partial}},
		}[seed%4]
		if seed%3 > 0 {
			header.UniqueValues = new(true)
		}
		kind := fmt.Sprintf("%d, unique %v", seed%4, seed%3 > 0)
		if found[kind] == nil {
			found[kind] = map[string]int{}
		}
		h, notes := judged(t, txns, header)
		if strings.Contains(notes, "predicates are not judged") {
			found[kind]["none"]++
			continue
		}
		opt := record.Assumptions{}.Override(header)
		for _, r := range h.Results {
			l, _ := verdict.ParseLevel(r.Level)
			if l == verdict.LIN {
				continue
			}
			found[kind][r.Verdict]++
			at := []verdict.Level{l}
			if !l.Implies(verdict.PC) { // what breaks a weak level breaks what implies it
				at = []verdict.Level{verdict.PC, verdict.SER}
			}
			for _, at := range at {
				holds := r.Verdict == "unknown" || oracle.Holds(at, txns, opt)
				if r.Verdict == "violated" && holds || r.Verdict == "satisfied" && !holds && at == l {
					t.Fatalf("seed %d, %v: %v, and by definition %v holds: %v\n%s", seed, l, r.Verdict, at, holds, script.Format(script.Script{Header: header, Txns: txns}))
				}
			}
			if r.Verdict == "violated" && (len(r.Anomalies) == 0 || slices.Contains(r.Notes, report.Unproved(1)) || slices.Contains(r.Notes, report.Unproved(2))) {
				t.Fatalf("seed %d, %v: no proof: %v\n%s", seed, l, r, script.Format(script.Script{Header: header, Txns: txns}))
			}
		}
	}
	t.Log(found)
	for kind, n := range found {
		if n["satisfied"] < 20 || strings.HasSuffix(kind, "true") && n["violated"] < 5 {
			t.Errorf("%s: %v", kind, n)
		}
	}
}

// split has one of three rows be in a table of its own, u.
func split(txns []record.Transaction) []record.Transaction {
	own := strings.NewReplacer("t:2", "u:2")
	for i := range txns {
		var ops []record.Op
		for _, op := range txns[i].Ops {
			if op.Key != "t" {
				op.Key = own.Replace(op.Key)
				ops = append(ops, op)
				continue
			}
			in := map[string]map[string]record.Value{"t": {}, "u": {}}
			var hit map[string][]byte
			for name, v := range op.Value.Fields() {
				key := own.Replace(name)
				switch {
				case op.Kind == record.PredicateRead:
					in[key[:1]][key] = v
				case name != record.Hit:
					in["t"][name], in["u"][name] = v, v
				default:
					hit = map[string][]byte{"t": []byte("["), "u": []byte("[")}
					for _, e := range v.Elements() {
						key := own.Replace(e.Text)
						if len(hit[key[:1]]) > 1 {
							hit[key[:1]] = append(hit[key[:1]], ',')
						}
						hit[key[:1]] = record.AppendJSONString(hit[key[:1]], key)
					}
				}
			}
			for _, table := range []string{"t", "u"} {
				if hit != nil {
					in[table][record.Hit] = record.Value{Kind: record.KindList, Text: string(append(hit[table], ']'))}
				}
				ops = append(ops, record.Op{Kind: op.Kind, Key: table, Where: op.Where, Value: record.ObjectOf(in[table])})
			}
		}
		txns[i].Ops = ops
	}
	return txns
}

// TestPlantedAmongManyRows: what is planted is found also where statements find so many rows that not all of it can be
// asked.
func TestPlantedAmongManyRows(t *testing.T) {
	for _, name := range generate.PredicateAnomalies() {
		q := question(t, generate.Config{Level: verdict.SER, Workload: generate.Predicates, Transactions: 800, Keys: 1000, Seed: 4,
			Initial: record.InitialAbsent, Anomaly: name}, verdict.SER)
		var h report.History
		if err := Check(q, &h); err != nil {
			t.Fatal(err)
		}
		if r := h.Results[0]; r.Verdict != "violated" || len(r.Anomalies) != 1 || r.Anomalies[0].Name != name {
			t.Errorf("%s: %s, %d anomalies, unproved: %v", name, r.Verdict, len(r.Anomalies), r.Notes)
		}
		q.Records = packed.Of(q.Txns)
		results, find, _ := q.Part() // as a stream asks, with few steps
		if r := results[0]; r.Outcome != verdict.Violated || len(r.Violations) != 1 {
			t.Errorf("%s: %v as a part, %d violations", name, r.Outcome, len(r.Violations))
		} else if x, ok := find(0)(r.Violations[0].Txns[0]); !ok || !slices.ContainsFunc(x.Ops, func(op record.Op) bool {
			return strings.HasPrefix(op.Key, "planted0")
		}) {
			t.Errorf("%s: a part tells of %v", name, x)
		}
	}
}

// TestAllLevelsOfManyRows: where statements find many rows, what is planted is told at each level that it breaks, the
// weaker ones hold, and no level takes the time of the others.
func TestAllLevelsOfManyRows(t *testing.T) {
	for name, weakest := range map[string]verdict.Level{"phantom": verdict.RA, "predicate-lost-update": verdict.SI,
		"predicate-write-skew": verdict.SER} {
		q := question(t, generate.Config{Level: verdict.SSER, Workload: generate.Predicates, Transactions: 200, Keys: 1000, Seed: 4,
			Initial: record.InitialAbsent, Anomaly: name}, verdict.Levels()...)
		q.All, q.Replay = true, false
		var h report.History
		if err := Check(q, &h); err != nil {
			t.Fatal(err)
		}
		for _, r := range h.Results {
			switch l, _ := verdict.ParseLevel(r.Level); {
			case l == verdict.LIN:
			case l.Implies(weakest):
				if r.Verdict != "violated" || !slices.ContainsFunc(r.Anomalies, func(a report.Anomaly) bool { return a.Name == name }) {
					t.Errorf("%s: %s is %s, by %d anomalies", name, r.Level, r.Verdict, len(r.Anomalies))
				}
			case r.Verdict != "satisfied" && (name != "phantom" || l == verdict.G1 || r.Verdict == "violated"): // of rc no order need be found
				t.Errorf("%s: %s is %s", name, r.Level, r.Verdict)
			}
		}
	}
}

// TestSeveralCausesAmongManyRows: what was planted twice is told twice.
func TestSeveralCausesAmongManyRows(t *testing.T) {
	for _, name := range generate.PredicateAnomalies() {
		q := question(t, generate.Config{Level: verdict.SER, Workload: generate.Predicates, Transactions: 800, Keys: 1000, Seed: 4,
			Initial: record.InitialAbsent, Anomaly: name}, verdict.SER)
		const planted, later = "planted0", 300
		for i := range len(q.Txns) - later {
			for _, op := range q.Txns[i].Ops { // likewise in another table
				if strings.HasPrefix(op.Key, planted) {
					op.Key = "again" + strings.TrimPrefix(op.Key, planted)
					if op.Kind == record.PredicateRead {
						rows := map[string]record.Value{}
						for key, row := range op.Value.Fields() {
							rows["again"+strings.TrimPrefix(key, planted)] = row
						}
						op.Value = record.ObjectOf(rows)
					}
					q.Txns[i+later].Ops = append(slices.Clone(q.Txns[i+later].Ops), op)
				}
			}
		}
		q.AnomaliesMax = 10
		var h report.History
		if err := Check(q, &h); err != nil {
			t.Fatal(err)
		}
		if r := h.Results[0]; r.Verdict != "violated" || len(r.Anomalies) != 2 || r.Anomalies[0].Name != name || r.Anomalies[1].Name != name {
			t.Errorf("%s: %s, %d anomalies", name, r.Verdict, len(r.Anomalies))
		}
	}
}
