package frontier

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/isowatch/isowatch/ingest/record"
)

// filled is a frontier with something of everything in it.
func filled(opt Options, txns int) *Frontier {
	d := drawn{rng: rand.New(rand.NewPCG(3, 3)), keys: 12, last: map[string]record.Value{}}
	f := New(opt)
	for i := range txns {
		x := d.txn()
		f.Forget(&x, int64(i))
	}
	return f
}

// Whatever bytes a snapshot has, restoring it gives an error or a frontier that can
// be used and kept, and is the same when that is restored.
func FuzzRestore(f *testing.F) {
	for _, n := range []int{0, 1, 40} {
		f.Add(snapshotOf(filled(Options{}, n)))
	}
	g := filled(Options{MaxKeys: 4}, 20)
	kvs := g.Spill(5)
	g.Gone(nil)
	for _, kv := range kvs[:2] {
		if err := g.Answer(kv.Key, kv.Value); err != nil {
			f.Fatal(err)
		}
	}
	f.Add(snapshotOf(g))
	f.Fuzz(func(t *testing.T, b []byte) {
		g, err := Restore(Options{}, b)
		if err != nil {
			return
		}
		before, ok := g.All(1 << 20)
		g.Forget(&record.Transaction{Session: "s", Seq: 1, HasSeq: true, ID: "s#1", Ops: []record.Op{{Kind: record.Write, Key: "key 1", Value: record.Int(1)}}}, 1)
		h, err := Restore(Options{}, snapshotOf(g))
		if err != nil {
			t.Fatal(err)
		}
		again, _ := h.All(1 << 20)
		now, _ := g.All(1 << 20)
		same(t, "restored", again, now)
		if ok && len(now) > len(before)+1 {
			t.Fatalf("one transaction made %d stubs of %d", len(now), len(before))
		}
	})
}

// Whatever a disk answers, it is an error or of use.
func FuzzAnswer(f *testing.F) {
	g := filled(Options{}, 60)
	for slot := range g.table.slots {
		f.Add(bytes.Clone(g.table.body(g.table.at(slot))))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		g := filled(Options{}, 60)
		g.gone = true
		key := "key 99"
		if len(b) > 3 && check(b, 60) {
			key = string(keyOf(b))
		}
		if g.Answer(key, b) == nil {
			g.Stubs(key, "key 1")
			if _, err := Restore(Options{}, snapshotOf(g)); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// A snapshot that is cut is an error, wherever.
func TestCutSnapshots(t *testing.T) {
	whole := snapshotOf(filled(Options{}, 30))
	if _, err := Restore(Options{}, whole); err != nil {
		t.Fatal(err)
	}
	for i := range whole {
		if _, err := Restore(Options{}, whole[:i]); err == nil {
			t.Fatalf("a snapshot cut to %d bytes is taken", i)
		}
	}
}

// A value that is damaged, of another key or of a time to come is an error, and
// nothing has changed.
func TestDamagedAnswers(t *testing.T) {
	g := filled(Options{MaxKeys: 1}, 60)
	early, err := Restore(Options{}, snapshotOf(g))
	if err != nil {
		t.Fatal(err)
	}
	x := record.Transaction{Session: "s", ID: "one", Ops: []record.Op{{Kind: record.Write, Key: "key 1", Value: record.Int(1)}}}
	g.Forget(&x, 1)
	kvs := g.Spill(100)
	g.Gone(nil)
	early.gone = true
	for slot := range early.table.slots {
		early.remove(slot)
	}
	later := 0
	for _, kv := range kvs {
		if g.Answer("another", kv.Value) == nil {
			t.Errorf("what is kept of %s is taken for another key's", kv.Key)
		}
		if g.Answer(kv.Key, kv.Value[:len(kv.Value)-1]) == nil {
			t.Errorf("half of what is kept of %s is taken", kv.Key)
		}
		if early.Answer(kv.Key, kv.Value) != nil {
			later++
		}
	}
	if n := g.Stats().Keys; n != 1 || later != 1 {
		t.Errorf("%d keys in memory, and %d of a time to come", n, later)
	}
}
