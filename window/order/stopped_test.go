package order

import (
	"testing"
	"time"
)

// The monitor is stopped for longer than is waited for anybody, and then works off what it knew before: that its
// partition had been read to its end, as it had been when that was found out. What came meanwhile is in time,
// and no partition was silent.
func TestStoppedReader(t *testing.T) {
	const s, ms = int64(time.Second), int64(time.Millisecond)
	base := 1_700_000_000 * s
	for _, stopped := range []int64{3 * s, 13 * s, 3600 * s} {
		o := newRig(Options{Partitions: []int{0, 1}, Lateness: 2 * time.Second, MaxSkew: 5 * time.Millisecond, MaxTransaction: time.Minute,
			IdleAfter: 10 * time.Second, Every: 250 * time.Millisecond})
		now := base
		read := func(session string, seq, ago int64) {
			t.Helper()
			o.Reading(now)
			if f := o.Add(0, txn(session, seq, now-ago-ms, now-ago), 0); f != Taken {
				t.Errorf("stopped for %v: %s#%d is %v", time.Duration(stopped), session, seq, f)
			}
			o.Advance(now)
			drain(o)
		}
		for i := range int64(20) {
			read("a", i+1, 0)
			now += 250 * ms
			o.CaughtUp(1, now)
		}
		last := now
		o.CaughtUp(0, now)
		now += stopped
		o.CaughtUp(0, now) // as the one before says, only later
		o.CaughtUp(1, now)
		drain(o)
		read("b", 1, now-(last-500*ms)) // sent when the stop began
		read("a", 21, stopped-s)
		if n := o.Counts(); n.Skipped+n.Late > 0 {
			t.Errorf("stopped for %v: %+v", time.Duration(stopped), n)
		}
	}
}

// So it is where nothing is read while those who write are waited for: time passes, and proves nothing.
func TestPausedReader(t *testing.T) {
	const s, ms = int64(time.Second), int64(time.Millisecond)
	base := 1_700_000_000 * s
	for _, paused := range []int64{3 * s, 10 * s} {
		o := newRig(Options{Partitions: []int{0, 1}, Lateness: 2 * time.Second, MaxSkew: 5 * time.Millisecond, MaxTransaction: time.Minute,
			IdleAfter: 10 * time.Second, Every: 250 * time.Millisecond})
		now := base
		read := func(session string, seq, ago int64) {
			t.Helper()
			o.Reading(now)
			if f := o.Add(0, txn(session, seq, now-ago-ms, now-ago), 0); f != Taken {
				t.Errorf("paused for %v: %s#%d is %v", time.Duration(paused), session, seq, f)
			}
			o.Advance(now)
			drain(o)
		}
		for i := range int64(20) {
			o.Returned(i > 10)
			read("a", i+1, 0)
			now += 250 * ms
			o.CaughtUp(1, now)
		}
		last := now
		o.CaughtUp(0, now)
		for end := now + paused; now < end; now += 50 * ms {
			o.Advance(now)
			drain(o)
		}
		o.Returned(false)
		o.CaughtUp(0, now) // as the one before says, only later
		o.CaughtUp(1, now)
		drain(o)
		read("b", 1, now-(last-500*ms)) // sent when the pause began
		read("a", 21, paused-s)
		if n := o.Counts(); n.Skipped+n.Late > 0 {
			t.Errorf("paused for %v: %+v", time.Duration(paused), n)
		}
	}
}

// A partition was away for four seconds, and two write to it: one is back at once, the other one three seconds later, whose
// connections share a session, so that some transactions end before others that began earlier. More is read meanwhile than
// may wait: it is handed out, nothing of it is late, no clock was set back, and nothing is concluded from absence since the
// partition went until nothing is Returned any more.
func TestTooMuchReturned(t *testing.T) {
	const s, ms = int64(time.Second), int64(time.Millisecond)
	base := 1_700_000_000 * s
	o := newRig(Options{Partitions: []int{0}, Lateness: 500 * time.Millisecond, MaxSkew: 5 * time.Millisecond, MaxTransaction: 2 * time.Second,
		IdleAfter: 10 * time.Second, Every: 250 * time.Millisecond, MaxBuffered: 50})
	seqs, out, told := map[string]int64{}, 0, int64(0)
	work := func() {
		for {
			for r, ok := o.Next(); ok; r, ok = o.Next() {
				out++
				if told = max(told, r.TickAt); r.Late && !r.Passed {
					t.Errorf("%s is late", r.Txn.ID)
				}
			}
			at, due := o.Tick()
			if !due {
				return
			}
			told = max(told, at)
		}
	}
	at := func(tenth int64) int64 { return base + tenth*s/10 }
	write := func(session string, from, to int64) {
		for i := from; i < to; i++ {
			end := at(i)
			if session == "b" && i%10 == 1 {
				end += 120 * ms
			}
			seqs[session]++
			o.Reading(at(to))
			o.Add(0, txn(session, seqs[session], at(i)-ms, end), at(to))
		}
		o.Advance(at(to))
		work()
	}
	both := func(from, to int64) {
		for i := from; i < to; i++ {
			write("a", i, i+1)
			write("b", i, i+1)
		}
	}
	both(0, 10)
	o.Returned(true)
	write("a", 10, 80)
	for i := int64(80); i < 110; i++ {
		write("a", i, i+1)
	}
	write("b", 10, 110)
	both(110, 130)
	if due := at(10) + 2*s + 5*ms; out < 200 || told > due {
		t.Errorf("%d are handed out, and a tick is %v after the first reader of what was still to come was due", out, time.Duration(told-due))
	}
	o.Returned(false)
	both(130, 140)
	if n := o.Counts(); told < at(125) || n.Forced+n.Skipped+n.SteppedBack > 0 {
		t.Errorf("ticks go on to %v only, %+v", time.Duration(told-base), n)
	}
}
