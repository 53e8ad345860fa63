package packed

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/isowatch/isowatch/ingest/record"
)

// seal packs the records into one block. Some are named in other ways first, as
// who finds them without a name does; it returns what they then are.
func seal(t *rapid.T, txns []record.Transaction) (*Block, []record.Transaction) {
	c := Chunk{Summing: true}
	want := slices.Clone(txns)
	for i := range want {
		x := &want[i]
		if x.ID == "" {
			x.HasSeq = false
		}
		c.Add(x)
		if got := c.Anonymous(); got != (x.ID == "") || c.Timed() != x.HasTimes {
			t.Fatalf("anonymous is %v, timed %v of %+v", got, c.Timed(), x)
		}
		if x.ID == "" {
			switch rapid.IntRange(0, 2).Draw(t, "name") {
			case 0:
				x.ID = "topic/0@" + fmt.Sprint(i)
				c.Name([]byte(x.ID))
			case 1:
				h := record.HeadOf(x)
				x.ID = string(record.AppendContentID(nil, x.Session, h.Content))
				c.NameByContent()
			}
		}
		if rapid.IntRange(0, 9).Draw(t, "undo") == 0 {
			c.Begin(&Head{DB: []byte("undone"), Session: []byte("undone"), HasTimes: true, Start: 7, End: 9, ID: []byte("undone")})
			c.Int(record.Write, []byte("a"), 1<<40)
			if rapid.Bool().Draw(t, "after its end") {
				c.End()
			}
			c.Undo()
		}
	}
	sums := c.Sums()
	b := c.Seal()
	if again := b.Sums(); !slices.Equal(sums, again) {
		t.Fatalf("hashes while packing\n%v, afterwards\n%v", sums, again)
	}
	return b, want
}

func sameBlock(t *rapid.T, b *Block, want []record.Transaction) {
	t.Helper()
	if b.Len() != len(want) {
		t.Fatalf("%d records became %d", len(want), b.Len())
	}
	ops, sums := 0, b.Sums()
	var r Reader
	order := rapid.Permutation(indices(len(want))).Draw(t, "order")
	for _, i := range order {
		got := b.At(i, &r)
		if !same(got, &want[i]) {
			t.Fatalf("At(%d): %s", i, cmp.Diff(want[i], *got))
		}
		for j, k := range r.Keys {
			if int(k) >= b.Names() || b.Name(k) != got.Ops[j].Key {
				t.Fatalf("the key of operation %d of record %d has the number %d of %d", j, i, k, b.Names())
			}
		}
		if own := b.Copy(i); !same(&own, &want[i]) {
			t.Fatalf("Copy(%d): %s", i, cmp.Diff(want[i], own))
		}
		head := b.Head(i)
		head.ID, head.Content = sums[i].ID, sums[i].Content
		if diff := cmp.Diff(record.HeadOf(&want[i]), head); diff != "" {
			t.Fatalf("the head of record %d: %s", i, diff)
		}
		ops += len(got.Ops)
	}
	if b.ops != ops {
		t.Fatalf("%d operations, should be %d", b.ops, ops)
	}
	var dbs []string
	for i := range want {
		if !slices.Contains(dbs, want[i].DB) {
			dbs = append(dbs, want[i].DB)
		}
	}
	if !slices.Equal(b.DBs(), dbs) {
		t.Fatalf("histories %q, should be %q", b.DBs(), dbs)
	}
}

func indices(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// A block gives back what was put in, one by one in any order, also after it was
// bytes.
func TestBlock(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b, want := seal(t, rapid.SliceOfN(rapid.Custom(drawRecord), 0, 25).Draw(t, "records"))
		sameBlock(t, b, want)
		bytes := b.Marshal([]byte("before"))[len("before"):]
		again, err := Unmarshal(bytes)
		if err != nil {
			t.Fatal(err)
		}
		sameBlock(t, again, want)
		if second := again.Marshal(nil); !slices.Equal(second, bytes) {
			t.Fatal("a block has other bytes the second time")
		}
	})
}

