package store

import (
	"context"
	"io"

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

// Alert is a raised alert.
type Alert struct {
	ID   string
	Body []byte // JSON that the store does not look into
	// News is, in a Commit, how often it was found beyond what was committed before:
	// so much is added to what is pending of it, unless the store has that body
	// already. Of Pending it is how much is; elsewhere 0.
	News int
}

// Notice is what receivers are told.
type Notice struct {
	ID   string
	Body []byte
}

// Handled is what is pending no more: the news of an alert, or so much of them.
type Handled struct {
	ID   string
	News int
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
	// Alerts that are new are put in the store; one whose ID the store has already
	// replaces the body. Their News become pending in the same step.
	Alerts []Alert
	// Notices that are new are put in the outbox of every receiver. One whose ID an
	// outbox has is there already.
	Notices []Notice
	// Handled is taken from what is pending.
	Handled []Handled
	// Life, if it is not nil, replaces the state of what decides which notices there
	// are.
	Life []byte
	// Journal are the entries to add, in ascending order of Number.
	Journal []Entry
	// Checkpoints replace the checkpoint of each history named. A nil value
	// deletes it together with what the history has spilled. What was spilled
	// since the checkpoint before becomes part of this one; see Spill.
	Checkpoints map[string][]byte
	// Written are checkpoints too, each of which is written by a function, and never is in memory as a whole.
	Written map[string]func(io.Writer) error
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
	// when there is room again. One that wraps ErrStuck is final.
	Commit(ctx context.Context, c Commit) error
	// DeadLetters calls f for each stored dead letter in order of ID, until f
	// returns false.
	DeadLetters(ctx context.Context, f func(DeadLetter) bool) error
	// Alert returns the alert of that ID, and whether there is one.
	Alert(ctx context.Context, id string) (Alert, bool, error)
	// AlertsBefore calls f for alerts, the one stored last first, until f returns false.
	// Alerts are numbered from 0 in the order in which they were first stored; before,
	// if it is not 0, begins with the one below that number. So pages stay as they are
	// while new alerts come. It costs as much as what f is called for.
	AlertsBefore(ctx context.Context, before uint64, f func(number uint64, a Alert) bool) error
	// Pending calls f for each alert of which there is news, oldest first, until f
	// returns false.
	Pending(ctx context.Context, f func(Alert) bool) error
	// Life returns the state that was committed last, and whether there is one.
	Life(ctx context.Context) ([]byte, bool, error)
	// Expire drops alerts as e says, and returns how many.
	Expire(ctx context.Context, e Expiry) (int, error)
	// Undelivered calls f for each notice that is still to be delivered to that
	// receiver, oldest first. Outbox entries are made per receiver named in
	// Options.Receivers when the notice is committed.
	Undelivered(ctx context.Context, receiver string, f func(Notice) bool) error
	// Waiting is how many notices are still to be delivered to that receiver; of more
	// than most, most. It costs as much as it counts, and reads none of them.
	Waiting(ctx context.Context, receiver string, most int) (int, error)
	// Delivered takes a notice out of that receiver's outbox. One that is in no
	// outbox any more is gone.
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
	// history (all, if it has none), so that what Spilled says fits the checkpoint. Spill and a Commit with a checkpoint
	// of the same history are not to be called at the same time.
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

// Expiry says which alerts are dropped: those first stored before a time, and the
// oldest of those that are too many. Alerts that are pending are not.
type Expiry struct {
	Before int64 // Unix nanoseconds
	Max    int   // 0: there are never too many
	// Keep tells which alerts are not to be dropped; nil: none are kept.
	Keep func(Alert) bool
}

// Stats are what a person wants to know of a store. Sizes are in bytes.
type Stats struct {
	DeadLetters        int64
	DeadLetterBytes    int64
	DeadLettersDropped int64 // since the store was made
	Alerts             int64 // kept
	AlertsDropped      int64 // since the store was made

	JournalEntries int64
	JournalFirst   uint64 // number of the oldest entry; 0 if there is none
	JournalLast    uint64 // number of the newest entry; 0 if there is none
	JournalDrop    uint64 // entries below are evidence only
	JournalBytes   int64
	JournalNeeded  int64 // of these, in files that a checkpoint still needs
	LargeBytes     int64 // checkpoints and other large values
	DiskBytes      int64 // all of it
}
