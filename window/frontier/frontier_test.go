package frontier

import (
	"testing"

	"github.com/isowatch/isowatch/ingest/record"
)

func txn(session string, seq int64, start, end int64, ops ...record.Op) *record.Transaction {
	return &record.Transaction{DB: "default", Session: session, Seq: seq, HasSeq: true, ID: session + "#x", Start: start, End: end, HasTimes: end > 0, Ops: ops}
}

func TestSmoke(t *testing.T) {
	f := New(Options{})
	f.Forget(txn("a", 1, 1, 2, record.Op{Kind: record.Write, Key: "x", Value: record.Int(5)}), 2)
	f.Forget(txn("b", 1, 1, 2, record.Op{Kind: record.Write, Key: "x", Value: record.Int(6)}, record.Op{Kind: record.Write, Key: "y", Value: record.Int(6)}), 2)
	t.Log(f.All(10))
	t.Log(f.State("x"), f.Stats())
	p := f.Checkpoint(nil)
	g, err := Restore(Options{}, p)
	t.Log(err)
	t.Log(g.All(10))
	t.Log(g.State("x"), g.Stats())
}
