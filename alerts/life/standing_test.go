package life

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/incremental/verdict"
)

// stands is how a level stands, in short; restored first, as after a restart.
func (s *sim) stands(db, level string) string {
	s.t.Helper()
	b := s.l.Append(nil)
	l, err := Restore(b, s.cfg)
	if err != nil {
		s.t.Fatal(err)
	}
	if !bytes.Equal(b, l.Append(nil)) {
		s.t.Fatal("restored and written again it is another state")
	}
	now, then := s.l.Snapshot().Standing(db, level, s.now), l.Snapshot().Standing(db, level, s.now)
	if now != then {
		s.t.Errorf("%s of %s: %+v, restored %+v", level, db, now, then)
	}
	open := 0
	for _, g := range s.l.Snapshot().Groups {
		if g.DB == db && g.State != alerts.Resolved {
			open++
		}
	}
	return fmt.Sprintf("%s, %d alerts, judged %d in %v, %d open", now.Health, now.Alerts, now.Judged.Transactions, now.Judged.Time, open)
}

func (s *sim) standing(db, level, want string) {
	s.t.Helper()
	if got := s.stands(db, level); got != want {
		s.t.Errorf("%s of %s after %v: %s; want %s", level, db, time.Duration(s.now-1_800_000_000*second), got, want)
	}
}

// tell says how far a database is judged.
func (s *sim) tell(db string, history uint64, transactions, at int64, levels ...string) {
	p := Progress{DB: db, Place: alerts.Place{History: history, Transactions: transactions, Time: at}}
	for _, level := range levels {
		name, part := strings.CutSuffix(level, " in part")
		a := Asked{Level: name, Complete: Complete}
		if part {
			a.Complete = Partial
		}
		p.Levels = append(p.Levels, a)
	}
	s.l.Judged(p, s.now)
	s.l.Tick(s.now)
	s.next()
}

// A promise that was broken is broken until enough has been judged since: whatever time
// passes, however often the monitor starts, whatever other databases do. Enough is as many
// transactions, and as much of the records' time.
func TestSilenceIsNoGoodNews(t *testing.T) {
	s := newSim(t, Config{Repeat: time.Hour})
	s.silent = true
	minute := int64(time.Minute)
	begin := s.now
	s.standing("shop", "si", "not-judged, 0 alerts, judged 0 in 0s, 0 open")
	s.tell("shop", 1, 5000, begin, "si", "ser")
	s.standing("shop", "si", "holds, 0 alerts, judged 5000 in 0s, 0 open")
	s.standing("shop", "rc", "not-judged, 0 alerts, judged 5000 in 0s, 0 open") // nobody asks for it

	for i := range 774 {
		h := lost(fmt.Sprint(i), fmt.Sprint(i))
		h.At = &alerts.Place{History: 1, Transactions: 5000 + int64(i), Time: begin + int64(i)}
		s.find(h)
	}
	s.standing("shop", "si", "broken, 774 alerts, judged 0 in 0s, 1 open")
	s.standing("shop", "ser", "broken, 774 alerts, judged 0 in 0s, 1 open")
	if s.told[len(s.told)-1].Group != s.told[0].Group || len(s.told) != 3 {
		t.Errorf("one cause is told as %s", says(s.told))
	}

	// Silence, and a storm elsewhere, which ends.
	s.pass(24 * time.Hour)
	s.standing("shop", "si", "broken-earlier, 774 alerts, judged 0 in 0s, 1 open")
	for i := range 2 * GroupsMaxDefault {
		s.find(another(fmt.Sprint("o", i), fmt.Sprint("other", i)))
	}
	for i := range 2 * GroupsMaxDefault {
		s.tell(fmt.Sprint("other", i), 1, 100_000, s.now+int64(time.Hour), "si")
	}
	s.pass(time.Hour)
	s.standing("other7", "si", "holds, 1 alerts, judged 100000 in 1h0m0s, 0 open")
	s.standing("shop", "si", "broken-earlier, 774 alerts, judged 0 in 0s, 1 open")

	// Much at once, and little for long, are not enough.
	s.tell("shop", 1, 500_000, begin+minute, "si", "ser")
	s.standing("shop", "si", "broken-earlier, 774 alerts, judged 494227 in 59.999999227s, 1 open")
	h := lost("again", "x")
	h.At = &alerts.Place{History: 1, Transactions: 500_000, Time: begin + minute}
	s.find(h)
	s.standing("shop", "si", "broken, 775 alerts, judged 0 in 0s, 1 open")
	s.pass(2 * time.Minute)
	s.tell("shop", 1, 500_999, begin+40*minute, "si", "ser in part")
	s.standing("shop", "si", "broken-earlier, 775 alerts, judged 999 in 39m0s, 1 open")
	s.tell("shop", 1, 501_000, begin+40*minute, "si", "ser in part")
	s.standing("shop", "si", "holds, 775 alerts, judged 1000 in 39m0s, 0 open")
	s.standing("shop", "ser", "holds-in-part, 775 alerts, judged 1000 in 39m0s, 0 open")

	// It begins again: that is another breach.
	h.ID, h.At = "later", &alerts.Place{History: 1, Transactions: 501_001, Time: begin + 41*minute}
	s.find(h)
	s.standing("shop", "si", "broken, 1 alerts, judged 0 in 0s, 1 open")
	if got := s.l.Snapshot().Standing("shop", "si", s.now); got.Since != s.now || got.Last != s.now || got.Enough != (Judged{1000, 15 * time.Minute}) {
		t.Errorf("%+v", got)
	}
}

