package embedded

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/isowatch/isowatch/window/store"
)

// Of who was killed the folder goes with the next start; one that is in use stays, and one that may be about to be.
func TestTidy(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	old := time.Now().Add(-time.Hour)
	dir := func(name string, at time.Time) string {
		path := filepath.Join(os.TempDir(), folder+name)
		s, err := store.Open(store.Options{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		if name == "used" {
			t.Cleanup(func() { _ = s.Close() })
		} else if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
		return path
	}
	dir("left", old)
	want := []string{dir("made", time.Now()), dir("used", old)}
	tidy()
	if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "*")); !slices.Equal(left, want) {
		t.Errorf("there are %v, want %v", left, want)
	}
}
