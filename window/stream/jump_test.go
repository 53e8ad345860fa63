package stream

import (
	"fmt"
	"testing"
	"time"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/window/order"
)

// One client whose clock jumps ahead takes the watermark with it. That a write has not
// come by then proves nothing: neither that nobody wrote what was read, nor, where
// several may have written a value, that those who have come are all.
func TestJumpAheadClosesNothing(t *testing.T) {
	base := int64(1_700_000_000_000_000_000)
	line := func(session string, seq int, at int64, ops string) string {
		return fmt.Sprintf(`{"session":%q,"seq":%d,"status":"committed","start":%d,"end":%d,"ops":[%s]}`, session, seq, at, at+10_000, ops)
	}
	ms := int64(time.Millisecond)
	var lines []string
	seq := 0
	others := func(n int) {
		for range n {
			seq++
			lines = append(lines, line(fmt.Sprint("o", seq%3), seq/3, base+int64(seq)*ms, fmt.Sprintf(`["w","y",%d]`, seq)))
		}
	}
	others(30)
	lines = append(lines, line("r", 1, base+30*ms+1, `["r","x",11]`))
	for i := range 3 {
		lines = append(lines, line("c", i+1, base+int64(5+i)*int64(time.Second), fmt.Sprintf(`["w","z",%d]`, i)))
	}
	others(1)
	lines = append(lines, line("w", 1, base+29*ms, `["w","x",11]`))
	others(40)
	for _, unique := range []bool{true, false} {
		for _, level := range []verdict.Level{verdict.G1, verdict.SER} {
			cfg := Config{Levels: []verdict.Level{level}, UniqueValues: unique, Assumptions: record.Assumptions{Coverage: record.CoverageComplete, Initial: record.InitialAbsent},
				MaxTransaction: 500 * time.Millisecond, Every: time.Millisecond, Segment: 1000}
			if found, results := judged(t, cfg, lines); len(found) > 0 || results[0].Outcome == verdict.Violated {
				t.Errorf("%v, unique values %v: found %v, %v", level, unique, found, results[0].Outcome)
			}
		}
	}
}

// A record that comes late is as well one whose clock was set back: where real time is
// promised it counts as one that ended when it came, and precedes nothing that it had not.
func TestSetBackIsNoStaleRead(t *testing.T) {
	base := int64(1_700_000_000_000_000_000)
	line := func(session string, seq int, status string, from, to int64, ops string) string {
		ms := 100 * int64(time.Millisecond)
		return fmt.Sprintf(`{"session":%q,"seq":%d,"status":%q,"start":%d,"end":%d,"ops":[%s]}`, session, seq, status, base+from*ms, base+to*ms, ops)
	}
	lines := []string{
		line("s2", 0, "committed", 4, 6, ""),
		line("s0", 2, "committed", 13, 14, `["w","x",10]`),
		line("s0", 3, "committed", 19, 20, `["r","x",12]`),
		line("s2", 5, "aborted", 270, 290, ""),
		line("s2", 3, "committed", -284, -282, `["w","x",12]`),
	}
	for _, levels := range [][]verdict.Level{{verdict.SSER}, {verdict.StrongSI}, {verdict.SI, verdict.SSER}, {verdict.SER}} {
		cfg := Config{Levels: levels, UniqueValues: true, Assumptions: record.Assumptions{Coverage: record.CoverageComplete, Initial: record.InitialZero}, Every: time.Millisecond, Segment: 1000}
		found, results := judged(t, cfg, lines)
		for _, r := range results {
			if len(found) > 0 || r.Outcome == verdict.Violated {
				t.Errorf("%v: found %v, %v is %v", levels, found, r.Level, r.Outcome)
			}
		}
	}
}

