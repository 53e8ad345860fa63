package store_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/isowatch/isowatch/window/store"
)

// wall is a log that Badger stands still at where it says something.
type wall struct {
	at   []byte
	up   atomic.Bool
	once sync.Once
	met  chan struct{}
	free chan struct{}
}

func (w *wall) Write(b []byte) (int, error) {
	if w.up.Load() && bytes.Contains(b, w.at) {
		w.once.Do(func() { close(w.met) })
		<-w.free
	}
	return len(b), nil
}

// TestStuck: Badger does not come back from a commit, or from closing. Whoever waits for it is told so after a minute,
// sooner if the process is asked to end, all that follow are told at once, and what was committed is there for the next
// process.
func TestStuck(t *testing.T) {
	ctx := context.Background()
	commit := func(s *store.Badger, next int64) error {
		return s.Commit(ctx, store.Commit{Offsets: map[string]map[int]int64{"t": {0: next}}})
	}
	second := func(s *store.Badger) error { return commit(s, 2) }
	read := func(s *store.Badger) error {
		_, err := s.Offsets(ctx, "t")
		return err
	}
	for _, x := range []struct {
		name, at    string
		first, then func(*store.Badger) error // then: while first does not come back; nil: nothing
		stopping    bool
		looks       int // of each of them at most
	}{
		{"commit", "Writing to memtable", second, nil, false, 60},
		{"commit, at a stop", "Writing to memtable", second, nil, true, 10},
		{"commit, and read", "Writing to memtable", second, read, false, 60},
		{"close", "Closing database", (*store.Badger).Close, nil, false, 60},
		{"close, at a stop", "Closing database", (*store.Badger).Close, nil, true, 10},
	} {
		t.Run(x.name, func(t *testing.T) {
			w := &wall{at: []byte(x.at), met: make(chan struct{}), free: make(chan struct{})}
			look := make(chan time.Time)
			o := store.Options{Path: t.TempDir(), Logger: zerolog.New(w), Stopping: func() bool { return x.stopping }}
			s, err := store.Open(store.WithLooks(o, look))
			if err != nil {
				t.Fatal(err)
			}
			db := s.Database()
			t.Cleanup(func() {
				close(w.free)
				if err := db.Close(); err != nil {
					t.Error(err)
				}
			})
			if err := commit(s, 1); err != nil {
				t.Fatal(err)
			}
			w.up.Store(true)
			over := make(chan error)
			go func() { over <- x.first(s) }()
			<-w.met
			waiting, looks := 1, 0
			if x.then != nil {
				waiting++
				go func() { over <- x.then(s) }()
			}
			most := waiting * x.looks
			for waiting > 0 {
				select {
				case look <- time.Time{}:
					looks++
				case err := <-over:
					if waiting--; !errors.Is(err, store.ErrStuck) {
						t.Error(err)
					}
				}
			}
			if looks < x.looks || looks > most {
				t.Errorf("%d looks, want %d", looks, x.looks)
			}
			for range 2 {
				if err := commit(s, 3); !errors.Is(err, store.ErrStuck) {
					t.Errorf("the next commit: %v", err)
				}
			}
			if err := s.Close(); x.at == "Writing to memtable" && !errors.Is(err, store.ErrStuck) {
				t.Errorf("closing: %v", err)
			}
			next := t.TempDir() + "/next"
			if err := os.CopyFS(next, os.DirFS(o.Path)); err != nil {
				t.Fatal(err)
			}
			again, err := store.Open(store.Options{Path: next})
			if err != nil {
				t.Fatal(err)
			}
			defer again.Close()
			if got, err := again.Offsets(ctx, "t"); err != nil || got[0] != 1 {
				t.Errorf("the next process has %v: %v", got, err)
			}
		})
	}
}
