package order

import (
	"math"
	"time"
)

// Options say what may be assumed of the input and how much is kept.
type Options struct {
	// Partitions are those that will be read. Each holds the watermark back
	// until it is heard of. Others join when they are first heard of.
	Partitions []int
	// Lateness bounds the time from a transaction's end until its record is in
	// the log.
	Lateness time.Duration
	// Whole: the input is read from its beginning and every record since is in it, so that a
	// session whose first record has a seq greater than record.SeqFirstMax has lost those
	// before it: a Gap. Otherwise that is where the reader joined.
	Whole bool `json:",omitempty"`
	// MaxSkew bounds the difference of any two clients' clocks at one instant.
	MaxSkew time.Duration
	// MaxTransaction bounds a transaction's length. Longer ones are flagged
	// Overlong, and ticks have patience for so long. Also, a record without times is not sent again later than this
	// after its session was forgotten. 0: no bound.
	MaxTransaction time.Duration
	// IdleAfter: see the package documentation. 0: stuck partitions hold the
	// watermark for ever.
	IdleAfter time.Duration
	// MaxAhead bounds how far an end may lie ahead of the record's arrival or
	// of the time of day, whichever is earlier; where no broker says when it arrived, ahead of all others of its
	// partition (trial.go). 0: no bound.
	MaxAhead time.Duration
	// Prompt: records are handed out before Lateness has passed (mark.go). It follows from what is asked of a
	// history, so it is no part of its identity.
	Prompt bool `json:"-"`
	// Numbered: a session's order is that of its numbers whatever its clock says.
	Numbered bool `json:",omitempty"`
	// MaxBuffered bounds the records that wait, 64 bytes each. What one call
	// after another adds before Next is called comes on top. 0: no bound.
	MaxBuffered int
	// Heavy is of how many bytes (record.Head.Bytes, and what a session takes that it begins) a record
	// counts as several for MaxBuffered, one for each so many. 0: all count alike. It bounds memory only, so it is
	// no part of a history's identity.
	Heavy int `json:"-"`
	// MaxRemembered bounds the IDs remembered against doubled input: at least
	// the last MaxRemembered/2 and at most MaxRemembered, 17 to 46 bytes each. 0
	// means DefaultRemembered.
	MaxRemembered int
	// Bare is of how many records with neither seq nor times the IDs are remembered
	// at least, and at most twice as many, whatever MaxRemembered is: only by its ID is such a record known when it
	// comes again, and who judges them must not have it twice. The memory grows as they come.
	// It follows from what else is asked of a history, so it is no part of its identity.
	Bare int `json:"-"`
	// MaxSessions bounds the sessions remembered besides those of which
	// records wait, sessionBytes each: of those that released nothing while
	// MaxSessions/2 others did it is forgotten where they were. 0 means
	// DefaultSessions.
	MaxSessions int
	// Every is the distance of ticks in the records' time; see Release.Tick. 0:
	// no ticks.
	Every time.Duration
}

// sessionBytes is about what a session takes besides its name.
const sessionBytes = 256

// DefaultRemembered is MaxRemembered where none is given; up to 9 MB.
const DefaultRemembered = 1 << 18

// DefaultSessions is MaxSessions where none is given; up to 16 MB.
const DefaultSessions = 1 << 16

// Fate is what Add did with a record; a closed set.
type Fate uint8

// The fates.
const (
	// Taken: it will come out of Next.
	Taken Fate = iota
	// Late: it came later than Lateness allows. It will come out of Next.
	Late
	// Duplicate: the same record, by ID and content, came before; dropped. No
	// loss.
	Duplicate
	// Contradiction: another record of that ID came before; not taken, a dead
	// letter. A loss.
	Contradiction
	// Stale: it may be one that came before and is no longer remembered. Dropped,
	// for twice the same write would be a false alarm. A loss.
	Stale
	// LeftOut: its session is not in the sample. A loss.
	LeftOut
)

var fateNames = [...]string{"taken", "late", "duplicate", "contradiction", "stale", "left-out"}

func (f Fate) String() string { return fateNames[f] }

