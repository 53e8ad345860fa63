package store

import (
	"errors"
	"fmt"
	"syscall"
)

// Damage names a record of a store whose bytes are not those that were written.
// It is ErrDamaged.
//
//nolint:errname // it is a finding as often as an error
type Damage struct {
	Kind   string `json:"kind"`           // of record: journal, checkpoint, alert, dead letter, …
	Key    string `json:"record"`         // which one
	File   string `json:"file,omitempty"` // in which file, relative to the store; empty if it is not known
	Offset int64  `json:"offset"`         // where in it, if there is a file
	Why    string `json:"why"`

	// short: a part of what is damaged is missing, as where a file is copied while it grows.
	short bool
	// power: a loss of power explains it, too.
	power bool
}

func (d *Damage) Error() string {
	where := ""
	if d.File != "" {
		where = fmt.Sprintf(" in %s at byte %d", d.File, d.Offset)
	}
	return fmt.Sprintf("%s: %s%s is %s: %s", d.Kind, d.Key, where, ErrDamaged, d.Why)
}

// Is makes every Damage ErrDamaged.
func (d *Damage) Is(target error) bool { return target == ErrDamaged }

// The reasons for which a store can't be used; a closed set, wrapped in errors
// that say what to do.
var (
	// ErrLocked: another process has it open.
	ErrLocked = errors.New("in use by another process")
	// ErrLayout: another version wrote it, in a layout that this one does not read.
	ErrLayout = errors.New("written by another version")
	// ErrForeign: the directory holds something else.
	ErrForeign = errors.New("not an Isowatch store")
	// ErrDamaged: bytes are not those that were written. errors.As with *Damage
	// tells which.
	ErrDamaged = errors.New("damaged")
	// ErrFull: the disk has no room for what is to be written.
	ErrFull = errors.New("no room on the disk")
	// ErrStuck: the database does not come back from a commit, or from closing. It is final for the process.
	ErrStuck = errors.New("the database does not come back: its disk stands still, or it does itself, by a fault of " +
		"Badger's: start the program again; all that was committed is kept")
	// ErrClosed: Close was called.
	ErrClosed = errors.New("store: closed")
)

// errDamaged is what decoders say; whoever knows the record makes a Damage of it.
var errDamaged = errors.New("damaged")

// full makes an error of a full disk ErrFull.
func full(err error) error {
	if err == nil || errors.Is(err, ErrFull) {
		return err
	}
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("%w: %w", ErrFull, err)
	}
	return err
}
