package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"testing"

	"github.com/isowatch/isowatch/window/store"
)

// NewEntry makes a journal entry of some bytes, which its number decides.
func NewEntry(number uint64, size int) store.Entry {
	data := make([]byte, size)
	for i := range data {
		data[i] = byte(number) ^ byte(i*7)
	}
	return store.Entry{Number: number, Time: int64(number) * 1e9, Data: data}
}

// History is all that a store has of one history.
type History struct {
	Checkpoint []byte // nil: none
	Spilled    map[string]string
}

// Stream is what the part of a store that belongs to streams holds.
type Stream struct {
	Journal   []store.Entry
	Histories map[string]History
}

// ReadStream reads it; of what was spilled these keys of each history.
func ReadStream(s store.Store, histories, keys []string) (Stream, error) {
	ctx := context.Background()
	out := Stream{Histories: make(map[string]History)}
	err := s.Journal(ctx, 0, func(e store.Entry) bool {
		e.Data = bytes.Clone(e.Data)
		out.Journal = append(out.Journal, e)
		return true
	})
	if err != nil {
		return out, err
	}
	for i, e := range out.Journal {
		one, ok, err := s.Entry(ctx, e.Number)
		if err != nil {
			return out, err
		}
		if !ok || one.Number != e.Number || one.Time != e.Time || !bytes.Equal(one.Data, e.Data) {
			return out, fmt.Errorf("entry %d by itself is another: %v", e.Number, ok)
		}
		if i > 0 && e.Number <= out.Journal[i-1].Number {
			return out, fmt.Errorf("entry %d follows %d", e.Number, out.Journal[i-1].Number)
		}
	}
	names, err := s.Checkpoints(ctx)
	if err != nil {
		return out, err
	}
	have := make(map[string]bool)
	for _, n := range names {
		have[n] = true
	}
	for _, db := range histories {
		data, ok, err := s.Checkpoint(ctx, db)
		if err != nil {
			return out, err
		}
		if ok != have[db] {
			return out, fmt.Errorf("history %q: has a checkpoint: %v, is among them: %v", db, ok, have[db])
		}
		h := History{Spilled: make(map[string]string)}
		if ok {
			h.Checkpoint = append([]byte{}, data...)
		}
		values, err := s.Spilled(ctx, db, keys)
		if err != nil {
			return out, err
		}
		for i, v := range values {
			if v != nil {
				h.Spilled[keys[i]] = string(v)
			}
		}
		out.Histories[db] = h
	}
	return out, nil
}

// streamTests: what belongs to streams.
var streamTests = []test{
	{"journal", suite.journal},
	{"checkpoints", suite.checkpoints},
	{"spilled", suite.spilled},
	{"spilled of a history that is deleted or begins anew", suite.forgotten},
	{"many spilled", suite.manySpilled},
	{"many histories", suite.manyHistories},
	{"checkpoints that are large together", suite.largeTogether},
}

