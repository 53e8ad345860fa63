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

// blindWriters write one key, and somebody reads each version: each two of them are a pair that stays
// open.
func blindWriters(b *strings.Builder, n int) {
	for i := range n {
		fmt.Fprintf(b, "w%d W%d: w(hot,%d)\nw%d R%d: r(hot,%d)\n", i, i, i, i, i, i)
	}
}

// unsolvable are eight transactions that each of four choices of orders condemns, but no
// known edge (testdata/solver.txt).
const unsolvable = `s1 A: w(x,1) w(a,1)
s2 B: w(x,2) w(b,2)
s3 C: w(y,3) w(c,3)
s4 D: w(y,4) w(d,4)
s5 RA: r(x,1) r(c,3) r(d,4)
s6 RB: r(x,2) r(c,3) r(d,4)
s7 RC: r(y,3) r(a,1) r(b,2)
s8 RD: r(y,4) r(a,1) r(b,2)
`

func parsed(t *testing.T, text string) []record.Transaction {
	t.Helper()
	s, err := script.Parse("initial absent\n" + text)
	if err != nil {
		t.Fatal(err)
	}
	return s.Txns
}

// Where much is open and times don't help, a tick leaves it to a later one: until enough
// transactions have come, or seven ticks have gone without; or to Solve, after which
// nothing is left. So it is where there are no times, and where what is open has none.
func TestTicksAreSpaced(t *testing.T) {
	var timed strings.Builder
	for i := range 20 {
		fmt.Fprintf(&timed, "t%d T%d: w(t%d,1) @%d-%d\n", i, i, i, i, i+1)
	}
	for _, before := range []string{"", timed.String()} {
		ticksAreSpaced(t, before)
	}
}

func ticksAreSpaced(t *testing.T, before string) {
	var open, few, many strings.Builder
	blindWriters(&open, 60) // 1,770 pairs, worth 221 transactions
	for i := range 300 {
		b := &few
		if i >= 10 {
			b = &many
		}
		fmt.Fprintf(b, "n N%d: w(n%d,1)\n", i, i)
	}
	for _, level := range []verdict.Level{verdict.SI, verdict.SER} {
		for _, c := range []struct {
			name string
			// at is the tick at which it is told: the first that brings it, the second after
			// more have come, or one of those that follow; or none, and then it is Solve.
			more string
			at   int
			left bool
		}{{"few more", few.String(), 8, false}, {"many more", few.String() + many.String(), 2, false}, {"solve left", few.String(), 3, true}} {
			e := incremental.New(incremental.Options{Levels: []verdict.Level{level}, Assumptions: record.Assumptions{Initial: record.InitialAbsent}, Online: true, UniqueValues: true})
			step := func(text string) {
				for _, x := range parsed(t, text) {
					e.Step(&x, 0)
				}
			}
			if before != "" {
				step(before)
			}
			step(open.String())
			e.Tick(0)
			step("r N: r(hot,1)\n")
			if out := e.Tick(0); len(out.Violations) > 0 { // the pairs are solved for the second time
				t.Fatalf("%v: %+v", level, out)
			}
			step(unsolvable)
			for n := 1; n <= c.at; n++ {
				if n == 2 {
					step(c.more)
				}
				if n == c.at && c.left {
					if out := e.Solve(true); len(out.Violations) != 1 || out.Violations[0].Kind != verdict.Unsatisfiable {
						t.Fatalf("%s, %v: %+v is what was left", c.name, level, out)
					}
					break
				}
				if out := e.Tick(0); len(out.Violations) != 0 && n < c.at || n == c.at && (len(out.Violations) != 1 || out.Violations[0].Kind != verdict.Unsatisfiable) {
					t.Fatalf("%s, %v: tick %d told %+v, tick %d was to", c.name, level, n, out, c.at)
				}
			}
			conflicts := e.Results()[0].Stats.Conflicts
			if out := e.Solve(true); len(out.Violations) > 0 || e.Results()[0].Stats.Conflicts != conflicts {
				t.Errorf("%s, %v: something was left: %+v", c.name, level, out)
			}
			if r := e.Close(); r[0].Outcome != verdict.Violated || len(r[0].Violations) != 1 {
				t.Errorf("%s, %v: %+v", c.name, level, r[0])
			}
		}
	}
}

// Where little is open each tick solves it, and where times help: what is new is little then.
func TestLittleIsNotSpaced(t *testing.T) {
	var open strings.Builder
	blindWriters(&open, 45) // 990 pairs
	var timed strings.Builder
	for i := range 300 {
		fmt.Fprintf(&timed, "s%d T%d: w(hot,%d) @%d-%d\n", i%50, i, i, 10*i, 10*i+200)
	}
	late := strings.NewReplacer("\n", " @4000-4010\n").Replace(unsolvable)
	for _, c := range []struct{ name, first, then string }{{"little", open.String(), unsolvable}, {"timed", timed.String(), late}} {
		e := incremental.New(incremental.Options{Levels: []verdict.Level{verdict.SI}, Assumptions: record.Assumptions{Initial: record.InitialAbsent}, Online: true, UniqueValues: true})
		for _, x := range parsed(t, c.first) {
			e.Step(&x, 0)
		}
		e.Tick(0)
		// One more, so that it is the next tick that matters and not the first.
		for _, x := range parsed(t, strings.SplitAfter(c.then, "\n")[0]) {
			e.Step(&x, 0)
		}
		e.Tick(0)
		for _, x := range parsed(t, strings.Join(strings.SplitAfter(c.then, "\n")[1:], "")) {
			e.Step(&x, 0)
		}
		if out := e.Tick(0); len(out.Violations) != 1 {
			t.Errorf("%s: %+v", c.name, out)
		}
	}
}
