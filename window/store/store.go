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

// Entry is one step of the input, as the journal keeps it: what was read and
// when, in bytes that the store does not look into.
type Entry struct {
	// Number names the entry. Within a Commit numbers ascend; holes are allowed.
	// An entry whose number is not above the last one stored replaces it and all
	// entries above it: what follows an entry depends on it.
	Number uint64
	// Time is when it was taken, in Unix nanoseconds. Options.Retain counts from it.
	Time int64
	Data []byte
}

// KV is a pair that was spilled. A nil Value deletes.
type KV struct {
	Key   string
	Value []byte
}

// Commit is everything that one batch of input, or one round of a worker, caused.
type Commit struct {
	// Offsets are the next offset per source and partition.
	Offsets     map[string]map[int]int64
	DeadLetters []DeadLetter
	// Alerts that are new are put in the store and in the outbox; one whose ID
	// the store has already only replaces the body.
	Alerts []Alert
	// Journal are the entries to add, in ascending order of Number.
	Journal []Entry
	// Checkpoints replace the checkpoint of each history named. A nil value
	// deletes it together with what the history has spilled. What was spilled
	// since the checkpoint before becomes part of this one; see Spill.
	Checkpoints map[string][]byte
	// Forget names histories of which nothing that was spilled is of use any more,
	// as they begin anew with this commit.
	Forget []string
	// Drop, if it is above the one stored, says that no checkpoint needs journal
	// entries below it any more: they are kept as evidence only, for as long as
	// Options.Retain and Options.MaxBytes allow.
	Drop uint64
}

// Store is implemented by Badger (Open) and by the failing twin in tests.
// Methods are safe for concurrent use.
type Store interface {
	// Offsets returns the stored next offsets of a source by partition; empty
	// when it was never read.
	Offsets(ctx context.Context, source string) (map[int]int64, error)
	// Commit makes c durable, all of it or nothing. An error that wraps ErrFull
	// means that the disk has no room: reading goes on, and a later Commit succeeds
	// when there is room again.
	Commit(ctx context.Context, c Commit) error
	// DeadLetters calls f for each stored dead letter in order of ID, until f
	// returns false.
	DeadLetters(ctx context.Context, f func(DeadLetter) bool) error
	// Alerts calls f for each stored alert in order of ID.
	Alerts(ctx context.Context, f func(Alert) bool) error
	// Alert returns the alert of that ID, and whether there is one.
	Alert(ctx context.Context, id string) (Alert, bool, error)
	// HasAlert tells whether an alert of that ID was ever committed.
	HasAlert(ctx context.Context, id string) (bool, error)
	// Undelivered calls f for each alert that is still to be delivered to that
	// receiver, oldest first. Outbox entries are made per receiver named in
	// Options.Receivers when the alert is first committed.
	Undelivered(ctx context.Context, receiver string, f func(Alert) bool) error
	// Delivered takes an alert out of that receiver's outbox.
	Delivered(ctx context.Context, receiver, id string) error

	// Journal calls f for each stored entry with Number >= from, in ascending
	// order, until f returns false. It sees the journal as it was at the beginning;
	// entries below Drop may leave it meanwhile. Data is valid until f returns.
	Journal(ctx context.Context, from uint64, f func(Entry) bool) error
	// Entry returns one entry, and whether it is there: it may have been dropped.
	Entry(ctx context.Context, number uint64) (Entry, bool, error)
	// Checkpoint returns the last committed checkpoint of a history, and whether
	// there is one.
	Checkpoint(ctx context.Context, db string) ([]byte, bool, error)
	// Checkpoints returns the names of the histories that have one, sorted.
	Checkpoints(ctx context.Context) ([]string, error)
	// Spill stores pairs for a history, outside of any Commit. Opening the store
	// again takes back what was spilled after the last committed checkpoint of that
	// history (all, if it has none), so that what Spilled says fits the checkpoint. Spill and a Commit with a checkpoint of
	// the same history are not to be called at the same time.
	Spill(ctx context.Context, db string, pairs []KV) error
	// Spilled returns the values of keys, in their order, nil for one that has
	// none.
	Spilled(ctx context.Context, db string, keys []string) ([][]byte, error)

	// Maintain frees space; it is to be called every minute or so.
	Maintain(ctx context.Context) error
	// Stats counts what there is.
	Stats(ctx context.Context) (Stats, error)
	Close() error
}

// Stats are what a person wants to know of a store. Sizes are in bytes.
type Stats struct {
	DeadLetters        int64
	DeadLetterBytes    int64
	DeadLettersDropped int64 // since the store was made
	Alerts             int64 // since the store was made

	JournalEntries int64
	JournalFirst   uint64 // number of the oldest entry; 0 if there is none
	JournalLast    uint64 // number of the newest entry; 0 if there is none
	JournalDrop    uint64 // entries below are evidence only
	JournalBytes   int64
	JournalNeeded  int64 // of these, in files that a checkpoint still needs
	LargeBytes     int64 // checkpoints and other large values
	DiskBytes      int64 // all of it
}