// stream is ReadStream, of the names that the tests use.
func (suite) stream(t *testing.T, s store.Store) Stream {
	t.Helper()
	d, err := ReadStream(s, []string{"a", "ab"}, []string{"k", "k2", "kk", "", "new", "newer"})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// forever opens a store that keeps its journal.
func forever(t *testing.T, p Place) store.Store {
	t.Helper()
	return open(t, p, store.Options{Retain: store.Forever})
}

// reopen closes a store and opens it again.
func reopen(t *testing.T, p Place, s store.Store) store.Store {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return forever(t, p)
}

func (x suite) journal(t *testing.T) {
	ctx := t.Context()
	p := x.newPlace(t)
	s := forever(t, p)
	if d := x.stream(t, s); len(d.Journal) != 0 {
		t.Fatalf("%d entries in a new store", len(d.Journal))
	}
	commit(t, s, store.Commit{Journal: []store.Entry{NewEntry(1, 10), NewEntry(2, 0), NewEntry(5, 300_000)}})
	commit(t, s, store.Commit{Journal: []store.Entry{NewEntry(9, 3<<20)}, Offsets: map[string]map[int]int64{"t": {0: 1}}})
	want := []store.Entry{NewEntry(1, 10), NewEntry(2, 0), NewEntry(5, 300_000), NewEntry(9, 3<<20)}
	same(t, want, x.stream(t, s).Journal)
	s = reopen(t, p, s)
	same(t, want, x.stream(t, s).Journal)
	commit(t, s, store.Commit{Journal: []store.Entry{NewEntry(10, 7)}})
	same(t, append(want, NewEntry(10, 7)), x.stream(t, s).Journal)

	var from []uint64
	err := s.Journal(ctx, 3, func(e store.Entry) bool { from = append(from, e.Number); return e.Number < 9 })
	if err != nil {
		t.Fatal(err)
	}
	same(t, []uint64{5, 9}, from)
	for _, n := range []uint64{0, 3, 11} {
		if _, ok, err := s.Entry(ctx, n); ok || err != nil {
			t.Errorf("entry %d: %v, %v", n, ok, err)
		}
	}
	st, err := s.Stats(ctx)
	if err != nil || st.JournalEntries != 5 || st.JournalFirst != 1 || st.JournalLast != 10 {
		t.Errorf("%+v, %v", st, err)
	}

	// A number that was there replaces it and what followed.
	commit(t, s, store.Commit{Journal: []store.Entry{NewEntry(5, 11), NewEntry(6, 12)}})
	want = []store.Entry{NewEntry(1, 10), NewEntry(2, 0), NewEntry(5, 11), NewEntry(6, 12)}
	same(t, want, x.stream(t, s).Journal)
	s = reopen(t, p, s)
	same(t, want, x.stream(t, s).Journal)
	commit(t, s, store.Commit{Journal: []store.Entry{NewEntry(1, 5)}})
	s = reopen(t, p, s)
	same(t, []store.Entry{NewEntry(1, 5)}, x.stream(t, s).Journal)
}

// Written is a checkpoint that is written in parts.
func Written(db string, data []byte) map[string]func(io.Writer) error {
	return map[string]func(io.Writer) error{db: func(to io.Writer) error {
		for part := range slices.Chunk(data, 1000) {
			if _, err := to.Write(part); err != nil {
				return err
			}
		}
		return nil
	}}
}

// Whole is c with what is written in its Checkpoints.
func Whole(c store.Commit) (store.Commit, error) {
	checkpoints := map[string][]byte{}
	maps.Copy(checkpoints, c.Checkpoints)
	for db, write := range c.Written {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			return c, err
		}
		checkpoints[db] = b.Bytes()
	}
	c.Checkpoints, c.Written = checkpoints, nil
	return c, nil
}

func (x suite) checkpoints(t *testing.T) {
	ctx := t.Context()
	p := x.newPlace(t)
	s := forever(t, p)
	big := NewEntry(3, 5<<20).Data
	commit(t, s, store.Commit{Checkpoints: map[string][]byte{"a": big, "ab": {}}})
	same(t, map[string]History{"a": {big, map[string]string{}}, "ab": {[]byte{}, map[string]string{}}},
		x.stream(t, s).Histories)
	s = reopen(t, p, s)
	same(t, map[string]History{"a": {big, map[string]string{}}, "ab": {[]byte{}, map[string]string{}}},
		x.stream(t, s).Histories)
	commit(t, s, store.Commit{Checkpoints: map[string][]byte{"ab": big}, Written: Written("a", []byte("small"))})
	commit(t, s, store.Commit{Checkpoints: map[string][]byte{"ab": nil}})
	s = reopen(t, p, s)
	same(t, map[string]History{"a": {[]byte("small"), map[string]string{}}, "ab": {nil, map[string]string{}}},
		x.stream(t, s).Histories)
	commit(t, s, store.Commit{Written: Written("a", big)})
	failed := errors.New("it can't be written")
	written := Written("a", big[:len(big)/2])
	half := written["a"]
	written["a"] = func(to io.Writer) error { return errors.Join(half(to), failed) }
	if err := s.Commit(ctx, store.Commit{Written: written}); !errors.Is(err, failed) {
		t.Errorf("a checkpoint that can't be written: %v", err)
	}
	same(t, map[string]History{"a": {big, map[string]string{}}, "ab": {nil, map[string]string{}}}, x.stream(t, s).Histories)
}

