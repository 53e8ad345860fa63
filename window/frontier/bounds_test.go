package frontier

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/isowatch/isowatch/ingest/record"
)

// txnOf is a committed transaction without times.
func txnOf(n int64, ops ...record.Op) *record.Transaction {
	return &record.Transaction{Session: fmt.Sprint("s", n), ID: fmt.Sprint("t", n), Seq: n, HasSeq: true, Ops: ops}
}

func writeOf(key string, v record.Value) record.Op {
	return record.Op{Kind: record.Write, Key: key, Value: v}
}

// A forgotten predicate write may have written any row: from then on no key is known
// completely, known or not, and after a restart neither.
func TestPredicateWriteIsAnyKey(t *testing.T) {
	f := New(Options{})
	f.Forget(txnOf(1, writeOf("x", record.Int(1))), 1)
	if f.Opaque() || f.State("x") != Written || f.State("y") != 0 {
		t.Fatalf("before: x %v, y %v", f.State("x"), f.State("y"))
	}
	f.Forget(txnOf(2, record.Op{Kind: record.PredicateWrite}), 2)
	g, err := Restore(Options{}, f.Snapshot(nil))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []*Frontier{f, g} {
		if !f.Opaque() || f.State("x") != Written|Lossy || f.State("y") != Lossy {
			t.Errorf("opaque %v, x %v, y %v", f.Opaque(), f.State("x"), f.State("y"))
		}
	}
}

// A transaction may write any number of keys, and each of them twice.
func TestLargeTransaction(t *testing.T) {
	for _, n := range []int{fewKeys, fewKeys + 1, 3 * fewKeys} {
		var ops []record.Op
		for round := range int64(2) {
			for i := range n {
				ops = append(ops, writeOf(fmt.Sprint("k", i), record.Int(10*int64(i)+round)))
			}
		}
		f := New(Options{})
		f.Forget(txnOf(1, ops...), 1)
		f.Forget(txnOf(2, writeOf("other", record.Int(1))), 2) // nothing of the first one is left over
		if s := f.Stats(); s.Versions != n+1 || s.Total != n+1 || s.Unreadable != uint64(n) {
			t.Errorf("%d keys: %+v", n, s)
		}
		for i := range n {
			key := fmt.Sprint("k", i)
			want := []record.Op{writeOf(key, record.Int(10*int64(i)+1))}
			if got := f.Stubs(key); len(got) != 1 || !slices.Equal(got[0].Txn.Ops, want) || f.State(key) != Written|Lossy {
				t.Errorf("%d keys: %s is %v, %v", n, key, got, f.State(key))
			}
		}
	}
}

// Keys that are written again and again, shorter and longer, take the room that others
// have left.
func TestRoomIsUsedAgain(t *testing.T) {
	f := New(Options{MaxPerKey: 1})
	sizes := []int{1, 40, 3000, 9000, 200}
	n, full := int64(0), int64(0)
	for round := range 40 {
		for k := range 200 {
			n++
			f.Forget(txnOf(n, writeOf(fmt.Sprint("k", k), record.String(strings.Repeat("v", sizes[(round+k)%len(sizes)])))), n)
		}
		if round == 2*len(sizes) {
			full = f.Memory()
		}
	}
	if now := f.Memory(); now > full+full/10 {
		t.Errorf("%d bytes, then %d for as much", full, now)
	}
	if large := len(f.table.arena.large); large > 200 {
		t.Errorf("%d large ones of 200 keys", large)
	}
}

// The bounds of what is kept: versions of a key, and keys where there is no disk.
func TestBounds(t *testing.T) {
	f := New(Options{MaxPerKey: 1000})
	for n := range int64(300) {
		f.Forget(txnOf(n, writeOf("x", record.Int(n))), n)
	}
	if s := f.Stats(); s.Versions != perKeyMost || s.Dropped != 300-perKeyMost {
		t.Errorf("%d versions, %d dropped", s.Versions, s.Dropped)
	}
	g := New(Options{MaxKeys: 10})
	for n := range int64(100) {
		g.Forget(txnOf(n, writeOf(fmt.Sprint("k", n), record.Int(n))), n)
	}
	if s := g.Stats(); s.Keys != 10 || s.Total != 10 || s.Versions != 10 || s.Evicted != 90 || g.State("k0") != Lossy {
		t.Errorf("%+v, k0 %v", s, g.State("k0"))
	}
}