// However much is judged at once, as of a backlog, or where one clock is far ahead, a breach is not over before a minute
// of the monitor's clock has passed.
func TestBreachIsSeenForAMinute(t *testing.T) {
	s := newSim(t, Config{})
	s.silent = true
	h := lost("1", "x")
	h.At = &alerts.Place{History: 1, Transactions: 10, Time: s.now}
	s.find(h)
	s.tell("shop", 1, 10, s.now, "si")
	s.tell("shop", 1, 2000, s.now+int64(time.Hour), "si")
	s.standing("shop", "si", "broken, 1 alerts, judged 1990 in 1h0m0s, 1 open")
	var err error
	if s.l, err = Restore(s.l.Append(nil), Config{}); err != nil { // a restart ends nothing sooner
		t.Fatal(err)
	}
	s.tell("shop", 1, 2001, s.now+int64(time.Hour), "si")
	s.standing("shop", "si", "broken, 1 alerts, judged 1991 in 1h0m0s, 1 open")
	s.pass(time.Minute)
	s.standing("shop", "si", "holds, 1 alerts, judged 1991 in 1h0m0s, 0 open")
}

// What was never broken holds since the first record of its history, however many were judged at once, and no later
// than that was heard of.
func TestHoldsSinceTheFirstRecord(t *testing.T) {
	s := newSim(t, Config{})
	minute := int64(time.Minute)
	p := Progress{DB: "shop", Place: alerts.Place{History: 1, Transactions: 9, From: s.now - 9*minute, Time: s.now - minute}, LastRecord: s.now, Levels: []Asked{{Level: "si", Complete: Complete}}}
	s.l.Judged(p, s.now)
	p.LastRecord = 0 // of a run that no record has come to yet
	s.l.Judged(p, s.now)
	if p, _ := s.l.Snapshot().Progress("shop"); p.LastRecord != s.now {
		t.Errorf("the last record came at %d, %d is now", p.LastRecord, s.now)
	}
	got := s.l.Snapshot().Standing("shop", "si", s.now)
	if want := (Judged{9, 8 * time.Minute}); got.Since != s.now-9*minute || got.Judged != want {
		t.Errorf("since %d before now, judged %+v", s.now-got.Since, got.Judged)
	}
	s.l.Judged(Progress{DB: "bank", Place: alerts.Place{History: 1, Transactions: 9, From: s.now + 9*minute, Time: s.now + 10*minute}}, s.now)
	if got := s.l.Snapshot().Standing("bank", "si", s.now); got.Judged.Time < 0 || got.Since > s.now {
		t.Errorf("%+v", got)
	}
}

