package packed

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/leak"
	_ "github.com/isowatch/isowatch/internal/lab/seeds"
)

// drawValue is any canonical value.
func drawValue(t *rapid.T) record.Value {
	text := rapid.StringN(0, 12, -1).Draw(t, "text")
	switch rapid.IntRange(0, 7).Draw(t, "kind of value") {
	case 0:
		return record.Null
	case 1:
		return record.Value{Kind: record.KindNumber, Text: "1." + fmt.Sprint(rapid.IntRange(1, 9).Draw(t, "digit"))}
	case 2:
		return record.Value{Kind: record.KindBool, Text: "true"}
	case 3:
		return record.String(text)
	case 4:
		return record.Value{Kind: record.KindList, Text: "[" + record.String(text).String() + "]"}
	case 5:
		return record.Value{Kind: record.KindObject, Text: "{}"}
	}
	return record.Int(rapid.Int64().Draw(t, "integer"))
}

func drawName(t *rapid.T, what string) string {
	return rapid.OneOf(rapid.SampledFrom([]string{"a", "b", "key:1", "key:2", "", "12345678", "123456789", "12345678\x00", "12345678\x00\x00"}),
		rapid.StringN(0, 40, -1)).Draw(t, what)
}

// drawRecord is any record, also one that contradicts itself.
func drawRecord(t *rapid.T) record.Transaction {
	x := record.Transaction{Node: rapid.SampledFrom([]string{"", "", "db-1", "default", "a", "a\x00b", "\x00"}).Draw(t, "node"), Statements: rapid.SampledFrom([]string{"", "", "a", "select 1"}).Draw(t, "statements"), DB: rapid.SampledFrom([]string{"default", "default", "default", "other", ""}).Draw(t, "db"),
		Session: drawName(t, "session"), HasSeq: rapid.Bool().Draw(t, "has seq"), HasTimes: rapid.Bool().Draw(t, "has times"),
		Status: record.Status(rapid.IntRange(0, 2).Draw(t, "status"))}
	x.XID, x.LSN = rapid.SampledFrom([]string{"", "", "735"}).Draw(t, "xid"), rapid.SampledFrom([]int64{0, 0, 0, 1, 1 << 40}).Draw(t, "lsn")
	number := rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(0, 300), rapid.Int64())
	x.Seq, x.Start, x.End = number.Draw(t, "seq"), number.Draw(t, "start"), number.Draw(t, "end")
	if x.ID = drawName(t, "id"); rapid.Bool().Draw(t, "usual id") {
		x.ID = fmt.Sprintf("%s#%d", x.Session, x.Seq)
	}
	for range rapid.IntRange(0, 5).Draw(t, "operations") {
		op := record.Op{Kind: record.OpKind(rapid.IntRange(0, 4).Draw(t, "kind")), Key: drawName(t, "key"), Value: drawValue(t)}
		if op.Kind >= record.PredicateRead {
			op.Where = drawName(t, "where")
		}
		x.Ops = append(x.Ops, op)
	}
	return x
}

// pack joins the records in blocks of a few each, made by two chunks in turn as
// two goroutines would, or added one by one.
func pack(t *rapid.T, txns []record.Transaction) *Records {
	var b Builder
	if rapid.Bool().Draw(t, "one by one") {
		for i := range txns {
			b.Add(&txns[i])
		}
		return b.Records()
	}
	chunks := [2]Chunk{}
	for n := 0; len(txns) > 0; n++ {
		c := &chunks[n%2]
		for range min(rapid.IntRange(0, 80).Draw(t, "records in the block"), len(txns)) {
			c.Add(&txns[0])
			txns = txns[1:]
			if rapid.IntRange(0, 9).Draw(t, "undo") == 0 {
				c.Begin(&Head{DB: []byte("undone"), Session: []byte("undone"), HasTimes: true, Start: 7, End: 9, ID: []byte("undone")})
				c.Int(record.Write, []byte("a"), 1<<40)
				c.Undo()
			}
		}
		b.Append(c.Part())
	}
	return b.Records()
}

// What is taken out is what was put in, one by one, in a row, or all at once.
func TestNothingIsLost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SliceOfN(rapid.Custom(drawRecord), 0, 150).Draw(t, "records")
		r := pack(t, want)
		if r.Len() != len(want) {
			t.Fatalf("%d records became %d", len(want), r.Len())
		}
		if got := r.Transactions(); !cmp.Equal(got, want) && len(want) > 0 {
			t.Fatal(cmp.Diff(want, got))
		}
		n := 0
		for i, got := range r.All() {
			if i != n || !same(got, &want[i]) {
				t.Fatalf("the %d-th of All is numbered %d: %s", n, i, cmp.Diff(want[n], *got))
			}
			n++
		}
		if n != len(want) {
			t.Fatalf("All gives %d records of %d", n, len(want))
		}
		for i := range want {
			if got := r.At(i); !cmp.Equal(got, want[i]) {
				t.Fatalf("At(%d): %s", i, cmp.Diff(want[i], got))
			}
		}
		if got, want := r.Summary(), summarize(want); got != want {
			t.Fatalf("Summary is %+v, want %+v", got, want)
		}
	})
}

