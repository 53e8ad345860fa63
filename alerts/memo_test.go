package alerts_test

import (
	"slices"
	"testing"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/codec"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/oracle/script"
)

// TestNothingIsJudgedTwice: while an alert is made, no history is judged at a level that was
// judged there, and no record is looked up again; what the judge did not know it is asked
// again.
func TestNothingIsJudgedTwice(t *testing.T) {
	for _, history := range []string{
		"s1 T1: w(x,1)\ns2 T2: r(x,1) w(x,2)\ns3 T3: r(x,1) w(x,3)",
		"s1 T1: w(x,1) w(y,1)\ns2 T2: r(x,1) r(y,1) w(x,2)\ns3 T3: r(x,1) r(y,1) w(y,2)",
		"s1 T1: w(x,1) w(y,1)\ns2 T2: w(x,2) w(y,2)\ns3 T3: r(x,2) r(y,1)",
	} {
		s, err := script.Parse(history)
		if err != nil {
			t.Fatal(err)
		}
		v := engine(s.Header, s.Txns, verdict.SER)[0].Violations[0]
		var judged []string
		looked := map[verdict.TxnID]int{}
		shy := true // it does not know the first time that it is asked to make something smaller
		ctx := context(s, verdict.SI, verdict.SER)
		find := ctx.Lookup
		ctx.Lookup = func(id verdict.TxnID) (*record.Transaction, bool) {
			looked[id]++
			return find(id)
		}
		ctx.Judge = func(level verdict.Level, h record.Header, txns []record.Transaction) verdict.Outcome {
			key := codec.AppendHeader([]byte(level.String()), &h)
			for i := range txns {
				key = codec.AppendJSON(key, &txns[i])
			}
			if len(judged) == 1 && shy {
				shy = false
				return verdict.Unknown
			}
			judged = append(judged, string(key))
			return engineJudge(level, h, txns)
		}
		ctx.Find = engineFind
		if _, err := alerts.New(v, ctx); err != nil {
			t.Fatal(err)
		}
		slices.Sort(judged)
		if once := slices.Compact(slices.Clone(judged)); len(once) != len(judged) {
			t.Errorf("%s\n%d judgements of %d histories", history, len(judged), len(once))
		}
		for id, n := range looked {
			if n > 1 {
				t.Errorf("%s\ntransaction %d was looked up %d times", history, id, n)
			}
		}
	}
}
