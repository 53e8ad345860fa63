package protobuf

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/isowatch/isowatch/ingest/assemble"
	"github.com/isowatch/isowatch/ingest/codec"
	"github.com/isowatch/isowatch/ingest/record/packed"
)

// What messages are in the JSON form, or why they are refused. "text" has one message a line in
// protobuf's text form; "twice" sends the second line's fields behind those of the first, within the
// same transaction or event; "hex" has bytes.
func TestMessages(t *testing.T) {
	datadriven.RunTest(t, "testdata/messages.txt", func(t *testing.T, d *datadriven.TestData) string {
		var messages [][]byte
		for line := range strings.Lines(d.Input) {
			line = strings.TrimSpace(line)
			if d.Cmd == "hex" {
				b, err := hex.DecodeString(strings.ReplaceAll(line, " ", ""))
				if err != nil {
					t.Fatalf("%s: %v", d.Pos, err)
				}
				messages = append(messages, b)
				continue
			}
			m := dynamicpb.NewMessage(messageType())
			if err := prototext.Unmarshal([]byte(line), m); err != nil {
				t.Fatalf("%s: %v", d.Pos, err)
			}
			b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			messages = append(messages, b)
		}
		if d.Cmd == "twice" {
			number, _, n := protowire.ConsumeTag(messages[0])
			var joined []byte
			for _, m := range messages {
				inner, _ := protowire.ConsumeBytes(m[n:])
				joined = append(joined, inner...)
			}
			messages = [][]byte{protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), joined)}
		}
		var out strings.Builder
		decoder := New(codec.Options{})
		for _, b := range messages {
			compare(t, decoder, b)
			var chunk packed.Chunk
			var e assemble.Event
			isEvent, err := decoder.Message(b, &chunk, &e)
			switch {
			case err != nil:
				out.WriteString("refused: " + err.Error())
			case isEvent:
				out.Write(codec.AppendEvent(nil, &e))
			default:
				txn := chunk.Seal().Copy(0)
				out.Write(codec.AppendJSON(nil, &txn))
			}
			out.WriteByte('\n')
		}
		return out.String()
	})
}

func TestTooLargeAndTooSmall(t *testing.T) {
	d := New(codec.Options{SizeMax: 10})
	var c packed.Chunk
	var e assemble.Event
	if _, err := d.Message(nil, &c, &e); err == nil || !strings.Contains(err.Error(), "missing-field") {
		t.Errorf("an empty message: %v", err)
	}
	if _, err := d.Message(sample()[0], &c, &e); err == nil || !strings.Contains(err.Error(), "too-large") || c.Len() != 0 {
		t.Errorf("%v, %d records", err, c.Len())
	}
}

// The name of a history is bounded, in a transaction and an event.
func TestLongHistory(t *testing.T) {
	for _, length := range []int{codec.HistoryMax, codec.HistoryMax + 1} {
		name := protowire.AppendBytes
		in := func(n protowire.Number, b []byte) []byte {
			return name(protowire.AppendTag(nil, n, protowire.BytesType), b)
		}
		db := []byte(strings.Repeat("d", length))
		for what, m := range map[string]string{"transaction": "transaction {session: \"s\" status: COMMITTED}", "begin": "begin {session: \"s\" txn: \"t\"}"} {
			x := dynamicpb.NewMessage(messageType())
			if err := prototext.Unmarshal([]byte(m), x); err != nil {
				t.Fatal(err)
			}
			b, err := proto.Marshal(x)
			if err != nil {
				t.Fatal(err)
			}
			number, _, n := protowire.ConsumeTag(b)
			inner, _ := protowire.ConsumeBytes(b[n:])
			of := protowire.Number(txnDB)
			if what == "begin" {
				of = beginDB
			}
			var chunk packed.Chunk
			var e assemble.Event
			_, refused := New(codec.Options{}).Message(in(number, append(inner, in(of, db)...)), &chunk, &e)
			if long := length > codec.HistoryMax; long != (refused != nil) || long && !strings.Contains(refused.Error(), "1025 bytes") {
				t.Errorf("%s, %d bytes: %v", what, length, refused)
			}
		}
	}
}
