package order

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/isowatch/isowatch/ingest/record"
)

// txn makes a record with seq and times.
func txn(session string, seq, start, end int64) *record.Transaction {
	return &record.Transaction{DB: "d", Session: session, Seq: seq, HasSeq: true, ID: fmt.Sprintf("%s#%d", session, seq),
		Start: start, End: end, HasTimes: true,
		Ops: []record.Op{{Kind: record.Write, Key: "k", Value: record.Int(seq)}}}
}

func noSeq(t *record.Transaction) *record.Transaction {
	t.Seq, t.HasSeq = 0, false
	return t
}

func noTimes(t *record.Transaction) *record.Transaction {
	t.Start, t.End, t.HasTimes = 0, 0, false
	return t
}

func drain(o *rig) []out {
	var rs []out
	for r, ok := o.Next(); ok; r, ok = o.Next() {
		rs = append(rs, r)
	}
	return rs
}

func ids(rs []out) []string {
	out := []string{}
	for _, r := range rs {
		out = append(out, r.Txn.ID)
	}
	return out
}

func wantIDs(t *testing.T, o *rig, want ...string) []out {
	t.Helper()
	rs := drain(o)
	if diff := cmp.Diff(append([]string{}, want...), ids(rs)); diff != "" {
		t.Fatalf("released (-want +got):\n%s", diff)
	}
	return rs
}

func TestWatermarkIsTheLeastPartitionsEndMinusDelay(t *testing.T) {
	o := newRig(Options{Partitions: []int{0, 1}, Lateness: 9, MaxSkew: 1})
	o.Add(0, noSeq(txn("a", 1, 0, 100)), 0)
	wantIDs(t, o)
	if got := o.Watermark(); got != math.MinInt64 {
		t.Fatalf("watermark %d before partition 1 was heard of", got)
	}
	o.Add(1, noSeq(txn("b", 1, 0, 105)), 0)
	wantIDs(t, o)
	if got := o.Watermark(); got != 90 {
		t.Fatalf("watermark %d, want 90 = 100-9-1", got)
	}
	if p, ok := o.holding(); !ok || p != 0 {
		t.Fatalf("holder %d %v, want partition 0", p, ok)
	}
	o.Add(0, noSeq(txn("a", 2, 100, 111)), 0)
	wantIDs(t, o)
	if got := o.Watermark(); got != 95 {
		t.Fatalf("watermark %d, want 95 = 105-10", got)
	}
	o.Add(1, noSeq(txn("b", 2, 106, 111)), 0)
	wantIDs(t, o, "a#1")
	o.Flush()
	wantIDs(t, o, "b#1", "a#2", "b#2")
	if got := o.Watermark(); got != 112 {
		t.Fatalf("watermark %d after the end, want just after the last end", got)
	}
}

func TestWhatEndsAtTheWatermarkWaits(t *testing.T) {
	o := newRig(Options{Lateness: 10})
	o.Add(0, txn("a", 1, 0, 90), 0)
	o.Add(0, txn("b", 1, 0, 100), 0)
	wantIDs(t, o) // 90 may still arrive
	o.Add(0, txn("c", 1, 0, 101), 0)
	wantIDs(t, o, "a#1")
	if f := o.Add(0, txn("d", 1, 0, 91), 0); f != Taken {
		t.Fatalf("an end at the watermark is %v", f)
	}
	if f := o.Add(0, txn("e", 1, 0, 90), 0); f != Late {
		t.Fatalf("an end before the watermark is %v", f)
	}
}

func TestTies(t *testing.T) {
	o := newRig(Options{})
	o.Add(0, txn("b", 1, 3, 10), 0)
	o.Add(0, txn("c", 1, 2, 10), 0)
	o.Add(1, txn("a", 1, 3, 10), 0)
	o.Add(1, txn("d", 7, 1, 9), 0)
	o.Add(1, txn("d", 8, 9, 10), 0)
	o.Flush()
	wantIDs(t, o, "d#7", "c#1", "a#1", "b#1", "d#8")
}

