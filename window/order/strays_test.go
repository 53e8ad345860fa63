package order

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// However the records of a session come, they leave by seq, those without seq behind the greatest
// that came before them; also if a snapshot is restored between.
func TestSessionInAnyOrder(t *testing.T) {
	type place struct {
		seq, ref int64
	}
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 0))
		o := newRig(Options{Lateness: 1000})
		var want []place
		most := int64(math.MinInt64)
		for _, seq := range rng.Perm(1 + rng.IntN(60)) {
			if rng.IntN(8) == 0 {
				x := noSeq(txn("s", 1000+int64(len(o.txns)), 100, 100))
				want = append(want, place{most, int64(len(o.txns))})
				if f := o.Add(0, x, 100); f != Taken {
					t.Fatalf("seed %d: %s is %v", seed, x.ID, f)
				}
			}
			most = max(most, int64(seq))
			want = append(want, place{int64(seq), int64(len(o.txns))})
			if f := o.Add(0, txn("s", int64(seq), 100, 100), 100); f != Taken {
				t.Fatalf("seed %d: seq %d is %v", seed, seq, f)
			}
			if rng.IntN(20) == 0 {
				again, err := Restore(Options{Lateness: 1000}, o.Snapshot(nil), o.load)
				if err != nil {
					t.Fatal(err)
				}
				o.Order = again
			}
		}
		slices.SortFunc(want, func(a, b place) int { return cmp.Or(cmp.Compare(a.seq, b.seq), cmp.Compare(a.ref, b.ref)) })
		o.Flush()
		var got []place
		for i, r := range drain(o) {
			if i < len(want) {
				got = append(got, place{want[i].seq, int64(r.Ref)})
			}
			if r.Detached || r.Gap != nil {
				t.Fatalf("seed %d: %+v", seed, r.Release)
			}
		}
		if !slices.Equal(want, got) {
			t.Fatalf("seed %d: refs by seq:\n%v, want\n%v", seed, got, want)
		}
	}
}

// What left as the buffer was full and what a silent partition may have are both missed.
func TestMissedCountsBoth(t *testing.T) {
	o := newRig(Options{Partitions: []int{0, 1}, Lateness: 10, IdleAfter: 100, MaxBuffered: 1})
	o.Advance(1000)
	o.Add(1, txn("b", 1, 0, 20), 1000)
	for i := range int64(3) {
		o.Add(0, txn("a", i, 0, 100+i), 1000)
	}
	drain(o)
	forced := o.Missed()
	if forced == 0 || o.Counts().Forced != forced {
		t.Fatalf("%d missed: %+v", forced, o.Counts())
	}
	o.Advance(1101)
	o.Add(0, txn("a", 9, 0, 300), 1000)
	o.Advance(1202)
	drain(o)
	if n := o.Missed(); o.Counts().Skipped != 1 || n != o.Counts().Skipped+o.Counts().Forced {
		t.Errorf("%d missed: %+v", n, o.Counts())
	}
}
