package app

import (
	"context"
	"errors"
	"time"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/alerts/life"
	"github.com/isowatch/isowatch/alerts/page"
	"github.com/isowatch/isowatch/cmd/monitor/judge"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/window/store"
)

// Stored are the alerts of a store that no monitor uses, as the page would show them.
type Stored struct {
	store *store.Badger
	life  *life.Life
	now   time.Time
	// Damaged is why it is not known what was told of alerts, and which silences there
	// are, be it that another version wrote it; nil: it is. The alerts are there all the same, as they were found.
	Damaged error
}

// ReadStored reads what decides on notices. The store stays the caller's.
func ReadStored(ctx context.Context, st *store.Badger, now time.Time) (*Stored, error) {
	s := &Stored{store: st, life: life.New(life.Config{}), now: now}
	state, ok, err := st.Life(ctx)
	if err != nil || !ok {
		return s, err
	}
	l, err := restoreLife(state, life.Config{})
	if err != nil {
		s.Damaged = err
		return s, nil //nolint:nilerr // the alerts can be read all the same
	}
	s.life = l
	return s, nil
}

// Alerts calls each for the alerts that a filter lets through, the latest first, until
// it returns an error. One alert is in memory at a time. Limit and After mean nothing here.
func (s *Stored) Alerts(ctx context.Context, f page.Filter, each func(page.Summary) error) error {
	groups := s.life.Snapshot()
	var failed error
	err := s.store.AlertsBefore(ctx, 0, func(number uint64, stored store.Alert) bool {
		var a alerts.Alert
		if a, failed = alerts.Parse(stored.Body); failed != nil {
			return false
		}
		if a = groups.Overlay(a); matches(f, &a) {
			failed = each(summary(a, number))
		}
		return failed == nil
	})
	return errors.Join(err, failed)
}

// Alert finds an alert by its ID; page.ErrNotFound if there is none.
func (s *Stored) Alert(ctx context.Context, id string) (alerts.Alert, error) {
	stored, ok, err := s.store.Alert(ctx, id)
	if err != nil {
		return alerts.Alert{}, err
	}
	if !ok {
		return alerts.Alert{}, page.ErrNotFound
	}
	a, err := readAlert(ctx, stored.Body, s.life.Snapshot())
	if err != nil {
		return a, err
	}
	w, err := ReadWorld(ctx, s.store)
	return a.Near(w.Events), err
}

// readAlert is a stored alert as it is now, explained if it waited for somebody to look. What is not proved then says so
// itself.
func readAlert(ctx context.Context, body []byte, groups *life.Snapshot) (alerts.Alert, error) {
	a, err := alerts.Parse(body)
	if err != nil {
		return a, err
	}
	proving := judge.NewProver(func() verdict.Reason {
		if ctx.Err() != nil {
			return verdict.Timeout
		}
		return verdict.NoReason
	}, 0)
	a, err = groups.Overlay(a).Explained(proving.Judge, proving.Find, proving, alertMax)
	if ctx.Err() != nil {
		return a, ctx.Err()
	}
	if errors.Is(err, alerts.ErrUnproved) {
		err = nil
	}
	return a, err
}

// Happen keeps an event.
func (s *Stored) Happen(ctx context.Context, e record.Event) error {
	w, err := ReadWorld(ctx, s.store)
	if err != nil {
		return err
	}
	w, _ = w.with([]record.Event{e})
	return s.store.Commit(ctx, store.Commit{Checkpoints: w.checkpoint()})
}

// Promises are those of every database, as they stood when the monitor stopped.
func (s *Stored) Promises(context.Context) ([]page.Promise, error) {
	var out []page.Promise
	groups := s.life.Snapshot()
	for _, db := range groups.Databases() {
		p, _ := groups.Progress(db)
		for _, l := range p.Levels {
			out = append(out, page.Promise{DB: db, LevelStatus: levelStatus(groups, db, l.Level, false, s.now.UnixNano())})
		}
	}
	return out, nil
}

// Silences are those that were made while a monitor ran; those of the configuration
// are not in the store.
func (s *Stored) Silences(context.Context) ([]page.Silence, error) {
	out := []page.Silence{}
	for _, x := range s.life.Snapshot().Silences {
		if x.Until == 0 || x.Until > s.now.UnixNano() {
			out = append(out, shownSilence(x))
		}
	}
	return out, nil
}

// Silence adds one, for the next run.
func (s *Stored) Silence(ctx context.Context, x page.Silence) (page.Silence, error) {
	made, err := s.life.Silence(life.Silence{DB: x.DB, Level: x.Level, Name: x.Name, Key: x.Key, Until: x.Until, Comment: x.Comment, By: x.By}, s.now.UnixNano())
	if err != nil {
		return x, err
	}
	return shownSilence(made), s.commit(ctx)
}

// Expire ends one.
func (s *Stored) Expire(ctx context.Context, id string) error {
	if err := s.life.Expire(id, s.now.UnixNano()); err != nil {
		return err
	}
	return s.commit(ctx)
}

func (s *Stored) commit(ctx context.Context) error {
	if s.Damaged != nil {
		return s.Damaged // for the monitor to say
	}
	return s.store.Commit(ctx, store.Commit{Life: s.life.Append(nil)})
}