func TestCaughtUpPartitionHoldsNothingBack(t *testing.T) {
	o := newRig(Options{Partitions: []int{0, 1}, Lateness: 10, IdleAfter: 1000})
	o.Advance(5000)
	o.Add(0, txn("a", 1, 0, 100), 0)
	o.Add(0, txn("a", 2, 101, 120), 0)
	wantIDs(t, o)
	o.CaughtUp(1, 5001)
	wantIDs(t, o, "a#1")
	if got := o.Watermark(); got != 110 {
		t.Fatalf("watermark %d, want 110", got)
	}
	// Silence: time passes by the caller's clock, but not beyond the greatest end.
	o.CaughtUp(0, 5006)
	o.CaughtUp(1, 5006)
	wantIDs(t, o)
	if got := o.Watermark(); got != 115 {
		t.Fatalf("watermark %d after 5 of silence, want 115", got)
	}
	o.CaughtUp(0, 5500)
	o.CaughtUp(1, 5500)
	wantIDs(t, o, "a#2")
	if got := o.Watermark(); got != 121 {
		t.Fatalf("watermark %d after long silence, want just after the greatest end", got)
	}
}

func TestStuckPartitionIsLeftBehind(t *testing.T) {
	o := newRig(Options{Partitions: []int{0, 1}, Lateness: 10, IdleAfter: 100})
	o.Advance(1000)
	o.Add(0, txn("a", 1, 0, 50), 0)
	o.Add(0, txn("a", 2, 50, 70), 0)
	o.Advance(1100)
	wantIDs(t, o)
	o.Advance(1101) // partition 1 never spoke since 1000; partition 0 did before 1100
	wantIDs(t, o, "a#1")
	if p, ok := o.holding(); !ok || p != 0 {
		t.Fatalf("holder %d %v", p, ok)
	}
	if f := o.Add(1, txn("b", 1, 0, 55), 0); f != Late {
		t.Fatalf("the stuck partition's record is %v", f)
	}
	rs := wantIDs(t, o, "b#1")
	if r := rs[0]; !r.Late || !r.TimesDropped || r.Txn.HasTimes {
		t.Fatalf("late release: %+v", r)
	}
	o.Advance(1300)
	wantIDs(t, o)
	o.Advance(1401) // now both are stuck
	wantIDs(t, o, "a#2")
	if _, ok := o.holding(); ok {
		t.Fatal("an idle partition holds the watermark")
	}
}

// A reader that was away for an hour, as it was held up or not running, does not take
// partitions for stuck.
func TestReaderThatWasAway(t *testing.T) {
	const second = int64(time.Second)
	o := newRig(Options{Partitions: []int{0, 1}, Lateness: 10, IdleAfter: 30 * time.Second})
	o.Advance(1)
	o.Add(0, txn("a", 1, 0, 50), 0)
	o.Add(0, txn("a", 2, 50, 70), 0)
	o.Advance(second)
	now := second + 3600*second
	for range 29 {
		o.CaughtUp(0, now)
		wantIDs(t, o)
		now += 5 * second // of which it reads one
	}
	o.CaughtUp(0, now)
	wantIDs(t, o, "a#1", "a#2") // it was read for 31 seconds, and partition 1 never spoke
}

func TestGap(t *testing.T) {
	o := newRig(Options{Lateness: 10})
	for _, x := range []*record.Transaction{txn("a", 5, 0, 10), txn("a", 8, 20, 30), txn("a", 7, 15, 20), txn("a", 12, 40, 50)} {
		o.Add(0, x, 0)
	}
	o.Add(0, txn("z", 1, 0, 100), 0)
	rs := wantIDs(t, o, "a#5", "a#7", "a#8", "a#12")
	want := []*Gap{nil, {Session: "a", From: 6, To: 6}, nil, {Session: "a", From: 9, To: 11}}
	for i, r := range rs {
		if diff := cmp.Diff(want[i], r.Gap); diff != "" {
			t.Errorf("%s: gap (-want +got):\n%s", r.Txn.ID, diff)
		}
	}
	if c := o.Counts(); c.Gaps != 2 || c.Missing != 4 {
		t.Errorf("counts %+v", c)
	}
}

