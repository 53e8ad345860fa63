package segment

import (
	"cmp"
	"math"
	"slices"

	"github.com/isowatch/isowatch/ingest/record"
)

// steps are what is known of all records before some places in the stream, which
// lie some records apart. Cuts are at such places only.
type steps struct {
	size    uint64
	most    int
	list    []step
	now     step // up to here
	unknown []uint64
	untimed []uint64 // positions, the last few
}

// step is what is known of all records before a position.
type step struct {
	pos   uint64
	end   int64 // the greatest end
	count count
}

// count counts transactions that the clock, or anything, can't order: committed
// ones without times and those of unknown outcome.
type count struct{ untimed, unknown uint64 }

// stepsMost is how many places there are in the longest overlap.
const stepsMost = 256

// stepSize is how many records lie between two places where a cut may be.
func stepSize(opt Options) uint64 { return max(1, opt.MaxOverlap/stepsMost) }

func (st *steps) init(opt Options) {
	st.size = stepSize(opt)
	st.reach(opt.MaxOverlap)
	st.now.end = math.MinInt64
	st.list = []step{st.now}
}

// reach says how many records the list goes back at least.
func (st *steps) reach(records uint64) { st.most = int(records/st.size) + 2 }

// forget drops what is before a place, which is the last cut.
func (st *steps) forget(pos uint64) {
	i, _ := slices.BinarySearchFunc(st.list, pos, func(s step, pos uint64) int { return cmp.Compare(s.pos, pos) })
	st.list = append(st.list[:0], st.list[min(i, len(st.list)-1):]...)
}

func (st *steps) down(pos uint64) uint64 { return pos - pos%st.size }

func (st *steps) up(pos uint64) uint64 { return st.down(pos + st.size - 1) }

// add takes in the record at position n.
func (st *steps) add(n uint64, t *record.Transaction) {
	if n%st.size == 0 && n > 0 {
		st.now.pos = n
		if len(st.list) >= 2*st.most {
			st.list = append(st.list[:0], st.list[len(st.list)-st.most:]...)
		}
		st.list = append(st.list, st.now)
	}
	switch {
	case t.Status == record.Aborted:
	case t.Status == record.Unknown:
		st.now.count.unknown++
		st.unknown = noted(st.unknown, n)
	case !t.HasTimes:
		st.now.count.untimed++
		st.untimed = noted(st.untimed, n)
	default:
		st.now.end = max(st.now.end, t.End)
	}
}

// noted appends to a list of which the last strayMost matter.
func noted(list []uint64, pos uint64) []uint64 {
	if len(list) >= 2*strayMost {
		list = append(list[:0], list[len(list)-strayMost:]...)
	}
	return append(list, pos)
}

// at is the last step at or before a position, or the first there is.
func (st *steps) at(pos uint64) step {
	i, ok := slices.BinarySearchFunc(st.list, pos, func(s step, pos uint64) int {
		switch {
		case s.pos < pos:
			return -1
		case s.pos > pos:
			return 1
		}
		return 0
	})
	if !ok {
		i = max(0, i-1)
	}
	return st.list[i]
}

// endsBefore is the latest step in the window before which all ended, and the
// skew passed, before a time.
func (st *steps) endsBefore(bound, skew int64, w window) (step, bool) {
	for i := len(st.list) - 1; i >= 0 && st.list[i].pos >= w.earliest; i-- {
		s := st.list[i]
		if s.pos <= w.latest && s.end <= math.MaxInt64-skew && s.end+skew < bound && s.end > math.MinInt64 {
			return s, true
		}
	}
	return step{}, false
}
