package target

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// A Space is another canary's where it changes for long; what one that was just killed still does is over soon.
func TestUnused(t *testing.T) {
	for _, c := range []struct {
		name    string
		changes []time.Duration // since it was looked at first
		refused bool
	}{
		{"nobody", nil, false},
		{"killed", []time.Duration{10 * time.Millisecond, time.Second}, false},
		{"at work", []time.Duration{time.Second, 3 * time.Second}, true},
		{"slow", []time.Duration{time.Second, 11 * time.Second}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				err := unused(t.Context(), func(context.Context) (state int64, _ error) {
					state = 1
					for _, at := range c.changes {
						if time.Since(began) >= at {
							state++
						}
					}
					return state, nil
				})
				if (err != nil) != c.refused {
					t.Errorf("%v, want refused: %v", err, c.refused)
				}
			})
		})
	}
}
