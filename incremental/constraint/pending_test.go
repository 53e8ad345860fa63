package constraint

import (
	"fmt"
	"strings"
	"testing"
)

// A read of what was overwritten a hundred times since, by the clock, closes as many
// cycles. So many are explained before they are taken, and no more, where there is a
// bound; all are counted.
func TestPendingIsBounded(t *testing.T) {
	const writers = 100
	var b strings.Builder
	for i := range writers {
		fmt.Fprintf(&b, "T%d s%d @%d-%d w(x)\n", i, i, 10*i, 10*i+5)
	}
	fmt.Fprintf(&b, "R r @%d-%d r(x)=T0\n", 10*writers, 10*writers+5)
	for _, most := range []int{0, 64} {
		pl := parse(b.String())
		r := newRig(pl, Config{RealTime: true, Sessions: true})
		r.p.MaxPending = most
		r.upTo(len(pl.txns))
		want := writers - 1
		if r.p.Found != want {
			t.Errorf("%d violations, want %d", r.p.Found, want)
		}
		if most > 0 {
			want = most
		}
		if n, found := r.p.Pending(), r.p.TakeFound(); n != want || len(found) != want {
			t.Errorf("%d are pending, %d taken, want %d", n, len(found), want)
		}
		if r.p.Found-want != r.p.Dropped {
			t.Errorf("%d of %d were dropped, %d taken", r.p.Dropped, r.p.Found, want)
		}
		if n := r.p.Pending(); n != 0 {
			t.Errorf("%d are pending after all were taken", n)
		}
	}
	// Whoever is to stop explains nothing.
	pl := parse(b.String())
	r := newRig(pl, Config{RealTime: true, Sessions: true})
	r.upTo(writers)
	r.stopAt(func() bool { return true })
	r.upTo(len(pl.txns))
	if n := r.p.Pending(); n != 0 {
		t.Errorf("%d violations were explained after the stop", n)
	}
}
