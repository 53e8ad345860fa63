// Package feed puts transaction records into a Kafka topic as a recorder would:
// one message per record, or per event of it, keyed by session, so that a session
// stays in one partition and in its order.
package feed

import (
	"context"
	"time"

	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/source"
	"github.com/isowatch/isowatch/internal/wait"
)

// Sender is where messages go: *kafka.Producer.
type Sender interface {
	Send(ctx context.Context, messages ...source.Message) error
}

// Send sends records in their order, in a form, and returns when the brokers have them.
func Send(ctx context.Context, to Sender, form Form, txns []record.Transaction) error {
	msgs := make([]source.Message, 0, len(txns))
	for i := range txns {
		msgs = form.append(msgs, &txns[i])
	}
	return to.Send(ctx, msgs...)
}

// Pace says when records go out.
type Pace struct {
	// PerSecond spreads records evenly; 0: as fast as they are taken.
	PerSecond float64
	// Recorded sends each record when it ended, counted from the first.
	Recorded bool
}

// due is when the n-th record goes out, counted from the start. first is the
// end of the first record that has times.
func (p Pace) due(n int, t *record.Transaction, first int64) time.Duration {
	switch {
	case p.PerSecond > 0:
		return time.Duration(float64(n) / p.PerSecond * float64(time.Second))
	case p.Recorded && t.HasTimes:
		return time.Duration(t.End - first)
	}
	return 0
}

// batchMax bounds the records of one Send; what is due within together goes
// together.
const (
	batchMax = 5000
	together = 5 * time.Millisecond
)

// Replay sends records in a form and at a pace, and tells sent how many went out each time.
func Replay(ctx context.Context, to Sender, txns []record.Transaction, form Form, pace Pace, sent func(int)) error {
	var (
		start = time.Now()
		first int64
		timed bool
		gone  int // of txns
	)
	flush := func(n int) error {
		if gone == n {
			return nil
		}
		if err := Send(ctx, to, form, txns[gone:n]); err != nil {
			return err
		}
		sent(n - gone)
		gone = n
		return nil
	}
	for n := range txns {
		t := &txns[n]
		if t.HasTimes && !timed {
			first, timed = t.End, true
		}
		if early := pace.due(n, t, first) - time.Since(start); early > together {
			if err := flush(n); err != nil {
				return err
			}
			if err := wait.Sleep(ctx, early); err != nil {
				return err
			}
		}
		if n+1-gone == batchMax {
			if err := flush(n + 1); err != nil {
				return err
			}
		}
	}
	return flush(len(txns))
}
