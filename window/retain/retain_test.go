package retain

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
)

func drawString(t *rapid.T) string {
	return rapid.OneOf(
		rapid.StringMatching(`(acct:|k|)0{0,2}[0-9]{0,20}`),
		rapid.String(),
		rapid.SampledFrom([]string{"", "0", "00", "a0", "a00", "a7#", "999999999999999999", "18446744073709551615", "\xff\x00", strings.Repeat("x", 300) + "7"}),
	).Draw(t, "string")
}

func drawValue(t *rapid.T) record.Value {
	switch k := record.ValueKind(rapid.IntRange(0, int(record.KindObject)).Draw(t, "kind")); k {
	case record.KindNull:
		return record.Null
	case record.KindInt:
		return record.Int(rapid.Int64().Draw(t, "int"))
	default:
		return record.Value{Kind: k, Text: drawString(t)}
	}
}

func drawTxn(t *rapid.T) *record.Transaction {
	x := &record.Transaction{
		DB: rapid.SampledFrom([]string{"d", "d", "d", "e"}).Draw(t, "db"), Session: drawString(t),
		Seq: rapid.Int64().Draw(t, "seq"), HasSeq: rapid.Bool().Draw(t, "hasSeq"),
		Start: rapid.Int64().Draw(t, "start"), End: rapid.Int64().Draw(t, "end"), HasTimes: rapid.Bool().Draw(t, "hasTimes"),
		Status: record.Status(rapid.IntRange(0, 2).Draw(t, "status")),
	}
	x.ID = fmt.Sprintf("%s#%d", x.Session, x.Seq)
	if rapid.Bool().Draw(t, "other") {
		x.ID = drawString(t)
	}
	for range rapid.IntRange(0, 4).Draw(t, "ops") {
		op := record.Op{Kind: record.OpKind(rapid.IntRange(0, 4).Draw(t, "op")), Key: drawString(t), Value: drawValue(t)}
		if rapid.Bool().Draw(t, "predicate") {
			op.Where = drawString(t)
		}
		x.Ops = append(x.Ops, op)
	}
	return x
}

// TestRoundTrip: a block gives back what was put in, whatever that is.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var e encoder
		for range 2 { // the second time into a reset encoder
			var want []record.Transaction
			for range rapid.IntRange(1, 10).Draw(t, "n") {
				x := drawTxn(t)
				want = append(want, *x)
				e.add(x)
			}
			got, err := decode(e.buf, "d")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("(-put +got)\n%s", diff)
			}
			e.reset()
		}
	})
}

func TestSplit(t *testing.T) {
	for s, want := range map[string]struct {
		prefix string
		number uint64
	}{
		"acct:1042": {"acct:", 1043}, "acct:": {"acct:", 0}, "": {"", 0}, "0": {"", 1}, "007": {"00", 8}, "00": {"0", 1},
		"a1b": {"a1b", 0}, "1234567890123456789": {"1", 234567890123456790},
	} {
		if p, n := split(s); p != want.prefix || n != want.number {
			t.Errorf("split(%q) = %q, %d; want %q, %d", s, p, n, want.prefix, want.number)
		}
	}
}

// FuzzDecode: damaged blocks give errors, neither panics nor much memory.
func FuzzDecode(f *testing.F) {
	var e encoder
	for i := range 20 {
		e.add(typical(rand.New(rand.NewPCG(1, 1)), i, 24, 1000))
	}
	f.Add(e.buf)
	f.Add(e.buf[:len(e.buf)/2])
	f.Add([]byte{})
	f.Add([]byte{0, 1, 'd', 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f})
	f.Fuzz(func(t *testing.T, block []byte) {
		txns, err := decode(block, "d")
		if err != nil || len(txns) == 0 {
			return
		}
		if len(txns) > len(block) {
			t.Fatalf("%d records out of %d bytes", len(txns), len(block))
		}
		var e encoder
		for i := range txns {
			e.add(&txns[i])
		}
		again, err := decode(e.buf, "d")
		if err != nil || !reflect.DeepEqual(txns, again) {
			t.Fatalf("%+v read again as %+v, %v", txns, again, err)
		}
	})
}

