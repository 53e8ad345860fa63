package streamtest

import (
	"math"
	"testing"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/oracle/script"
	"github.com/isowatch/isowatch/window/stream"
)

// A cycle that rests on what y held at first, which only complete coverage tells, and on the
// order of a list whose first element is forgotten, which then needs an unseen writer, has
// no evidence. It is withheld and its stretch partial; as long as nothing is forgotten it
// is told.
func TestProofThatIsForgotten(t *testing.T) {
	s, err := script.Parse(`
initial absent
coverage complete
sessions keep
clock prune
max_skew 0
s1 T1: append(x,1)
s1 T4: append(x,3)
s2 T6: r(x,[1,5,3])
s1 T7: r(y,null)
s3 T8: w(y,4) append(x,5)
`)
	if err != nil {
		t.Fatal(err)
	}
	log := make([]sent, len(s.Txns))
	for i, x := range s.Txns {
		log[i] = sent{x, int64(i) + 1}
	}
	tp := &topic{logs: [][]sent{log}, levels: []verdict.Level{verdict.SER}, unique: true, longest: 9,
		assume: record.Assumptions{Initial: record.InitialAbsent, Coverage: record.CoverageComplete}}
	whole := tp.whole()
	for _, tc := range []struct {
		segment, overlap int
		withheld         int
	}{{math.MaxInt32, 1, 0}, {3, 2, 0}, {3, 1, 1}} {
		r := run{topic: tp, cfg: tp.config(), batch: 1}
		r.cfg.Segment, r.cfg.Overlap, r.cfg.Every = tc.segment, tc.overlap, 2
		o, err := r.play()
		if err != nil {
			t.Fatal(err)
		}
		n, partial := 0, true
		for _, x := range o.found {
			if x.withheld {
				n++
			}
		}
		for _, x := range o.stretches {
			partial = partial && x.Partial&stream.WhyForgotten != 0
		}
		if len(o.found) != 1 || n != tc.withheld || int(o.stats.Withheld) != n || partial != (n > 0) {
			t.Errorf("segments of %d and %d: %d withheld of %v, %d counted; stretches %+v", tc.segment, tc.overlap, n, o.ids(), o.stats.Withheld, o.stretches)
		}
		if w := sound(o, whole); w != nil {
			t.Errorf("segments of %d and %d: %s: %s", tc.segment, tc.overlap, w.class, w.says)
		}
	}
}
