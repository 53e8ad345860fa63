package protobuf

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/dynamicpb"
	"pgregory.net/rapid"

	"github.com/isowatch/isowatch/ingest/assemble"
	"github.com/isowatch/isowatch/ingest/codec"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/record/packed"
	"github.com/isowatch/isowatch/ingest/reject"
	_ "github.com/isowatch/isowatch/internal/lab/seeds"
)

// sample are one message of each kind, with one value of each kind.
func sample() [][]byte {
	t := record.Transaction{DB: "orders", Session: "api-3/7", Seq: 42, HasSeq: true, ID: "api-3/7#42", Start: 1732160000123456789, End: 1732160000125000000, HasTimes: true}
	for i, text := range []string{`100`, `-7`, `null`, `true`, `1.5`, `"é"`, `[3,-17]`, `[]`, `["a",[1]]`, `{"a":1}`, `9223372036854775807`} {
		v, err := codec.ParseValue([]byte(text))
		if err != nil {
			panic(err)
		}
		t.Ops = append(t.Ops, record.Op{Kind: record.OpKind(i % 3), Key: "acct:1", Value: v})
	}
	t.Ops = append(t.Ops, record.Op{Kind: record.PredicateRead, Key: "t", Where: "v == 2", Value: t.Ops[9].Value})
	out := [][]byte{Append(nil, &t), Append(nil, &record.Transaction{DB: "default", Session: "s", ID: "x", Status: record.Unknown})}
	for _, e := range []assemble.Event{
		{Kind: assemble.Begin, Session: "s", Txn: "t", DB: "orders", ID: "i", Seq: 3, HasSeq: true, Time: 5, HasTime: true},
		{Kind: assemble.Step, Session: "s", Txn: "t", N: 200, Op: t.Ops[0]},
		{Kind: assemble.End, Session: "s", Txn: "t", N: 1, Status: record.Aborted, Time: 6, HasTime: true},
	} {
		out = append(out, AppendEvent(nil, &e))
	}
	return out
}

// decode is Message for a whole record, the long way, whatever the order of its fields.
func (d *Decoder) decode(b []byte, t *record.Transaction) error {
	*t = record.Transaction{}
	var chunk packed.Chunk
	kind, body := d.open(b)
	if kind != messageTransaction {
		body.fail(reject.New(reject.WrongType, "want a whole transaction, not an event of one"))
	}
	if body.err == nil {
		d.pack(&body, &chunk)
	}
	if body.err != nil {
		return body.err
	}
	*t = chunk.Seal().Copy(0)
	return nil
}

// Message never panics, agrees with the twin, and what it accepts is written back and read again as
// the same, in either form.
func FuzzMessage(f *testing.F) {
	for _, b := range sample() {
		f.Add(b)
	}
	d := New(codec.Options{NamesMax: 1})
	f.Fuzz(func(t *testing.T, in []byte) { compare(t, d, in) })
}

func compare(t interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}, d *Decoder, in []byte) {
	t.Helper()
	before := slices.Clone(in)
	wantTxn, wantEvent, wantErr := twin(in)
	var chunk packed.Chunk
	var e assemble.Event
	isEvent, err := d.Message(in, &chunk, &e)
	if !bytes.Equal(before, in) {
		t.Fatal("the input was changed")
	}
	if (err == nil) != (wantErr == nil) {
		t.Fatalf("%x: Message says %v, the twin %v", in, err, wantErr)
	}
	var txn record.Transaction
	decodeErr := d.decode(in, &txn)
	if err != nil {
		bad := reject.From(err)
		if bad == nil || bad.Reason == reject.None || bad.Detail == "" {
			t.Fatalf("%x: an error without a reason: %v", in, err)
		}
		if !isEvent && !cmp.Equal(bad, reject.From(decodeErr)) {
			t.Fatalf("%x: Message says %v, the long way %v", in, err, decodeErr)
		}
		if chunk.Len() != 0 || !cmp.Equal(txn, record.Transaction{}) {
			t.Fatalf("%x: refused, and %d records and %+v left", in, chunk.Len(), txn)
		}
		return
	}
	if isEvent != (wantEvent != nil) || isEvent != (decodeErr != nil) {
		t.Fatalf("%x: is an event: %v, the twin says %v, the long way %v", in, isEvent, wantEvent != nil, decodeErr)
	}
	if isEvent {
		if !cmp.Equal(*wantEvent, e) {
			t.Fatalf("%x: %s", in, cmp.Diff(*wantEvent, e))
		}
		var again assemble.Event
		if _, err := d.Message(AppendEvent(nil, &e), &chunk, &again); err != nil || !cmp.Equal(again, e) {
			t.Fatalf("%+v is written as %+v, %v", e, again, err)
		}
		again = assemble.Event{}
		text := codec.AppendEvent(nil, &e)
		if isEvent, err := codec.New(codec.Options{}).Message(text, &chunk, &again); !isEvent || err != nil || !cmp.Equal(again, e) {
			t.Fatalf("%s is %+v, %v, not %+v", text, again, err, e)
		}
		return
	}
	if !cmp.Equal(*wantTxn, txn) {
		t.Fatalf("%x: %s", in, cmp.Diff(*wantTxn, txn))
	}
	var again record.Transaction
	if err := d.decode(Append(nil, &txn), &again); err != nil || !cmp.Equal(again, txn) {
		t.Fatalf("%+v is written as %+v, %v", txn, again, err)
	}
	if err := codec.Decode(codec.AppendJSON(nil, &txn), &again); err != nil || !cmp.Equal(again, txn) {
		t.Fatalf("%+v is written in JSON as %+v, %v", txn, again, err)
	}
	var b packed.Builder
	b.Append(chunk.Part())
	if got := b.Records().Transactions(); !cmp.Equal(got, []record.Transaction{txn}) {
		t.Fatalf("%x: packed %s", in, cmp.Diff(txn, got[0]))
	}
}

