package order

import (
	"testing"
	"time"
)

// A partition that is heard of by another history's records alone, or that says all the time
// that it was read to its end, is not idle: nothing is said to be missed.
func TestPartitionsThatAreNotIdle(t *testing.T) {
	for name, say := range map[string]func(o *rig, now int64){
		"observed":  func(o *rig, now int64) { o.Observe(1, "other", 90, 90) },
		"caught up": func(o *rig, now int64) { o.CaughtUp(1, now) },
	} {
		t.Run(name, func(t *testing.T) {
			o := newRig(Options{Partitions: []int{0, 1}, Lateness: 10, IdleAfter: 100})
			for i := range int64(20) {
				now := 1000 + 60*i
				o.Advance(now)
				say(o, now)
				o.Add(0, txn("a", i, 60*i, 100+60*i), now)
				drain(o)
			}
			if n := o.Missed(); n != 0 {
				t.Errorf("%d partitions are said to be passed over", n)
			}
		})
	}
}

// A partition that is silent is counted once, when the watermark passes it, and again only
// after it was heard; one of which the watermark is no farther is not counted.
func TestPassedOverOnce(t *testing.T) {
	o := newRig(Options{Partitions: []int{0, 1}, Lateness: 10, IdleAfter: 100})
	o.Advance(1000)
	o.Add(1, txn("b", 1, 0, 300), 1000)
	for i, c := range []struct {
		end, watermark, missed int64
	}{{100, 90, 0}, {110, 100, 0}, {120, 110, 0}, {400, 390, 1}, {410, 400, 1}, {420, 410, 1}} {
		o.Advance(1200 + 200*int64(i))
		o.Add(0, txn("a", int64(i), 0, c.end), 1000)
		drain(o)
		if w, n := o.Watermark(), o.Missed(); w != c.watermark || n != c.missed {
			t.Errorf("at %d: watermark %d, want %d; %d passed over, want %d", c.end, w, c.watermark, n, c.missed)
		}
	}
}

// While all are silent, as the broker is away, nobody is passed over, however long it takes; and when one comes
// back before the others, with all that it has, they are waited for: nothing of theirs is late, nor missed,
// whether ticks have patience or not. It is not waited for any longer than that.
func TestAllComeBack(t *testing.T) {
	const s = int64(time.Second)
	for _, caughtUp := range []bool{false, true} {
		for _, most := range []time.Duration{2 * time.Second, time.Minute} {
			o := newRig(Options{Partitions: []int{0, 1}, Lateness: 2 * time.Second, IdleAfter: 10 * time.Second, MaxTransaction: most})
			now := 1000 * s
			o.Advance(now)
			o.Add(0, txn("a", 1, 0, 50*s), 0)
			o.Add(0, txn("a", 2, 50*s, 60*s), 0)
			o.Add(1, txn("b", 1, 0, 50*s), 0)
			wantIDs(t, o)
			for range 3600 * 4 {
				now += s / 4
				o.Advance(now)
			}
			wantIDs(t, o)
			if caughtUp { // the other one is told to have had nothing meanwhile
				o.CaughtUp(0, now)
			}
			for i := range int64(20) {
				o.Add(0, txn("a", 3+i, (60+i)*s, (61+i)*s), 0)
			}
			now += s
			o.Advance(now)
			wantIDs(t, o)
			for i := range int64(30) {
				if f := o.Add(1, txn("b", 2+i, (50+i)*s, (51+i)*s), 0); f != Taken {
					t.Fatalf("record %d of the one that comes back last is %v", i, f)
				}
			}
			drain(o)
			for i := range int64(12) {
				now += s
				o.Add(0, txn("a", 23+i, (100+i)*s, (101+i)*s), 0)
				o.Advance(now)
				drain(o)
				if n := o.Missed(); n != 0 && i < 10 {
					t.Fatalf("%d missed %d seconds later", n, i)
				}
			}
			if w := o.Watermark(); w != 110*s {
				t.Errorf("the watermark is %ds, want 110s", w/s)
			}
		}
	}
}

// Partitions of which nobody said that they will be read hold nothing back.
func TestPartitionsThatAreNotRead(t *testing.T) {
	never := newRig(Options{Partitions: []int{2}, Lateness: 10})
	never.Add(2, txn("a", 1, 0, 100), 1000)
	never.Add(2, txn("a", 2, 100, 200), 1000)
	wantIDs(t, never, "a#1")
	o := newRig(Options{Partitions: []int{2}, Lateness: 10, IdleAfter: 100})
	o.Advance(1000)
	o.Add(2, txn("a", 1, 0, 100), 1000)
	o.Add(2, txn("a", 2, 100, 200), 1000)
	wantIDs(t, o, "a#1")
	o.Advance(5000)
	drain(o)
	if n := o.Missed(); n != 0 {
		t.Errorf("%d partitions are said to be passed over", n)
	}
}

