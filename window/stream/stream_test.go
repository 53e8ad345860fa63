package stream

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/codec"
	"github.com/isowatch/isowatch/ingest/decode"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/window/order"
)

// judged runs records through a History with tiny segments and returns what it
// found.
func judged(t *testing.T, cfg Config, lines []string) (found []verdict.Kind, results []verdict.Result) {
	t.Helper()
	_, found, results = judgedBy(t, cfg, lines)
	return found, results
}

// judgedBy is judged, and gives the History.
func judgedBy(t *testing.T, cfg Config, lines []string) (h *History, found []verdict.Kind, results []verdict.Result) {
	t.Helper()
	return judgedFrom(t, cfg, lines, true)
}

// judgedFrom is judgedBy; broker: it is said that records came when they ended.
func judgedFrom(t *testing.T, cfg Config, lines []string, broker bool) (h *History, found []verdict.Kind, results []verdict.Result) {
	t.Helper()
	cfg.DB, cfg.Clock, cfg.Sessions, cfg.MaxTransaction = "d", record.ClockPrune, record.SessionsKeep, cmp.Or(cfg.MaxTransaction, time.Minute)
	cfg.Order = order.Options{Lateness: time.Second}
	h = New(cfg)
	drain := func() {
		for _, v := range h.Found() {
			for _, id := range v.Evidence {
				if x, ok := v.Find(id); !ok || x.DB != "d" {
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
		b := batchOf(0, int64(i), []record.Transaction{x})
		if !broker {
			b.Arrivals[0] = 0
		}
		h.Take(&Entry{Number: uint64(i), Time: x.End, Partitions: 1, Batch: b})
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
	return h, found, results
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

// A read of an aborted value, which another attempt may yet have written, goes on
// waiting in the segments that follow, and finds the aborted write there that nothing
// else remembers: no other attempt came. The same of a list, and if complete coverage is
// claimed. Once one comes there is nothing to find.
func TestAbortedWriterWaitsWithItsReader(t *testing.T) {
	base := int64(1_700_000_000_000_000_000)
	line := func(session, status string, seq, at int64, ops string) string {
		return fmt.Sprintf(`{"session":%q,"seq":%d,"status":%q,"start":%d,"end":%d,"ops":[%s]}`, session, seq, status, at, at+10, ops)
	}
	for _, tc := range []struct {
		name, write, read string
		second            bool
		coverage          record.Coverage
		late              int // records between the write and the read
		want              int
	}{
		{"write", `["r","z",5],["w","x",6],["w","x",7],["w","y",1]`, `["r","x",7]`, false, record.CoveragePartial, 0, 1},
		{"later, in the overlap", `["w","x",7]`, `["r","x",7]`, false, record.CoveragePartial, 2, 1},
		{"list", `["append","x",7]`, `["r","x",[7]]`, false, record.CoveragePartial, 0, 1},
		{"complete", `["w","x",7]`, `["r","x",7]`, false, record.CoverageComplete, 0, 1},
		{"two reads", `["w","x",7],["w","z",8]`, `["r","x",7],["r","z",8]`, false, record.CoveragePartial, 0, 2},
		{"second attempt", `["w","x",7]`, `["r","x",7]`, true, record.CoveragePartial, 0, 0},
	} {
		for _, seeds := range []int{0, 1} { // from the beginning, or when touched
			lines := []string{line("w", "aborted", 1, base, tc.write)}
			all := others(200, base+20)
			lines = append(append(lines, all[:tc.late]...), line("r", "committed", 1, base+5+int64(tc.late)*499_000_000, tc.read))
			for i, x := range all[tc.late:] {
				if lines = append(lines, x); i == 30 && tc.second {
					lines = append(lines, line("w", "committed", 2, base+20+int64(31+tc.late)*500_000_000, tc.write))
				}
			}
			found, results := judged(t, Config{Levels: []verdict.Level{verdict.SI}, UniqueValues: true, Assumptions: record.Assumptions{Coverage: tc.coverage, Initial: record.InitialAbsent}, MaxSeeds: seeds, Segment: 6, Overlap: 2}, lines)
			if len(found) != tc.want || slices.ContainsFunc(found, func(k verdict.Kind) bool { return k != verdict.AbortedRead }) || (results[0].Outcome == verdict.Violated) != (tc.want > 0) {
				t.Errorf("%s, at most %d seeds: found %v, %v", tc.name, seeds, found, results[0].Outcome)
			}
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

// A history in which little happens, beside one in which much does: a checkpoint
// holds its old records itself, needs none of the old entries, and goes on as if
// nothing had been.
func TestQuietHistoryNeedsNoOldEntries(t *testing.T) {
	base := int64(1_700_000_000_000_000_000)
	cfg := Config{DB: "quiet", Levels: []verdict.Level{verdict.SI}, Assumptions: record.Assumptions{Clock: record.ClockPrune, Sessions: record.SessionsKeep, Coverage: record.CoveragePartial}, MaxTransaction: time.Minute, UniqueValues: true, Order: order.Options{Lateness: time.Second}}
	txn := func(db, session string, seq, at int64, ops ...record.Op) record.Transaction {
		return record.Transaction{DB: db, ID: fmt.Sprintf("%s#%d", session, seq), Session: session, Seq: seq, HasSeq: true, HasTimes: true, Start: at, End: at + 1000, Status: record.Committed, Ops: ops}
	}
	value := func(n int64) record.Value { return record.Value{Kind: record.KindInt, Num: n} }
	read := func(key string, n int64) record.Op { return record.Op{Kind: record.Read, Key: key, Value: value(n)} }
	write := func(key string, n int64) record.Op { return record.Op{Kind: record.Write, Key: key, Value: value(n)} }
	var entries []*Entry
	add := func(at int64, txns ...record.Transaction) {
		n := int64(len(entries))
		entries = append(entries, &Entry{Number: uint64(n), Time: at, Partitions: 1, Batch: batchOf(0, n, txns)})
	}
	// The first half of a lost update, and the other half 3,000 entries later, each in
	// an entry with somebody else's record.
	add(base, txn("busy", "b", 1, base, write("x", 9)), txn("quiet", "q1", 1, base+10, write("x", 1)), txn("quiet", "q2", 1, base+20_000, read("x", 1), write("x", 2)))
	for i := range int64(3000) {
		at := base + (i+1)*int64(10*time.Millisecond)
		add(at, txn("busy", "b", i+2, at, write("x", 10+i)))
	}
	late := base + int64(40*time.Second)
	add(late, txn("busy", "b", 4000, late, write("y", 1)), txn("quiet", "q3", 1, late+5, read("x", 1), write("x", 3)))

	run := func(h *History, from int) []verdict.Kind {
		var found []verdict.Kind
		for _, e := range entries[from:] {
			h.Take(e)
			for h.Run(10) {
			}
			for _, v := range h.Found() {
				found = append(found, v.Kind)
			}
		}
		h.Flush()
		for h.Run(10) {
		}
		h.Close()
		for _, v := range h.Found() {
			found = append(found, v.Kind)
		}
		return found
	}
	if found := run(New(cfg), 0); len(found) != 1 || found[0] != verdict.Divergence {
		t.Fatalf("without a restart: found %v", found)
	}
	h := New(cfg)
	for _, e := range entries[:2500] {
		h.Take(e)
		for h.Run(10) {
		}
	}
	floor, checkpoint := h.Floor(), checkpointOf(h)
	if floor < 2500-adoptAfter {
		t.Errorf("after 2500 entries entry %d is needed", floor)
	}
	restored, err := Restore(cfg, checkpoint, func(n uint64) (*decode.Batch, error) {
		if n < floor {
			return nil, fmt.Errorf("entry %d is gone", n)
		}
		return entries[n].Batch, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found := run(restored, 2500); len(found) != 1 || found[0] != verdict.Divergence {
		t.Errorf("after a restart: found %v", found)
	}
}

// Complete coverage ends where a record is known to be missing: a value that nobody
// is seen to have written may be of that one.
func TestLossEndsCompleteCoverage(t *testing.T) {
	base := int64(1_700_000_000_000_000_000)
	line := func(session string, seq, at int64, ops string) string {
		return fmt.Sprintf(`{"session":%q,"seq":%d,"status":"committed","start":%d,"end":%d,"ops":[%s]}`, session, seq, at, at+1000, ops)
	}
	for _, tc := range []struct {
		name string
		seq  int64 // of the second record of session a
		want int
	}{{"nothing is missing", 2, 1}, {"a hole in a session", 3, 0}} {
		lines := []string{
			line("a", 1, base, `["w","x",1]`),
			line("a", tc.seq, base+10_000, `["w","x",2]`),
			line("b", 1, base+20_000, `["r","x",77]`),
		}
		lines = append(lines, others(200, base+30_000)...)
		found, results := judged(t, Config{Levels: []verdict.Level{verdict.SI}, Assumptions: record.Assumptions{Coverage: record.CoverageComplete, Initial: record.InitialAbsent}, UniqueValues: true, Segment: 1000, Overlap: 10}, lines)
		if len(found) != tc.want || (results[0].Outcome == verdict.Violated) != (tc.want > 0) {
			t.Errorf("%s: found %v, %v", tc.name, found, results[0].Outcome)
		}
	}
}

// Of an aborted transaction nothing is kept but what it did to the keys in question.
func TestOpsOf(t *testing.T) {
	op := func(k record.OpKind, key string, n int64) record.Op {
		return record.Op{Kind: k, Key: key, Value: record.Int(n)}
	}
	ops := []record.Op{op(record.Read, "x", 1), op(record.Write, "x", 2), op(record.Write, "y", 3), op(record.Append, "z", 4), op(record.Append, "y", 5), op(record.Write, "x", 6)}
	want := []record.Op{ops[0], ops[1], ops[3], ops[5]}
	if got := opsOf(ops, []string{"z", "x"}); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// Once Stop says so, a search ends without an answer.
func TestStop(t *testing.T) {
	var lines []string
	for k := range 3000 { // either order of two writes will do, one of which somebody read
		for i, op := range []string{`"w","k%d",0`, `"w","k%d",1`, `"r","k%d",0`} {
			lines = append(lines, fmt.Sprintf(`{"session":"s%d-%d","seq":1,"status":"committed","start":1700000000000000000,"end":1700000000000001000,"ops":[[%s]]}`, k, i, fmt.Sprintf(op, k)))
		}
	}
	for _, stop := range []bool{false, true} {
		asked := 0
		_, results := judged(t, Config{Levels: []verdict.Level{verdict.SER}, UniqueValues: true, Assumptions: record.Assumptions{Initial: record.InitialAbsent}, Segment: 10_000, Stop: func() bool { asked++; return stop }}, lines)
		want := verdict.Satisfied
		if stop {
			want = verdict.Unknown
		}
		if results[0].Outcome != want || asked == 0 {
			t.Errorf("stop %v, asked %d times: %v (%v), want %v", stop, asked, results[0].Outcome, results[0].Reason, want)
		}
	}
}

// checkpointOf is what h writes.
func checkpointOf(h *History) []byte {
	var b bytes.Buffer
	_, _ = h.WriteCheckpoint(&b) // a buffer takes all
	return b.Bytes()
}
