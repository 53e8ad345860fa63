package order

import (
	"math"
	"time"

	"github.com/isowatch/isowatch/ingest/record"
)

// Options say what may be assumed of the input and how much is kept.
type Options struct {
	// Partitions are those that will be read. Each holds the watermark back
	// until it is heard of. Others join when they are first heard of.
	Partitions []int
	// Lateness bounds the time from a transaction's end until its record is in
	// the log.
	Lateness time.Duration
	// MaxSkew bounds the difference of any two clients' clocks at one instant.
	MaxSkew time.Duration
	// MaxTransaction bounds a transaction's length. Longer ones are flagged
	// Overlong; a session is remembered for so long behind the watermark. 0: no
	// bound, and then sessions are forgotten only for MaxRemembered.
	MaxTransaction time.Duration
	// IdleAfter: see the package documentation. 0: stuck partitions hold the
	// watermark for ever.
	IdleAfter time.Duration
	// MaxAhead bounds how far an end may lie ahead of the record's arrival or
	// of the time of day, whichever is earlier. 0: no bound, as for histories
	// with times of their own.
	MaxAhead time.Duration
	// MaxBuffered bounds the records that wait. 0: no bound.
	MaxBuffered int
	// MaxRemembered bounds the IDs remembered against doubled input: at least
	// the last MaxRemembered/2 and at most MaxRemembered, 17 to 46 bytes each.
	// It bounds idle sessions as well. 0 means DefaultRemembered.
	MaxRemembered int
}

// DefaultRemembered is MaxRemembered where none is given; up to 34 MiB.
const DefaultRemembered = 1 << 20

// Fate is what Add did with a record; a closed set.
type Fate uint8

// The fates.
const (
	// Taken: it will come out of Next.
	Taken Fate = iota
	// Late: it ended before the watermark. It will come out of Next at once.
	Late
	// Duplicate: the same record, by ID and content, came before; dropped.
	Duplicate
	// Contradiction: another record of that ID came before; not taken, a dead
	// letter.
	Contradiction
)

var fateNames = [...]string{"taken", "late", "duplicate", "contradiction"}

func (f Fate) String() string { return fateNames[f] }

// Release is a record in its place in the order.
type Release struct {
	// Txn is the record that was added, or a changed copy of it when
	// TimesDropped or Detached.
	Txn     *record.Transaction
	Arrival int64 // as it was added
	// Partition and Place, which counts the Adds of the partition from 0
	// whatever their fate, say where it came from.
	Partition int
	Place     int64
	// Gap is the hole in the session's sequence just before this record; nil
	// for none.
	Gap *Gap
	// Late: it ended before a watermark that was given out earlier.
	Late bool
	// TimesDropped: it has times that must not be used; HasTimes is false, Start
	// and End are as recorded.
	TimesDropped bool
	// Detached: successors in its session were handed out before it, or may
	// have been. Txn stands in a session of its own, without seq.
	Detached bool
	// Overlong: it lasted longer than MaxTransaction, so that what was
	// concluded from absence may not hold for what it wrote.
	Overlong bool
}

// Gap is a hole in the capture of a session: the records From to To, both
// included, did not arrive in time.
type Gap struct {
	Session  string
	From, To int64
}

// Counts are totals since New.
type Counts struct {
	Added          int64 // calls of Add
	Released       int64 // records that Next gave out
	Duplicates     int64
	Contradictions int64
	Late           int64
	TimesDropped   int64 // Late ones and those Ahead are among them
	Ahead          int64 // ended later than their arrival allows
	Overlong       int64
	Detached       int64
	Skipped        int64 // partitions that the watermark passed while they were idle
	Gaps           int64
	Missing        int64 // records in these gaps
	Forced         int64 // left early because the buffer was full
}

// none is the time before all times: nothing is known yet.
const none = math.MinInt64

// add and sub saturate, so that absurd times in the input stay absurd rather
// than wrap around. none stays none.
func add(t int64, d int64) int64 {
	s := t + d
	switch {
	case t == none:
		return none
	case d > 0 && s < t:
		return math.MaxInt64
	case d < 0 && s > t:
		return none + 1
	}
	return s
}

func sub(t int64, d int64) int64 { return add(t, -max(d, none+1)) }
