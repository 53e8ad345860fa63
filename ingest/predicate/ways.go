package predicate

import (
	"iter"
	"math/bits"
	"slices"

	"github.com/isowatch/isowatch/ingest/record"
)

// Ways are the histories that this may be, each with other rows that predicate writes hit which the records do not
// name: all subsets of the rows that may match. None if these are more than most, or if it is also unknown what writes
// made of rows. Each is good until the next.
func (h *History) Ways(most int) iter.Seq[[]record.Transaction] {
	type choice struct {
		op    *record.Op
		value map[string]record.Value
		rows  []*row
	}
	txns := slices.Clone(h.Txns)
	var choices []choice
	ways := 1
	for t, a := range h.statements(0) {
		st := a.statement
		if st.op.Kind == record.PredicateRead {
			continue
		}
		if st.isKnown {
			continue
		}
		if st.set != nil && len(*st.set.shape) < len(st.of.columns) {
			return nil
		}
		if &txns[t].Ops[0] == &h.Txns[t].Ops[0] {
			txns[t].Ops = slices.Clone(txns[t].Ops)
		}
		c := choice{op: &txns[t].Ops[a.op], value: st.op.Value.Fields(), rows: st.of.everGiven(h, st.where)}
		if choices, ways = append(choices, c), ways<<min(len(c.rows), bits.UintSize/2); ways > most {
			return nil
		}
	}
	return func(yield func([]record.Transaction) bool) {
		for way := range ways {
			for _, c := range choices {
				hit := []byte{'['}
				for i, r := range c.rows {
					if way>>i&1 == 0 {
						continue
					}
					if len(hit) > 1 {
						hit = append(hit, ',')
					}
					hit = record.AppendJSONString(hit, r.key)
				}
				way >>= len(c.rows)
				c.value[record.Hit] = record.Value{Kind: record.KindList, Text: string(append(hit, ']'))}
				c.op.Value = record.ObjectOf(c.value)
			}
			if !yield(txns) {
				return
			}
		}
	}
}

// everGiven are the rows that may match if predicate writes hit any rows of the table.
func (t *table) everGiven(h *History, p *condition) []*row {
	for _, a := range h.statements(0) {
		if st := a.statement; st.op.Kind == record.PredicateWrite && st.of == t && st.set.matched(p) {
			return t.rows
		}
	}
	return h.mayMatch(t, p)
}
