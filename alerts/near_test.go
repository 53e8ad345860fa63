package alerts

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/isowatch/isowatch/ingest/record"
)

// Which events are told with an alert, and how, in the order in which they happened.
func TestNear(t *testing.T) {
	const s = int64(time.Second)
	a := Alert{DB: "shop", Transactions: []string{"a#1", "b#1"}, Evidence: []json.RawMessage{
		[]byte(`{"history":{}}`),
		[]byte(`{"db":"shop","session":"x","id":"x#1","start":1,"end":2,"status":"committed","ops":[]}`), // only for the proof
		[]byte(`{"db":"shop","session":"a","id":"a#1","start":100000000000,"end":101000000000,"status":"committed","ops":[]}`),
		[]byte(`{"db":"shop","session":"b","id":"b#1","start":100500000000,"end":102000000000,"status":"committed","ops":[]}`),
	}}
	events := []record.Event{
		{At: 100*s - 22_000_000, Node: "pg-2", Kind: "failover", Text: "became primary"},
		{At: 100*s + 1_234_567, Text: "in the midst"},
		{At: 102*s + s/2, DB: "shop", Text: "after"},
		{At: 99 * s, DB: "other", Text: "of another"},
		{At: 70*s - 1, Text: "too early"}, {At: 132*s + 1, Text: "too late"}, {At: 70 * s, Text: "just"},
		{At: math.MaxInt64, Text: "never"}, {At: 0, Text: "once"},
	}
	var got []string
	near := a.Near(events)
	for _, e := range near.Events {
		got = append(got, e.Told)
	}
	if want := []string{"began 30s after: just", "began 22ms after: node pg-2 became primary", "was going on for 1.23ms when: in the midst", "ended 500ms before: after"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if want := "It began 22ms after: node pg-2 became primary."; near.Circumstance() != want {
		t.Errorf("got %q, want %q", near.Circumstance(), want)
	}
	if len(near.Near(nil).Events) > 0 {
		t.Error("events stay that are none")
	}
	for i := range int64(20) {
		events = append(events, record.Event{At: 100*s + i, Text: strings.Repeat("x", int(i)+1)})
	}
	if n := len(a.Near(events).Events); n != nearMost {
		t.Errorf("%d events, want %d", n, nearMost)
	}
	a.Evidence = nil
	if len(a.Near(events).Events) > 0 {
		t.Error("nothing is near what has no times")
	}
	a.At = &Place{Time: 100 * s} // which evidence that needs no times leaves
	if got := a.Near(events[:1]).Events; len(got) != 1 || got[0].Told != "ended 22ms after: node pg-2 became primary" {
		t.Errorf("by its end: %+v", got)
	}
}
