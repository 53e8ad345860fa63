package predicate_test

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/codec"
	"github.com/isowatch/isowatch/ingest/generate"
	"github.com/isowatch/isowatch/ingest/predicate"
	"github.com/isowatch/isowatch/ingest/record"
)

// TestConditions runs testdata/conditions.txt.
func TestConditions(t *testing.T) {
	text, err := os.ReadFile("testdata/conditions.txt")
	if err != nil {
		t.Fatal(err)
	}
	var p *predicate.Predicate
	var failed error
	for i, line := range strings.Split(string(text), "\n") {
		said, inner := strings.CutPrefix(line, "  ")
		want, canonical := strings.CutPrefix(said, "= ")
		switch {
		case line == "" || line[0] == '#':
		case !inner:
			if p, failed = predicate.Parse(line); failed == nil {
				if again, err := predicate.Parse(p.String()); err != nil || again.String() != p.String() {
					t.Errorf("line %d: %q is read again as %v, %v", i+1, p, again, err)
				}
			}
		case strings.HasPrefix(said, "error: "):
			if got := fmt.Sprintf("error: %v", failed); got != said {
				t.Errorf("line %d: %s, want %s", i+1, got, said)
			}
		case failed != nil:
			t.Errorf("line %d: %v", i+1, failed)
		case canonical:
			if p.String() != want {
				t.Errorf("line %d: %q, want %q", i+1, p, want)
			}
		default:
			row, want, _ := strings.Cut(said, " yes")
			want = "yes" + want
			for _, answer := range []string{" no", " error: "} {
				if before, after, found := strings.Cut(said, answer); found {
					row, want = before, strings.TrimPrefix(answer, " ")+after
				}
			}
			got := "no"
			switch match, err := p.Match(value(t, row)); {
			case err != nil:
				got = "error: " + err.Error()
			case match:
				got = "yes"
			}
			if got != want {
				t.Errorf("line %d: %s of %s, want %s", i+1, got, row, want)
			}
		}
	}
}

// value is a value as a record has it.
func value(t *testing.T, text string) record.Value {
	t.Helper()
	var x record.Transaction
	if err := codec.New(codec.Options{}).Decode([]byte(`{"session":"s","status":"committed","ops":[["r","k",`+text+`]]}`), &x); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return x.Ops[0].Value
}

// FuzzParse: whatever is understood has a canonical text, which says the same.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"v == 2", "a = 1 or not (b in (1, 'x', null))", "name like 'a%' && n between 3 and 7", "`a b` is not null", "mod(n, 3) = 0 or a % -7 > 1", "true", `s == "\u0000"`, "(((((",
		`["and",["==",{"column":"a"},1],["not",["in",{"column":"b","mod":3},[0,"x",null]]],["between",{"column":"n"},3,7]]`,
		`["or",["like",{"column":"a b"},"x%"],["is-null",{"column":"v"}],true]`, `["and"]`, `["<",[1],{"mod":2}]`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := predicate.Parse(text)
		if err != nil {
			return
		}
		again, err := predicate.Parse(p.String())
		if err != nil || again.String() != p.String() {
			t.Fatalf("%q is %q, which is read again as %v, %v", text, p, again, err)
		}
		row := record.ObjectOf(map[string]record.Value{"a": record.Int(1), "v": record.String("x"), "n": {Kind: record.KindNumber, Text: "1.5"}})
		match, err := p.Match(row)
		match2, err2 := again.Match(row)
		if match != match2 || fmt.Sprint(err) != fmt.Sprint(err2) {
			t.Fatalf("%q: %v, %v; its canonical text %q: %v, %v", text, match, err, p, match2, err2)
		}
	})
}

