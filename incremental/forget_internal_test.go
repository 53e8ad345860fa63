package incremental

import (
	"fmt"
	"slices"
	"testing"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/incremental/version"
	"github.com/isowatch/isowatch/ingest/record"
)

// later makes an engine as a stream goes on with, without seeds.
func later() *Engine {
	return New(Options{Levels: []verdict.Level{verdict.SI}, Assumptions: record.Assumptions{Coverage: record.CoveragePartial, Clock: record.ClockPrune, Sessions: record.SessionsKeep, UnseenUnique: new(true)},
		UniqueValues: true, Online: true})
}

func at(session string, seq, start, end int64, ops ...record.Op) *record.Transaction {
	return &record.Transaction{ID: fmt.Sprintf("%s#%d", session, seq), Session: session, Seq: seq, HasSeq: true, Start: start, End: end, HasTimes: true, Ops: ops}
}

// What Base is given, in any order, neither has a place in its session nor takes one, nor makes
// a session for itself: there are as many of them as reads.
func TestBasesTakeNoSession(t *testing.T) {
	e := later()
	first := e.Step(at("a", 50, 1000, 1010, read("x", 1)), 0)
	for _, b := range []*record.Transaction{at("a", 40, 400, 410, write("x", 1)), at("a", 30, 300, 310, write("y", 2)), at("b", 9, 90, 95, write("z", 3)), at("b", 7, 70, 75, write("w", 4))} {
		if _, ok := e.Base(b); !ok {
			t.Fatalf("%s was not taken", b.ID)
		}
	}
	next := e.Step(at("a", 51, 1020, 1030, read("y", 2), read("w", 4)), 0)
	if n := len(e.h.sessions); n != 2 {
		t.Errorf("there are %d sessions, not 2", n)
	}
	if got, want := e.h.txns.At(e.h.indexOf[next]).prev, e.h.indexOf[first]; got != want {
		t.Errorf("before a#51 its session has %d, not %d", got, want)
	}
	// One that is no base and comes late is still set apart.
	e.Step(at("a", 45, 900, 910, read("z", 3)), 0)
	if n := len(e.h.sessions); n != 3 {
		t.Errorf("there are %d sessions, not 3", n)
	}
	out := e.Tick(2000)
	e.Undecided(func(x verdict.Exhibit) { t.Errorf("undecided: %v", x) })
	if len(out.Violations) != 0 {
		t.Errorf("found %v", out.Violations)
	}
}

// What Base is given before anything has come does not keep times from being used, and is not what later ones are
// placed by.
func TestBasesComeFirst(t *testing.T) {
	e := later()
	take := func(x *record.Transaction) {
		if _, ok := e.Base(x); !ok {
			t.Fatalf("%s was not taken", x.ID)
		}
	}
	take(at("a", 1, 400, 410, write("x", 1)))
	b := e.Step(at("b", 1, 1000, 1010, read("x", 1)), 0)
	take(at("a", 2, 600, 610, write("y", 1)))
	e.Step(at("c", 1, 1020, 1030, read("x", 1), write("x", 2), read("y", 1), write("y", 2)), 0)
	e.Step(at("d", 1, 2000, 2010, read("x", 2), read("y", 1)), 0)
	if out := e.Tick(3000); len(out.Violations) != 1 {
		t.Errorf("found %v, not that d#1 read what c#1 had overwritten", out.Violations)
	}
	if got := e.h.slotTx[e.h.first]; got != e.h.indexOf[b] {
		t.Errorf("they are placed by transaction %d, not by b#1", got)
	}
}

// Of each key the writers are told that nobody is known to have overwritten, at most so many,
// by transaction and in their order.
func TestFrontierNamesLastWriters(t *testing.T) {
	e := later()
	for _, x := range []*record.Transaction{
		at("a", 1, 0, 10, write("x", 1), write("y", 1), write("z", 1)),
		at("b", 1, 20, 30, write("x", 2)),                                 // by the clock after a#1
		at("c", 1, 21, 31, read("x", 2), write("x", 3), write("y", 3)),    // it read b#1's
		at("d", 1, 5, 32, write("y", 4)),                                  // beside a#1 and c#1
		at("b", 2, 25, 33, write("v", 5), write("w", 5), write("v", 6)),   // twice
		at("b", 3, 28, 34, write("w", 6)),                                 // behind b#2 in the session
		at("e", 1, 28, 35, write("u", 1), read("q", 7), write("w", 7)),    // beside both
		at("f", 1, 100, 110, write("x", 9), write("u", 9), write("z", 9)), // not asked for
	} {
		e.Step(x, 0)
	}
	for _, c := range []struct {
		perKey, dropped int
		want            string
	}{
		{8, 0, "0 z; 2 x y; 3 y; 4 v; 5 w; 6 u w; "},
		{1, 4, "0 z; 2 x; 3 y; 4 v; 6 u w; "},
	} {
		got := ""
		dropped := e.Frontier(7, c.perKey, func(id verdict.TxnID, keys []version.Key) {
			var names []string
			for _, k := range keys {
				names = append(names, e.h.nameOf(k))
			}
			slices.Sort(names)
			got += fmt.Sprint(id)
			for _, name := range names {
				got += " " + name
			}
			got += "; "
		})
		if got != c.want || dropped != c.dropped {
			t.Errorf("of a key at most %d: %q, %d left out; it is %q, %d", c.perKey, got, dropped, c.want, c.dropped)
		}
	}
}

