package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/alerts/life"
	"github.com/isowatch/isowatch/alerts/page"
	"github.com/isowatch/isowatch/cmd/monitor/app"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/window/store"
)

// local is a store that no monitor uses.
type local struct {
	*app.Stored
	store *store.Badger
}

func newLocal(ctx context.Context, st *store.Badger) (book, error) {
	stored, err := app.ReadStored(ctx, st, time.Now())
	if err != nil {
		return nil, storeFailure(errors.Join(err, st.Close()))
	}
	if stored.Damaged != nil {
		fmt.Fprintf(os.Stderr, "monitor: %v: the alerts are shown as they were found, without what is over or silenced\n",
			stored.Damaged)
	}
	return &local{stored, st}, nil
}

func (l *local) Alerts(ctx context.Context, f page.Filter) (page.List, error) {
	some, err := l.Stored.Alerts(ctx, f)
	return some, localFailure(err)
}

func (l *local) Alert(ctx context.Context, id string) (alerts.Alert, error) {
	a, err := l.Stored.Alert(ctx, id)
	return a, localFailure(err)
}

func (l *local) Silence(ctx context.Context, s life.Silence) (life.Silence, error) {
	made, err := l.Stored.Silence(ctx, s)
	return made, localFailure(err)
}

func (l *local) Expire(ctx context.Context, id string) error {
	return localFailure(l.Stored.Expire(ctx, id))
}

func (l *local) Happen(ctx context.Context, e record.Event) error {
	return localFailure(l.Stored.Happen(ctx, e))
}

func (l *local) Close() error { return l.store.Close() }

// localFailure gives an error its exit status.
func localFailure(err error) error {
	var invalid *page.Invalid
	switch {
	case errors.As(err, &invalid):
		return unusable(err)
	case err == nil, errors.Is(err, page.ErrNotFound):
		return err
	}
	return storeFailure(err)
}
