package frontier

import (
	"encoding/binary"
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

// A forgotten predicate write may have written the rows that it says it hit; if it does not say it, any: from then on no key is
// known completely, known or not, and after a restart neither.
func TestPredicateWriteIsAnyKey(t *testing.T) {
	f := New(Options{})
	f.Forget(txnOf(1, writeOf("x", record.Int(1))), 1)
	if f.opaque || f.State("x") != Written || f.State("y") != 0 {
		t.Fatalf("before: x %v, y %v", f.State("x"), f.State("y"))
	}
	hit := record.ObjectOf(map[string]record.Value{record.Hit: {Kind: record.KindList, Text: `["z"]`}})
	f.Forget(txnOf(1, record.Op{Kind: record.PredicateWrite, Value: hit}), 1)
	if f.opaque || f.State("x") != Written || f.State("z") != Lossy|Repeated || f.State("y") != 0 {
		t.Fatalf("with what it hit: x %v, y %v, z %v", f.State("x"), f.State("y"), f.State("z"))
	}
	f.Forget(txnOf(2, record.Op{Kind: record.PredicateWrite}), 2)
	g, err := Restore(Options{}, snapshotOf(f))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []*Frontier{f, g} {
		if !f.opaque || f.State("x") != Written|Lossy|Repeated || f.State("y") != Lossy|Repeated {
			t.Errorf("opaque %v, x %v, y %v", f.opaque, f.State("x"), f.State("y"))
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
			full = f.memory()
		}
	}
	if now := f.memory(); now > full+full/10 {
		t.Errorf("%d bytes, then %d for as much", full, now)
	}
	if large := len(f.table.arena.large); large > 200 {
		t.Errorf("%d large ones of 200 keys", large)
	}
}

// What is known grows by a byte now and then, as the numbers in it do. The room of what was shorter, and has left
// memory, is given back.
func TestRoomIsGivenBack(t *testing.T) {
	f := New(Options{MaxPerKey: 1, MaxKeys: 2000})
	n := int64(0)
	for size := range 60 {
		for range 3000 {
			n++
			f.Forget(txnOf(n, writeOf(fmt.Sprint("k", n), record.String(strings.Repeat("v", 4*size)))), n)
		}
		leave(f)
	}
	if took, most := f.memory(), 2*f.Stats().Bytes; took > most {
		t.Errorf("%d bytes are taken for %d keys of %d", took, f.Stats().Keys, f.Stats().Bytes)
	}
}

// MaxBytes is of what keys take: with short ones, that they are known takes as much as what is known.
func TestMaxBytesCountsKeys(t *testing.T) {
	f := New(Options{MaxPerKey: 1, MaxBytes: 1 << 20})
	for n := range int64(50_000) {
		if f.Forget(txnOf(n+1, writeOf(fmt.Sprint("k", n), record.Int(n))), n); n%100 == 0 {
			leave(f)
		}
	}
	if took := f.memory(); took > 5<<18 || took < 3<<18 {
		t.Errorf("%d bytes are taken where %d may be", took, 1<<20)
	}
}

// The versions of a key are bounded.
func TestBounds(t *testing.T) {
	f := New(Options{MaxPerKey: 1000})
	for n := range int64(300) {
		f.Forget(txnOf(n, writeOf("x", record.Int(n))), n)
	}
	if s := f.Stats(); s.Versions != perKeyMost || s.Dropped != 300-perKeyMost {
		t.Errorf("%d versions, %d dropped", s.Versions, s.Dropped)
	}
}

// Keys that are too large together leave, but for as many as are to stay.
func TestLeastKeys(t *testing.T) {
	for _, tc := range []struct{ min, left int }{{0, 1}, {1, 1}, {5, 5}, {20, 10}} {
		f := New(Options{MaxBytes: 1, MinKeys: tc.min})
		for n := range int64(10) {
			f.Forget(txnOf(n, writeOf(fmt.Sprint("k", n), record.Int(n))), n)
		}
		f.Spill(100)
		f.Gone(nil)
		if s := f.Stats(); s.Keys != tc.left || s.Spilled != uint64(10-tc.left) || s.OnDisk != int(s.Spilled) {
			t.Errorf("at least %d: %+v", tc.min, s)
		}
	}
}

// A few keys with long values are as many as a great many: they are not given all at once any
// more, also once they are short again and after a restart, and leave memory although few
// enough to stay.
func TestWide(t *testing.T) {
	const keys, long = 1000, 50_000
	opt := Options{MaxBytes: WideBytes / 2, MinKeys: keys}
	f := New(opt)
	n := int64(0)
	write := func(size int) {
		for k := range keys {
			n++
			f.Forget(txnOf(n, writeOf(fmt.Sprint("k", k), record.String(strings.Repeat("v", size)))), n)
		}
	}
	write(5)
	if stubs, ok := f.All(keys); !ok || len(stubs) != keys {
		t.Fatalf("%d of %d short ones, %v", len(stubs), keys, ok)
	}
	write(long)
	if _, ok := f.All(keys); ok {
		t.Fatalf("all are given, of %d bytes", f.Stats().Bytes)
	}
	g, err := Restore(opt, snapshotOf(f))
	if err != nil {
		t.Fatal(err)
	}
	f = g
	leave(f)
	if s := f.Stats(); s.Bytes > opt.MaxBytes || s.Spilled == 0 || s.Keys >= keys {
		t.Errorf("%+v", s)
	}
	// Without a bound, short again.
	f = New(Options{MaxPerKey: 1})
	for i, size := range []int{5, long, 5} {
		for k := range keys {
			f.Forget(txnOf(int64(i*keys+k), writeOf(fmt.Sprint("k", k), record.String(strings.Repeat("v", size)))), 1)
		}
		if _, ok := f.All(keys); ok != (i == 0) {
			t.Errorf("with %d bytes, round %d: all are given: %v", f.Stats().Bytes, i, ok)
		}
	}
	g, err = Restore(Options{MaxPerKey: 1}, snapshotOf(f))
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := g.All(keys); ok {
		t.Error("after a restart all are given again")
	}
}

// What is known to be nowhere counts for nothing, after a restart neither.
func TestAbsentKeysCountForNothing(t *testing.T) {
	f := New(Options{MaxKeys: 1})
	for n := range int64(3) {
		f.Forget(txnOf(n, writeOf(fmt.Sprint("k", n), record.Int(n))), n)
	}
	f.Spill(100)
	f.Gone(nil)
	if err := f.Answer("nothing", nil); err != nil {
		t.Fatal(err)
	}
	g, err := Restore(Options{MaxKeys: 1}, snapshotOf(f))
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
		f := New(Options{MaxKeys: 1})
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

// What is written or asked for between Spill and Gone stays in memory, as it is then.
func TestBetweenSpillAndGone(t *testing.T) {
	f := New(Options{MaxKeys: 1})
	for n := range int64(4) {
		f.Forget(txnOf(n, writeOf(fmt.Sprint("k", n), record.Int(n))), n)
	}
	disk := map[string][]byte{}
	for _, kv := range f.Spill(100) {
		disk[kv.Key] = kv.Value
	}
	written, asked, gone := "k0", "k1", "k2"
	if len(disk) != 3 || disk[written] == nil || disk[asked] == nil || disk[gone] == nil {
		t.Fatalf("%q are to be stored", disk)
	}
	f.Forget(txnOf(9, writeOf(written, record.Int(9))), 9)
	f.Find(nil, asked)
	f.Gone(nil)
	for key, want := range map[string][]string{written: {"t0", "t9"}, asked: {"t1"}, gone: nil} {
		var got []string
		for _, s := range f.Stubs(key) {
			got = append(got, s.Txn.ID)
		}
		if needs := f.Needs(nil, key); !slices.Equal(got, want) || (len(needs) > 0) != (want == nil) {
			t.Errorf("%s: %v, want %v; needs %v", key, got, want, needs)
		}
	}
	if err := f.Answer(gone, disk[gone]); err != nil || len(f.Stubs(gone)) != 1 {
		t.Errorf("%s comes back as %v, %v", gone, f.Stubs(gone), err)
	}
}

// Two keys of one hash are two.
func TestKeysOfOneHash(t *testing.T) {
	seen := map[uint32]string{}
	for i := 0; ; i++ { // one is found among some 80,000
		key := fmt.Sprint("key ", i)
		other, found := seen[hashOf(key)]
		if !found {
			seen[hashOf(key)] = key
			continue
		}
		f := New(Options{})
		f.Forget(txnOf(1, writeOf(key, record.Int(1))), 1)
		if f.State(other) != 0 || len(f.Stubs(other)) > 0 {
			t.Errorf("%q is taken for %q", other, key)
		}
		f.Forget(txnOf(2, writeOf(other, record.Int(2))), 2)
		if a, b := f.Stubs(key), f.Stubs(other); len(a) != 1 || len(b) != 1 || a[0].Txn.ID != "t1" || b[0].Txn.ID != "t2" {
			t.Errorf("%q: %v, %q: %v", key, a, other, b)
		}
		return
	}
}

// What is damaged and has a right checksum all the same is recognised, in snapshots and in what a disk answers.
func TestDamagedBodies(t *testing.T) {
	f := New(Options{})
	f.Forget(txnOf(1, writeOf("x", record.Int(1))), 1)
	raw := func(n int64) []byte {
		var s touched
		x := txnOf(n, writeOf("x", record.Int(n)))
		s.take(x.Ops)
		f.touched = s
		f.folded = uint64(n)
		return slices.Clone(f.pack(x, n, &f.touched.keys[0]))
	}
	one, two := raw(1), raw(2)
	body := func(raws ...[]byte) []byte {
		b := appendHead(nil, Written, "x")
		for _, r := range raws {
			b = appendVersion(b, 0, r)
		}
		return b
	}
	flip := func(b []byte, at int, to byte) []byte {
		b = slices.Clone(b)
		b[at] = to
		return b
	}
	good := body(one, two)
	for name, tc := range map[string]struct {
		body []byte
		ok   bool
	}{
		"whole":                        {good, true},
		"no version":                   {body(), true},
		"too short":                    {good[:2], false},
		"a state that there is not":    {flip(good, 0, byte(stateMask)+1), false},
		"more versions than there are": {flip(good, 1, 3), false},
		"fewer":                        {flip(good, 1, 1), false},
		"more than may be":             {flip(good, 1, perKeyMost+1), false},
		"cut":                          {good[:len(good)-1], false},
		"a byte too many":              {append(slices.Clone(good), 0), false},
		"out of order":                 {body(two, one), false},
		"twice the same":               {body(one, one), false},
		"from the future":              {body(one, raw(3)), false},
		"flags that there are not":     {body(flip(one, 0, one[0]|1<<7)), false},
		"no ID":                        {body(flip(one, 0, one[0]&^(versionID|versionSeq))), false},
		"an operation cut":             {body(one[:len(one)-1]), false},
		"a kind that there is not":     {body(flip(one, len(one)-2, 1<<7)), false},
	} {
		if ok := check(tc.body, 2); ok != tc.ok {
			t.Errorf("%s: %v", name, ok)
		}
		g := New(Options{})
		g.folded, g.gone = 2, true
		if err := g.Answer("x", tc.body); (err == nil) != tc.ok {
			t.Errorf("%s: an answer: %v", name, err)
		}
		if _, err := Restore(Options{}, withBody(tc.body)); (err == nil) != tc.ok {
			t.Errorf("%s: a snapshot: %v", name, err)
		}
	}
}

// withBody is a snapshot of two transactions, one key and that body.
func withBody(body []byte) []byte {
	b := []byte{0}
	for _, n := range []uint64{2, 1, 0, 0, 0, 0, 0, 1, uint64(len(body)) << 1} {
		b = binary.AppendUvarint(b, n)
	}
	return append(b, body...)
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

// leave lets go what is too much.
func leave(f *Frontier) {
	for f.Begin(); len(f.Spill(10)) > 0; f.Gone(nil) {
	}
}