// Number gives the same numbers one by one and many at once.
func TestNumberOfManyIsOfEach(t *testing.T) {
	one, many := later(), later()
	number := func(e *Engine, name string) version.Key {
		of := []version.Key{NoKey}
		e.Number(of, func(int) string { return name })
		return of[0]
	}
	var names []string
	for i := range 100 {
		names = append(names, fmt.Sprint("k", i*i%37)) // some of them twice
	}
	for from := 0; from < len(names); {
		some := names[from:min(len(names), from+1+from)]
		from += len(some)
		numbers := make([]version.Key, len(some))
		for i := range numbers {
			numbers[i] = NoKey
		}
		many.Number(numbers, func(i int) string { return some[i] })
		for i, name := range some {
			if want := number(one, name); numbers[i] != want || number(many, name) != want {
				t.Fatalf("%s has number %d, not %d", name, numbers[i], want)
			}
		}
	}
	if a, b := one.h.perKey.Len(), many.h.perKey.Len(); a != b || a != one.h.keys.list.Len() {
		t.Errorf("%d keys, not %d", b, a)
	}
}

// What times alone say of a level without real time can't be judged again once something was
// taken by Base, as not all is at hand: it is no violation, and is not satisfied either.
func TestUnprovedIsOpen(t *testing.T) {
	for _, stale := range []bool{false, true} {
		e := later()
		e.Step(at("a", 1, 1000, 1010, read("x", 1), write("x", 2)), 0)
		if _, ok := e.Base(at("b", 1, 400, 410, write("x", 1))); !ok {
			t.Fatal("it was not taken")
		}
		seen := int64(2)
		if stale {
			seen = 1
		}
		e.Step(at("c", 1, 2000, 2010, read("x", seen)), 0)
		out := e.Tick(3000)
		r := e.Results()[0]
		want := verdict.Result{Outcome: verdict.Satisfied}
		if stale {
			want = verdict.Result{Outcome: verdict.Unknown, Reason: verdict.Forgotten, Count: 1}
		}
		if len(out.Violations) > 0 || r.Outcome != want.Outcome || r.Reason != want.Reason || r.Count != want.Count {
			t.Errorf("stale %v: found %v, %v, %v %d, not %v, %v %d", stale, out.Violations, r.Outcome, r.Reason, r.Count, want.Outcome, want.Reason, want.Count)
		}
	}
}

// Attempts that are aborted, one after the other, do not make those who wait for the value wait more often: another one may
// come as long as they wait.
func TestAbortedAttemptsWakeNobody(t *testing.T) {
	const n = 50
	e := New(Options{Levels: []verdict.Level{verdict.SI}, Online: true, MaxTransaction: 1000, UniqueValues: true,
		Assumptions: record.Assumptions{Initial: record.InitialAbsent, Coverage: record.CoverageComplete}})
	for i := range int64(2 * n) {
		x := record.Transaction{ID: fmt.Sprint(i), Session: fmt.Sprint("s", i), HasTimes: true, Start: i, End: i + 1}
		if x.Ops = []record.Op{{Kind: record.Read, Key: "x", Value: record.Int(7)}}; i >= n {
			x.Status, x.Ops[0].Kind = record.Aborted, record.Write
		}
		e.Step(&x, x.End)
	}
	if got := len(e.r.waiting.queue) + len(e.r.waiting.late); got != n {
		t.Errorf("%d wait, of %d", got, n)
	}
	if got := len(e.Tick(10_000).Violations); got != n {
		t.Errorf("%d are found", got)
	}
}

// Where little room is given an engine that stands for nothing that was before is full, and not laden with that: what a
// segment begins with is taken in whole.
func TestLadenOnlyWithSeeds(t *testing.T) {
	e := New(Options{Levels: []verdict.Level{verdict.SI}, Online: true, UniqueValues: true, BytesMax: 1})
	for i := range int64(9) {
		e.Step(at("a", i, i, i+1, write("x", i)), i)
	}
	e.Tick(10)
	if is := e.State(); !is.Full || is.Laden {
		t.Errorf("full: %v, laden: %v", is.Full, is.Laden)
	}
}