func TestRecordBehindItsSuccessorIsDetached(t *testing.T) {
	o := newRig(Options{Lateness: 10})
	o.Add(0, txn("a", 1, 0, 10), 0)
	o.Add(0, txn("a", 3, 20, 30), 0)
	o.Add(0, txn("z", 1, 0, 100), 0)
	wantIDs(t, o, "a#1", "a#3")
	late := txn("a", 2, 10, 20)
	if f := o.Add(0, late, 0); f != Late {
		t.Fatalf("it is %v", f)
	}
	wantIDs(t, o) // its place is the partition's bound
	o.Add(0, txn("z", 2, 100, 101), 0)
	r := wantIDs(t, o, "a#2")[0]
	if !r.Detached || !r.Late || r.Txn.Session == "a" || r.Txn.HasSeq {
		t.Fatalf("release %+v of %+v", r, r.Txn)
	}
	if late.Session != "a" || !late.HasTimes || !late.HasSeq {
		t.Fatal("the caller's record was changed")
	}
	if r.Session != r.Txn.Session || !r.Loses() {
		t.Fatalf("release %+v of %+v", r, r.Txn)
	}
}

func TestClockSteppingBackInASession(t *testing.T) {
	for _, seq := range []bool{true, false} {
		o := newRig(Options{Lateness: 10, MaxSkew: 2})
		for _, x := range []*record.Transaction{
			txn("a", 1, 90, 100),
			txn("a", 2, 60, 70),   // ends before its predecessor
			txn("a", 3, 89, 101),  // starts before the first one did
			txn("a", 4, 90, 102),  //
			txn("b", 1, 100, 101), //
			txn("z", 1, 0, 200),
		} {
			want := Taken
			if !seq {
				noSeq(x)
				if x.ID == "a#2" {
					want = Stale // without a seq nothing tells it from one that came long ago
				}
			}
			if f := o.Add(0, x, 0); f != want {
				t.Errorf("seq %v: %s is %v", seq, x.ID, f)
			}
		}
		left, untimed := []string{"a#1", "a#3", "b#1", "a#4"}, []string{"a#3"}
		if seq {
			left, untimed = []string{"a#1", "a#2", "a#3", "b#1", "a#4"}, []string{"a#2", "a#3"}
		}
		rs := wantIDs(t, o, left...)
		var dropped []string
		for _, r := range rs {
			if r.TimesDropped != !r.Txn.HasTimes {
				t.Errorf("%s: flag and record differ", r.Txn.ID)
			}
			if r.TimesDropped {
				dropped = append(dropped, r.Txn.ID)
			}
		}
		if !slices.Equal(dropped, untimed) {
			t.Errorf("seq %v: times dropped of %v", seq, dropped)
		}
	}
}

func TestClockAheadDoesNotDragTheWatermark(t *testing.T) {
	o := newRig(Options{Lateness: 10, MaxAhead: 50})
	o.Add(0, txn("a", 1, 900, 1000), 1001)
	o.Add(0, txn("fast", 1, 4000, 5000), 1002)
	if f := o.Add(0, txn("b", 1, 950, 1003), 1004); f != Taken {
		t.Fatalf("the neighbour of a fast clock is %v", f)
	}
	o.Add(0, txn("c", 1, 1000, 1020), 1020)
	rs := wantIDs(t, o, "a#1", "fast#1", "b#1")
	if !rs[1].TimesDropped || o.Counts().Ahead != 1 {
		t.Fatalf("%+v", rs[1])
	}
	// The caller's clock serves where it is earlier than the arrival.
	o.Advance(1100)
	o.Add(0, txn("fast", 2, 4000, 5000), 5000)
	if o.Counts().Ahead != 2 {
		t.Fatal("an end far ahead of the time of day was believed")
	}
}

