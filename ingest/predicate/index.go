package predicate

import (
	"iter"
	"maps"
	"math"
	"math/bits"
	"slices"

	"github.com/isowatch/isowatch/ingest/record"
)

// index has rows by the integer in one column: of all that they ever hold, or as they are now.
type index struct {
	values []int64   // that versions of the table have there, each once
	rows   [][]int32 // by value; last, those that have another
	filled []uint64  // a bit for each of these that has any
	place  []int32   // by row, where it is in its list; of rows as they are now
}

// index makes an empty index of a column, or none if it holds anything but integers and null. O(n log n) of the
// contents of rows.
func (t *table) index(column int) *index {
	var values []int64
	for _, v := range t.contents {
		switch c := v.at(column); c.kind {
		case record.KindInt:
			values = append(values, c.num)
		case record.KindNull:
		default:
			return nil
		}
	}
	slices.Sort(values)
	values = slices.Compact(values)
	return &index{values: values, rows: make([][]int32, len(values)+1), filled: make([]uint64, len(values)/64+1)}
}

// list is which list has rows with that content; -1: none, as there is nothing in the column.
func (x *index) list(v *version, column int) int {
	c := v.at(column)
	switch {
	case c.kind != record.KindInt:
		return -1
	case c.list > 0:
		return int(c.list) - 1
	}
	i, known := slices.BinarySearch(x.values, c.num)
	if !known {
		i = len(x.values)
	}
	v.cells[column].list = int32(i) + 1
	return i
}

func (x *index) add(row int32, list int) {
	x.rows[list] = append(x.rows[list], row)
	x.filled[list/64] |= 1 << (list % 64)
}

// move puts a row that is in one list, or none (-1), into another.
func (x *index) move(row int32, from, to int) {
	for int(row) >= len(x.place) {
		x.place = append(x.place, 0)
	}
	if from >= 0 {
		rows, at := x.rows[from], x.place[row]
		last := rows[len(rows)-1]
		rows[at], x.place[last] = last, at
		if x.rows[from] = rows[:len(rows)-1]; len(rows) == 1 {
			x.filled[from/64] &^= 1 << (from % 64)
		}
	}
	if to >= 0 {
		x.place[row] = int32(len(x.rows[to]))
		x.add(row, to)
	}
}

// within are the rows with an integer from low to high, and some others. A row with several is there several times.
func (x *index) within(low, high int64) iter.Seq[int32] {
	return func(yield func(int32) bool) {
		from, _ := slices.BinarySearch(x.values, low)
		to, known := slices.BinarySearch(x.values, high)
		if known {
			to++
		}
		give := func(rows []int32) bool {
			for _, r := range rows {
				if !yield(r) {
					return false
				}
			}
			return true
		}
		for at := from; at < to; at++ {
			if at%64 == 0 || at == from {
				word := x.filled[at/64] >> (at % 64) << (at % 64)
				if word == 0 {
					at |= 63
					continue
				}
				at = at&^63 + bits.TrailingZeros64(word)
				if at >= to {
					break
				}
			}
			if !give(x.rows[at]) {
				return
			}
		}
		give(x.rows[len(x.values)])
	}
}

// span is a column and the integers that it has in every row that matches, from low to high.
type span struct {
	of        string
	low, high int64
	isBounded bool
	isAll     bool // every row that has one of them matches
}

// bounds is the span of a condition: of several bounded columns that with the fewest integers.
func bounds(n node) (out span) {
	parts := []node{n}
	if j, is := n.(junction); is && !j.or {
		parts = j.parts
	}
	spans, isAll := map[string]span{}, true
	for _, p := range parts {
		c, is := p.(comparison)
		if !is || c.left.column == "" || c.left.divisor != 0 || c.right.column != "" || c.right.constant.Kind != record.KindInt {
			isAll = false
			continue
		}
		s, known := spans[c.left.column]
		if !known {
			s = span{low: math.MinInt64, high: math.MaxInt64}
		}
		switch k := c.right.constant.Num; c.op {
		case "==":
			s.low, s.high = max(s.low, k), min(s.high, k)
		case "<":
			if k == math.MinInt64 {
				isAll = false
				continue // nothing matches; the rows will tell
			}
			s.high = min(s.high, k-1)
		case "<=":
			s.high = min(s.high, k)
		case ">":
			if k == math.MaxInt64 {
				isAll = false
				continue
			}
			s.low = max(s.low, k+1)
		case ">=":
			s.low = max(s.low, k)
		default:
			isAll = false
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
		if !out.isBounded || w < width {
			out, width = span{name, s.low, s.high, true, isAll && len(spans) == 1}, w
		}
	}
	return out
}
