package streamtest

import (
	"slices"
	"strings"
	"testing"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/oracle/script"
)

// T1 reads y twice, and only by the second read is it known that T2, whose outcome is not,
// took effect. The cycle of T2 and T3 needs that, and nothing of what T1 read at first: its
// evidence has the second read and not the first.
func TestSecondReadThatVouches(t *testing.T) {
	s, err := script.Parse(`
initial any
s2 T2 unknown: append(y,3) append(x,4) @3-11
s1 T1: r(y,null) r(y,[3]) @2-12
s3 T3: append(y,1) r(x,null) append(x,5) @0-13
`)
	if err != nil {
		t.Fatal(err)
	}
	log := make([]sent, len(s.Txns))
	for i, x := range s.Txns {
		log[i] = sent{x, x.End + 1}
	}
	for _, levels := range [][]verdict.Level{{verdict.StrongSI, verdict.G1}, {verdict.SER, verdict.G1}, {verdict.SSER, verdict.RC}} {
		tp := &topic{logs: [][]sent{log}, levels: levels, unique: true, longest: 15,
			assume: record.Assumptions{Coverage: record.CoverageComplete, MaxSkew: 4}}
		r := run{topic: tp, cfg: tp.config(), batch: 1}
		o, err := r.play()
		if err != nil {
			t.Fatal(err)
		}
		if w := sound(o, tp.whole()); w != nil {
			t.Errorf("%v: %s: %s", levels, w.class, w.says)
		}
		told := 0
		for _, x := range o.found {
			who := slices.Sorted(slices.Values(x.alert.Transactions))
			if !slices.Equal(who, []string{"T2", "T3"}) {
				continue
			}
			told++
			for _, line := range x.alert.Evidence {
				if strings.Contains(string(line), `"id":"T1"`) && !strings.Contains(string(line), `"ops":[["r","y",[3]]]`) {
					t.Errorf("%v: evidence has of T1 something else than that it read T2's list: %s", levels, line)
				}
			}
		}
		if told == 0 {
			t.Errorf("%v: the cycle of T2 and T3 is not told: %v", levels, o.ids())
		}
	}
}