func TestDoubledInput(t *testing.T) {
	o := newRig(Options{})
	a := txn("a", 1, 0, 10)
	same := txn("a", 1, 0, 10)
	fates := []Fate{o.Add(0, a, 1), o.Add(1, same, 2)}
	for i, change := range []func(*record.Transaction){
		func(t *record.Transaction) { t.End++ },
		func(t *record.Transaction) { t.HasTimes = false },
		func(t *record.Transaction) { t.Seq++ },
		func(t *record.Transaction) { t.Session = "b" },
		func(t *record.Transaction) { t.Status = record.Aborted },
		func(t *record.Transaction) { t.Ops = nil },
		func(t *record.Transaction) { t.Ops[0].Key = "l" },
		func(t *record.Transaction) { t.Ops[0].Kind = record.Read },
		func(t *record.Transaction) { t.Ops[0].Value = record.String("1") },
		func(t *record.Transaction) { t.Ops[0].Where = "x" },
	} {
		x := txn("a", 1, 0, 10)
		change(x)
		if f := o.Add(0, x, 0); f != Contradiction {
			t.Errorf("change %d: %v", i, f)
		}
	}
	if !slices.Equal(fates, []Fate{Taken, Duplicate}) {
		t.Errorf("fates %v", fates)
	}
	o.Flush()
	wantIDs(t, o, "a#1")
}

func TestMemoryKeepsAtLeastHalf(t *testing.T) {
	const n = 1000
	o := newRig(Options{MaxRemembered: n})
	for i := range int64(5 * n) {
		o.Add(0, txn("a", i, i, i+1), 0)
		drain(o)
		if i >= n/2-1 {
			// The one n/2-1 before is among the last n/2.
			if f := o.Add(0, txn("a", i-(n/2-1), i-(n/2-1), i-(n/2-1)+1), 0); f != Duplicate {
				t.Fatalf("%d after %d: %v", i-(n/2-1), i, f)
			}
		}
	}
	if got := o.memory.cur.n + o.memory.old.n; got > n {
		t.Fatalf("%d remembered", got)
	}
	if f := o.Add(0, txn("a", 0, 0, 2), 0); f == Contradiction || f == Duplicate {
		t.Fatalf("what was seen %d records ago is remembered: %v", 5*n, f)
	}
}

func TestRecordsWithoutTimes(t *testing.T) {
	o := newRig(Options{Lateness: 10})
	add := func(p int, s string, seq, arrival int64) Fate { return o.Add(p, noTimes(txn(s, seq, 0, 0)), arrival) }
	add(1, "b", 1, 100)
	add(1, "b", 2, 99) // the broker's clock went back; the session does not
	add(0, "c", 1, 100)
	add(0, "d", 1, 100)
	add(0, "e", 1, 120)
	add(1, "f", 1, 120)
	rs := wantIDs(t, o, "c#1", "d#1", "b#1", "b#2")
	for _, r := range rs {
		if r.TimesDropped || r.Late {
			t.Errorf("%s: %+v", r.Txn.ID, r)
		}
	}
	if f := add(0, "g", 1, 109); f != Late {
		t.Errorf("arrival before the watermark is %v", f)
	}
	o.Flush()
	wantIDs(t, o, "g#1", "e#1", "f#1")
}

func TestRecordWithoutTimesAmongOthers(t *testing.T) {
	o := newRig(Options{Lateness: 10})
	o.Add(0, txn("a", 1, 0, 100), 7_000_000)
	o.Add(0, noTimes(txn("b", 1, 0, 0)), 7_000_001)
	o.Add(0, txn("c", 1, 0, 105), 7_000_002)
	o.Flush()
	wantIDs(t, o, "a#1", "b#1", "c#1")
	if got := o.Watermark(); got != 106 {
		t.Errorf("watermark %d: the arrival was taken for an end", got)
	}
	if f := o.Add(0, noTimes(txn("b", 2, 0, 0)), 7_000_003); f != Taken {
		t.Errorf("a record without an end is %v", f)
	}
}

