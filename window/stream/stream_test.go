package stream

import (
	"fmt"
	"testing"
	"time"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/codec"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/window/order"
)

// judged runs records through a History with tiny segments and returns what it
// found.
func judged(t *testing.T, cfg Config, lines []string) (found []verdict.Kind, results []verdict.Result) {
	t.Helper()
	cfg.DB, cfg.Clock, cfg.Sessions, cfg.MaxTransaction = "d", record.ClockPrune, record.SessionsKeep, time.Minute
	cfg.Order = order.Options{Lateness: time.Second}
	h := New(cfg)
	drain := func() {
		for _, v := range h.Found() {
			for _, id := range v.Evidence {
				if x, ok := h.Lookup(id); !ok || x.DB != "d" {
					t.Errorf("evidence %d is %+v, %v", id, x, ok)
				}
			}
			found = append(found, v.Kind)
		}
	}
	for i, line := range lines {
		var x record.Transaction
		if err := codec.Decode([]byte(line), &x); err != nil {
			t.Fatal(err)
		}
		x.DB = "d"
		h.Take(&Entry{Number: uint64(i), Time: x.End, Partitions: 1, Batch: batchOf(0, int64(i), []record.Transaction{x})})
		for h.Run(10) {
			drain()
		}
		drain()
	}
	h.Flush()
	for h.Run(10) {
		drain()
	}
	drain()
	results = h.Close()
	drain()
	return found, results
}

// others are transactions of no interest, which make segments end.
func others(n int, from int64) []string {
	var out []string
	for i := range int64(n) {
		at := from + i*int64(500*time.Millisecond)
		out = append(out, fmt.Sprintf(`{"session":"o","seq":%d,"status":"committed","start":%d,"end":%d,"ops":[["w","y",%d]]}`, i+1, at, at+1000, i))
	}
	return out
}

// A read that waits for its writer goes on waiting in the segments that follow, and
// what it waited for is found there.
func TestReadsWaitAcrossSegments(t *testing.T) {
	base := int64(1_700_000_000_000_000_000)
	reads := fmt.Sprintf(`{"session":"r","seq":1,"status":"committed","start":%d,"end":%d,"ops":[["r","x",7]]}`, base, base+1000)
	end := base + int64(20*time.Second)
	writes := fmt.Sprintf(`{"session":"w","seq":1,"status":"aborted","start":%d,"end":%d,"ops":[["w","x",7]]}`, base-1000, end)
	lines := append(append([]string{reads}, others(39, base+5000)...), writes)
	for _, attempts := range []bool{false, true} {
		found, results := judged(t, Config{Levels: []verdict.Level{verdict.SI}, UniqueValues: true, UniqueAttempts: attempts, Segment: 4, Overlap: 2}, lines)
		if len(found) != 1 || found[0] != verdict.AbortedRead || results[0].Outcome != verdict.Violated {
			t.Errorf("attempts unique %v: found %v, %v", attempts, found, results[0].Outcome)
		}
	}
}

// What a transaction read after it had appended to the list itself is not the list
// that it found: it does not wait in the next segment without the appends.
func TestListReadAfterOwnAppendIsNotCarried(t *testing.T) {
	base := int64(1_700_000_000_000_000_000)
	lines := append([]string{fmt.Sprintf(`{"session":"s","seq":1,"status":"committed","start":%d,"end":%d,"ops":[["append","x",2],["r","x",[1,2]],["append","x",3]]}`, base, base+1000)},
		others(40, base+5000)...)
	for _, level := range []verdict.Level{verdict.RC, verdict.SI, verdict.SER} {
		found, results := judged(t, Config{Levels: []verdict.Level{level}, UniqueValues: true, Segment: 8, Overlap: 2}, lines)
		if len(found) > 0 || results[0].Outcome != verdict.Unknown || results[0].Reason != verdict.Forgotten && results[0].Reason != verdict.NotChecked {
			t.Errorf("%v: found %v, %v %v", level, found, results[0].Outcome, results[0].Reason)
		}
	}
}

// Nothing is satisfied of which a part was forgotten.
func TestForgottenIsNotSatisfied(t *testing.T) {
	for _, tc := range []struct {
		segment int
		want    verdict.Outcome
	}{{100, verdict.Satisfied}, {8, verdict.Unknown}} {
		_, results := judged(t, Config{Levels: []verdict.Level{verdict.SER}, UniqueValues: true, Segment: tc.segment, Overlap: 2}, others(40, 1_700_000_000_000_000_000))
		if results[0].Outcome != tc.want {
			t.Errorf("segments of %d: %v %v", tc.segment, results[0].Outcome, results[0].Reason)
		}
	}
}
