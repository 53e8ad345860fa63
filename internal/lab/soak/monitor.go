//go:build unix

package soak

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/isowatch/isowatch/internal/lab/rig"
)

// supervisor keeps a monitor running, as a service manager does.
type supervisor struct {
	opt rig.MonitorOptions

	mu     sync.Mutex
	now    *rig.Monitor
	killed bool // the current one is

	starts int
	kills  int
	exits  []Exit
	peak   uint64 // resident bytes, of any
	failed error
}

// Exit is an end of the monitor that nobody asked for.
type Exit struct {
	Status int // -1: by a signal
	Said   string
}

// againAfter is how long it takes to start a monitor that has ended by itself.
const againAfter = 200 * time.Millisecond

// stopMax is how long a monitor may take to end gracefully.
const stopMax = 5 * time.Minute

// run starts monitors until stop is closed, then ends the last one gracefully and
// closes stopped.
func (s *supervisor) run(ctx context.Context, stop <-chan struct{}, stopped chan<- struct{}) {
	defer close(stopped)
	for ctx.Err() == nil {
		m, err := rig.StartMonitor(s.opt)
		if err != nil {
			s.failed = err
			return
		}
		s.mu.Lock()
		s.now, s.killed = m, false
		s.starts++
		s.mu.Unlock()
		if !s.watch(ctx, m, stop) {
			return
		}
	}
}

// watch returns true when the monitor has to be started again.
func (s *supervisor) watch(ctx context.Context, m *rig.Monitor, stop <-chan struct{}) bool {
	look := time.NewTicker(500 * time.Millisecond)
	defer look.Stop()
	for {
		select {
		case <-look.C:
			if u, err := rig.UsageOf(m.PID()); err == nil {
				s.mu.Lock()
				s.peak = max(s.peak, u.Peak)
				s.mu.Unlock()
			}
		case <-m.Exited():
			s.mu.Lock()
			killed := s.killed
			if !killed {
				s.exits = append(s.exits, exit(m))
			}
			s.mu.Unlock()
			if !killed {
				time.Sleep(againAfter)
			}
			return true
		case <-stop:
			s.end(ctx, m)
			return false
		case <-ctx.Done():
			m.Kill()
			return false
		}
	}
}

// end ends the last monitor gracefully, which it must be up for: a process that has not come
// to catch signals dies of them.
func (s *supervisor) end(ctx context.Context, m *rig.Monitor) {
	for until := time.Now().Add(readyMax); !m.Ready(ctx) && time.Now().Before(until); {
		if wait(ctx, 20*time.Millisecond) != nil {
			break
		}
		select {
		case <-m.Exited():
			until = time.Time{}
		default:
		}
	}
	status := m.Stop(stopMax)
	s.mu.Lock()
	defer s.mu.Unlock()
	if status != 0 && !s.killed {
		s.exits = append(s.exits, exit(m))
	}
}

// exit tells how a monitor has ended.
func exit(m *rig.Monitor) Exit {
	lines := strings.Split(strings.TrimSpace(m.Said()), "\n")
	return Exit{m.Status(), strings.Join(lines[max(0, len(lines)-3):], " | ")}
}

// kill ends the monitor with SIGKILL.
func (s *supervisor) kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now == nil {
		return
	}
	s.killed = true
	s.kills++
	s.now.Kill()
}

// ready tells whether a monitor runs and is.
func (s *supervisor) ready(ctx context.Context) bool {
	s.mu.Lock()
	m := s.now
	s.mu.Unlock()
	return m != nil && m.Ready(ctx)
}

// pid is the process that runs; 0 if none was started.
func (s *supervisor) pid() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now == nil {
		return 0
	}
	return s.now.PID()
}

// finish runs the monitor on the same store once more, to where the input ends, which
// judges all that was waiting and delivers all that was found.
func (s *supervisor) finish(ctx context.Context, patience time.Duration) error {
	m, err := rig.StartMonitor(s.opt, "--until-end")
	if err != nil {
		return err
	}
	select {
	case <-m.Exited():
	case <-time.After(patience):
		m.Kill()
		return fmt.Errorf("monitor run --until-end did not come to the end within %v: %s", patience, exit(m).Said)
	case <-ctx.Done():
		m.Kill()
		return context.Cause(ctx)
	}
	if status := m.Status(); status != 0 && status != 1 && status != 3 {
		return fmt.Errorf("monitor run --until-end ended with status %d: %s", status, exit(m).Said)
	}
	return nil
}
