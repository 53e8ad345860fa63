package incremental_test

import (
	"testing"

	"github.com/isowatch/isowatch/incremental"
	"github.com/isowatch/isowatch/incremental/oracle/script"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
)

// That a key holds nothing and that it holds an empty list is the same of a list, and of a key that nobody
// changes. So who reads the one, of unknown outcome, and turns out to have taken effect, is not
// accused where somebody else read the other, whatever comes of the key later.
func TestNothingIsAnEmptyList(t *testing.T) {
	for _, later := range []string{"", "s4 T4: append(y,1)\n"} {
		for _, values := range [][2]string{{"[]", "null"}, {"null", "[]"}} {
			s, err := script.Parse("s1 T1 unknown: r(y," + values[0] + ") w(x,1)\ns2 T2: r(y," + values[1] + ")\ns3 T3: r(x,1)\n" + later)
			if err != nil {
				t.Fatal(err)
			}
			e := incremental.New(incremental.Options{Online: true, UniqueValues: true, UnseenUnique: true, Levels: []verdict.Level{verdict.SER}, Initial: record.InitialAny,
				Coverage: record.CoverageComplete, MaxTransaction: 100})
			for i := range s.Txns {
				e.Step(&s.Txns[i], int64(1000*i))
				if out := e.Tick(int64(1000*i + 500)); len(out.Violations) > 0 {
					t.Errorf("T1 read %s, T2 %s: %+v", values[0], values[1], out.Violations)
				}
			}
			if r := e.Close()[0]; r.Outcome == verdict.Violated {
				t.Errorf("T1 read %s, T2 %s, then %q: %+v", values[0], values[1], later, r.Violations)
			}
		}
	}
}
