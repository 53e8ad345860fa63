package embedded

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/alerts/life"
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

// What an earlier run with the same store has found is told as its, also once this one has found something.
func TestEarlierRuns(t *testing.T) {
	var out bytes.Buffer
	m := &Monitor{start: time.Now(), drawn: map[string]bool{}, options: Options{Output: Output{Out: &out}}}
	m.finds(alerts.Alert{})
	earlier := life.Notice{Alert: alerts.Alert{Version: alerts.Version, Name: "lost-update", Summary: "long ago", At: &alerts.Place{Time: m.start.Add(-time.Second).UnixNano()}},
		Notification: life.Notification{IDs: []string{"a", "b"}}}
	if _, err := m.Write(earlier.JSON()); err != nil {
		t.Fatal(err)
	}
	if said := out.String(); strings.Contains(said, "ANOMALY") || !strings.Contains(said, "long ago") {
		t.Errorf("%s", said)
	}
	if got, want := m.Result(), "1 alert of an anomaly"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
