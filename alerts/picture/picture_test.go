package picture_test

import (
	"testing"

	"github.com/isowatch/isowatch/alerts/picture"
	"github.com/isowatch/isowatch/internal/lab/golden"
	"github.com/isowatch/isowatch/internal/lab/made"
)

// A file per anomaly and picture, to be looked at in a browser.
func TestGolden(t *testing.T) {
	for _, c := range made.Cases(t) {
		t.Run(c.Title, func(t *testing.T) {
			golden.Check(t, "testdata/"+c.Title+".cycle.svg", picture.Cycle(c.Alert))
			golden.Check(t, "testdata/"+c.Title+".timeline.svg", picture.Timeline(c.Alert))
			golden.Check(t, "testdata/"+c.Title+".dot", picture.Dot(c.Alert))
		})
	}
}
