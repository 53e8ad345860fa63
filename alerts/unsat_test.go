package alerts_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/codec"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/alerttest"
	"github.com/isowatch/isowatch/internal/lab/oracle/script"
	"github.com/isowatch/isowatch/internal/lab/oracle/tiny"
	"github.com/isowatch/isowatch/internal/lab/race"
)

// Where no order of writes and no choice of writers fits, the tree that is told is
// minimal as PolySI has it: without any one of what it rests on, the rest satisfies the
// level. It rests on the evidence, less the sessions and times that it does without. That
// is asked of the definitions: without each transaction, without each read, without each
// write and those who read it, without each two of a session in a row, and without the
// times of each transaction that has them.
func TestTreesAreMinimal(t *testing.T) {
	n := uint64(race.Draws(600, 4000))
	trees, questions := map[verdict.Level]int{}, map[string]int{}
	for _, level := range []verdict.Level{verdict.PC, verdict.SI, verdict.SER, verdict.SSER} {
		for seed := range n {
			s := blind(seed, level == verdict.SSER)
			for _, v := range engine(s.Header, s.Txns, level)[0].Violations {
				if v.Kind != verdict.Unsatisfiable {
					continue
				}
				ctx := context(s, level)
				var rests []record.Transaction
				ctx.Judge = engineJudge
				ctx.Find = func(l verdict.Level, h record.Header, txns []record.Transaction) []verdict.Violation {
					rests = txns
					return engineFind(l, h, txns)
				}
				a, err := alerts.New(v, ctx)
				if err != nil {
					t.Fatalf("seed %d, %v: %v\n%s", seed, level, err, script.Format(s))
				}
				if len(a.Cases) == 0 {
					continue // its evidence is a plainer anomaly
				}
				trees[level]++
				h, err := codec.DecodeHeader(a.Evidence[0])
				if err != nil {
					t.Fatal(err)
				}
				recheck(t, a)
				exhibited(t, a)
				l, _ := verdict.ParseLevel(a.Level)
				if alerttest.Judge(l, h, rests) != verdict.Violated {
					t.Errorf("seed %d, %v: what it rests on is no violation", seed, l)
				}
				reasons(t, a, rests)
				for what, rest := range lesser(rests) {
					questions[what[:4]]++
					if alerttest.Judge(l, h, rest) == verdict.Violated {
						t.Errorf("seed %d, %v: violated also without %s:\n%s\n%s", seed, l, what, script.Format(script.Script{Header: h, Txns: rests}), a.Explanation)
					}
				}
				if t.Failed() {
					t.FailNow()
				}
			}
		}
	}
	t.Log(trees, questions)
	for _, l := range []verdict.Level{verdict.PC, verdict.SI, verdict.SER, verdict.SSER} {
		if trees[l] == 0 && !race.Brief() {
			t.Errorf("no tree at %v: %v", l, trees)
		}
	}
	for _, q := range []string{"tran", "read", "writ", "sess", "time"} {
		if questions[q] == 0 && !race.Brief() {
			t.Errorf("never left out: %q: %v", q, questions)
		}
	}
}

// blind is a random history of which no order of writes is known: of few values that
// are written again and again; or of updates of one key by who read another one, as it
// was after any write before.
func blind(seed uint64, times bool) script.Script {
	rng := rand.New(rand.NewPCG(seed, 77))
	if seed%2 == 0 {
		return tiny.Random(rng, tiny.Config{Txns: 9, Keys: 2, Sessions: 4, Ops: 3, Mutations: 3, Times: times, Duplicates: true, Values: 2, Always: true})
	}
	initial, coverage := record.InitialZero, record.CoverageComplete
	s := script.Script{Header: record.Header{Initial: &initial, Coverage: &coverage}}
	keys := []string{"x", "y", "z"}[:2+rng.IntN(2)]
	wrote := map[string][]int64{}
	for i := range int64(6 + rng.IntN(4)) {
		x := record.Transaction{DB: record.DefaultDB, Session: fmt.Sprintf("s%d", rng.IntN(7)), ID: fmt.Sprintf("T%d", i)}
		if times {
			x.HasTimes, x.Start = true, 10*i
			x.End = x.Start + int64(rng.IntN(40))
		}
		k := rng.IntN(len(keys))
		for j := range rng.IntN(2) + 1 {
			key := keys[(k+1+j)%len(keys)]
			if vs := wrote[key]; j < len(keys)-1 && len(vs) > 0 {
				x.Ops = append(x.Ops, record.Op{Kind: record.Read, Key: key, Value: record.Int(vs[rng.IntN(len(vs))])})
			}
		}
		if rng.IntN(4) > 0 || len(x.Ops) == 0 {
			x.Ops = append(x.Ops, record.Op{Kind: record.Write, Key: keys[k], Value: record.Int(i + 1)})
			wrote[keys[k]] = append(wrote[keys[k]], i+1)
		}
		s.Txns = append(s.Txns, x)
	}
	return s
}