// same is == with a list of no operations for none.
func same(a, b *record.Transaction) bool {
	x, y := *a, *b
	x.Ops, y.Ops = nil, nil
	return cmp.Equal(x, y) && slices.Equal(a.Ops, b.Ops)
}

// summarize is Summary, from its definition.
func summarize(txns []record.Transaction) Summary {
	s := Summary{Records: len(txns), Regular: true, Missing: record.Missing(txns)}
	sessions, keys, last := map[string]bool{}, map[string]bool{}, map[string]int64{}
	for _, t := range txns {
		s.Operations += len(t.Ops)
		sessions[t.Session] = true
		for _, op := range t.Ops {
			keys[op.Key] = true
			if op.Where != "" {
				s.Predicates++
			}
		}
		s.Regular = s.Regular && t.HasSeq && t.ID == fmt.Sprintf("%s#%d", t.Session, t.Seq) && t.DB == txns[0].DB
		if !t.HasSeq {
			continue
		}
		if before, known := last[t.Session]; known {
			s.Regular = s.Regular && t.Seq > before
		}
		last[t.Session] = t.Seq
	}
	s.Sessions, s.Keys = len(sessions), len(keys)
	return s
}

// Regular has to notice every way in which a history is not.
func TestRegular(t *testing.T) {
	usual := func() []record.Transaction {
		var out []record.Transaction
		for i := range 100 {
			s := fmt.Sprintf("s%d", i%3)
			out = append(out, record.Transaction{DB: "d", Session: s, Seq: int64(i), HasSeq: true, ID: fmt.Sprintf("%s#%d", s, i)})
		}
		return out
	}
	for _, c := range []struct {
		name  string
		spoil func([]record.Transaction)
		want  bool
	}{
		{"as it is", func([]record.Transaction) {}, true},
		{"another id", func(x []record.Transaction) { x[70].ID = "x" }, false},
		{"the id of another seq", func(x []record.Transaction) { x[70].ID = x[67].ID }, false},
		{"without seq", func(x []record.Transaction) { x[70].HasSeq = false }, false},
		{"out of order", func(x []record.Transaction) { x[70], x[73] = x[73], x[70] }, false},
		{"twice", func(x []record.Transaction) { x[73] = x[70] }, false},
		{"another database", func(x []record.Transaction) { x[70].DB = "e" }, false},
		{"another database at the end", func(x []record.Transaction) { x[99].DB = "e" }, false},
	} {
		txns := usual()
		c.spoil(txns)
		var b Builder
		for rest := txns; len(rest) > 0; {
			var chunk Chunk
			for range min(33, len(rest)) {
				chunk.Add(&rest[0])
				rest = rest[1:]
			}
			b.Append(chunk.Part())
		}
		if got := b.Records().Summary().Regular; got != c.want {
			t.Errorf("%s: regular is %v", c.name, got)
		}
	}
}

// What is missing in sessions is what package record counts, record by record and chunk by
// chunk; sessions that go through all numbers overflow nothing.
func TestMissing(t *testing.T) {
	const most, least, none = math.MaxInt64, math.MinInt64, 1 << 50
	for _, c := range []struct {
		seqs map[string][]int64
		want int64
	}{
		{map[string][]int64{"a": {0, 1, 2}, "b": {1, 2}, "c": {none, none}}, 0},
		{map[string][]int64{"a": {0, 4, 6}}, 4},
		{map[string][]int64{"a": {2}}, 1},
		{map[string][]int64{"a": {5, 6, 8}, "b": {0}, "c": {3}}, 4 + 1 + 2},
		{map[string][]int64{"a": {none, 7, 8, none, 10}}, 1}, // where it began nobody says
		{map[string][]int64{"a": {5, 4, 0, 2}}, 4 + 1},       // out of order, which nobody gives it
		{map[string][]int64{"a": {0, most}}, most - 1},
		{map[string][]int64{"a": {0, most}, "b": {most}}, most},
		// No decoder gives these, whatever the bytes.
		{map[string][]int64{"a": {least, least + 1}}, 0},
		{map[string][]int64{"a": {-1, most}}, most},
		{map[string][]int64{"a": {least, most}}, most},
		{map[string][]int64{"a": {most, least, 0}}, most},
	} {
		var txns []record.Transaction
		for _, s := range slices.Sorted(maps.Keys(c.seqs)) {
			for _, n := range c.seqs[s] {
				txns = append(txns, record.Transaction{Session: s, HasSeq: n != none, Seq: n})
			}
		}
		var b Builder
		for i := range txns {
			var one Chunk
			one.Add(&txns[i])
			b.Append(one.Part())
		}
		if got, other, chunked := record.Missing(txns), Of(txns).Summary().Missing, b.Records().Summary().Missing; got != c.want || other != got || chunked != got {
			t.Errorf("%v: %d, packed %d, in chunks %d are missing, want %d", c.seqs, got, other, chunked, c.want)
		}
	}
}

