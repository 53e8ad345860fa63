package app

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"golang.org/x/sync/errgroup"

	"github.com/isowatch/isowatch/window/store"
)

// The keys of a history that do not fit in memory are in the store: spilled when a
// segment has ended, and read back when a record names them.
const (
	// spillMax is how many keys are spilled at once.
	spillMax = 4096
	// fetchMin is how many keys are worth another goroutine.
	fetchMin = 128
)

// fetch reads back the keys that the history needs to go on.
func (w *worker) fetch(ctx context.Context) error {
	keys := w.history.Needs()
	if len(keys) == 0 {
		return nil
	}
	values := make([][]byte, len(keys))
	share := max(fetchMin, (len(keys)+runtime.GOMAXPROCS(0)-1)/runtime.GOMAXPROCS(0))
	g, ctx := errgroup.WithContext(ctx)
	for from := 0; from < len(keys); from += share {
		to := min(from+share, len(keys))
		g.Go(func() error {
			got, err := w.keeper.Spilled(ctx, w.db, keys[from:to])
			copy(values[from:to], got)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return fmt.Errorf("store %s: %w", w.cfg.Store.Path, err)
	}
	if err := w.history.Answer(values); err != nil {
		return damaged(err)
	}
	return nil
}

// spill puts into the store what has to leave memory. While the disk is full it
// stays. A stop ends it: no checkpoint is behind what was spilled, and the next run does it again.
func (w *worker) spill(ctx context.Context) error {
	if !w.keeper.spills() {
		if w.history.Frontier().Keys > w.cfg.Window.Keys {
			w.tellStays()
		}
		return nil
	}
	for {
		if w.going.Err() != nil {
			return errHalted
		}
		kvs := w.history.Spill(spillMax)
		if len(kvs) == 0 {
			return nil
		}
		pairs := make([]store.KV, len(kvs))
		for i, kv := range kvs {
			pairs[i] = store.KV(kv)
		}
		err := w.keeper.Spill(ctx, w.db, pairs)
		if errors.Is(err, store.ErrFull) {
			w.tellStays()
			return nil
		}
		if err != nil {
			return fmt.Errorf("store %s: %w", w.cfg.Store.Path, err)
		}
		w.history.Spilled()
	}
}

// tellStays tells once that memory is not bounded by window.keys at present.
func (w *worker) tellStays() {
	if !w.once("keys stay") {
		return
	}
	w.log.Warn().Str("db", w.db).Int("keys", w.cfg.Window.Keys).
		Msg("the disk is full: more than window.keys keys stay in memory until there is room")
}
