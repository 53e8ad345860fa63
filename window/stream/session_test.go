package stream

import (
	"math"
	"testing"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
)

// A read that waits on without its session is shown in its place there, whatever names have in them.
func TestWaitingReadIsShownInItsPlace(t *testing.T) {
	for _, x := range []record.Transaction{
		{Session: "s", ID: "t", Seq: 7, HasSeq: true},
		{Session: "s", ID: "t", HasSeq: true},
		{Session: "s", ID: "t", Seq: math.MinInt64, HasSeq: true},
		{Session: "s", ID: "t"},
		{Session: "", ID: "", Seq: 3, HasSeq: true},
		{Session: "a\x00b", ID: "5\x001\x00", Seq: 3, HasSeq: true},
		{Session: "\x00", ID: "\x00\x00"},
	} {
		y := x
		leaveSession(&y)
		if y.HasSeq || y.Session == x.Session {
			t.Errorf("%+v waits in its session: %+v", x, y)
		}
		again := y
		if leaveSession(&again); again.Session != y.Session {
			t.Errorf("%+v waits twice: %+v", x, again)
		}
		if joinSession(&y); y.Session != x.Session || y.Seq != x.Seq || y.HasSeq != x.HasSeq {
			t.Errorf("%+v is shown as %+v", x, y)
		}
	}
	for _, name := range []string{"", "\x00", "1\x00-1\x00t", "1\x009\x00t", "x\x001\x00ts"} { // what a client may call its session
		y := record.Transaction{Session: waitingSession + name}
		joinSession(&y)
	}
}

// What waits is counted when it is left out, also a read that is in one seed with what its transaction wrote.
func TestLeftOutIsCounted(t *testing.T) {
	read, write := record.Op{Kind: record.Read, Key: "x"}, record.Op{Kind: record.Write, Key: "y", Value: record.Int(1)}
	alone := record.Transaction{Session: "a", Ops: []record.Op{read}}
	leaveSession(&alone)
	h := New(Config{Levels: []verdict.Level{verdict.SI}})
	h.segs.leaveOut([]record.Transaction{alone, {Session: "b", Ops: []record.Op{read, write}}, {Session: "c", Ops: []record.Op{write}},
		{Session: "d", Status: record.Aborted, Ops: []record.Op{write}}})
	if n := h.Stats().Unawaited; n != 3 {
		t.Errorf("%d are given up, want 3", n)
	}
}
