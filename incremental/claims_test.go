package incremental_test

import (
	"testing"

	"github.com/isowatch/isowatch/incremental"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/oracle/script"
)

// That a key holds nothing and that it holds an empty list is the same of a list, and of a key that nobody
// changes. So who reads the one, of unknown outcome, and turns out to have taken effect, is not
// accused where somebody else read the other, whatever comes of the key later: whether that is known
// before, or the other read comes while the first one may not have taken effect.
func TestNothingIsAnEmptyList(t *testing.T) {
	for _, before := range []string{"", "s0 T0: w(x,1)\n"} { // then x = 1 says nothing of T1
		for _, later := range []string{"", "s5 T5: append(y,1)\n"} {
			for _, values := range [][2]string{{"[]", "null"}, {"null", "[]"}} {
				for _, level := range []verdict.Level{verdict.RC, verdict.SER} {
					text := before + "s1 T1 unknown: r(y," + values[0] + ") w(x,1) w(z,1)\ns2 T2: r(x,1)\ns3 T3: r(y," + values[1] + ")\ns4 T4: r(z,1)\n" + later
					s, err := script.Parse(text)
					if err != nil {
						t.Fatal(err)
					}
					e := incremental.New(incremental.Options{Online: true, UniqueValues: before == "", Assumptions: record.Assumptions{UnseenUnique: new(true), Initial: record.InitialAny, Coverage: record.CoverageComplete}, Levels: []verdict.Level{level}, MaxTransaction: 100})
					for i := range s.Txns {
						e.Step(&s.Txns[i], int64(1000*i))
						if out := e.Tick(int64(1000*i + 500)); len(out.Violations) > 0 {
							t.Errorf("%v of\n%s%+v", level, text, out.Violations)
						}
					}
					if r := e.Close()[0]; r.Outcome != verdict.Satisfied {
						t.Errorf("%v of\n%sis %v %v: %+v", level, text, r.Outcome, r.Reason, r.Violations)
					}
				}
			}
		}
	}
}
