package certificate_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/isowatch/isowatch/incremental/certificate"
	"github.com/isowatch/isowatch/incremental/oracle"
	"github.com/isowatch/isowatch/incremental/oracle/script"
	"github.com/isowatch/isowatch/incremental/oracle/tiny"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
)

var levels = []verdict.Level{verdict.PC, verdict.SI, verdict.StrongSI, verdict.SER, verdict.SSER}

func serial(l verdict.Level) bool { return l == verdict.SER || l == verdict.SSER }

func options(o oracle.Options) certificate.Options {
	return certificate.Options{Initial: o.Initial, Coverage: o.Coverage, Sessions: o.Sessions, Clock: o.Clock, MaxSkew: o.MaxSkew}
}

func random(seed uint64, cfg tiny.Config) (script.Script, oracle.Options) {
	s := tiny.Random(rand.New(rand.NewPCG(seed, 3)), cfg)
	o := oracle.FromHeader(s.Header)
	if seed%7 == 0 {
		o.Sessions = record.SessionsIgnore
	}
	if seed%11 == 0 {
		o.Clock = record.ClockEnforce
	}
	return s, o
}

// What the oracle found to hold, with its order, is accepted.
func TestWitnessesAreAccepted(t *testing.T) {
	cfg := tiny.Config{Txns: 6, Times: true, Duplicates: true, Aborted: true, Unknown: true, Partial: true, Appends: true, Mutations: 2}
	accepted := 0
	for seed := range uint64(10000) {
		s, opt := random(seed, cfg)
		for _, l := range levels {
			order, ok := oracle.Explain(l, s.Txns, opt)
			if !ok {
				continue
			}
			accepted++
			if err := certificate.Replay(l, s.Txns, order, options(opt)); err != nil {
				t.Fatalf("seed %d, %v, order %v: %v\n%s", seed, l, order, err, script.Format(s))
			}
		}
	}
	if accepted < 20000 {
		t.Errorf("only %d witnesses", accepted)
	}
}

// Of all orders there are, some is accepted exactly if the level holds. So no
// order whatever proves what is false.
func TestSomeOrderIsAcceptedExactlyIfTheLevelHolds(t *testing.T) {
	cfg := tiny.Config{Txns: 4, Keys: 2, Times: true, Duplicates: true, Aborted: true, Unknown: true, Partial: true, Appends: true, Mutations: 3}
	refused := 0
	for seed := range uint64(1500) {
		s, opt := random(seed, cfg)
		for _, l := range levels {
			want := oracle.Holds(l, s.Txns, opt)
			got := anyOrder(s.Txns, serial(l), func(order []verdict.Event) bool {
				return certificate.Replay(l, s.Txns, order, options(opt)) == nil
			})
			if got != want && !(got && opt.Coverage == record.CoveragePartial) {
				t.Fatalf("seed %d, %v: some order accepted = %v, level holds = %v\n%s", seed, l, got, want, script.Format(s))
			}
			if !want {
				refused++
			}
		}
	}
	if refused < 500 {
		t.Errorf("only %d levels were violated", refused)
	}
}

// anyOrder tries all orders of all choices of unknown transactions.
func anyOrder(txns []record.Transaction, serial bool, accept func([]verdict.Event) bool) bool {
	var order []verdict.Event
	events := make([]int, len(txns)) // so many of each are in order
	per := 2
	if serial {
		per = 1
	}
	var try func() bool
	try = func() bool {
		done := true
		for i, t := range txns {
			done = done && (events[i] == per || t.Status != record.Committed && events[i] == 0)
		}
		if done && accept(order) {
			return true
		}
		for i, t := range txns {
			if events[i] == per || t.Status == record.Aborted {
				continue
			}
			events[i]++
			order = append(order, verdict.Event{Txn: verdict.TxnID(i), Commit: events[i] == per})
			if try() {
				return true
			}
			order = order[:len(order)-1]
			events[i]--
		}
		return false
	}
	return try()
}

