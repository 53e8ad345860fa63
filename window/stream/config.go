package stream

import (
	"slices"
	"time"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/predicate"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/record/packed"
	"github.com/isowatch/isowatch/window/frontier"
	"github.com/isowatch/isowatch/window/order"
	"github.com/isowatch/isowatch/window/segment"
)

// Config says what is asked of a History and what it may assume.
type Config struct {
	DB     string // which records of an entry are its
	Levels []verdict.Level

	record.Assumptions // what is unseen is unique as long as UniqueValues holds
	// MaxTransaction bounds the length of a transaction.
	MaxTransaction time.Duration
	// UniqueValues: no two transactions write the same value to the same key.
	UniqueValues bool
	// UniqueAttempts: nor does one write a value that an aborted one wrote.
	UniqueAttempts bool
	// Conflicts is the solver's budget for each tick; 0 means the engine's default.
	Conflicts int
	// Spacing is incremental.Options.Spacing; 0 means the engine's default.
	Spacing int `json:",omitempty"`
	// Steps and BytesMax are those of incremental.Options. What an engine may do is used up
	// to a half before its segment is long enough: then that ends early, so that nothing has to be given up; Whole says
	// that it does so only where something was.
	Steps    int  `json:",omitempty"`
	BytesMax int  `json:",omitempty"`
	Whole    bool `json:",omitempty"`
	// Every is how much time of the records lies between ticks; 0 means
	// DefaultEvery.
	Every time.Duration

	// Segment is how many records an engine takes, besides the overlap, before the
	// next one takes over; Overlap how many the two have in common at least, and half
	// of what they have at most. 0 means the defaults.
	Segment, Overlap int
	// Heavy is of how many bytes of its operations a transaction counts as several, one for each
	// so many, wherever transactions are counted to be bounded: Segment, Overlap, Longest. 0
	// means DefaultHeavy, less than 0 that all count alike.
	Heavy int `json:",omitempty"`
	// Longest is how many records an engine takes at most, the overlap included, where values
	// repeat: then what was read is known only MaxTransaction later, and so the overlap is as long as
	// that, and the segment longer than Segment if it needs to be so that no more than half of it is
	// overlap. 0 means twice Segment.
	Longest int
	// MaxSeeds bounds the keys with which an engine is begun; of a larger frontier
	// a key's versions are taken when the key is first touched, or one of them read. 0 means the
	// default.
	MaxSeeds int
	// MaxKeys bounds the keys of which the last versions are remembered in memory,
	// MaxBytes what they take; MaxSeeds keys stay in any case. 0: no bound. What is beyond it,
	// and beyond what a segment touches, the driver keeps on disk: it stores what Spill gives and
	// answers what Needs asks for. What is found does not depend on it.
	MaxKeys  int
	MaxBytes int64

	// Measure, if it is not nil, is called before each part of the work that takes long
	// at times, and what it returns after it: this package knows no clock.
	Measure func(Part) func() `json:"-"`

	// Predicates, if it is not nil, judges records that have predicates, a part of the history, at several levels:
	// what breaks them is in the results, of which the i-th is of the transactions that find(i) finds, and found is how
	// many rows their statements found. What unasked
	// names (nil: nothing) was not read, as far as is known. It gives no result if it can't judge the predicates: then
	// they are counted.
	Predicates func(records *packed.Records, levels []verdict.Level, under record.Assumptions,
		unasked predicate.Unasked) (results []verdict.Result, find func(i int) Find, found Found) `json:"-"`

	// Stop, if it is not nil, is asked now and then while a tick works, also those of
	// Restore. Once it returns true what is open stays open, and the history is no longer
	// what its records make it: it may be neither asked nor saved any more. For a driver that
	// ends and will begin again from the last checkpoint.
	Stop func() bool `json:"-"`

	// Order are the options of the order; what is in this Config already is taken
	// from here.
	Order order.Options
}

// Part is a part of the work that can't be divided.
type Part uint8

// The parts.
const (
	PartTick    Part = iota // solving what is open
	PartSegment             // ending a segment and beginning the next
)

// measure begins to measure a part, and returns what ends it.
func (c *Config) measure(p Part) func() {
	if c.Measure == nil {
		return func() {}
	}
	return c.Measure(p)
}

// The defaults.
const (
	DefaultEvery    = 250 * time.Millisecond
	DefaultSegment  = 65_536
	DefaultOverlap  = 4_096
	DefaultMaxSeeds = 16_384
	DefaultHeavy    = 1 << 10 // some 14 operations on integers
)

// WithDefaults fills in what is 0.
func (c Config) WithDefaults() Config {
	if c.Every <= 0 {
		c.Every = DefaultEvery
	}
	if c.Segment <= 0 {
		c.Segment = DefaultSegment
	}
	if c.Overlap <= 0 {
		c.Overlap = DefaultOverlap
	}
	if c.Longest <= 0 {
		c.Longest = 2 * c.Segment
	}
	if c.MaxSeeds <= 0 {
		c.MaxSeeds = DefaultMaxSeeds
	}
	c.Order.MaxSkew, c.Order.MaxTransaction, c.Order.Every = time.Duration(c.MaxSkew), c.MaxTransaction, c.Every
	c.Order.Whole = c.Coverage == record.CoverageComplete
	c.Order.Bare = c.bare()
	// Where real time is promised what is out of its place orders less; and who waits for the end waits for no alert.
	c.Order.Prompt = !c.Whole && !slices.ContainsFunc(c.Levels, verdict.Level.RealTime)
	c.Order.Numbered = c.Clock == record.ClockDatabase || c.Clock == record.ClockIgnore ||
		c.Sessions == record.SessionsIgnore
	return c
}

// bare is of how many records with neither seq nor times the order remembers the IDs: of
// those that an engine may have, and of as many as may wait in the order in between. Taken for new, one that comes
// again would be judged beside itself: it missed what it wrote.
func (c Config) bare() int {
	most := max(c.Segment+2*c.Overlap, c.Longest+c.Overlap) + untickedMost
	waiting := c.Order.MaxBuffered
	if waiting <= 0 {
		waiting = waitingMost
	}
	return most + min(waiting, waitingMost)
}

// waitingMost is for how many waiting records bare makes room.
const waitingMost = DefaultSegment

func (c Config) frontier() frontier.Options {
	// As many as an engine is begun with are in memory: see segments.nextSeeds.
	o := frontier.Options{DB: c.DB, MaxSkew: c.MaxSkew, MaxPerKey: perKey, MaxKeys: c.MaxKeys, MaxBytes: c.MaxBytes,
		MinKeys: c.MaxSeeds}
	if o.MaxKeys > 0 {
		o.MaxKeys = max(o.MaxKeys, o.MinKeys)
	}
	return o
}

func (c Config) cutter() segment.Options {
	realTime := !slices.ContainsFunc(c.Levels,
		func(l verdict.Level) bool { return l != verdict.SSER && l != verdict.StrongSI })
	snapshotKeys := 0
	if c.Clock != record.ClockIgnore {
		snapshotKeys = -1 // clocks serve as well, and cost less
	}
	return segment.Options{RealTime: realTime, SnapshotKeys: snapshotKeys, NoClock: c.Clock == record.ClockIgnore,
		MaxSkew: c.MaxSkew, IdleAfter: int64(c.Order.IdleAfter),
		MinOverlap: uint64(c.Overlap), MaxOverlap: 2 * uint64(c.Overlap)}
}
