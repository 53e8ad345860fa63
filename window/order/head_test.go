package order

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What is missing before a session's first record is a hole if the input is whole: numbers
// begin at 0 or at 1. Otherwise the reader joined there.
func TestLostHead(t *testing.T) {
	for _, c := range []struct {
		seqs []int64 // of a session, as they come
		want Gap     // before the first
	}{
		{[]int64{0, 1, 2}, Gap{}},
		{[]int64{1, 2}, Gap{}},
		{[]int64{2, 3}, Gap{Session: "s", From: 1, To: 1}},
		{[]int64{5}, Gap{Session: "s", From: 1, To: 4}},
		{[]int64{5, 3, 4}, Gap{Session: "s", From: 1, To: 2}}, // in order by the time they leave
		{[]int64{3, 0, 2, 1}, Gap{}},
		{[]int64{math.MaxInt64}, Gap{Session: "s", From: 1, To: math.MaxInt64 - 1}},
	} {
		for _, whole := range []bool{true, false} {
			for _, timed := range []bool{true, false} {
				o := newRig(Options{Lateness: 10, Whole: whole})
				for i, seq := range c.seqs {
					x := txn("s", seq, 99, 100)
					if !timed {
						noTimes(x)
					}
					o.Add(0, x, 100)
					if i == 0 { // the same again is no other beginning
						o.Add(0, x, 100)
					}
				}
				o.Flush()
				var got []Gap
				for _, r := range drain(o) {
					if r.Gap != nil {
						got = append(got, *r.Gap)
					}
				}
				var want []Gap
				missing := int64(0)
				if whole && c.want != (Gap{}) {
					want, missing = []Gap{c.want}, c.want.To-c.want.From+1
				}
				if n := o.Counts(); !cmp.Equal(got, want) || n.Gaps != int64(len(want)) || n.Missing != missing {
					t.Errorf("%v, whole %v, times %v: %+v, counted %d with %d missing, want %+v with %d", c.seqs, whole, timed, got, n.Gaps, n.Missing, want, missing)
				}
			}
		}
	}
}

// A session that begins without seq, or is known to have begun, has no lost head; what comes
// too late of one that was told is no second hole.
func TestBeginningThatIsThere(t *testing.T) {
	o := newRig(Options{Whole: true})
	o.Add(0, noSeq(txn("a", 0, 9, 10)), 10)
	o.Add(0, txn("a", 7, 19, 20), 20)
	o.Add(0, txn("b", 0, 29, 30), 30)
	o.Add(0, txn("c", 4, 39, 40), 40)
	o.Add(0, txn("x", 0, 99, 100), 100)
	drain(o)
	o.Add(0, txn("b", 1, 109, 110), 110)
	o.Add(0, txn("c", 2, 35, 36), 111) // late
	o.Add(0, txn("c", 5, 119, 120), 120)
	o.Add(0, txn("d", 3, 36, 37), 121) // late, and the first
	o.Flush()
	got := map[string]Gap{}
	for _, r := range drain(o) {
		if r.Gap != nil {
			got[r.Txn.ID] = *r.Gap
		}
	}
	if diff := cmp.Diff(map[string]Gap{"d#3": {Session: "d", From: 1, To: 2}}, got); diff != "" {
		t.Errorf("holes before (-want +got):\n%s", diff)
	}
	if n := o.Counts(); n.Gaps != 2 || n.Missing != 3+2 {
		t.Errorf("%+v", n)
	}
}

// Where sessions are forgotten, one that begins behind all that are is either one of them,
// perhaps behind a hole, or has lost its head: either way something may be missing. One that
// begins before them is none of them.
func TestLostHeadAmongForgotten(t *testing.T) {
	for _, c := range []struct {
		seq            int64
		whole          bool
		gap, forgotten bool
	}{
		{0, true, false, false},
		{1, true, false, false},
		{2, true, true, false},
		{3, true, true, false}, // the least that a session was left at
		{4, true, false, true}, // next in that session, or the first that is left of another
		{5, true, false, true},
		{2, false, false, false},
		{4, false, false, false},
		{5, false, false, true},
	} {
		o := newRig(Options{Whole: c.whole, MaxSessions: 2})
		o.Add(0, txn("a", 0, 0, 1), 1)
		for i := range int64(3) {
			o.Add(0, txn("a", i+1, 10*i+9, 10*i+10), 10*i+10)
		}
		for i := range int64(4) {
			for n := range int64(5) { // are left at 4
				end := 100 + 10*(5*i+n)
				o.Add(0, txn(fmt.Sprint("b", i), n, end-1, end), end)
			}
		}
		o.Add(0, txn("new", c.seq, 999, 1000), 1000)
		o.Add(0, txn("x", 0, 1099, 1100), 1100)
		for _, r := range drain(o) {
			if r.Txn.Session == "new" && ((r.Gap != nil) != c.gap || r.Forgotten != c.forgotten) {
				t.Errorf("first seq %d, whole %v: gap %v, forgotten %v", c.seq, c.whole, r.Gap, r.Forgotten)
			}
		}
		if n := o.Counts(); n.Sessions == 0 || n.Released < 25 {
			t.Fatalf("nothing is forgotten: %+v", n)
		}
	}
}

// A session may have been left out of the sample before its first record.
func TestLostHeadWhileSampled(t *testing.T) {
	out := ""
	for i := 0; out == ""; i++ {
		if s := fmt.Sprint("s", i); !Kept(s, 1) {
			out = s
		}
	}
	o := newRig(Options{Whole: true})
	o.Sample(1)
	o.Add(0, txn(out, 0, 9, 10), 10)
	o.Sample(0)
	o.Add(0, txn(out, 3, 19, 20), 20)
	o.Flush()
	if r := drain(o); len(r) != 1 || r[0].Gap == nil || !r[0].Gap.Sampled {
		t.Errorf("%+v", r)
	}
}

// Heads are missed at the same records whatever the interleaving, and if a snapshot is
// restored at any time.
func TestLostHeadsAreTheSameForEverybody(t *testing.T) {
	seen := 0
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 0))
		opt := Options{Lateness: simLateness, MaxSkew: simSkew, Whole: true, Prompt: seed%2 == 0}
		logs := make([][]message, 1+rng.IntN(3))
		want := map[string]Gap{}
		for s := range 5 {
			p := rng.IntN(len(logs))
			first, end := rng.Int64N(5), int64(1000*s)
			for n := range int64(1 + rng.IntN(6)) {
				end += 1 + rng.Int64N(100)
				x := txn(fmt.Sprint("s", s), first+n, end-1, end)
				logs[p] = append(logs[p], message{x, end})
				if n == 0 && first > 1 {
					want[x.ID] = Gap{Session: x.Session, From: 1, To: first - 1}
				}
			}
		}
		seen += len(want)
		for range 3 {
			g := play(opt, logs)
			for left := g.left(); len(left) > 0; left = g.left() {
				g.add(left[rng.IntN(len(left))])
				if rng.IntN(2) == 0 {
					g.drain()
				}
				if rng.IntN(4) == 0 {
					again, err := Restore(opt, g.Snapshot(nil), g.load)
					if err != nil {
						t.Fatal(err)
					}
					g.Order = again
				}
			}
			g.finish()
			got := map[string]Gap{}
			for _, e := range g.events {
				if e.Gap != (Gap{}) {
					got[e.ID] = e.Gap
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("seed %d: (-want +got):\n%s", seed, diff)
			}
		}
	}
	if seen < 100 {
		t.Errorf("%d heads are lost only", seen)
	}
}
