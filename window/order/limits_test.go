package order

import (
	"fmt"
	"math"
	"testing"

	"github.com/isowatch/isowatch/ingest/record"
)

// What of a release is a loss, and what is not, is a closed list each.
func TestWhatIsALoss(t *testing.T) {
	for _, r := range []Release{{Gap: &Gap{}}, {Forgotten: true}, {Late: true}, {Overlong: true}} {
		if !r.Loses() {
			t.Errorf("no loss: %+v", r)
		}
	}
	if r := (Release{TimesDropped: true, Contradicts: true, Untimely: true, Detached: true}); r.Loses() {
		t.Errorf("a loss: %+v", r)
	}
}

// Times saturate at both ends; the time before all times stays that.
func TestTimesSaturate(t *testing.T) {
	for _, c := range []struct{ t, d, sum, diff int64 }{
		{5, 3, 8, 2},
		{5, 0, 5, 5},
		{5, -3, 2, 8},
		{math.MaxInt64, 1, math.MaxInt64, math.MaxInt64 - 1},
		{none + 2, 3, none + 5, none + 1},
		{none + 2, -3, none + 1, none + 5},
		{none, 7, none, none},
		{none, math.MinInt64, none, none},
		{7, math.MinInt64, none + 7, math.MaxInt64},
		{-7, math.MaxInt64, math.MaxInt64 - 7, none + 1},
	} {
		if s, d := add(c.t, c.d), sub(c.t, c.d); s != c.sum || d != c.diff {
			t.Errorf("%d with %d: sum %d, want %d; difference %d, want %d", c.t, c.d, s, c.sum, d, c.diff)
		}
	}
}

// How far a seq is behind is kept up to 2^32; what is farther counts as the least there is.
func TestFarBehind(t *testing.T) {
	for _, c := range []struct{ seq, own, want int64 }{
		{9, 9, 9},
		{9, 4, 4},
		{1 << 40, 1<<40 - math.MaxUint32 + 1, 1<<40 - math.MaxUint32 + 1},
		{1 << 40, 1<<40 - math.MaxUint32, math.MinInt64},
		{1 << 40, 7, math.MinInt64},
		{math.MaxInt64, math.MinInt64, math.MinInt64},
	} {
		it := item{seq: c.seq, behind: behind(c.seq, c.own)}
		if got := it.own(); got != c.want {
			t.Errorf("%d, %d behind: %d, want %d", c.own, uint64(c.seq)-uint64(c.own), got, c.want)
		}
	}
}

// A memory that is told again of what it had noted, from its from on, knows the same as
// before, and goes on alike: what is forgotten is forgotten with the same record.
func TestRecalledMemoryIsTheSame(t *testing.T) {
	for limit := range 150 {
		a := memory{limit: limit + 1}
		note := func(m *memory, ref uint64) bool {
			i, f := m.find(ref*0x9e3779b97f4a7c15, ref)
			if f != Taken {
				t.Fatalf("limit %d: %d is known already", limit+1, ref)
			}
			return m.note(ref*0x9e3779b97f4a7c15, ref, ref, i)
		}
		last := uint64(5*limit/2 + 3)
		for ref := uint64(1); ref <= last; ref++ {
			note(&a, ref)
		}
		b := memory{limit: a.limit, noted: a.noted, from: a.from, since: a.since}
		for ref := uint64(1); ref <= last; ref++ {
			b.recall(ref*0x9e3779b97f4a7c15, ref, ref)
		}
		for next := last + 1; next < last+uint64(2*limit)+4; next++ {
			for ref := uint64(1); ref <= next; ref++ {
				_, was := a.find(ref*0x9e3779b97f4a7c15, ref)
				_, is := b.find(ref*0x9e3779b97f4a7c15, ref)
				if was != is {
					t.Fatalf("limit %d: after %d, %d is %v, told again %v", limit+1, next-1, ref, was, is)
				}
			}
			if note(&a, next) != note(&b, next) {
				t.Fatalf("limit %d: with %d one forgets and the other does not", limit+1, next)
			}
		}
		if a.from != b.from || a.since != b.since {
			t.Fatalf("limit %d: %d and %d, told again %d and %d", limit+1, a.from, a.since, b.from, b.since)
		}
	}
}

