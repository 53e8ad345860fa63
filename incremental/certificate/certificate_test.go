package certificate_test

import (
	"errors"
	"go/parser"
	"go/token"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/isowatch/isowatch/incremental/certificate"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/oracle"
	"github.com/isowatch/isowatch/internal/lab/oracle/script"
	"github.com/isowatch/isowatch/internal/lab/oracle/tiny"
	"github.com/isowatch/isowatch/internal/lab/race"
)

var levels = []verdict.Level{verdict.PC, verdict.SI, verdict.StrongSI, verdict.SER, verdict.SSER}

// replay replays an order of a level's own kind.
func replay(l verdict.Level, txns []record.Transaction, order []verdict.Event, opt record.Assumptions, from ...verdict.Source) error {
	return certificate.Replay(verdict.Result{Level: l, ProvedBy: l, Order: order, Sources: from}, txns, opt)
}

// accepted replays an order with the writers that it needs, if there are some.
func accepted(l verdict.Level, txns []record.Transaction, order []verdict.Event, opt record.Assumptions) error {
	err := replay(l, txns, order, opt)
	if err == nil || !strings.Contains(err.Error(), "does not say whose it is") {
		return err
	}
	from, _ := judge{level: l, txns: txns, order: commitsOf(order), opt: opt}.sources()
	return replay(l, txns, order, opt, from...)
}

