package app

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

// supervisor tells systemd how the monitor is: that it runs, what it waits for, that
// nothing hangs, that it stops. Without NOTIFY_SOCKET in the environment, nobody
// listens.
type supervisor struct {
	say   func(state string)
	every time.Duration // between two signs of life; 0: nobody waits for them
	last  string        // what it said to wait for
}

func newSupervisor() *supervisor {
	s := &supervisor{say: func(state string) {
		_, _ = daemon.SdNotify(false, state) // there is nobody else to tell
	}}
	if d, err := daemon.SdWatchdogEnabled(false); err == nil {
		s.every = d / 2
	}
	return s
}

// statusEvery is how often it is looked whether what is waited for has changed.
const statusEvery = time.Second

// watch says how it goes until ctx ends.
func (s *supervisor) watch(ctx context.Context, a *App) {
	s.say(daemon.SdNotifyReady)
	every := statusEvery
	if s.every > 0 {
		every = min(every, s.every)
	}
	t := time.NewTicker(every)
	defer t.Stop()
	alive := time.Now()
	s.status(&a.ready)
	for {
		select {
		case <-ctx.Done():
			s.say(daemon.SdNotifyStopping)
			return
		case now := <-t.C:
			s.status(&a.ready)
			if s.every > 0 && now.Sub(alive) >= s.every-every && len(a.pulse.stuck(now)) == 0 {
				s.say(daemon.SdNotifyWatchdog)
				alive = now
			}
		}
	}
}

// status says what is waited for, if that is news.
func (s *supervisor) status(r *readiness) {
	text := "watching"
	if reasons := r.reasons(); len(reasons) > 0 {
		text = "waiting for " + strings.Join(reasons, "; ")
	}
	if text = strings.Map(printable, text); text != s.last {
		s.last = text
		s.say("STATUS=" + text)
	}
}

// printable keeps a status on its line.
func printable(r rune) rune {
	if r < ' ' {
		return ' '
	}
	return r
}

// supervise tells systemd of the monitor until ctx ends or the caller is done.
func (a *App) supervise(ctx context.Context) (done func()) {
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	watching.Go(func() { newSupervisor().watch(ctx, a) })
	return func() {
		cancel()
		watching.Wait()
	}
}
