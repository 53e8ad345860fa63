package picture_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/isowatch/isowatch/alerts/internal/made"
	"github.com/isowatch/isowatch/alerts/picture"
)

var update = flag.Bool("update", false, "write the golden files anew; look at them")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Errorf("%s: -want +got (go test -update writes it anew; open it in a browser):\n%s", file, d)
	}
}

// A file per anomaly and picture, to be looked at in a browser.
func TestGolden(t *testing.T) {
	for _, c := range made.Cases(t) {
		t.Run(c.Title, func(t *testing.T) {
			golden(t, c.Title+".cycle.svg", picture.Cycle(c.Alert))
			golden(t, c.Title+".timeline.svg", picture.Timeline(c.Alert))
			golden(t, c.Title+".dot", picture.Dot(c.Alert))
		})
	}
}
