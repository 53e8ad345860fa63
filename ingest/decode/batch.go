package decode

import (
	"time"

	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/record/packed"
	"github.com/isowatch/isowatch/ingest/reject"
	"github.com/isowatch/isowatch/ingest/source"
)

// Batch is a source.Batch after decoding, or a part of one. It does not change
// once it was handed out.
type Batch struct {
	Partition int
	// First is the offset of the first message, or Next if there is none. Next is
	// where to resume after this batch, and Identity tells of what input these are
	// offsets (source.Batch.Identity).
	First, Next, Identity int64
	// Resume is where to read again after a restart, so that nothing is missing: Next,
	// unless messages before it are parts of transactions that are not complete yet.
	Resume   int64
	Gaps     []source.Gap // found before the first message
	Midst    bool         // the first of a partition that is read from its middle on (source.Batch.Midst)
	CaughtUp bool         // nothing more was there to read
	Lag      int64        // how many offsets are known to be behind Next
	Asked    time.Time    // when the source was asked (source.Batch.Asked); Unmarshal leaves it zero
	Bytes    int64        // of the messages

	// Block are the records, in the order of the messages that they came from, or
	// that completed them; never nil.
	Block *packed.Block
	// Of each record in Block: its hashes, the offset of its message, and the broker's
	// time, in Unix nanoseconds, 0 where there is none.
	Sums              []packed.Sum
	Offsets, Arrivals []int64
	// DBs are the histories that the records belong to, in order of occurrence.
	DBs []string

	// Events are what happened around, as messages say; Unmarshal leaves it nil.
	Events []record.Event

	// Logged is how many records were given their place in the database's log by a change stream, and Unlogged how many
	// waited for it in vain; Unmarshal leaves them 0.
	Logged, Unlogged int
	// Unrecorded is how many transactions a change stream told of, of which no record came in time; Unmarshal leaves it 0.
	Unrecorded int

	// Rejected are the messages that are no records; Unmarshal leaves it nil. Lost
	// is how many may have been records.
	Rejected []Rejected
	Lost     int

	// Losses are transactions told in events of which some are missing. State is what has
	// to be stored with Resume and Next to go on after a restart (Options.States); Unmarshal
	// leaves it nil.
	Losses []Loss
	State  []byte
}

// Loss is a transaction of which events are missing: it may have read and written
// more than its record says. What is not known of it is empty; an empty DB may be any.
type Loss struct {
	DB      string
	Session string
	Txn     string // its name in its session
	Offset  int64  // of its begin
	Why     string // for a person
}

// Rejected is a message that is no record: a dead letter.
type Rejected struct {
	Err   *reject.Error // with its position
	Value []byte        // its bytes, or only the beginning of them
	Size  int64         // in bytes, before anything was cut off
}

// Len is how many records there are.
func (b *Batch) Len() int { return b.Block.Len() }

// Head is the head of the i-th record. Its strings are parts of the block and
// keep it in memory. O(1).
func (b *Batch) Head(i int) record.Head {
	h := b.Block.Head(i)
	h.ID, h.Content = b.Sums[i].ID, b.Sums[i].Content
	return h
}

// seal takes the records out of c.
func (b *Batch) seal(c *packed.Chunk) {
	b.Sums = c.Sums()
	b.Block = c.Seal()
	b.DBs = b.Block.DBs()
}
