package store_test

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/isowatch/isowatch/window/store"
)

// killedStore is a store as a process that was killed leaves it, in the folder in which it was
// opened, and its files.
func killedStore(t *testing.T) (string, tree) {
	t.Helper()
	dir := t.TempDir()
	s, err := store.Open(quietOptions(dir))
	if err != nil {
		t.Fatal(err)
	}
	for i := range int64(6) {
		if i == 3 { // which makes a table
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if s, err = store.Open(quietOptions(dir)); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Commit(t.Context(), round(i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Commit(t.Context(), store.Commit{Offsets: map[string]map[int]int64{"kafka t": {0: 77}}}); err != nil {
		t.Fatal(err)
	}
	files := load(t, dir)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return dir, files
}

// again makes dir hold files and nothing else.
func again(t *testing.T, dir string, files tree) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
	files.save(t, dir)
}

// TestKilledIsNoCopy: what is missing or cut in a store that was killed is damage. Only of a
// copy, which is elsewhere, may it have been written meanwhile.
func TestKilledIsNoCopy(t *testing.T) {
	dir, files := killedStore(t)
	verify := func(path, what string, want bool) {
		t.Helper()
		r, err := store.Verify(path)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if got := len(r.Damaged) > 0; got != want {
			t.Errorf("%s: damaged %v, want %v; notes %q", what, r.Damaged, want, r.Notes)
		}
	}
	again(t, dir, files)
	verify(dir, "killed", false)
	cut := 0
	for name, b := range files {
		kept := strings.HasPrefix(name, "journal") || strings.HasPrefix(name, "large")
		if !kept && !strings.HasSuffix(name, ".sst") {
			continue
		}
		for _, keep := range []int{-1, 0, len(b) / 2} {
			bad := make(tree)
			for k, v := range files {
				bad[k] = v
			}
			if delete(bad, name); keep >= 0 {
				bad[name] = b[:keep]
			}
			again(t, dir, bad)
			verify(dir, name+" in a store that was killed", true)
			if keep < 0 && strings.HasPrefix(name, "journal") || strings.HasPrefix(name, "large") {
				verify(bad.save(t, t.TempDir()), name+" in a copy", false)
				cut++
			}
		}
	}
	if cut == 0 {
		t.Error("nothing was cut")
	}
	// Who opens a copy makes a store of it.
	moved := files.save(t, t.TempDir())
	if _, err := opened(t, moved); err != nil {
		t.Fatal(err)
	}
	inPlace := load(t, moved)
	inPlace["LOCK"] = files["LOCK"]
	for name := range inPlace {
		if strings.HasPrefix(name, "journal") {
			delete(inPlace, name)
		}
	}
	again(t, moved, inPlace)
	verify(moved, "a copy that was opened, and has lost its journal", true)
}

// TestLastEntry: a flipped byte in the last transaction is told, as it was acknowledged.
func TestLastEntry(t *testing.T) {
	dir, files := killedStore(t)
	for name, b := range files {
		if !strings.HasSuffix(name, ".mem") {
			continue
		}
		end := len(bytes.TrimRight(b, "\x00"))
		for _, back := range []int{1, 2, 5, 6} {
			bad := maps.Clone(files)
			bad[name] = bytes.Clone(b)
			bad[name][end-back] ^= 1
			again(t, dir, bad)
			r, err := store.Verify(dir)
			if err != nil || len(r.Damaged) != 1 || r.Damaged[0].Key != "the last 1 of 8 transactions" {
				t.Errorf("%d bytes before the end: %v, %v", back, r.Damaged, err)
			}
			if _, err := opened(t, dir); !errors.Is(err, store.ErrDamaged) {
				t.Errorf("%d bytes before the end: opening says %v", back, err)
			}
			if _, err := opened(t, dir); !errors.Is(err, store.ErrDamaged) {
				t.Errorf("%d bytes before the end: opening it again says %v", back, err)
			}
		}
	}
}

// TestWithoutItsList: a store that has lost the list of its tables is damaged, and not somebody
// else's.
func TestWithoutItsList(t *testing.T) {
	dir, files := killedStore(t)
	delete(files, "MANIFEST")
	again(t, dir, files)
	r, err := store.Verify(dir)
	if err != nil || len(r.Damaged) != 1 || r.Damaged[0].File != "MANIFEST" {
		t.Errorf("without its MANIFEST: %v, %v", r.Damaged, err)
	}
	if _, err := opened(t, dir); !errors.Is(err, store.ErrDamaged) || !strings.Contains(err.Error(), "--rebuild") {
		t.Errorf("without its MANIFEST, opening says %v", err)
	}
	files["notes.txt"] = []byte("mine")
	again(t, dir, files)
	if _, err := store.Verify(dir); !errors.Is(err, store.ErrForeign) || strings.Count(err.Error(), dir) != 1 {
		t.Errorf("with somebody else's file: %v", err)
	}
}

// TestMayNotWrite: Badger tells as text why it can't write. Setting aside what can't be
// written to is no way out.
func TestMayNotWrite(t *testing.T) {
	for _, why := range []string{"permission denied", "read-only file system"} {
		err := store.ExplainOpen("/d", errors.New("Cannot write pid file \"/d/LOCK\" err: open /d/LOCK: "+why))
		if text := err.Error(); !strings.Contains(text, "let it be written to") || strings.Contains(text, "--rebuild") {
			t.Error(text)
		}
	}
}