func (x suite) spilled(t *testing.T) {
	p := x.newPlace(t)
	s := forever(t, p)
	spill(t, s, "a", "k", "1", "kk", "")
	spill(t, s, "ab", "k", "other")
	x.spills(t, s, map[string]string{"k": "1", "kk": ""})
	commit(t, s, store.Commit{Checkpoints: map[string][]byte{"a": []byte("c1")}})
	spill(t, s, "a", "k", "2", "k2", "3", "kk", "-")
	spill(t, s, "a", "k", "4", "k2", "-", "", "5")
	x.spills(t, s, map[string]string{"k": "4", "": "5"})
	// Again what was new since the checkpoint, and was changed or went.
	spill(t, s, "a", "k2", "6", "new", "7", "newer", "8", "", "9")
	spill(t, s, "a", "newer", "-", "k", "-")
	spill(t, s, "a", "newer", "10", "k", "11")
	x.spills(t, s, map[string]string{"k": "11", "k2": "6", "new": "7", "newer": "10", "": "9"})
	// Only what belongs to a checkpoint survives.
	s = reopen(t, p, s)
	x.spills(t, s, map[string]string{"k": "1", "kk": ""})
	same(t, map[string]string{}, x.stream(t, s).Histories["ab"].Spilled)
	spill(t, s, "a", "k2", "6", "k", "7")
	commit(t, s, store.Commit{Checkpoints: map[string][]byte{"a": []byte("c2")}})
	for range 2 {
		s = reopen(t, p, s)
		x.spills(t, s, map[string]string{"k": "7", "k2": "6", "kk": ""})
	}
}

func (x suite) forgotten(t *testing.T) {
	p := x.newPlace(t)
	s := forever(t, p)
	spill(t, s, "a", "k", "7", "k2", "6")
	commit(t, s, store.Commit{Checkpoints: map[string][]byte{"a": []byte("c2")}})
	// What a deleted history has spilled goes with it.
	spill(t, s, "a", "kk", "8")
	commit(t, s, store.Commit{Checkpoints: map[string][]byte{"a": nil}})
	x.spills(t, s, map[string]string{})
	spill(t, s, "a", "k", "9")
	x.spills(t, s, map[string]string{"k": "9"})
	s = reopen(t, p, s)
	x.spills(t, s, map[string]string{})
	// One that begins anew has spilled nothing, and what it spills then counts from
	// that commit on.
	spill(t, s, "a", "k", "10")
	commit(t, s, store.Commit{Checkpoints: map[string][]byte{"a": []byte("c3")}})
	spill(t, s, "a", "k", "11", "kk", "12")
	commit(t, s, store.Commit{Checkpoints: map[string][]byte{"a": []byte("c4")}, Forget: []string{"a", "never there"}})
	x.spills(t, s, map[string]string{})
	spill(t, s, "a", "kk", "13")
	s = reopen(t, p, s)
	x.spills(t, s, map[string]string{})
	spill(t, s, "a", "kk", "14")
	commit(t, s, store.Commit{Checkpoints: map[string][]byte{"a": []byte("c5")}})
	s = reopen(t, p, s)
	x.spills(t, s, map[string]string{"kk": "14"})
	commit(t, s, store.Commit{Forget: []string{"a"}})
	s = reopen(t, p, s)
	x.spills(t, s, map[string]string{})
}

