package order

import (
	"testing"
	"time"

	"github.com/isowatch/isowatch/ingest/record"
)

// The reader's clock is an hour ahead for one entry: ticks are not held back for that hour.
func TestReadersClockSteps(t *testing.T) {
	o := New(Options{Lateness: 2 * time.Second, MaxTransaction: time.Minute, IdleAfter: 10 * time.Second, Every: 250 * time.Millisecond, MaxRemembered: 1000})
	const s = int64(time.Second)
	base, worst := 1_700_000_000*s, int64(0)
	for i := range int64(1000) {
		end := base + i*s
		now := end
		if i == 100 {
			now += 3600 * s
		}
		tick := func(at int64) {
			if i > 200 {
				worst = max(worst, end-at)
			}
		}
		o.Reading(now)
		o.Add(0, &record.Head{Session: "a", HasTimes: true, Start: end - 1000, End: end, HasSeq: true, Seq: i + 1, ID: uint64(i + 1)}, uint64(i+1), 0)
		o.CaughtUp(0, now)
		for r, ok := o.Next(); ok; r, ok = o.Next() {
			if r.Tick {
				tick(r.TickAt)
			}
		}
		for at, due := o.Tick(); due; at, due = o.Tick() {
			tick(at)
		}
	}
	if worst > 5*s {
		t.Errorf("a tick is %v behind", time.Duration(worst))
	}
}

// A client of another history whose clock is ahead says nothing of what has come: the broker does.
func TestOtherHistorysClock(t *testing.T) {
	const s = int64(time.Second)
	told := func(observe func(o *Order)) int64 {
		o := New(Options{Lateness: 2 * time.Second, MaxTransaction: time.Minute, Every: 250 * time.Millisecond, MaxRemembered: 1000})
		for i := range int64(3) {
			end := (1000 + i) * s
			o.Reading(9000 * s)
			o.Add(0, &record.Head{Session: "a", HasTimes: true, Start: end - 1000, End: end, HasSeq: true, Seq: i + 1, ID: uint64(i + 1)}, uint64(i+1), end)
		}
		observe(o)
		for _, ok := o.Next(); ok; _, ok = o.Next() {
		}
		return o.proved(5000 * s)
	}
	if got := told(func(o *Order) { o.Observe(0, "d\x00b", 5000*s, 1002*s) }); got > 1100*s {
		t.Errorf("a tick may go to %d s", got/s)
	}
	if got := told(func(o *Order) { o.Observe(0, "d\x00b", 5000*s, 5000*s) }); got != 5000*s {
		t.Errorf("where the broker says nothing a tick may go to %d s", got/s)
	}
}
