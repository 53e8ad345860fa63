package order

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/isowatch/isowatch/ingest/record"
	_ "github.com/isowatch/isowatch/internal/lab/seeds"
)

// sent is a record in a partition's log.
type sent struct {
	txn *record.Transaction
	at  int64 // real time of its appending, which the broker stamps
}

// world is a simulated capture: clients with skewed clocks run transactions one
// after the other and send each within lateness.
type world struct {
	opt    Options
	logs   [][]sent // by partition, in order of appending
	sorted []*record.Transaction
}

const (
	simLateness = 20
	simSkew     = 3
)

func drawWorld(t *rapid.T, times bool) world {
	parts := rapid.IntRange(1, 4).Draw(t, "partitions")
	w := world{
		opt:  Options{Lateness: simLateness, MaxSkew: simSkew, MaxTransaction: 1000},
		logs: make([][]sent, parts),
	}
	for s := range rapid.IntRange(1, 6).Draw(t, "sessions") {
		p := rapid.IntRange(0, parts-1).Draw(t, "partition")
		skew := rapid.Int64Range(0, simSkew).Draw(t, "skew")
		seqs := rapid.Bool().Draw(t, "seqs")
		now := rapid.Int64Range(0, 50).Draw(t, "begin")
		lastSent := int64(0)
		for n := range rapid.IntRange(0, 12).Draw(t, "length") {
			now += rapid.Int64Range(0, 15).Draw(t, "pause")
			start := now
			now += rapid.Int64Range(0, 15).Draw(t, "takes")
			at := now + rapid.Int64Range(0, simLateness).Draw(t, "delay")
			if !seqs || !times {
				at = max(at, lastSent) // order of arrival is order of the session
			}
			lastSent = at
			x := txn(fmt.Sprintf("s%d", s), int64(n), start+skew, now+skew)
			if !seqs {
				noSeq(x)
			}
			if !times {
				noTimes(x)
			}
			if rapid.IntRange(0, 9).Draw(t, "aborted") == 0 {
				x.Status = record.Aborted
			}
			w.logs[p] = append(w.logs[p], sent{x, at})
		}
	}
	for p := range w.logs {
		slices.SortStableFunc(w.logs[p], func(a, b sent) int { return cmp.Compare(a.at, b.at) })
	}
	w.sorted = w.sort(times)
	return w
}

// sort is the specification: by end, start, session, seq (or place); without
// times by arrival, partition, place.
func (w world) sort(times bool) []*record.Transaction {
	type entry struct {
		sent
		p, place int
	}
	var all []entry
	for p, log := range w.logs {
		for i, s := range log {
			all = append(all, entry{s, p, i})
		}
	}
	slices.SortFunc(all, func(a, b entry) int {
		if times {
			return cmp.Or(cmp.Compare(a.txn.End, b.txn.End), cmp.Compare(a.txn.Start, b.txn.Start),
				cmp.Compare(a.txn.Session, b.txn.Session), cmp.Compare(a.txn.Seq, b.txn.Seq), cmp.Compare(a.place, b.place))
		}
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.p, b.p), cmp.Compare(a.place, b.place))
	})
	// Keeping sessions matters for equal times only: a transaction of no length
	// may end and start with its predecessor's end.
	var out []*record.Transaction
	for _, e := range all {
		out = append(out, e.txn)
	}
	return out
}

// check holds what every release must keep.
type checker struct {
	t         *rapid.T
	lastEnd   int64
	lastSeq   map[string]int64
	lastPlace map[string]int64
	got       []*record.Transaction
}

func newChecker(t *rapid.T) *checker {
	return &checker{t: t, lastEnd: none, lastSeq: map[string]int64{}, lastPlace: map[string]int64{}}
}

