package order

import (
	"math"

	"github.com/isowatch/isowatch/ingest/record"
)

// bareMax bounds MaxRemembered for records with neither seq nor times, unless Bare
// asks for more. Their IDs are in snapshots.
const bareMax = 1 << 16

// again tells whether a record is new: then where its ID belongs in the memory,
// and Taken. A record that is not found among the remembered IDs may still be one
// that came long ago; isNew must have a proof that it is not.
//
// The remembered IDs only tell Duplicate from Stale, but for three cases: records that
// wait, whose IDs a restored Order has again; bare ones; and a bare one with the ID of one
// that is not. So what is taken is the same without them, and a snapshot need not have
// them; unless one without times comes again so late that beyond takes it for another, or a bare one has the ID of one
// that is not so late that nobody remembers.
func (o *Order) again(p *partition, n int, s *session, h *record.Head, arrival int64) (slot uint64, f Fate) {
	m := o.remembers(h)
	if h.ID != 0 {
		slot, f = m.find(h.ID, h.Content)
		if other := o.others(m); f == Taken && other.has(h.ID) {
			f = Contradiction // one has seq or times, and one has not
		}
	}
	switch {
	case f == Duplicate:
		o.counts.Duplicates++
	case f == Contradiction:
		o.counts.Contradictions++
	case m == &o.bare:
	case !o.isNew(p, n, s, h, arrival):
		o.counts.Stale++
		f = Stale
	}
	return slot, f
}

// remembers is the memory for records such as h.
func (o *Order) remembers(h *record.Head) *memory {
	if h.HasSeq || h.HasTimes {
		return &o.memory
	}
	return &o.bare
}

// others is the memory that m is not.
func (o *Order) others(m *memory) *memory {
	if m == &o.bare {
		return &o.memory
	}
	return &o.bare
}

// remember notes the ID of a new record, whose place again found.
func (o *Order) remember(h *record.Head, ref, slot uint64) {
	if h.ID == 0 {
		return
	}
	if m := o.remembers(h); m.note(h.ID, h.Content, ref, slot) && m == &o.memory {
		for i := range o.partitions {
			p := &o.partitions[i]
			p.gone, p.goneNext = p.goneNext, p.greatest
		}
	}
}

// isNew tells whether it is proved that h, which is not among the remembered,
// never came before. It is, whenever times and seqs are what they should be and the
// record is not Late.
func (o *Order) isNew(p *partition, n int, s *session, h *record.Head, arrival int64) bool {
	switch {
	case s == nil:
		return o.isNewSession(p, h, arrival)
	case h.HasSeq && s.isNew(h.Seq) && (h.Seq > s.floor.seq || o.beyond(&s.floor, p, h, arrival)):
		return true
	case !h.HasTimes || h.End <= s.aheadEnd || h.End <= s.floor.end:
		return false
	case !h.HasSeq && h.End > s.maxEnd:
		return true
	}
	// What has left ended before the mark; what waits is remembered, unless it
	// came before what was forgotten. The partition's own place, which is no less
	// but for what CaughtUp tells, makes it the same in every interleaving.
	return h.ID != 0 && h.End >= max(o.mark, p.place) && h.End > o.gone(p, n, s)
}

// isNewSession is isNew for a record of a session that is not known: it is new
// unless it can be one of a forgotten session.
func (o *Order) isNewSession(p *partition, h *record.Head, arrival int64) bool {
	return !o.forgot.any || (h.HasSeq && h.Seq > o.forgot.seq) || o.beyond(&o.forgot.reach, p, h, arrival)
}

// beyond tells whether h's time is behind all that f covers.
func (o *Order) beyond(f *reach, p *partition, h *record.Head, arrival int64) bool {
	if h.HasTimes {
		return h.End > f.end
	}
	// The one assumption: without times, nothing comes again so long after.
	at, _ := o.clock(p, arrival)
	return sub(at, add(o.delay, int64(o.opt.MaxTransaction))) > f.key
}

