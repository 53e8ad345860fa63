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
	store  *store.Badger
	stored *app.Stored
}

func newLocal(ctx context.Context, st *store.Badger) (book, error) {
	stored, err := app.ReadStored(ctx, st, time.Now())
	if err != nil {
		return nil, storeFailure(errors.Join(err, st.Close()))
	}
	if stored.Damaged != nil {
		fmt.Fprintf(os.Stderr, "monitor: %v: the alerts are shown as they were found, without what is over or silenced\n", stored.Damaged)
	}
	return &local{st, stored}, nil
}

func (l *local) Alerts(ctx context.Context, f page.Filter, each func(page.Summary) error) error {
	var own error
	err := l.stored.Alerts(ctx, f, func(a page.Summary) error {
		own = each(a)
		return own
	})
	if own != nil {
		return own
	}
	return localFailure(err)
}

func (l *local) Alert(ctx context.Context, id string) (alerts.Alert, error) {
	a, err := l.stored.Alert(ctx, id)
	return a, localFailure(err)
}

func (l *local) Promises(ctx context.Context) ([]page.Promise, error) { return l.stored.Promises(ctx) }

func (l *local) Silences(ctx context.Context) ([]page.Silence, error) { return l.stored.Silences(ctx) }

func (l *local) Silence(ctx context.Context, s page.Silence) (page.Silence, error) {
	made, err := l.stored.Silence(ctx, s)
	return made, localFailure(err)
}

func (l *local) Expire(ctx context.Context, id string) error {
	return localFailure(l.stored.Expire(ctx, id))
}

func (l *local) Happen(ctx context.Context, e record.Event) error {
	return localFailure(l.stored.Happen(ctx, e))
}

func (l *local) Close() error { return l.store.Close() }

// localFailure gives an error its exit status.
func localFailure(err error) error {
	for _, is := range []error{life.ErrSilence, life.ErrNoSilence, life.ErrConfigured} {
		if errors.Is(err, is) {
			return unusable(err)
		}
	}
	if err == nil || errors.Is(err, page.ErrNotFound) {
		return err
	}
	return storeFailure(err)
}
