package decode

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/isowatch/isowatch/ingest/assemble"
	"github.com/isowatch/isowatch/ingest/codec"
	"github.com/isowatch/isowatch/ingest/codec/protobuf"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/record/packed"
	"github.com/isowatch/isowatch/ingest/source"
)

// Keys, values, sessions and ids of a megabyte are short behind the stage, the same ones in
// whatever form the record came, so that what it holds is bounded by the number of operations.
func TestLongTexts(t *testing.T) {
	long := func(name string) string { return name + strings.Repeat("x", 1<<20) }
	x := record.Transaction{DB: "d", Session: long("s"), Seq: 7, HasSeq: true, ID: long("i"), Start: 5, End: 9, HasTimes: true, Ops: []record.Op{
		{Kind: record.Read, Key: long("k"), Value: record.Null},
		{Kind: record.Write, Key: long("k"), Value: record.String(long("v"))},
		{Kind: record.Append, Key: "l", Value: record.String(long("e"))},
		{Kind: record.Read, Key: "l", Value: record.Value{Kind: record.KindList, Text: `["` + long("e") + `"]`}},
	}}
	want := x
	want.Session, want.ID, want.Ops = packed.Shortened(x.Session), packed.Shortened(x.ID), nil
	for _, op := range x.Ops {
		want.Ops = append(want.Ops, packed.ShortOp(op))
	}
	text := codec.AppendJSON(nil, &x)
	events := func(appended func([]byte, *assemble.Event) []byte) (out [][]byte) {
		put := func(e assemble.Event) {
			e.Session, e.Txn = x.Session, long("t")
			out = append(out, appended(nil, &e))
		}
		put(assemble.Event{Kind: assemble.Begin, DB: x.DB, ID: x.ID, HasSeq: true, Seq: x.Seq, HasTime: true, Time: x.Start})
		for i, op := range x.Ops {
			put(assemble.Event{Kind: assemble.Step, N: uint32(i), Op: op})
		}
		put(assemble.Event{Kind: assemble.End, N: uint32(len(x.Ops)), HasTime: true, Time: x.End, Status: x.Status})
		return out
	}
	for _, c := range []struct {
		name, contentType string
		messages          [][]byte
	}{
		{"JSON", ContentTypeJSON, [][]byte{text}},
		{"JSON with blanks", ContentTypeJSON, [][]byte{bytes.ReplaceAll(text, []byte(`],[`), []byte(`], [`))}},
		{"protobuf", ContentTypeProtobuf, [][]byte{protobuf.Append(nil, &x)}},
		{"events", ContentTypeJSON, events(codec.AppendEvent)},
		{"events in protobuf", ContentTypeProtobuf, events(protobuf.AppendEvent)},
	} {
		in := source.Batch{Next: int64(len(c.messages)), Identity: 1}
		for i, value := range c.messages {
			in.Messages = append(in.Messages, source.Message{Pos: record.Position{Source: "t", Kafka: true, Offset: int64(i)}, ContentType: c.contentType, Value: value})
		}
		s := New(&list{batches: []source.Batch{in}, end: io.EOF}, Options{Workers: 1})
		b, err := s.Read(context.Background())
		for err == nil && b.Len() == 0 {
			b, err = s.Read(context.Background())
		}
		s.Close()
		if err != nil || b.Len() != 1 {
			t.Fatalf("%s: %v, %+v", c.name, err, b)
		}
		if got := b.Block.Copy(0); !cmp.Equal(got, want) {
			t.Errorf("%s: %s", c.name, cmp.Diff(fmt.Sprintf("%+v", want), fmt.Sprintf("%+v", got)))
		}
		if n := len(b.Marshal(nil)); n > 8<<10 {
			t.Errorf("%s: it takes %d bytes in the journal", c.name, n)
		}
	}
}