func random(seed uint64, cfg tiny.Config) (script.Script, record.Assumptions) {
	s := tiny.Random(rand.New(rand.NewPCG(seed, 3)), cfg)
	o := record.Assumptions{}.Override(s.Header)
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
	cfg := tiny.Config{Txns: 6, Times: true, Duplicates: true, Aborted: true, Unknown: true, Partial: true, Appends: true, Mixed: true, Mutations: 2}
	accepted := 0
	for seed := range uint64(race.Few(5000, 10000)) {
		s, opt := random(seed, cfg)
		for _, l := range levels {
			order, ok := oracle.Explain(l, s.Txns, opt)
			if !ok {
				continue
			}
			accepted++
			if err := replay(l, s.Txns, order, opt); err != nil {
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
	cfg := tiny.Config{Txns: 4, Keys: 2, Times: true, Duplicates: true, Aborted: true, Unknown: true, Partial: true, Appends: true, Mixed: true, Mutations: 3}
	refused := 0
	for seed := range uint64(race.Few(500, 1500)) {
		s, opt := random(seed, cfg)
		partial, lists := opt.Coverage == record.CoveragePartial, appends(s)
		for _, l := range levels {
			want := oracle.Holds(l, s.Txns, opt)
			if partial && !lists {
				want = holdsAsRecorded(l, s.Txns, opt)
			}
			got := provable(l, s.Txns, opt)
			// Of unseen appends less is asked than the definition does.
			if got != want && !(got && partial && lists) {
				t.Fatalf("seed %d, %v: some order accepted = %v, level holds = %v\n%s", seed, l, got, want, script.Format(s))
			}
			if !want {
				refused++
			}
		}
	}
	if refused < 450 {
		t.Errorf("only %d levels were violated", refused)
	}
}

// The same for the levels whose certificate is an order of commits.
func TestSomeCommitOrderIsAcceptedExactlyIfTheLevelHolds(t *testing.T) {
	cfg := tiny.Config{Txns: 5, Keys: 2, Aborted: true, Unknown: true, Partial: true, Mutations: 3, Back: 10}
	refused := map[verdict.Level]int{}
	for seed := range uint64(race.Few(500, 1500)) {
		cfg.Duplicates = seed%4 == 0
		s, opt := random(seed, cfg)
		partial := opt.Coverage == record.CoveragePartial
		for _, l := range weak {
			want := oracle.Holds(l, s.Txns, opt)
			if partial {
				want = holdsAsRecorded(l, s.Txns, opt)
			}
			got := provable(l, s.Txns, opt)
			if got != want {
				t.Fatalf("seed %d, %v: some order accepted = %v, level holds = %v\n%s", seed, l, got, want, script.Format(s))
			}
			if !want {
				refused[l]++
			}
		}
	}
	for _, l := range weak {
		if refused[l] < 50 {
			t.Errorf("%v: only %d were violated", l, refused[l])
		}
	}
}

var weak = []verdict.Level{verdict.G1, verdict.RC, verdict.RA, verdict.CC}

// provable tells whether some order whatever is accepted.
func provable(l verdict.Level, txns []record.Transaction, opt record.Assumptions) bool {
	return anyOrder(txns, certificate.KindOf(l) != certificate.Events, func(order []verdict.Event) bool {
		return accepted(l, txns, order, opt) == nil
	})
}

func appends(s script.Script) bool {
	for _, x := range s.Txns {
		for _, op := range x.Ops {
			if op.Kind == record.Append {
				return true
			}
		}
	}
	return false
}

// holdsAsRecorded judges with partial coverage as certificates do: what nobody
// is recorded to have written is left out, once its transaction is found to
// agree with itself. What remains is the oracle's to judge.
func holdsAsRecorded(l verdict.Level, txns []record.Transaction, opt record.Assumptions) bool {
	var rest []record.Transaction
	for _, x := range txns {
		var ops []record.Op
		own, seen := map[string]bool{}, map[string]record.Value{}
		agrees := true
		for _, op := range x.Ops {
			if op.Kind != record.Read || own[op.Key] {
				own[op.Key] = true
				ops = append(ops, op)
				continue
			}
			before, ok := seen[op.Key]
			agrees = agrees && (!ok || before == op.Value)
			seen[op.Key] = op.Value
			if op.Value.IsNull() || opt.Initial == record.InitialZero && op.Value == record.Int(0) || !oracle.Made(txns, op.Key, op.Value) {
				continue
			}
			ops = append(ops, op)
		}
		if !agrees && l != verdict.RC && l != verdict.G1 {
			if x.Status == record.Committed {
				return false
			}
			x.Status = record.Aborted // it can't have taken effect
		}
		x.Ops = ops
		rest = append(rest, x)
	}
	return oracle.Holds(l, rest, opt)
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
		{"weak: nobody", "initial zero\ns1 A: r(x,5)", "A", verdict.G1, `event 0: A, operation 0: reads 5 from "x", which nobody wrote before, and which held 0 at first`},
		{"weak: later", "initial zero\ns1 A: r(x,5)\ns2 B: w(x,5)", "A B", verdict.G1, `event 0: A, operation 0: reads 5 from "x", whose writer B has not committed yet`},
		{"weak: own", "s1 A: w(x,1) r(x,2)", "A", verdict.RC, `A, operation 1: reads 2 from "x", its own write left 1`},
		{"weak: twice", "coverage partial\ns1 A: r(x,1) r(x,2)", "A", verdict.RA, `A, operation 1: reads 2 from "x", after 1 before`},
		{"weak: list", "s1 A: append(x,1)\ns2 B: append(x,2)\ns3 C: r(x,[2])", "A B C", verdict.CC, `C, operation 0: reads [2] from "x", which those who commit before made [1,2], one after the other`},
		{"weak: intermediate list", "s1 A: append(x,1) append(x,2)\ns3 C: r(x,[1])", "A C", verdict.RC, `C, operation 0: reads [1] from "x", which those who commit before made [1,2]`},
		{"g1: intermediate list", "s1 A: append(x,1) append(x,2)\ns3 C: r(x,[1])", "A C", verdict.G1, `C, operation 0: reads [1] from "x", which is no version of it: the longest that is read is [1]`},
		{"g1: no common order", "s1 A: append(x,1)\ns2 B: append(x,2)\ns3 C: r(x,[1])\ns4 D: r(x,[2,1])", "A B C D", verdict.G1, `C, operation 0: reads [1] from "x", which is no version of it: the longest that is read is [2,1]`},
		{"g1: an element twice", "s1 A: append(x,1)\ns2 B: r(x,[1,1])", "A B", verdict.G1, `B, operation 0: reads [1,1] from "x", which those who commit before made [1]`},
		{"g1: elements apart", "s1 A: append(x,1) append(x,3)\ns2 B: append(x,2)\ns3 C: r(x,[1,2,3])", "A B C", verdict.G1, `C, operation 0: reads [1,2,3] from "x", which those who commit before made [1,3,2]`},
		{"g1: an early reader", "s1 A: append(x,1)\ns2 B: append(x,2)\ns3 C: r(x,[2,1])", "A C B", verdict.G1, `C, operation 0: reads [2,1] from "x", whose writer B has not committed yet`},
		{"g1: half an element", "coverage partial\ns1 A: append(x,2) append(x,34)\ns2 B: append(x,3)\ns3 C: r(x,[2,3,9])", "A B C", verdict.G1, `C, operation 0: reads [2,3,9] from "x", which those who commit before made [2,34,3]`},
		{"weak: own element", "s1 A: append(x,1) r(x,[2])", "A", verdict.RC, `A, operation 1: reads [2] from "x", which should end with its own [1]`},
		{"weak: who appended first", "initial zero\ns1 A: append(l,1) w(y,1)\ns2 B: append(l,2)\ns3 C: r(l,[1,2]) r(y,0)", "A B C", verdict.RC, `C, operation 1: reads 0 from "y", at first; but A, which it read from before`},
		{"weak: who appended first, for another", "initial zero\ns1 A: append(l,1) w(y,1)\ns2 B: append(l,2)\ns3 C: r(l,[1,2]) w(z,1)\ns4 D: r(z,1) r(y,0)", "A B C D", verdict.CC, `D, operation 1: reads 0 from "y", at first; but A, which happened before it`},
		{"weak: who appended, and then somebody unseen", "coverage partial\ns0 Z: w(y,5)\ns1 A: append(l,1) w(y,1)\ns2 C: r(l,[8,1,9]) r(y,5)", "Z A C", verdict.RC, `C, operation 1: reads 5 from "y", as Z wrote it; but A, which it read from before`},
		{"weak: who appended, somebody unseen between", "coverage partial\ns0 Z: w(y,5)\ns1 A: append(l,1) w(y,1)\ns2 B: append(l,2)\ns3 C: r(l,[1,8,2]) r(y,5)", "Z A B C", verdict.RC, `C, operation 1: reads 5 from "y", as Z wrote it; but A, which it read from before`},
		{"weak: not what was appended first", "coverage partial\ns1 A: append(l,1)\ns2 B: append(l,2)\ns3 C: r(l,[2,9])", "A B C", verdict.RC, `C, operation 0: reads [2,9] from "l", which those who commit before made [1,2]`},
		{"weak: half an element", "coverage partial\ns1 A: append(l,1)\ns1 B: append(l,23)\ns2 E: append(l,2)\ns3 C: r(l,[1,2,9])", "A B E C", verdict.RC, `C, operation 0: reads [1,2,9] from "l", which those who commit before made [1,23,2]`},
		{"weak: list replaced", "s1 A: append(x,1)\ns2 B: w(x,[]) r(x,[])\ns3 C: r(x,[])", "A B C", verdict.CC, `C, operation 0: reads "x", which is both appended to and written: an order of commits can't be checked for that`},
		{"weak: own list", "s1 A: append(x,1)\ns2 B: w(x,[3]) append(x,4) r(x,[4])", "A B", verdict.CC, `B, operation 2: reads [4] from "x", its own write left [3,4]`},
		{"weak: old list", "s1 A: append(x,1)\ns1 B: r(x,[])", "A B", verdict.RA, `B, operation 0: reads [] from "x", at first; but A, before it in its session, wrote the key too and commits later`},
		{"session guarantee", "initial zero\ns1 A: w(x,1)\ns1 B: r(x,0)", "A B", verdict.RA, `B, operation 0: reads 0 from "x", at first; but A, before it in its session, wrote the key too and commits later`},
		{"causality", "initial zero\ns1 A: w(x,1)\ns2 B: r(x,1) w(y,1)\ns3 C: r(y,1) r(x,0)", "A B C", verdict.CC, `C, operation 1: reads 0 from "x", at first; but A, which happened before it`},
		{"two keys", "s1 A: r(x,1) r(y,1)", "A", verdict.LIN, `A, operation 1: uses "y" beside "x": lin is of transactions on one object each`},
		{"twice otherwise", "coverage partial\ns1 A: r(x,1) r(x,2)", "A", verdict.SER, `A, operation 1: reads 2 from "x", after 1 before`},
		{"aborted writer", "s1 A: r(x,1)\ns2 B aborted: w(x,1)", "A", verdict.SER, `A, operation 0: reads 1 from "x", whose writer B aborted`},
		{"intermediate", "s1 A: w(x,1) w(x,2)\ns2 B: r(x,1)", "B A", verdict.SER, `B, operation 0: reads 1 from "x", whose writer A has not committed yet`},
		{"not in the order", "s1 A: r(x,1)\ns2 B unknown: w(x,1)", "A", verdict.SER, `A, operation 0: reads 1 from "x", whose writer B is not part of the order`},
		{"lost element", "coverage partial\ns1 A: append(l,1)\ns2 B: append(l,2)\ns3 C: r(l,[9,2])", "A B C", verdict.SER, `C, operation 0: reads [9,2] from "l", which holds [1,2] apart from`},
		{"own element", "coverage partial\ns1 A: append(l,1) r(l,[1,2])", "A", verdict.SER, `A, operation 1: reads [1,2] from "l", which should end with its own [1]`},
		{"own elements, twice", "coverage partial\ns1 A: append(l,1) r(l,[9,1]) r(l,[8,1])", "A", verdict.SER, `A, operation 2: reads [8,1] from "l", its own write left [9,1]`},
		{"old list", "coverage partial\ns1 A: append(l,1)\ns2 B: append(l,2)\ns3 C: r(l,[9,1])", "A B C", verdict.SER, `C, operation 0: reads [9,1] from "l", which holds [1,2] apart from`},
		{"first of two", "s1 A: r(x,1) r(y,1)\ns2 B: w(y,1) w(x,1)", "A B", verdict.SER, `A, operation 0: reads 1 from "x", whose writer B has not committed yet`},
		{"unknown, after the clock", "s1 A: w(x,1) @10-20\ns1 B unknown: w(x,2) @15-18\ns2 C: w(y,1) @1-12", "A B C", verdict.SSER, `event 1: B: starts before C commits, which ended at 12`},
		{"list", "s1 A: append(l,1)\ns2 B: r(l,[1,2])", "A B", verdict.SER, `reads [1,2] from "l", which holds [1]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := script.Parse(c.text)
			if err != nil {
				t.Fatal(err)
			}
			err = replay(c.level, s.Txns, script.Events(s.Txns, c.order), record.Assumptions{}.Override(s.Header))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q in it", err, c.want)
			}
		})
	}
}

// Without the writers of the reads that it leaves open an order proves nothing,
// nor with wrong ones, nor with ones that are not asked for.
func TestNamedWriters(t *testing.T) {
	const history = "initial zero\ns1 A: w(x,1)\ns2 B: w(x,2)\ns3 C: w(x,1) w(y,1)\ns4 D: r(x,1) r(y,0) w(z,1) r(z,1)\ns5 E: w(x,1)\ns6 F: w(x,0)\ns7 G: r(x,0)\ns8 H aborted: w(x,1)\ns9 I: append(l,1) r(l,[1])"
	const order = "A B C D E F G I"
	const d, g, i = 3, 6, 8
	good := []verdict.Source{{Txn: d, Op: 0, Writer: 0}, {Txn: g, Op: 0, Writer: 5}}
	for _, c := range []struct {
		name    string
		sources []verdict.Source
		want    string // nothing: it is accepted
	}{
		{"right", good, ""},
		{"the initial state", []verdict.Source{good[0], {Txn: g, Writer: verdict.NoTxn}}, ""},
		{"of all reads of a key", []verdict.Source{{Txn: d, Op: -1, Key: "x", Writer: 0}, good[1]}, ""},
		{"one that needs no name", append([]verdict.Source{{Txn: d, Op: 1, Writer: verdict.NoTxn}}, good...), ""},
		{"none", nil, `D, operation 0: reads 1 from "x", which A and C both hold: an order of commits does not say whose it is, so the certificate has to`},
		{"one missing", good[:1], `G, operation 0: reads 0 from "x", which the initial state and F both hold`},
		{"another value's", []verdict.Source{{Txn: d, Writer: 1}, good[1]}, `D, operation 0: reads 1 from "x", as B wrote it; but that left 2`},
		{"another key's", []verdict.Source{{Txn: d, Writer: 8}, good[1]}, `D, operation 0: reads 1 from "x", as I wrote it; but that does not commit before`},
		{"no writer of the key", []verdict.Source{good[0], {Txn: g, Writer: 3}}, `G, operation 0: reads 0 from "x", as D wrote it; but that did not write the key`},
		{"a later one", []verdict.Source{{Txn: d, Writer: 4}, good[1]}, `D, operation 0: reads 1 from "x", as E wrote it; but that does not commit before`},
		{"an aborted one", []verdict.Source{{Txn: d, Writer: 7}, good[1]}, `D, operation 0: reads 1 from "x", as H wrote it; but that does not commit before`},
		{"itself", []verdict.Source{{Txn: d, Writer: d}, good[1]}, `D, operation 0: reads 1 from "x", as D wrote it; but that does not commit before`},
		{"against the axiom", []verdict.Source{{Txn: d, Writer: 2}, good[1]}, `D, operation 1: reads 0 from "y", at first; but C, which it read from before, wrote the key too and commits later`},
		{"the initial state of another value", []verdict.Source{{Txn: d, Writer: verdict.NoTxn}, good[1]}, `D, operation 0: reads 1 from "x", which the initial state is not known to hold`},
		{"twice", append(good, good[0]), `D, operation 0: has its writer named twice`},
		{"of a write", append([]verdict.Source{{Txn: d, Op: 2, Writer: 0}}, good...), `D, operation 2: has its writer named, and is no read`},
		{"of a read of its own", append([]verdict.Source{{Txn: d, Op: 3, Writer: 0}}, good...), `D, operation 3: has its writer named, and is no read`},
		{"of a list", append([]verdict.Source{{Txn: i, Op: 1, Writer: verdict.NoTxn}}, good...), `I, operation 1: has its writer named, and is no read`},
		{"of no operation", append([]verdict.Source{{Txn: d, Op: 4, Writer: 0}}, good...), `D: has no operation 4 to name the writer of`},
		{"of a transaction that is not there", append([]verdict.Source{{Txn: 7, Op: 0, Writer: 0}}, good...), `H, operation 0: has its writer named, and is no read`},
		{"of nobody", append([]verdict.Source{{Txn: 99, Op: 0, Writer: 0}}, good...), `transaction 99 reads from transaction 0, of 9`},
		{"somebody else", append([]verdict.Source{{Txn: d, Op: 0, Writer: 99}}, good...), `transaction 3 reads from transaction 99, of 9`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, opt := parse(t, history)
			err := replay(verdict.RC, s.Txns, script.Events(s.Txns, order), opt, c.sources...)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("error\n\t%v\nwant\n\t%s", err, c.want)
			}
		})
	}
	s, opt := parse(t, "s1 A: w(x,1)")
	if err := replay(verdict.SER, s.Txns, script.Events(s.Txns, "A"), opt, good...); err == nil || !strings.Contains(err.Error(), "an order of kind serial") {
		t.Errorf("a serial order with writers: %v", err)
	}
}

// What may look wrong at first sight, and is not.
func TestAccepted(t *testing.T) {
	for _, c := range []struct {
		name, text, order string
		level             verdict.Level
	}{
		{"nothing", "", "", verdict.SI},
		{"any of several writers", "s1 A: w(x,1)\ns2 B: w(x,2)\ns3 C: w(x,1)\ns4 D: r(x,1)", "A B C D", verdict.SER},
		{"unknown, left out", "s1 A unknown: w(x,1)\ns1 B: r(x,null)", "B", verdict.SER},
		{"unknown, later than its session", "initial zero\ns1 A unknown: w(x,1)\ns1 B: r(x,0)", "B A", verdict.SER},
		{"unknown, later than its session, ra", "initial zero\ns1 A unknown: w(x,1)\ns1 B: r(x,0)", "B A", verdict.RA},
		{"unknown, later than its end", "s1 A unknown: w(x,1) @1-2\ns2 B: w(x,2) @8-9", "B A", verdict.SSER},
		{"a clock that stepped back", "s1 A: w(x,1) @10-20\ns1 B: w(x,2) @1-25\ns2 C: w(y,1) @30-40", "A C B", verdict.SSER},
		{"own value later", "s1 A: r(x,1) w(x,1)", "A", verdict.SER},
		{"own value later, ra", "s1 A: r(x,1) w(x,1)", "A", verdict.RA},
		{"an unseen list", "coverage partial\ns1 A: append(l,1)\ns2 B: r(l,[9])", "A B", verdict.SER},
		{"unseen elements", "coverage partial\ns1 A: append(l,1)\ns2 B: append(l,2) r(l,[3,1,8,2])", "A B", verdict.SER},
		{"empty and absent", "s1 A: append(l,1)\ns2 B: r(l,[]) r(l,null)", "B A", verdict.SER},
		{"a list replaced", "s1 A: append(l,1)\ns2 B: w(l,[4]) append(l,5) r(l,[4,5])\ns3 C: r(l,[4,5])", "A B C", verdict.SER},
		{"an unseen write between", "coverage partial\ns1 A: w(x,1)\ns2 B: r(x,7)\ns3 C: r(x,1)", "A B C", verdict.SER},
		{"deleted by somebody", "coverage partial\ns1 A: w(x,1)\ns2 B: r(x,null)", "A B", verdict.SI},
		{"put back by somebody", "coverage partial\ns1 B: r(x,[]) r(y,7)\ns1 A: r(y,7) w(x,[]) w(y,7)", "B A", verdict.SI},
		{"put back by somebody, ra", "coverage partial\ns1 B: r(x,[]) r(y,7)\ns1 A: r(y,7) w(x,[]) w(y,7)", "B A", verdict.RA},
		{"nothing of what may be a list", "coverage partial\ns1 A: r(x,null) r(x,[])", "A", verdict.RA},
		{"a list with two writers", "s1 A: append(l,1)\ns2 B: append(l,2)\ns3 C: r(l,[1,2]) append(l,3) r(l,[1,2,3])", "A B C", verdict.CC},
		{"a list in another order than commits", "s1 A: append(l,1)\ns2 B: append(l,2)\ns3 C: r(l,[2,1])\ns4 D: append(l,3) r(l,[2,3])", "A B C D", verdict.G1},
		{"a list that was not read to its end", "s1 A: append(l,1) append(l,2)\ns1 B: append(l,3)\ns3 C: append(l,4) r(l,[3,4])", "A B C", verdict.G1},
		{"a list replaced, for its writer", "s1 A: append(l,1)\ns2 B: w(l,[3]) append(l,4) r(l,[3,4])\ns3 C: w(l,5) r(l,5) append(l,6) r(l,[6])", "A B C", verdict.CC},
		{"lists that differ", "s1 A: append(l,1)\ns2 B: append(l,2)\ns3 C: r(l,[1]) r(l,[1,2])", "A B C", verdict.RC},
		{"unseen elements, rc", "coverage partial\ns1 A: append(l,1)\ns2 B: append(l,2)\ns3 C: r(l,[8,1,9])", "A B C", verdict.RC},
		{"either writer", "s1 A: w(x,1)\ns2 B: w(x,1)\ns3 C: r(x,1)", "A B C", verdict.CC},
		{"the older writer", "initial zero\ns1 A: w(x,1)\ns2 B: w(x,1) w(y,1)\ns3 C: r(x,1) r(y,0)", "A B C", verdict.CC},
		{"the initial state, and not a writer", "initial zero\ns1 A: w(x,0) w(y,1)\ns3 C: r(x,0) r(y,0)", "A C", verdict.RA},
		{"a past that suits a later read", "initial zero\ns1 A: w(x,1)\ns2 B: w(y,1)\ns2 D: w(x,1)\ns3 C: r(x,1)\ns4 E: r(x,1) w(z,1)\ns3 F: r(y,0)", "A B D C E F", verdict.CC},
		{"other reads differ", "s1 A: w(x,1)\ns2 B: w(x,2)\ns3 C: r(x,1) r(x,2)", "A B C", verdict.RC},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, opt := parse(t, c.text)
			order := script.Events(s.Txns, c.order)
			if certificate.KindOf(c.level) == certificate.Events {
				order = apart(order)
			}
			if err := accepted(c.level, s.Txns, order, opt); err != nil {
				t.Error(err)
			}
		})
	}
}

// Elements may have commas and brackets in them.
func TestElementsWithCommas(t *testing.T) {
	list := func(text string) record.Value { return record.Value{Kind: record.KindList, Text: text} }
	odd := record.String(`a,]\"`)
	opt := record.Assumptions{Coverage: record.CoveragePartial}
	for text, want := range map[string]bool{
		`[[3,"]"],1,{"x,":[]},"a,]\\\""]`: true,
		`[1,"a,]\\\""]`:                   true,
		`["a,]\\\"",1]`:                   false,
		`[[1],"a,]\\\""]`:                 false,
	} {
		txns := []record.Transaction{
			{ID: "A", Ops: []record.Op{{Kind: record.Append, Key: "l", Value: record.Int(1)}}},
			{ID: "B", Ops: []record.Op{{Kind: record.Append, Key: "l", Value: odd}}},
			{ID: "C", Ops: []record.Op{{Key: "l", Value: list(text)}}},
		}
		err := replay(verdict.SER, txns, []verdict.Event{{Txn: 0, Commit: true}, {Txn: 1, Commit: true}, {Txn: 2, Commit: true}}, opt)
		if (err == nil) != want {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestPredicatesAreRefused(t *testing.T) {
	txns := []record.Transaction{{ID: "A", Ops: []record.Op{{Kind: record.PredicateRead, Key: "t"}}}}
	err := replay(verdict.SER, txns, []verdict.Event{{Commit: true}}, record.Assumptions{})
	if err == nil || !strings.Contains(err.Error(), `"rp"`) {
		t.Errorf("error %v", err)
	}
}

func parse(t *testing.T, text string) (script.Script, record.Assumptions) {
	t.Helper()
	s, err := script.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return s, record.Assumptions{}.Override(s.Header)
}

func TestErrorHasBothValues(t *testing.T) {
	s, opt := parse(t, "initial zero\ns1 A: w(x,1)\ns2 B: r(x,0)")
	err := replay(verdict.SER, s.Txns, script.Events(s.Txns, "A B"), opt)
	var e *certificate.Error
	if !errors.As(err, &e) || e.Event != 1 || e.Txn != "B" || e.Op != 0 || e.Expected != "1" || e.Found != "0" {
		t.Errorf("%+v", e)
	}
}

// Another order of the lines, or another line: a random change of a good
// certificate is refused at the changed lines or after, or proves the level all
// the same.
func TestChangedCertificates(t *testing.T) {
	cfg := tiny.Config{Txns: 5, Keys: 2, Duplicates: true, Appends: true, Unknown: true}
	refused, kept := 0, 0
	for seed := range uint64(600) {
		s, o := random(seed, cfg)
		for _, l := range levels {
			order, ok := oracle.Explain(l, s.Txns, o)
			if !ok || len(order) < 3 {
				continue
			}
			i, j := int(seed)%len(order), int(seed/7)%len(order)
			changed := slices.Clone(order)
			changed[i], changed[j] = changed[j], changed[i]
			if i == j {
				changed = slices.Delete(changed, i, i+1)
			}
			err := replay(l, s.Txns, changed, o)
			var e *certificate.Error
			switch {
			case err == nil && i == j && s.Txns[order[i].Txn].Status == record.Committed:
				t.Fatalf("seed %d, %v: an order without an event of %s is accepted", seed, l, s.Txns[order[i].Txn].ID)
			case err == nil:
				kept++
			case !errors.As(err, &e) || e.Event >= 0 && e.Event < min(i, j):
				t.Fatalf("seed %d, %v: %d and %d changed, and the error is %v", seed, l, i, j, err)
			default:
				refused++
			}
		}
	}
	if refused < 300 || kept < 50 {
		t.Errorf("%d refused and %d kept", refused, kept)
	}
}

// What checks the engine's proofs is built of nothing of the engine.
func TestSharesNothingWithTheEngine(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) < 9 {
		t.Fatalf("%d files, error %v", len(files), err)
	}
	const module = "github.com/isowatch/isowatch/"
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range f.Imports {
			if p := strings.Trim(i.Path.Value, `"`); strings.HasPrefix(p, module) && p != module+"incremental/verdict" && p != module+"ingest/record" {
				t.Errorf("%s imports %s", name, p)
			}
		}
	}
}
