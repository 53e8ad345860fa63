package predicate

import (
	"cmp"
	"iter"
	"maps"
	"math"
	"math/bits"
	"slices"

	"github.com/isowatch/isowatch/ingest/record"
)

// index has versions of a table by the integer that they have in one column: all of them, or those that rows hold now.
type index struct {
	values []int64  // in order, of each version that the table had when this was made
	order  []int32  // these versions
	rank   []int32  // by version: its place there; none: there is nothing in the column
	filled []uint64 // a bit for each of order that is in the index
	more   []int32  // others that are in it: those that came later, or have something else than an integer
}

// later is the rank of a version that has no place in order.
const later = -2

// index makes an empty index of a column. O(n log n) of the contents of rows.
func (t *table) index(column int) *index {
	x := &index{rank: make([]int32, len(t.versions))}
	for n, v := range t.versions {
		x.rank[n] = none
		switch v.at(column).kind {
		case record.KindInt:
			x.order = append(x.order, int32(n))
		case record.KindNull:
		default:
			x.rank[n] = later
		}
	}
	slices.SortFunc(x.order, func(a, b int32) int {
		return cmp.Or(cmp.Compare(t.versions[a].cells[column].num, t.versions[b].cells[column].num), cmp.Compare(a, b))
	})
	for i, n := range x.order {
		x.rank[n] = int32(i)
		x.values = append(x.values, t.versions[n].cells[column].num)
	}
	x.filled = make([]uint64, len(x.order)/64+1)
	return x
}

// isOld tells whether the table has got many more versions since it was made.
func (x *index) isOld(versions int) bool { return versions > len(x.rank)+len(x.rank)/8+64 }

// of is the rank of a version.
func (x *index) of(version int32) int32 {
	if int(version) >= len(x.rank) {
		return later
	}
	return x.rank[version]
}

func (x *index) add(version int32) {
	switch r := x.of(version); r {
	case none:
	case later:
		x.more = append(x.more, version)
	default:
		x.filled[r/64] |= 1 << (r % 64)
	}
}

func (x *index) remove(version int32) {
	switch r := x.of(version); r {
	case none:
	case later:
		i := slices.Index(x.more, version)
		x.more = slices.Delete(x.more, i, i+1)
	default:
		x.filled[r/64] &^= 1 << (r % 64)
	}
}

// within are the versions with an integer from low to high, and some others.
func (x *index) within(low, high int64) iter.Seq[int32] {
	return func(yield func(int32) bool) {
		from, _ := slices.BinarySearch(x.values, low)
		to := len(x.values)
		if high < math.MaxInt64 {
			to, _ = slices.BinarySearch(x.values, high+1)
		}
		for at := from; at < to; at++ {
			word := x.filled[at/64] >> (at % 64) << (at % 64)
			if word == 0 {
				at |= 63
				continue
			}
			if at = at&^63 + bits.TrailingZeros64(word); at >= to {
				break
			}
			if !yield(x.order[at]) {
				return
			}
		}
		for _, n := range x.more {
			if !yield(n) {
				return
			}
		}
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