// lesser are transactions without one thing each, by what that is.
func lesser(txns []record.Transaction) map[string][]record.Transaction {
	out := map[string][]record.Transaction{}
	without := func(leave func(i int, op record.Op) bool) []record.Transaction {
		var rest []record.Transaction
		for i := range txns {
			x := txns[i]
			x.Ops = slices.DeleteFunc(slices.Clone(x.Ops), func(op record.Op) bool { return leave(i, op) })
			if len(x.Ops) > 0 {
				rest = append(rest, x)
			}
		}
		return rest
	}
	for i := range txns {
		// A write goes with those who read its value, whoever wrote that; the last one of a
		// key with the ones before it, as these were never there to be read.
		gone := func(writes []record.Op) []record.Transaction {
			return without(func(k int, op record.Op) bool {
				return slices.ContainsFunc(writes, func(o record.Op) bool {
					return op.Key == o.Key && op.Value == o.Value && (k == i || op.Kind == record.Read)
				})
			})
		}
		writes := slices.DeleteFunc(slices.Clone(txns[i].Ops), func(op record.Op) bool { return op.Kind == record.Read })
		rest := gone(writes)
		out["transaction "+txns[i].ID] = slices.DeleteFunc(rest, func(x record.Transaction) bool { return x.ID == txns[i].ID })
		for j, o := range txns[i].Ops {
			if o.Kind == record.Read {
				out[fmt.Sprintf("read %d of %s", j, txns[i].ID)] = without(func(k int, op record.Op) bool { return k == i && op == o })
				continue
			}
			out[fmt.Sprintf("write of %s by %s", o.Key, txns[i].ID)] = gone(slices.DeleteFunc(slices.Clone(writes), func(w record.Op) bool { return w.Key != o.Key }))
		}
	}
	for i := range txns {
		if txns[i].HasTimes {
			rest := slices.Clone(txns)
			rest[i].HasTimes, rest[i].Start, rest[i].End = false, 0, 0
			out[fmt.Sprintf("times of %s", txns[i].ID)] = rest
		}
		session, rest := txns[i].Session, slices.Clone(txns)
		for k := i; k < len(rest); k++ {
			if rest[k].Session == session {
				rest[k].Session += " later"
			}
		}
		if slices.ContainsFunc(rest[:i], func(t record.Transaction) bool { return t.Session == session }) {
			out[fmt.Sprintf("session of %s and whoever came before", txns[i].ID)] = rest
		}
	}
	return out
}

// reasons: sessions and times that are told are among what the tree rests on.
func reasons(t *testing.T, a alerts.Alert, rests []record.Transaction) {
	t.Helper()
	for _, e := range slices.Concat(a.Cases...) {
		from := rests[slices.IndexFunc(rests, func(x record.Transaction) bool { return x.ID == e.From })]
		to := rests[slices.IndexFunc(rests, func(x record.Transaction) bool { return x.ID == e.To })]
		if e.Type == "so" && from.Session != to.Session || e.Type == "rt" && !(from.HasTimes && to.HasTimes) {
			t.Errorf("it does without %+v:\n%s", e, a.Explanation)
		}
	}
}
