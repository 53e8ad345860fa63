package incremental_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/isowatch/isowatch/incremental"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/oracle/script"
)

// One transaction sees half of what each of 150 others wrote: as many anomalies, of which
// none may be lost because they come at once.
func TestManyAtOnce(t *testing.T) {
	const writers = 300
	var b, reads strings.Builder
	b.WriteString("initial zero\n")
	for i := range writers {
		fmt.Fprintf(&b, "s%d T%d: w(x%d,1) w(y%d,1) @%d-%d\n", i, i+1, i, i, 10*i, 10*i+5)
		fmt.Fprintf(&reads, " r(x%d,1) r(y%d,0)", i, i)
	}
	fmt.Fprintf(&b, "r T%d:%s @%d-%d\n", writers+1, reads.String(), 10*writers, 10*writers+5)
	s, err := script.Parse(b.String())
	if err != nil {
		t.Fatal(err)
	}
	for i, level := range []verdict.Level{verdict.SI, verdict.SER, verdict.StrongSI, verdict.SSER, verdict.SI, verdict.SER} {
		e := incremental.New(incremental.Options{Levels: []verdict.Level{level}, Assumptions: record.Assumptions{Initial: record.InitialZero}, Online: true, UniqueValues: true})
		for n := range s.Txns {
			if i >= 4 { // without times all are taken at the first tick
				s.Txns[n].HasTimes = false
			}
			e.Step(&s.Txns[n], int64(n))
		}
		told := map[verdict.TxnID]bool{}
		e.Tick(10*writers + 100)
		r := e.Close()[0]
		for _, v := range r.Violations {
			for _, id := range v.Txns {
				told[id] = true
			}
		}
		if len(told) != writers+1 {
			t.Errorf("%v: %d violations are about %d transactions of %d", level, len(r.Violations), len(told), writers+1)
		}
	}
}

// A clock that stepped for a moment, seen by a busy key: the level holds, in no order that
// agrees with the times, and what only the times say is not searched through first.
func TestSteppedClock(t *testing.T) {
	const writers = 300
	var b strings.Builder
	b.WriteString("initial zero\n")
	for i := range writers {
		fmt.Fprintf(&b, "s%d T%d: w(x,%d) @%d-%d\n", i, i+1, i+1, 10*i, 10*i+5)
	}
	fmt.Fprintf(&b, "r T%d: r(x,1) @%d-%d\n", writers+1, 10*writers, 10*writers+5) // it began long before
	s, err := script.Parse(b.String())
	if err != nil {
		t.Fatal(err)
	}
	for _, level := range []verdict.Level{verdict.SI, verdict.SER} {
		e := incremental.New(incremental.Options{Levels: []verdict.Level{level}, Assumptions: record.Assumptions{Initial: record.InitialZero}, Online: true, UniqueValues: true})
		for i := range s.Txns {
			e.Step(&s.Txns[i], 0)
		}
		if got := e.Tick(10*writers + 100); len(got.Violations) > 0 {
			t.Errorf("%v: %d violations", level, len(got.Violations))
		}
		if r := e.Close()[0]; r.Outcome != verdict.Satisfied || !r.RealTimeOnly {
			t.Errorf("%v: %v, only real time broken: %v", level, r.Outcome, r.RealTimeOnly)
		}
	}
}

// What a list shows that was read again is told once nobody can come any more of whom it may be.
func TestListReadAgain(t *testing.T) {
	s, err := script.Parse("a A: append(x,1) append(x,2) @0-1\nc C: r(x,[]) r(x,[1]) @2-3\n")
	if err != nil {
		t.Fatal(err)
	}
	e := incremental.New(incremental.Options{Levels: []verdict.Level{verdict.RC}, Assumptions: record.Assumptions{Initial: record.InitialAbsent, Coverage: record.CoverageComplete}, Online: true, MaxTransaction: 100})
	for i := range s.Txns {
		e.Step(&s.Txns[i], 0)
	}
	for _, watermark := range []int64{4, 103, 104, 1000} {
		vs := e.Tick(watermark).Violations
		if told := len(vs) == 1 && vs[0].Kind == verdict.IntermediateRead; told != (watermark == 104) {
			t.Errorf("nobody comes who ended before %d: %+v", watermark, vs)
		}
	}
}

// What only the end of the input decides is open as long as a writer may come, and open for good after that.
func TestOpenForGood(t *testing.T) {
	for title, tc := range map[string]struct {
		text  string
		level verdict.Level
	}{
		"one of several writers": {"initial zero\na A: w(x,5) w(y,5) @0-0\na D: w(x,1) w(y,1) @1-1\nb B: w(x,1) w(y,2) @1-2\nc C: r(x,1) r(y,5) @2-3\n", verdict.RA},
		"null or the empty list": {"initial zero\nc C: r(x,null) @2-3\n", verdict.SI},
	} {
		s, err := script.Parse(tc.text)
		if err != nil {
			t.Fatal(err)
		}
		e := incremental.New(incremental.Options{Levels: []verdict.Level{tc.level}, Assumptions: record.Assumptions{Initial: *s.Header.Initial, Coverage: record.CoverageComplete},
			Online: true, MaxTransaction: 100})
		for i := range s.Txns {
			e.Step(&s.Txns[i], 0)
		}
		for _, watermark := range []int64{4, 103, 104, 1000} {
			e.Tick(watermark)
			if r := e.Results()[0]; r.OpenForGood() != (watermark > 103) {
				t.Errorf("%s, nobody comes who ended before %d: %+v", title, watermark, r)
			}
		}
	}
}
