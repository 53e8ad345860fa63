package order

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/isowatch/isowatch/ingest/record"
)

// What ended far ahead of all others of its partition, where no broker says when it came, moves nothing: it is judged
// without times, and the others in their places, but for its session's: until their clock is as far, it contradicts their numbers. That the stream has gone on after a pause is no such thing.
//
// A record is its session, its end in seconds, and "ahead" if it is to be judged without times, "wrong" if apart from its session, too. "quiet" is that for so
// many seconds nothing more is there.
func TestFarAheadOfAllOthers(t *testing.T) {
	for _, c := range []struct {
		name, lines string
		waits       int // so many are not handed out before the end
	}{
		{"one", "a 1, b 2, c 90000 ahead, a 3, b 4, c 5 wrong", 3},
		{"the end of time", "a 1, b 2, c end ahead, a 3, c 4 wrong, b 5", 3},
		{"the first", "c 90000 ahead, a 1, b 2, a 3, c 4 wrong", 3},
		{"the first, at the end of time", "c end ahead, a 1, b 2, a 3, c 4 wrong", 3},
		{"one whose clock is believed once it is as far", "a 1, b 2, c 70 ahead, a 3, c 40 wrong, b 69, c 70 ahead, a 71, c 72", 3},
		{"the last", "a 1, b 2, a 3, c 90000", 4},
		{"several of one session", "a 1, b 2, c 90000 ahead, c 90001 ahead, c 90002 ahead, a 3, b 4", 6},
		{"several of one session, backwards", "a 1, b 2, c 90000 ahead, c 80000 wrong, a 3, b 4", 5},
		{"the first of one session", "c 90000 ahead, c 1 wrong, c 2 wrong, c 3 wrong, c 4 wrong, c 5 wrong, c 6 wrong, c 7 wrong, c 8 wrong, c 12 wrong", 1},
		{"again and again", "a 1, b 2, c 90000 ahead, a 3, c 90001 ahead, b 4, c 90002 ahead, a 5", 5},
		{"each its own", "a 1, b 2, c 90000 ahead, a 3, d 500000 ahead, b 4, a 5", 4},
		{"after a pause", "a 1, b 2, a 90000, b 90001, c 90002", 3},
		{"long pauses", "a 1, b 90000, c 180000, a 270000, b 360000", 2},
		{"pauses in one session", "a 1, a 90000, a 90001, a 180000", 4},
		{"out of order after a pause", "a 1, b 2, b 90001, a 90000, b 90002", 3},
		{"the last for a while", "a 1, b 2, c 90000, quiet 12, d 90001", 1},
		{"the only one", "a 90000, quiet 3, b 90001", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			const s = int64(time.Second)
			o := newRig(Options{Partitions: []int{0}, Lateness: 2 * time.Second, MaxAhead: time.Minute, MaxTransaction: time.Minute, IdleAfter: 10 * time.Second})
			now, added := 1_700_000_000*s, 0
			seqs := map[string]int64{}
			var want, got []string
			take := func() {
				for _, r := range drain(o) {
					got = append(got, r.Txn.ID+strings.Repeat(" ahead", b2i(r.TimesDropped && !r.Detached))+strings.Repeat(" wrong", b2i(r.TimesDropped && r.Detached)))
					if r.Late || r.Detached != r.Misnumbered {
						t.Errorf("%s is late %v, detached %v, misnumbered %v", r.Txn.ID, r.Late, r.Detached, r.Misnumbered)
					}
				}
			}
			for line := range strings.SplitSeq(c.lines, ", ") {
				f := strings.Fields(line)
				end, err := strconv.ParseInt(f[1], 10, 64)
				if end *= s; err != nil {
					end = math.MaxInt64
				}
				if f[0] == "quiet" {
					for ; end > 0; end -= s {
						now += s
						o.CaughtUp(0, now)
						take()
					}
					continue
				}
				added++
				seqs[f[0]]++
				x := txn(f[0], seqs[f[0]], end-1, end)
				want = append(want, strings.Join(append([]string{x.ID}, f[2:]...), " "))
				o.Reading(now)
				if f := o.Add(0, x, 0); f != Taken {
					t.Errorf("%s is %v", x.ID, f)
				}
				o.Advance(now)
				take()
			}
			if n := added - len(got); n != c.waits {
				t.Errorf("%d wait, want %d; handed out are %q", n, c.waits, got)
			}
			o.Flush()
			take()
			slices.Sort(want)
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Errorf("got  %q\nwant %q", got, want)
			}
		})
	}
}

// Another history's record that is far ahead silences nobody either.
func TestAnotherHistoryFarAhead(t *testing.T) {
	const s = int64(time.Second)
	for _, arrival := range []int64{0, 1_700_000_000 * s} {
		o := newRig(Options{Partitions: []int{0}, Lateness: 2 * time.Second, MaxAhead: time.Minute})
		now := 1_700_000_000 * s
		for i := range int64(20) {
			o.Reading(now)
			if i == 5 {
				for _, far := range []int64{now + 3600*s, math.MaxInt64} {
					o.Observe(0, "odd", far, arrival)
				}
			}
			o.Observe(0, "other", now, arrival)
			if f := o.Add(0, txn([]string{"a", "b"}[i&1], i/2+1, now-1, now), arrival); f != Taken {
				t.Errorf("record %d is %v", i, f)
			}
			o.Advance(now)
			for _, r := range drain(o) {
				if r.TimesDropped {
					t.Errorf("%s is judged without times", r.Txn.ID)
				}
			}
			now += s
		}
		if w := o.Watermark(); w < now-4*s || w > now {
			t.Errorf("the watermark is %d s from now", (w-now)/s)
		}
	}
}

// Where no broker says when records came, one without times says nothing of where the stream is while the first records
// are on trial, be it the first of all: those that come next are not late. Where none has times, time goes on.
func TestOneWithoutTimesAmongTheFirst(t *testing.T) {
	const s = int64(time.Second)
	for _, first := range []int{0, 1, 2} {
		all := []*record.Transaction{txn("a", 1, s, 2*s), txn("a", 2, 3*s, 4*s), txn("a", 3, 5*s, 6*s), txn("b", 2, 5*s, 7*s), txn("b", 3, 8*s, 9*s)}
		all = slices.Insert(all, first, noTimes(txn("b", 1, 0, 0)))
		o := newRig(Options{Partitions: []int{0}, Lateness: 2 * time.Second, MaxAhead: time.Minute})
		for _, x := range all {
			o.Reading(1_700_000_000 * s)
			if f := o.Add(0, x, 0); f != Taken {
				t.Errorf("%s is %v", x.ID, f)
			}
		}
		o.Flush()
		for _, r := range drain(o) {
			if r.Late || r.TimesDropped || r.Detached || r.Gap != nil {
				t.Errorf("%s: %+v", r.Txn.ID, r)
			}
		}
	}
	o := newRig(Options{Partitions: []int{0}, Lateness: 2 * time.Second, MaxAhead: time.Minute})
	for i := range int64(2) {
		o.Reading((1_700_000_000 + 10*i) * s)
		o.Add(0, noTimes(txn("b", 1+i, 0, 0)), 0)
		o.CaughtUp(0, (1_700_000_000+10*i)*s)
	}
	if out := drain(o); len(out) != 1 || out[0].Late {
		t.Errorf("%+v are handed out, want the first one", out)
	}
}
