package order

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// TestReleasesDoNotDependOnReading reads the same logs, in which anything goes wrong
// but for a partition that is not waited for, in two interleavings with records
// taken out at other moments: the same releases, and the same ticks at the same places.
func TestReleasesDoNotDependOnReading(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		opt := Options{Lateness: simLateness, MaxSkew: simSkew, MaxTransaction: 25, Every: 16, Whole: rapid.Bool().Draw(t, "whole"), Prompt: rapid.Bool().Draw(t, "prompt"),
			MaxAhead: [...]time.Duration{0, 150}[rapid.IntRange(0, 1).Draw(t, "ahead")]}
		logs := drawLogs(t)
		var first []event
		for i := range 2 {
			g := play(opt, logs)
			for left := g.left(); len(left) > 0; left = g.left() {
				g.add(rapid.SampledFrom(left).Draw(t, "read"))
				if rapid.Bool().Draw(t, "drain") {
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

// TestLiveIsReplay reads logs of producers that keep to lateness while they are
// written, with polls, silence and a pause of any length, and again from the
// beginning: the same releases, and the same ticks at the same places, behind which
// nothing comes that ended before what they say.
func TestLiveIsReplay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t, true)
		logs := make([][]message, len(w.logs))
		for p, log := range w.logs {
			for _, m := range log {
				logs[p] = append(logs[p], message{m.txn, m.at})
			}
		}
		opt := w.opt
		opt.Every, opt.Prompt = 16, rapid.Bool().Draw(t, "prompt")
		live, replay := play(opt, logs), play(opt, logs)
		now := int64(0)
		for left := live.left(); len(left) > 0; left = live.left() {
			now += rapid.Int64Range(0, 60).Draw(t, "passes")
			live.Advance(now + 5_000_000)
			for p := range logs {
				if rapid.Bool().Draw(t, "poll") {
					for live.next[p] < len(logs[p]) && logs[p][live.next[p]].arrival <= now {
						live.add(p)
					}
					live.CaughtUp(p, now+5_000_000)
				}
			}
			live.drain()
		}
		live.finish()
		for left := replay.left(); len(left) > 0; left = replay.left() {
			replay.add(rapid.SampledFrom(left).Draw(t, "read"))
		}
		replay.finish()
		if diff := cmp.Diff(replay.events, live.events); diff != "" {
			t.Fatalf("(-replay +live):\n%s", diff)
		}
		ends := map[string]int64{}
		for _, x := range w.sorted {
			ends[x.ID] = x.End
		}
		told := int64(none)
		for _, e := range live.events {
			if e.ID == "" {
				told = max(told, e.Tick)
			} else if ends[e.ID] < told || e.What.Loses() {
				t.Fatalf("%s of %d, behind a tick at %d: %+v", e.ID, ends[e.ID], told, e.What)
			}
		}
	})
}

// TestTicks says where ticks are: one for each slot of 10 in which something was
// released, as soon as nothing more can come in it, and another one after a silence.
func TestTicks(t *testing.T) {
	o := newRig(Options{Lateness: 5, Every: 10})
	tick := func(want int64) {
		t.Helper()
		if at, due := o.Tick(); due != (want != 0) || at != want {
			t.Fatalf("tick %d %v, want %d", at, due, want)
		}
	}
	o.Advance(1000)
	o.Add(0, txn("a", 1, 0, 11), 0)
	o.Add(0, txn("a", 2, 11, 12), 0)
	o.Add(0, txn("a", 3, 12, 24), 0)
	for _, r := range wantIDs(t, o, "a#1", "a#2") {
		if r.Tick {
			t.Fatal("a tick before anything is released")
		}
	}
	tick(0) // 19 may still come
	o.Add(0, txn("a", 4, 24, 25), 0)
	wantIDs(t, o)
	tick(13) // the watermark has reached 20
	tick(0)
	o.Add(0, txn("a", 5, 25, 47), 0)
	if r := wantIDs(t, o, "a#3", "a#4"); r[0].Tick || r[1].Tick {
		t.Fatalf("the slot of 10 ended before, that of 20 goes on: %+v", r)
	}
	o.Add(0, txn("a", 6, 47, 60), 0)
	if r := wantIDs(t, o, "a#5"); !r[0].Tick || r[0].TickAt != 26 {
		t.Fatalf("no tick between slots: %+v", r[0].Release)
	}
	// Silence: it takes the rest of the slot and the delay until it is proved that
	// nothing comes in it any more, although the watermark stays at 61.
	o.Advance(2000)
	o.CaughtUp(0, 2006)
	wantIDs(t, o, "a#6")
	o.CaughtUp(0, 2014)
	tick(0)
	o.CaughtUp(0, 2015)
	wantIDs(t, o)
	if w := o.Watermark(); w != 61 {
		t.Fatalf("watermark %d", w)
	}
	tick(61)
	tick(0)
	o.CaughtUp(0, 2024) // 79 may still come
	tick(0)
	o.CaughtUp(0, 2025)
	tick(61)
	tick(0)
	o.CaughtUp(0, 9000)
	tick(0)
}

