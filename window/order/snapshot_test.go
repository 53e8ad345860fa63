package order

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/isowatch/isowatch/ingest/record"
)

// drawOptions are options that make every limit matter.
func drawOptions(t *rapid.T) Options {
	return Options{
		Lateness: simLateness, MaxSkew: simSkew, IdleAfter: 100, MaxTransaction: 25, Every: 16,
		MaxAhead:      [...]time.Duration{0, 150}[rapid.IntRange(0, 1).Draw(t, "ahead")],
		MaxBuffered:   [...]int{0, 6}[rapid.IntRange(0, 1).Draw(t, "buffer")],
		Heavy:         rapid.IntRange(0, 3).Draw(t, "heavy"),
		MaxRemembered: [...]int{0, 6}[rapid.IntRange(0, 1).Draw(t, "remembered")],
		MaxSessions:   [...]int{0, 2}[rapid.IntRange(0, 1).Draw(t, "sessions remembered")],
		Prompt:        rapid.Bool().Draw(t, "prompt"),
	}
}

// TestSnapshotIsExact takes a snapshot and restores it at any point, and plays on
// with both: all that is seen is the same, fates and counts too, and so is the next
// snapshot.
func TestSnapshotIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		opt := drawOptions(t)
		a := play(opt, drawLogs(t))
		a.without = rapid.Bool().Draw(t, "without a broker")
		now := int64(0)
		var b *player
		for left := a.left(); len(left) > 0; left = a.left() {
			p := rapid.SampledFrom(left).Draw(t, "read")
			step := rapid.IntRange(0, 9).Draw(t, "step")
			now += rapid.Int64Range(0, 20).Draw(t, "passes")
			for _, g := range []*player{a, b} {
				if g == nil {
					continue
				}
				g.add(p)
				switch step {
				case 0, 1, 2, 3:
					g.drain()
				case 4:
					g.CaughtUp(p, now)
				case 5:
					g.Advance(now)
				case 6:
					g.Observe(p, fmt.Sprint("other", now&3), now*(1+now&16), []int64{now, 0}[b2i(g.without)])
				case 7:
					g.Sample(uint8(now & 1))
				case 8:
					g.Returned(now&1 == 0)
				}
			}
			if b == nil && rapid.IntRange(0, 5).Draw(t, "snapshot") == 0 {
				b = restored(t, opt, a)
			}
		}
		if b == nil {
			b = restored(t, opt, a)
		}
		a.finish()
		b.finish()
		if diff := cmp.Diff(a.fates, b.fates); diff != "" {
			t.Fatalf("fates (-went on +restored):\n%s", diff)
		}
		if diff := cmp.Diff(a.events, b.events); diff != "" {
			t.Fatalf("events (-went on +restored):\n%s", diff)
		}
		if diff := cmp.Diff(a.Counts(), b.Counts()); diff != "" {
			t.Fatalf("counts (-went on +restored):\n%s", diff)
		}
		if !bytes.Equal(a.Snapshot(nil), b.Snapshot(nil)) {
			t.Fatal("the snapshots at the end differ")
		}
	})
}

// restored is a's copy by way of a snapshot.
func restored(t *rapid.T, opt Options, a *player) *player {
	data := a.Snapshot([]byte("before"))[len("before"):]
	o, err := Restore(opt, data, a.load)
	if err != nil {
		t.Fatal(err)
	}
	for ref := o.RememberedFrom(); ref < uint64(len(a.refs)); ref++ {
		if a.fates[ref] <= Late {
			h := record.HeadOf(a.refs[ref])
			o.Remember(ref, &h)
		}
	}
	if !bytes.Equal(data, o.Snapshot(nil)) {
		t.Fatal("the snapshot of what was restored is another")
	}
	b := &player{Order: o, without: a.without, logs: a.logs, next: append([]int{}, a.next...), refs: append([]*record.Transaction{}, a.refs...)}
	b.events, b.fates = append(b.events, a.events...), append(b.fates, a.fates...)
	return b
}

// TestRestoredWithoutMemory restores and does not call Remember: what comes out is
// the same, as long as what comes again comes with the same content, and, if it has no
// times, not later than it may (Order.beyond).
func TestRestoredWithoutMemory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		opt := drawOptions(t)
		a := play(opt, inTime(drawLogs(t), int64(opt.Lateness+opt.MaxSkew+opt.MaxTransaction)))
		at := rapid.IntRange(0, 40).Draw(t, "snapshot at")
		for n := 0; n < at && len(a.left()) > 0; n++ {
			a.add(rapid.SampledFrom(a.left()).Draw(t, "read"))
			a.drain()
		}
		o, err := Restore(opt, a.Snapshot(nil), a.load)
		if err != nil {
			t.Fatal(err)
		}
		b := &player{Order: o, without: a.without, logs: a.logs, next: append([]int{}, a.next...), refs: append([]*record.Transaction{}, a.refs...)}
		b.events = append(b.events, a.events...)
		for len(a.left()) > 0 {
			p := rapid.SampledFrom(a.left()).Draw(t, "read")
			a.add(p)
			b.add(p)
			a.drain()
			b.drain()
		}
		a.finish()
		b.finish()
		if diff := cmp.Diff(a.events, b.events); diff != "" {
			t.Fatalf("events (-went on +restored):\n%s", diff)
		}
	})
}

