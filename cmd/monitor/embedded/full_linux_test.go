package embedded

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/isowatch/isowatch/internal/lab/mounts"
)

// A file that had no room for all records is whole up to there, also when there is room again.
func TestIntact(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"); err != nil {
		mounts.Failed(t, "A FULL DISK IS NOT TESTED", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, 0) })
	line, other := strings.Repeat("x", 9_999)+"\n", filepath.Join(dir, "other")
	if err := os.WriteFile(other, []byte(line+line), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(dir, "records"))
	if err != nil {
		t.Fatal(err)
	}
	w, taken := &intact{File: f}, 0
	for range 10 {
		if _, err = w.Write([]byte(line)); err == nil {
			taken++
		}
	}
	if err == nil {
		t.Fatal("all had room")
	}
	if err := os.Remove(other); err != nil {
		t.Fatal(err)
	}
	if _, again := w.Write([]byte(line)); again != err {
		t.Errorf("%v, and then %v", err, again)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(f.Name()); err != nil || string(text) != strings.Repeat(line, taken) {
		t.Errorf("%v: %d bytes of %d lines", err, len(text), taken)
	}
}
