package order

import (
	"fmt"
	"testing"
)

// What comes again when its ID is no longer remembered is not taken twice, where only one
// of the things known of its session shows that it came: a clock that was ahead, or what a
// session of that name did before it was forgotten.
func TestOldRecordsAreNotNew(t *testing.T) {
	t.Run("ahead", func(t *testing.T) {
		o := newRig(Options{Lateness: 10, MaxAhead: 100, MaxRemembered: 2})
		x := noSeq(txn("x", 1, 4999, 5000))
		if f := o.Add(0, x, 1000); f != Taken || o.Counts().Ahead != 1 {
			t.Fatalf("%v, %+v", f, o.Counts())
		}
		for i := range int64(9) {
			o.Add(0, txn("a", i, 1000+i, 1001+i), 1001+i)
		}
		drain(o)
		if f := o.Add(0, x, 1020); f != Stale {
			t.Errorf("again it is %v", f)
		}
	})
	t.Run("forgotten", func(t *testing.T) {
		o := newRig(Options{Lateness: 10, MaxTransaction: 10, MaxRemembered: 2, MaxSessions: 4})
		x := noSeq(txn("x", 1, 99, 100))
		o.Add(0, x, 100)
		for i := range int64(20) {
			o.Add(0, txn(fmt.Sprint("s", i), 1, 200+20*i, 201+20*i), 201+20*i)
			drain(o)
		}
		if o.sessions["x"] != nil {
			t.Fatal("x is not forgotten")
		}
		if f := o.Add(0, noTimes(noSeq(txn("x", 2, 0, 0))), 2000); f != Taken {
			t.Fatalf("long after, without times, it is %v", f)
		}
		if f := o.Add(0, x, 2001); f <= Late {
			t.Errorf("again it is %v", f)
		}
	})
}
