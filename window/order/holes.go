package order

import "math"

// hole is a place in a session's sequence that was passed over, and what was handed out
// since: it tells whether what fills the hole later contradicts that by its times.
type hole struct {
	from int64 // the least seq that is missing
	low  int64 // the least start handed out behind it, up to the next hole
	// The greatest seq that filled it, and the least start of those that did.
	filled, fills int64
}

// holesMost bounds the holes of a session that are remembered. Of more the two oldest
// are taken for one.
const holesMost = 8

// latest is after all times: nothing has started.
const latest = math.MaxInt64

// begins makes the first of the holes: what is before the session's first record.
func (s *session) begins() {
	if s.holes == nil {
		s.holes = append(s.holes, hole{math.MinInt64, s.low, math.MinInt64, latest})
	}
}

// opened notes a hole at the end of what was handed out of s. O(holesMost).
func (s *session) opened(from int64) {
	s.begins()
	if len(s.holes) == holesMost {
		a, b := &s.holes[0], s.holes[1]
		*a = hole{a.from, min(a.low, b.low), max(a.filled, b.filled), min(a.fills, b.fills)}
		s.holes = append(s.holes[:1], s.holes[2:]...)
	}
	s.holes = append(s.holes, hole{from, latest, math.MinInt64, latest})
}

// holeOf is the last hole that begins no later than seq.
func (s *session) holeOf(seq int64) int {
	i := len(s.holes) - 1
	for i > 0 && s.holes[i].from > seq {
		i--
	}
	return i
}

// started is the least start of what was handed out of s behind seq, or an earlier time. Exact
// for what fills one of the holes that are remembered. O(holesMost).
func (s *session) started(seq int64) int64 {
	if s.holes == nil {
		return s.low
	}
	least, i := int64(latest), s.holeOf(seq)
	for j := i; j < len(s.holes); j++ {
		x := &s.holes[j]
		least = min(least, x.low)
		if j > i || seq < x.filled {
			least = min(least, x.fills)
		}
	}
	return least
}

// goesOn notes the start of a record that is handed out at the end of s.
func (s *session) goesOn(start int64) {
	if n := len(s.holes); n > 0 {
		s.holes[n-1].low = min(s.holes[n-1].low, start)
		return
	}
	s.low = min(s.low, start)
}

// fill notes the start of a record that fills a hole.
func (s *session) fill(seq, start int64) {
	s.begins()
	x := &s.holes[s.holeOf(seq)]
	x.filled, x.fills = max(x.filled, seq), min(x.fills, start)
}

// own is the seq that the record has, the least there is for one very far behind what its
// session had reached when it came.
func (it *item) own() int64 {
	if it.behind == math.MaxUint32 {
		return math.MinInt64
	}
	return it.seq - int64(it.behind)
}

// behind is how far own is behind seq, as far as it can be kept.
func behind(seq, own int64) uint32 {
	return uint32(min(uint64(seq)-uint64(own), math.MaxUint32))
}
