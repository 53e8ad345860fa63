package segment

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/isowatch/isowatch/ingest/record"
)

func w(key string, v int64) record.Op {
	return record.Op{Kind: record.Write, Key: key, Value: record.Int(v)}
}
func r(key string, v int64) record.Op {
	return record.Op{Kind: record.Read, Key: key, Value: record.Int(v)}
}

// small cutters have overlaps that a test can fill.
var small = Options{MinOverlap: 8, MaxOverlap: 64, IdleAfter: 1000}

// feed makes records of several sessions in turn, one every ten ticks that lasts
// nine each.
type feed struct {
	c        *Cutter
	n        uint64
	sessions int
	seq      map[string]int64
	values   int64
	straddle []uint64
}

func newFeed(opt Options, sessions int) *feed {
	return &feed{c: New(opt), sessions: sessions, seq: map[string]int64{}}
}

func (f *feed) add(t record.Transaction) {
	if f.c.Add(f.n, &t, int64(f.n)*10) {
		f.straddle = append(f.straddle, f.n)
	}
	f.n++
}

func (f *feed) txn(ops ...record.Op) record.Transaction {
	s := fmt.Sprintf("s%d", f.n%uint64(f.sessions))
	f.seq[s]++
	at := int64(f.n) * 10
	return record.Transaction{Session: s, ID: fmt.Sprint(f.n), Start: at - 9, End: at, HasTimes: true, Ops: ops}
}

func TestClockCut(t *testing.T) {
	opt := small
	opt.RealTime, opt.MaxSkew = true, 5
	f := newFeed(opt, 4)
	for range 200 {
		f.values++
		f.add(f.txn(w("x", f.values)))
	}
	k := f.c.Cut()
	if k.Kind != Clock || !k.Complete || k.From != 192 || k.At != 191*10+5 {
		t.Fatalf("%+v", k)
	}
	long := f.txn(w("x", 0))
	long.Start = k.At
	f.add(long)
	f.add(f.txn(w("x", 1)))
	if len(f.straddle) != 1 || f.straddle[0] != 200 {
		t.Errorf("straddling: %v", f.straddle)
	}
	if !bytes.Equal(f.c.Snapshot(nil), f.c.Snapshot(nil)) {
		t.Error("two snapshots differ")
	}
	if d, err := Restore(opt, f.c.Snapshot(nil)); err != nil || !bytes.Equal(d.Snapshot(nil), f.c.Snapshot(nil)) {
		t.Errorf("%v\n%s\n%s", err, d.Snapshot(nil), f.c.Snapshot(nil))
	}
}

// fence is a transaction of the session whose turn it is that reads and writes
// the fence.
func (f *feed) fence() record.Transaction {
	f.values++
	return f.txn(r("fence", f.values-1), w("fence", f.values))
}

// fenced feeds rounds in which each session writes something, and in every fourth
// sets a fence.
func fenced(f *feed, rounds int) {
	for i := range rounds {
		for range f.sessions {
			if i%4 == 0 {
				f.add(f.fence())
			} else {
				f.add(f.txn(w(fmt.Sprint("k", f.n), int64(f.n))))
			}
		}
	}
}

func TestFenceCut(t *testing.T) {
	opt := small
	opt.NoClock = true
	f := newFeed(opt, 4)
	fenced(f, 41) // fences last at 160 to 163
	k := f.c.Cut()
	// The first session's last fence, at 160, follows those of the round before,
	// at 144 to 147. What the others did since is not proved to precede it.
	if k.Kind != Fence || !k.Complete || k.From > 149 || k.From < 144 {
		t.Fatalf("%+v", k)
	}
	fenced(f, 8)
	if len(f.straddle) > 0 {
		t.Errorf("%v straddle, but their sessions have set fences", f.straddle)
	}
	// One that was never there straddles until it sets a fence.
	newcomer := f.txn(w("x", 1))
	newcomer.Session = "new"
	f.add(newcomer)
	first := f.fence()
	first.Session = "new"
	f.add(first)
	newcomer.ID = "second"
	f.add(newcomer)
	if want := []uint64{196}; !slices.Equal(f.straddle, want) {
		t.Errorf("%v straddle, want %v", f.straddle, want)
	}
}

