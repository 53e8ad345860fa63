package store

import (
	"errors"
	"fmt"

	"github.com/rs/zerolog"
)

// Options of Open.
type Options struct {
	// Path is the directory; it is made if it does not exist. Unused InMemory.
	Path string
	// Receivers are the names for which outbox entries are made when an alert
	// is first committed.
	Receivers []string
	// InMemory keeps nothing on disk.
	InMemory bool
	// SyncWrites makes a Commit survive the loss of power.
	SyncWrites bool
	// MaxValue cuts the bytes kept of a dead letter. 0 means DefaultMaxValue.
	MaxValue int
	// MaxDeadLetters and MaxDeadLetterBytes bound the dead letters kept: beyond
	// them the oldest are dropped and counted, but the newest is always kept. 0
	// means the default.
	MaxDeadLetters     int
	MaxDeadLetterBytes int64
	// Logger takes what Badger logs. The zero Logger discards.
	Logger zerolog.Logger
}

// The defaults and limits.
const (
	DefaultMaxValue           = 64 << 10
	DefaultMaxDeadLetters     = 10_000
	DefaultMaxDeadLetterBytes = 64 << 20

	// LimitMaxValue bounds MaxValue.
	LimitMaxValue = 960 << 10
	// LimitBody bounds an alert's body, LimitBodyInMemory that in a store which
	// is InMemory: Badger has no value log there.
	LimitBody         = 8 << 20
	LimitBodyInMemory = 1<<20 - 64
	// LimitName bounds the names of sources and receivers and the IDs of alerts.
	LimitName = 1 << 10
	// detailMax cuts the reason and the detail of a dead letter.
	detailMax = 4 << 10
)

// WithDefaults fills in what is 0.
func (o Options) WithDefaults() Options {
	if o.MaxValue <= 0 {
		o.MaxValue = DefaultMaxValue
	}
	if o.MaxDeadLetters <= 0 {
		o.MaxDeadLetters = DefaultMaxDeadLetters
	}
	if o.MaxDeadLetterBytes <= 0 {
		o.MaxDeadLetterBytes = DefaultMaxDeadLetterBytes
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
	return nil
}

func checkName(what, name string) error {
	if name == "" || len(name) > LimitName {
		return fmt.Errorf("store: the name of a %s has 1 to %d bytes, not %d", what, LimitName, len(name))
	}
	return nil
}

// The reasons for which a store can't be used; a closed set, wrapped in errors
// that say what to do.
var (
	// ErrLocked: another process has it open.
	ErrLocked = errors.New("in use by another process")
	// ErrNewer: a newer version wrote it.
	ErrNewer = errors.New("written by a newer version")
	// ErrForeign: the directory holds something else.
	ErrForeign = errors.New("not an Isowatch store")
	// ErrClosed: Close was called.
	ErrClosed = errors.New("store: closed")
)
