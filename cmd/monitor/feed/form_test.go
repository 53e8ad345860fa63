package feed

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/assemble"
	"github.com/isowatch/isowatch/ingest/codec"
	"github.com/isowatch/isowatch/ingest/codec/protobuf"
	"github.com/isowatch/isowatch/ingest/generate"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/record/packed"
	"github.com/isowatch/isowatch/ingest/source"
)

// decoder is what both codecs are.
type decoder interface {
	Message(b []byte, c *packed.Chunk, e *assemble.Event) (isEvent bool, err error)
}

// In every form, what arrives is what was sent.
func TestFormsSayTheSame(t *testing.T) {
	g, err := generate.New(generate.Config{Level: verdict.SER, Transactions: 300, Keys: 20, Sessions: 5, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	want := append(slices.Collect(g.Transactions()), record.Transaction{DB: "other", Session: "no seq", ID: "x", Status: record.Unknown},
		record.Transaction{DB: "other", Session: "own id", ID: "y", Seq: 3, HasSeq: true, Status: record.Aborted})
	for _, isProtobuf := range []bool{false, true} {
		for _, events := range []bool{false, true} {
			t.Run(fmt.Sprint(isProtobuf, events), func(t *testing.T) {
				form := Form{isProtobuf, events}
				var msgs []source.Message
				for i := range want {
					msgs = form.append(msgs, &want[i])
				}
				if got := receive(t, isProtobuf, events, msgs); !cmp.Equal(got, want) {
					t.Error(cmp.Diff(want, got))
				}
			})
		}
	}
}

func receive(t *testing.T, isProtobuf, events bool, msgs []source.Message) []record.Transaction {
	t.Helper()
	var d decoder = codec.New(codec.Options{})
	contentType := ""
	if isProtobuf {
		d, contentType = protobuf.New(codec.Options{}), "application/x-protobuf"
	}
	a := assemble.New(assemble.Options{})
	var chunk packed.Chunk
	var e assemble.Event
	for i, m := range msgs {
		isEvent, err := d.Message(m.Value, &chunk, &e)
		if err != nil || isEvent != events || m.ContentType != contentType {
			t.Fatalf("%q: an event: %v, content type %q, %v", m.Value, isEvent, m.ContentType, err)
		}
		if !isEvent {
			continue
		}
		if string(m.Key) != e.Session {
			t.Fatalf("the key is %q, the session %q", m.Key, e.Session)
		}
		if _, err := a.Add(int64(i), 0, &e); err != nil {
			t.Fatal(err)
		}
		for txn, _ := a.Next(); txn != nil; txn, _ = a.Next() {
			chunk.Add(txn)
		}
	}
	if losses := a.Losses(); len(losses) > 0 {
		t.Fatal(losses)
	}
	var b packed.Builder
	b.Append(chunk.Part())
	return b.Records().Transactions()
}
