package app

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/alerts/life"
	"github.com/isowatch/isowatch/config"
	"github.com/isowatch/isowatch/internal/lab/race"
	"github.com/isowatch/isowatch/window/store"
)

// TestKilledAtEveryWrite: a store dies at the n-th commit, for every n there is, with
// keys in memory and with keys in the store: the next run finds what one that did not
// die finds, under the same ids, and all of it is delivered.
func TestKilledAtEveryWrite(t *testing.T) {
	t.Parallel()
	brokers := cluster(t)
	const anomalies = 3
	topicOf(t, brokers, testTopic, plantedIn(t, 240, anomalies, 60))
	c := testConfig(brokers)
	smallWindows(c)
	c.Window.Segment, c.Window.Overlap = 60, 20
	for _, way := range []struct {
		name string
		keys int
		set  func(*App)
	}{{"keys in memory", c.Window.Keys, fine}, {"keys in the store", 1, spilling}} {
		t.Run(way.name, func(t *testing.T) {
			c := *c
			c.Window.Keys = way.keys
			whole := newMemStore("r")
			if err := start(t, &c, whole, true, way.set).wait(t); err != nil {
				t.Fatal(err)
			}
			want := whole.ids()
			if len(want) != anomalies {
				t.Fatalf("%d alerts without a crash, want %d", len(want), anomalies)
			}
			if spilled := way.keys == 1; spilled != (whole.spills > 0) {
				t.Fatalf("%d keys went to the store", whole.spills)
			}
			died, step := 0, 1
			if race.Brief() {
				step = 3
			}
			for n := 1; ; n += step {
				h := newHook(t)
				c.Alerts.Webhooks = []config.Webhook{h.webhook()}
				st := newMemStore(webhookName(h.webhook()))
				st.die(n)
				err := start(t, &c, st, true, way.set).wait(t)
				if err != nil && !strings.Contains(err.Error(), errDisk.Error()) {
					t.Fatalf("dead at write %d: %v", n, err)
				}
				if err == nil {
					break // it was done before it could die
				}
				died++
				st.die(0)
				if err := start(t, &c, st, true, way.set).wait(t); err != nil {
					t.Fatalf("after its death at write %d: %v", n, err)
				}
				if got := st.ids(); !slices.Equal(got, want) {
					t.Errorf("after its death at write %d: %d alerts, want %d:\n%v\n%v", n, len(got), len(want), got, want)
				}
				h.mu.Lock()
				for _, id := range want {
					if h.seen[id] == 0 {
						t.Errorf("after its death at write %d: alert %s was never delivered", n, id)
					}
				}
				h.mu.Unlock()
			}
			if t.Logf("died at each of %d writes", died); died < 12/step {
				t.Errorf("it died %d times; a run makes more commits than that", died)
			}
		})
	}
}

// stopper is a store during the n-th commit of which the monitor is asked to stop. As the
// real one does, it takes nothing of a context that has ended.
type stopper struct {
	*memStore
	left     atomic.Int64
	at, free chan struct{}
}

func (s *stopper) Commit(ctx context.Context, c store.Commit) error {
	if s.left.Add(-1) == 0 {
		close(s.at)
		<-s.free
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.memStore.Commit(ctx, c)
}

// TestStoppedAtEveryWrite: the monitor is asked to stop during the n-th commit, for every n
// there is: in the end each alert is there, counted as if it had not been, and told of as new
// in one notice; and nothing is told to be over.
func TestStoppedAtEveryWrite(t *testing.T) {
	t.Parallel()
	brokers := cluster(t)
	const anomalies = 3
	topicOf(t, brokers, testTopic, plantedIn(t, 240, anomalies, 60))
	c := testConfig(brokers)
	smallWindows(c)
	c.Window.Segment, c.Window.Overlap = 60, 20
	whole := newMemStore("r")
	if err := start(t, c, whole, true, fine).wait(t); err != nil {
		t.Fatal(err)
	}
	stopped, step := 0, int64(1)
	if race.Brief() {
		step = 3
	}
	for n := int64(1); ; n += step {
		h := newHook(t)
		c.Alerts.Webhooks = []config.Webhook{h.webhook()}
		st := &stopper{memStore: newMemStore(webhookName(h.webhook())), at: make(chan struct{}), free: make(chan struct{})}
		st.left.Store(n)
		r := start(t, c, st, true, fine)
		var err error
		through := false
		select {
		case <-st.at:
			r.cancel()
			close(st.free)
			err = r.wait(t)
		case err = <-r.done:
			through = true
		}
		if err != nil {
			t.Fatalf("stopped at write %d: %v", n, err)
		}
		if through {
			break
		}
		stopped++
		if err := start(t, c, st, true, fine).wait(t); err != nil {
			t.Fatalf("after the stop at write %d: %v", n, err)
		}
		if got, want := st.ids(), whole.ids(); !slices.Equal(got, want) {
			t.Fatalf("after the stop at write %d: %d alerts, want %d", n, len(got), len(want))
		}
		h.mu.Lock()
		of, seen, found := map[string]int{}, map[string]bool{}, 0
		for _, x := range h.told {
			if seen[x.Notification.ID] || x.Notification.Kind == life.KindOperational {
				continue
			}
			seen[x.Notification.ID] = true
			for _, id := range x.Notification.IDs {
				of[id]++
			}
			found += len(x.Notification.IDs)
			if (x.State == alerts.Fresh) != (found == len(x.Notification.IDs)) || x.Notification.Count != int64(found) {
				t.Errorf("after the stop at write %d there is a notice %s, %s of %d", n, x.Notification.Kind, x.State, x.Notification.Count)
			}
		}
		h.mu.Unlock()
		for _, id := range whole.ids() {
			counted(t, st.memStore, whole, id)
			if of[id] != 1 {
				t.Errorf("after the stop at write %d: alert %s is in %d notices", n, id, of[id])
			}
		}
	}
	if t.Logf("stopped at each of %d writes", stopped); stopped < 12/int(step) {
		t.Errorf("it was stopped %d times; a run makes more commits than that", stopped)
	}
}
