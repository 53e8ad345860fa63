package order

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// TestForgettingDoesNotDependOnReading: where sessions are forgotten all the time, some while
// records of them wait, what comes out is the same however it is read. All come in time, but
// records are missing, and connections that share a session's name overlap.
func TestForgettingDoesNotDependOnReading(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t, true)
		w.opt.MaxSessions, w.opt.Whole = rapid.IntRange(2, 5).Draw(t, "kept"), rapid.Bool().Draw(t, "whole")
		logs := make([][]message, len(w.logs))
		for p, log := range w.logs {
			for _, m := range log {
				if rapid.IntRange(0, 4).Draw(t, "missing") == 0 {
					continue
				}
				m.txn.Start -= rapid.Int64Range(0, 40).Draw(t, "overlap")
				logs[p] = append(logs[p], message{m.txn, m.at})
			}
		}
		var first []event
		for i := range 2 {
			g := play(w.opt, logs)
			for left := g.left(); len(left) > 0; left = g.left() {
				g.add(rapid.SampledFrom(left).Draw(t, "read"))
				if i == 1 || rapid.IntRange(0, 9).Draw(t, "drain") == 0 {
					g.drain()
				}
			}
			g.finish()
			if i == 0 {
				first = g.events
			} else if diff := cmp.Diff(first, g.events); diff != "" {
				t.Fatalf("(-one reading +another):\n%s", diff)
			}
		}
	})
}

// What a session did before it was forgotten is not known any more, although something of it
// waits: else it would depend on the reading. s goes on with a transaction that began before
// its others; u has a record, too late, that fills a hole from before, and began after what
// was behind that.
func TestForgottenWhileItWaits(t *testing.T) {
	logs := [][]message{{
		{txn("s", 1, 50, 100), 100},
		{txn("s", 2, 60, 101), 101},
		{txn("u", 1, 50, 102), 102},
		{txn("u", 3, 60, 103), 103},
		{txn("a", 1, 109, 110), 110},
		{txn("b", 1, 119, 120), 120},
		{txn("c", 1, 129, 130), 130},
		{txn("d", 1, 139, 140), 140},
		{txn("h", 1, 194, 196), 196}, // by now s and u are forgotten, if what is due has left
		{txn("s", 3, 10, 195), 197},
		{txn("u", 4, 190, 195), 198},
		{txn("u", 2, 70, 80), 200},
		{txn("g", 1, 299, 300), 300},
	}}
	for _, each := range []bool{false, true} {
		g := play(Options{Lateness: 30, MaxSessions: 4}, logs)
		for len(g.left()) > 0 {
			g.add(0)
			if each {
				g.drain()
			}
		}
		g.finish()
		found := 0
		for _, e := range g.events {
			switch e.ID {
			case "s#3":
				found++
				if !e.What.Forgotten || e.What.TimesDropped {
					t.Errorf("one by one %v: compared with what is forgotten: %+v", each, e.What)
				}
			case "u#2": // one by one it is Stale: it may be one of the forgotten
				found++
				if !e.What.Late || !e.What.Detached || e.What.Contradicts {
					t.Errorf("one by one %v: compared with what is forgotten: %+v", each, e.What)
				}
			}
		}
		if want := map[bool]Fate{true: Stale, false: Late}[each]; g.fates[11] != want {
			t.Errorf("one by one %v: u#2 is %v, want %v", each, g.fates[11], want)
		}
		if want := map[bool]int{true: 1, false: 2}[each]; found != want {
			t.Errorf("one by one %v: %d of them came out, want %d: %+v", each, found, want, g.events)
		}
	}
}