// A session's record that comes after its successors, and that by the clock began only after
// they had ended, contradicts them: the clock orders them no more than it does in a whole
// history, and nobody is told that a session read from its own future.
func TestSessionDoesNotContradictItself(t *testing.T) {
	base := int64(1_700_000_000_000_000_000)
	line := func(session string, seq int, from, to int64, ops string) string {
		ms := 100 * int64(time.Millisecond)
		return fmt.Sprintf(`{"session":%q,"seq":%d,"status":"committed","start":%d,"end":%d,"ops":[%s]}`, session, seq, base+from*ms, base+to*ms, ops)
	}
	for _, tc := range []struct {
		name  string
		first string // what comes late, and is written before the session's second
		want  int
	}{
		{"its own session wrote it", "s1", 0},
		{"another one did", "s2", 1},
	} {
		lines := []string{
			line("s0", 0, 300, 310, `["w","y",1]`),
			line("s1", 1, -40, -37, `["r","x",1]`),
			line("s0", 1, 320, 331, `["w","y",2]`),
			line(tc.first, 0, 305, 306, `["w","x",1]`),
		}
		for _, level := range []verdict.Level{verdict.StrongSI, verdict.SSER} {
			cfg := Config{Levels: []verdict.Level{level}, UniqueValues: true, Assumptions: record.Assumptions{Coverage: record.CoverageComplete, Initial: record.InitialAbsent}, Every: time.Millisecond, Segment: 1000}
			found, results := judged(t, cfg, lines)
			if len(found) != tc.want || (results[0].Outcome == verdict.Violated) != (tc.want > 0) {
				t.Errorf("%s: found %v, %v is %v", tc.name, found, level, results[0].Outcome)
			}
		}
	}
}

// While all that comes is late the stream's time stands still, in segment after segment; they end
// all the same.
func TestLateStretchHasSegments(t *testing.T) {
	const each, n = 1000, 50
	cfg := Config{DB: "d", Levels: []verdict.Level{verdict.SI}, Assumptions: record.Assumptions{Clock: record.ClockPrune, Sessions: record.SessionsKeep, Coverage: record.CoveragePartial}, MaxTransaction: time.Minute, UniqueValues: true, Every: time.Second, Segment: 2000, Overlap: 100, Order: order.Options{Lateness: time.Second, Every: time.Second}}
	h := New(cfg)
	base := int64(1_700_000_000_000_000_000)
	write := func(session string, seq, at int64) record.Transaction {
		return record.Transaction{DB: "d", ID: fmt.Sprint(session, "#", seq), Session: session, Seq: seq, HasSeq: true, HasTimes: true, Start: at, End: at + 1000, Status: record.Committed,
			Ops: []record.Op{{Kind: record.Write, Key: "x", Value: record.Int(seq)}}}
	}
	h.Take(&Entry{Number: 0, Time: base, Partitions: 1, Batch: batchOf(0, 0, []record.Transaction{write("ahead", 1, base+int64(time.Minute))})})
	silence := batchOf(0, 1, nil)
	silence.CaughtUp = true
	for i := range uint64(2) { // all that there was can go
		h.Take(&Entry{Number: 1 + i, Time: base + int64(time.Duration(1+i)*time.Minute), Partitions: 1, Batch: silence})
	}
	for i := range int64(n) {
		var txns []record.Transaction
		for k := range int64(each) {
			txns = append(txns, write("s", i*each+k+1, base+(i*each+k)*int64(time.Microsecond)*20))
		}
		h.Take(&Entry{Number: uint64(i) + 3, Time: base + int64(2*time.Minute), Partitions: 1, Batch: batchOf(0, 1+i*each, txns)})
	}
	for h.Run(100) { // all at once, as what has piled up: each time nothing was due there would be a tick
		if most := untickedMost + cfg.Segment + 2*cfg.Overlap; len(h.segs.fed) > most {
			t.Fatalf("a segment has %d records after %d, at most %d were to be", len(h.segs.fed), h.Stats().Transactions, most)
		}
		h.Found()
	}
	if c := h.OrderCounts(); c.Late != each*n || h.segs.number < 2 {
		t.Errorf("%d of %d are late, and %d segments ended", c.Late, each*n, h.segs.number)
	}
}
