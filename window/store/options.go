package store

import (
	"cmp"
	"math"
	"time"

	"github.com/rs/zerolog"
)

// Options of Open.
type Options struct {
	// Path is the directory; it is made if it does not exist.
	Path string
	// Receivers are the names for which outbox entries are made when a notice
	// is committed.
	Receivers []string
	// SyncWrites makes a Commit survive the loss of power.
	SyncWrites bool
	// Retain is for how long entries of the journal that no checkpoint needs are
	// kept, by their Time. 0 means that they go as soon as a file of them can.
	Retain time.Duration
	// MaxBytes bounds what the store takes, in bytes: entries of the journal that
	// no checkpoint needs go, oldest first, until the rest fits. 0 means
	// DefaultMaxBytes. What is needed is kept even beyond.
	MaxBytes int64
	// Reserve is what must be free on the disk, in bytes, for a Commit to be tried:
	// Badger writes through memory maps, and a map that the disk has no room for
	// ends the process. 0 means DefaultReserve.
	Reserve int64
	// Now is the clock that Retain and Expiry.Before are measured by. nil means time.Now.
	Now func() time.Time
	// MaxValue cuts the bytes kept of a dead letter. 0 means DefaultMaxValue.
	MaxValue int
	// MaxDeadLetters and MaxDeadLetterBytes bound the dead letters kept: beyond
	// them the oldest are dropped and counted, but the newest is always kept. 0
	// means the default.
	MaxDeadLetters     int
	MaxDeadLetterBytes int64
	// AtOnce has Open not wait for a store that is in use.
	AtOnce bool
	// Stopping tells whether the process is asked to end; nil: it never is. Then ErrStuck comes sooner.
	Stopping func() bool
	// Logger takes what Badger logs. The zero Logger discards.
	Logger zerolog.Logger

	// For tests: wrap stands before the files, fault before a transaction, and look is when Badger is looked at.
	wrap  func(files) files
	fault func() error
	look  <-chan time.Time
}

// The defaults and limits.
const (
	DefaultMaxValue           = 64 << 10
	DefaultMaxDeadLetters     = 10_000
	DefaultMaxDeadLetterBytes = 64 << 20
	// Forever is a Retain without end.
	Forever         = time.Duration(math.MaxInt64)
	DefaultMaxBytes = 10 << 30
	DefaultReserve  = 64 << 20

	// What callers keep to. LimitBody bounds an alert's body, LimitHandled how many alerts a Commit may say are
	// handled, and how many notices it has, and LimitNotices the bytes of these and of Life, where each of more than
	// 80 kB, which has a file of its own, counts 128: they are one transaction. A pair that is spilled has 64 kB at
	// most.
	LimitBody    = 8 << 20
	LimitHandled = 1 << 10
	LimitNotices = 384 << 10
	// LimitEntry bounds the data of an entry of the journal, LimitCheckpoint a
	// checkpoint.
	LimitEntry      = 256 << 20
	LimitCheckpoint = 1 << 30
	// LimitName bounds the names of sources, receivers and histories and the IDs of
	// alerts: a history's of 1,024 bytes and what is kept beside it under that name and
	// a few bytes more. A key of the database has at most 65,000.
	LimitName = 2 << 10
	// detailMax cuts the reason and the detail of a dead letter.
	detailMax = 4 << 10
)

// WithDefaults fills in what is 0.
func (o Options) WithDefaults() Options {
	o.MaxValue = cmp.Or(o.MaxValue, DefaultMaxValue)
	o.MaxDeadLetters = cmp.Or(o.MaxDeadLetters, DefaultMaxDeadLetters)
	o.MaxDeadLetterBytes = cmp.Or(o.MaxDeadLetterBytes, DefaultMaxDeadLetterBytes)
	o.MaxBytes = cmp.Or(o.MaxBytes, DefaultMaxBytes)
	o.Reserve = cmp.Or(o.Reserve, DefaultReserve)
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// Inlined is what a value of so many bytes takes in a transaction, and of LimitNotices: large ones are elsewhere.
func Inlined(value int) int {
	if value > inlineMax {
		return 128
	}
	return value
}
