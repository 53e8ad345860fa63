// Package source reads transaction records, still as bytes, from where they
// are: a Kafka topic, a file that may grow, standard input.
package source

import (
	"context"
	"time"

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
	// Oversize is 0 for a whole record. A record larger than the source's
	// MessageMax is not kept: then Oversize is the size of its value in bytes,
	// Value holds only the value's beginning, and the record is to be set aside
	// as a dead letter.
	Oversize int64
}

// Gap is a stretch of input that will never be seen.
type Gap struct {
	Source    string
	Partition int
	// From, To: offsets [From, To) are missing. To == From when it is not known
	// how many records are, as after a topic was created anew.
	From, To int64
	Why      string // for a person, naming the cause
}

// Batch is what one read of one partition returned, in offset order. Its
// offset may be stored once everything it caused is durable.
type Batch struct {
	Partition int
	Messages  []Message // may be empty: then only Next, Gaps or CaughtUp tell something
	Next      int64     // where to resume after this batch
	Gaps      []Gap     // found before Messages[0]
	// Midst: this is the first batch of a partition that is read from its middle on. What
	// was in front was not asked for, or is no longer there, and is not told as a gap.
	Midst bool
	// CaughtUp: nothing more was there to read in this partition. A source that
	// goes on says so again and again for as long as it is so, at least every
	// second: silence alone tells nothing, as the input may be out of reach.
	CaughtUp bool
	// Lag is how many offsets are known to be behind Next.
	Lag int64
	// Asked is when the input was asked, or earlier: CaughtUp and Lag say how things were since. Zero: they say nothing.
	Asked time.Time
	// Identity tells the input that Next belongs to from another of the same
	// name: a topic that was created anew, a log file that was rotated. It is to be
	// stored with Next. 0 means that there is nothing to tell by.
	Identity int64
	// Free, if not nil, gives the memory of Messages back: neither they nor what they
	// hold may be used any more. To call it is worth it, but not needed; it is called
	// once at most.
	Free func()
}

// IdentityKey is the number, negative, under which a partition's identity is among the
// offsets that a source is given, beside Batch.Next under that of the partition: so it goes
// on behind that batch, or notices that the input is another.
func IdentityKey(partition int) int { return -1 - partition }

// StartupError says why an input can't be read at all, and what to do. Trying
// again does not help until somebody has done it.
type StartupError struct {
	What string // what is wrong, naming the input
	Do   string // what to do about it
	Err  error  // the cause; may be nil
}

func (e *StartupError) Error() string {
	s := e.What
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	if e.Do != "" {
		s += "; " + e.Do
	}
	return s
}

func (e *StartupError) Unwrap() error { return e.Err }

// Source hands out batches. Read blocks until there is one; it returns io.EOF
// when the input has ended for good (a file that is not followed, standard
// input, or Kafka with UntilEnd when every partition is read to where its end
// was at the start), ctx.Err() when ctx ends, and otherwise only errors that
// no retry mends (*StartupError and the like). Transient failures are retried
// inside, for ever, with back-off, and told to Options.OnRetry.
// Read is called by one goroutine.
//
// Partitions may be called by any goroutine and may grow while the source is
// read.
type Source interface {
	Read(ctx context.Context) (Batch, error)
	// Partitions is the number of partitions, numbered from 0. It includes
	// those that this source was not asked to read.
	Partitions() int
	Close() error
}