// wideRecord has very many names, and a very long one.
func wideRecord() record.Transaction {
	x := record.Transaction{Session: "s", DB: strings.Repeat("d", 300)}
	for i := range 70_000 {
		x.Ops = append(x.Ops, record.Op{Kind: record.Write, Key: fmt.Sprint("k", i), Value: record.Int(int64(i) << 40)})
	}
	x.Ops = append(x.Ops, record.Op{Kind: record.Append, Key: strings.Repeat("k", 1<<17), Value: record.String(strings.Repeat("v", 1<<17))})
	return x
}

// Such records take the wide forms.
func TestWide(t *testing.T) {
	want := wideRecord()
	r := Of([]record.Transaction{want, want})
	for i := range 2 {
		if got := r.At(i); !cmp.Equal(got, want) {
			t.Fatalf("record %d is changed", i)
		}
	}
}

// As a busy file has it: 1 in 3 sessions, 7.6 operations on 10,000 keys, half of
// them reads of recent values, times.
func typical(n int) []record.Transaction {
	rng := rand.New(rand.NewPCG(1, 2))
	out := make([]record.Transaction, n)
	value := int64(0)
	for i := range out {
		s := i % 50
		t := &out[i]
		*t = record.Transaction{DB: "default", Session: fmt.Sprintf("s%d", s), Seq: int64(i / 50), HasSeq: true,
			ID: fmt.Sprintf("s%d#%d", s, i/50), Start: 1732160000000000000 + int64(i)*12345, HasTimes: true}
		t.End = t.Start + 1_500_000 + rng.Int64N(1_000_000)
		for range 5 + rng.IntN(6) {
			op := record.Op{Key: fmt.Sprintf("k%d", rng.IntN(10_000)), Kind: record.OpKind(rng.IntN(2))}
			if op.Kind == record.Write {
				value++
				op.Value = record.Int(value)
			} else {
				op.Value = record.Int(max(0, value-rng.Int64N(40_000)))
			}
			t.Ops = append(t.Ops, op)
		}
	}
	return out
}

// takes is about how much memory records take.
func (r *Records) takes() int64 {
	n := int64(16 * len(r.names))
	for _, s := range r.names {
		n += int64(len(s))
	}
	for i := range r.blocks {
		b := &r.blocks[i]
		n += int64(len(b.data) + 16*len(b.marks) + 4*len(b.names))
	}
	return n
}

// A typical operation, its part of the record and of the names included, takes
// at most 12 bytes, in memory that the collector need not look into.
func TestSize(t *testing.T) {
	r := Of(typical(20_000))
	if got := float64(r.takes()) / float64(r.Summary().Operations); got > 12 {
		t.Errorf("an operation takes %.1f bytes", got)
	} else {
		t.Logf("an operation takes %.1f bytes", got)
	}
}

func BenchmarkAdd(b *testing.B) {
	txns := typical(10_000)
	b.ReportAllocs()
	for b.Loop() {
		Of(txns)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(Of(txns).Summary().Operations), "ns/operation")
}

func BenchmarkAll(b *testing.B) {
	r := Of(typical(10_000))
	b.ReportAllocs()
	for b.Loop() {
		for range r.All() {
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(r.Summary().Operations), "ns/operation")
}

func BenchmarkAt(b *testing.B) {
	r := Of(typical(10_000))
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		r.At(i * 7919 % r.Len())
	}
}

// What is taken out with numbers is what is taken out without, but for the ID, and
// a number stands for one key.
func TestNumbered(t *testing.T) {
	txns := typical(2000)
	r := Of(txns)
	names := map[uint32]string{}
	numbers := map[string]uint32{}
	i := 0
	for x, keys := range r.Numbered() {
		want := txns[i]
		i++
		if x.Session != want.Session || len(x.Ops) != len(want.Ops) || len(keys) != len(want.Ops) {
			t.Fatalf("record %d: got %+v with keys %v, want %+v", i, x, keys, want)
		}
		for j, op := range x.Ops {
			if op != want.Ops[j] {
				t.Fatalf("record %d, operation %d: got %+v, want %+v", i, j, op, want.Ops[j])
			}
			if int(keys[j]) >= r.Names() {
				t.Fatalf("number %d of %d names", keys[j], r.Names())
			}
			if n, ok := names[keys[j]]; ok && n != op.Key {
				t.Fatalf("%d stands for %q and %q", keys[j], n, op.Key)
			}
			if n, ok := numbers[op.Key]; ok && n != keys[j] {
				t.Fatalf("%q has the numbers %d and %d", op.Key, n, keys[j])
			}
			names[keys[j]], numbers[op.Key] = op.Key, keys[j]
		}
	}
	if i != len(txns) || len(numbers) < 10 {
		t.Fatalf("%d records of %d, %d keys", i, len(txns), len(numbers))
	}
}

// The goroutine that works ahead ends with the loop, however that ends.
func TestNumberedEndsEarly(t *testing.T) {
	r := Of(typical(20_000))
	defer leak.None(t)
	for stop := range 3 {
		i := 0
		for range r.Numbered() {
			if i++; i > stop*9000 {
				break
			}
		}
	}
	for range r.Numbered() {
		return
	}
}