// TestTicksBefore says how many ticks go before a release, where no silence was told of
// before: one for the slot, and one for the silence if the next slot had none.
func TestTicksBefore(t *testing.T) {
	s := ticks{last: none}
	for _, c := range []struct{ key, at, n int64 }{{60, 0, 0}, {69, 0, 0}, {150, 70, 2}, {169, 151, 1}, {165, 0, 0}, {180, 170, 2}, {199, 181, 1}, {200, 200, 1}, {209, 0, 0}} {
		if at, n := s.before(c.key, 10); at != c.at || int64(n) != c.n {
			t.Errorf("before %d there are %d ticks of %d, want %d of %d", c.key, n, at, c.n, c.at)
		}
	}
	for s.take() {
	}
	if s.pending || s.silent || s.end(10) != 220 {
		t.Errorf("%+v, end %d", s, s.end(10))
	}
	if at, n := s.before(1000, 10); at != 0 || n != 0 {
		t.Errorf("%d ticks of %d that were made before", n, at)
	}
}

func TestFloor(t *testing.T) {
	for _, c := range [][3]int64{{0, 10, 0}, {9, 10, 0}, {10, 10, 10}, {-1, 10, -10}, {-10, 10, -10}, {none, 10, none}} {
		if got := floor(c[0], c[1]); got != c[2] {
			t.Errorf("floor(%d, %d) = %d, want %d", c[0], c[1], got, c[2])
		}
	}
}

// TestSample leaves out whole sessions, takes them in again, and tells.
func TestSample(t *testing.T) {
	kept := map[string]bool{}
	for i := range 4000 {
		s := fmt.Sprint("session-", i)
		kept[s] = Kept(s, 2)
		if Kept(s, 3) && !kept[s] || !Kept(s, 0) {
			t.Fatalf("%s is in a smaller sample and not in the greater", s)
		}
	}
	n := 0
	for _, k := range kept {
		if k {
			n++
		}
	}
	if n < 900 || n > 1100 {
		t.Fatalf("one session in 4 should be kept: %d of 4000 are", n)
	}
	in, without := "", ""
	for i := 0; in == "" || without == ""; i++ {
		if s := fmt.Sprint("session-", i); kept[s] {
			in = s
		} else {
			without = s
		}
	}
	o := newRig(Options{Lateness: 5})
	add := func(s string, seq int64, want Fate) {
		t.Helper()
		if f := o.Add(0, txn(s, seq, 10*seq, 10*seq+5), 0); f != want {
			t.Fatalf("%s %d is %v, want %v", s, seq, f, want)
		}
	}
	add(without, 1, Taken)
	o.Sample(2)
	add(in, 2, Taken)
	add(without, 3, LeftOut)
	wantIDs(t, o, without+"#1", in+"#2") // what is left out shows that time goes on
	o.Sample(0)
	add(without, 4, Taken)
	o.Flush()
	r := wantIDs(t, o, without+"#4")[0]
	if want := (Gap{Session: without, From: 2, To: 3, Sampled: true}); r.Gap == nil || *r.Gap != want {
		t.Errorf("gap %+v, want %+v", r.Gap, want)
	}
	if c := o.Counts(); c.LeftOut != 1 {
		t.Errorf("%+v", c)
	}
}

