package embedded

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/isowatch/isowatch/config"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/mounts"
)

// A file that had no room for all records says so, and has no half of one; one that had is whole when it is closed, and not before.
func TestWhole(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"); err != nil {
		mounts.Failed(t, "A FULL DISK IS NOT TESTED", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, 0) })
	line := strings.Repeat("x", 9_999) + "\n"
	for _, c := range []struct {
		lines int
		ends  string // coverage, when it is closed
	}{{3, "complete"}, {10, "partial"}} {
		path := filepath.Join(dir, c.ends)
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		w := &whole{File: f, header: header(&config.Config{}, record.CoverageComplete)}
		if err := w.begin(header(&config.Config{}, record.CoveragePartial)); err != nil {
			t.Fatal(err)
		}
		for range c.lines {
			_, err = w.Write([]byte(line))
		}
		if (err != nil) != (c.ends == "partial") {
			t.Errorf("%d lines: %v", c.lines, err)
		}
		for i, coverage := range []string{"partial", c.ends} {
			text, err := os.ReadFile(path)
			first, rest, _ := strings.Cut(string(text), "\n")
			if err != nil || !strings.Contains(first, `"coverage":"`+coverage+`"`) || len(rest)%len(line) != 0 {
				t.Errorf("%d lines: %v, %s and %d bytes", c.lines, err, first, len(rest))
			}
			if i > 0 {
				break
			}
			if err := w.Close(); err != nil {
				t.Error(err)
			}
		}
		if err := os.Remove(path); err != nil {
			t.Error(err)
		}
	}
}