// Of records with neither seq nor times the last 32,768 IDs are remembered, however many of
// others are, and at most twice as many, as they are in snapshots.
func TestMemoryOfBareRecords(t *testing.T) {
	bare := func(i int) *record.Head {
		x := noTimes(noSeq(txn("s", 0, 0, 0)))
		x.ID = fmt.Sprint("x", i)
		h := record.HeadOf(x)
		return &h
	}
	o := New(Options{MaxRemembered: 1 << 18})
	const n = 1<<17 + 1
	for i := range n {
		if f := o.Add(0, bare(i), uint64(i), 5); f != Taken {
			t.Fatalf("%d is %v", i, f)
		}
		if i >= 32767 && i%1023 == 0 {
			if f := o.Add(0, bare(i-32767), uint64(i), 5); f != Duplicate {
				t.Fatalf("after %d, %d is %v", i, i-32767, f)
			}
		}
	}
	if f := o.Add(0, bare(n-1-1<<16), n, 5); f != Taken {
		t.Errorf("what came 65,536 records ago is %v", f)
	}
}

// Sessions whose clocks are ahead are kept although they are silent, as their times would not
// show that they come again; but no more than MaxSessions of them beside the others.
func TestSessionsAheadAreBounded(t *testing.T) {
	const most = 10
	o := newRig(Options{Lateness: 10, MaxAhead: 100, MaxSessions: most})
	for i := range int64(200) {
		o.Add(0, noSeq(txn(fmt.Sprint("ahead", i), 1, 1_000_000+i, 1_000_001+i)), 1000+i)
		drain(o)
		if n := len(o.sessions); n > 4*most {
			t.Fatalf("%d sessions are kept after %d", n, i)
		}
	}
	if o.Counts().Ahead != 200 || o.Counts().Sessions < 150 {
		t.Errorf("not the scenario: %+v", o.Counts())
	}
}

// Of several sessions that are forgotten at once the last key counts for all.
func TestForgottenTogether(t *testing.T) {
	o := newRig(Options{Lateness: 10, MaxTransaction: 100, MaxRemembered: 2, MaxSessions: 40})
	for i := range int64(70) {
		o.Add(0, noTimes(txn(fmt.Sprint("s", i), 1, 0, 0)), 100+i)
		o.Add(0, txn("z", i, 0, 101+i), 100+i)
		drain(o)
	}
	n := int64(0)
	for i := range int64(40) {
		if o.sessions[fmt.Sprint("s", i)] == nil {
			n++
		}
	}
	if n < 15 || o.sessions[fmt.Sprint("s", n)] == nil {
		t.Fatalf("%d sessions are forgotten", n)
	}
	// The last key of the last one was 99+n: what comes no later than delay and MaxTransaction
	// after that may be one that comes again.
	for i := range n {
		if f := o.Add(0, noTimes(txn(fmt.Sprint("s", i), 1, 0, 0)), 99+n+110); f <= Late {
			t.Errorf("s%d of %d forgotten is %v", i, n, f)
		}
	}
}

// A restored Order that was not told of what was handed out before takes nothing twice that
// ended before the watermark, also where only CaughtUp moved that so far.
func TestRestoredBehindTheWatermark(t *testing.T) {
	opt := Options{Partitions: []int{0, 1}, Lateness: 50}
	o := newRig(opt)
	o.Advance(1000)
	x := noSeq(txn("x", 1, 90, 100))
	y := noSeq(txn("x", 2, 92, 95)) // its clock was set back: only its ID tells that it is another
	o.Add(0, x, 100)
	if f := o.Add(0, y, 101); f != Taken {
		t.Fatalf("a clock that was set back in time: %v", f)
	}
	o.CaughtUp(0, 1100)
	o.CaughtUp(1, 1100)
	o.CaughtUp(0, 1200)
	o.CaughtUp(1, 1200)
	if n := len(drain(o)); n != 2 || o.Watermark() != 101 {
		t.Fatalf("%d records left, watermark %d", n, o.Watermark())
	}
	again, err := Restore(opt, o.Snapshot(nil), o.load)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []*record.Transaction{x, y} {
		h := record.HeadOf(m)
		if f := again.Add(0, &h, 7, 1300); f != Stale {
			t.Errorf("%s again is %v", m.ID, f)
		}
	}
}
