package generate

import (
	"fmt"
	"strconv"

	"github.com/isowatch/isowatch/ingest/record"
)

// rows is the state of Predicates: a table "t" with columns v1 and v2 of integers, of which ranges are read or
// written (BlindW-Pred, Vbox 4.1). The first transaction inserts all rows. An operation is about the rows that have one
// column within a range, of which there are up to a tenth: it reads them, or gives both columns of all of them one
// value each, or deletes them. With Config.Rows some are about one row.
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

// ask is a condition, or a row, and what is given to the rows that match: nothing for a read, zeros for a delete.
type ask struct {
	column    int
	low, high int32
	set       [2]int32
	hit       []int32 // of a write, once it was executed; the one row
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
	for _, s := range g.drawer.Draw() {
		a, op := ask{}, record.Op{Kind: s.Kind}
		if s.Range == 0 {
			a.hit, op.Key = []int32{int32(s.Item)}, rowName(int32(s.Item))
		} else {
			a.column, a.low = s.Column, int32(s.Item)
			left := int32(s.Range)
			for a.high = a.low; int(a.high) < n; a.high++ {
				if left -= w.counts[a.column][a.high]; left < w.counts[a.column][a.high+1] {
					break
				}
			}
			op.Key, op.Where = "t", fmt.Sprintf("v%d >= %d && v%d <= %d", a.column+1, a.low, a.column+1, a.high)
		}
		if s.Kind != record.Read && s.Kind != record.PredicateRead && !s.Delete {
			a.set = g.tuple()
		}
		if s.Kind == record.Write {
			op.Value = rowValue(a.set)
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

// rowValue is what a row holds; Null where it is not there.
func rowValue(columns [2]int32) record.Value {
	if columns == [2]int32{} {
		return record.Null
	}
	return record.Value{Kind: record.KindObject, Text: fmt.Sprintf(`{"v1":%d,"v2":%d}`, columns[0], columns[1])}
}

// query fills in what transaction t reads, and which rows its conditions match, now.
func (g *Generator) query(t *running) {
	own := map[int32][2]int32{}
	holds := func(r int32) [2]int32 {
		if columns, mine := own[r]; mine {
			return columns
		}
		return g.rows.held[r].columns
	}
	for i := range t.asks {
		a, op := &t.asks[i], &t.record.Ops[i]
		switch op.Kind {
		case record.Read:
			op.Value, a.hit = rowValue(holds(a.hit[0])), nil
			continue
		case record.Write:
			own[a.hit[0]] = a.set
			continue
		}
		found, hit := map[string]record.Value{}, []byte{'['}
		for r := range int32(len(g.rows.held)) {
			columns := holds(r)
			if v := columns[a.column]; v < a.low || v > a.high {
				continue
			}
			if op.Kind == record.PredicateRead {
				found[rowName(r)] = rowValue(columns)
				continue
			}
			if len(hit) > 1 {
				hit = append(hit, ',')
			}
			hit = record.AppendJSONString(hit, rowName(r))
			a.hit, own[r] = append(a.hit, r), a.set
		}
		if op.Kind == record.PredicateWrite {
			found[record.Hit] = record.Value{Kind: record.KindList, Text: string(append(hit, ']'))}
			if found["set"] = rowValue(a.set); found["set"].IsNull() {
				delete(found, "set")
				found["delete"] = record.Value{Kind: record.KindBool, Text: "true"}
			}
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