// gone is the greatest end of a record of the partitions where s may have been
// that waits perhaps and is no longer remembered.
func (o *Order) gone(p *partition, n int, s *session) int64 {
	if !s.moved && int(s.partition) == n {
		return p.gone
	}
	g := int64(none)
	for i := range o.partitions {
		g = max(g, o.partitions[i].gone)
	}
	return g
}

// windowBits is how many of a session's latest seqs are remembered one by one.
const windowBits = 64

// isNew tells whether no record of this seq came, as far as is known.
func (s *session) isNew(seq int64) bool {
	if seq > s.maxSeq {
		return true
	}
	behind := uint64(s.maxSeq) - uint64(seq)
	return behind < windowBits && s.window>>behind&1 == 0
}

// arrived notes that a record of this seq came.
func (s *session) arrived(seq int64) {
	if seq <= s.maxSeq {
		s.window |= 1 << (uint64(s.maxSeq) - uint64(seq)) // 0 of one too far behind
		return
	}
	// Seqs before the first one to come are new, unless the session may have been
	// forgotten: isNew asks for more then, by its floor.
	s.window = s.window<<(uint64(seq)-uint64(s.maxSeq)) | 1
	s.maxSeq = seq
}

// arrive notes what h, which has its place as it, says about its session.
func (s *session) arrive(h *record.Head, it *item) {
	if s.partition != it.partition {
		s.moved = true
	}
	if h.HasSeq {
		if h.Seq > s.maxSeq {
			s.topEnd = none
			if it.flags&(hasTimes|isVague) == hasTimes {
				s.topEnd = h.End
			}
		}
		s.arrived(h.Seq)
	}
	if it.seq = s.maxSeq; it.flags&(hasSeq|isDetached) == hasSeq {
		it.seq = h.Seq
	} else if h.HasSeq {
		it.behind = behind(it.seq, h.Seq)
	}
	if h.HasSeq && h.HasTimes && it.flags&(isCommitted|isMisnumbered) == isCommitted {
		s.maxStart = max(s.maxStart, h.Start)
	}
	switch {
	case it.flags&isOnTrial != 0:
	case it.flags&isAhead != 0:
		s.aheadEnd = max(s.aheadEnd, h.End)
	case it.flags&hasTimes != 0:
		s.maxEnd = max(s.maxEnd, h.End)
	}
}

// misnumbered tells whether h has a wrong number: it came after one of its session that has a
// greater one, or the same, and by the clocks it began after that had ended. A clock that was set back is no such
// thing, as that changes nothing in how records come; nor is a record that comes late, which began before. Times that
// are on trial say as much as others, as those of a session are of one clock.
func (s *session) misnumbered(h *record.Head, skew int64) bool {
	return s != nil && h.HasSeq && h.HasTimes && h.Seq <= s.maxSeq && s.topEnd != none && h.Start > add(s.topEnd, skew)
}

// runsBack tells whether h, which follows all of its session that came, contradicts their times by its number. Where
// no broker says how records came, the input may be in the order of wrong numbers.
func (s *session) runsBack(h *record.Head) bool {
	return s != nil && h.HasSeq && h.Seq > s.maxSeq && record.RunsBack(h.End, s.maxStart)
}

// followsGreater is runsBack for a record that is handed out, as some that came after it may precede it by seq.
func (s *session) followsGreater(it *item) bool {
	return it.flags&(hasSeq|hasTimes|isVague|isDetached) == hasSeq|hasTimes && record.RunsBack(it.key, s.outStart)
}

// follows tells whether h comes after all of its session that came so far, by seq,
// and yet did not end after them.
func (s *session) follows(h *record.Head) bool {
	return s != nil && h.HasSeq && s.maxSeq != math.MinInt64 && h.Seq > s.maxSeq && h.End <= s.maxEnd
}
