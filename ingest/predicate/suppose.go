package predicate

import (
	"cmp"
	"maps"
	"slices"

	"github.com/isowatch/isowatch/ingest/record"
)

// supposeMax is how many rows are looked at to suppose what predicate writes hit.
const supposeMax = 1 << 26

// suppose runs the history in the order of its ends, and notes which rows its predicate writes would hit, and what they would
// make of them, where the records don't say it. It stops where a row can't be compared.
func (x *expansion) suppose() {
	if !slices.ContainsFunc(x.txns, func(t record.Transaction) bool {
		return slices.ContainsFunc(t.Ops, func(op record.Op) bool { return op.Kind == record.PredicateWrite })
	}) {
		return
	}
	order := make([]int, len(x.txns))
	for i := range order {
		order[i] = i
	}
	if !slices.ContainsFunc(x.txns, func(t record.Transaction) bool { return !t.HasTimes }) {
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(x.txns[a].End, x.txns[b].End) })
	}
	x.supposed = map[*record.Op]map[string]record.Value{}
	state, looked := map[string]record.Value{}, 0
	for _, i := range order {
		t := &x.txns[i]
		own := map[string]record.Value{} // what it wrote, or saw
		var wrote []string
		for j := range t.Ops {
			op := &t.Ops[j]
			switch op.Kind {
			case record.Read, record.Write:
				own[op.Key] = op.Value
				if op.Kind == record.Write {
					wrote = append(wrote, op.Key)
				}
			case record.PredicateWrite:
				c, err := changeOf(op)
				if err != nil {
					return
				}
				if !c.isKnown {
					for _, r := range x.tables[op.Key].rows {
						if looked++; looked > supposeMax {
							return
						}
						match, err := x.conditions[op.Where].Match(current(state, own, r.key))
						if err != nil {
							return
						}
						if match {
							c.hit = append(c.hit, r.key)
						}
					}
				}
				made := map[string]record.Value{}
				for _, key := range c.hit {
					made[key] = merged(current(state, own, key), c.set)
					own[key] = made[key]
					wrote = append(wrote, key)
				}
				x.supposed[op] = made
			}
		}
		if t.Status == record.Aborted {
			continue
		}
		for _, key := range wrote {
			state[key] = own[key]
		}
	}
}

// current is a row as a transaction finds it.
func current(state, own map[string]record.Value, key string) record.Value {
	if v, is := own[key]; is {
		return v
	}
	return state[key]
}

// merged is a row of which some columns are set; null is deleted.
func merged(row, set record.Value) record.Value {
	if set.IsNull() {
		return set
	}
	columns := row.Fields()
	if columns == nil {
		columns = map[string]record.Value{}
	}
	maps.Copy(columns, set.Fields())
	return record.ObjectOf(columns)
}
