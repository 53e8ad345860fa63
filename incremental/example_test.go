package incremental_test

import (
	"fmt"

	"github.com/isowatch/isowatch/incremental"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
)

// Two clients read that both doctors are on call, and each takes another one off. Under snapshot isolation that may be;
// no serial order explains it.
func Example() {
	e := incremental.New(incremental.Options{Levels: []verdict.Level{verdict.SI, verdict.SER}, Assumptions: record.Assumptions{Initial: record.InitialZero},
		MaxTransaction: 1, Online: true, UniqueValues: true})
	op := func(kind record.OpKind, key string, n int64) record.Op {
		return record.Op{Kind: kind, Key: key, Value: record.Int(n)}
	}
	names := []string{"first", "second"}
	for i, off := range []string{"alice", "bob"} {
		e.Step(&record.Transaction{Session: names[i], Status: record.Committed, Ops: []record.Op{
			op(record.Read, "alice", 0), op(record.Read, "bob", 0), op(record.Write, off, 1)}}, int64(i))
	}
	for _, v := range e.Tick(9).Violations { // no record of before 9 is still to come, so nobody else wrote 0
		fmt.Printf("%v is broken:", v.Level)
		for _, edge := range v.Cycle {
			fmt.Printf(" %s -%v(%s)-> %s", names[edge.From], edge.Type, edge.Key, names[edge.To])
		}
		fmt.Println()
	}
	for _, r := range e.Close() {
		fmt.Println(r.Level, r.Outcome)
	}
	// Output:
	// ser is broken: second -rw(alice)-> first first -rw(bob)-> second
	// si satisfied
	// ser violated
}
