package shrink_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/isowatch/isowatch/alerts/list"
	"github.com/isowatch/isowatch/alerts/shrink"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/alerttest"
	"github.com/isowatch/isowatch/internal/lab/oracle"
	"github.com/isowatch/isowatch/internal/lab/oracle/script"
	"github.com/isowatch/isowatch/internal/lab/oracle/tiny"
	"github.com/isowatch/isowatch/internal/lab/race"
)

func parse(t *testing.T, text string) script.Script {
	t.Helper()
	s, err := script.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// broken judges by the oracle.
func broken(s script.Script, l verdict.Level) func([]record.Transaction) bool {
	return func(txns []record.Transaction) bool {
		return !oracle.Holds(l, txns, record.Assumptions{}.Override(s.Header))
	}
}

func TestShrink(t *testing.T) {
	s := parse(t, `
		s0 T0: w(x,0) w(z,3)
		s1 T1: r(z,3) r(x,0) w(x,1) w(y,4)
		s1 T5: r(y,4)
		s2 T2: r(x,0) w(x,2) r(x,2)
		s3 T3: r(x,2) w(y,7)
		s3 T4: r(y,7)`)
	got, calls := shrunk(s.Txns, broken(s, verdict.SI), shrink.Options{})
	want := parse(t, `
		s0 T0: w(x,0)
		s1 T1: r(x,0) w(x,1)
		s2 T2: r(x,0) w(x,2)`)
	if d := cmp.Diff(want.Txns, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	if calls == 0 || calls > 60 {
		t.Errorf("%d calls", calls)
	}
	if len(s.Txns) != 6 || len(s.Txns[1].Ops) != 4 {
		t.Error("the input was changed")
	}
}

// Of two anomalies the one that is protected stays.
func TestKeep(t *testing.T) {
	s := parse(t, `
		initial zero
		s1 T1: r(x,0) w(x,1)
		s2 T2: r(x,0) w(x,2)
		s3 T3: r(y,0) w(y,1) w(v,1)
		s4 T4: r(y,0) w(y,2) r(v,0)`)
	got, _ := shrunk(s.Txns, broken(s, verdict.SI), shrink.Options{
		Keep: func(t *record.Transaction) bool { return t.ID >= "T3" },
	})
	if len(got) != 2 || got[0].ID != "T3" || got[1].ID != "T4" {
		t.Errorf("%v is left", got)
	}
}

func TestCallsAreBounded(t *testing.T) {
	s := parse(t, "s0 T0: w(x,0)\ns1 T1: r(x,0) w(x,1)\ns2 T2: r(x,0) w(x,2)\ns3 T3: r(x,2)\ns3 T4: w(y,7)")
	asked := 0
	shrink.Shrink(s.Txns, func([]record.Transaction) bool { asked++; return true }, shrink.Options{Spent: func() bool { return asked > 0 }})
	if asked != 1 {
		t.Errorf("%d calls", asked)
	}
}

// Whatever is left out, a proper history does not become a violation: at every
// level, with whatever is assumed of values that nobody wrote. And every read
// that is left has all its possible writers left.
func TestNeverInvents(t *testing.T) {
	n := uint64(race.Draws(500, 2000))
	proper, lists, cut := 0, 0, 0
	for seed := range n {
		rng := rand.New(rand.NewPCG(seed, 1))
		s := tiny.Random(rng, tiny.Config{Times: true, Duplicates: true, Aborted: true, Unknown: true, Partial: seed%2 == 0, Appends: true,
			Keys: 1 + int(seed%3), Mutations: int(seed % 2), Back: 10 * int(seed%5)})
		if seed%3 == 0 {
			initial := record.InitialAny
			s.Header.Initial = &initial
		}
		opt := record.Assumptions{}.Override(s.Header)
		before := oracle.Check(s.Txns, opt)
		// Lists are cut down as with partial coverage too. The oracle knows no
		// unseen appenders; they are written out for it.
		_, isList := appended(s.Txns)["x"]
		unseen := isList && seed%4 < 3
		if before[verdict.SI] {
			proper++
		}
		shrunk(s.Txns, func(rest []record.Transaction) bool {
			full := rest
			if unseen {
				lists++
				full = alerttest.WithUnseenAppenders(rest)
				if len(full) > len(rest) {
					cut++
				}
			}
			if len(full) > 7 {
				return rng.IntN(3) == 0 // takes the oracle too long
			}
			levels := oracle.Levels(full)
			for l, ok := range before {
				if ok && slices.Contains(levels, l) && !oracle.Holds(l, full, opt) {
					t.Fatalf("seed %d: %v holds in\n%sbut not in its part\n%s", seed, l, script.Format(s), script.Format(script.Script{Header: s.Header, Txns: full}))
				}
			}
			closed(t, s.Txns, rest, unseen)
			return rng.IntN(3) == 0
		}, shrink.Options{Unseen: unseen, Undeclared: true})
	}
	t.Logf("%d proper histories, %d parts of lists, %d of them with unseen appenders", proper, lists, cut)
	if proper < int(n)/4 || cut < int(n)/8 {
		t.Errorf("too few to tell: %d proper histories, %d parts with unseen appenders", proper, cut)
	}
}

// appended are the elements that are appended to each key, by place of their
// transaction.
func appended(txns []record.Transaction) map[string]map[string][]string {
	out := map[string]map[string][]string{}
	for i := range txns {
		for _, op := range txns[i].Ops {
			if op.Kind == record.Append {
				if out[op.Key] == nil {
					out[op.Key] = map[string][]string{}
				}
				out[op.Key][op.Value.String()] = append(out[op.Key][op.Value.String()], txns[i].ID)
			}
		}
	}
	return out
}

// closed checks that the possible writers of every read in rest are in rest: of
// a list, those of each element, or, if elements may be unseen, all or none.
func closed(t *testing.T, all, rest []record.Transaction, unseen bool) {
	t.Helper()
	writes := func(txns []record.Transaction, key string, v record.Value) int {
		n := 0
		for i := range txns {
			for _, op := range txns[i].Ops {
				if op.Kind == record.Write && op.Key == key && op.Value == v {
					n++
				}
			}
		}
		return n
	}
	before, after := appended(all), appended(rest)
	for i := range rest {
		for _, op := range rest[i].Ops {
			if op.Kind != record.Read {
				continue
			}
			if writes(all, op.Key, op.Value) != writes(rest, op.Key, op.Value) {
				t.Fatalf("%s reads %s = %v, and a writer of it is gone", rest[i].ID, op.Key, op.Value)
			}
			if before[op.Key] == nil {
				continue
			}
			if after[op.Key] == nil {
				t.Fatalf("%s reads %s = %v, and nothing shows that it is a list", rest[i].ID, op.Key, op.Value)
			}
			elements, _ := list.Elements(op.Value)
			for _, e := range elements {
				was, is := len(before[op.Key][e.String()]), len(after[op.Key][e.String()])
				if is != was && !(unseen && was == 1 && is == 0) {
					t.Fatalf("%s reads %s = %v; %d appended %s, %d are left", rest[i].ID, op.Key, op.Value, was, e, is)
				}
			}
		}
	}
}

// With calls enough, nothing can go alone.
func TestMinimal(t *testing.T) {
	tried := 0
	for seed := uint64(0); tried < 100; seed++ {
		rng := rand.New(rand.NewPCG(seed, 2))
		s := tiny.Random(rng, tiny.Config{Duplicates: true, Aborted: true, Mutations: 3})
		violated := broken(s, verdict.SI)
		if !violated(s.Txns) {
			continue
		}
		tried++
		got, calls := shrunk(s.Txns, violated, shrink.Options{})
		if !violated(got) {
			t.Fatalf("seed %d: no violation is left of\n%s", seed, script.Format(s))
		}
		if calls >= 1000 {
			t.Fatalf("seed %d: %d calls for five transactions", seed, calls)
		}
		again, _ := shrunk(got, violated, shrink.Options{})
		if d := cmp.Diff(got, again); d != "" {
			t.Fatalf("seed %d: more could go: %s", seed, d)
		}
	}
}

func TestPredicatesStay(t *testing.T) {
	txns := []record.Transaction{
		{ID: "T1", Session: "s", Ops: []record.Op{{Kind: record.Write, Key: "t:1", Value: record.Int(1)}, {Kind: record.PredicateWrite, Key: "t", Where: "v == 1"}}},
		{ID: "T2", Session: "s", Ops: []record.Op{{Kind: record.PredicateRead, Key: "t", Where: "v == 1"}, {Kind: record.Read, Key: "z"}}},
	}
	got, _ := shrunk(txns, func([]record.Transaction) bool { return true }, shrink.Options{})
	if len(got) == 0 || len(got[0].Ops) != 2 {
		t.Errorf("writes that a predicate may have seen went: %v", got)
	}
}

// A needle in much hay is found.
func TestLarge(t *testing.T) {
	s := parse(t, "s0 T0: w(x,0)\ns1 T1: r(x,0) w(x,1)\ns2 T2: r(x,0) w(x,2)")
	var txns []record.Transaction
	for i := range 3000 {
		if i%1000 == 500 {
			txns = append(txns, s.Txns[i/1000])
		}
		v := record.Int(int64(i))
		txns = append(txns, record.Transaction{Session: "hay", ID: v.String(), Ops: []record.Op{
			{Kind: record.Read, Key: "h", Value: record.Int(int64(i - 1))}, {Kind: record.Write, Key: "h", Value: v}}})
	}
	violated := func(rest []record.Transaction) bool {
		reads := 0
		for i := range rest {
			for _, op := range rest[i].Ops {
				if op.Key == "x" && op.Kind == record.Read && len(rest[i].Ops) > 1 {
					reads++
				}
			}
		}
		return reads == 2
	}
	got, calls := shrunk(txns, violated, shrink.Options{})
	if d := cmp.Diff(s.Txns, got); d != "" {
		t.Errorf("%d calls, -want +got:\n%s", calls, d)
	}
	work := 0
	shrunk(txns, func(rest []record.Transaction) bool { work += len(rest); return violated(rest) }, shrink.Options{Spent: func() bool { return work >= 5000 }})
	if work > 5000+len(txns) {
		t.Errorf("the judge was handed %d transactions, no more than 5000 and one call were allowed", work)
	}
}

// shrunk is what Shrink leaves, and how often it asked.
func shrunk(txns []record.Transaction, violated func([]record.Transaction) bool, opt shrink.Options) (left []record.Transaction, calls int) {
	left = shrink.Shrink(txns, func(rest []record.Transaction) bool { calls++; return violated(rest) }, opt)
	return left, calls
}
