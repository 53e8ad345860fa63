package store_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/isowatch/isowatch/internal/lab/race"
	"github.com/isowatch/isowatch/internal/lab/storetest"
	"github.com/isowatch/isowatch/window/store"
)

// round is what the n-th commit of a small monitor has: everything there is, with
// values that have files of their own, entries that open new files of the journal,
// a number that is written again, and a history that is deleted.
func round(n int64) store.Commit {
	c := store.Commit{
		Offsets:     map[string]map[int]int64{"topic": {0: n + 1}},
		Journal:     []store.Entry{storetest.NewEntry(uint64(n+1), 30_000), storetest.NewEntry(uint64(n+2), 10)},
		DeadLetters: []store.DeadLetter{storetest.Letter(n, "x")},
		Alerts:      []store.Alert{{ID: fmt.Sprint("a", n/2), Body: storetest.NewEntry(uint64(n), 100_000).Data, News: 2}},
		Notices:     []store.Notice{{ID: fmt.Sprint("n", n), Body: fmt.Append(nil, "notice ", n)}},
		Handled:     []store.Handled{{ID: fmt.Sprint("a", (n-1)/2), News: 1}},
		Life:        fmt.Append(nil, "life ", n),
		Checkpoints: map[string][]byte{},
		Drop:        uint64(max(n-1, 0)),
	}
	if data := storetest.NewEntry(uint64(n), int(n%3)*300_000).Data; n%2 == 0 {
		c.Checkpoints["a"] = data
	} else {
		c.Written = storetest.Written("a", data)
	}
	if n%4 == 3 {
		c.Checkpoints["b"] = nil
	} else {
		c.Checkpoints["b"] = []byte{byte(n)}
	}
	return c
}

func spills(n int64) []store.KV {
	return []store.KV{{Key: fmt.Sprint(n % 3), Value: fmt.Append(nil, n)}, {Key: "k", Value: fmt.Append(nil, "v", n)}}
}

// everything is all that a store holds.
type everything struct {
	Dump   storetest.Dump
	Stream storetest.Stream
}

func readAll(s store.Store) (everything, error) {
	d, err1 := storetest.Read(s, []string{"topic"}, []string{"web"})
	st, err2 := storetest.ReadStream(s, []string{"a", "b"}, []string{"0", "1", "2", "k"})
	// Which entries are still kept as evidence depends on when files were begun.
	st.Journal = st.Journal[max(0, len(st.Journal)-2):]
	return everything{d, st}, errors.Join(err1, err2)
}

const rounds = 6

// work commits from the stored offset on.
func work(s store.Store) error {
	ctx := context.Background()
	offsets, err := s.Offsets(ctx, "topic")
	if err != nil {
		return err
	}
	for n := offsets[0]; n < rounds; n++ {
		if err := s.Spill(ctx, "a", spills(n)); err != nil {
			return err
		}
		if err := s.Spill(ctx, "b", spills(n)[:1]); err != nil {
			return err
		}
		c := round(n)
		if n%2 == 1 { // in files of their own
			c.Notices[0].Body, c.Life = storetest.NewEntry(uint64(n), 90_000).Data, storetest.NewEntry(uint64(n), 100_000).Data
		}
		for i := range n - 2 {
			if err := s.Delivered(ctx, "web", fmt.Sprint("n", i)); err != nil {
				return err
			}
		}
		if err := s.Commit(ctx, c); err != nil {
			return err
		}
	}
	return s.Maintain(ctx)
}

func faultOptions(dir string) store.Options {
	return store.Options{Path: dir, Receivers: []string{"web"}, MaxDeadLetters: 3, MaxBytes: 1, SyncWrites: true}
}

