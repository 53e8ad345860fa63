package store_test

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/isowatch/isowatch/window/store"
)

// resident is how many bytes of the tables in dir this process has in memory.
func resident(t *testing.T, dir string) (bytes int) {
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
			ours = filepath.Dir(last) == dir && filepath.Ext(last) == ".sst"
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
	before := resident(t, dir)
	if before < 8<<20 {
		t.Fatalf("%d bytes of tables are resident: there is nothing to test", before)
	}
	store.PageOut(filepath.Join(dir, "..", filepath.Base(dir)))
	if after := resident(t, dir); after > before/4 {
		t.Errorf("%d of %d bytes are resident still", after, before)
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
