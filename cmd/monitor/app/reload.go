package app

import (
	"errors"
	"slices"
	"strings"

	"github.com/isowatch/isowatch/config"
)

// reloader changes what it is for while the monitor runs.
type reloader struct {
	// keys are those that it applies, with all below them.
	keys []string
	// apply puts next into effect. After an error all is as it was.
	apply func(next *config.Config) error
	// stale tells whether files that the configuration names, and does not read itself,
	// hold something else; nil: there are none.
	stale func() bool
}

// onReload has apply called when any of these keys has changed and the configuration is
// read again.
func (a *App) onReload(apply func(next *config.Config) error, keys ...string) {
	a.reloads(reloader{keys: keys, apply: apply})
}

func (a *App) reloads(r reloader) {
	a.reloading.Lock()
	defer a.reloading.Unlock()
	a.reloaders = append(a.reloaders, r)
}

// covers tells whether a reloader applies a key.
func (r *reloader) covers(key string) bool {
	return slices.ContainsFunc(r.keys, func(k string) bool { return key == k || strings.HasPrefix(key, k+".") })
}

// Reload puts into effect what of a configuration can change while the monitor runs,
// and logs what can't: that stays as it was until a restart. Certificates are read again
// in any case. It is for one goroutine at a time, beside Run.
func (a *App) Reload(next *config.Config) error {
	if err := next.Validate(); err != nil {
		a.NotReloaded(err)
		return err
	}
	a.reloading.Lock()
	defer a.reloading.Unlock()
	if err := a.recertify(); err != nil {
		a.NotReloaded(err)
		return err
	}
	var applied, later, failed []string
	ok := true
	changed := config.Changed(a.running, next)
	for i := range a.reloaders {
		r := &a.reloaders[i]
		var mine []string
		for _, key := range changed {
			if r.covers(key) {
				mine = append(mine, key)
			}
		}
		if len(mine) == 0 && (r.stale == nil || !r.stale()) {
			continue
		}
		if err := r.apply(next); err != nil {
			ok = false
			if len(mine) == 0 {
				mine = r.keys // it is one of them
			}
			a.log.Error().Err(err).Strs("keys", mine).Msg("these settings stay as they were")
			failed = append(failed, mine...)
			continue
		}
		for _, key := range mine {
			if !slices.Contains(applied, key) {
				applied = append(applied, key)
			}
		}
	}
	for _, key := range changed {
		if !slices.Contains(applied, key) && !slices.Contains(failed, key) {
			later = append(later, key)
		}
	}
	a.running = config.With(a.running, next, applied)
	if len(later) > 0 {
		a.log.Warn().Strs("keys", later).Msg("these settings take effect at the next start only")
	}
	a.showReload(ok)
	a.log.Info().Strs("changed", applied).Msg("the configuration was read again")
	return nil
}

// NotReloaded tells that the configuration could not be read again.
func (a *App) NotReloaded(err error) {
	a.showReload(false)
	a.log.Error().Err(err).Msg("the configuration can't be read again; all stays as it was")
}

func (a *App) showReload(ok bool) {
	if !ok {
		a.metrics.reloaded.Set(0)
		return
	}
	a.metrics.reloaded.Set(1)
	a.metrics.reloadedAt.SetToCurrentTime()
}

// recertify reads the certificates again.
func (a *App) recertify() error {
	if a.certs == nil {
		return nil
	}
	changed, err := a.certs.load()
	if changed {
		a.recertified(a.certs, nil)
	}
	return err
}

var errTokenGone = errors.New("http.token_file can't be left out while the monitor runs: restart it without")

// reloadOwn registers what belongs to no other part.
func (a *App) reloadOwn(level *LogLevel) {
	if level != nil {
		a.onReload(func(next *config.Config) error { return level.Set(next.Log.Level) }, "log.level")
	}
	if a.server == nil {
		return
	}
	a.certs = a.server.certs
	if guard := a.server.guard; a.cfg.HTTP.TokenFile != "" {
		a.onReload(func(next *config.Config) error {
			if next.HTTP.TokenFile == "" {
				return errTokenGone
			}
			guard.setToken(string(next.HTTP.Token))
			return nil
		}, "http.token_file")
	}
}
