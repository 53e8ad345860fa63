package app

import (
	"fmt"
	"strings"
	"testing"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
)

// An anomaly of which no history of whole records is a proof any more, as who began
// the list is forgotten, and what y held at first needs complete coverage, is
// counted as forgotten: no bug is told of, and no alert. With a larger overlap it is told.
func TestForgottenProofIsNoBug(t *testing.T) {
	const at, ms = 1_700_000_000_000_000_000, 1_000_000
	txn := func(session string, seq, start, end int64, ops ...record.Op) record.Transaction {
		return record.Transaction{DB: record.DefaultDB, Session: session, ID: fmt.Sprint(session, seq), Seq: seq, HasSeq: true, Status: record.Committed,
			HasTimes: true, Start: at + start*ms, End: at + end*ms, Ops: ops}
	}
	list := record.Value{Kind: record.KindList, Text: "[1,5,3]"}
	for _, tc := range []struct {
		overlap int
		told    bool
	}{{1, false}, {2, true}} {
		c, p, h := hooked(t)
		c.Levels, c.Initial = []verdict.Level{verdict.SER}, record.InitialAbsent
		c.Window.Segment, c.Window.Overlap = 16, tc.overlap
		r := start(t, c, newMemStore(webhookName(h.webhook())), false)
		var txns []record.Transaction
		for i := range int64(13) { // so that the segment ends behind b1
			txns = append(txns, txn("o", i+1, -400+20*i, -390+20*i, record.Op{Kind: record.Write, Key: "z", Value: record.Int(i)}))
		}
		send(t, p, append(txns,
			txn("a", 1, 0, 20, record.Op{Kind: record.Append, Key: "x", Value: record.Int(1)}),
			txn("a", 2, 21, 40, record.Op{Kind: record.Append, Key: "x", Value: record.Int(3)}),
			txn("b", 1, 1, 60, record.Op{Kind: record.Read, Key: "x", Value: list}),
			txn("a", 3, 90, 120, record.Op{Kind: record.Read, Key: "y"}),
			txn("c", 1, 2, 200, record.Op{Kind: record.Write, Key: "y", Value: record.Int(4)}, record.Op{Kind: record.Append, Key: "x", Value: record.Int(5)}),
			txn("o", 14, 9000, 9010), txn("a", 4, 9000, 9010), txn("b", 2, 9000, 9010), txn("c", 2, 9000, 9010), // nobody can have written y any more,
			txn("o", 15, 9011, 9012), txn("a", 5, 9011, 9012), txn("b", 3, 9011, 9012), txn("c", 3, 9011, 9012), // as eight have come so far
			txn("o", 16, 9020, 9030), txn("a", 6, 9020, 9030), txn("b", 4, 9020, 9030), txn("c", 4, 9020, 9030))...)
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
