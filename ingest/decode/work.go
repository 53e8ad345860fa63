package decode

import (
	"bytes"
	"errors"
	"fmt"
	"mime"

	"github.com/isowatch/isowatch/ingest/assemble"
	"github.com/isowatch/isowatch/ingest/change"
	"github.com/isowatch/isowatch/ingest/codec"
	"github.com/isowatch/isowatch/ingest/codec/protobuf"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/record/packed"
	"github.com/isowatch/isowatch/ingest/reject"
	"github.com/isowatch/isowatch/ingest/source"
)

// format decodes the messages of one content type. It keeps nothing of b.
type format interface {
	// Message adds the record in b to c; or, if b is an event, a part of a record, says so
	// and sets *e to it. An error is codec.ErrNoRecord or a *reject.Error without
	// position, and then nothing is added or set.
	Message(b []byte, c *packed.Chunk, e *assemble.Event) (event bool, err error)
}

// worker decodes parts, one at a time.
type worker struct {
	formats map[string]format // by content type
	header  func(line []byte)
	// isMapped: JSON is of another form, which has neither headers nor events.
	isMapped bool
	chunk    packed.Chunk
	event    assemble.Event
	id       []byte
}

func newWorker(opts *Options) *worker {
	var json format = codec.New(codec.Options{})
	if opts.Mapping != nil {
		json = codec.NewMapped(opts.Mapping, codec.Options{})
	}
	w := &worker{header: opts.OnHeader, isMapped: opts.Mapping != nil, formats: map[string]format{"": json, ContentTypeJSON: json,
		ContentTypeProtobuf: protobuf.New(codec.Options{})}}
	w.chunk.Summing, w.chunk.Shortening = true, true
	return w
}

// decode sets what is to be set of j.
func (w *worker) decode(j *job) {
	in := &j.in
	b := &Batch{Partition: in.Partition, First: in.Next, Next: in.Next, Resume: in.Next, Identity: in.Identity,
		Gaps: in.Gaps, Midst: in.Midst, CaughtUp: in.CaughtUp, Lag: in.Lag, Asked: in.Asked}
	j.out = b
	if n := len(in.Messages); n > 0 {
		b.First = max(in.Messages[0].Pos.Offset, j.seen)
		j.replaced = in.Next <= in.Messages[n-1].Pos.Offset
		b.Offsets, b.Arrivals = make([]int64, 0, n), make([]int64, 0, n)
	}
	for i := range in.Messages {
		m := &in.Messages[i]
		if m.Pos.Line == 1 && !m.Pos.Kafka && !w.isMapped && codec.IsHeader(m.Value) {
			if w.header != nil {
				w.header(m.Value)
			}
			continue // no record
		}
		j.latest = max(j.latest, m.Time)
		w.message(j, m)
	}
	b.seal(&w.chunk)
	j.in.Messages, j.in.Free = nil, nil
	j.parts.release() // what outlives it was copied
}

// message decodes m.
func (w *worker) message(j *job, m *source.Message) {
	b, again := j.out, m.Pos.Offset < j.seen
	if !again {
		b.Bytes += sizeOf(m)
	}
	if m.Oversize == 0 && !w.isMapped && change.Is(m.Value) {
		switch c, ok, err := change.Decode(m.Value); {
		case err != nil && !again:
			b.reject(m, err) // it may have been meant as a record
		case ok:
			j.changes = append(j.changes, logChange{c, m.Pos, again})
		}
		return
	}
	if m.Oversize == 0 && !w.isMapped && codec.IsWorldEvent(m.Value) {
		switch e, err := codec.DecodeWorldEvent(m.Value, 0); {
		case again: // it was handed out
		case err != nil:
			b.reject(m, err)
		default:
			b.Events = append(b.Events, e)
		}
		return
	}
	isEvent, err := w.pack(m)
	switch {
	case errors.Is(err, codec.ErrNoRecord):
	case isEvent && err == nil:
		j.events = append(j.events, event{pos: m.Pos, time: m.Time, value: short(w.event), bytes: bytes.Clone(m.Value)})
	case again && err == nil:
		w.chunk.Undo()
	case again:
	case err == nil:
		if w.chunk.Anonymous() {
			w.id = name(&w.chunk, m.Pos, w.id)
		}
		b.Offsets, b.Arrivals = append(b.Offsets, m.Pos.Offset), append(b.Arrivals, m.Time)
	default:
		b.reject(m, err)
	}
}

// short is an event with short texts, as records have them: much of it waits for the end of its
// transaction.
func short(e assemble.Event) assemble.Event {
	e.Session, e.Txn, e.ID = packed.Shortened(e.Session), packed.Shortened(e.Txn), packed.Shortened(e.ID)
	e.Op = packed.ShortOp(e.Op)
	return e
}

// sizeOf is how large a message is, or was before it was cut off.
func sizeOf(m *source.Message) int64 { return max(int64(len(m.Value)), m.Oversize) }

// pack adds the record in m, or sets w.event.
func (w *worker) pack(m *source.Message) (isEvent bool, err error) {
	f, ok := w.formats[m.ContentType]
	if !ok {
		if f, ok = w.formats[mediaType(m.ContentType)]; !ok {
			return false, reject.New(reject.ContentType, "content-type is %.80q; %s or %s is understood", m.ContentType,
				ContentTypeJSON, ContentTypeProtobuf)
		}
	}
	if m.Oversize > 0 {
		return false, reject.New(reject.TooLarge, "the record has %d bytes", m.Oversize)
	}
	return f.Message(m.Value, &w.chunk, &w.event)
}

// mediaType is a content type without its parameters, in lower case; "-" if it is
// none.
func mediaType(contentType string) string {
	t, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return "-"
	}
	return t
}

// name gives the record that was added to c last, and has no ID, one that it gets
// again whenever it is read. It returns scratch to be handed in again.
func name(c *packed.Chunk, pos record.Position, scratch []byte) []byte {
	if c.Timed() {
		c.NameByContent()
		return scratch
	}
	scratch = record.AppendPositionID(scratch[:0], pos)
	c.Name(scratch)
	return scratch
}

// reject makes m, which may have been a record, a dead letter.
func (b *Batch) reject(m *source.Message, err error) {
	b.setAside(m, err)
	b.Lost++
}

// setAside makes m a dead letter.
func (b *Batch) setAside(m *source.Message, err error) {
	e := reject.From(err)
	if e == nil {
		panic(fmt.Sprintf("decode: can't happen, because formats have no other errors: %T at %v: %v", err, m.Pos, err))
	}
	e.Pos = m.Pos
	b.Rejected = append(b.Rejected, Rejected{Err: e, Value: bytes.Clone(m.Value), Size: sizeOf(m)})
}
