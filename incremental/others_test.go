package incremental_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/isowatch/isowatch/incremental"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/oracle/script"
	"github.com/isowatch/isowatch/internal/lab/oracle/tiny"
	"github.com/isowatch/isowatch/internal/lab/race"
)

// An edge of a read that several transactions may be the source of has a cycle for
// each of the others: it closes, it is about that one, and with all of them and the
// edge's own writer there is nobody else who wrote the value.
func TestOthers(t *testing.T) {
	n := uint64(race.Few(3000, 6000))
	told, untold, initial := 0, 0, 0
	for seed := range n {
		rng := rand.New(rand.NewPCG(seed, 31))
		s := tiny.Random(rng, tiny.Config{Txns: 7, Duplicates: true, Aborted: true, Times: seed%2 == 0, Mutations: 2, Updates: 30})
		o := record.Assumptions{}.Override(s.Header)
		e := incremental.New(incremental.Options{Levels: []verdict.Level{[3]verdict.Level{verdict.PC, verdict.SI, verdict.SER}[seed%3]},
			Assumptions: o})
		for i := range s.Txns {
			e.Step(&s.Txns[i], 0)
		}
		for _, v := range e.Close()[0].Violations {
			for _, ed := range slices.Concat(append(v.Cases, v.Cycle)...) {
				if ed.Why != verdict.ByElimination {
					continue
				}
				if len(ed.Others) == 0 {
					untold++
					continue
				}
				told++
				writers := []verdict.TxnID{ed.From}
				for _, c := range ed.Others {
					if !closes(c) {
						t.Errorf("seed %d: %+v does not close", seed, c)
					}
					if w, ok := other(c, ed); ok {
						writers = append(writers, w)
					} else {
						initial++
					}
				}
				slices.Sort(writers)
				if want := sources(s.Txns, ed.To, ed.Key); !slices.Equal(writers, want) {
					t.Errorf("seed %d: told of %v, %v may have written %s", seed, writers, want, ed.Key)
				}
			}
		}
		if t.Failed() {
			t.Fatalf("seed %d:\n%s", seed, script.Format(s))
		}
	}
	if told == 0 || untold > told || initial == 0 && !race.Brief() {
		t.Errorf("%d reads are told with their other candidates, %d of the initial version, %d are not", told, initial, untold)
	}
	t.Logf("%d reads are told with their other candidates, %d of the initial version, %d are not", told, initial, untold)
}

// closes tells whether edges lead around, and those from which orders are known too.
func closes(c []verdict.Edge) bool {
	for i, e := range c {
		if e.To != c[(i+1)%len(c)].From || len(e.Because) > 0 && !closes(e.Because) {
			return false
		}
	}
	return len(c) > 0
}

// other is the writer whom a cycle rules out; false if it is the initial version.
func other(c []verdict.Edge, read verdict.Edge) (verdict.TxnID, bool) {
	switch first := c[0]; {
	case first.Type == verdict.WR && first.To == read.To && first.Key == read.Key:
		return first.From, true
	case first.Type == verdict.RW && first.Why == verdict.ByOrder:
		return first.Because[0].To, true
	}
	return 0, false
}

// sources are the transactions that may have written what the first read of a key
// returned: who wrote that value last, did not abort and is not the reader.
func sources(txns []record.Transaction, reader verdict.TxnID, key string) []verdict.TxnID {
	ops := txns[reader].Ops
	value := ops[slices.IndexFunc(ops, func(op record.Op) bool { return op.Key == key })].Value
	var out []verdict.TxnID
	for i := range txns {
		var last *record.Value
		for j, op := range txns[i].Ops {
			if op.Kind == record.Write && op.Key == key {
				last = &txns[i].Ops[j].Value
			}
		}
		if last != nil && *last == value && txns[i].Status != record.Aborted && verdict.TxnID(i) != reader {
			out = append(out, verdict.TxnID(i))
		}
	}
	return out
}
