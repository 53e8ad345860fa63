// Package wait has goroutines wait, and wakes them.
package wait

import (
	"context"
	"time"
)

// Sleep waits for d, or returns ctx's error.
func Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// Signal leaves a token in c, which has room for one, unless there is one.
func Signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
