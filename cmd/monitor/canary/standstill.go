package canary

import (
	"context"
	"sync"
	"time"

	"github.com/isowatch/isowatch/internal/wait"
)

// standstillMin is how long the process has to have stood still, or how far the machine's clock was set forward, for
// that time not to count: with less a transaction stays shorter than window.max_transaction.
const standstillMin = 5 * time.Second

// standstill is a clock that stands still while the process does, so that no transaction is taken to have lasted so
// long. It is set right when none is in work. Its methods are safe for concurrent use.
type standstill struct {
	atWork sync.RWMutex // held by who has a transaction in work

	mu     sync.Mutex
	beat   time.Time // when it was asked last
	behind time.Duration
	all    time.Duration // that the process has stood still
}

func (s *standstill) now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now().Round(0) // the wall clock's, as others stand still where a machine does
	if gap := now.Sub(s.beat); gap > standstillMin && !s.beat.IsZero() {
		s.behind, s.all = s.behind+gap, s.all+gap
	}
	s.beat = now
	return now.Add(-s.behind)
}

// stood is for how long the process has stood still, in all.
func (s *standstill) stood() time.Duration {
	s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all
}

// watch asks it often enough, and sets it right, until ctx ends.
func (s *standstill) watch(ctx context.Context) {
	for wait.Sleep(ctx, time.Second) == nil {
		s.now()
		s.mu.Lock()
		behind := s.behind > 0
		s.mu.Unlock()
		if !behind {
			continue
		}
		s.atWork.Lock()
		s.mu.Lock()
		s.behind = 0
		s.mu.Unlock()
		s.atWork.Unlock()
	}
}
