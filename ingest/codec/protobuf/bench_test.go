package protobuf

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/isowatch/isowatch/ingest/assemble"
	"github.com/isowatch/isowatch/ingest/codec"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/record/packed"
)

// blindW is a thousand records of 8 reads or 8 writes over 10,000 keys, from 24
// sessions, with times: those that the codec package's benchmarks decode.
func blindW() (protobuf, json [][]byte) {
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 1000 {
		t := record.Transaction{DB: "orders", Session: fmt.Sprintf("api-%d/%d", i%3, i%24), Seq: int64(i), HasSeq: true,
			Start: 1732160000123456789 + int64(i)*1e5, HasTimes: true}
		t.End = t.Start + 1543211
		t.ID = fmt.Sprintf("%s#%d", t.Session, t.Seq)
		for j := range 8 {
			t.Ops = append(t.Ops, record.Op{Kind: record.OpKind(i % 2), Key: fmt.Sprintf("acct:%d", rng.IntN(10_000)), Value: record.Int(int64(i*8 + j))})
		}
		protobuf, json = append(protobuf, Append(nil, &t)), append(json, codec.AppendJSON(nil, &t))
	}
	return protobuf, json
}

func benchPack(b *testing.B, records [][]byte, pack func([]byte, *packed.Chunk) error) {
	size := 0
	for _, r := range records {
		size += len(r)
	}
	var c packed.Chunk
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if c.Len() == 2000 {
			c.Part()
		}
		if err := pack(records[i%len(records)], &c); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(size)/float64(len(records)), "bytes/record")
}

// One record of 8 operations, packed, as the stream decodes it; beside the JSON form.
func BenchmarkPack(b *testing.B) {
	protobuf, json := blindW()
	b.Run("protobuf", func(b *testing.B) {
		d := New(codec.Options{})
		var e assemble.Event
		benchPack(b, protobuf, func(r []byte, c *packed.Chunk) error {
			_, err := d.Message(r, c, &e)
			return err
		})
	})
	b.Run("json", func(b *testing.B) { benchPack(b, json, codec.New(codec.Options{}).Pack) })
}

// What of both is the packing itself: the same records, decoded before.
func BenchmarkPackAlone(b *testing.B) {
	protobuf, _ := blindW()
	d := New(codec.Options{})
	heads, keys := make([]packed.Head, len(protobuf)), make([][][]byte, len(protobuf))
	values, kinds := make([][8]int64, len(protobuf)), make([]record.OpKind, len(protobuf))
	for i, r := range protobuf {
		var t record.Transaction
		if err := d.decode(r, &t); err != nil {
			b.Fatal(err)
		}
		heads[i] = packed.Head{DB: []byte(t.DB), Session: []byte(t.Session), Seq: t.Seq, HasSeq: true, SeqID: true, Start: t.Start, End: t.End, HasTimes: true}
		kinds[i] = t.Ops[0].Kind
		for j := range t.Ops {
			keys[i] = append(keys[i], append(make([]byte, 0, 16), t.Ops[j].Key...))
			values[i][j] = t.Ops[j].Value.Num
		}
	}
	at := 0
	benchPack(b, protobuf, func(_ []byte, c *packed.Chunk) error {
		c.Begin(&heads[at])
		for j, key := range keys[at] {
			c.Int(kinds[at], key, values[at][j])
		}
		c.End()
		at = (at + 1) % len(heads)
		return nil
	})
}

func BenchmarkAppend(b *testing.B) {
	protobuf, _ := blindW()
	var t record.Transaction
	if err := New(codec.Options{}).decode(protobuf[0], &t); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	var out []byte
	for b.Loop() {
		out = Append(out[:0], &t)
	}
}
