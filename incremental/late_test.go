package incremental_test

import (
	"testing"
	"time"

	"github.com/isowatch/isowatch/incremental"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/codec"
	"github.com/isowatch/isowatch/ingest/record"
)

// online feeds records to an engine, each followed by a Tick at its end, and returns
// what was told before the input ended, and the verdict.
func online(t *testing.T, opt incremental.Options, lines ...string) ([]verdict.Violation, verdict.Outcome) {
	t.Helper()
	opt.Online, opt.MaxTransaction = true, int64(time.Minute)
	e := incremental.New(opt)
	var told []verdict.Violation
	for _, line := range lines {
		var x record.Transaction
		if err := codec.Decode([]byte(line), &x); err != nil {
			t.Fatal(err)
		}
		e.Step(&x, x.End)
		told = append(told, e.Tick(x.End).Violations...)
	}
	return told, e.Close()[0].Outcome
}

// A client that tries again after an abort may write the same value, and its record
// may come after that of who read it: an aborted read is none before no other
// attempt can come, unless attempts are said to write values of their own.
func TestAbortedReadAndSecondAttempt(t *testing.T) {
	aborted := `{"session":"a","seq":1,"status":"aborted","start":100,"end":200,"ops":[["w","x",5]]}`
	reads := `{"session":"b","seq":1,"status":"committed","start":350,"end":400,"ops":[["r","x",5]]}`
	again := `{"session":"a","seq":2,"status":"committed","start":300,"end":500,"ops":[["w","x",5]]}`
	opt := incremental.Options{Levels: []verdict.Level{verdict.SER}, Assumptions: record.Assumptions{Coverage: record.CoveragePartial, UnseenUnique: new(true)}, UniqueValues: true}
	if told, outcome := online(t, opt, aborted, reads, again); len(told) > 0 || outcome != verdict.Satisfied {
		t.Errorf("a second attempt: told %+v, %v", told, outcome)
	}
	if told, outcome := online(t, opt, aborted, reads); len(told) > 0 || outcome != verdict.Violated {
		t.Errorf("no second attempt: told %+v before the end, %v at it", told, outcome)
	}
	opt.UniqueAttempts = true
	for _, lines := range [][]string{{aborted, reads}, {`{"session":"b","seq":1,"status":"committed","start":100,"end":150,"ops":[["r","x",5]]}`, aborted}} {
		if told, _ := online(t, opt, lines...); len(told) != 1 || told[0].Kind != verdict.AbortedRead {
			t.Errorf("attempts are unique: told %+v", told)
		}
	}
}

// A read of a value that its own transaction overwrote is told at once, whichever
// comes first.
func TestIntermediateReadAtOnce(t *testing.T) {
	writes := `{"session":"a","seq":1,"status":"committed","start":100,"end":200,"ops":[["w","x",5],["w","x",6]]}`
	opt := incremental.Options{Levels: []verdict.Level{verdict.SER}, Assumptions: record.Assumptions{Coverage: record.CoveragePartial, UnseenUnique: new(true)}, UniqueValues: true}
	for _, lines := range [][]string{
		{writes, `{"session":"b","seq":1,"status":"committed","start":250,"end":300,"ops":[["r","x",5]]}`},
		{`{"session":"b","seq":1,"status":"committed","start":120,"end":150,"ops":[["r","x",5]]}`, writes},
	} {
		if told, _ := online(t, opt, lines...); len(told) != 1 || told[0].Kind != verdict.IntermediateRead {
			t.Errorf("told %+v", told)
		}
	}
}

// Whose append a list showed before its record came counts as unseen: its version
// would be taken for one that the list did not show.
func TestAppenderComesAfterItsListWasDecided(t *testing.T) {
	for _, level := range []verdict.Level{verdict.RC, verdict.RA, verdict.CC, verdict.PC, verdict.SI, verdict.SER} {
		opt := incremental.Options{Levels: []verdict.Level{level}, Assumptions: record.Assumptions{Coverage: record.CoveragePartial, UnseenUnique: new(true)}, UniqueValues: true}
		told, outcome := online(t, opt,
			`{"session":"s2","seq":1,"status":"committed","start":1000000000,"end":1010000000,"ops":[["append","x",2],["r","x",[1,2]]]}`,
			`{"session":"s3","seq":1,"status":"committed","start":101000000000,"end":101010000000,"ops":[["r","x",[1,2]]]}`,
			`{"session":"s1","seq":1,"status":"committed","start":201000000000,"end":201010000000,"ops":[["w","y",1]]}`,
			`{"session":"s0","seq":1,"status":"committed","ops":[["append","x",1]]}`,
			`{"session":"s4","seq":1,"status":"committed","start":202000000000,"end":202010000000,"ops":[["r","x",[1,2]]]}`)
		if len(told) > 0 || outcome == verdict.Violated {
			t.Errorf("%v: %v, told %+v", level, outcome, told)
		}
	}
}