// Records with very many operations, names, or a very long one, take the wide forms.
func TestBlockWide(t *testing.T) {
	r := Of([]record.Transaction{wideRecord(), wideRecord()})
	var c Chunk
	for i := range 2 {
		x := r.At(i)
		c.Add(&x)
	}
	x := wideRecord()
	x.ID, x.HasSeq = "", false
	c.Add(&x)
	c.Name([]byte("named"))
	x.ID = "named"
	b, err := Unmarshal(c.Seal().Marshal(nil))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []record.Transaction{wideRecord(), wideRecord(), x} {
		if got := b.Copy(i); !cmp.Equal(got, want) {
			t.Fatalf("record %d is changed", i)
		}
	}
}

// A record that is taken back leaves nothing behind: not even what others are
// differences from.
func TestUndo(t *testing.T) {
	pack := func(undo bool) int {
		var c Chunk
		if undo {
			c.Begin(&Head{DB: []byte("default"), Session: []byte("s0"), HasTimes: true, Start: 7, End: 9, ID: []byte("undone")})
			c.Int(record.Write, []byte("k1"), 1<<60)
			c.Undo()
		}
		for _, x := range typical(5) {
			c.Add(&x)
		}
		return len(c.Seal().data)
	}
	if got, want := pack(true), pack(false); got != want {
		t.Errorf("%d bytes, without the record that was taken back %d", got, want)
	}
}

// Bytes that are cut off, or of which one is another, are an error or a block that
// can be read.
func TestDamage(t *testing.T) {
	var c Chunk
	for _, x := range append(typical(20), oddRecords()...) {
		c.Add(&x)
	}
	good := c.Seal().Marshal(nil)
	for n := range good {
		if _, err := Unmarshal(good[:n]); !errors.Is(err, ErrDamaged) {
			t.Fatalf("the first %d bytes of %d: %v", n, len(good), err)
		}
	}
	bad := 0
	for n := range good {
		for _, change := range []byte{1, 0x80, 0xff} {
			b := slices.Clone(good)
			b[n] ^= change
			if readAll(t, b) != nil {
				bad++
			}
		}
	}
	if bad < len(good)/10 {
		t.Errorf("only %d changes of %d were noticed", bad, 3*len(good))
	}
}

// oddRecords have every kind of operation and value.
func oddRecords() []record.Transaction {
	x := record.Transaction{DB: "other", Session: "s", ID: "its own", Status: record.Unknown, Start: 5}
	for kind := record.Read; kind <= record.PredicateWrite; kind++ {
		for value := record.KindNull; value <= record.KindObject; value++ {
			op := record.Op{Kind: kind, Key: fmt.Sprint("key", value), Value: record.Value{Kind: value}}
			switch value {
			case record.KindNull:
			case record.KindInt:
				op.Value.Num = int64(kind) << 40
			default:
				op.Value.Text = "text"
			}
			if kind >= record.PredicateRead {
				op.Where = "v > 1"
			}
			x.Ops = append(x.Ops, op)
		}
	}
	return []record.Transaction{x}
}

// readAll takes everything out of the block in b, if it is one. What can be taken
// out can be packed again.
func readAll(t testing.TB, b []byte) error {
	block, err := Unmarshal(b)
	if err != nil {
		if !errors.Is(err, ErrDamaged) {
			t.Fatalf("not an ErrDamaged: %v", err)
		}
		return err
	}
	sums := block.Sums()
	block.DBs()
	var c Chunk
	var r Reader
	for i := range block.Len() {
		x := block.At(i, &r)
		h := block.Head(i)
		h.ID, h.Content = sums[i].ID, sums[i].Content
		if want := record.HeadOf(x); h != want {
			t.Fatalf("the head of record %d is %+v, should be %+v", i, h, want)
		}
		c.Add(x)
	}
	if block.Len() > 0 {
		if got, want := c.Seal().Copy(block.Len()-1), block.Copy(block.Len()-1); !cmp.Equal(got, want) {
			t.Fatal(cmp.Diff(want, got))
		}
	}
	return nil
}

