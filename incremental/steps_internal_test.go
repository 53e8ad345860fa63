package incremental

import (
	"fmt"
	"testing"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
)

// rereadHot makes transactions of 8 sessions that write one key blindly, each value four times within a while,
// and every tenth of which reads it. Four overlap at a time.
func rereadHot(n int) []record.Transaction {
	out := make([]record.Transaction, n)
	last := record.Int(0)
	for i := range out {
		end := int64(i+1) * 1000
		out[i] = record.Transaction{Session: fmt.Sprint("s", i%8), Seq: int64(i / 8), HasSeq: true, ID: fmt.Sprint(i), Status: record.Committed,
			HasTimes: true, Start: end - 3500, End: end}
		if i%10 == 9 {
			out[i].Ops = []record.Op{{Kind: record.Read, Key: "hot", Value: last}}
			continue
		}
		last = record.Int(int64(i/20*5 + i%5))
		out[i].Ops = []record.Op{{Kind: record.Write, Key: "hot", Value: last}}
	}
	return out
}

// What a read with several possible writers costs depends on those that are concurrent with it, and not on
// all that ever wrote its key: four times the history is about four times the steps.
func TestChoicesCostWhatIsConcurrent(t *testing.T) {
	for _, level := range []verdict.Level{verdict.SI, verdict.SER, verdict.PC} {
		t.Run(level.String(), func(t *testing.T) {
			steps := func(n int) uint64 {
				e := New(Options{Levels: []verdict.Level{level}})
				for _, x := range rereadHot(n) {
					e.Step(&x, 0)
				}
				if r := e.Close()[0]; r.Outcome != verdict.Satisfied || r.Stats.Choices == 0 {
					t.Fatalf("%v with %d choices", r.Outcome, r.Stats.Choices)
				}
				return e.budget.Used()
			}
			if few, many := steps(1000), steps(4000); many > 6*few {
				t.Errorf("%d steps for 1,000 transactions, %d for 4,000", few, many)
			}
		})
	}
}

// A level that one read breaks by itself is not searched for more: what times alone say of it is not looked
// for without them, and who only asks whether it holds has the answer.
func TestBrokenIsNotSearched(t *testing.T) {
	judged := func(broken, bare bool) (steps uint64, stated int) {
		// Somebody reads what another one is to write, by its clock.
		all := append(rereadHot(1000),
			record.Transaction{Session: "early", ID: "early", HasTimes: true, Start: -20, End: -10, Ops: []record.Op{{Kind: record.Read, Key: "new", Value: record.Int(1)}}},
			record.Transaction{Session: "late", ID: "late", HasTimes: true, Start: 2_000_000, End: 2_000_001, Ops: []record.Op{{Kind: record.Write, Key: "new", Value: record.Int(1)}}})
		if broken {
			all = append(all, record.Transaction{Session: "odd", ID: "odd", Ops: []record.Op{{Kind: record.Read, Key: "odd", Value: record.Int(1)}, {Kind: record.Read, Key: "odd", Value: record.Int(2)}}})
		}
		e := New(Options{Levels: []verdict.Level{verdict.SI}, Bare: bare, MaxViolations: 1})
		for i := range all {
			all[i].HasSeq, all[i].Status = true, record.Committed
			e.Step(&all[i], 0)
		}
		r := e.Close()[0]
		if (r.Outcome == verdict.Violated) != broken {
			t.Fatalf("broken %v: %v", broken, r.Outcome)
		}
		return e.budget.Used(), r.Stats.Residual
	}
	for _, bare := range []bool{false, true} {
		whole, stated := judged(false, bare)
		least, none := judged(true, bare)
		if stated == 0 || none > 0 {
			t.Errorf("bare %v: %d pairs and reads were stated to the solver, and %d where a read breaks the level", bare, stated, none)
		}
		if bare && least > whole/2 {
			t.Errorf("%d steps, and %d where a read breaks the level", whole, least)
		}
	}
}
