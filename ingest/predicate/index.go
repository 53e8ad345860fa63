package predicate

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"sort"

	"github.com/isowatch/isowatch/ingest/record"
)

// index has the versions of a table's rows by the integer in one column.
type index struct {
	entries []entry // by number, then row
	usable  bool    // no version holds anything but an integer or null there
}

type entry struct {
	number int64
	row    int
}

// within are rows of the table, in order, that have all those that ever match the condition among them.
func (t *table) within(p *Predicate) []*row {
	column, low, high, bounded := bounds(p.root)
	if !bounded {
		return t.rows
	}
	x := t.index(column)
	if !x.usable {
		return t.rows
	}
	from := sort.Search(len(x.entries), func(i int) bool { return x.entries[i].number >= low })
	var rows []int
	for _, e := range x.entries[from:] {
		if e.number > high {
			break
		}
		rows = append(rows, e.row)
	}
	slices.Sort(rows)
	rows = slices.Compact(rows)
	out := make([]*row, len(rows))
	for i, r := range rows {
		out[i] = t.rows[r]
	}
	return out
}

// index makes the index of a column when it is first wanted. O(n log n) of the versions.
func (t *table) index(column string) index {
	if x, known := t.indexes[column]; known {
		return x
	}
	x := index{usable: true}
	for i, r := range t.rows {
		for _, v := range r.versions {
			switch c := v.columns[column]; c.Kind {
			case record.KindInt:
				x.entries = append(x.entries, entry{c.Num, i})
			case record.KindNull:
			default:
				x.usable = false
			}
		}
	}
	slices.SortFunc(x.entries, func(a, b entry) int { return cmp.Or(cmp.Compare(a.number, b.number), cmp.Compare(a.row, b.row)) })
	if t.indexes == nil {
		t.indexes = map[string]index{}
	}
	t.indexes[column] = x
	return x
}

// bounds are a column and the integers that it has in every row that matches, from low to high. Of several bounded
// columns it is the one with the fewest integers.
func bounds(n node) (column string, low, high int64, bounded bool) {
	parts := []node{n}
	if j, is := n.(junction); is && !j.or {
		parts = j.parts
	}
	type span struct{ low, high int64 }
	spans := map[string]span{}
	for _, p := range parts {
		c, is := p.(comparison)
		if !is || c.left.column == "" || c.right.column != "" || c.right.constant.Kind != record.KindInt {
			continue
		}
		s, known := spans[c.left.column]
		if !known {
			s = span{math.MinInt64, math.MaxInt64}
		}
		switch k := c.right.constant.Num; c.op {
		case "==":
			s.low, s.high = max(s.low, k), min(s.high, k)
		case "<":
			if k == math.MinInt64 {
				continue // nothing matches; the rows will tell
			}
			s.high = min(s.high, k-1)
		case "<=":
			s.high = min(s.high, k)
		case ">":
			if k == math.MaxInt64 {
				continue
			}
			s.low = max(s.low, k+1)
		case ">=":
			s.low = max(s.low, k)
		default:
			continue
		}
		spans[c.left.column] = s
	}
	width := uint64(math.MaxUint64)
	for _, name := range slices.Sorted(maps.Keys(spans)) {
		s := spans[name]
		w := uint64(s.high) - uint64(s.low)
		if s.high < s.low {
			w = 0
		}
		if !bounded || w < width {
			column, low, high, bounded, width = name, s.low, s.high, true, w
		}
	}
	return column, low, high, bounded
}