func (c *checker) drain(o *rig) {
	for r, ok := o.Next(); ok; r, ok = o.Next() {
		x := r.Txn
		if x.HasTimes {
			if x.End >= o.Mark() && !o.flushed {
				c.t.Fatalf("%s, which ends at %d, left before the mark %d", x.ID, x.End, o.Mark())
			}
			if r.Untimely != (x.End < r.Key || r.Passed) || x.End > r.Key {
				c.t.Fatalf("%s ends at %d, and its place is at %d: %+v", x.ID, x.End, r.Key, r.Release)
			}
			if !r.Untimely {
				if x.End < c.lastEnd {
					c.t.Fatalf("%s ends at %d, after one that ends at %d", x.ID, x.End, c.lastEnd)
				}
				c.lastEnd = x.End
			}
		}
		if x.HasSeq {
			if last, ok := c.lastSeq[x.Session]; ok && x.Seq <= last {
				c.t.Fatalf("session %s: seq %d after %d", x.Session, x.Seq, last)
			}
			c.lastSeq[x.Session] = x.Seq
		} else {
			if last, ok := c.lastPlace[x.Session]; ok && int64(r.Ref) <= last {
				c.t.Fatalf("session %s: ref %d after %d", x.Session, r.Ref, last)
			}
			c.lastPlace[x.Session] = int64(r.Ref)
		}
		c.got = append(c.got, x)
	}
}

func (c *checker) want(want []*record.Transaction, what string) {
	if !slices.Equal(c.got, want) {
		var g, w []string
		for _, x := range c.got {
			g = append(g, fmt.Sprintf("%s[%d,%d]", x.ID, x.Start, x.End))
		}
		for _, x := range want {
			w = append(w, fmt.Sprintf("%s[%d,%d]", x.ID, x.Start, x.End))
		}
		c.t.Fatalf("%s released\n%q, want\n%q", what, g, w)
	}
}

// TestAnyInterleaving reads the partitions in any interleaving, however far one
// is ahead of another: the order is the specified one.
func TestAnyInterleaving(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		times := rapid.Bool().Draw(t, "times")
		w := drawWorld(t, times)
		for p := range w.logs {
			w.opt.Partitions = append(w.opt.Partitions, p)
		}
		o := newRig(w.opt)
		c := newChecker(t)
		next := make([]int, len(w.logs))
		for left := len(w.sorted); left > 0; {
			p := rapid.IntRange(0, len(w.logs)-1).Draw(t, "read")
			if next[p] == len(w.logs[p]) {
				for p = 0; next[p] == len(w.logs[p]); p++ {
				}
			}
			m := w.logs[p][next[p]]
			next[p]++
			left--
			if f := o.Add(p, m.txn, m.at); f != Taken {
				t.Fatalf("%s is %v", m.txn.ID, f)
			}
			if rapid.IntRange(0, 4).Draw(t, "again") == 0 {
				copied := *m.txn
				if f := o.Add(rapid.IntRange(0, len(w.logs)-1).Draw(t, "where"), &copied, m.at); f != Duplicate {
					t.Fatalf("%s again is %v", m.txn.ID, f)
				}
			}
			if rapid.Bool().Draw(t, "drain") {
				c.drain(o)
			}
		}
		o.Flush()
		c.drain(o)
		c.want(w.sorted, "any interleaving")
	})
}

