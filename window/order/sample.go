package order

import (
	"github.com/cespare/xxhash/v2"

	"github.com/isowatch/isowatch/ingest/record"
)

// levelMax is the greatest level of Sample: one session in 2^16.
const levelMax = 16

// Kept tells whether a session is in the sample of this level: one in 2^level is.
// What a level keeps the lower ones keep. The same for everybody. O(length of
// the name).
func Kept(session string, level uint8) bool {
	return xxhash.Sum64String(session)&(1<<min(level, levelMax)-1) == 0
}

// Sample says that from now on only records of sessions that Kept names are
// taken; 0 means all. What waits already will be handed out. A session that comes back shows a
// Gap, with Sampled.
func (o *Order) Sample(level uint8) { o.level = min(level, levelMax) }

// leaveOut does with a record that is not in the sample what must be done: it
// shows how far its partition is.
func (o *Order) leaveOut(p *partition, s *session, h *record.Head, arrival int64) {
	o.counts.LeftOut++
	switch {
	case !h.HasTimes:
		if !p.timed {
			o.reached(p, arrival, arrival)
		}
	case !o.aheadOf(h.End, arrival):
		p.timed = true
		o.reached(p, h.End, arrival)
	}
	if s == nil {
		return
	}
	s.leftOut = true
	if h.HasSeq {
		s.arrived(h.Seq)
	}
}
