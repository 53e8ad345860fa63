package store_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/isowatch/isowatch/window/store"
)

// resident is how many bytes of what this process maps of the files in dir that end so it has in memory.
func resident(t *testing.T, dir, end string) (bytes int) {
	t.Helper()
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	ours := false
	for s := bufio.NewScanner(f); s.Scan(); {
		fields := strings.Fields(s.Text())
		switch last := fields[len(fields)-1]; {
		case strings.Contains(fields[0], "-"):
			ours = filepath.Dir(last) == dir && filepath.Ext(last) == end
		case ours && fields[0] == "Rss:":
			kB := 0
			if _, err := fmt.Sscan(fields[1], &kB); err != nil {
				t.Fatal(err)
			}
			bytes += kB << 10
		}
	}
	return bytes
}

// pagesOut says whether the kernel takes the advice here: for a file in dir that nobody else uses and that
// is on the disk.
func pagesOut(t *testing.T, dir string) bool {
	t.Helper()
	const size = 1 << 20
	f, err := os.Create(filepath.Join(dir, "page.out"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(bytes.Repeat([]byte("x"), size)); err != nil {
		t.Fatal(err)
	}
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	b, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(b)
	if bytes.Count(b, []byte("x")) != size {
		t.Fatal("the file is not what was written")
	}
	before := resident(t, dir, ".out")
	err = unix.Madvise(b, unix.MADV_PAGEOUT)
	return err == nil && resident(t, dir, ".out") <= before/4
}

// What has been spilled is in tables that Badger maps, and all that it has written stays in the
// memory of the process until it is paged out; then it is read from the disk.
func TestPageOut(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(store.Options{Path: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var keys []string
	for range 40 {
		var pairs []store.KV
		for range 2000 {
			key := fmt.Sprint("key ", len(keys))
			keys = append(keys, key)
			pairs = append(pairs, store.KV{Key: key, Value: []byte(strings.Repeat("x", 200) + key)})
		}
		if err := s.Spill(t.Context(), "a", pairs); err != nil {
			t.Fatal(err)
		}
	}
	most := resident(t, dir, ".sst")
	if most < 8<<20 {
		t.Fatalf("%d bytes of tables are resident: there is nothing to test", most)
	}
	// What is on its way to the disk stays, and Badger goes on to write tables: some tries at most,
	// each when all that there is has been written.
	after := most
	for range 20 {
		syncTables(t, dir)
		most = max(most, resident(t, dir, ".sst"))
		store.PageOut(filepath.Join(dir, "..", filepath.Base(dir)))
		if after = resident(t, dir, ".sst"); after <= most/4 {
			break
		}
	}
	switch {
	case after <= most/4:
	case pagesOut(t, dir):
		t.Errorf("%d of %d bytes are resident still", after, most)
	default:
		t.Skip("NOT TESTED: this kernel or the file system of ", dir, " leaves in memory what it is advised to page out")
	}
	values, err := s.Spilled(t.Context(), "a", keys)
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range values {
		if want := strings.Repeat("x", 200) + keys[i]; string(v) != want {
			t.Fatalf("%s is %q, not %q", keys[i], v, want)
		}
	}
}

// syncTables waits until the tables in dir are on the disk.
func syncTables(t *testing.T, dir string) {
	t.Helper()
	tables, err := filepath.Glob(filepath.Join(dir, "*.sst"))
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range tables {
		f, err := os.Open(table)
		if errors.Is(err, fs.ErrNotExist) {
			continue // compacted meanwhile
		}
		if err != nil {
			t.Fatal(err)
		}
		err = f.Sync()
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
	}
}