// TestLive reads what is in the logs as real time goes on, polls included: the
// order is the specified one, nothing is late, and a quiet stream comes out
// completely without Flush.
func TestLive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		times := rapid.Bool().Draw(t, "times")
		w := drawWorld(t, times)
		for p := range w.logs {
			w.opt.Partitions = append(w.opt.Partitions, p)
		}
		w.opt.IdleAfter = 1_000_000
		o := newRig(w.opt)
		c := newChecker(t)
		next := make([]int, len(w.logs))
		const offset = 1_000_000_000 // the caller's clock has nothing to do with the clients'
		left := len(w.sorted)
		poll := func(p int, now int64, atMost int) {
			n := 0
			for next[p] < len(w.logs[p]) && w.logs[p][next[p]].at <= now {
				if n == atMost {
					return
				}
				m := w.logs[p][next[p]]
				if f := o.Add(p, m.txn, m.at); f != Taken {
					t.Fatalf("at %d: %s of %d..%d is %v, watermark %d", now, m.txn.ID, m.txn.Start, m.txn.End, f, o.Watermark())
				}
				next[p]++
				left--
				n++
			}
			o.CaughtUp(p, now+offset)
		}
		now := int64(0)
		for left > 0 {
			now += rapid.Int64Range(0, 40).Draw(t, "passes")
			o.Returned(rapid.IntRange(0, 4).Draw(t, "returned") == 0)
			o.Advance(now + offset)
			poll(rapid.IntRange(0, len(w.logs)-1).Draw(t, "poll"), now, rapid.IntRange(0, 5).Draw(t, "records"))
			c.drain(o)
		}
		o.Returned(false)
		for range 2 {
			now += simLateness + simSkew + 1
			for p := range w.logs {
				poll(p, now, len(w.sorted)+1)
			}
		}
		c.drain(o)
		c.want(w.sorted, "live")
	})
}

// TestNothingIsLost adds anything: clocks that jump, seqs in any order, records
// of any lateness, a small buffer. Each record that is new comes out once, and
// what the checker asks is kept.
func TestNothingIsLost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := newRig(Options{
			Lateness: simLateness, MaxSkew: simSkew, IdleAfter: 30, MaxTransaction: 40, Prompt: rapid.Bool().Draw(t, "prompt"),
			MaxAhead:    [...]time.Duration{0, 100}[rapid.IntRange(0, 1).Draw(t, "ahead")],
			MaxBuffered: rapid.IntRange(0, 8).Draw(t, "buffer"),
			Heavy:       rapid.IntRange(0, 3).Draw(t, "heavy"),
		})
		c := newChecker(t)
		seen := map[string]bool{}
		came := map[string]bool{}
		now := int64(1000)
		for i := range rapid.IntRange(0, 60).Draw(t, "steps") {
			now += rapid.Int64Range(0, 20).Draw(t, "passes")
			p := rapid.IntRange(0, 2).Draw(t, "partition")
			switch rapid.IntRange(0, 6).Draw(t, "step") {
			case 0:
				o.CaughtUp(p, now)
			case 1:
				o.Advance(now)
			case 2:
				o.Returned(rapid.Bool().Draw(t, "returned"))
			default:
				start := now + rapid.Int64Range(-200, 200).Draw(t, "start")
				x := txn(fmt.Sprintf("p%d-%d", p, rapid.IntRange(0, 2).Draw(t, "session")), rapid.Int64Range(0, 30).Draw(t, "seq"),
					start, start+rapid.Int64Range(0, 50).Draw(t, "takes"))
				x.ID = fmt.Sprint(i)
				if rapid.IntRange(0, 4).Draw(t, "timeless") == 0 {
					noTimes(x)
				}
				f := o.Add(p, x, now)
				place := fmt.Sprintf("%s#%d", x.Session, x.Seq)
				switch {
				case f <= Late:
					seen[x.ID] = true
				case f != Stale || !came[place]:
					t.Fatalf("%s, which is new, is %v", place, f)
				}
				came[place] = true
				if f == Late && !x.HasTimes && o.partitions[p].timed {
					t.Fatalf("a record without an end is late")
				}
			}
			if rapid.Bool().Draw(t, "drain") {
				c.drain(o)
				if m := o.opt.MaxBuffered; m > 0 && o.held+o.more > m {
					t.Fatalf("%d are held, which count for %d more, of at most %d", o.held, o.more, m)
				}
			}
		}
		o.Flush()
		c.drain(o)
		for _, x := range c.got {
			if !seen[x.ID] {
				t.Fatalf("%s came out twice or was never added", x.ID)
			}
			delete(seen, x.ID)
		}
		if len(seen) > 0 {
			t.Fatalf("lost: %v", seen)
		}
		if o.Held() != 0 {
			t.Fatalf("%d held after the end", o.Held())
		}
	})
}
