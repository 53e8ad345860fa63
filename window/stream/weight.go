package stream

import "github.com/isowatch/isowatch/ingest/record"

// Bounds are given in records, and most records are small. So that memory is bounded
// in bytes as well a large one counts as several. What it counts is a function of
// the record alone: segments end at the same records whatever the batches, and after a
// restart.

// opBytes is about what an operation takes besides its texts, in a block and in an engine.
const opBytes = 64

// askedTimes is how often as much as its text what a predicate returned or hit takes, where it is judged: each row is
// read or written then.
const askedTimes = 8

// askedPart is of what part of BytesMax that is in a segment at most where records count alike: one in so many.
const askedPart = 16

// knownBytes is about what a key that is known takes, by the same measure: its last write, and its part of
// a checkpoint.
const knownBytes = 64

// room is what is left of a number of records, which Config gives, while keys are known: what is known takes
// of the room that a segment has, or that one of DefaultSegment has if that is more, down to a fourth of it. It
// changes only when a segment ends, and does not depend on where keys are.
func (s *segments) room(records int) int {
	if s.cfg.Heavy < 0 {
		return records
	}
	all := max(s.cfg.Segment, DefaultSegment)
	known := s.cfg.weighs(s.front.Total() * knownBytes)
	left := min(s.cfg.Segment, max(all-known, all/4))
	return max(1, int(int64(records)*int64(left)/int64(s.cfg.Segment)))
}

// weights are how many records there are, each counted by its weight.
type weights struct {
	all    int // of fed
	begun  int // all, when the segment's own records began
	ticked int // all, at the last tick, or begun
}

// weigh is for how many records t counts.
func (c *Config) weigh(t *record.Transaction) uint32 {
	bytes, asked := opBytes*len(t.Ops), 0
	for i := range t.Ops {
		op := &t.Ops[i]
		bytes += len(op.Key) + len(op.Value.Text) + len(op.Where)
		if keyless(op) {
			asked += len(op.Value.Text)
		}
	}
	if c.Heavy < 0 && c.BytesMax > 0 {
		return uint32(max(1, asked*askedPart*lookMost/c.BytesMax))
	}
	return uint32(c.weighs(bytes + (askedTimes-1)*asked))
}

// weighs is for how many records one of so many bytes counts.
func (c *Config) weighs(bytes int) int {
	heavy := c.Heavy
	switch {
	case heavy < 0:
		return 1
	case heavy == 0:
		heavy = DefaultHeavy
	}
	return max(1, (bytes+heavy-1)/heavy)
}

// add is for all that is appended to fed.
func (s *segments) add(f fed) {
	s.fed = append(s.fed, f)
	s.weight.all += int(f.weight)
}