// Fences that do not form one chain prove nothing.
func TestTornFences(t *testing.T) {
	opt := small
	opt.NoClock = true
	f := newFeed(opt, 4)
	fenced(f, 40)
	f.add(f.txn(r("fence", f.values-2), w("fence", -5))) // overwrites what is overwritten already
	if k := f.c.Cut(); k.Kind == Fence || k.Complete {
		t.Fatalf("%+v", k)
	}
}

// Who comes late, and fences released before those that they read, do not tear
// the chain.
func TestFencesOutOfOrder(t *testing.T) {
	opt := small
	opt.NoClock = true
	f := newFeed(opt, 4)
	fenced(f, 37)
	for range 3 {
		a, b := f.fence(), f.fence()
		a.Session, b.Session = "s0", "s1"
		f.add(b)
		f.add(a)
		c, d := f.fence(), f.fence()
		c.Session, d.Session = "s2", "s3"
		f.add(c)
		f.add(d)
	}
	if k := f.c.Cut(); k.Kind != Fence || !k.Complete {
		t.Fatalf("%+v", k)
	}
}

// A silent session's last transactions straddle a cut that the others' fences
// prove; nobody waits for it.
func TestSilentSession(t *testing.T) {
	opt := small
	opt.NoClock, opt.MaxOverlap = true, 32
	f := newFeed(opt, 4)
	fenced(f, 20)
	for range 3 {
		x := f.txn(w("y", int64(f.n)))
		x.Session = "silent"
		f.add(x)
	}
	fenced(f, 60)
	k := f.c.Cut()
	if k.Kind != Fence || k.Complete || k.Straddlers != 1 || k.Straddling[0] != 80 {
		t.Fatalf("%+v", k)
	}
	fenced(f, 20)
	if k := f.c.Cut(); k.Kind != Fence || !k.Complete {
		t.Fatalf("the next one: %+v", k)
	}
}

func TestSnapshotCut(t *testing.T) {
	opt := small
	opt.NoClock = true
	f := newFeed(opt, 2)
	last := [3]int64{}
	update := func() record.Transaction {
		k := f.n % 3
		f.values++
		before := last[k]
		last[k] = f.values
		return f.txn(r(fmt.Sprint("k", k), before), w(fmt.Sprint("k", k), f.values))
	}
	snapshot := func() record.Transaction { return f.txn(r("k0", last[0]), r("k1", last[1]), r("k2", last[2])) }
	for range 12 {
		f.add(update())
	}
	old := snapshot()
	old.Session = "s1"
	for range 6 {
		f.add(update())
	}
	now := snapshot()
	now.Session = "s0"
	f.add(now)
	f.add(old)
	for range 10 {
		f.add(update())
	}
	k := f.c.Cut()
	if k.Kind != Snapshot || !k.Complete || k.From != 12 {
		t.Fatalf("%+v", k)
	}
	f.add(f.txn(w("k0", -1))) // nobody knows where it belongs
	for range 8 {
		f.add(update())
	}
	blind := snapshot()
	blind.Session = "s0"
	f.add(blind)
	blind.Session = "s1"
	f.add(blind)
	for range 30 {
		f.add(update())
	}
	if k := f.c.Cut(); k.Kind == Snapshot && k.Complete {
		t.Fatalf("after a blind write: %+v", k)
	}
}

// Without anything that proves order the overlap is the shortest, and nothing is
// claimed.
func TestLimit(t *testing.T) {
	opt := small
	opt.NoClock = true
	f := newFeed(opt, 3)
	for range 100 {
		f.add(f.txn(w(fmt.Sprint("k", f.n%50), int64(f.n))))
	}
	if k := f.c.Cut(); k.Kind != Limit || k.Complete || k.From != 92 {
		t.Fatalf("%+v", k)
	}
}

// What has no times, or an unknown outcome, straddles.
func TestStraddlers(t *testing.T) {
	opt := small
	opt.RealTime = true
	f := newFeed(opt, 4)
	for range 100 {
		x := f.txn(w("x", int64(f.n)))
		switch f.n {
		case 30:
			x.HasTimes = false
		case 40:
			x.Status = record.Unknown
		case 50:
			x.Status, x.HasTimes = record.Aborted, false
		}
		f.add(x)
	}
	k := f.c.Cut()
	if k.Kind != Clock || k.Complete || !slices.Equal(k.Straddling, []uint64{30, 40}) || k.Straddlers != 2 {
		t.Fatalf("%+v", k)
	}
	for range 50 {
		f.add(f.txn(w("x", int64(f.n))))
	}
	if k := f.c.Cut(); k.Kind != Clock || !k.Complete || k.Straddlers != 0 {
		t.Fatalf("the next one: %+v", k)
	}
}