// Another history's records move this one at once: its watermark, what is held back by a
// partition that lags, and how far the stream has come.
func TestObservedMovesAtOnce(t *testing.T) {
	o := newRig(Options{Partitions: []int{0, 1}, Lateness: 10, MaxSkew: 2})
	if r := o.Reach(); r != none {
		t.Errorf("it reaches %d before anything is known", r)
	}
	o.Add(0, txn("a", 1, 0, 100), 0)
	o.Add(0, txn("a", 2, 100, 200), 0)
	if r := o.Reach(); r != 212 {
		t.Errorf("it reaches %d, want 212 = 200+10+2", r)
	}
	if p, ok := o.holding(); !ok || p != 1 {
		t.Errorf("partition %d %v holds it back", p, ok)
	}
	wantIDs(t, o)
	o.Observe(1, "other", 150, 150)
	wantIDs(t, o, "a#1")
	if w := o.Watermark(); w != 138 {
		t.Errorf("watermark %d, want 138 = 150-12", w)
	}
	o.Observe(1, "other", 140, 140) // others may come in any order
	o.Observe(1, "other", 500, 500)
	o.Observe(0, "other", 500, 500)
	wantIDs(t, o, "a#2")
	if w, r := o.Watermark(), o.Reach(); w != 488 || r != 512 {
		t.Errorf("watermark %d and reach %d, want 488 and 512", w, r)
	}
}

// A time of day before an earlier one is ignored: it makes nobody's clock run ahead.
func TestTimeOfDayGoesOn(t *testing.T) {
	o := newRig(Options{Lateness: 10, MaxAhead: 100})
	o.Advance(1000)
	o.Advance(10)
	o.Add(0, txn("a", 1, 0, 990), 1000)
	if n := o.Counts().Ahead; n != 0 {
		t.Errorf("%d are said to be ahead", n)
	}
}

// Those that stand alone stand in sessions of their
// own each, also if they have no ID.
func TestWhoStandsAlone(t *testing.T) {
	o := newRig(Options{Partitions: []int{0, 1}, Lateness: 1})
	add := func(p int, seq, end int64) {
		x := txn("s", seq, end-1, end)
		x.ID = ""
		o.Add(p, x, end)
	}
	add(1, 1, 10)
	add(1, 5, 11)
	o.Add(0, txn("a", 1, 0, 50), 50)
	add(1, 9, 60)
	rs := drain(o)
	add(1, 3, 20)
	add(1, 4, 21)
	o.Flush()
	rs = append(rs, drain(o)...)
	alone := map[string]bool{}
	for _, r := range rs {
		switch {
		case r.Detached && (alone[r.Session] || r.Session == "s" || r.Session == "a"):
			t.Errorf("%+v stands not alone", r.Release)
		case r.Detached:
			alone[r.Session] = true
		case r.Session != "s" && r.Session != "a":
			t.Errorf("session %q", r.Session)
		}
	}
	if len(rs) != 6 || len(alone) != 2 {
		t.Errorf("%d records, %d of them alone", len(rs), len(alone))
	}
}

// What has no time of its own is placed by what has passed since the partition first reached
// its greatest end, and not since another record that ended then.
func TestTimePassesSinceTheFirst(t *testing.T) {
	o := newRig(Options{Partitions: []int{0}, Lateness: 10})
	o.Add(0, txn("a", 1, 0, 100), 1000)
	o.Add(0, txn("b", 1, 0, 100), 1050)
	x := txn("c", 1, 0, 0)
	x.HasTimes = false
	o.Add(0, x, 1060)
	drain(o)
	if w := o.Watermark(); w != 150 {
		t.Errorf("watermark %d, want 150 = 100+60-10", w)
	}
}

// holding is the partition that holds the watermark back; false if none does,
// because all are idle or there are none.
func (o *Order) holding() (partition int, ok bool) {
	partition = -1
	for i := range o.partitions {
		p := &o.partitions[i]
		if p.known && !o.idle(p) && (partition < 0 || o.bound(p) < o.bound(&o.partitions[partition])) {
			partition = i
		}
	}
	return partition, partition >= 0
}
