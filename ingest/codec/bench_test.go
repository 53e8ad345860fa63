package codec

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/record/packed"
)

// blindW is a thousand records of 8 reads or 8 writes over 10,000 keys, from 24
// sessions, with times: what a busy topic holds.
func blindW() [][]byte {
	rng := rand.New(rand.NewPCG(1, 2))
	var out [][]byte
	for i := range 1000 {
		t := record.Transaction{DB: "orders", Session: fmt.Sprintf("api-%d/%d", i%3, i%24), Seq: int64(i), HasSeq: true,
			Start: 1732160000123456789 + int64(i)*1e5, HasTimes: true}
		t.End = t.Start + 1543211
		t.ID = fmt.Sprintf("%s#%d", t.Session, t.Seq)
		for j := range 8 {
			t.Ops = append(t.Ops, record.Op{Kind: record.OpKind(i % 2), Key: fmt.Sprintf("acct:%d", rng.IntN(10_000)), Value: record.Int(int64(i*8 + j))})
		}
		out = append(out, AppendJSON(nil, &t))
	}
	return out
}

func benchDecode(b *testing.B, records [][]byte, decode func([]byte, *record.Transaction) error) {
	size := 0
	for _, r := range records {
		size += len(r)
	}
	b.SetBytes(int64(size / len(records)))
	b.ReportAllocs()
	var t record.Transaction
	for i := 0; b.Loop(); i++ {
		if err := decode(records[i%len(records)], &t); err != nil {
			b.Fatal(err)
		}
	}
}

// One record of 8 operations, as the stream decodes it.
func BenchmarkDecode(b *testing.B) { benchDecode(b, blindW(), New(Options{}).Decode) }

// The same, packed, as the batch checker decodes it.
func BenchmarkPack(b *testing.B) {
	d := New(Options{})
	var c packed.Chunk
	benchDecode(b, blindW(), func(r []byte, _ *record.Transaction) error {
		if c.Len() == 2000 {
			c.Seal()
		}
		return d.Pack(r, &c)
	})
}

// The peer: what the standard library needs for the same bytes without any of the checks.
func BenchmarkDecodeStandardLibrary(b *testing.B) {
	benchDecode(b, blindW(), func(r []byte, _ *record.Transaction) error {
		var t struct {
			DB, Session, ID, Status string
			Seq, Start, End         int64
			Ops                     [][]any
		}
		return json.Unmarshal(r, &t)
	})
}

// Lists, objects out of order and escapes: the slow paths.
func BenchmarkDecodeValues(b *testing.B) {
	r := []byte(`{"session":"s\u0031","status":"committed","ops":[["r","feed:9",[3,17,4,1,"a\/b"]],` +
		`["w","row",{"z":1.50,"a":{"c":[],"b":null}}],["rp",{"table":"t","where":"v > 1"},{"t:7":{"v":12},"t:3":{"v":1e2}}]]}`)
	benchDecode(b, [][]byte{r}, New(Options{}).Decode)
}

func BenchmarkAppendJSON(b *testing.B) {
	var t record.Transaction
	if err := Decode(blindW()[0], &t); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	var out []byte
	for b.Loop() {
		out = AppendJSON(out[:0], &t)
	}
}