// typical is the i-th of a stream of transactions of 8 operations, half reads of
// recent values, half writes of unique ones.
func typical(r *rand.Rand, i, sessions, keys int) *record.Transaction {
	s := i % sessions
	start := 1_732_160_000_000_000_000 + int64(i)*8333 + r.Int64N(100_000)
	x := &record.Transaction{DB: "d", Session: fmt.Sprintf("api-%d/%d", s%3, s), Seq: int64(i / sessions), HasSeq: true,
		Start: start, End: start + 50_000 + r.Int64N(200_000), HasTimes: true, Ops: make([]record.Op, 8)}
	x.ID = fmt.Sprintf("%s#%d", x.Session, x.Seq)
	for j := range x.Ops {
		op := record.Op{Kind: record.Read, Key: fmt.Sprintf("key:%d", r.IntN(keys)), Value: record.Int(int64(max(0, i*4-r.IntN(2*keys))))}
		if j%2 == 1 {
			op.Kind, op.Value = record.Write, record.Int(int64(i*4+j/2))
		}
		x.Ops[j] = op
	}
	return x
}

func newMemory(t testing.TB, opt Options) *Memory {
	t.Helper()
	m, err := New(opt)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestKeepsAndForgets compares with a plain slice at every step around the
// block boundaries, and with a random look at any time.
func TestKeepsAndForgets(t *testing.T) {
	const retained = 3*blockSize + 17
	const base = 5
	m := newMemory(t, Options{Retain: retained, DB: "d", Next: base})
	r := rand.New(rand.NewPCG(1, 2))
	var all []*record.Transaction
	for i := range 12 * blockSize {
		x := typical(r, i, 24, 1000)
		if err := m.Append(verdict.TxnID(base+i), x); err != nil {
			t.Fatal(err)
		}
		all = append(all, x)
		if kept := int(m.Next() - m.First()); kept < min(len(all), retained) || kept > retained+2*blockSize {
			t.Fatalf("%d kept of %d", kept, len(all))
		}
		for _, id := range []int{r.IntN(len(all)), i, int(m.First()) - base, int(m.First()) - base - 1} {
			got, ok := m.Get(verdict.TxnID(base + id))
			if want := id >= int(m.First())-base; ok != want {
				t.Fatalf("after %d: %d kept: %v, first is %d", i, id, ok, m.First())
			}
			if ok {
				if diff := cmp.Diff(all[id], got); diff != "" {
					t.Fatalf("%d (-put +got)\n%s", id, diff)
				}
			}
		}
	}
	for _, id := range []verdict.TxnID{0, base - 1, m.Next(), verdict.NoTxn} {
		if _, ok := m.Get(id); ok {
			t.Errorf("%d was never appended", id)
		}
	}
}

func TestAppendChecksTheNumber(t *testing.T) {
	m := newMemory(t, Options{})
	x := &record.Transaction{}
	for _, id := range []verdict.TxnID{1, math.MaxUint32} {
		if err := m.Append(id, x); err == nil {
			t.Errorf("%d appended where 0 is next", id)
		}
	}
	if err := m.Append(0, x); err != nil {
		t.Error(err)
	}
	if err := m.Append(0, x); err == nil {
		t.Error("0 appended twice")
	}
}

// TestSize pins what a transaction takes, so that a change of the format that
// costs memory is seen.
func TestSize(t *testing.T) {
	for _, keys := range []int{10_000, 1_000_000} {
		m := newMemory(t, Options{})
		r := rand.New(rand.NewPCG(1, 2))
		const n = 200 * blockSize
		for i := range n {
			if err := m.Append(verdict.TxnID(i), typical(r, i, 24, keys)); err != nil {
				t.Fatal(err)
			}
		}
		per := float64(m.bytes) / n
		t.Logf("%d keys: %.1f bytes per transaction of 8 operations", keys, per)
		if per > 80 {
			t.Errorf("%d keys: %.1f bytes per transaction, want at most 80", keys, per)
		}
	}
}

// BenchmarkAppend appends transactions of 8 operations on 10,000 keys by 24
// sessions; per transaction.
func BenchmarkAppend(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	var txns []*record.Transaction
	for i := range 64 * blockSize {
		txns = append(txns, typical(r, i, 24, 10_000))
	}
	m := newMemory(b, Options{Retain: 100_000})
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		if err := m.Append(verdict.TxnID(i), txns[i%len(txns)]); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(m.Bytes())/float64(m.Next()-m.First()), "B/txn-kept")
}

// BenchmarkGet gets any of 100,000 transactions: one that needs its block
// decoded, nearly always.
func BenchmarkGet(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	m := newMemory(b, Options{})
	for i := range 100_000 {
		if err := m.Append(verdict.TxnID(i), typical(r, i, 24, 10_000)); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		if _, ok := m.Get(verdict.TxnID(r.IntN(100_000))); !ok {
			b.Fatal("not kept")
		}
	}
}
