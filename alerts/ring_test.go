package alerts_test

import (
	"fmt"
	"testing"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/oracle/script"
	"github.com/isowatch/isowatch/internal/lab/race"
)

// ring is a cycle of n transactions, each of which read what the one before it wrote.
func ring(n int) script.Script {
	initial, coverage := record.InitialAbsent, record.CoverageComplete
	s := script.Script{Header: record.Header{Initial: &initial, Coverage: &coverage}, Txns: make([]record.Transaction, n)}
	key := func(i int) string { return fmt.Sprintf("k%d", i) }
	for i := range n {
		before := (i + n - 1) % n
		s.Txns[i] = record.Transaction{DB: record.DefaultDB, Session: fmt.Sprintf("s%d", i), ID: fmt.Sprintf("T%d", i), Ops: []record.Op{
			{Kind: record.Write, Key: key(i), Value: record.Int(int64(i + 1))},
			{Kind: record.Read, Key: key(before), Value: record.Int(int64(before + 1))}}}
	}
	return s
}

// A cycle as long as a window is told: by its right name, with all of its
// transactions as evidence, in words that somebody can read.
func TestLongCycles(t *testing.T) {
	long := 55_000
	if race.Brief() {
		long = 12_000
	}
	for level, n := range map[verdict.Level]int{verdict.RC: 6000, verdict.PC: 6000, verdict.SER: long} {
		s := ring(n)
		vs := engine(s.Header, s.Txns, level)[0].Violations
		if len(vs) != 1 {
			t.Fatalf("%v: %d violations", level, len(vs))
		}
		ctx := context(s, level)
		ctx.Judge, ctx.Find = engineJudge, engineFind
		a, err := alerts.New(vs[0], ctx)
		if err != nil {
			t.Fatalf("%v: %v", level, err)
		}
		if a.Name != "circular-information-flow" || a.Adya != "G1c" || len(a.Transactions) != n || len(a.Cycle) != n || len(a.Evidence) != n+1 || len(a.Keys) != alerts.KeysMax {
			t.Errorf("%v: %s (%s) of %d transactions, %d edges, %d records, %d keys", level, a.Name, a.Adya, len(a.Transactions), len(a.Cycle), len(a.Evidence), len(a.Keys))
		}
		if size := len(a.Summary) + len(a.Explanation); size > 10_000 || size < 1000 {
			t.Errorf("%v: %d bytes of explanation", level, size)
		}
	}
}
