package segment

import (
	"cmp"
	"slices"
)

// session is what is known of one.
type session struct {
	name  string
	first uint64 // position of its first record, which tells it from others
	last  uint64 // after the position of its last record
	seen  int64  // its greatest end, or arrival
	end   int64  // its greatest end, if timed
	timed bool
	// fenced and snapped: all before that position is proved, by a fence or a
	// snapshot of the session, to precede what it does from now on. partial: but
	// for some keys.
	fenced, snapped uint64
	partial         bool
	marks           []mark // its fences, oldest first
}

// mark is a fence of a session.
type mark struct {
	place uint64 // in the chain
	pos   uint64
	next  uint64 // position of what the session did next, 0 if it did nothing yet
}

// marksMost bounds the marks of a session. Of more every second goes.
const marksMost = 8

type sessions struct {
	by map[string]*session
	// gone is after the last record of those that were given up to make room.
	gone uint64
}

func (ss *sessions) init() { ss.by = map[string]*session{} }

// of is the session of that name, whose record at n is at hand.
func (ss *sessions) of(name string, n uint64, most int) *session {
	s := ss.by[name]
	if s == nil {
		if len(ss.by) >= most {
			ss.halve()
		}
		s = &session{name: name, first: n, seen: -1 << 63, end: -1 << 63}
		ss.by[name] = s
	}
	if m := len(s.marks); m > 0 && s.marks[m-1].next == 0 {
		s.marks[m-1].next = n
	}
	return s
}

// sorted are the sessions in the order of their first records.
func (ss *sessions) sorted() []*session {
	all := make([]*session, 0, len(ss.by))
	for _, s := range ss.by {
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b *session) int { return cmp.Compare(a.first, b.first) })
	return all
}

// halve gives up the half of the sessions that were silent longest.
func (ss *sessions) halve() {
	all := ss.sorted()
	slices.SortStableFunc(all, func(a, b *session) int { return cmp.Compare(b.last, a.last) })
	for _, s := range all[len(all)/2:] {
		ss.gone = max(ss.gone, s.last)
		delete(ss.by, s.name)
	}
}

// forget gives up sessions that were silent since before some time and whose
// records are all before some position.
func (ss *sessions) forget(since int64, from uint64) {
	for name, s := range ss.by {
		if s.seen < since && s.last <= from {
			delete(ss.by, name)
		}
	}
}

// proved adds a fence, if it is the session's last one.
func (s *session) proved(m mark) {
	if n := len(s.marks); n > 0 && (s.marks[n-1].place >= m.place || s.marks[n-1].pos >= m.pos) {
		return
	}
	if len(s.marks) == marksMost {
		kept := s.marks[:0]
		for i := 1; i < marksMost; i += 2 {
			kept = append(kept, s.marks[i])
		}
		s.marks = kept
	}
	s.marks = append(s.marks, m)
}