func (x suite) manySpilled(t *testing.T) {
	ctx := t.Context()
	s := forever(t, x.newPlace(t))
	many := make([]store.KV, 20_000)
	for i := range many {
		many[i] = store.KV{Key: fmt.Sprint("many", i), Value: make([]byte, 100)}
	}
	if err := s.Spill(ctx, "a", many); err != nil {
		t.Fatal(err)
	}
	got, err := s.Spilled(ctx, "a", []string{"many0", "many19999", "many20000"})
	if err != nil || len(got[0]) != 100 || len(got[1]) != 100 || got[2] != nil {
		t.Errorf("%d, %v", len(got), err)
	}
}

// manyHistories begin with one commit, and go with another with which as many others begin: that
// is more than a transaction of a database may hold.
func (x suite) manyHistories(t *testing.T) {
	p := x.newPlace(t)
	s := forever(t, p)
	const many = 4096
	commits := func(n int) store.Commit {
		c := store.Commit{Checkpoints: map[string][]byte{}, Journal: []store.Entry{NewEntry(uint64(n), 100)},
			Offsets: map[string]map[int]int64{"topic": {0: int64(n)}}}
		for i := range many {
			name := fmt.Sprintf("%d-%d", n, i)
			c.Checkpoints[name] = fmt.Append(nil, "checkpoint of ", name)
			c.Forget = append(c.Forget, name)
			if n > 1 {
				c.Checkpoints[fmt.Sprintf("%d-%d", n-1, i)] = nil
			}
		}
		return c
	}
	spill(t, s, "1-7", "k", "v")
	for n := 1; n <= 3; n++ {
		c := commits(n)
		commit(t, s, c)
		for range 2 {
			names, err := s.Checkpoints(t.Context())
			if err != nil || len(names) != many || names[0] != fmt.Sprintf("%d-0", n) {
				t.Fatalf("commit %d: %d histories, %v", n, len(names), err)
			}
			for _, name := range names {
				if b, ok, err := s.Checkpoint(t.Context(), name); !ok || err != nil || string(b) != string(c.Checkpoints[name]) {
					t.Fatalf("commit %d: checkpoint %q: %q %v %v", n, name, b, ok, err)
				}
			}
			d, err := Read(s, []string{"topic"}, nil)
			if err != nil || d.Offsets["topic"][0] != int64(n) || x.stream(t, s).Journal[n-1].Number != uint64(n) {
				t.Fatalf("commit %d: %+v, %v", n, d, err)
			}
			s = reopen(t, p, s)
		}
	}
	if got, err := s.Spilled(t.Context(), "1-7", []string{"k"}); err != nil || got[0] != nil {
		t.Errorf("of a history that went there is %q, %v", got[0], err)
	}
}

// largeTogether are checkpoints of which each is small enough to be anywhere.
func (x suite) largeTogether(t *testing.T) {
	p := x.newPlace(t)
	s := forever(t, p)
	c := store.Commit{Checkpoints: map[string][]byte{}}
	for i := range uint64(20) {
		c.Checkpoints[fmt.Sprint("h", i)] = NewEntry(i, 70_000).Data
	}
	commit(t, s, c)
	s = reopen(t, p, s)
	for name, want := range c.Checkpoints {
		if got, ok, err := s.Checkpoint(t.Context(), name); !ok || err != nil || !bytes.Equal(got, want) {
			t.Errorf("checkpoint %s has %d bytes: %v", name, len(got), err)
		}
	}
}

// spill spills pairs of key and value; - deletes.
func spill(t *testing.T, s store.Store, db string, pairs ...string) {
	t.Helper()
	var kvs []store.KV
	for i := 0; i < len(pairs); i += 2 {
		kv := store.KV{Key: pairs[i], Value: []byte(pairs[i+1])}
		if pairs[i+1] == "-" {
			kv.Value = nil
		}
		kvs = append(kvs, kv)
	}
	if err := s.Spill(t.Context(), db, kvs); err != nil {
		t.Fatal(err)
	}
}

// spills compares what history a has spilled.
func (x suite) spills(t *testing.T, s store.Store, want map[string]string) {
	t.Helper()
	same(t, want, x.stream(t, s).Histories["a"].Spilled)
}