func FuzzUnmarshal(f *testing.F) {
	for _, txns := range [][]record.Transaction{nil, typical(3), oddRecords()} {
		var c Chunk
		for i := range txns {
			c.Add(&txns[i])
		}
		f.Add(c.Seal().Marshal(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) { readAll(t, b) }) //nolint:errcheck // either will do
}

// blindW are records as a busy topic has them: 24 sessions, 8 reads or 8 writes on
// keys keys, unique integers, times.
func blindW(n, keys int) *Block {
	var c Chunk
	value, state := int64(0), uint64(1)
	draw := func(n int) int {
		state = state*6364136223846793005 + 1442695040888963407
		return int(state>>33) % n
	}
	for i := range n {
		x := record.Transaction{DB: "default", Session: fmt.Sprintf("s%d", i%24), Seq: 1000 + int64(i/24), HasSeq: true, HasTimes: true}
		x.ID = fmt.Sprintf("%s#%d", x.Session, x.Seq)
		x.Start = 1732160000000000000 + int64(i)*8333
		x.End = x.Start + 1_000_000 + int64(draw(1_000_000))
		for range 8 {
			op := record.Op{Kind: record.OpKind(i % 2), Key: fmt.Sprintf("k:%d", draw(keys)), Value: record.Int(1_000_000 + value - int64(draw(4*keys)))}
			if op.Kind == record.Write {
				value++
				op.Value = record.Int(1_000_000 + value)
			}
			x.Ops = append(x.Ops, op)
		}
		c.Add(&x)
	}
	return c.Seal()
}

// A record that waits takes at most 110 bytes, names included.
func TestBlockSize(t *testing.T) {
	b := blindW(4096, 10_000)
	n := b.Bytes() / int64(b.Len())
	t.Logf("%d bytes a record, of which records %d, names %d; %d marshalled", n, len(b.data)/b.Len(), (len(b.text)+4*len(b.ends))/b.Len(), len(b.Marshal(nil))/b.Len())
	if n > 110 {
		t.Errorf("a record takes %d bytes", n)
	}
}

// Taking records out allocates nothing but IDs, of which a block holds many.
func TestAtAllocates(t *testing.T) {
	b := blindW(4096, 10_000)
	var r Reader
	i := 0
	if n := testing.AllocsPerRun(4000, func() { b.At(i*2477%b.Len(), &r); i++ }); n > 0.05 {
		t.Errorf("%v allocations a record", n)
	}
	runtime.KeepAlive(b)
}

func BenchmarkBlock(b *testing.B) {
	block := blindW(4096, 10_000)
	ops := float64(block.ops) / float64(block.Len())
	perOp := func(b *testing.B, records int) {
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(records)/ops, "ns/operation")
	}
	b.Run("at", func(b *testing.B) {
		var r Reader
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			block.At(i*2477%block.Len(), &r)
		}
		perOp(b, 1)
	})
	b.Run("head", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			block.Head(i * 2477 % block.Len())
		}
	})
	b.Run("sums", func(b *testing.B) {
		for b.Loop() {
			block.Sums()
		}
		perOp(b, block.Len())
	})
	bytes := block.Marshal(nil)
	b.Run("marshal", func(b *testing.B) {
		for b.Loop() {
			bytes = block.Marshal(bytes[:0])
		}
		perOp(b, block.Len())
	})
	b.Run("unmarshal", func(b *testing.B) {
		for b.Loop() {
			if _, err := Unmarshal(bytes); err != nil {
				b.Fatal(err)
			}
		}
		perOp(b, block.Len())
	})
}