// A promise is broken by every alert that says so: also where that does not follow from the weakest level that it
// breaks, as lin, what clocks enforce, and ser beside strong-si.
func TestWhatAnAlertBreaks(t *testing.T) {
	for _, x := range []struct {
		weakest string
		breaks  []string
		asked   string
		whole   bool
	}{
		{"strong-si", []string{"lin"}, "lin", false},
		{"si", []string{"si", "lin"}, "lin", false},
		{"si", []string{"si"}, "lin", true}, // it may be one of sessions
		{"strong-si", []string{"strong-si", "ser"}, "ser", false},
		{"strong-si", []string{"strong-si", "ser"}, "si", true},
		{"strong-si", []string{"strong-si", "ser"}, "sser", false},
		{"strong-si", []string{"si"}, "si", false}, // under clock: enforce
		{"ser", []string{"ser"}, "strong-si", true},
	} {
		s := newSim(t, Config{})
		s.silent = true
		s.tell("shop", 1, 10, s.now, x.breaks...)
		h := lost("a", "x")
		h.Level, h.Weakest, h.Breaks = x.breaks[0], x.weakest, x.breaks
		h.At = &alerts.Place{History: 1, Transactions: 10, Time: s.now}
		s.find(h)
		s.tell("shop", 1, 20, s.now, x.asked)
		b := s.l.Append(nil)
		again, err := Restore(b, Config{})
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range []*Life{s.l, again} {
			l.Judged(Progress{DB: "shop", Place: alerts.Place{History: 1, Transactions: 20, Time: s.now}, Levels: []Asked{{Level: x.asked, Complete: Complete}}}, s.now)
			snapshot := l.Snapshot()
			got := snapshot.Standing("shop", x.asked, s.now)
			if whole := got.Health == Holds; whole != x.whole || !whole && (got.Alerts != 1 || got.Violations != 1) {
				t.Errorf("%+v: %+v", x, got)
			}
			if g := snapshot.Groups[0]; (g.State == alerts.Resolved) != x.whole || !x.whole && g.Level != x.asked {
				t.Errorf("%+v: the group is %s, of %s", x, g.State, g.Level)
			}
			asked, _ := verdict.ParseLevel(x.asked)
			if broken := snapshot.Groups[0].Broken([]verdict.Level{asked}); len(broken) == 0 != x.whole {
				t.Errorf("%+v: the group breaks %v", x, broken)
			}
		}
	}
}

// Another configuration begins another history: what was judged before it does not count,
// nor does the history that an alert of before it names. A level that nobody asks for any
// more ends its groups, unless what it broke breaks one that is asked for. Whatever was
// found breaks what is asked for later.
func TestChangedPromise(t *testing.T) {
	s := newSim(t, Config{})
	s.silent = true
	skew := func(history uint64, transactions int64) alerts.Alert {
		h := lost(fmt.Sprint("skew", history, transactions), "x")
		h.Level, h.Weakest, h.Name = "ser", "ser", "write-skew"
		h.At = &alerts.Place{History: history, Transactions: transactions, Time: s.now}
		return h
	}
	update := lost("update", "x")
	update.Level = "ser" // asked for ser alone
	update.At = &alerts.Place{History: 1, Transactions: 10, Time: s.now}
	s.tell("shop", 1, 10, s.now, "ser")
	s.find(skew(1, 10))
	s.find(update)
	s.standing("shop", "ser", "broken, 2 alerts, judged 0 in 0s, 2 open")
	s.tell("shop", 1, 900, s.now+int64(time.Hour), "ser")
	s.standing("shop", "ser", "broken, 2 alerts, judged 890 in 1h0m0s, 2 open")

	// ser becomes si: the write skew is no matter any more, the lost update is.
	s.pass(time.Hour)
	s.tell("shop", 7, 500, s.now, "si")
	s.standing("shop", "si", "broken-earlier, 1 alerts, judged 0 in 0s, 1 open")
	s.standing("shop", "rc", "not-judged, 0 alerts, judged 500 in 0s, 1 open")
	late := skew(1, 1_000_000) // it was pending
	late.Level, late.Weakest, late.Name = "si", "si", "long-fork"
	s.find(late)
	s.tell("shop", 7, 501, s.now, "si")
	s.tell("shop", 7, 502, s.now, "si")
	s.standing("shop", "si", "broken, 2 alerts, judged 1 in 0s, 2 open")
	s.now += int64(time.Minute)
	s.tell("shop", 7, 501+ResolveTransactionsDefault, s.now+int64(time.Hour), "si")
	s.standing("shop", "si", "holds, 2 alerts, judged 1000 in 1h1m0s, 0 open")

	// And ser again: of that nothing was judged since the write skew.
	s.tell("shop", 8, 3, s.now+int64(time.Hour), "ser")
	s.standing("shop", "ser", "broken-earlier, 1 alerts, judged 0 in 0s, 1 open")
	s.standing("shop", "si", "not-judged, 2 alerts, judged 0 in 0s, 1 open")
}

