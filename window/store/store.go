package store

import (
	"context"

	"github.com/isowatch/isowatch/ingest/record"
)

// DeadLetter is a record that could not be used, with the reason.
type DeadLetter struct {
	ID     uint64 // assigned by the store, increasing
	Pos    record.Position
	Reason string // a reject.Reason
	Detail string // the message for a person, naming field and position
	Time   int64  // Unix nanoseconds when it was set aside
	Value  []byte // the bytes as they came, cut at the store's MaxValue
	Size   int    // of the bytes before they were cut
}

// Alert is a raised alert as the outbox sees it.
type Alert struct {
	ID   string
	Body []byte // the JSON of design 2.4
}

// Commit is everything that one batch of input caused.
type Commit struct {
	// Offsets are the next offset per source and partition.
	Offsets     map[string]map[int]int64
	DeadLetters []DeadLetter
	// Alerts that are new are put in the store and in the outbox; one whose ID
	// the store has already only replaces the body.
	Alerts []Alert
}

// Store is implemented by Badger (Open) and by the failing twin in tests.
// Methods are safe for concurrent use.
type Store interface {
	// Offsets returns the stored next offsets of a source by partition; empty
	// when it was never read.
	Offsets(ctx context.Context, source string) (map[int]int64, error)
	// Commit makes c durable, all of it or nothing.
	Commit(ctx context.Context, c Commit) error
	// DeadLetters calls f for each stored dead letter in order of ID, until f
	// returns false.
	DeadLetters(ctx context.Context, f func(DeadLetter) bool) error
	// Alerts calls f for each stored alert in order of ID.
	Alerts(ctx context.Context, f func(Alert) bool) error
	// HasAlert tells whether an alert of that ID was ever committed.
	HasAlert(ctx context.Context, id string) (bool, error)
	// Undelivered calls f for each alert that is still to be delivered to that
	// receiver, oldest first. Outbox entries are made per receiver named in
	// Options.Receivers when the alert is first committed.
	Undelivered(ctx context.Context, receiver string, f func(Alert) bool) error
	// Delivered takes an alert out of that receiver's outbox.
	Delivered(ctx context.Context, receiver, id string) error
	Close() error
}