// A long transaction holds nothing back, and is told when it comes.
func TestClockAssumesRealTime(t *testing.T) {
	f := newFeed(small, 4)
	for range 100 {
		f.add(f.txn(w("x", int64(f.n))))
	}
	k := f.c.Cut()
	if k.Kind != Clock || k.Complete || !k.AssumingRealTime || k.From != 92 {
		t.Fatalf("%+v", k)
	}
}

// Whenever it is kept and restored, a Cutter says the same, whatever comes.
func TestRestoredCutterSaysTheSame(t *testing.T) {
	for seed := range uint64(12) {
		rng := rand.New(rand.NewPCG(seed, 8))
		opt := Options{MinOverlap: 1 + uint64(rng.IntN(20)), MaxOverlap: 30 + uint64(rng.IntN(900)), IdleAfter: int64(rng.IntN(900)), MaxSkew: int64(rng.IntN(20)),
			RealTime: rng.IntN(2) == 0, NoClock: rng.IntN(2) == 0, MaxSessions: 2 + rng.IntN(20), SnapshotKeys: 1 + rng.IntN(10)}
		a := New(opt)
		b := New(opt)
		last := map[string]int64{}
		before := uint64(0)
		for n := range uint64(1500) {
			x := record.Transaction{Session: fmt.Sprint("s\xff", rng.IntN(1+rng.IntN(12))), Status: record.Status(rng.IntN(20) % 18 % 3)}
			if rng.IntN(30) > 0 {
				x.HasTimes, x.End = true, int64(n)*10+int64(rng.IntN(30))
				x.Start = x.End - int64(rng.IntN(40))
			}
			for range rng.IntN(4) {
				key := fmt.Sprint("k", rng.IntN(1+rng.IntN(12)))
				if rng.IntN(8) > 0 {
					x.Ops = append(x.Ops, r(key, last[key]))
				}
				if rng.IntN(2) == 0 {
					last[key] = int64(n)
					x.Ops = append(x.Ops, w(key, int64(n)))
				}
			}
			if a.Add(n, &x, int64(n)*10) != b.Add(n, &x, int64(n)*10) {
				t.Fatalf("seed %d: they differ about record %d", seed, n)
			}
			if rng.IntN(100) == 0 {
				k, l := a.Cut(), b.Cut()
				if fmt.Sprintf("%+v", k) != fmt.Sprintf("%+v", l) {
					t.Fatalf("seed %d: after record %d: %+v, restored %+v", seed, n, k, l)
				}
				if k.From < before || k.From > n+1 || n+1 > opt.MaxOverlap && k.From+opt.MaxOverlap < n+1 || k.From > before && k.From+opt.MinOverlap > n+1 ||
					k.Complete && k.Straddlers > 0 || len(k.Straddling) > k.Straddlers || k.Kind == Clock && opt.NoClock {
					t.Fatalf("seed %d: after record %d, from %d: %+v, %+v", seed, n, before, k, opt)
				}
				before = k.From
			}
			if rng.IntN(40) == 0 {
				var err error
				if b, err = Restore(opt, b.Snapshot(nil)); err != nil {
					t.Fatal(err)
				}
				if string(a.Snapshot(nil)) != string(b.Snapshot(nil)) {
					t.Fatalf("seed %d: what is kept differs after record %d", seed, n)
				}
			}
		}
	}
}

// Whatever bytes are given for a state, they are an error or a Cutter that can go
// on.
func FuzzRestore(f *testing.F) {
	feed := newFeed(small, 4)
	fenced(feed, 30)
	feed.c.Cut()
	f.Add(feed.c.Snapshot(nil))
	f.Add(New(small).Snapshot(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := Restore(small, b)
		if err != nil {
			return
		}
		g := &feedOf{c: c, n: c.next}
		for range 20 {
			g.step()
		}
		c.Cut()
		if _, err := Restore(small, c.Snapshot(nil)); err != nil {
			t.Fatal(err)
		}
	})
}

