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
	// apply puts next into effect, whether or not anything has changed: files that it names may hold something else.
	// After an error all is as it was.
	apply func(next *config.Config) error
}

// onReload has apply called when the configuration is read again; these keys are what it applies.
func (a *App) onReload(apply func(next *config.Config) error, keys ...string) {
	a.reloading.Lock()
	defer a.reloading.Unlock()
	a.reloaders = append(a.reloaders, reloader{keys: keys, apply: apply})
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
	var applied []string
	ok, changed, later := true, config.Changed(a.last, next), config.Changed(a.cfg, next)
	for i := range a.reloaders {
		r := &a.reloaders[i]
		mine := slices.DeleteFunc(slices.Clone(changed), func(key string) bool { return !r.covers(key) })
		later = slices.DeleteFunc(later, r.covers)
		if err := r.apply(next); err != nil {
			ok = false
			if len(mine) == 0 {
				mine = r.keys // it is one of them
			}
			a.log.Error().Err(err).Strs("keys", mine).Msg("these settings stay as they were")
			continue
		}
		applied = append(applied, mine...)
	}
	a.last = next
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