// TestHoleIsFilledInTime lets what fills a hole come within lateness, by a clock
// that was set back by MaxSkew in between: the session stays in order although the
// watermark has passed the record behind the hole.
func TestHoleIsFilledInTime(t *testing.T) {
	o := newRig(Options{Lateness: 10, MaxSkew: 5})
	o.Add(0, txn("a", 1, 0, 10), 0)
	o.Add(0, txn("z", 1, 0, 40), 0)
	wantIDs(t, o, "a#1")
	o.Add(0, txn("a", 3, 28, 29), 0) // 2 ended after it by its clock of then
	o.Add(0, txn("z", 2, 0, 46), 0)
	wantIDs(t, o) // the watermark has reached 31
	if w := o.Watermark(); w != 29 {
		t.Fatalf("watermark %d although what ended at 29 waits", w)
	}
	o.Add(0, txn("a", 2, 11, 32), 0)
	o.Flush()
	rs := wantIDs(t, o, "a#2", "a#3", "z#1", "z#2")
	if rs[0].Detached || rs[1].Detached || rs[1].Gap != nil || !rs[1].TimesDropped {
		t.Errorf("%+v %+v", rs[0].Release, rs[1].Release)
	}
}

// TestHoleThatStaysIsAGap does not wait for ever, also in silence.
func TestHoleThatStaysIsAGap(t *testing.T) {
	o := newRig(Options{Lateness: 10, MaxSkew: 5})
	o.Advance(1000)
	o.Add(0, txn("a", 1, 0, 10), 0)
	o.Add(0, txn("a", 3, 28, 29), 0)
	o.CaughtUp(0, 1000)
	o.CaughtUp(0, 1017)
	wantIDs(t, o, "a#1")
	o.CaughtUp(0, 1021)
	if r := wantIDs(t, o, "a#3")[0]; r.Gap == nil || !r.Loses() {
		t.Errorf("%+v", r.Release)
	}
}

// TestSilentSession: a session that goes silent holds nothing back, and when it
// comes back, however late, a hole is still seen.
func TestSilentSession(t *testing.T) {
	o := newRig(Options{Lateness: 10, MaxTransaction: 20, IdleAfter: 50})
	o.Add(0, txn("silent", 1, 0, 5), 0)
	for i := range int64(10_000) {
		o.Add(0, txn("a", i, 10*i, 10*i+5), 0)
		drain(o)
	}
	if w := o.Watermark(); w != 10*9999+5-10 {
		t.Fatalf("watermark %d", w)
	}
	o.Add(0, txn("silent", 3, 99_990, 100_000), 0)
	o.Flush()
	rs := drain(o)
	if r := rs[len(rs)-1]; r.Gap == nil || r.Gap.From != 2 || r.Gap.To != 2 || r.Late || r.Detached {
		t.Errorf("%+v", r.Release)
	}
}

// TestForgottenSessionComesBack: what cannot be known any more is told.
func TestForgottenSessionComesBack(t *testing.T) {
	o := newRig(Options{Lateness: 10, MaxSessions: 8})
	add := func(s string, seq, end int64, want Fate) *out {
		t.Helper()
		x := txn(s, seq, end-1, end)
		if f := o.Add(0, x, 0); f != want {
			t.Fatalf("%s is %v, want %v", x.ID, f, want)
		}
		o.Add(0, txn("clock", end, end, end+11), 0)
		var found *out
		for _, r := range drain(o) {
			if r.Txn.ID == x.ID {
				found = &r
			}
		}
		return found
	}
	add("x", 7, 100, Taken)
	for i := range int64(40) {
		add(fmt.Sprint("s", i), 7, 200+20*i, Taken)
	}
	if o.sessions["x"] != nil {
		t.Fatal("x is not forgotten")
	}
	o.memory = memory{limit: 8} // and so are the IDs
	add("x", 7, 100, Stale)     // it came before, long ago
	if r := add("x", 9, 2000, Taken); !r.Forgotten || !r.Loses() {
		t.Errorf("nothing told of a hole that may be: %+v", r.Release)
	}
	if r := add("y", 1, 3000, Taken); r.Forgotten || r.Loses() {
		t.Errorf("a session that begins is taken for one that goes on: %+v", r.Release)
	}
	add("x", 6, 150, Stale)
	var err error // a snapshot knows what may have come before x was forgotten
	if o.Order, err = Restore(Options{Lateness: 10, MaxSessions: 8}, o.Snapshot(nil), o.load); err != nil {
		t.Fatal(err)
	}
	add("x", 5, 151, Stale)
	add("x", 10, 4000, Taken)
}

