package app

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/alerts/life"
	"github.com/isowatch/isowatch/alerts/page"
	"github.com/isowatch/isowatch/cmd/monitor/judge"
	"github.com/isowatch/isowatch/config"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/window/store"
)

// Stored are the alerts of a store that no monitor uses, as the page of its monitor would show them.
type Stored struct {
	*status
	store *store.Badger
	now   time.Time
	// Damaged is why it is not known what was told of alerts, and which silences there
	// are; nil: it is. The alerts are there all the same, as they were found.
	Damaged error
}

// ReadStored reads what decides on notices. After an error the store stays the caller's.
func ReadStored(ctx context.Context, st *store.Badger, now time.Time) (*Stored, error) {
	all := &setting{cfg: config.Default(), log: zerolog.Nop(), metrics: newMetrics()}
	s := &Stored{status: newStatus(all), store: st, now: now}
	l := life.New(life.Config{})
	state, ok, err := st.Life(ctx)
	if err != nil {
		return nil, err
	}
	if ok {
		if old, err := life.Restore(state, life.Config{}); err == nil {
			l = old
		} else {
			s.Damaged = err
		}
	}
	k := newKeeper(all, st)
	k.recall(ctx)
	s.begin(k, storedLife{s, l})
	return s, nil
}

// readAlert is a stored alert as it is now, explained if it waited for somebody to look. What is not proved then says
// so itself.
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

// Close closes the store.
func (s *Stored) Close() error { return s.store.Close() }

// Happen keeps an event.
func (s *Stored) Happen(ctx context.Context, e record.Event) error {
	w, _ := s.keeper.World().with([]record.Event{e})
	return s.store.Commit(ctx, store.Commit{Checkpoints: w.checkpoint()})
}

// Promises are those of every database, as they stood when the monitor stopped.
func (s *Stored) Promises(context.Context) ([]page.Promise, error) {
	var out []page.Promise
	_, groups, _ := s.parts()
	for _, db := range groups.Databases() {
		p, _ := groups.Progress(db)
		for _, l := range p.Levels {
			out = append(out, page.Promise{DB: db, LevelStatus: levelStatus(groups, db, l.Level, false, s.now.UnixNano())})
		}
	}
	return out, nil
}

// storedLife is the life of stored alerts; what is changed is for the next run.
type storedLife struct {
	of   *Stored
	life *life.Life
}

// Snapshot implements lifeView. Silences are those that were made while a monitor ran and still hold; those of the
// configuration are not in the store.
func (l storedLife) Snapshot() *life.Snapshot {
	s := *l.life.Snapshot()
	s.Silences = slices.DeleteFunc(slices.Clone(s.Silences),
		func(x life.Silence) bool { return x.Until != 0 && x.Until <= l.of.now.UnixNano() })
	return &s
}

// Silence implements lifeView.
func (l storedLife) Silence(ctx context.Context, x life.Silence) (life.Silence, error) {
	made, err := l.life.Silence(x, l.of.now.UnixNano())
	if err != nil {
		return x, err
	}
	return made, l.commit(ctx)
}

// Expire implements lifeView.
func (l storedLife) Expire(ctx context.Context, id string) error {
	if err := l.life.Expire(id, l.of.now.UnixNano()); err != nil {
		return err
	}
	return l.commit(ctx)
}

func (l storedLife) commit(ctx context.Context) error {
	if l.of.Damaged != nil {
		return l.of.Damaged // for the monitor to say
	}
	return l.of.store.Commit(ctx, store.Commit{Life: l.life.Append(nil)})
}