// Release is a record in its place in the order.
type Release struct {
	// Ref is what the record was added under.
	Ref uint64
	// Key is its place: its end, or what stands for it, in nanoseconds of the
	// records' clocks. Keys never fall, but for what is Late or Passed and for records that left
	// early because the buffer was full.
	Key int64
	// Own is the record's session, Session the one to use: that, or one of its own when
	// Detached. Neither is part of the caller's bytes.
	Own, Session string
	// TickAt, if Tick, is the time to tell the engine before this record: all
	// that ended before it and is not Late has been handed out, and so has whatever any who was due before
	// it can have read from, whatever the clocks. It may be less than what was told before.
	// Silent: it is to be told twice, as a whole slot of Every went by without a record.
	TickAt       int64
	Tick, Silent bool
	// Gap is the hole in the session's sequence just before this record; nil
	// for none. What is missing before the session's first record, with Whole, is one. A loss.
	Gap *Gap
	// Forgotten: what left before of the session, if anything, is forgotten
	// (MaxSessions), so there may be a hole before this record; with Whole, also if it is
	// nothing that left and the hole is before the first. A loss.
	Forgotten bool
	// Late: it came later than Lateness allows. What was concluded before from
	// the absence of what it wrote may not hold: a loss, unless it is Passed.
	Late bool
	// Passed: others that ended later were handed out before it; it came in time as far as its partition shows. That is
	// as it came behind more than the mark waits for, or, of one that is also Late, as its partition was silent and
	// the watermark passed it meanwhile. Nothing was concluded from absence without it: no loss. But it is behind its
	// place.
	Passed bool
	// TimesDropped: it has times that must not be used to place it. Of one that is Late package stream gives them
	// to the engine all the same, unless it Contradicts and a level has real time. No loss.
	TimesDropped bool
	// Contradicts: TimesDropped, as by its times it started after a successor in its session had
	// started that was handed out before it. They must not be used even where those of a
	// late record are.
	// Or it is late, and started before its predecessor in the session had ended.
	Contradicts bool
	// Untimely: TimesDropped, or Passed, or it ended before Key, and counts as one that ended
	// then: what it precedes by the clock may not be seen. No loss.
	Untimely bool
	// Detached: successors in its session were handed out before it, or may
	// have been. It stands in a session of its own, without seq. No loss by
	// itself.
	Detached bool
	// Misnumbered: Detached as its seq contradicts both when it came and the clocks: it came after a record
	// of its session with a greater one, or the same, and began after that had ended. Or it contradicts the clock, no
	// broker says when it came, and neither is believed. No loss by itself.
	Misnumbered bool
	// Overlong: it lasted longer than MaxTransaction, so that what was
	// concluded from absence may not hold for what it wrote. A loss.
	Overlong bool
}

// Loses tells whether records are missing around this one, or what was concluded
// from their absence may be wrong.
func (r *Release) Loses() bool {
	return r.Gap != nil || r.Forgotten || r.Late && !r.Passed || r.Overlong
}

// Gap is a hole in the capture of a session: the records From to To, both
// included, did not arrive in time.
type Gap struct {
	Session  string
	From, To int64
	// Sampled: the session was left out of the sample for a while, or, if this is what is before
	// its first record, may have been.
	Sampled bool
}

// Counts are totals since New; Restore goes on with those of the snapshot.
type Counts struct {
	Added          int64 // calls of Add
	Released       int64 // records that Next gave out
	Duplicates     int64
	Contradictions int64
	Stale          int64
	LeftOut        int64
	Late           int64
	TimesDropped   int64 // Late, Ahead and SteppedBack ones are among them
	Ahead          int64 // ended later than their arrival allows
	SteppedBack    int64 // ended so long before their session's previous one that they would be Late
	Overlong       int64
	Detached       int64
	Forgotten      int64 // releases that are so flagged
	Sessions       int64 // sessions forgotten
	Skipped        int64 // partitions that were given up as they were idle
	Gaps           int64
	Missing        int64 // records in these gaps
	Forced         int64 // left early because the buffer was full
	Misnumbered    int64 // they are Detached
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
