package storetest

import (
	"bytes"
	"context"
	"fmt"
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

// runStream is the part of the suite that streams are about.
func runStream(t *testing.T, newPlace func(*testing.T) Place) {
	ctx := context.Background()
	histories, keys := []string{"a", "ab", ""}[:2], []string{"k", "k2", "kk", ""}
	read := func(t *testing.T, s store.Store) Stream {
		t.Helper()
		d, err := ReadStream(s, histories, keys)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	reopen := func(t *testing.T, p Place, s store.Store) store.Store {
		t.Helper()
		if p.Volatile {
			return s
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		return open(t, p, store.Options{Retain: store.Forever})
	}

	t.Run("journal", func(t *testing.T) {
		p := newPlace(t)
		s := open(t, p, store.Options{Retain: store.Forever})
		if d := read(t, s); len(d.Journal) != 0 {
			t.Fatalf("%d entries in a new store", len(d.Journal))
		}
		commit(t, s, store.Commit{Journal: []store.Entry{NewEntry(1, 10), NewEntry(2, 0), NewEntry(5, 300_000)}})
		commit(t, s, store.Commit{Journal: []store.Entry{NewEntry(9, 3<<20)}, Offsets: map[string]map[int]int64{"t": {0: 1}}})
		want := []store.Entry{NewEntry(1, 10), NewEntry(2, 0), NewEntry(5, 300_000), NewEntry(9, 3<<20)}
		same(t, want, read(t, s).Journal)
		s = reopen(t, p, s)
		same(t, want, read(t, s).Journal)
		commit(t, s, store.Commit{Journal: []store.Entry{NewEntry(10, 7)}})
		same(t, append(want, NewEntry(10, 7)), read(t, s).Journal)

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
		same(t, want, read(t, s).Journal)
		s = reopen(t, p, s)
		same(t, want, read(t, s).Journal)
		commit(t, s, store.Commit{Journal: []store.Entry{NewEntry(1, 5)}})
		s = reopen(t, p, s)
		same(t, []store.Entry{NewEntry(1, 5)}, read(t, s).Journal)

		bad := store.Commit{Journal: []store.Entry{NewEntry(7, 1), NewEntry(7, 1)}}
		if err := s.Commit(ctx, bad); err == nil {
			t.Error("a number was committed twice at once")
		}
		same(t, []store.Entry{NewEntry(1, 5)}, read(t, s).Journal)
	})

	t.Run("checkpoints", func(t *testing.T) {
		p := newPlace(t)
		s := open(t, p, store.Options{Retain: store.Forever})
		big := NewEntry(3, 5<<20).Data
		commit(t, s, store.Commit{Checkpoints: map[string][]byte{"a": big, "ab": {}}})
		same(t, map[string]History{"a": {big, map[string]string{}}, "ab": {[]byte{}, map[string]string{}}}, read(t, s).Histories)
		s = reopen(t, p, s)
		same(t, map[string]History{"a": {big, map[string]string{}}, "ab": {[]byte{}, map[string]string{}}}, read(t, s).Histories)
		commit(t, s, store.Commit{Checkpoints: map[string][]byte{"a": []byte("small"), "ab": big}})
		commit(t, s, store.Commit{Checkpoints: map[string][]byte{"ab": nil}})
		s = reopen(t, p, s)
		same(t, map[string]History{"a": {[]byte("small"), map[string]string{}}, "ab": {nil, map[string]string{}}}, read(t, s).Histories)
		if err := s.Commit(ctx, store.Commit{Checkpoints: map[string][]byte{"": {1}}}); err == nil {
			t.Error("a history without a name was committed")
		}
	})

	t.Run("spilled", func(t *testing.T) {
		p := newPlace(t)
		s := open(t, p, store.Options{Retain: store.Forever})
		spill := func(db string, pairs ...string) {
			t.Helper()
			var kvs []store.KV
			for i := 0; i < len(pairs); i += 2 {
				kv := store.KV{Key: pairs[i], Value: []byte(pairs[i+1])}
				if pairs[i+1] == "-" {
					kv.Value = nil
				}
				kvs = append(kvs, kv)
			}
			if err := s.Spill(ctx, db, kvs); err != nil {
				t.Fatal(err)
			}
		}
		has := func(db string, want map[string]string) {
			t.Helper()
			same(t, want, read(t, s).Histories[db].Spilled)
		}
		spill("a", "k", "1", "kk", "")
		spill("ab", "k", "other")
		has("a", map[string]string{"k": "1", "kk": ""})
		commit(t, s, store.Commit{Checkpoints: map[string][]byte{"a": []byte("c1")}})
		spill("a", "k", "2", "k2", "3", "kk", "-")
		spill("a", "k", "4", "k2", "-", "", "5")
		has("a", map[string]string{"k": "4", "": "5"})
		if p.Volatile {
			return
		}
		// Only what belongs to a checkpoint survives.
		s = reopen(t, p, s)
		has("a", map[string]string{"k": "1", "kk": ""})
		has("ab", map[string]string{})
		spill("a", "k2", "6", "k", "7")
		commit(t, s, store.Commit{Checkpoints: map[string][]byte{"a": []byte("c2")}})
		s = reopen(t, p, s)
		has("a", map[string]string{"k": "7", "k2": "6", "kk": ""})
		s = reopen(t, p, s)
		has("a", map[string]string{"k": "7", "k2": "6", "kk": ""})
		// What a deleted history has spilled goes with it.
		spill("a", "kk", "8")
		commit(t, s, store.Commit{Checkpoints: map[string][]byte{"a": nil}})
		has("a", map[string]string{})
		spill("a", "k", "9")
		has("a", map[string]string{"k": "9"})
		s = reopen(t, p, s)
		has("a", map[string]string{})
		// One that begins anew has spilled nothing, and what it spills then counts from
		// that commit on.
		spill("a", "k", "10")
		commit(t, s, store.Commit{Checkpoints: map[string][]byte{"a": []byte("c3")}})
		spill("a", "k", "11", "kk", "12")
		commit(t, s, store.Commit{Checkpoints: map[string][]byte{"a": []byte("c4")}, Forget: []string{"a", "never there"}})
		has("a", map[string]string{})
		spill("a", "kk", "13")
		s = reopen(t, p, s)
		has("a", map[string]string{})
		spill("a", "kk", "14")
		commit(t, s, store.Commit{Checkpoints: map[string][]byte{"a": []byte("c5")}})
		s = reopen(t, p, s)
		has("a", map[string]string{"kk": "14"})
		commit(t, s, store.Commit{Forget: []string{"a"}})
		s = reopen(t, p, s)
		has("a", map[string]string{})
		if err := s.Commit(ctx, store.Commit{Forget: []string{""}}); err == nil {
			t.Error("a history without a name was forgotten")
		}
		if err := s.Spill(ctx, "a", []store.KV{{Key: "k", Value: make([]byte, store.LimitSpill)}}); err == nil {
			t.Error("a pair of any size was spilled")
		}
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
	})
}
