package incremental_test

import (
	"fmt"
	"testing"

	"github.com/isowatch/isowatch/incremental"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/oracle"
	"github.com/isowatch/isowatch/internal/lab/oracle/script"
)

// A regression is a history that the engine once judged wrongly.
type regression struct {
	name, text string
	online     bool
	arrival    []int64
}

var regressions = []regression{
	// The arrival of a record without times may be later than the ends of its
	// session's next ones.
	{name: "batch: a record without times arrives late", arrival: []int64{1000, 0, 0}, text: `initial zero
s1 T1: w(x,1)
s1 T2: r(x,1) w(x,2) @10-20
s2 T3: r(x,2) @15-25
`},
	{name: "batch: the same, violated", arrival: []int64{1000, 0, 0}, text: `initial zero
s1 T1: r(x,2)
s1 T2: w(x,2) @10-20
s2 T3: r(y,0) @15-25
`},
	{name: "own later intermediate write hides another's", text: `initial any
s1 T1: r(x,1) w(x,1) w(x,2)
s2 T2: w(x,1) w(x,3)
`},
	{name: "two unknown writers of a value", text: `initial zero
s1 U1 unknown: w(x,5)
s2 U2 unknown: w(x,5)
s3 T1: r(x,5) w(x,6)
s4 T2: r(x,5) w(x,7)
`},
	{name: "unknown writer of the initial value", text: `initial zero
s1 U1 unknown: w(x,0)
s3 T1: r(x,0) w(x,6)
s4 T2: r(x,0) w(x,7)
`},
	{name: "unknown writer, partial", text: `initial zero
coverage partial
s1 U1 unknown: w(x,5)
s3 T1: r(x,5) w(x,6)
s4 T2: r(x,5) w(x,7)
`},
	{name: "online: duplicate comes later", online: true, text: `initial zero
s1 T1: w(x,5)
s3 T3: r(x,5) w(x,6)
s4 T4: r(x,5) w(x,7)
s2 T2: w(x,5)
`},
	{name: "online: duplicate of the initial value comes later", online: true, text: `initial zero
s1 T1: r(x,0) w(x,1)
s3 T3: r(x,0) w(x,2)
s2 T2: w(x,0)
`},
	{name: "online: unknown writer comes later", online: true, text: `initial zero
s1 T1: w(x,5)
s3 T3: r(x,5) w(x,6)
s4 T4: r(x,5) w(x,7)
s2 U unknown: w(x,5)
`},
	{name: "an element that is null is not what a list holds at first", text: `initial zero
s1 T1: r(x,null)
s3 T2 unknown: append(x,null) r(x,[null,3])
`},
	{name: "online: first committed record has no times", online: true, text: `initial zero
s3 T3: r(z,0) w(x,3)
s1 T2: r(y,0) w(y,2) r(x,0) r(z,0) @0-15
s2 T4: r(z,0)
s3 T5: r(z,0) r(y,0) r(x,3) @17-36
`},
}

func TestRegressions(t *testing.T) {
	for _, b := range regressions {
		t.Run(b.name, func(t *testing.T) {
			s, err := script.Parse(b.text)
			if err != nil {
				t.Fatal(err)
			}
			def := record.Assumptions{}.Override(s.Header)
			opt := incremental.Options{Levels: strong, Assumptions: record.Assumptions{Initial: def.Initial, Coverage: def.Coverage}, Online: b.online}
			want := oracle.Check(s.Txns, def)
			e := incremental.New(opt)
			for i := range s.Txns {
				at := int64(i)
				if b.arrival != nil {
					at = b.arrival[i]
				}
				e.Step(&s.Txns[i], at)
			}
			for _, r := range e.Close() {
				if r.Outcome == verdict.Satisfied && !want[r.Level] && def.Coverage == record.CoverageComplete || r.Outcome == verdict.Violated && want[r.Level] {
					t.Errorf("%v: engine says %v (%d), the definition %v: %+v", r.Level, r.Outcome, r.Count, want[r.Level], r.Violations)
				}
			}
		})
	}
}

