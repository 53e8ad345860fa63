package generate

import (
	"fmt"
	"strconv"

	"github.com/isowatch/isowatch/ingest/record"
)

// rows is the state of Predicates: a table "t" with columns v1 and v2 of integers, of which ranges are read or
// written (BlindW-Pred, Vbox 4.1). The first transaction inserts all rows. Each other one only reads, or only writes:
// every operation is about the rows that have one column within a range, of which there are up to a tenth. A write gives
// both columns of all of them one value each.
type rows struct {
	held   []tuple
	counts [2][]int32 // by column, how many rows hold a value
	loaded bool       // somebody inserts them
}

// tuple is what a row holds. Its columns are 0 until it is there.
type tuple struct {
	columns   [2]int32
	committed int64 // the step of the last write
}

// ask is a condition, and what is given to the rows that match; nothing for a read.
type ask struct {
	column    int
	low, high int32
	set       [2]int32
	hit       []int32 // of a write, once it was executed
}

func newRows(n int) rows {
	return rows{held: make([]tuple, n), counts: [2][]int32{make([]int32, n+1), make([]int32, n+1)}}
}

// asking decides what transaction t asks of the rows.
func (g *Generator) asking(t *running) {
	w, n := &g.rows, len(g.rows.held)
	if t.asks = nil; !w.loaded {
		w.loaded = true
		t.asks = make([]ask, n)
		for i := range t.asks {
			t.asks[i] = ask{set: g.tuple(), hit: []int32{int32(i)}}
			g.ops = append(g.ops, record.Op{Kind: record.Write, Key: rowName(int32(i)), Value: rowValue(t.asks[i].set)})
		}
		return
	}
	reads := g.chance(g.cfg.ReadShare)
	for range g.cfg.Operations {
		a := ask{column: g.rng.IntN(2)}
		a.low = 1 + int32(g.rng.IntN(n))
		left := int32(1 + g.rng.IntN(max(1, n/10)))
		for a.high = a.low; int(a.high) < n; a.high++ {
			if left -= w.counts[a.column][a.high]; left < w.counts[a.column][a.high+1] {
				break
			}
		}
		op := record.Op{Kind: record.PredicateRead, Key: "t", Where: fmt.Sprintf("v%d >= %d && v%d <= %d", a.column+1, a.low, a.column+1, a.high)}
		if !reads {
			op.Kind, a.set = record.PredicateWrite, g.tuple()
		}
		g.ops = append(g.ops, op)
		t.asks = append(t.asks, a)
	}
}

// tuple draws the columns of a row.
func (g *Generator) tuple() [2]int32 {
	n := len(g.rows.held)
	return [2]int32{1 + int32(g.rng.IntN(n)), 1 + int32(g.rng.IntN(n))}
}

func rowName(i int32) string { return "t:" + strconv.Itoa(int(i)) }

func rowValue(columns [2]int32) record.Value {
	return record.Value{Kind: record.KindObject, Text: fmt.Sprintf(`{"v1":%d,"v2":%d}`, columns[0], columns[1])}
}

// query fills in which rows the conditions of transaction t match, now.
func (g *Generator) query(t *running) {
	own := map[int32][2]int32{}
	for i := range t.asks {
		a, op := &t.asks[i], &t.record.Ops[i]
		if op.Kind == record.Write {
			continue
		}
		found, hit := map[string]record.Value{}, []byte{'['}
		for r := range g.rows.held {
			columns, mine := own[int32(r)]
			if !mine {
				columns = g.rows.held[r].columns
			}
			if v := columns[a.column]; v < a.low || v > a.high {
				continue
			}
			if op.Kind == record.PredicateRead {
				found[rowName(int32(r))] = rowValue(columns)
				continue
			}
			if len(hit) > 1 {
				hit = append(hit, ',')
			}
			hit = record.AppendJSONString(hit, rowName(int32(r)))
			a.hit, own[int32(r)] = append(a.hit, int32(r)), a.set
		}
		if op.Kind == record.PredicateWrite {
			found["set"], found[record.Hit] = rowValue(a.set), record.Value{Kind: record.KindList, Text: string(append(hit, ']'))}
		}
		op.Value = record.ObjectOf(found)
	}
}

// overtaken tells whether somebody committed a write of a row that transaction t writes since t's reads.
func (w *rows) overtaken(t *running) bool {
	for _, a := range t.asks {
		for _, r := range a.hit {
			if w.held[r].committed > t.snapshot {
				return true
			}
		}
	}
	return false
}

// happen changes the rows when a transaction takes effect, at a step.
func (w *rows) happen(t *running, step int64) {
	for _, a := range t.asks {
		for _, r := range a.hit {
			h := &w.held[r]
			for c, v := range h.columns {
				if w.counts[c][a.set[c]]++; v != 0 {
					w.counts[c][v]--
				}
			}
			*h = tuple{a.set, step}
		}
	}
}
