package stream

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/window/order"
)

// What was forgotten long ago of a key, common values or what a predicate may have written, hides no lost update of
// values that were written since; nor that what somebody aborted wrote was read, unless that may be what the predicate
// wrote: aborted attempts are made again.
func TestForgottenBlindsNobody(t *testing.T) {
	const every, lost = int64(10 * time.Millisecond), 3100
	write := func(key string, v record.Value) record.Op { return record.Op{Kind: record.Write, Key: key, Value: v} }
	byPredicate := func(members map[string]record.Value) record.Op {
		members["set"] = record.Int(1)
		return record.Op{Kind: record.PredicateWrite, Key: "t", Value: record.ObjectOf(members)}
	}
	hit := map[string]record.Value{record.Hit: {Kind: record.KindList, Text: `["x"]`}}
	for name, first := range map[string][]record.Op{ // of two transactions in a row
		"nothing":                     nil,
		"null twice":                  {write("x", record.Null)},
		"zero twice":                  {write("x", record.Int(0))},
		"hit by a predicate":          {byPredicate(hit)},
		"perhaps hit by a predicate":  {byPredicate(map[string]record.Value{})},
		"another one hit, and a null": {write("y", record.Null), byPredicate(hit)},
	} {
		for i, coverage := range []record.Coverage{record.CoverageComplete, record.CoveragePartial, record.CoverageComplete, record.CoveragePartial} {
			attempts, want := i < 2, 2
			if strings.Contains(name, "hit") && !attempts {
				want = 1
			}
			h := New(Config{DB: "d", Levels: []verdict.Level{verdict.SI}, Assumptions: record.Assumptions{Clock: record.ClockPrune, Sessions: record.SessionsKeep, Initial: record.InitialZero, Coverage: coverage}, MaxTransaction: 2 * time.Second, UniqueValues: true, UniqueAttempts: attempts, Segment: 256, Overlap: 64, Every: 250 * time.Millisecond, Order: order.Options{Lateness: 100 * time.Millisecond}})
			found := 0
			for i := range int64(4000) {
				at := 1_700_000_000_000_000_000 + i*every
				x := record.Transaction{DB: "d", ID: fmt.Sprint(i), Session: fmt.Sprint("s", i%8), Seq: i / 8, HasSeq: true, HasTimes: true, Start: at - 1000, End: at,
					Ops: []record.Op{write(fmt.Sprint("z", i%20), record.Int(i+1))}}
				switch i {
				case 31, 32:
					x.Ops = append(x.Ops, first...)
				case lost - 100:
					x.Ops = append(x.Ops, write("x", record.Int(5)))
				case lost, lost + 1:
					x.Start = at - 5*every
					x.Ops = append(x.Ops, record.Op{Kind: record.Read, Key: "x", Value: record.Int(5)}, write("x", record.Int(i)))
				case lost + 100:
					x.Status, x.Ops = record.Aborted, []record.Op{write("x", record.Int(7))}
				case lost + 101:
					x.Ops = append(x.Ops, record.Op{Kind: record.Read, Key: "x", Value: record.Int(7)})
				}
				h.Take(&Entry{Number: uint64(i), Time: at, Partitions: 1, Batch: batchOf(0, i, []record.Transaction{x})})
				for more := true; more; {
					more = h.Run(100)
					found += len(h.Found())
				}
			}
			if found != want || h.Stats().Segments < 10 {
				t.Errorf("%s, coverage %v, attempts %v: %d found in %d segments", name, coverage, attempts, found, h.Stats().Segments)
			}
		}
	}
}
