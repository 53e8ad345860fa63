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
