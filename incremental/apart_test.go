package incremental_test

import (
	"testing"

	"github.com/isowatch/isowatch/incremental"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
)

// A record that comes when its session has gone on, as seq tells, does not follow what
// came before it, nor does what comes then follow it.
func TestSessionThatGoesBack(t *testing.T) {
	at := func(seq int64, id string, ops ...record.Op) record.Transaction {
		return record.Transaction{Session: "s", Seq: seq, HasSeq: true, ID: id, Status: record.Committed, Ops: ops}
	}
	z := func(kind record.OpKind, n int64) record.Op {
		return record.Op{Kind: kind, Key: "z", Value: record.Int(n)}
	}
	for _, tc := range []struct {
		name string
		txns []record.Transaction
		want verdict.Outcome
	}{
		{"back", []record.Transaction{at(4, "reads", z(record.Read, 2)), at(3, "writes", z(record.Write, 2))}, verdict.Satisfied},
		{"back and on", []record.Transaction{at(4, "reads", z(record.Read, 2)), at(3, "writes", z(record.Write, 2)), at(5, "reads again", z(record.Read, 2))}, verdict.Satisfied},
		{"on", []record.Transaction{at(3, "reads", z(record.Read, 2)), at(4, "writes", z(record.Write, 2))}, verdict.Violated},
		{"on behind one that went back", []record.Transaction{at(4, "reads", z(record.Read, 2)), at(3, "nothing"), at(5, "writes", z(record.Write, 2))}, verdict.Violated},
	} {
		for _, level := range []verdict.Level{verdict.G1, verdict.RC, verdict.SI, verdict.SER} {
			e := incremental.New(incremental.Options{Levels: []verdict.Level{level}, Assumptions: record.Assumptions{Initial: record.InitialAbsent}, Online: true, UniqueValues: true})
			for i := range tc.txns {
				e.Step(&tc.txns[i], int64(i))
			}
			if r := e.Close()[0]; r.Outcome != tc.want {
				t.Errorf("%s: %v is %v, want %v: %+v", tc.name, level, r.Outcome, tc.want, r.Violations)
			}
		}
	}
}
