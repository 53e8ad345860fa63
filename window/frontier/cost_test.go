package frontier

import (
	"bytes"
	"fmt"
	"io"
	"reflect"
	"runtime"
	"testing"

	"github.com/isowatch/isowatch/ingest/record"
)

// overwrite makes transactions of four writes each, over so many keys.
func overwrite(f *Frontier, keys, n int) {
	t := record.Transaction{HasSeq: true, HasTimes: true, Ops: make([]record.Op, 4)}
	for i := range n {
		t.Session = fmt.Sprintf("api-3/%d", i%24)
		t.Seq = int64(i / 24)
		t.ID = fmt.Sprintf("%s#%d", t.Session, t.Seq)
		t.End = 1732160000000000000 + int64(i)*10000
		t.Start = t.End - 1000000
		for j := range t.Ops {
			t.Ops[j] = record.Op{Kind: record.Write, Key: fmt.Sprintf("k%d", (i*4+j)%keys), Value: record.Int(int64(i*4 + j))}
		}
		f.Forget(&t, t.End)
	}
}

// snapshotOf is f's snapshot.
func snapshotOf(f *Frontier) []byte {
	var b bytes.Buffer
	if err := f.Snapshot(&b); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// most is the greatest part that is written to it at once.
type most int

func (m *most) Write(b []byte) (int, error) {
	*m = max(*m, most(len(b)))
	return len(b), nil
}

// A snapshot takes little more than what is packed, and is written in small parts.
func TestSnapshotIsSmall(t *testing.T) {
	f := New(Options{})
	overwrite(f, 5000, 5000)
	b := snapshotOf(f)
	if packed := f.Stats().Bytes; int64(len(b)) > packed+3*5000 {
		t.Errorf("%d bytes, of %d packed", len(b), packed)
	}
	var part most
	if err := f.Snapshot(&part); err != nil || part > 2*snapshotPart || len(b) < 4*int(part) {
		t.Errorf("a part of %d bytes of %d: %v", part, len(b), err)
	}
	g, err := Restore(Options{}, b)
	if err != nil {
		t.Fatal(err)
	}
	want, _ := f.All(5000)
	got, _ := g.All(5000)
	if !reflect.DeepEqual(got, want) || f.Stats() != g.Stats() {
		t.Errorf("what is restored is not what was kept: %+v, %+v", g.Stats(), f.Stats())
	}
}

// A key with one version takes at most 64 bytes beside its name and value.
func TestMemoryOfKeys(t *testing.T) {
	const keys = 200000
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	f := New(Options{})
	overwrite(f, keys, keys/4)
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&after)
	per := float64(after.HeapAlloc-before.HeapAlloc) / keys
	said := float64(f.memory()) / keys
	t.Logf("%.1f bytes a key, it says %.1f itself, %.1f of them packed", per, said, float64(f.Stats().Bytes)/keys)
	if most := 64.0 + 7 + 4; per > most {
		t.Errorf("a key takes %.1f bytes", per)
	}
	if per > 1.2*said || said > 1.2*per {
		t.Errorf("a key takes %.1f bytes, but the frontier says %.1f", per, said)
	}
	runtime.KeepAlive(f)
}

// Transactions of four writes leave the window; the keys are written again and
// again.
func BenchmarkForget(b *testing.B) {
	for _, keys := range []int{10000, 1000000} {
		b.Run(fmt.Sprint(keys), func(b *testing.B) {
			f := New(Options{})
			overwrite(f, keys, keys/4)
			txns := make([]record.Transaction, 1024)
			b.ReportAllocs()
			b.ResetTimer()
			for i := 0; i < b.N; {
				b.StopTimer()
				fill(txns, keys, i)
				b.StartTimer()
				for j := range txns {
					f.Forget(&txns[j], txns[j].End)
					i++
				}
			}
		})
	}
}

func fill(txns []record.Transaction, keys, from int) {
	for j := range txns {
		i := from + j
		end := 1732170000000000000 + int64(i)*10000
		s := fmt.Sprintf("api-3/%d", i%24)
		txns[j] = record.Transaction{Session: s, Seq: int64(i), HasSeq: true, ID: fmt.Sprintf("%s#%d", s, i), Start: end - 1000000, End: end, HasTimes: true}
		for o := range 4 {
			k := (uint64(i)*4 + uint64(o)) * 0x9e3779b97f4a7c15 % uint64(keys)
			txns[j].Ops = append(txns[j].Ops, record.Op{Kind: record.Write, Key: fmt.Sprintf("k%d", k), Value: record.Int(int64(i*4 + o))})
		}
	}
}

func BenchmarkSnapshot(b *testing.B) {
	f := New(Options{})
	overwrite(f, 1000000, 250000)
	for b.Loop() {
		if err := f.Snapshot(io.Discard); err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(f.Stats().Bytes)
}

// memory estimates the bytes that the frontier takes.
func (f *Frontier) memory() int64 {
	return f.table.memory() + int64(cap(f.given))*4 + int64(cap(f.buf))
}

func (t *table) memory() int64 {
	return int64(len(t.index))*4 + int64(len(t.pages))*entriesPerPage*16 + t.arena.memory()
}

func (a *arena) memory() int64 {
	return a.bytes + int64(cap(a.large))*24 + int64(cap(a.freed)+cap(a.unused))*4 + int64(cap(a.pages))*48 + int64(a.taken)*pageBytes
}
