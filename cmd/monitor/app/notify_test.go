package app

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestSupervisor: systemd hears that the monitor runs, what it waits for, signs of
// life as long as nothing hangs, and that it stops.
func TestSupervisor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &App{}
		a.ready.wait(whoSource, "broker\nb:1")
		var mu sync.Mutex
		var said []string
		say := func(state string) {
			mu.Lock()
			defer mu.Unlock()
			said = append(said, state)
		}
		s := &supervisor{say: say, every: 30 * time.Second}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); s.watch(ctx, a) }()
		expect := func(after time.Duration, want ...string) {
			t.Helper()
			time.Sleep(after)
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if !slices.Equal(said, want) {
				t.Errorf("it said %q, want %q", said, want)
			}
			said = nil
		}
		expect(0, "READY=1", "STATUS=waiting for source: broker b:1")
		a.ready.ready(whoSource)
		expect(2*time.Second, "STATUS=watching")
		expect(60*time.Second, "WATCHDOG=1", "WATCHDOG=1")
		a.pulse.of("x").work(time.Now().Add(-stuckAfter))
		expect(90 * time.Second)
		a.pulse.of("x").rest()
		expect(time.Second, "WATCHDOG=1")
		cancel()
		<-done
		expect(0, "STOPPING=1")
	})
}
