package alerts

import (
	"github.com/isowatch/isowatch/alerts/list"
	"github.com/isowatch/isowatch/alerts/shrink"
	"github.com/isowatch/isowatch/ingest/record"
)

// writers say what some transactions, of whatever outcome, wrote.
type writers struct {
	elements map[record.Cell]int // how many operations append it
	appends  map[string]int      // by key, how many operations append to it
	written  map[string]bool     // keys that are written in another way
}

func writersOf(txns []record.Transaction) writers {
	w := writers{elements: map[record.Cell]int{}, appends: map[string]int{}, written: map[string]bool{}}
	for i := range txns {
		for _, op := range txns[i].Ops {
			switch op.Kind {
			case record.Write:
				w.written[op.Key] = true
			case record.Append:
				w.elements[op.Cell()]++
				w.appends[op.Key]++
			}
		}
	}
	return w
}

// complete adds to the operations that are kept of txns every write that one of
// the reads that are kept may have come from. Of a transaction that wrote a key
// it keeps all writes of it or none, so that none passes for its last one and
// what it appended stays in one piece. An element that one operation alone
// appends may go without, as if somebody who was not recorded had appended it;
// but of each list something must be appended, or nobody knows that it is one. Who
// put back what it had read keeps that read, if others of the value are kept: else
// it would seem to have made the value.
func complete(txns []record.Transaction, keep [][]bool) {
	w := writersOf(txns)
	values, elements, mixed := map[record.Cell]bool{}, map[record.Cell]bool{}, map[string]bool{}
	bare := map[string]bool{} // lists that are read
	for i := range txns {
		for j, op := range txns[i].Ops {
			switch {
			case !keep[i][j] || op.Kind != record.Read:
			case w.appends[op.Key] == 0:
				values[op.Cell()] = true
			default:
				es, ok := list.Elements(op.Value)
				mixed[op.Key] = mixed[op.Key] || !ok || w.written[op.Key]
				bare[op.Key] = true
				for _, e := range es {
					elements[record.Cell{Key: op.Key, Value: e}] = true
				}
			}
		}
	}
	needed := func(op record.Op) bool {
		switch op.Kind {
		case record.Write:
			return mixed[op.Key] || values[op.Cell()]
		case record.Append:
			return mixed[op.Key] || elements[op.Cell()] && w.elements[op.Cell()] > 1
		}
		return false
	}
	for i := range txns {
		keys := map[string]bool{}
		for j, op := range txns[i].Ops {
			if writes(op) && (keep[i][j] || needed(op)) {
				keys[op.Key] = true
			}
		}
		restore(&txns[i], keep[i], keys, bare)
	}
	for i := range txns {
		keys := map[string]bool{}
		for _, op := range txns[i].Ops {
			if op.Kind == record.Append && bare[op.Key] {
				keys[op.Key] = true
			}
		}
		restore(&txns[i], keep[i], keys, bare)
		for j, op := range txns[i].Ops {
			keep[i][j] = keep[i][j] || values[op.Cell()] && shrink.PutsBack(&txns[i], j)
		}
	}
}

// restore keeps all writes of some keys in a transaction. Lists that are
// appended to there are not bare any more.
func restore(t *record.Transaction, keep []bool, keys, bare map[string]bool) {
	for j, op := range t.Ops {
		if writes(op) && keys[op.Key] {
			keep[j] = true
			if op.Kind == record.Append {
				delete(bare, op.Key)
			}
		}
	}
}
