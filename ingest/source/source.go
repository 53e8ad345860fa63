// Package source reads transaction records, still as bytes, from where they
// are: a Kafka topic, a file that may grow, standard input.
package source

import (
	"context"

	"github.com/isowatch/isowatch/ingest/record"
)

// Message is the bytes of one record and where they came from.
type Message struct {
	Pos         record.Position
	Key         []byte // Kafka key; nil elsewhere
	Value       []byte
	ContentType string // Kafka header content-type; empty means application/json
	// Time is the broker's timestamp in Unix nanoseconds; 0 where there is
	// none. It serves lateness and nothing else.
	Time int64
}

// Gap is a stretch of input that will never be seen.
type Gap struct {
	Source    string
	Partition int
	From, To  int64 // offsets [From, To) are missing
	Why       string
}

// Batch is what one read of one partition returned, in offset order. Its
// offset may be stored once everything it caused is durable.
type Batch struct {
	Partition int
	Messages  []Message // may be empty: then only Next, Gaps or CaughtUp tell something
	Next      int64     // where to resume after this batch
	Gaps      []Gap     // found before Messages[0]
	// CaughtUp: nothing more was there to read in this partition.
	CaughtUp bool
	// Lag is the number of records known to be behind Next.
	Lag int64
}

// Source hands out batches. Read blocks until there is one; it returns io.EOF
// when the input has ended for good (a file that is not followed, standard
// input, or Kafka with UntilEnd when every partition is read to where its end
// was at the start), ctx.Err() when ctx ends, and otherwise only errors that
// no retry mends (*StartupError and the like). Transient failures are retried
// inside, for ever, with back-off, and told to Options.OnRetry.
// Read is called by one goroutine.
type Source interface {
	Read(ctx context.Context) (Batch, error)
	// Partitions is the number of partitions, numbered from 0.
	Partitions() int
	Close() error
}
