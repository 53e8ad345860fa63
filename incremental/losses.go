package incremental

import (
	"slices"
)

// Losses are the times in which records are known to have been lost: spans without
// common points, the earliest first.
type Losses []Span

// Span is from one time to another, both included, in nanoseconds.
type Span struct{ From, To int64 }

// lossesMost bounds the spans that are told apart. Of more, the two earliest are one,
// with what is between them: so less is concluded of what is long ago, and nothing more.
const lossesMost = 64

// Add returns the losses with one more, which lies somewhere between two times. Spans
// less than near apart are made one: if what is asked of is never shorter, that is all
// the same. l must not be used any more. O(spans).
func (l Losses) Add(x Span, near int64) Losses {
	x.To = max(x.From, x.To)
	i := 0
	for i < len(l) && !l[i].near(x, near) && l[i].From < x.From {
		i++
	}
	n := i
	for ; n < len(l) && l[n].near(x, near); n++ {
		x = x.with(l[n])
	}
	l = slices.Replace(l, i, n, x)
	if len(l) > lossesMost {
		l[1] = l[1].with(l[0])
		l = slices.Delete(l, 0, 1)
	}
	return l
}

// Join makes one of two spans, if they are less than near apart.
func (x Span) Join(y Span, near int64) (Span, bool) { return x.with(y), x.near(y, near) }

// near tells whether no more than that is between two spans.
func (x Span) near(y Span, much int64) bool {
	if x.From > y.From {
		x, y = y, x
	}
	return x.To >= y.From || uint64(y.From)-uint64(x.To) < uint64(much)
}

// with is the least span that holds two.
func (x Span) with(y Span) Span { return Span{min(x.From, y.From), max(x.To, y.To)} }

// touch tells whether one of the losses may lie between two times.
func (l Losses) touch(from, to int64) bool {
	i, _ := slices.BinarySearchFunc(l, from, func(x Span, at int64) int {
		if x.To < at {
			return -1
		}
		return 1
	})
	return i < len(l) && l[i].From <= to
}
