package store_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/isowatch/isowatch/internal/lab/storetest"
	"github.com/isowatch/isowatch/window/store"
)

// TestRetention: entries that no checkpoint needs go by age and by size, the oldest
// first; what is needed stays however much it is.
func TestRetention(t *testing.T) {
	ctx := context.Background()
	for _, c := range []struct {
		name     string
		retain   time.Duration
		maxBytes int64
		drop     uint64
		// first is the range in which the oldest entry of 400 that is left must be;
		// files of the journal go as a whole.
		least, most uint64
	}{
		{"all is needed", 0, 1, 0, 1, 1},
		{"most is needed", 0, 1, 10, 4, 10},
		{"none is kept as evidence", 0, 8 << 20, 400, 340, 400},
		{"by age", 100 * time.Second, 1 << 30, 400, 290, 301},
		{"by age, but needed", 100 * time.Second, 1 << 30, 50, 40, 50},
		{"by size", store.Forever, 2 << 20, 400, 180, 240},
		{"neither", store.Forever, 1 << 30, 400, 1, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := store.Open(store.Options{Path: t.TempDir(), Retain: c.retain, MaxBytes: c.maxBytes, Now: func() time.Time { return time.Unix(400, 0) }})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			for n := uint64(1); n <= 400; n++ {
				if err := s.Commit(ctx, store.Commit{Journal: []store.Entry{storetest.NewEntry(n, 10_000)}, Drop: min(n, c.drop)}); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.Maintain(ctx); err != nil {
				t.Fatal(err)
			}
			st, err := s.Stats(ctx)
			if err != nil || st.JournalFirst < c.least || st.JournalFirst > c.most || st.JournalLast != 400 || st.JournalEntries != int64(400-st.JournalFirst+1) {
				t.Fatalf("%+v, %v", st, err)
			}
			_, ok, err := s.Entry(ctx, st.JournalFirst-1)
			if ok || err != nil {
				t.Errorf("an entry that was dropped: %v, %v", ok, err)
			}
			if st.JournalDrop != c.drop {
				t.Errorf("dropped up to %d", st.JournalDrop)
			}
		})
	}
}

// TestSetAside: a damaged store is renamed, never deleted, and a new one takes its
// place; a mount point is emptied into a folder of itself.
func TestSetAside(t *testing.T) {
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "data")
	now := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	fill := func() *store.Badger {
		t.Helper()
		s, err := store.Open(store.Options{Path: dir})
		if err != nil {
			t.Fatal(err)
		}
		st, err := s.Stats(ctx)
		if err != nil || st.JournalEntries != 0 {
			t.Fatalf("not a new store: %+v %v", st, err)
		}
		if err := s.Commit(ctx, store.Commit{Journal: []store.Entry{storetest.NewEntry(1, 10)}}); err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := fill()
	if _, err := store.SetAside(dir, now); !errors.Is(err, store.ErrLocked) {
		t.Errorf("a store in use: %v", err)
	}
	s.Close()
	for _, want := range []string{dir + ".20260131T120000Z", dir + ".20260131T120000Z-2"} {
		to, err := store.SetAside(dir, now)
		if err != nil || to != want {
			t.Fatalf("%s, %v", to, err)
		}
		if r, err := store.Verify(to); err != nil || len(r.Damaged) > 0 || r.Entries != 1 {
			t.Errorf("what was set aside: %+v, %v", r, err)
		}
		fill().Close()
	}
	if _, err := store.SetAside(dir+"-nowhere", now); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a store that is not there: %v", err)
	}
}