// Page, list and receivers say of a breach what its standing says, whatever is asked for in turn: who asks for
// less is told that it is over, who asks again that it is not, and nobody counts it anew.
func TestAskedAgain(t *testing.T) {
	s := newSim(t, Config{Repeat: time.Hour})
	s.silent = true
	update := lost("1", "x")
	update.At = &alerts.Place{History: 1, Transactions: 10, Time: s.now}
	stored := alerts.Alert{ID: "1", DB: "shop", Level: "si", Breaks: []string{"si"}, Weakest: "si", Name: "lost-update",
		LastSeen: s.now, State: alerts.Fresh}
	ask := func(history uint64, level, list string) {
		t.Helper()
		s.now += int64(time.Hour)
		place := alerts.Place{History: history, Transactions: 9, Time: s.now}
		s.l.Judged(Progress{DB: "shop", Place: place, Levels: []Asked{{Level: level, Complete: Complete}}}, s.now)
		s.l.Tick(s.now)
		snapshot := s.l.Snapshot()
		a, standing := snapshot.Overlay(stored), snapshot.Standing("shop", level, s.now)
		said := fmt.Sprintf("%s: %s at %s %v, %d alerts", standing.Health, a.State, a.Level, a.Breaks, standing.Alerts)
		if said != list {
			t.Errorf("asked for %s: %s, want %s", level, said, list)
		}
		s.stands("shop", level)
	}
	told := func(want string) { t.Helper(); s.want(s.next(), want) }
	s.tell("shop", 1, 10, s.now, "si")
	s.want(s.find(update), "alert/new groups=1 count=1 ids=1")
	ask(2, "rc", "holds: resolved at si [si], 0 alerts")
	told("resolved/resolved groups=1 count=1 ids=")
	ask(3, "si", "broken-earlier: new at si [si], 1 alerts")
	told("ongoing/ongoing groups=1 count=1 ids=")
	ask(4, "ser", "broken-earlier: new at ser [si ser], 1 alerts")
	told("ongoing/ongoing groups=1 count=1 ids=")
	ask(5, "rc", "holds: resolved at ser [si ser], 0 alerts")
	told("resolved/resolved groups=1 count=1 ids=")
	ask(6, "pc", "holds: resolved at ser [si ser], 0 alerts")
	told("")
	ask(7, "strong-si", "broken-earlier: new at strong-si [si strong-si], 1 alerts")
	told("ongoing/ongoing groups=1 count=1 ids=")

	// Nobody has heard that it was over.
	ask(8, "pc", "holds: resolved at strong-si [si strong-si], 0 alerts")
	ask(9, "strong-si", "broken-earlier: new at strong-si [si strong-si], 1 alerts")
	told("")

	// Found again in the next run, before that has said how far it is.
	ask(10, "g1", "holds: resolved at strong-si [si strong-si], 0 alerts")
	told("resolved/resolved groups=1 count=1 ids=")
	update.ID, update.At = "2", &alerts.Place{History: 11, Transactions: 3, Time: s.now}
	s.want(s.find(update), "ongoing/ongoing groups=1 count=2 ids=2")
	s.tell("shop", 11, 3, s.now, "si")
	if g := s.l.Snapshot().Groups; len(g) != 1 || g[0].State != alerts.Ongoing || g[0].Level != "si" || g[0].Alerts != 2 {
		t.Errorf("%+v", g)
	}

	// What was found before, and is brought only when nobody asks any more, is over.
	s.tell("shop", 12, 3, s.now, "rc")
	s.tell("shop", 12, 4, s.now, "rc")
	s.now += int64(time.Hour) // there is room for notices
	update.ID, update.At = "3", &alerts.Place{History: 11, Transactions: 4, Time: s.now}
	s.want(s.find(update), "ongoing/ongoing groups=1 count=3 ids=3")
	s.tell("shop", 12, 5, s.now, "rc")
	s.standing("shop", "rc", "holds, 0 alerts, judged 5 in 1h0m0s, 0 open")
	s.tell("shop", 11, 3, s.now, "si")
	s.standing("shop", "si", "broken, 3 alerts, judged 0 in 0s, 1 open")

	// What is over as enough was judged is so whoever asks.
	s.now += int64(time.Minute)
	s.tell("shop", 11, 3+ResolveTransactionsDefault, s.now+int64(time.Hour), "si")
	s.standing("shop", "si", "holds, 3 alerts, judged 1000 in 1h1m0s, 0 open")
	s.tell("shop", 12, 3, s.now+int64(time.Hour), "rc")
	s.tell("shop", 13, 3, s.now+int64(time.Hour), "si")
	s.standing("shop", "si", "holds, 3 alerts, judged 0 in 0s, 0 open")
}