// TestItems: what registers a small history comes to, and why others come to none.
func TestItems(t *testing.T) {
	for _, c := range []struct{ title, history, want string }{
		{"a row that is not returned and never matches is not read, nor is one of another table",
			`[["w","t:1",{"v":1}],["w","u:1",{"v":2}],["rp",{"table":"t","where":"v == 2"},{}]]`,
			`w t:1 {"v":1}, w u:1 {"v":2}`},
		{"a row that is returned with all its columns is read itself",
			`[["w","t:1",{"v":2}]] [["rp",{"table":"t","where":"v = 2"},{"t:1":{"v":2}}]]`,
			`w t:1 {"v":2}; r t:1 {"v":2}`},
		{"else its register",
			`[["w","t:1",{"v":2,"w":3}]] [["rp",{"table":"t","where":"v = 2"},{"t:1":{"w":3}}]]`,
			`w t:1 {"v":2,"w":3}, w t:1 (w) where v == 2 {"w":3}; r t:1 (w) where v == 2 {"w":3}`},
		{"one that matches and is not returned, too; who deletes it writes the register",
			`[["w","t:1",{"v":2}]] [["w","t:1",null]] [["rp",{"table":"t","where":"v = 2"},{}]]`,
			`w t:1 {"v":2}, w t:1 where v == 2 true; w t:1 null, w t:1 where v == 2 null; r t:1 where v == 2 null`},
		{"a predicate write reads and writes",
			`[["w","t:1",{"v":2}],["w","t:2",{"v":2}]] [["wp",{"table":"t","where":"v = 2"},{"set":{"v":3}},["t:1"]]]`,
			`w t:1 {"v":2}, w t:1 where v == 2 true, w t:2 {"v":2}, w t:2 where v == 2 true; ` +
				`r t:2 where v == 2 null, r t:1 where v == 2 true, w t:1 {"v":3}, w t:1 where v == 2 null`},
		{"of some columns, where the row is known",
			`[["w","t:1",{"v":2,"w":7}],["wp",{"table":"t","where":"v = 2"},{"set":{"v":3}},["t:1"]]]`,
			`w t:1 {"v":2,"w":7}, w t:1 where v == 2 true, r t:1 where v == 2 true, w t:1 {"v":3,"w":7}, w t:1 where v == 2 null`},
		{"or said",
			`[["wp",{"table":"t","where":"v = 2"},{"set":{"v":3}},["t:1"]],["w","t:1",{"v":3,"w":7}]]`,
			`r t:1 where v == 2 true, w t:1 {"v":3,"w":7}, w t:1 where v == 2 null`},
		{"else it is supposed", `[["w","t:1",{"v":2,"w":7}]] [["wp",{"table":"t","where":"v = 2"},{"set":{"v":3}},["t:1"]]]`,
			`supposed: w t:1 {"v":2,"w":7}; r t:1 {"v":2,"w":7}, w t:1 {"v":3,"w":7}`},
		{"as are rows that were hit and are not named", `[["w","t:1",{"v":2}]] [["wp",{"table":"t","where":"v = 2"},{"delete":true}]]`,
			`supposed: w t:1 {"v":2}, w t:1 where v == 2 true; r t:1 where v == 2 true, w t:1 null, w t:1 where v == 2 null`},
		{"unless none can be", `[["w","t:1",{"v":1}]] [["wp",{"table":"t","where":"v = 2"},{"delete":true}]]`, `w t:1 {"v":1}; `},
		{"a column that no row has", `[["w","t:1",{"v":1}],["rp",{"table":"t","where":"V = 2"},{}]]`,
			`transaction s0#0, operation 1: the condition "V == 2" names the column "V", which no row has`},
		{"a read that is not understood is left out",
			`[["w","t:1",{"v":1}],["rp",{"table":"t","where":"v ~ 2"},{}],["rp",{"table":"t","where":"v = 1"},{}]]`,
			`unread: w t:1 {"v":1}, w t:1 where v == 1 true, r t:1 where v == 1 null`},
		{"also of a transaction that does nothing else", `[["rp",{"table":"t","where":"v ~ 2"},{}]]`, `unread: `},
		{"a write that is not understood may be any", `[["wp",{"table":"t","where":"v ~ 2"},{"delete":true}]]`,
			`transaction s0#0, operation 0: the condition "v ~ 2": byte 3 of the condition: want the end, && or ||, found "~"`},
		{"a row of another table", `[["rp",{"table":"t","where":"true"},{"u:1":{}}]]`,
			`transaction s0#0, operation 0: the row "u:1" is none of table "t": their keys begin with "t:"`},
		{"a row that is no object", `[["w","t:1",5],["rp",{"table":"t","where":"true"},{}]]`,
			`transaction s0#0, operation 0: the row "t:1" held 5, which is no object with columns`},
		{"a list", `[["append","t:1",5],["rp",{"table":"t","where":"true"},{}]]`,
			`transaction s0#0, operation 0: "t:1" is a row of a table that has predicates, and a list`},
		{"values that can't be compared", `[["w","t:1",{"v":"a"}],["rp",{"table":"t","where":"v > 2"},{}]]`,
			`transaction s0#0, operation 1: v > 2: "a" and 2 can't be compared`},
		{"a key that is called as a register is",
			`[["w","t:1",{"v":2}],["w","t:1 where v == 2",{"v":2}],["rp",{"table":"t","where":"v = 2"},{}]]`,
			`transaction s0#0, operation 1: there is a key "t:1 where v == 2", which is how the register of a condition is called`},
	} {
		t.Run(c.title, func(t *testing.T) {
			var txns []record.Transaction
			for i, ops := range strings.Split(c.history, "]] [[") {
				ops = "[[" + strings.TrimSuffix(strings.TrimPrefix(ops, "[["), "]]") + "]]"
				var x record.Transaction
				line := fmt.Appendf(nil, `{"session":"s%d","seq":0,"status":"committed","ops":%s}`, i, ops)
				if err := codec.New(codec.Options{}).Decode(line, &x); err != nil {
					t.Fatal(err)
				}
				txns = append(txns, x)
			}
			items, err := predicate.Read(txns, nil, predicate.Unasked{}, func() bool { return false })
			got := fmt.Sprint(err)
			if err == nil {
				if err := items.AskAll(predicate.OperationsMax); err != nil {
					t.Fatal(err)
				}
				var all []string
				for x := range items.Transactions(false) {
					var ops []string
					for _, op := range x.Ops {
						ops = append(ops, fmt.Sprintf("%v %s %v", op.Kind, op.Key, op.Value))
						if predicate.IsRegister(op.Key) != strings.Contains(op.Key, " where ") {
							t.Errorf("%q", op.Key)
						}
					}
					all = append(all, strings.Join(ops, ", "))
				}
				got = strings.Join(all, "; ")
				if items.Supposed {
					got = "supposed: " + got
				}
				if items.Unread != nil {
					got = "unread: " + got
				}
			}
			if got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

// TestReadStops: nothing is said of what was not read to its end, whenever that is.
func TestReadStops(t *testing.T) {
	var txns []record.Transaction
	for range 2000 {
		rows := record.ObjectOf(map[string]record.Value{"t:1": record.ObjectOf(map[string]record.Value{"v": record.Int(1)})})
		txns = append(txns, record.Transaction{Status: record.Committed, Ops: []record.Op{{Kind: record.PredicateRead, Key: "t", Where: "v = 1", Value: rows}}})
	}
	asked := 0
	if _, err := predicate.Read(txns, nil, predicate.Unasked{}, func() bool { asked++; return false }); err != nil || asked < 10 {
		t.Fatal(err, asked)
	}
	for last := range asked {
		n := 0
		if h, err := predicate.Read(txns, nil, predicate.Unasked{}, func() bool { n++; return n > last }); err == nil {
			t.Fatalf("stopped after it was asked %d of %d times: %v", last, asked, h.Size())
		}
	}
}

// TestHitsOfWhatDidNotCommit: which rows a predicate write of an aborted transaction hit, as of one whose connection died
// within it, is nobody's concern.
// TestLongConditionsStop: stop is asked as often as there is work, also where that is in a long condition.
func TestLongConditionsStop(t *testing.T) {
	const rows, constants, reads = 100, 500, 6
	list := make([]string, constants)
	for i := range list {
		list[i] = fmt.Sprint(1000 + i)
	}
	where := fmt.Sprintf("v in (%s)", strings.Join(list, ", ")) // no index bounds it, and a half is compared with each
	wrote := record.Transaction{Session: "w", ID: "w", Status: record.Committed}
	for i := range rows {
		wrote.Ops = append(wrote.Ops, record.Op{Kind: record.Write, Key: fmt.Sprintf("t:%d", i), Value: record.Value{Kind: record.KindObject, Text: fmt.Sprintf(`{"v":%d.5}`, i)}})
	}
	txns := []record.Transaction{wrote}
	for i := range reads {
		name := fmt.Sprint("r", i)
		txns = append(txns, record.Transaction{Session: name, ID: name, Status: record.Committed, Ops: []record.Op{{Kind: record.Read, Key: "t:0", Value: wrote.Ops[0].Value}, {Kind: record.PredicateRead, Key: "t", Where: where, Value: record.ObjectOf(nil)}}})
	}
	asked, last := 0, -1
	h, err := predicate.Read(txns, nil, predicate.Unasked{}, func() bool { asked++; return asked == last })
	if err != nil {
		t.Fatal(err)
	}
	asked = 0
	if order, _ := h.Order(predicate.Rules{Level: verdict.PC}); order == nil || asked < rows*constants*reads/(1<<16) {
		t.Errorf("it was asked %d times", asked)
	}
	asked, last = 0, 2
	if order, _ := h.Order(predicate.Rules{Level: verdict.PC}); order != nil {
		t.Error("it went on")
	}
}

func TestHitsOfWhatDidNotCommit(t *testing.T) {
	var txns []record.Transaction
	for _, line := range []string{
		`{"session":"s","status":"committed","ops":[["w","t:1",{"v":2,"w":7}]]}`,
		`{"session":"s","status":"aborted","ops":[["wp",{"table":"t","where":"v = 2"},{"set":{"v":3}}]]}`,
		`{"session":"s","status":"committed","ops":[["rp",{"table":"t","where":"v = 2"},{"t:1":{"v":2}}]]}`,
	} {
		var x record.Transaction
		if err := codec.New(codec.Options{}).Decode([]byte(line), &x); err != nil {
			t.Fatal(err)
		}
		txns = append(txns, x)
	}
	for status, supposed := range map[record.Status]bool{record.Aborted: false, record.Unknown: true, record.Committed: true} {
		txns[1].Status = status
		items, err := predicate.Read(txns, nil, predicate.Unasked{}, func() bool { return false })
		if err != nil {
			t.Fatal(err)
		}
		if items.Supposed != supposed {
			t.Errorf("%v: supposed %t", status, items.Supposed)
		}
	}
}

// TestTooMuchIsNotAskedFor: an order that explains nothing has no more asked for than Most, and the last read more.
func TestTooMuchIsNotAskedFor(t *testing.T) {
	const rows, most = 100, 50
	row := record.ObjectOf(map[string]record.Value{"v": record.Int(1)})
	writer := record.Transaction{Status: record.Committed}
	for i := range rows {
		writer.Ops = append(writer.Ops, record.Op{Kind: record.Write, Key: fmt.Sprint("t:", i), Value: row})
	}
	txns, order := []record.Transaction{writer}, []verdict.Event{{Txn: 0, Commit: true}}
	for i := 1; i < 20; i++ {
		txns = append(txns, record.Transaction{Status: record.Committed, Ops: []record.Op{{Kind: record.PredicateRead, Key: "t", Where: fmt.Sprint("v < ", i+1), Value: record.ObjectOf(nil)}}})
		order = append(order, verdict.Event{Txn: verdict.TxnID(i), Commit: true})
	}
	for name, ask := range map[string]func(h *predicate.History){
		"of what an order does not explain": func(h *predicate.History) { h.Explain(verdict.SER, order) },
		"of all": func(h *predicate.History) {
			if h.AskAll(predicate.OperationsMax) == nil {
				t.Error("that all is too much is not told")
			}
		},
	} {
		h, err := predicate.Read(txns, nil, predicate.Unasked{}, func() bool { return false })
		if err != nil {
			t.Fatal(err)
		}
		h.Most = most
		if ask(h); h.Size() <= most || h.Size() > most+2 {
			t.Errorf("%s: %d operations, want little more than %d", name, h.Size(), most)
		}
	}
}

// Whoever waits to follow in an order of commits is looked at when what he waits for has come, and not each time something
// has; all that is looked at is counted.
func TestOrderOfCommitsIsLinear(t *testing.T) {
	const txns, rows = 4000, 60
	row := record.Value{Kind: record.KindObject, Text: `{"v":1}`}
	history := []record.Transaction{{Session: "p", ID: "p", Status: record.Committed,
		Ops: []record.Op{{Kind: record.PredicateRead, Key: "t", Where: "v == 99", Value: record.ObjectOf(nil)}}}}
	for i := range txns {
		x := record.Transaction{Session: fmt.Sprint(i), ID: fmt.Sprint(i), Status: record.Committed, HasTimes: true, Start: 10, End: int64(1000 + i)}
		for n := range rows {
			x.Ops = append(x.Ops, record.Op{Kind: record.Read, Key: fmt.Sprint("t:n", n)})
		}
		if i < txns-1 {
			x.Ops = append(x.Ops, record.Op{Kind: record.Read, Key: fmt.Sprint("t:", i+1), Value: row})
		}
		x.Ops = append(x.Ops, record.Op{Kind: record.Write, Key: fmt.Sprint("t:", i), Value: row})
		history = append(history, x)
	}
	asked := 0
	h, err := predicate.Read(history, nil, predicate.Unasked{}, func() bool { asked++; return false })
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range []verdict.Level{verdict.RC, verdict.G1} {
		asked = 0
		if order, _ := h.Order(predicate.Rules{Level: l, Sessions: true}); len(order) != len(history) || asked*(1<<14) < txns*rows || asked*(1<<14) > 4*txns*rows {
			t.Errorf("%v: an order of %d, and it was asked %d times", l, len(order), asked)
		}
	}
}

// An order is found beside transactions of which it is not known whether they happened, and that nobody has seen.
func TestOrderWithUnknownOutcomes(t *testing.T) {
	for seed := range uint64(8) {
		g, err := generate.New(generate.Config{Level: verdict.SER, Workload: generate.Booking, Transactions: 2000, Keys: 100, Operations: 2, AbortRate: 0.05, UnknownRate: 0.01, Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		h, err := predicate.Read(slices.Collect(g.Transactions()), nil, predicate.Unasked{}, func() bool { return false })
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range []verdict.Level{verdict.SER, verdict.SI, verdict.PC} {
			order, _ := h.Order(predicate.Rules{Level: l, Sessions: true})
			if order == nil {
				t.Errorf("seed %d, %v: none", seed, l)
			} else if n := h.Explain(l, order); n > 0 {
				t.Errorf("seed %d, %v: %d rows are not explained", seed, l, n)
			}
		}
	}
}

// An order is found where it is not asked what the later transactions found, as in a stream.
func TestOrderOfWhatIsAsked(t *testing.T) {
	for seed := uint64(6); seed < 8; seed++ {
		g, err := generate.New(generate.Config{Level: verdict.SSER, Workload: generate.Predicates, Transactions: 1000, Keys: 300, Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		later := predicate.Unasked{Txn: func(t int) bool { return t > 300 }}
		h, err := predicate.Read(slices.Collect(g.Transactions()), nil, later, func() bool { return false })
		if err != nil {
			t.Fatal(err)
		}
		if order, _ := h.Order(predicate.Rules{Level: verdict.SSER, Sessions: true, RealTime: true}); order == nil {
			t.Errorf("seed %d: none", seed)
		}
	}
}

// An order that goes on as transactions come is there where there is one of the whole, and explains what they found; not
// where one of them did not find a row that was there.
func TestRunning(t *testing.T) {
	for _, c := range []struct {
		at  verdict.Level
		of  generate.Workload
		min verdict.Level
	}{
		{verdict.SSER, generate.Predicates, verdict.SSER}, {verdict.SER, generate.Predicates, verdict.SER}, {verdict.SI, generate.Predicates, verdict.SI},
		{verdict.PC, generate.Unique, verdict.PC},
		{verdict.SSER, generate.Booking, verdict.SSER}, {verdict.SI, generate.Unique, verdict.SI}, {verdict.SSER, generate.Queue, verdict.SER},
	} {
		g, err := generate.New(generate.Config{Level: c.at, Workload: c.of, Transactions: 4000, Keys: 200, Operations: 1, AbortRate: 0.02, Seed: 5})
		if err != nil {
			t.Fatal(err)
		}
		txns := slices.Collect(g.Transactions())
		rules := predicate.Rules{Level: c.min, Sessions: true, RealTime: c.min == verdict.SSER}
		for broken := range 4 {
			if broken > 0 { // one row that a statement returned is taken out
				txns = slices.Clone(txns)
				for i := range txns {
					x := &txns[(broken*1000+i)%len(txns)]
					if len(x.Ops) == 0 {
						continue
					}
					if op := &x.Ops[0]; op.Kind == record.PredicateRead && len(op.Value.Fields()) > 0 && x.Status == record.Committed {
						rows := op.Value.Fields()
						delete(rows, slices.Sorted(maps.Keys(rows))[0])
						x.Ops = append([]record.Op{{Kind: op.Kind, Key: op.Key, Where: op.Where, Value: record.ObjectOf(rows)}}, x.Ops[1:]...)
						break
					}
				}
			}
			r := predicate.NewRunning(rules, nil, func() bool { return false })
			var added []int
			holds, behind := true, rand.New(rand.NewPCG(uint64(broken), 1))
			for i := range txns {
				if err := r.Meet(&txns[i]); err != nil {
					t.Fatal(err)
				}
			}
			for i := range txns {
				if err := r.Add(&txns[i], predicate.Came{At: int64(i)}); err != nil {
					t.Fatal(err)
				}
				added = append(added, i)
				if behind.IntN(40) == 0 && holds {
					holds = r.Extend(int64(i-300), false)
				}
				if behind.IntN(900) == 0 && holds { // another goes on
					if holds = r.Extend(int64(i-300), true); !holds {
						break
					}
					next := predicate.NewRunning(rules, nil, func() bool { return false })
					rows := r.Rows()
					if err := next.Begin(&rows); err != nil {
						t.Fatal(err)
					}
					var left []int
					for n, of := range added {
						is, hasStarted := r.Placed(n)
						if is {
							continue
						}
						if err := next.Add(&txns[of], predicate.Came{At: int64(of), Started: hasStarted}); err != nil {
							t.Fatal(err)
						}
						left = append(left, of)
					}
					r, added = next, left
				}
			}
			if holds = holds && r.Extend(math.MaxInt64, true) && r.Holds(); holds != (broken == 0) {
				t.Errorf("%+v, with %d rows taken out: it holds: %v", c, broken, holds)
			}
		}
	}
}