// Keys that are too large together leave, but for as many as are to stay.
func TestLeastKeys(t *testing.T) {
	for _, tc := range []struct{ min, left int }{{0, 1}, {1, 1}, {5, 5}, {20, 10}} {
		for _, spilling := range []bool{false, true} {
			f := New(Options{MaxBytes: 1, MinKeys: tc.min, Spilling: spilling})
			for n := range int64(10) {
				f.Forget(txnOf(n, writeOf(fmt.Sprint("k", n), record.Int(n))), n)
			}
			f.Spill(100)
			f.Gone(nil)
			if s := f.Stats(); s.Keys != tc.left || int(s.Evicted+s.Spilled) != 10-tc.left || s.OnDisk != int(s.Spilled) {
				t.Errorf("at least %d, spilling %v: %+v", tc.min, spilling, s)
			}
		}
	}
}

// What is known to be nowhere counts for nothing, after a restart neither.
func TestAbsentKeysCountForNothing(t *testing.T) {
	f := New(Options{Spilling: true, MaxKeys: 1})
	for n := range int64(3) {
		f.Forget(txnOf(n, writeOf(fmt.Sprint("k", n), record.Int(n))), n)
	}
	f.Spill(100)
	f.Gone(nil)
	if err := f.Answer("nothing", nil); err != nil {
		t.Fatal(err)
	}
	g, err := Restore(Options{Spilling: true, MaxKeys: 1}, f.Snapshot(nil))
	if err != nil {
		t.Fatal(err)
	}
	if a, b := f.Stats(), g.Stats(); a != b || a.Total != 3 || a.OnDisk != 2 {
		t.Errorf("%+v, restored %+v", a, b)
	}
}

// What was asked for stays in memory until the next Begin, by whatever it was asked.
func TestAskedForStays(t *testing.T) {
	for name, ask := range map[string]func(f *Frontier){
		"Find":  func(f *Frontier) { f.Find(nil, "k3") },
		"State": func(f *Frontier) { f.State("k3") },
		"Stubs": func(f *Frontier) { f.Stubs("k3") },
		"Needs": func(f *Frontier) { f.Needs(nil, "k3") },
	} {
		f := New(Options{Spilling: true, MaxKeys: 1})
		for n := range int64(10) {
			f.Forget(txnOf(n, writeOf(fmt.Sprint("k", n), record.Int(n))), n)
		}
		ask(f)
		has := func(kv KV) bool { return kv.Key == "k3" }
		if kvs := f.Spill(100); len(kvs) != 9 || slices.ContainsFunc(kvs, has) {
			t.Errorf("%s: gives %v", name, kvs)
		}
		f.Begin()
		if kvs := f.Spill(100); len(kvs) != 9 || !slices.ContainsFunc(kvs, has) {
			t.Errorf("%s: after Begin gives %v", name, kvs)
		}
	}
}

// One that comes late may have ended before another began whose write is kept: then it is no
// version any more, at whatever skew that is certain.
func TestLateWriterIsSuperseded(t *testing.T) {
	for _, tc := range []struct {
		end  int64
		late bool
	}{{94, true}, {95, false}} {
		f := New(Options{MaxSkew: 5})
		for i, x := range []*record.Transaction{txnOf(1, writeOf("x", record.Int(1))), txnOf(2, writeOf("x", record.Int(2)))} {
			x.HasTimes, x.Start, x.End = true, 100, 110
			if i > 0 {
				x.Start, x.End = 1, tc.end
			}
			f.Forget(x, x.End)
		}
		want := []string{"t1", "t2"}
		if tc.late {
			want = want[:1]
		}
		var got []string
		for _, s := range f.Stubs("x") {
			got = append(got, s.Txn.ID)
		}
		if lossy := f.State("x")&Lossy != 0; !slices.Equal(got, want) || lossy != tc.late || f.Stats().Superseded != uint64(2-len(want)) {
			t.Errorf("ended at %d: left %v, lossy %v, %d superseded", tc.end, got, lossy, f.Stats().Superseded)
		}
	}
}