// feedOf goes on with a Cutter, wherever it is.
type feedOf struct {
	c *Cutter
	n uint64
}

func (g *feedOf) step() {
	x := record.Transaction{Session: fmt.Sprint("s", g.n%3), End: int64(g.n), HasTimes: true, Ops: []record.Op{r("fence", int64(g.n)), w("fence", int64(g.n)+1)}}
	g.c.Add(g.n, &x, int64(g.n))
	g.n++
}

// A state that is what it was when it was stored, but can't be one, is an error, too.
func TestUnsoundState(t *testing.T) {
	opt := small
	opt.NoClock = true
	f := newFeed(opt, 2)
	fenced(f, 40)
	for _, c := range []struct {
		name string
		edit func(c *Cutter)
	}{
		{"no step", func(c *Cutter) { c.steps.list = nil }},
		{"steps out of order", func(c *Cutter) { slices.Reverse(c.steps.list) }},
		{"a step in the future", func(c *Cutter) { c.steps.list[len(c.steps.list)-1].pos = c.next + 1 }},
		{"more than a stream has", func(c *Cutter) { c.next = 1<<62 + 1 }},
		{"a longer chain than there is", func(c *Cutter) { c.fences.top = math.MaxUint64 }},
		{"a chain that begins behind its end", func(c *Cutter) { c.fences.base = c.fences.top + 2 }},
		{"a cut in the future", func(c *Cutter) { c.last.From = c.next + 1 }},
		{"no such cut", func(c *Cutter) { c.last.Kind = Fence + 1 }},
		{"too many that wait", func(c *Cutter) { c.fences.wait = make([]waiting, waitMost+1) }},
		{"too many votes", func(c *Cutter) {
			for i := range votesMost + 1 {
				c.fences.votes[fmt.Sprint("v", i)] = 1
			}
		}},
		{"too long a chain", func(c *Cutter) { c.fences.ring, c.fences.top = make([]record.Value, chainMost+1), chainMost+1 }},
		{"places before the first", func(c *Cutter) { c.fences.top = uint64(len(c.fences.ring)) - 1 }},
		{"no base", func(c *Cutter) { c.fences.base = 0 }},
		{"a key without a write", func(c *Cutter) { c.snaps.keys["k"] = &written{} }},
		{"too many marks", func(c *Cutter) { c.sessions.sorted()[0].marks = make([]mark, marksMost+1) }},
		{"", func(*Cutter) {}},
	} {
		edited, err := Restore(opt, f.c.Snapshot(nil))
		if err != nil {
			t.Fatal(err)
		}
		c.edit(edited)
		if _, err := Restore(opt, edited.Snapshot(nil)); (err != nil) != (c.name != "") {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	whole := f.c.Snapshot(nil)
	for n := range whole {
		if _, err := Restore(opt, whole[:n]); err == nil {
			t.Errorf("%d bytes of %d are no state", n, len(whole))
		}
	}
}

// Eight operations, four of them writes, over many keys.
func BenchmarkAdd(b *testing.B) {
	c := New(Options{})
	x := record.Transaction{HasTimes: true}
	for i := range 8 {
		x.Ops = append(x.Ops, record.Op{Kind: record.OpKind(i % 2), Key: fmt.Sprint("k", i), Value: record.Int(int64(i))})
	}
	sessions := make([]string, 24)
	for i := range sessions {
		sessions[i] = fmt.Sprint("s", i)
	}
	names := make([]string, 10000)
	for i := range names {
		names[i] = fmt.Sprint("k", i)
	}
	b.ReportAllocs()
	for n := uint64(0); b.Loop(); n++ {
		x.Session, x.Start, x.End = sessions[n%24], int64(n)*10, int64(n)*10+100
		for i := range x.Ops {
			x.Ops[i].Key = names[(n*8+uint64(i))*7919%10000]
		}
		c.Add(n, &x, 0)
		if n%131072 == 131071 {
			c.Cut()
		}
	}
}

// The key with most votes is followed, of several the first by name, in whatever order they come.
func TestFavourite(t *testing.T) {
	f := fences{votes: map[string]int{"a": 1, "b": 3, "c": 3, "d": 2}}
	for range 50 {
		if key, votes := f.favourite(); key != "b" || votes != 3 {
			t.Fatalf("%q with %d votes", key, votes)
		}
	}
}