// What is violated has no note of what it would satisfy.
func TestNoteOnlyOnSatisfied(t *testing.T) {
	s, _ := script.Parse(`initial zero
s3 T1: r(z,0) r(y,0) r(x,0) @1-20
s2 T2: r(y,0) w(x,3) w(y,4) r(x,3) @2-20
s1 T3: w(y,1) w(z,2) r(y,1) r(y,4) @6-23
s2 T5: r(z,0) r(y,4) r(x,3) @21-32
s3 T4: w(z,5) r(z,5) r(y,0) @21-41
`)
	e := incremental.New(incremental.Options{Levels: strong, Assumptions: record.Assumptions{Initial: record.InitialZero}, Online: true, UniqueValues: true})
	for i := range s.Txns {
		e.Step(&s.Txns[i], 0)
		e.Tick(s.Txns[i].End)
	}
	for _, r := range e.Close() {
		if r.RealTimeOnly && r.Outcome != verdict.Satisfied {
			t.Errorf("%v: %v and RealTimeOnly", r.Level, r.Outcome)
		}
	}
}

// Online, values not unique, no times, Close before any Tick: a read whose
// writer is admitted after it was never decided.
func TestCloseBeforeTick(t *testing.T) {
	for _, text := range []string{
		"initial any\ns1 T1: r(x,4) w(x,1)\ns1 T2: w(x,4)\n",
		"initial zero\ns1 T1: r(x,4)\ns1 T2: w(x,4)\n",
	} {
		s, err := script.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		e := incremental.New(incremental.Options{Levels: strong, Assumptions: record.Assumptions{Initial: *s.Header.Initial}, Online: true})
		for i := range s.Txns {
			e.Step(&s.Txns[i], int64(i))
		}
		for _, r := range e.Close() {
			if r.Outcome != verdict.Violated {
				t.Errorf("%v: %v of\n%s", r.Level, r.Outcome, text)
			}
		}
	}
}

// With partial coverage and values that are not unique, an unseen writer is a
// candidate for every read: a lost update is none.
func TestUnseenWriters(t *testing.T) {
	s, err := script.Parse("initial zero\ncoverage partial\ns1 T1: w(x,1)\ns2 T2: r(x,1) w(x,2)\ns3 T3: r(x,1) w(x,3)\n")
	if err != nil {
		t.Fatal(err)
	}
	for unique, want := range map[bool]verdict.Outcome{true: verdict.Violated, false: verdict.Unknown} {
		for _, online := range []bool{false, true} {
			e := incremental.New(incremental.Options{Levels: strong, Assumptions: record.Assumptions{Initial: record.InitialZero, Coverage: record.CoveragePartial, UnseenUnique: new(unique)},
				Online: online, UniqueValues: unique})
			for i := range s.Txns {
				e.Step(&s.Txns[i], int64(i))
			}
			for _, r := range e.Close() {
				if r.Outcome != want {
					t.Errorf("%v, unique %v, online %v: %v, want %v", r.Level, unique, online, r.Outcome, want)
				}
			}
		}
	}
}

// A tick before the first record with times leaves real time to those that come.
func TestTimesAfterTheFirstTick(t *testing.T) {
	s, err := script.Parse("initial zero\ns1 T1: r(z,0)\ns2 T2: w(x,1) @10-20\ns3 T3: r(x,0) @30-40\n")
	if err != nil {
		t.Fatal(err)
	}
	e := incremental.New(incremental.Options{Levels: []verdict.Level{verdict.SER, verdict.SSER}, Assumptions: record.Assumptions{Initial: record.InitialZero}, Online: true, UniqueValues: true})
	for i := range s.Txns {
		e.Step(&s.Txns[i], 0)
		e.Tick(s.Txns[i].End)
	}
	results := e.Close()
	for i, want := range []verdict.Outcome{verdict.Satisfied, verdict.Violated} {
		if r := results[i]; r.Outcome != want || r.NoTimes {
			t.Errorf("%v: %v, no times %v; want %v", r.Level, r.Outcome, r.NoTimes, want)
		}
	}
}