// TestClockOfOneClient: steps of one client's clock, in a session with seqs. None
// is Late, no order is lost, and the neighbours notice nothing.
func TestClockOfOneClient(t *testing.T) {
	for name, step := range map[string]int64{"back": -50_000, "far ahead": 50_000} {
		o := newRig(Options{Lateness: 100, MaxSkew: 5, MaxAhead: 1000})
		var got []string
		note := func() {
			for _, r := range drain(o) {
				if r.Late || r.Detached || r.Loses() {
					t.Fatalf("clock %s: %+v", name, r.Release)
				}
				if r.Txn.Session == "a" {
					got = append(got, fmt.Sprint(r.Txn.Seq, r.TimesDropped))
				}
			}
		}
		var want []string
		for i := range int64(1000) {
			now := 100_000 + 10*i
			clock := now
			stepped := i >= 300 && i < 700
			if stepped {
				clock += step
			}
			for s, c := range map[string]int64{"a": clock, "b": now} {
				if f := o.Add(0, txn(s, i, c-5, c), now+20); f != Taken {
					t.Fatalf("clock %s: %s#%d is %v", name, s, i, f)
				}
			}
			want = append(want, fmt.Sprint(i, stepped || i >= 700 && step > 0)) // not before the clock is as far again
			note()
		}
		o.Flush()
		note()
		if !slices.Equal(got, want) {
			t.Fatalf("clock %s: %v", name, cmp.Diff(want, got))
		}
	}
}

// TestClockOfAllClients is set back: what follows its session's records is not Late,
// neither then nor when the clocks have caught up with themselves. It waits so long,
// unless the partition is read to its end. Sessions that begin then are Late.
func TestClockOfAllClients(t *testing.T) {
	for _, live := range []bool{true, false} {
		o := newRig(Options{Lateness: 100, MaxSkew: 5, MaxAhead: 1000})
		clock := int64(100_000)
		for i := range int64(1000) {
			if i == 500 {
				clock -= 3000
			}
			clock += 10
			arrival := 100_000 + 10*i
			for _, s := range []string{"a", "b"} {
				if f := o.Add(0, txn(s, i, clock-5, clock), arrival); f != Taken {
					t.Fatalf("live %v: %s#%d is %v", live, s, i, f)
				}
			}
			if i == 600 {
				o.Add(0, noTimes(txn("timeless", 1, 0, 0)), arrival)
				if f := o.Add(0, txn("new", 1, clock-1, clock), arrival); f != Late {
					t.Fatalf("live %v: a new client whose clock is behind is %v", live, f)
				}
			}
			if live {
				o.CaughtUp(0, 500_000+10*i)
			}
			for _, r := range drain(o) {
				if r.Loses() != (r.Txn.Session == "new") {
					t.Fatalf("live %v: %s: %+v", live, r.Txn.ID, r.Release)
				}
			}
			if most := 650; live && o.Held() > 40 || o.Held() > most {
				t.Fatalf("live %v: %d wait at %d", live, o.Held(), i)
			}
		}
		// The broker's clock serves again, now that all is as before.
		o.Add(0, noTimes(txn("timeless", 2, 0, 0)), 100_000+10*1000)
		o.Add(0, noTimes(txn("timeless", 3, 0, 0)), 100_000+10*1100)
		o.Add(0, noTimes(txn("timeless", 4, 0, 0)), 100_000+10*1100)
		if rs := drain(o); len(rs) == 0 || rs[len(rs)-1].Txn.ID != "timeless#2" {
			t.Errorf("live %v: time does not pass any more", live)
		}
		if n := o.Counts().TimesDropped; n < 400 || n > 650 {
			t.Errorf("live %v: times dropped of %d", live, n)
		}
	}
}

