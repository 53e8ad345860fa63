package stream

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/isowatch/isowatch/incremental"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/codec"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/window/order"
)

var realTimeLevels = []verdict.Level{verdict.StrongSI, verdict.SSER}

// streamed are the verdicts on records in the order in which they are sent, and whether
// something may have been missed at the last level.
func streamed(txns []record.Transaction) ([]verdict.Result, bool) {
	h := New(Config{DB: "d", Levels: realTimeLevels, Assumptions: record.Assumptions{Initial: record.InitialZero, Coverage: record.CoverageComplete}, UniqueValues: true, MaxTransaction: time.Minute,
		Order: order.Options{Lateness: time.Second}})
	for i := range txns {
		h.Take(&Entry{Number: uint64(i), Time: txns[i].End, Partitions: 1, Batch: batchOf(0, int64(i), txns[i:i+1])})
		for h.Run(10) {
			h.Found()
		}
	}
	h.Flush()
	for h.Run(10) {
		h.Found()
	}
	results := h.Close()
	stretches, _ := h.Standing()
	return results, slices.ContainsFunc(stretches, func(s Stretch) bool { return s.At(verdict.SSER) == Partial })
}

// whole are the verdicts of the batch engine on the same.
func whole(txns []record.Transaction) []verdict.Result {
	e := incremental.New(incremental.Options{Levels: realTimeLevels, Assumptions: record.Assumptions{Initial: record.InitialZero, Coverage: record.CoverageComplete, UnseenUnique: new(true)}, UniqueValues: true})
	for i := range txns {
		e.Step(&txns[i], txns[i].End)
	}
	return e.Close()
}

// pool are transactions of connections, two of which share a session's name each, so that
// they overlap. Each takes effect at one moment between its ends; some reads are stale.
func pool(rng *rand.Rand, uncommitted int) []record.Transaction {
	var txns []record.Transaction
	next := map[string]int64{}
	var last [3][]int64 // what keys held
	at := int64(1_000_000)
	for i := range 14 {
		at += 1 + rng.Int64N(40) // takes effect
		session := fmt.Sprintf("s%d", rng.IntN(2))
		x := record.Transaction{ID: fmt.Sprintf("T%d", i), DB: "d", Session: session, HasSeq: true, HasTimes: true, Start: at - 1 - rng.Int64N(60), End: at + 1 + rng.Int64N(60)}
		if rng.IntN(100) < uncommitted {
			x.Status = []record.Status{record.Aborted, record.Unknown}[rng.IntN(2)]
		}
		k := rng.IntN(len(last))
		value := func(back int) record.Value {
			if n := len(last[k]) - 1 - back; n >= 0 {
				return record.Int(last[k][n])
			}
			return record.Int(0)
		}
		key := string(rune('x' + k))
		if rng.IntN(2) == 0 {
			stale := 0
			if rng.IntN(12) == 0 {
				stale = 1
			}
			x.Ops = []record.Op{{Kind: record.Read, Key: key, Value: value(stale)}}
		} else {
			x.Ops = []record.Op{{Kind: record.Read, Key: key, Value: value(0)}, {Kind: record.Write, Key: key, Value: record.Int(int64(i) + 1)}}
			if x.Status != record.Aborted {
				last[k] = append(last[k], int64(i)+1)
			}
		}
		txns = append(txns, x)
	}
	// Numbers are given when a transaction begins, and its record is sent when it has ended.
	slices.SortStableFunc(txns, func(a, b record.Transaction) int { return cmp.Compare(a.Start, b.Start) })
	for i := range txns {
		next[txns[i].Session]++
		txns[i].Seq = next[txns[i].Session]
	}
	return txns
}

// Where the transactions of a session overlap, a stream misses nothing at levels with
// real time that the batch engine finds; but for what it says itself, where one that did
// not commit ended after its successor.
func TestSessionsThatOverlap(t *testing.T) {
	for _, uncommitted := range []int{0, 25} {
		violated, satisfied, missed := 0, 0, 0
		for seed := range uint64(400) {
			txns := pool(rand.New(rand.NewPCG(seed, 7)), uncommitted)
			want := whole(txns)
			sent := slices.Clone(txns)
			slices.SortStableFunc(sent, func(a, b record.Transaction) int { return cmp.Compare(a.End, b.End) })
			got, partial := streamed(sent)
			for i, r := range got {
				switch w := want[i].Outcome; {
				case w == r.Outcome && w == verdict.Violated:
					violated++
				case w == r.Outcome:
					satisfied++
				case w == verdict.Violated && partial && uncommitted > 0:
					missed++
				default:
					t.Fatalf("seed %d, %v: stream %v, batch %v; partial %v\n%+v", seed, r.Level, r.Outcome, w, partial, txns)
				}
			}
		}
		t.Logf("%d%% uncommitted: %d violated, %d satisfied, %d missed", uncommitted, violated, satisfied, missed)
		if violated < 100 || satisfied < 100 || missed > violated/50 {
			t.Errorf("%d%% uncommitted: %d violated, %d satisfied, %d missed", uncommitted, violated, satisfied, missed)
		}
	}
}

// A stale read that only the clocks show, behind an overlap in its session. If what it
// overlaps with did not commit, and ended later than it, its times are known less well, and
// the stream says so.
func TestStaleReadBehindAnOverlap(t *testing.T) {
	for _, tc := range []struct {
		first   string
		partial bool
	}{
		{`{"id":"T3","session":"b","status":"committed","ops":[["r","z",0]],"start":1156,"end":1329,"seq":1}`, false},
		{`{"id":"T3","session":"b","status":"aborted","ops":[["r","z",0]],"start":1156,"end":1329,"seq":1}`, false},
		{`{"id":"T3","session":"b","status":"unknown","ops":[["r","z",0]],"start":1156,"end":1399,"seq":1}`, true},
		{`{"id":"T3","session":"b","status":"aborted","ops":[["r","z",0]],"start":1156,"end":1399,"seq":1}`, true},
	} {
		var txns []record.Transaction
		for _, line := range []string{
			`{"id":"T2","session":"a","status":"committed","ops":[["w","x",5],["w","y",6],["r","y",6]],"start":1086,"end":1163,"seq":1}`,
			tc.first,
			`{"id":"T4","session":"b","status":"committed","ops":[["w","x",7],["r","y",0],["w","y",8]],"start":1296,"end":1352,"seq":2}`,
		} {
			var x record.Transaction
			if err := codec.Decode([]byte(line), &x); err != nil {
				t.Fatal(err)
			}
			x.DB = "d"
			txns = append(txns, x)
		}
		got, partial := streamed(txns)
		for i, w := range whole(txns) {
			if w.Outcome != verdict.Violated || got[i].Outcome != verdict.Violated || partial != tc.partial {
				t.Errorf("%v: batch %v, stream %v, partial %v\n%s", w.Level, w.Outcome, got[i].Outcome, partial, tc.first)
			}
		}
	}
}