// A heavy record counts as several, before and after a restart: so many bytes wait at most. What a
// session takes is its first record's.
func TestFullOfHeavyRecords(t *testing.T) {
	opt := Options{Partitions: []int{0, 1}, MaxBuffered: 10, Heavy: 100}
	o := New(opt)
	var heads []record.Head
	add := func(bytes int) {
		h := record.HeadOf(txn("a", int64(len(heads)), 10*int64(len(heads)), 10*int64(len(heads))+5))
		h.Bytes = bytes
		heads = append(heads, h)
		o.Add(0, &h, uint64(len(heads)-1), 0)
	}
	add(300 - sessionBytes - len("a"))
	for range 2 {
		add(300) // 3 each, as the first one
	}
	if o.isFull() || o.Held() != 3 {
		t.Fatalf("%d of 300 bytes fill it", o.Held())
	}
	add(100)
	if !o.isFull() {
		t.Fatal("1,000 bytes do not fill it")
	}
	o, err := Restore(opt, o.Snapshot(nil), func(ref uint64) (record.Head, error) { return heads[ref], nil })
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := o.Next(); ok || !o.isFull() {
		t.Fatalf("one leaves as it is full: %v; full after a restart: %v", ok, o.isFull())
	}
	add(201) // it counts as 3, so the first one leaves
	if r, ok := o.Next(); !ok || r.Ref != 0 {
		t.Fatalf("%d leaves, %v", r.Ref, ok)
	}
	if r, ok := o.Next(); ok {
		t.Fatalf("%d leaves too", r.Ref)
	}
	add(1 << 30)
	for range heads[1:] {
		if _, ok := o.Next(); !ok {
			t.Fatal("one that is larger than all that may wait does not let go of what is before it")
		}
	}
	if o.Held() != 0 || o.isFull() {
		t.Errorf("%d are held, full %v", o.Held(), o.isFull())
	}
}

func TestFull(t *testing.T) {
	o := newRig(Options{Partitions: []int{0, 1}, MaxBuffered: 3})
	for i := range int64(3) {
		if o.isFull() {
			t.Fatalf("full at %d", i)
		}
		o.Add(0, txn("a", i, 10*i, 10*i+5), 0)
	}
	if !o.isFull() {
		t.Fatal("3 of 3 do not fill it")
	}
	wantIDs(t, o)
	// Added nevertheless: the first leaves early, and the watermark follows it.
	o.Add(0, txn("a", 3, 30, 35), 0)
	if got := o.Held(); got != 4 {
		t.Errorf("held %d with one ready", got)
	}
	wantIDs(t, o, "a#0")
	if got := o.Watermark(); got != 6 {
		t.Errorf("watermark %d", got)
	}
	if f := o.Add(1, txn("b", 0, 0, 4), 0); f != Late {
		t.Errorf("behind the forced watermark: %v", f)
	}
	if c := o.Counts(); c.Forced != 1 || c.Released != 1 {
		t.Errorf("counts %+v", c)
	}
}

func TestObserveLetsOtherHistoriesPass(t *testing.T) {
	o := newRig(Options{Partitions: []int{0, 1}, Lateness: 10})
	o.Add(0, txn("a", 1, 0, 100), 0)
	o.Add(0, txn("a", 2, 100, 120), 0)
	wantIDs(t, o)
	o.Observe(1, "other", 130, 130)
	wantIDs(t, o, "a#1")
}

func TestOverlong(t *testing.T) {
	o := newRig(Options{MaxTransaction: 10})
	o.Add(0, txn("a", 1, 0, 10), 0)
	o.Add(0, txn("b", 1, 0, 11), 0)
	o.Flush()
	rs := wantIDs(t, o, "a#1", "b#1")
	if rs[0].Overlong || !rs[1].Overlong {
		t.Fatalf("%+v", rs)
	}
}

// Sessions that come and go cost memory up to MaxSessions, and records are taken
// all the same.
func TestForgottenSessions(t *testing.T) {
	const n = 256
	for _, times := range []bool{true, false} {
		o := newRig(Options{MaxTransaction: 100, Lateness: 10, MaxSessions: n})
		for i := range int64(100 * n) {
			x := txn(fmt.Sprint("s", i), 1, 1000*i, 1000*i+1)
			if !times {
				noTimes(x)
			}
			if f := o.Add(0, x, 1000*i+1); f != Taken {
				t.Fatalf("times %v: the first of session %d is %v", times, i, f)
			}
			for _, r := range drain(o) {
				if r.Forgotten || r.Detached || r.Gap != nil {
					t.Fatalf("times %v: %+v", times, r.Release)
				}
			}
		}
		if got := len(o.sessions); got > n+2 {
			t.Fatalf("%d sessions are remembered", got)
		}
		if o.items.Len() > 64 {
			t.Fatalf("slab of %d items for a few that wait", o.items.Len())
		}
	}
}

