package frontier

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
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

// sealed gives bytes the checksum that a part has.
func sealed(b []byte) []byte {
	return binary.LittleEndian.AppendUint32(bytes.Clone(b), crc32.Checksum(b, castagnoli))
}

// Whatever bytes a part has, restoring it gives an error or a frontier that can
// be used and kept, and is the same when that is restored.
func FuzzRestore(f *testing.F) {
	for _, n := range []int{0, 1, 40} {
		p := filled(Options{}, n).Checkpoint(nil)
		f.Add(p[:len(p)-4])
	}
	g := filled(Options{}, 20)
	g.Checkpoint(nil)
	p := g.Checkpoint(nil)
	f.Add(p[:len(p)-4])
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, err := Restore(Options{}, b); err == nil && len(b) < 8 {
			t.Fatal("some bytes are no frontier")
		}
		g, err := Restore(Options{}, sealed(b))
		if err != nil {
			return
		}
		before, ok := g.All(1 << 20)
		g.Forget(&record.Transaction{Session: "s", Seq: 1, HasSeq: true, ID: "s#1", Ops: []record.Op{{Kind: record.Write, Key: "key 1", Value: record.Int(1)}}}, 1)
		g.Whole()
		h, err := Restore(Options{}, g.Checkpoint(nil))
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
		g := filled(Options{Spilling: true}, 60)
		g.gone = true
		key := "key 99"
		if len(b) > 3 && check(b, 60) {
			key = string(keyOf(b))
		}
		if g.Answer(key, b) == nil {
			g.Stubs(key, "key 1")
			g.Whole()
			if _, err := Restore(Options{}, g.Checkpoint(nil)); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// A damaged part is an error, wherever the damage is, and so is one that is left
// out or comes twice.
func TestDamagedParts(t *testing.T) {
	g := filled(Options{}, 30)
	first := g.Checkpoint(nil)
	g.opt.MaxPerKey = 3
	x := record.Transaction{Session: "s", ID: "one", Ops: []record.Op{{Kind: record.Write, Key: "key 1", Value: record.Int(1)}}}
	g.Forget(&x, 1)
	second := g.Checkpoint(nil)
	g.Forget(&x, 1)
	third := g.Checkpoint(nil)
	if _, err := Restore(Options{}, first, second, third); err != nil {
		t.Fatal(err)
	}
	for i := range first {
		b := bytes.Clone(first)
		b[i] ^= 0x40
		if _, err := Restore(Options{}, b); err == nil {
			t.Fatalf("byte %d of %d is damaged, but nobody says so", i, len(b))
		}
	}
	for i := range first {
		if _, err := Restore(Options{}, first[:i]); err == nil {
			t.Fatalf("a part cut to %d bytes is taken", i)
		}
	}
	for _, parts := range [][][]byte{{}, {first, third}, {first, first}, {second, first}} {
		if _, err := Restore(Options{}, parts...); err == nil {
			t.Errorf("%d parts that do not follow each other are taken", len(parts))
		}
	}
}