// What a restart reads first is of before it: nothing holds until before it began to hold.
func TestHoldsSinceBeforeUntil(t *testing.T) {
	s := newSim(t, Config{})
	s.silent = true
	for i, behind := range []int64{3, 0, -3} {
		s.tell("shop", uint64(i+1), 5, s.now-behind*second, "rc")
		if got := s.l.Snapshot().Standing("shop", "rc", s.now); got.Health != Holds || got.Since > got.Until || got.Since != s.now-max(0, behind)*second {
			t.Errorf("%d s behind: %+v", behind, got)
		}
	}
}

// Where there were anomalies is remembered in as many spans as there is room for.
func TestSpans(t *testing.T) {
	s := newSim(t, Config{})
	for _, at := range []int64{50, 10, 30, 30, 20} {
		h := lost(fmt.Sprint(at), "x")
		h.At = &alerts.Place{History: 1, Time: at}
		s.find(h)
	}
	if got, want := fmt.Sprint(s.l.Snapshot().Spans("shop")), "[{10 10 1} {20 20 1} {30 30 2} {50 50 1}]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	many := lost("counted", "x")
	many.At = &alerts.Place{History: 1, From: 25, Time: 40} // several, of which that is all that is known
	s.several(many, 7)
	if got, want := fmt.Sprint(s.l.Snapshot().Spans("shop")), "[{10 10 1} {20 20 1} {25 40 9} {50 50 1}]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	before := fmt.Sprint(s.l.Snapshot().Spans("shop"))
	kept := s.l.Snapshot()
	for i := range 10 * spansMax {
		h := lost(fmt.Sprint("more", i), "x")
		h.At = &alerts.Place{History: 1, Time: 1000 + int64(i*i)}
		s.find(h)
	}
	spans, total := s.l.Snapshot().Spans("shop"), int64(0)
	for i, x := range spans {
		if total += x.Alerts; x.From > x.To || i > 0 && x.From <= spans[i-1].To {
			t.Fatalf("%v", spans)
		}
	}
	if len(spans) != spansMax || total != 12+10*spansMax || spans[0].From != 10 || spans[len(spans)-1].To != 1000+(10*spansMax-1)*(10*spansMax-1) {
		t.Errorf("%d spans of %d: %v", len(spans), total, spans)
	}
	if fmt.Sprint(kept.Spans("shop")) != before {
		t.Error("a snapshot has changed")
	}
}