// Several messages packed one after the other: what a refused one leaves behind would show.
func TestPackMany(t *testing.T) {
	d := New(codec.Options{})
	good := sample()[:2]
	rng := rand.New(rand.NewPCG(7, 7))
	var chunk packed.Chunk
	var want []record.Transaction
	for range 5000 {
		b := slices.Clone(good[rng.IntN(2)])
		for range rng.IntN(3) {
			b[rng.IntN(len(b))] ^= 1 << rng.IntN(8)
		}
		var one record.Transaction
		wantErr := d.decode(b, &one)
		var e assemble.Event
		isEvent, err := d.Message(b, &chunk, &e)
		if !isEvent && !cmp.Equal(reject.From(err), reject.From(wantErr)) {
			t.Fatalf("%x: Message says %v, the long way %v", b, err, wantErr)
		}
		if wantErr == nil {
			want = append(want, one)
		}
	}
	var b packed.Builder
	b.Append(chunk.Part())
	if got := b.Records().Transactions(); len(want) < 1000 || len(want) > 4900 || !cmp.Equal(got, want) {
		t.Fatalf("%d records: %s", len(want), cmp.Diff(want, got))
	}
}

// anyTransaction draws a record as the JSON decoder leaves it.
func anyTransaction(r *rapid.T) record.Transaction {
	name := rapid.StringMatching(`[a-zé"\\/0-9:]{1,12}`)
	t := record.Transaction{Node: rapid.SampledFrom([]string{"", "db-1"}).Draw(r, "node"), Statements: rapid.SampledFrom([]string{"", "select 1"}).Draw(r, "statements"), DB: rapid.SampledFrom([]string{"default", "orders"}).Draw(r, "db"), Session: name.Draw(r, "session"),
		Status: record.Status(rapid.IntRange(0, 2).Draw(r, "status"))}
	t.XID, t.LSN = rapid.SampledFrom([]string{"", "735"}).Draw(r, "xid"), rapid.SampledFrom([]int64{0, 0, 1, 1 << 40}).Draw(r, "lsn")
	if t.HasSeq = rapid.Bool().Draw(r, "has seq"); t.HasSeq {
		t.Seq = rapid.Int64Min(0).Draw(r, "seq")
		t.ID = fmt.Sprintf("%s#%d", t.Session, t.Seq)
	}
	if rapid.Bool().Draw(r, "id") {
		t.ID = name.Draw(r, "id")
	}
	if t.HasTimes = rapid.Bool().Draw(r, "times"); t.HasTimes {
		t.Start = rapid.Int64Min(0).Draw(r, "start")
		t.End = rapid.Int64Min(t.Start).Draw(r, "end")
	}
	for range rapid.IntRange(0, 6).Draw(r, "ops") {
		t.Ops = append(t.Ops, anyOperation(r, name))
	}
	return t
}

