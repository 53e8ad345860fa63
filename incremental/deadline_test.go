package incremental_test

import (
	"math"
	"testing"

	"github.com/isowatch/isowatch/incremental"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/oracle/script"
)

// A read of what nobody has written yet waits as long as its writer may take,
// wherever the times lie: not less where that is beyond the last nanosecond, and
// not more because a record without times came before it.
func TestDeadlines(t *testing.T) {
	const never = math.MaxInt64
	for _, c := range []struct {
		name, text string
		arrival    []int64
		max, skew  int64
		tick       int64
		told       int  // by the tick, after all records but the last
		holds      bool // at the end
	}{
		{name: "in time", text: "s1 T1: r(x,1) @10-20\ns2 T2: w(x,1) @15-29", max: 10, tick: 30, holds: true},
		{name: "at the bound", text: "s1 T1: r(x,1) @10-20\ns2 T2: w(y,1) @15-29", max: 10, tick: 30},
		{name: "past the bound", text: "s1 T1: r(x,1) @10-20\ns2 T2: w(y,1) @32-33", max: 10, tick: 31, told: 1},
		{name: "past the bound and the skew", text: "s1 T1: r(x,1) @10-20\ns2 T2: w(y,1) @32-33", max: 10, skew: 5, tick: 36, told: 1},
		{name: "not past the skew", text: "s1 T1: r(x,1) @10-20\ns2 T2: w(x,1) @22-34", max: 10, skew: 5, tick: 33, holds: true},
		{name: "of who is seen late to have taken effect", text: "s1 T1 unknown: r(y,1) w(x,1) @10-20\ns3 T3: r(v,1) @40-50\ns2 T2: r(x,1) @45-51\ns4 T4: w(z,1) @70-80",
			max: 10, tick: 55, told: 1},
		{name: "without times, as of when it came", text: "s1 T1: r(x,1)\ns2 T2: r(y,1) @90-100\ns3 T3: w(z,1) @120-130",
			arrival: []int64{95, 0, 0}, max: 10, tick: 111, told: 2},
		{name: "without times, first in its session, then with", text: "s1 T1: r(x,1)\ns1 T2: r(y,1) @90-100\ns3 T3: w(z,1) @120-130",
			arrival: []int64{99, 0, 0}, max: 10, tick: 111, told: 2},
		{name: "beyond the end of time, without times", text: "s1 T1: r(x,1)\ns2 T2: w(x,1)", arrival: []int64{never - 5, never}, max: 10, tick: 100, holds: true},
		{name: "beyond the end of time", text: "s1 T1: r(x,1) @9223372036854775800-9223372036854775806\ns2 T2: w(x,1) @9223372036854775801-9223372036854775807",
			max: 10, tick: never, holds: true},
		{name: "the skew leads beyond it", text: "s1 T1: r(x,1) @9223372036854775780-9223372036854775790\ns2 T2: w(x,1) @9223372036854775781-9223372036854775807",
			max: 10, skew: 10, tick: never, holds: true},
		{name: "no bound to speak of", text: "s1 T1: r(x,1) @10-20\ns2 T2: w(x,1) @15-29", max: never, tick: 29, holds: true},
		{name: "nor to the skew", text: "s1 T1: r(x,1) @10-20\ns2 T2: w(x,1) @15-29", max: never, skew: never, tick: 29, holds: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := script.Parse("initial zero\n" + c.text)
			if err != nil {
				t.Fatal(err)
			}
			e := incremental.New(incremental.Options{Levels: []verdict.Level{verdict.SER}, Assumptions: record.Assumptions{Initial: record.InitialZero, MaxSkew: c.skew}, Online: true,
				UniqueValues: true, MaxTransaction: c.max})
			last := len(s.Txns) - 1
			for i := range s.Txns {
				if i == last {
					if got := e.Tick(c.tick).Violations; len(got) != c.told {
						t.Errorf("a tick at %d tells %d violations, want %d: %+v", c.tick, len(got), c.told, got)
					}
				}
				var at int64
				if c.arrival != nil {
					at = c.arrival[i]
				}
				e.Step(&s.Txns[i], at)
			}
			if r := e.Close()[0]; (r.Outcome == verdict.Satisfied) != c.holds {
				t.Errorf("%v at the end: %+v", r.Outcome, r.Violations)
			}
		})
	}
}
