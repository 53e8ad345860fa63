package picture_test

import (
	"strings"
	"testing"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/alerts/picture"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/made"
)

// What happened near the transactions is in the timeline, whether they have times or not, as text that is safe to show.
func TestEventsInTime(t *testing.T) {
	for _, c := range made.Cases(t) {
		a := c.Alert
		a.Events = []alerts.Nearby{{Event: record.Event{At: 1, Node: "pg-2", Text: "became <primary>"}, Told: "began 22ms after: node pg-2 became <primary>"}}
		if got := string(picture.Timeline(a)); !strings.Contains(got, "pg-2 became &lt;primary&gt;") {
			t.Errorf("%s: the event is not drawn", c.Title)
		}
	}
}
