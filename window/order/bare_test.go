package order

import (
	"errors"
	"fmt"
	"testing"

	"github.com/isowatch/isowatch/ingest/record"
)

// Of records with neither seq nor times as many IDs are remembered as Bare says, over a restart too,
// and however few of others are.
func TestBareIsRemembered(t *testing.T) {
	head := func(i int) *record.Head {
		x := noTimes(noSeq(txn("s", 0, 0, 0)))
		x.ID = fmt.Sprint("x", i)
		h := record.HeadOf(x)
		return &h
	}
	const bare, n = 40_000, 90_000
	opt := Options{MaxRemembered: 2, Bare: bare}
	o := New(opt)
	for i := range n {
		if f := o.Add(0, head(i), uint64(i), int64(i+1)); f != Taken {
			t.Fatalf("%d is %v", i, f)
		}
	}
	o.Flush()
	for _, ok := o.Next(); ok; _, ok = o.Next() {
	}
	again, err := Restore(opt, o.Snapshot(nil), func(uint64) (record.Head, error) { return record.Head{}, errors.New("nothing waits") })
	if err != nil {
		t.Fatal(err)
	}
	for i := n - bare; i < n; i++ {
		for _, o := range []*Order{o, again} {
			if f := o.Add(0, head(i), uint64(n+i), n+1); f != Duplicate {
				t.Fatalf("%d comes again and is %v", i, f)
			}
		}
	}
}

// One ID is one record, whether it has seq or times or neither: the second one is refused, before and
// after a restart.
func TestOneIDInBothMemories(t *testing.T) {
	bare := noTimes(noSeq(txn("a", 0, 0, 0)))
	timed := noSeq(txn("a", 0, 5, 9))
	placed := noTimes(txn("a", 3, 0, 0))
	other := noTimes(noSeq(txn("a", 0, 0, 0)))
	for _, x := range []*record.Transaction{bare, timed, placed} {
		x.ID = "one"
	}
	other.ID = "other"
	heads := map[uint64]record.Head{}
	for _, pair := range [][2]*record.Transaction{{bare, timed}, {timed, bare}, {bare, placed}, {placed, bare}} {
		for _, restart := range []bool{false, true} {
			o := New(Options{Lateness: 100})
			for i, x := range []*record.Transaction{pair[0], pair[1], pair[0], other} {
				h := record.HeadOf(x)
				heads[uint64(i)] = h
				if f, want := o.Add(0, &h, uint64(i), 10), [...]Fate{Taken, Contradiction, Duplicate, Taken}[i]; f != want {
					t.Errorf("%+v and %+v, restarted %v: the %d. is %v, want %v", pair[0], pair[1], restart, i+1, f, want)
				}
				if restart {
					again, err := Restore(Options{Lateness: 100}, o.Snapshot(nil), func(ref uint64) (record.Head, error) { return heads[ref], nil })
					if err != nil {
						t.Fatal(err)
					}
					o = again
				}
			}
			if o.Counts().Contradictions != 1 || o.Held() != 2 {
				t.Errorf("%+v, %d held", o.Counts(), o.Held())
			}
		}
	}
}
