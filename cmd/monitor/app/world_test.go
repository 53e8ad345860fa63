package app

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"

	"github.com/isowatch/isowatch/config"
	"github.com/isowatch/isowatch/ingest/record"
)

// Events are bounded in number and bytes, the oldest go and are counted, and the same one again is the same.
func TestWorldIsBounded(t *testing.T) {
	event := func(i, size int) record.Event {
		return record.Event{At: int64(i), Text: fmt.Sprint(i) + strings.Repeat("x", size)}
	}
	var w World
	for i := range worldEventsMax + 10 {
		var news int
		if w, news = w.with([]record.Event{event(i, 0), event(i, 0)}); news != 1 {
			t.Fatalf("event %d: %d news", i, news)
		}
	}
	if len(w.Events) != worldEventsMax || w.Dropped != 10 || w.Events[0].At != 10 {
		t.Errorf("%d events from %d on, %d dropped", len(w.Events), w.Events[0].At, w.Dropped)
	}
	if again, news := w.with(w.Events); news != 0 || !cmp.Equal(again, w) {
		t.Errorf("the same again are %d news", news)
	}
	if old, _ := w.with([]record.Event{event(1, 1)}); old.Dropped != 11 || old.Events[0].At != 10 {
		t.Errorf("one that is older than all: %d dropped, the first at %d", old.Dropped, old.Events[0].At)
	}
	for i := range 1000 {
		w, _ = w.with([]record.Event{event(2000+i, 1000)})
	}
	if n := len(w.checkpoint()[worldName]); n > worldBytesMax+64 || n < worldBytesMax*9/10 {
		t.Errorf("%d bytes, want almost %d", n, worldBytesMax)
	}
	if total := len(w.Events) + int(w.Dropped); total != worldEventsMax+10+1000 {
		t.Errorf("%d are kept and %d dropped, which is not all of them", len(w.Events), w.Dropped)
	}
}

// What a full store does not take is held, and written when there is room, in front of the offsets; a restart has
// it, also behind another input.
func TestWorldSurvives(t *testing.T) {
	st := newMemStore()
	k := testKeeper(t, st, heldBytesMax, "a")
	first, second := record.Event{At: 1, Text: "first"}, record.Event{At: 2, Text: "second"}
	k.hear([]record.Event{first})
	if err := k.append(t.Context(), testEntries(2, 2), nil, nil); err != nil {
		t.Fatal(err)
	}
	st.setFull(true)
	if err := k.add(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	if got := k.World().Events; !cmp.Equal(got, []record.Event{first, second}) {
		t.Errorf("held: %+v", got)
	}
	if w, err := readWorld(t.Context(), st); err != nil || !cmp.Equal(w.Events, []record.Event{first}) {
		t.Errorf("stored: %+v, %v", w, err)
	}
	st.setFull(false)
	if err := k.retry(t.Context(), k.retryAt); err != nil {
		t.Fatal(err)
	}
	next := newKeeper(&setting{cfg: config.Default(), origin: "file other", log: zerolog.Nop(), metrics: newMetrics()}, st)
	next.take([]string{worldName, "a"})
	if err := next.append(t.Context(), testEntries(3, 3), nil, nil); err != nil {
		t.Fatal(err)
	}
	if next.recall(t.Context()); !cmp.Equal(next.World().Events, []record.Event{first, second}) {
		t.Errorf("after a restart: %+v", next.World())
	}
}