// inTime are the logs but for what has no times and comes again later than so long after.
func inTime(logs [][]message, longest int64) [][]message {
	first := map[string]int64{}
	for i, log := range logs {
		logs[i] = slices.DeleteFunc(log, func(m message) bool {
			at, again := first[m.txn.ID]
			if !again {
				first[m.txn.ID] = m.arrival
			}
			return again && !m.txn.HasTimes && m.arrival-at > longest
		})
	}
	return logs
}

// full is an Order in which something of everything waits.
func full(t testing.TB) (Options, *rig) {
	opt := Options{Partitions: []int{0, 1}, Lateness: 100, MaxSkew: 5, MaxAhead: 1000, MaxTransaction: 50, MaxSessions: 2, Every: 10, Prompt: true}
	o := newRig(opt)
	o.Advance(1000)
	for i := range int64(20) {
		o.Add(0, txn("a", i, 10*i, 10*i+5), 1000+10*i)
		o.Add(1, noSeq(txn(fmt.Sprint("n", i), i, 10*i, 10*i+5)), 1000+10*i)
		drain(o)
	}
	o.Add(0, txn("a", 25, 0, 300), 1210)
	o.Add(0, txn("a", 22, 100, 120), 1211)
	o.Add(0, txn("b", 1, 9000, 9000), 1212)
	o.Add(1, noTimes(txn("c", 1, 0, 0)), 1213)
	x := noTimes(noSeq(txn("c", 2, 0, 0)))
	o.Add(1, x, 1214)
	if o.Held() == 0 || o.Counts().Ahead == 0 || o.Counts().Sessions == 0 {
		t.Fatalf("not the scenario: %+v", o.Counts())
	}
	return opt, o
}

func (g *rig) load(ref uint64) (record.Head, error) {
	if ref >= uint64(len(g.txns)) {
		return record.Head{}, fmt.Errorf("there is no record %d", ref)
	}
	return record.HeadOf(g.txns[ref]), nil
}

// TestDamagedSnapshot cuts at each place: an error, and the right one. What is changed is found by who keeps it.
func TestDamagedSnapshot(t *testing.T) {
	opt, o := full(t)
	data := o.Snapshot(nil)
	for i := range data {
		if _, err := Restore(opt, data[:i], o.load); !errors.Is(err, ErrDamaged) {
			t.Fatalf("cut at %d: %v", i, err)
		}
	}
	away := errors.New("away")
	if _, err := Restore(opt, data, func(uint64) (record.Head, error) { return record.Head{}, away }); !errors.Is(err, away) {
		t.Errorf("a record that can't be loaded: %v", err)
	}
	if _, err := Restore(opt, data, func(uint64) (record.Head, error) { return record.Head{}, nil }); !errors.Is(err, ErrDamaged) {
		t.Errorf("other records than were there: %v", err)
	}
}

// FuzzRestore: what is restored of any bytes can be used.
func FuzzRestore(f *testing.F) {
	opt, o := full(f)
	f.Add(o.Snapshot(nil))
	f.Add(New(opt).Snapshot(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := Restore(opt, b, o.load)
		if err != nil {
			return
		}
		h := record.HeadOf(txn("a", 30, 300, 310))
		r.Add(0, &h, 1<<40, 1300)
		r.CaughtUp(0, 2000)
		waiting := r.Held()
		r.Flush()
		n := 0
		for _, ok := r.Next(); ok; _, ok = r.Next() {
			n++
		}
		if n != waiting || r.Held() != 0 {
			t.Fatalf("%d of %d came out", n, waiting)
		}
		r.Snapshot(nil)
	})
}

// BenchmarkSnapshot takes and restores a snapshot of 240,000 records that wait.
func BenchmarkSnapshot(b *testing.B) {
	for _, sessions := range []int{24, 1000, 10_000} {
		f := newFeed(sessions, true)
		opt := Options{Lateness: 2 * time.Second, MaxSkew: 5 * time.Millisecond}
		o := New(opt)
		heads := map[uint64]record.Head{}
		for range 300_000 {
			h, p := f.next()
			heads[uint64(f.at)] = *h
			o.Add(p, h, uint64(f.at), 0)
		}
		for r, ok := o.Next(); ok; r, ok = o.Next() {
			delete(heads, r.Ref)
		}
		data := o.Snapshot(nil)
		b.Run(fmt.Sprintf("sessions=%d/snapshot", sessions), func(b *testing.B) {
			for b.Loop() {
				data = o.Snapshot(data[:0])
			}
			b.ReportMetric(float64(len(data))/float64(o.Held()), "B/record")
		})
		b.Run(fmt.Sprintf("sessions=%d/restore", sessions), func(b *testing.B) {
			for b.Loop() {
				if _, err := Restore(opt, data, func(ref uint64) (record.Head, error) { return heads[ref], nil }); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func b2i(is bool) int {
	if is {
		return 1
	}
	return 0
}