// Spoilt certificates are refused, and the error says where and why.
func TestErrors(t *testing.T) {
	for _, c := range []struct {
		name, text, order string
		level             verdict.Level
		want              string
	}{
		{"stale read", "initial zero\ns1 A: w(x,1)\ns2 B: r(x,0)", "A B", verdict.SER, `event 1: B, operation 0: reads 0 from "x", which holds 1`},
		{"own write", "s1 A: w(x,1) r(x,2)", "A", verdict.SER, `A, operation 1: reads 2 from "x", its own write left 1`},
		{"left out", "s1 A: w(x,1)\ns2 B: w(y,1)", "A", verdict.SER, "B: never commits"},
		{"never committed", "s1 A unknown: w(x,1)", "+A", verdict.SI, "A: never commits"},
		{"twice", "s1 A: w(x,1)", "A A", verdict.SER, "event 1: A: commits a second time"},
		{"started twice", "s1 A: w(x,1)", "+A +A A", verdict.SI, "event 1: A: starts a second time"},
		{"commit first", "s1 A: w(x,1)", "A +A", verdict.SI, "event 0: A: commits before it starts"},
		{"start in a serial order", "s1 A: w(x,1)", "+A A", verdict.SER, "no starts"},
		{"aborted", "s1 A aborted: w(x,1)", "A", verdict.SER, "A: is aborted"},
		{"nobody", "s1 A: w(x,1)", "A ?", verdict.SER, "event 1: transaction 4294967295 of 1"},
		{"session", "s1 A: w(x,1)\ns1 B: w(y,1)", "B A", verdict.SER, "event 0: B: starts before A commits, its predecessor"},
		{"session by start", "s1 A: w(x,1)\ns1 B: w(y,1)", "+A +B A B", verdict.SI, "event 1: B: starts before A commits"},
		{"real time", "s1 A: w(x,1) @1-2\ns2 B: w(y,1) @3-4", "B A", verdict.SSER, "event 0: B: starts before A commits, which ended at 2"},
		{"overlap", "s1 A: w(x,1)\ns2 B: w(x,2)", "+A +B A B", verdict.SI, `event 3: B, operation 0: writes "x", as does A`},
		{"early reader", "s1 A: w(x,1)\ns2 B: r(x,1)", "B A", verdict.SER, `whose writer A has not committed yet`},
		{"list", "s1 A: append(l,1)\ns2 B: r(l,[1,2])", "A B", verdict.SER, `reads [1,2] from "l", which holds [1]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := script.Parse(c.text)
			if err != nil {
				t.Fatal(err)
			}
			var order []verdict.Event
			for _, e := range strings.Fields(c.order) {
				id, starts := strings.CutPrefix(e, "+")
				event := verdict.Event{Txn: verdict.NoTxn, Commit: !starts}
				for i := range s.Txns {
					if s.Txns[i].ID == id {
						event.Txn = verdict.TxnID(i)
					}
				}
				order = append(order, event)
			}
			err = certificate.Replay(c.level, s.Txns, order, options(oracle.FromHeader(s.Header)))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q in it", err, c.want)
			}
		})
	}
}

func TestPredicatesAreRefused(t *testing.T) {
	txns := []record.Transaction{{ID: "A", Ops: []record.Op{{Kind: record.PredicateRead, Key: "t"}}}}
	err := certificate.Replay(verdict.SER, txns, []verdict.Event{{Commit: true}}, certificate.Options{})
	if err == nil || !strings.Contains(err.Error(), `"rp"`) {
		t.Errorf("error %v", err)
	}
}

// BenchmarkReplay walks through a serial history of 100,000 transactions of 8
// operations on 10,000 keys.
func BenchmarkReplay(b *testing.B) {
	const n, ops = 100_000, 8
	keys := make([]string, 10_000)
	state := make([]int64, len(keys))
	for k := range keys {
		keys[k] = fmt.Sprintf("k%d", k)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	txns := make([]record.Transaction, n)
	order := make([]verdict.Event, n)
	values := int64(0)
	for i := range txns {
		t := &txns[i]
		t.Session = keys[i%24]
		for range ops {
			k := rng.IntN(len(keys))
			op := record.Op{Key: keys[k], Value: record.Int(state[k])}
			if rng.IntN(2) == 0 {
				values++
				state[k] = values
				op.Kind, op.Value = record.Write, record.Int(values)
			}
			t.Ops = append(t.Ops, op)
		}
		order[i] = verdict.Event{Txn: verdict.TxnID(i), Commit: true}
	}
	opt := certificate.Options{Initial: record.InitialZero}
	for b.Loop() {
		if err := certificate.Replay(verdict.SER, txns, order, opt); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "txn/s")
}
