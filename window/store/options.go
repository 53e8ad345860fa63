package store

import (
	"cmp"
	"fmt"
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

	// LimitMaxValue bounds MaxValue.
	LimitMaxValue = 960 << 10
	// LimitBody bounds an alert's body.
	LimitBody = 8 << 20
	// LimitNotice bounds a notice's body, LimitLife the state of what decides on
	// them, LimitHandled how much a Commit may say is handled, and LimitNotices the
	// bytes of its notices and of Life, where each of more than 80 kB, which has a
	// file of its own, counts 128: they are one transaction.
	LimitNotice  = 16 << 20
	LimitLife    = 32 << 20
	LimitHandled = 1 << 10
	LimitNotices = 384 << 10
	// LimitEntry bounds the data of an entry of the journal, LimitCheckpoint a
	// checkpoint, LimitSpill a key and its value that are spilled.
	LimitEntry      = 256 << 20
	LimitCheckpoint = 1 << 30
	LimitSpill      = 64 << 10
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

// Validate tells what no store takes.
func (o Options) Validate() error {
	if o.MaxValue > LimitMaxValue {
		return fmt.Errorf("store: MaxValue %d is more than %d", o.MaxValue, LimitMaxValue)
	}
	for _, r := range o.Receivers {
		if err := checkName("receiver", r); err != nil {
			return err
		}
	}
	return nil
}

// Validate tells what no store takes. A Commit that is not valid is not
// committed at all.
func (c Commit) Validate() error {
	for source, parts := range c.Offsets {
		if err := checkName("source", source); err != nil {
			return err
		}
		for p := range parts {
			if p < 0 || p > 1<<31-1 {
				return fmt.Errorf("store: source %q has no partition %d", source, p)
			}
		}
	}
	for _, a := range c.Alerts {
		if err := checkName("alert", a.ID); err != nil {
			return err
		}
		if len(a.Body) > LimitBody {
			return fmt.Errorf("store: alert %s has a body of %d bytes; at most %d can be kept", a.ID, len(a.Body), LimitBody)
		}
	}
	if err := c.validateNotices(); err != nil {
		return err
	}
	for i, e := range c.Journal {
		if i > 0 && e.Number <= c.Journal[i-1].Number {
			return fmt.Errorf("store: journal entry %d follows %d in one commit; numbers ascend", e.Number,
				c.Journal[i-1].Number)
		}
		if len(e.Data) > LimitEntry {
			return fmt.Errorf("store: journal entry %d has %d bytes; at most %d can be kept", e.Number, len(e.Data), LimitEntry)
		}
	}
	for _, db := range c.Forget {
		if err := checkName("history", db); err != nil {
			return err
		}
	}
	for db := range c.Written {
		if err := checkName("history", db); err != nil {
			return err
		}
	}
	for db, data := range c.Checkpoints {
		if err := checkName("history", db); err != nil {
			return err
		}
		if len(data) > LimitCheckpoint {
			return fmt.Errorf("store: the checkpoint of %q has %d bytes; at most %d can be kept", db, len(data), LimitCheckpoint)
		}
	}
	return nil
}

func (c Commit) validateNotices() error {
	bytes := Inlined(len(c.Life))
	if len(c.Life) > LimitLife {
		return fmt.Errorf("store: the state of alerts has %d bytes; at most %d can be kept", len(c.Life), LimitLife)
	}
	for _, n := range c.Notices {
		if err := checkName("notice", n.ID); err != nil {
			return err
		}
		if len(n.Body) > LimitNotice {
			return fmt.Errorf("store: notice %s has a body of %d bytes; at most %d can be kept", n.ID, len(n.Body), LimitNotice)
		}
		bytes += Inlined(len(n.Body))
	}
	if bytes > LimitNotices || len(c.Notices) > LimitHandled {
		return fmt.Errorf("store: %d notices of %d bytes are too many for one commit; at most %d bytes fit", len(c.Notices),
			bytes, LimitNotices)
	}
	if len(c.Handled) > LimitHandled {
		return fmt.Errorf("store: %d alerts are handled in one commit; at most %d can be", len(c.Handled), LimitHandled)
	}
	for _, h := range c.Handled {
		if err := checkName("alert", h.ID); err != nil {
			return err
		}
	}
	return nil
}

// Inlined is what a value of so many bytes takes in a transaction, and of LimitNotices: large ones are elsewhere.
func Inlined(value int) int {
	if value > inlineMax {
		return 128
	}
	return value
}

// ValidateSpill tells what no store takes. Such a Spill does nothing.
func ValidateSpill(db string, pairs []KV) error {
	if err := checkName("history", db); err != nil {
		return err
	}
	for _, kv := range pairs {
		if len(kv.Key)+len(kv.Value) > LimitSpill {
			return fmt.Errorf("store: a pair of %d bytes is spilled for %q; at most %d can be kept", len(kv.Key)+len(kv.Value),
				db, LimitSpill)
		}
	}
	return nil
}

func checkName(what, name string) error {
	if name == "" || len(name) > LimitName {
		return fmt.Errorf("store: the name of a %s has 1 to %d bytes, not %d", what, LimitName, len(name))
	}
	return nil
}