// TestOnlyTimelessFromNowOn: a partition in which no record has times any more goes
// on by the broker's clock.
func TestOnlyTimelessFromNowOn(t *testing.T) {
	o := newRig(Options{Lateness: 100})
	o.Add(0, txn("a", 1, 5, 10), 7000)
	for i := range int64(100) {
		o.Add(0, noTimes(txn("b", i, 0, 0)), 7000+10*i)
	}
	if rs := drain(o); len(rs) < 80 || rs[0].Txn.ID != "a#1" {
		t.Fatalf("%d came out", len(rs))
	}
	if f := o.Add(0, txn("a", 2, 1000, 1001), 8000); f != Taken {
		t.Errorf("the next with times is %v", f)
	}
}

// TestRedelivery: whatever comes again is never released again, however long
// after.
func TestRedelivery(t *testing.T) {
	for _, seqs := range []bool{true, false} {
		o := newRig(Options{Lateness: 100, MaxRemembered: 50, MaxSessions: 10})
		released := map[string]bool{}
		for i := range int64(2000) {
			x := txn(fmt.Sprint("s", i%7+i/100), i, 10*i, 10*i+5)
			if !seqs {
				noSeq(x)
			}
			if f := o.Add(0, x, 0); f != Taken {
				t.Fatalf("seq %v: %s is %v", seqs, x.ID, f)
			}
			for _, back := range []int{0, 1, 20, 60, 300, 1500} {
				if at := len(o.txns) - 1 - back*2; at >= 0 {
					if f := o.Add(0, o.txns[at], 0); f <= Late {
						t.Fatalf("seq %v: %s again after %d is %v", seqs, o.txns[at].ID, back, f)
					}
				}
			}
			for _, r := range drain(o) {
				if released[r.Txn.ID] {
					t.Fatalf("seq %v: %s is released again", seqs, r.Txn.ID)
				}
				released[r.Txn.ID] = true
			}
		}
	}
}

// TestRedeliveryOfWhatWaits: a record that waits, of a session without seq, comes
// again when its ID is no longer remembered. What ends at the same instant as others,
// by a coarse clock, is new all the same.
func TestRedeliveryOfWhatWaits(t *testing.T) {
	o := newRig(Options{Lateness: 1000, MaxRemembered: 8})
	for i := range int64(30) {
		x := noSeq(txn("a", i, 0, 100+i/3*10))
		if f := o.Add(0, x, 0); f != Taken {
			t.Fatalf("%s is %v", x.ID, f)
		}
	}
	for i, x := range o.txns[:30] {
		if f := o.Add(0, x, 0); f <= Late {
			t.Fatalf("%s again is %v", x.ID, f)
		} else if want := map[bool]Fate{true: Stale, false: Duplicate}[i < 20]; (i < 20 || i > 26) && f != want {
			t.Fatalf("%s again is %v, want %v", x.ID, f, want)
		}
	}
}

// TestMemoryOfAWaitingRecord: 240,000 records that wait cost less than 80 bytes
// each, without the IDs, and nothing is allocated in the steady state.
func TestMemoryOfAWaitingRecord(t *testing.T) {
	const n = 240_000
	o := New(Options{Lateness: time.Hour, MaxRemembered: 2})
	f := newFeed(24, true)
	for range n {
		h, p := f.next()
		o.Add(p, h, uint64(f.at), 0)
	}
	if got := float64(o.items.Len()) * 56 / n; got > 80 || o.Held() != n {
		t.Errorf("%.1f bytes for each of %d", got, o.Held())
	}
	o.delay = int64(2 * time.Second)
	step := func() {
		for range 500 {
			h, p := f.next()
			o.Add(p, h, uint64(f.at), 0)
		}
		for _, ok := o.Next(); ok; _, ok = o.Next() {
		}
	}
	if allocs := testing.AllocsPerRun(100, step); allocs > 0 {
		t.Errorf("%v allocations in 500 records", allocs)
	}
}
