package feed

import (
	"strconv"

	"github.com/isowatch/isowatch/ingest/assemble"
	"github.com/isowatch/isowatch/ingest/codec"
	"github.com/isowatch/isowatch/ingest/codec/protobuf"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/source"
)

// Form is what records are sent as. The zero Form is a message of JSON for each.
type Form struct {
	Protobuf bool // instead of JSON
	Events   bool // a message for the begin, for each operation, and for the end
}

// append appends the messages of a record.
func (f Form) append(msgs []source.Message, t *record.Transaction) []source.Message {
	key := []byte(t.Session)
	if !f.Events {
		if !f.Protobuf {
			return append(msgs, source.Message{Key: key, Value: codec.AppendJSON(nil, t)})
		}
		return append(msgs, source.Message{Key: key, Value: protobuf.Append(nil, t), ContentType: protobuf.ContentType})
	}
	for _, e := range events(t) {
		m := source.Message{Key: key}
		if !f.Protobuf {
			m.Value = codec.AppendEvent(nil, &e)
		} else {
			m.Value, m.ContentType = protobuf.AppendEvent(nil, &e), protobuf.ContentType
		}
		msgs = append(msgs, m)
	}
	return msgs
}

// events tells a record as it would have been as it happened. Its transaction is
// named by the seq where there is one, else by its id.
func events(t *record.Transaction) []assemble.Event {
	begin := assemble.Event{Kind: assemble.Begin, Session: t.Session, Txn: t.ID, DB: t.DB, ID: t.ID, Seq: t.Seq,
		HasSeq: t.HasSeq, Time: t.Start, HasTime: t.HasTimes}
	if t.HasSeq {
		begin.Txn = strconv.FormatInt(t.Seq, 10)
		if t.ID == t.Session+"#"+begin.Txn {
			begin.ID = ""
		}
	}
	out := append(make([]assemble.Event, 0, len(t.Ops)+2), begin)
	for i := range t.Ops {
		out = append(out, assemble.Event{Kind: assemble.Step, Session: t.Session, Txn: begin.Txn, N: uint32(i), Op: t.Ops[i]})
	}
	return append(out, assemble.Event{Kind: assemble.End, Session: t.Session, Txn: begin.Txn, N: uint32(len(t.Ops)),
		Status: t.Status, Time: t.End, HasTime: t.HasTimes})
}
