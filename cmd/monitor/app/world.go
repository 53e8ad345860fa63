package app

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/isowatch/isowatch/ingest/codec"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/window/store"
)

// worldName names, among the checkpoints, what happened around the databases.
const worldName = reserved + "world"

// What is kept of events; the oldest are dropped.
const (
	worldEventsMax = 1000
	worldBytesMax  = 256 << 10 // as lines
)

// World are the events that are kept, the earliest first. It does not change.
type World struct {
	Events  []record.Event `json:"events"`
	Dropped int64          `json:"dropped"` // since the store was made
}

// with is w and those of more that it has not yet, which are news. O((n+m) log(n+m)).
func (w World) with(more []record.Event) (_ World, news int) {
	known := make(map[record.Event]bool, len(w.Events))
	for _, e := range w.Events {
		known[e] = true
	}
	events := slices.Clone(w.Events)
	for _, e := range more {
		if !known[e] {
			known[e] = true
			events = append(events, e)
		}
	}
	if news = len(events) - len(w.Events); news == 0 {
		return w, 0
	}
	slices.SortStableFunc(events, func(a, b record.Event) int { return cmp.Compare(a.At, b.At) })
	kept, bytes := len(events), 0
	for kept > 0 && len(events)-kept < worldEventsMax {
		if bytes += len(codec.AppendWorldEvent(nil, &events[kept-1])); bytes > worldBytesMax {
			break
		}
		kept--
	}
	return World{Events: slices.Clone(events[kept:]), Dropped: w.Dropped + int64(kept)}, news
}

// readWorld reads the events of a store.
func readWorld(ctx context.Context, s store.Store) (w World, err error) {
	b, ok, err := s.Checkpoint(ctx, worldName)
	if err != nil || !ok {
		return w, err
	}
	if err := json.Unmarshal(b, &w); err != nil {
		return World{}, fmt.Errorf("the events in the store are damaged: %w", err)
	}
	return w, nil
}

// world is what the keeper has of events.
type world struct {
	known   atomic.Pointer[World]
	unsaved bool // the store does not have all of them; guarded by the keeper's mutex
}

// World are the events that are kept; none before they are read.
func (w *world) World() World {
	if known := w.known.Load(); known != nil {
		return *known
	}
	return World{}
}

// recall reads what the run before has kept. What is damaged is begun anew.
func (k *keeper) recall(ctx context.Context) {
	w, err := readWorld(ctx, k.Store)
	if err != nil {
		k.log.Error().Err(err).Msg("events of earlier runs are forgotten")
	}
	k.known.Store(&w)
}

// hear takes in events, which become durable with what is stored next.
func (k *keeper) hear(events []record.Event) {
	if len(events) == 0 {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	before := k.World()
	after, news := before.with(events)
	if news > 0 {
		k.known.Store(&after)
		k.unsaved = true
		k.metrics.events.Add(float64(news))
		k.metrics.eventsDropped.Add(float64(after.Dropped - before.Dropped))
	}
}

// checkpoint is w as the store keeps it.
func (w World) checkpoint() map[string][]byte {
	b, err := json.Marshal(w)
	if err != nil {
		panic("can't happen, because these are numbers and strings: " + err.Error())
	}
	return map[string][]byte{worldName: b}
}

// news is what the store is to be told of events; k.mu is held.
func (k *keeper) news() map[string][]byte {
	if !k.unsaved {
		return nil
	}
	return k.World().checkpoint()
}

// saveEvents makes those durable that are not; k.mu is held.
func (k *keeper) saveEvents(ctx context.Context) error {
	if !k.unsaved {
		return nil
	}
	err := k.Store.Commit(ctx, store.Commit{Checkpoints: k.news()})
	k.unsaved = err != nil
	return err
}

// add makes an event durable, or holds it as long as the store is full.
func (k *keeper) add(ctx context.Context, e record.Event) error {
	k.hear([]record.Event{e})
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.full != nil {
		return nil
	}
	err := k.saveEvents(ctx)
	if err != nil && k.hold(err) {
		k.show()
		return nil
	}
	return err
}
