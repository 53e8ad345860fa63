package feed

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/source"
)

// sink notes when messages came, since the start.
type sink struct {
	start time.Time
	keys  []string
	at    []time.Duration
	err   error
}

func (s *sink) Send(_ context.Context, ms ...source.Message) error {
	for _, m := range ms {
		s.keys = append(s.keys, string(m.Key))
		s.at = append(s.at, time.Since(s.start))
	}
	return s.err
}

func history(ends ...time.Duration) (out []record.Transaction) {
	for _, end := range ends {
		out = append(out, record.Transaction{DB: "default", Session: "s", ID: "x", HasTimes: true, Start: 0, End: int64(end)})
	}
	return out
}

func TestPaces(t *testing.T) {
	ms := func(ns ...int) []time.Duration {
		var out []time.Duration
		for _, n := range ns {
			out = append(out, time.Duration(n)*time.Millisecond)
		}
		return out
	}
	for _, tc := range []struct {
		name string
		pace Pace
		want []time.Duration
	}{
		{"at once", Pace{}, ms(0, 0, 0, 0)},
		{"at a rate", Pace{PerSecond: 10}, ms(0, 100, 200, 300)},
		// The second and third end within what goes together.
		{"as recorded", Pace{Recorded: true}, ms(0, 1000, 1000, 3000)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, sent := &sink{start: time.Now()}, 0
				err := Replay(t.Context(), s, history(ms(5000, 6000, 6001, 8000)...), Form{}, tc.pace, func(n int) { sent += n })
				if err != nil || sent != 4 {
					t.Fatalf("sent %d, %v", sent, err)
				}
				if diff := cmp.Diff(tc.want, s.at); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestReplayStops(t *testing.T) {
	broken := errors.New("broken")
	t.Run("when sending fails", func(t *testing.T) {
		if err := Replay(t.Context(), &sink{err: broken}, history(1), Form{}, Pace{}, func(int) {}); !errors.Is(err, broken) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("when it is told to", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			err := Replay(ctx, &sink{}, history(0, time.Hour), Form{}, Pace{Recorded: true}, func(int) {})
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v", err)
			}
		})
	})
}
