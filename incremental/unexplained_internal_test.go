package incremental

import (
	"fmt"
	"testing"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
)

// TestCyclesAreLookedForWithinSteps: once as many edges were looked at as may be, further cycles are counted and not
// looked for. The level stays violated by those before them, and something is said to be open.
func TestCyclesAreLookedForWithinSteps(t *testing.T) {
	const cycles = 50
	for _, most := range []int{1, 0} {
		e := New(Options{Online: true, Levels: []verdict.Level{verdict.SER, verdict.SI, verdict.RC}, Assumptions: record.Assumptions{Initial: record.InitialAbsent, Coverage: record.CoverageComplete, Clock: record.ClockIgnore, UnseenUnique: new(true)}, UniqueValues: true, UniqueAttempts: true, Conflicts: 1000})
		e.Step(&record.Transaction{ID: "first", Session: "first", Ops: []record.Op{{Kind: record.Write, Key: "z", Value: record.Int(1)}}}, 0)
		e.Tick(0)
		e.g.checks[0].poly.LookMax = most
		found := 0
		for i := range cycles {
			x, y := fmt.Sprint("x", i), fmt.Sprint("y", i)
			for j, ops := range [][]record.Op{
				{{Kind: record.Write, Key: x, Value: record.Int(1)}, {Kind: record.Write, Key: y, Value: record.Int(2)}},
				{{Kind: record.Read, Key: x, Value: record.Int(1)}, {Kind: record.Read, Key: y, Value: record.Int(2)}, {Kind: record.Write, Key: x, Value: record.Int(3)}},
				{{Kind: record.Read, Key: x, Value: record.Int(1)}, {Kind: record.Read, Key: y, Value: record.Int(2)}, {Kind: record.Write, Key: y, Value: record.Int(4)}},
			} {
				id := fmt.Sprintf("t%d-%d", i, j)
				e.Step(&record.Transaction{ID: id, Session: id, Ops: ops}, 0)
			}
		}
		found += len(e.Tick(1 << 40).Violations)
		for _, r := range e.Results()[1:] { // a write skew breaks neither
			if r.Outcome != verdict.Satisfied {
				t.Errorf("LookMax %d: %v: %v (%v)", most, r.Level, r.Outcome, r.Reason)
			}
		}
		r := e.Results()[0]
		want, reason := cycles, verdict.NoReason
		if most > 0 {
			want, reason = 1, verdict.NotChecked
		}
		if found != want || r.Unexplained != cycles-want || r.Outcome != verdict.Violated || r.Reason != reason {
			t.Errorf("LookMax %d: %d found, %d counted, %v (%v); want %d, %d, violated (%v)", most, found, r.Unexplained, r.Outcome, r.Reason, want, cycles-want, reason)
		}
	}
}

// TestJudgingIsBounded: what judges again what violations were found from draws from the same steps as looking for cycles.
// Where reads have several possible writers all is found at once, when none can come any more.
func TestJudgingIsBounded(t *testing.T) {
	const cycles = 50
	e := New(Options{Online: true, Levels: []verdict.Level{verdict.SER}, Assumptions: record.Assumptions{Initial: record.InitialAbsent, Coverage: record.CoverageComplete, Clock: record.ClockIgnore}})
	for i := range cycles {
		x, y := fmt.Sprint("x", i), fmt.Sprint("y", i)
		for j, ops := range [][]record.Op{
			{{Kind: record.Write, Key: x, Value: record.Int(1)}, {Kind: record.Write, Key: y, Value: record.Int(1)}},
			{{Kind: record.Read, Key: x, Value: record.Int(1)}, {Kind: record.Read, Key: y, Value: record.Int(1)}, {Kind: record.Write, Key: x, Value: record.Int(3)}},
			{{Kind: record.Read, Key: x, Value: record.Int(1)}, {Kind: record.Read, Key: y, Value: record.Int(1)}, {Kind: record.Write, Key: y, Value: record.Int(4)}},
			{{Kind: record.Read, Key: x, Value: record.Int(3)}, {Kind: record.Read, Key: y, Value: record.Int(4)}, {Kind: record.Write, Key: x, Value: record.Int(1)}},
		} {
			id := fmt.Sprintf("t%d-%d", i, j)
			e.Step(&record.Transaction{ID: id, Session: id, Ops: ops}, 0)
		}
	}
	e.Tick(0)
	e.g.checks[0].poly.LookMax = 2500
	r := e.Close()[0]
	if n := len(r.Violations); n == 0 || n > cycles/2 || n+r.Unexplained != cycles || r.Outcome != verdict.Violated || r.Reason != verdict.NotChecked {
		t.Errorf("%d explained, %d counted of %d; %v (%v)", n, r.Unexplained, cycles, r.Outcome, r.Reason)
	}
}
