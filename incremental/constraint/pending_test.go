package constraint

import (
	"fmt"
	"strings"
	"testing"
)

// A read of what was overwritten a hundred times since, by the clock, closes as many cycles. All are explained and
// counted; whoever is to stop explains nothing.
func TestPending(t *testing.T) {
	const writers = 100
	var b strings.Builder
	for i := range writers {
		fmt.Fprintf(&b, "T%d s%d @%d-%d w(x)\n", i, i, 10*i, 10*i+5)
	}
	fmt.Fprintf(&b, "R r @%d-%d r(x)=T0\n", 10*writers, 10*writers+5)
	for _, stop := range []bool{false, true} {
		pl := parse(b.String())
		r := newRig(pl, Config{RealTime: true, Sessions: true})
		r.upTo(writers)
		want := writers - 1
		if stop {
			r.stopAt(func() bool { return true })
			want = 0
		}
		r.upTo(len(pl.txns))
		if n, found := r.p.reports.Pending(), r.p.reports.TakeFound(); n != want || len(found) != want || !stop && r.p.reports.Found != want {
			t.Errorf("%d are pending, %d taken of %d, want %d", n, len(found), r.p.reports.Found, want)
		}
		if n := r.p.reports.Pending(); n != 0 {
			t.Errorf("%d are pending after all were taken", n)
		}
	}
}
