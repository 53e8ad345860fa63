package order

import (
	"math"
)

// forgotten bounds what is not known any more of forgotten sessions.
type forgotten struct {
	any bool
	// low is the least seq that a session was left at: one that begins behind
	// low+1 may be a session that goes on after a hole.
	low int64
	reach
}

// reach has the greatest seq, end and key of some sessions: a record beyond one of
// them is not one of theirs come again.
type reach struct{ seq, end, key int64 }

var (
	reachesNothing   = reach{seq: math.MinInt64, end: none, key: none}
	nothingForgotten = forgotten{low: math.MaxInt64, reach: reachesNothing}
)

// touch notes that s releases a record. A generation ends when half of MaxSessions
// did; who did not in the whole generation before is forgotten. So what is known
// at a release depends on the releases before it and on nothing else. Amortised O(1).
func (o *Order) touch(s *session) {
	if s.generation == o.generation {
		return
	}
	s.generation = o.generation
	if o.fresh++; o.fresh < o.opt.MaxSessions/2 {
		return
	}
	o.generation++
	o.fresh = 0
	crowded := len(o.sessions) > 2*o.opt.MaxSessions // whatever the order of the map
	for _, s := range o.sessions {
		if s.generation+1 < o.generation {
			o.forget(s, crowded)
		}
	}
}

// forget drops what is known of where s was; and s, if nothing of it waits. One
// whose clock was ahead of where the stream is now is kept unless it is crowded: its
// records can't be told by their times.
func (o *Order) forget(s *session, crowded bool) {
	if s.released {
		o.forgot.any = true
		o.counts.Sessions++
		if s.hasSeq {
			o.forgot.low = min(o.forgot.low, s.lastSeq)
		}
		s.released, s.hasSeq, s.leftOut, s.lastStart, s.lastEnd, s.outStart = false, false, false, none, none, none
		s.low, s.holes = latest, nil
	}
	if o.first(s) != nil32 || (s.aheadEnd >= o.watermark && !crowded) {
		return
	}
	// Something of it has left, so forgot.any is set: above, or when that was forgotten, or
	// it was detached for that.
	o.forgot.seq = max(o.forgot.seq, s.maxSeq)
	o.forgot.end = max(o.forgot.end, s.maxEnd, s.aheadEnd)
	o.forgot.key = max(o.forgot.key, s.lastKey)
	delete(o.sessions, s.name)
}

// begin makes a session, which was first seen in this partition.
func (o *Order) begin(name string, partition int32) *session {
	s := &session{name: name, head: nil32, tail: nil32, partition: partition, lastPartition: partition,
		maxSeq: math.MinInt64, topEnd: none, maxStart: none, outStart: none, maxEnd: none, aheadEnd: none,
		floor: o.forgot.reach, lastKey: none, lastStart: none, lastEnd: none, low: latest}
	o.sessions[name] = s
	return s
}