func anyOperation(r *rapid.T, name *rapid.Generator[string]) record.Op {
	op := record.Op{Kind: record.OpKind(rapid.IntRange(0, 4).Draw(r, "kind")), Key: name.Draw(r, "key")}
	text := rapid.SampledFrom([]string{`null`, `true`, `false`, `""`, `"x\n"`, `1.5`, `1e300`, `123456789012345678901`, `[]`, `[1,2]`, `[-1]`, `[1.5]`, `["a","1"]`, `[[1]]`, `{}`, `{"a":[null]}`}).Draw(r, "value")
	if op.Kind >= record.PredicateRead {
		op.Where, text = name.Draw(r, "where"), `{"r":{"v":1}}`
	}
	var err error
	if op.Value, err = codec.ParseValue([]byte(text)); err != nil {
		r.Fatal(err)
	}
	if op.Where == "" && rapid.Bool().Draw(r, "integer") {
		op.Value = record.Int(rapid.Int64().Draw(r, "integer"))
	}
	return op
}

// What is written is what the schema says, and read back as what it was; from JSON to
// protobuf and back nothing changes. The library's own encoding of it is read the same.
func TestRoundTrip(t *testing.T) {
	d := New(codec.Options{})
	rapid.Check(t, func(r *rapid.T) {
		want := anyTransaction(r)
		text := codec.AppendJSON(nil, &want)
		var fromJSON, got record.Transaction
		if err := codec.Decode(text, &fromJSON); err != nil || !cmp.Equal(fromJSON, want) {
			r.Fatalf("%s: %v %s", text, err, cmp.Diff(want, fromJSON))
		}
		b := Append([]byte("before"), &fromJSON)[len("before"):]
		if err := d.decode(b, &got); err != nil || !cmp.Equal(got, want) {
			r.Fatalf("%s is %x: %v\n%s", text, b, err, cmp.Diff(want, got))
		}
		if again := codec.AppendJSON(nil, &got); !bytes.Equal(again, text) {
			r.Fatalf("%s became %s", text, again)
		}
		compare(r, d, b)
		m := dynamicpb.NewMessage(messageType())
		if err := proto.Unmarshal(b, m); err != nil {
			r.Fatal(err)
		}
		theirs, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
		if err != nil {
			r.Fatal(err)
		}
		if err := d.decode(theirs, &got); err != nil || !cmp.Equal(got, want) {
			r.Fatalf("%s is %x: %v\n%s", text, theirs, err, cmp.Diff(want, got))
		}
	})
}

// Fields in any order mean the same.
func TestFieldsInAnyOrder(t *testing.T) {
	whole := sample()[0]
	d := New(codec.Options{})
	var want record.Transaction
	if err := d.decode(whole, &want); err != nil {
		t.Fatal(err)
	}
	_, body := d.open(whole)
	if body.err != nil {
		t.Fatal(body.err)
	}
	var fields [][]byte
	for body.more() {
		from := body.p
		switch tag := body.tag(); tag & 7 {
		case varintType:
			body.varint()
		case fixed64:
			body.fixed()
		default:
			body.bytes()
		}
		fields = append(fields, body.b[from:body.p])
	}
	isOp := func(f []byte) bool { return f[0] == txnOps<<3|byte(bytesType) }
	var ops [][]byte // which keep their order
	for _, f := range fields {
		if isOp(f) {
			ops = append(ops, f)
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		rng.Shuffle(len(fields), func(i, j int) { fields[i], fields[j] = fields[j], fields[i] })
		b, from := opened(nil, messageTransaction)
		next := 0
		for _, f := range fields {
			if isOp(f) {
				f = ops[next]
				next++
			}
			b = append(b, f...)
		}
		b = closed(b, from)
		var got record.Transaction
		if err := d.decode(b, &got); err != nil || !cmp.Equal(got, want) {
			t.Fatalf("%x: %v\n%s", b, err, cmp.Diff(want, got))
		}
		compare(t, d, b)
	}
}

// Integers of every length, at the end of the message and before it.
func TestVarints(t *testing.T) {
	for n := range 64 {
		for _, v := range []uint64{1 << n, 1<<n - 1, 1<<n + 1, 1 << n * 3} {
			b := protowire.AppendVarint(nil, v)
			var room [16]byte
			copy(room[:], b)
			room[len(b)] = 0xff
			if got, ok := compact(binary.LittleEndian.Uint64(room[:]), min(len(b), 8)); ok != (len(b) <= 8) || ok && got != v {
				t.Errorf("%d is read as %d, %v", v, got, ok)
			}
			for short := 1; short < min(len(b), 9); short++ {
				if _, ok := compact(binary.LittleEndian.Uint64(room[:]), short); ok {
					t.Errorf("%d ends after %d bytes", v, short)
				}
			}
			for _, d := range []int64{int64(v), -int64(v)} {
				op := record.Op{Kind: record.Write, Key: "k", Value: record.Int(d)}
				txn := record.Transaction{DB: "default", Session: "s", ID: "i", Ops: []record.Op{op, op}}
				compare(t, New(codec.Options{}), Append(nil, &txn))
			}
		}
	}
}