func TestExtremeTimes(t *testing.T) {
	o := newRig(Options{Lateness: time.Hour, MaxSkew: time.Hour, MaxTransaction: time.Hour, IdleAfter: time.Hour})
	extremes := []int64{math.MinInt64, math.MinInt64 + 1, -1, 0, 1, math.MaxInt64 - 1, math.MaxInt64}
	n := int64(0)
	for _, now := range extremes {
		for _, end := range extremes {
			n++
			o.Add(int(n%3), &record.Transaction{Session: "s", ID: fmt.Sprint(n), Seq: end, HasSeq: true, HasTimes: n%2 == 0, Start: end, End: end}, end)
			o.CaughtUp(0, now)
			drain(o)
		}
	}
	o.Flush()
	drain(o)
	if c := o.Counts(); c.Released+c.Stale != n || o.Held() != 0 || c.Released < int64(len(extremes)) {
		t.Fatalf("%d of %d released: %+v", c.Released, n, c)
	}
}

// TestOverlapInASession: connections that share a session's name overlap. Only what shows
// that a clock stepped back costs times: a start before that of the last committed one,
// or an end before its end, which is not known of an unknown outcome. Behind another one that
// ended later, times are kept, and are not used to the full.
func TestOverlapInASession(t *testing.T) {
	aborted := func(x *record.Transaction) *record.Transaction { x.Status = record.Aborted; return x }
	unknown := func(x *record.Transaction) *record.Transaction { x.Status = record.Unknown; return x }
	for _, tc := range []struct {
		name              string
		first, second     *record.Transaction
		dropped, untimely bool
	}{
		{"one after the other", txn("a", 1, 0, 10), txn("a", 2, 20, 30), false, false},
		{"they overlap", txn("a", 1, 0, 20), txn("a", 2, 10, 30), false, false},
		{"they begin together", txn("a", 1, 0, 20), txn("a", 2, 0, 30), false, false},
		{"starts before", txn("a", 1, 10, 20), txn("a", 2, 9, 30), true, true},
		{"ends before", txn("a", 1, 0, 40), txn("a", 2, 10, 30), true, true},
		{"unknown, ends before", txn("a", 1, 0, 40), unknown(txn("a", 2, 10, 30)), false, true},
		{"unknown, starts before", txn("a", 1, 10, 40), unknown(txn("a", 2, 9, 50)), true, true},
		{"behind an aborted one", aborted(txn("a", 1, 10, 40)), txn("a", 2, 9, 30), false, true},
		{"behind an unknown one", unknown(txn("a", 1, 10, 40)), txn("a", 2, 9, 30), false, true},
		{"starts before an aborted one", aborted(txn("a", 1, 10, 40)), txn("a", 2, 9, 50), false, false},
	} {
		o := newRig(Options{Lateness: 10, MaxSkew: 5})
		o.Add(0, tc.first, 0)
		o.Add(0, tc.second, 0)
		data := o.Snapshot(nil) // both wait
		heads := func(ref uint64) (record.Head, error) { return record.HeadOf(o.txns[ref]), nil }
		restored, err := Restore(Options{Lateness: 10, MaxSkew: 5}, data, heads)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range []*rig{o, {restored, o.txns}} {
			o.Flush()
			r := wantIDs(t, o, "a#1", "a#2")[1]
			if r.TimesDropped != tc.dropped || r.Untimely != tc.untimely || r.Txn.HasTimes == tc.dropped {
				t.Errorf("%s: %+v", tc.name, r.Release)
			}
		}
	}
}

// Where each record begins a session, as many wait as there is room for their sessions.
func TestFullOfSessions(t *testing.T) {
	const most, heavy = 1000, 64
	o := New(Options{Partitions: []int{0, 1}, MaxBuffered: most, Heavy: heavy})
	for i := range 3 * most {
		h := record.HeadOf(txn(fmt.Sprint("session-", i), 0, int64(i), int64(i)+1))
		h.Bytes = 10
		o.Add(0, &h, uint64(i), 0)
		for o.isFull() {
			if _, ok := o.Next(); !ok {
				break
			}
		}
		if bytes := o.Held() * sessionBytes; bytes > most*heavy {
			t.Fatalf("the sessions of %d records that wait take %d bytes, with room for %d", o.Held(), bytes, most*heavy)
		}
	}
	if o.Counts().Forced == 0 {
		t.Error("none left early")
	}
}