// fastDir is a directory in memory where there is one with room, which many containers have
// little of: what is tested here opens and syncs a store hundreds of times. Verify copies
// databases there, too.
func fastDir(t *testing.T) string {
	t.Helper()
	const memory, room = "/dev/shm", 512 << 20
	if store.Room(memory) < room {
		return t.TempDir()
	}
	dir, err := os.MkdirTemp(memory, "isowatch-test-") //nolint:usetesting // t.TempDir is on a disk
	if err != nil {
		return t.TempDir()
	}
	t.Setenv("TMPDIR", memory)
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

var errDied = errors.New("dead")

// TestDiesAtEveryWrite lets the store die at the n-th thing that it does to its
// disk, for every n, and go on after a restart: in the end it holds the same as
// without, and after the restart it is whole and holds what was acknowledged. Or it
// fails there once, as a full disk does, and the same commit is tried again.
func TestDiesAtEveryWrite(t *testing.T) {
	base := fastDir(t)
	ask := func(string) error { return nil }
	open := func(t *testing.T, dir string) *store.Badger {
		t.Helper()
		s, err := store.Open(store.WithFaults(faultOptions(dir), func(what string) error { return ask(what) }))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	finish := func(t *testing.T, dir string, acked int64) everything {
		t.Helper()
		s := open(t, dir)
		defer s.Close()
		offsets, err := s.Offsets(context.Background(), "topic")
		if err != nil || offsets[0] < acked {
			t.Fatalf("%d commits were there, %d are: %v", acked, offsets[0], err)
		}
		if err := work(s); err != nil {
			t.Fatal(err)
		}
		all, err := readAll(s)
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	var asked []string
	ask = func(what string) error { asked = append(asked, what); return nil }
	want := finish(t, filepath.Join(base, "clean"), 0)
	if len(want.Stream.Journal) != 2 || len(want.Dump.Letters) != 3 || want.Stream.Histories["a"].Spilled["k"] != "v5" {
		t.Fatalf("the work does not work: %+v", want.Dump)
	}
	all := strings.Join(asked, "\n")
	for _, what := range []string{"write journal", "write large", "sync journal", "sync large", "remove journal", "remove large", "commit"} {
		if !strings.Contains(all, what) {
			t.Fatalf("the work has no %s:\n%s", what, all)
		}
	}
	t.Logf("%d writes", len(asked))
	unsynced := make(map[string]bool)
	for i, what := range asked {
		op, name, _ := strings.Cut(what, " ")
		switch {
		case name == "COMMITTED": // it says what was synced
		case op == "write":
			unsynced[name] = true
		case op == "sync":
			delete(unsynced, name)
		case op == "commit" && len(unsynced) > 0:
			t.Fatalf("commit (%d) before %v is synced", i+1, unsynced)
		}
	}
	step := 1
	if race.Brief() {
		step = 7
	}
	for n := 1; n <= len(asked); n += step {
		for _, dies := range []bool{true, false} {
			dir := filepath.Join(base, fmt.Sprint(n, dies))
			count, acked := 0, int64(0)
			ask = func(string) error {
				if count++; count == n || (dies && count > n) {
					if dies {
						return errDied
					}
					return syscall.ENOSPC
				}
				return nil
			}
			s, err := store.Open(store.WithFaults(faultOptions(dir), func(what string) error { return ask(what) }))
			if !dies && errors.Is(err, store.ErrFull) {
				s, err = store.Open(store.WithFaults(faultOptions(dir), func(what string) error { return ask(what) }))
			}
			if err == nil {
				for range 3 {
					if err = work(s); err == nil || dies {
						break
					}
					if !errors.Is(err, store.ErrFull) {
						t.Fatalf("%s (%d) fails: %v", asked[n-1], n, err)
					}
				}
				if offsets, err := s.Offsets(context.Background(), "topic"); err == nil {
					acked = offsets[0]
				}
				s.Close()
			}
			if !dies && err != nil {
				t.Fatalf("%s (%d) fails once: %v", asked[n-1], n, err)
			}
			ask = func(string) error { return nil }
			if r, err := store.Verify(dir); err != nil || len(r.Damaged) > 0 || len(r.Notes) > 0 {
				t.Fatalf("%s (%d, dies %v): verify: %+v %v", asked[n-1], n, dies, r, err)
			}
			diff := cmp.Diff(want, finish(t, dir, acked), storetest.Blobs)
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
			if diff != "" {
				t.Fatalf("%s (%d, dies %v) (-want +got)\n%s", asked[n-1], n, dies, diff)
			}
		}
	}
}
