package incremental_test

import (
	"testing"

	"github.com/isowatch/isowatch/incremental"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/oracle"
	"github.com/isowatch/isowatch/internal/lab/oracle/script"
)

// T, of unknown outcome, is taken to have taken effect, and so to have followed A, as R can have read
// from nobody else: at ser, by what else was read; with times, also where only those say so. What then shows that others
// follow A breaks what that rests on, and nothing else.
func TestWhatADecisionMisled(t *testing.T) {
	for _, x := range []struct{ name, history string }{
		{"ser alone is broken by a list", `initial zero
a A: append(y,1)
z Z: r(y,[1])
t T unknown: r(y,[1]) append(y,2) w(x,7)
u U: w(u,1) w(x,7)
p P: r(u,0) w(p,1)
r R: r(p,0) r(x,7)
v V: append(y,3)
q Q: r(y,[1,3])
`},
		{"only times say that T took effect, and a list that it did not", `initial zero
a A: append(y,1)
z Z: r(y,[1])
t T unknown: r(y,[1]) append(y,2) w(x,7)
r R: r(x,7)
u U: w(x,7)
v V: append(y,3)
q Q: r(y,[1,3])
`},
		{"the same, and the list goes on and contradicts what was read", `initial zero
a A: append(y,1)
z Z: r(y,[1])
t T unknown: r(y,[1]) append(y,2) w(x,7)
r R: r(x,7)
u U: w(x,7)
v V: append(y,3)
q Q: r(y,[1,3])
b B: r(y,[1]) append(y,4)
d D: r(y,[1,3,4])
`},
		{"the same of a value: one after the other updates it, and the second has lost the first's", `initial zero
a A: w(y,1)
t T unknown: r(y,1) w(y,2) w(x,7)
r R: r(x,7)
u U: w(x,7)
f F: w(f,1)
v V: r(y,1) w(y,5)
q Q: r(y,1) w(y,6)
`},
		{"only one updates it", `initial zero
a A: w(y,1)
t T unknown: r(y,1) w(y,2) w(x,7)
r R: r(x,7)
u U: w(x,7)
f F: w(f,1)
v V: r(y,1) w(y,5)
q Q: r(y,5)
`},
	} {
		s, err := script.Parse(x.history)
		if err != nil {
			t.Fatal(err)
		}
		for i := range s.Txns {
			txn := &s.Txns[i]
			at := int64(100*i + 1000*max(0, i-4)) // later ones come when those before are decided
			txn.HasTimes, txn.Start, txn.End = true, at, at+5
			if txn.ID == "P" || txn.ID == "R" && i == 5 { // they overlap with U
				txn.Start = 300
			}
		}
		o := record.Assumptions{}.Override(s.Header)
		for _, clock := range []record.Clock{record.ClockPrune, record.ClockIgnore} {
			for _, levels := range [][]verdict.Level{{verdict.SI}, {verdict.SER}, {verdict.SI, verdict.SER}, {verdict.PC, verdict.SI, verdict.SER}} {
				e := incremental.New(incremental.Options{Assumptions: record.Assumptions{UnseenUnique: new(true), Initial: o.Initial, Clock: clock}, Levels: levels, Online: true, MaxTransaction: 150})
				var ticked []verdict.Violation
				for i := range s.Txns {
					e.Step(&s.Txns[i], s.Txns[i].End)
					ticked = append(ticked, e.Tick(s.Txns[i].End).Violations...)
					if i >= 4 {
						ticked = append(ticked, e.Tick(s.Txns[i].End+500).Violations...)
					}
				}
				for _, r := range e.Close() {
					if holds := oracle.Holds(r.Level, s.Txns, o); holds && r.Outcome != verdict.Satisfied || !holds && r.Outcome != verdict.Violated {
						t.Errorf("%s, clock %v, levels %v: %v is %v, by the definition it holds: %v", x.name, clock, levels, r.Level, r.Outcome, holds)
					}
				}
				for _, v := range ticked {
					if oracle.Holds(v.Level, s.Txns, o) {
						t.Errorf("%s, clock %v, levels %v: a tick tells %+v", x.name, clock, levels, v)
					}
				}
			}
		}
	}
}