// lin is not about transactions of several keys, so nothing is said of it online
// either, whatever else is broken.
func TestNoLinOfSeveralKeys(t *testing.T) {
	s, err := script.Parse(`initial absent
s1 T1: w(x,3) r(y,null)
s2 T2: w(y,2) r(x,null)
s3 T3: r(x,3) w(x,4)
s4 T4: r(x,3) w(x,5)
`)
	if err != nil {
		t.Fatal(err)
	}
	e := incremental.New(incremental.Options{Levels: []verdict.Level{verdict.RC, verdict.LIN}, Assumptions: record.Assumptions{Initial: record.InitialAbsent, UnseenUnique: new(true)},
		Online: true, UniqueValues: true})
	for i := range s.Txns {
		e.Step(&s.Txns[i], int64(i))
	}
	if vs := e.Tick(100).Violations; len(vs) > 0 {
		t.Errorf("told %+v", vs)
	}
	for _, r := range e.Close() {
		if want := map[verdict.Level]verdict.Outcome{verdict.RC: verdict.Satisfied, verdict.LIN: verdict.NotApplicable}[r.Level]; r.Outcome != want {
			t.Errorf("%v: %v, want %v", r.Level, r.Outcome, want)
		}
	}
}

// Where times are few, what has them goes in with all else at once, and a read with several possible writers is
// known before these are ordered: each of the two was overwritten, by the clock, or follows the other read.
func TestChoicesKnowOfAllWriters(t *testing.T) {
	s, err := script.Parse(`initial absent
s1 W1: w(x,1) @0-10
s2 V1: w(y,1) @0-10
s3 W2: w(x,2) @20-30
s4 V2: w(y,2) @20-30
s5 R1: r(x,1) @40-50
s5 V3: w(y,1)
s6 R2: r(y,1) @40-50
s6 W3: w(x,1)
`)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 250 {
		s.Txns = append(s.Txns, record.Transaction{Session: "others", Seq: int64(i), HasSeq: true,
			Ops: []record.Op{{Kind: record.Write, Key: fmt.Sprint("other ", i), Value: record.Int(1)}}})
	}
	e := incremental.New(incremental.Options{Levels: []verdict.Level{verdict.SER, verdict.SSER}, Assumptions: record.Assumptions{Initial: record.InitialAbsent}})
	for i := range s.Txns {
		e.Step(&s.Txns[i], 0)
	}
	results := e.Close()
	for i, want := range []verdict.Outcome{verdict.Satisfied, verdict.Violated} {
		if r := results[i]; r.Outcome != want {
			t.Errorf("%v: %v, want %v", r.Level, r.Outcome, want)
		}
	}
}

// Who read a list with an element of a transaction that can't have taken effect did not take effect either: here
// one appends what it read before, and so nobody wrote what the last one read.
func TestReadersOfTheImpossible(t *testing.T) {
	s, err := script.Parse(`initial any
s2 T2 unknown: r(x,[1]) append(x,1) w(y,2)
s3 T3 unknown: r(x,[1]) w(y,2)
s2 T4: r(y,2)
`)
	if err != nil {
		t.Fatal(err)
	}
	for _, online := range []bool{false, true} {
		for _, l := range verdict.Levels() {
			e := incremental.New(incremental.Options{Levels: []verdict.Level{l}, Online: online})
			for i := range s.Txns {
				e.Step(&s.Txns[i], int64(i))
			}
			if r := e.Close()[0]; r.Outcome != verdict.Violated && l != verdict.LIN {
				t.Errorf("%v, online %v: %v (%v, %d)", l, online, r.Outcome, r.Reason, r.Count)
			}
		}
	}
}

// Stop may say so while a closure is made, whose questions have no answers then: a read that has no writer any more is
// told all the same, with all records for evidence.
func TestStopBesideAReadWithoutWriter(t *testing.T) {
	s, err := script.Parse(`initial absent
s2 T1: r(x,null) w(x,0) w(x,2)
s2 T3 unknown: r(x,null) r(x,2) w(x,null) r(y,null) w(y,1)
s2 T5: r(y,1) w(y,2) r(y,1) w(y,1) r(x,null)
`)
	if err != nil {
		t.Fatal(err)
	}
	told := map[verdict.Outcome]int{}
	for at, stopped := 1, true; stopped; at++ {
		asked := 0
		opt := incremental.Options{Levels: []verdict.Level{verdict.SI, verdict.SER}, Stop: func() verdict.Reason {
			if asked++; asked < at {
				return verdict.NoReason
			}
			return verdict.Timeout
		}}
		opt.Initial = *s.Header.Initial
		results, _ := run(s, opt)
		stopped = asked >= at
		for _, r := range results {
			told[r.Outcome]++
		}
	}
	if told[verdict.Violated] == 0 || told[verdict.Satisfied] > 0 {
		t.Errorf("%v", told)
	}
}
