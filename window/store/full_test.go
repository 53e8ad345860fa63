//go:build linux

package store_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/isowatch/isowatch/internal/lab/mounts"
	"github.com/isowatch/isowatch/internal/lab/storetest"
	"github.com/isowatch/isowatch/window/store"
)

// smallDisk mounts a disk of so many bytes.
func smallDisk(t *testing.T, bytes string) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("isowatch-test", dir, "tmpfs", 0, "size="+bytes); err != nil {
		mounts.Failed(t, "A FULL DISK IS NOT TESTED", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// TestFullDisk fills a real disk: by the store itself, and by somebody else to the
// last byte. Commits fail and say why, all that was committed can be read, nothing
// ends the process, and with room again commits succeed, without a restart and
// with one.
func TestFullDisk(t *testing.T) {
	ctx := context.Background()
	disk := smallDisk(t, "96m")
	opt := store.Options{Path: filepath.Join(disk, "store"), Reserve: 32 << 20, Receivers: []string{"web"}, Retain: store.Forever, MaxBytes: 128 << 20}
	s, err := store.Open(opt)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { s.Close() }()
	n, drop := int64(0), uint64(0)
	fill := func() error {
		for range 150 {
			c := round(n)
			c.Drop = drop
			c.Journal = []store.Entry{storetest.NewEntry(uint64(n+1), 1<<20)}
			if err := s.Spill(ctx, "a", spills(n)); err != nil {
				return err
			}
			if err := s.Commit(ctx, c); err != nil {
				return err
			}
			n++
		}
		return errors.New("the disk does not fill")
	}
	check := func() {
		t.Helper()
		all, err := storetest.ReadStream(s, []string{"a"}, nil)
		if err != nil || int64(len(all.Journal)) != n {
			t.Fatalf("%d entries of %d, %v", len(all.Journal), n, err)
		}
		offsets, err := s.Offsets(ctx, "topic")
		if err != nil || offsets[0] != n {
			t.Fatalf("offset %d of %d, %v", offsets[0], n, err)
		}
	}
	if err := fill(); !errors.Is(err, store.ErrFull) {
		t.Fatalf("the disk is full, and the store says %v", err)
	}
	if n < 10 {
		t.Fatalf("%d commits fit", n)
	}
	check()

	// Somebody else takes the rest.
	other := filepath.Join(disk, "other")
	taken := take(t, other)
	if taken < 16<<20 {
		t.Errorf("only %d bytes were left", taken)
	}
	for range 3 {
		if err := s.Commit(ctx, round(n)); !errors.Is(err, store.ErrFull) {
			t.Fatalf("without a byte: %v", err)
		}
		if err := s.Spill(ctx, "a", spills(n)); !errors.Is(err, store.ErrFull) {
			t.Fatalf("without a byte: %v", err)
		}
		if err := s.Delivered(ctx, "web", "a0"); !errors.Is(err, store.ErrFull) {
			t.Fatalf("without a byte: %v", err)
		}
	}
	check()
	if _, err := store.Open(store.Options{Path: filepath.Join(disk, "second")}); !errors.Is(err, store.ErrFull) {
		t.Errorf("a second store without a byte: %v", err)
	}

	// Room again: as much as there was, and then more, as a checkpoint lets go of
	// what was needed.
	if err := os.Remove(other); err != nil {
		t.Fatal(err)
	}
	before := n
	if err := fill(); !errors.Is(err, store.ErrFull) || n > before+1 {
		t.Fatalf("in the reserve: %d more, %v", n-before, err)
	}
	check()
	drop = uint64(n)
	if err := s.Commit(ctx, store.Commit{Drop: drop}); err != nil {
		t.Fatalf("the smallest commit: %v", err)
	}
	before = n
	if err := fill(); !errors.Is(err, store.ErrFull) || n < before+20 {
		t.Fatalf("with room again: %d more, %v", n-before, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if r, err := store.Verify(opt.Path); err != nil || len(r.Damaged) > 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	opt.Reserve = 1 << 20
	if s, err = store.Open(opt); err != nil {
		t.Fatal(err)
	}
	offsets, err := s.Offsets(ctx, "topic")
	if err != nil || offsets[0] != n {
		t.Fatalf("offset %d of %d, %v", offsets[0], n, err)
	}

	// Without a byte a store closes as if it was killed.
	take(t, other)
	if err := s.Close(); !errors.Is(err, store.ErrFull) {
		t.Errorf("closed without a byte: %v", err)
	}
	if err := os.Remove(other); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("closed with room: %v", err)
	}
}

// A store that took its disk's last room, and was killed then, makes room itself when
// it is opened: it lets go of evidence, of that alone, and only if that is enough.
func TestOpenFullDisk(t *testing.T) {
	ctx := context.Background()
	disk := smallDisk(t, "96m")
	opt := store.Options{Path: filepath.Join(disk, "store"), Reserve: 16 << 20, Retain: store.Forever, MaxBytes: 64 << 20}
	s, err := store.Open(opt)
	if err != nil {
		t.Fatal(err)
	}
	const all, needed = 40, 30 // of entries of a megabyte; all before needed are evidence
	for n := uint64(1); n <= all; n++ {
		if err := s.Commit(ctx, store.Commit{Journal: []store.Entry{storetest.NewEntry(n, 1<<20)}, Drop: min(n, needed)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	free, before := available(t, disk), uint64(0)
	opt.Reserve = int64(free) + 8<<20
	if s, err = store.Open(opt); err != nil {
		t.Fatalf("with evidence to let go of: %v", err)
	}
	if err := s.Journal(ctx, 0, func(e store.Entry) bool {
		if before++; before == 1 && e.Number <= 1 {
			t.Errorf("entry %d is still there", e.Number)
		}
		return true
	}); err != nil {
		t.Fatal(err)
	}
	for n := uint64(needed); n <= all; n++ {
		if _, ok, err := s.Entry(ctx, n); !ok || err != nil {
			t.Errorf("entry %d, which is needed: %v, %v", n, ok, err)
		}
	}
	if before == all {
		t.Error("nothing was let go of")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	opt.Reserve = 90 << 20 // more than there is, whatever is let go
	if _, err := store.Open(opt); !errors.Is(err, store.ErrFull) {
		t.Fatalf("with too little room: %v", err)
	}
	// Below what opening takes nothing is tried.
	opt.Reserve = 64 << 20
	other := filepath.Join(disk, "other")
	take(t, other)
	if _, err := store.Open(opt); !errors.Is(err, store.ErrFull) {
		t.Errorf("without a byte: %v", err)
	}
	if err := os.Remove(other); err != nil {
		t.Fatal(err)
	}
	if r, err := store.Verify(opt.Path); err != nil || len(r.Damaged) > 0 {
		t.Fatalf("%+v, %v", r, err)
	}
}

// available is how many bytes are free on a disk.
func available(t *testing.T, path string) uint64 {
	t.Helper()
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		t.Fatal(err)
	}
	return st.Bavail * uint64(st.Bsize)
}

// take fills the disk with a file and returns its size.
func take(t *testing.T, name string) (size int64) {
	t.Helper()
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, chunk := range [][]byte{make([]byte, 1<<20), make([]byte, 4096)} {
		for {
			n, err := f.Write(chunk)
			size += int64(n)
			if errors.Is(err, unix.ENOSPC) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	return size
}

func TestSetAsideMountPoint(t *testing.T) {
	disk := smallDisk(t, "200m")
	for i := range 2 {
		s, err := store.Open(store.Options{Path: disk})
		if err != nil {
			t.Fatal(err)
		}
		s.Close()
		to, err := store.SetAside(disk, time.Unix(0, 0))
		if err != nil || !strings.HasPrefix(to, filepath.Join(disk, "set-aside-19700101T000000Z")) {
			t.Fatalf("%d: %s, %v", i, to, err)
		}
		if r, err := store.Verify(to); err != nil || len(r.Damaged) > 0 {
			t.Errorf("what was set aside: %+v, %v", r, err)
		}
	}
}

// TestFewFiles: nothing is written while few files more may be opened, as Badger loses what is in a table that it can't
// make.
func TestFewFiles(t *testing.T) {
	s, err := store.Open(store.Options{Path: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var was unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	limit := func(n uint64) {
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: n, Max: was.Max}); err != nil {
			t.Fatal(err)
		}
	}
	write := func() error {
		return errors.Join(s.Commit(t.Context(), round(1)), s.Spill(t.Context(), "a", spills(1)))
	}
	defer limit(was.Cur)
	limit(256)
	var taken []*os.File // by somebody else, to the last one
	for {
		f, err := os.Open(os.DevNull)
		if err != nil {
			break
		}
		defer f.Close()
		taken = append(taken, f)
	}
	for _, left := range []int{0, 50} {
		for range left {
			taken[0].Close()
			taken = taken[1:]
		}
		if err := write(); err == nil || strings.Count(err.Error(), "ulimit") != 2 {
			t.Errorf("with %d files more: %v", left, err)
		}
	}
	limit(was.Cur)
	if err := write(); err != nil {
		t.Error(err)
	}
}
