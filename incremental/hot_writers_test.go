package incremental_test

import (
	"fmt"

	"github.com/isowatch/isowatch/ingest/record"
)

// hotWriters makes transactions in 50 sessions that write a hot key and nobody reads ("hot"), that one of a session of its
// own each reads ("read"), or with times by which forty overlap, and clocks may differ by ten times as much ("timed").
func hotWriters(n int, kind string) []record.Transaction {
	var out []record.Transaction
	const sessions = 50
	for i := range n {
		v := int64(i + 1)
		x := record.Transaction{Session: fmt.Sprint("s", i%sessions), Seq: int64(i / sessions), HasSeq: true, ID: fmt.Sprint(i), Status: record.Committed}
		if kind == "timed" {
			x.End, x.HasTimes = v*10_000, true
			x.Start = x.End - 395_000
		}
		x.Ops = append(x.Ops, record.Op{Kind: record.Write, Key: "hot", Value: record.Int(v)})
		if out = append(out, x); kind == "read" {
			out = append(out, record.Transaction{Session: fmt.Sprint("r", i), ID: fmt.Sprint("r", i), Status: record.Committed,
				Ops: []record.Op{{Kind: record.Read, Key: "hot", Value: record.Int(v)}}})
		}
	}
	return out
}

// lostUpdate is two transactions that read the same version and overwrite it.
func lostUpdate() []record.Transaction {
	op := func(k record.OpKind, n int64) record.Op {
		return record.Op{Kind: k, Key: "lost", Value: record.Int(n)}
	}
	out := []record.Transaction{
		{Session: "l0", ID: "l0", Ops: []record.Op{op(record.Write, 1)}},
		{Session: "l1", ID: "l1", Ops: []record.Op{op(record.Read, 1), op(record.Write, 2)}},
		{Session: "l2", ID: "l2", Ops: []record.Op{op(record.Read, 1), op(record.Write, 3)}},
	}
	for i := range out {
		out[i].HasSeq, out[i].Status = true, record.Committed
	}
	return out
}
