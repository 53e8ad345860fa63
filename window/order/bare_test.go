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
