package app

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"

	"github.com/isowatch/isowatch/ingest/codec"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/reject"
	"github.com/isowatch/isowatch/ingest/source"
)

// input is a batch after decoding: what the reader hands to the loop.
type input struct {
	partition int
	first     int64 // the offset of the first record, or next
	next      int64
	identity  int64 // of what next is an offset in
	gaps      []source.Gap
	items     []item
	caughtUp  bool
	lag       int64
	bytes     int64
}

// item is a record, or bytes that are none.
type item struct {
	pos     record.Position
	arrival int64 // the broker's time, Unix nanoseconds; 0 where there is none
	txn     record.Transaction

	rejected *reject.Error // not nil: txn means nothing
	value    []byte        // of a rejected record
	size     int64         // of the same, before anything was cut off
}

// inputsMax is how many decoded batches wait for the loop at most.
const inputsMax = 4

// The reader's and the loop's queue as metrics name them.
const queueInputs = "inputs"

// reader reads, decodes and hands on, until the source ends.
type reader struct {
	source source.Source
	decode *codec.Decoder
	out    chan input
}

// run ends with the source's error, io.EOF at the end of the input; out is
// closed then.
func (r *reader) run(ctx context.Context) error {
	defer close(r.out)
	for {
		b, err := r.source.Read(ctx)
		if err != nil {
			return err
		}
		in := r.batch(b)
		select {
		case r.out <- in:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// batch decodes one batch.
func (r *reader) batch(b source.Batch) input {
	in := input{partition: b.Partition, first: b.Next, next: b.Next, identity: b.Identity, gaps: b.Gaps, caughtUp: b.CaughtUp, lag: b.Lag, items: make([]item, 0, len(b.Messages))}
	if len(b.Messages) > 0 {
		in.first = b.Messages[0].Pos.Offset
	}
	for i := range b.Messages {
		m := &b.Messages[i]
		in.bytes += max(int64(len(m.Value)), m.Oversize)
		if m.Pos.Line == 1 && !m.Pos.Kafka && codec.IsHeader(m.Value) {
			continue // what it says, the configuration says
		}
		in.items = append(in.items, r.item(m))
	}
	return in
}

// item decodes one message.
func (r *reader) item(m *source.Message) item {
	it := item{pos: m.Pos, arrival: m.Time, size: max(int64(len(m.Value)), m.Oversize)}
	err := r.message(m, &it.txn)
	if err == nil {
		return it
	}
	it.value = m.Value
	if it.rejected = reject.From(err); it.rejected == nil {
		panic(fmt.Sprintf("app: can't happen, because codec has no other errors: %T at %v: %v", err, m.Pos, err))
	}
	it.rejected.Pos = m.Pos
	return it
}

func (r *reader) message(m *source.Message, t *record.Transaction) error {
	switch m.ContentType {
	case "", "application/json":
	default:
		return reject.New(reject.ContentType, "content-type is %q; application/json is understood", m.ContentType)
	}
	if m.Oversize > 0 {
		return reject.New(reject.TooLarge, "the record has %d bytes", m.Oversize)
	}
	if err := r.decode.Decode(m.Value, t); err != nil {
		return err
	}
	if t.ID == "" {
		t.ID = positionID(m.Pos)
		if t.HasTimes {
			t.ID = contentID(t)
		}
	}
	return nil
}

// contentID names a record that names itself neither by id nor by seq, but has
// times: a session does one thing at a time, so that the same again is the same
// record, delivered twice.
func contentID(t *record.Transaction) string {
	c := *t
	c.ID = ""
	sum := sha256.Sum256(codec.AppendJSON(nil, &c))
	return t.Session + "~" + hex.EncodeToString(sum[:8])
}

// positionID names a record that names itself neither by id nor by seq. The same
// record read again has the same id.
func positionID(p record.Position) string {
	b := append([]byte(p.Source), '/')
	b = strconv.AppendInt(b, int64(p.Partition), 10)
	b = append(b, '@')
	return string(strconv.AppendInt(b, p.Offset, 10))
}
