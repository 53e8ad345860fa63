package app

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/alerts/name"
	"github.com/isowatch/isowatch/cmd/monitor/judge"
	"github.com/isowatch/isowatch/config"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/decode"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/record/packed"
	"github.com/isowatch/isowatch/window/stream"
)

// unprovable is a history with one anomaly at ser. In segments of 16 that overlap in one it has no proof.
func unprovable() []record.Transaction {
	const at, ms = 1_700_000_000_000_000_000, 1_000_000
	txn := func(session string, seq, start, end int64, ops ...record.Op) record.Transaction {
		return record.Transaction{DB: record.DefaultDB, Session: session, ID: fmt.Sprint(session, seq), Seq: seq, HasSeq: true, Status: record.Committed,
			HasTimes: true, Start: at + start*ms, End: at + end*ms, Ops: ops}
	}
	list := record.Value{Kind: record.KindList, Text: "[1,5,3]"}
	var txns []record.Transaction
	for i := range int64(13) { // so that the segment ends behind b1
		txns = append(txns, txn("o", i+1, -400+20*i, -390+20*i, record.Op{Kind: record.Write, Key: "z", Value: record.Int(i)}))
	}
	return append(txns,
		txn("a", 1, 0, 20, record.Op{Kind: record.Append, Key: "x", Value: record.Int(1)}),
		txn("a", 2, 21, 40, record.Op{Kind: record.Append, Key: "x", Value: record.Int(3)}),
		txn("b", 1, 1, 60, record.Op{Kind: record.Read, Key: "x", Value: list}),
		txn("a", 3, 90, 120, record.Op{Kind: record.Read, Key: "y"}),
		txn("c", 1, 2, 200, record.Op{Kind: record.Write, Key: "y", Value: record.Int(4)}, record.Op{Kind: record.Append, Key: "x", Value: record.Int(5)}),
		txn("o", 14, 9000, 9010), txn("a", 4, 9000, 9010), txn("b", 2, 9000, 9010), txn("c", 2, 9000, 9010), // nobody can have written y any more,
		txn("o", 15, 9011, 9012), txn("a", 5, 9011, 9012), txn("b", 3, 9011, 9012), txn("c", 3, 9011, 9012), // as eight have come so far
		txn("o", 16, 9020, 9030), txn("a", 6, 9020, 9030), txn("b", 4, 9020, 9030), txn("c", 4, 9020, 9030))
}

// An anomaly of which no history of whole records is a proof any more, as who began
// the list is forgotten, and what y held at first needs complete coverage, is
// counted as forgotten: no bug is told of, and no alert. With a larger overlap it is told.
func TestForgottenProofIsNoBug(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		overlap int
		told    bool
	}{{1, false}, {2, true}} {
		c, p, h := hooked(t)
		c.Levels, c.Initial = []verdict.Level{verdict.SER}, record.InitialAbsent
		c.Window.Segment, c.Window.Overlap = 16, tc.overlap
		r := start(t, c, newMemStore(webhookName(h.webhook())), false)
		send(t, p, unprovable()...)
		if tc.told {
			if a := h.next(t); a.Level != "ser" {
				t.Errorf("overlap %d: %s", tc.overlap, a.Summary)
			}
			r.stop(t)
			continue
		}
		eventually(t, "it is counted as forgotten", func() bool {
			return strings.Contains(get(t, r.Addr(), "/metrics"), `isowatch_forgotten_total{db="default",why="evidence"} 1`)
		})
		if m := get(t, r.Addr(), "/metrics"); !strings.Contains(m, "isowatch_alerts_unproved_total 0") {
			t.Error("it is counted as a bug")
		}
		r.stop(t)
		h.mu.Lock()
		if len(h.seen)+len(h.told) > 0 {
			t.Errorf("told: %+v", h.told)
		}
		h.mu.Unlock()
	}
}

// The same anomaly may be met again in the entries that the run before had, and be provable
// only then. What came of the first meeting does not stand for the second, whether this run
// found it out or the one before.
func TestNextMeetingIsProved(t *testing.T) {
	var c packed.Chunk
	for i, ops := range [][]record.Op{
		{{Kind: record.Write, Key: "x", Value: record.Int(1)}},
		{{Kind: record.Read, Key: "x", Value: record.Int(1)}, {Kind: record.Write, Key: "x", Value: record.Int(2)}},
	} {
		id := fmt.Sprint("t", i)
		c.Add(&record.Transaction{DB: "db", Session: id, ID: id, HasTimes: true, Start: int64(10 * i), End: int64(10*i + 5), Ops: ops})
	}
	b := &decode.Batch{Next: 2, Offsets: []int64{0, 1}, Arrivals: []int64{1, 2}, Block: c.Seal()}
	b.Sums, b.DBs = b.Block.Sums(), b.Block.DBs()
	h := stream.New(stream.Config{DB: "db", Levels: []verdict.Level{verdict.SI}})
	h.Take(&stream.Entry{Number: 5, Time: 20, Partitions: 1, Batch: b})
	h.Flush()
	for h.Run(runMax) {
	}
	// No history of these two proves it: what would is forgotten.
	find := func(id verdict.TxnID) (*record.Transaction, bool) {
		if id > 1 {
			return nil, false
		}
		t := b.Block.Copy(int(id))
		return &t, true
	}
	v := stream.Violation{Torn: true, Find: find, Violation: verdict.Violation{Level: verdict.SI, Kind: verdict.Cycle, Txns: []verdict.TxnID{0, 1}, Evidence: []verdict.TxnID{0, 1},
		Cycle: []verdict.Edge{{From: 0, To: 1, Type: verdict.WR, Key: "x", Why: verdict.ByValue}, {From: 1, To: 0, Type: verdict.RW, Key: "x", Why: verdict.ByOverwrite}}}}
	proofs := 0
	a := &setting{cfg: config.Default(), log: zerolog.Nop(), metrics: newMetrics(), tuning: tuning{proving: func(*worker) { proofs++ }}}
	a.cfg.Levels = []verdict.Level{verdict.SI}
	meet := func(w *worker, want int) {
		t.Helper()
		proofs = 0
		if err := w.raiseOne(t.Context(), &v, time.Now()); err != nil {
			t.Fatal(err)
		}
		if proofs != want {
			t.Errorf("%d proofs, want %d", proofs, want)
		}
	}
	first := provedSince(&checkpoint{})
	w := &worker{setting: a, db: "db", history: h, told: newTold(), proved: first, replayed: 5, going: t.Context(), causes: causes{}, tallies: newTallies(1)}
	meet(w, 1)
	noted, err := parseProved("db", first.append(nil)) // a kill, after the first was noted
	if err != nil {
		t.Fatal(err)
	}
	meet(w, 1)
	w.proved = noted
	meet(w, 0)
	meet(w, 1)
	if n := h.Stats().Withheld; n != 4 {
		t.Errorf("%d are counted as forgotten, want 4", n)
	}
	// One of which there are enough, that is too large to be kept, and that there is nothing to count with.
	in := alerts.Context{DB: w.db, Levels: a.cfg.Levels, Assumptions: v.Under, Lookup: alerts.Remembered(v.Find)}
	same := judge.Same(v.Violation, name.Asked{Levels: in.Levels, Clock: in.Clock}, in.Lookup)
	w.told.add(kindOf(same, &v), sharesMax)
	for id := range verdict.TxnID(1000) {
		v.Evidence = append(v.Evidence, id)
	}
	meet(w, 1)
}
