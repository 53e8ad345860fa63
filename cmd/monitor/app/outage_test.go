package app

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/alerts/life"
	"github.com/isowatch/isowatch/config"
	"github.com/isowatch/isowatch/window/store"
)

// found stores an alert as a worker does.
func (x *telling) found(t *testing.T, id string) {
	t.Helper()
	a := alerts.Alert{Version: alerts.Version, ID: id, DB: "shop", Level: "si", Name: "lost-update", Severity: "critical", Keys: []string{id}, Count: 1, FirstSeen: time.Now().UnixNano(), LastSeen: time.Now().UnixNano()}
	if err := x.keeper.save(t.Context(), "shop", nil, []store.Alert{{ID: id, Body: a.JSON(), News: 1}}, nil); err != nil {
		t.Fatal(err)
	}
	x.teller.poke()
}

// notices are what was written of a kind.
func (s *stamped) notices(t *testing.T, kind life.Kind) (out []life.Notice) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, line := range s.lines {
		n, err := life.Parse(line)
		if err != nil {
			t.Fatal(err)
		}
		if n.Notification.Kind == kind {
			out = append(out, n)
		}
	}
	return out
}

// While nothing is judged nothing is told to be over: the input can't be read, no record
// comes of which it was said that they do, or a history does not get on. From the first
// record that is judged afterwards on resolve_after counts anew.
func TestOutageResolvesNothing(t *testing.T) {
	for _, c := range []struct {
		name       string
		begin, end func(x *telling, w *worker)
	}{
		{"the source fails", func(x *telling, _ *worker) { x.ready.wait(whoSource, "broker down") }, func(x *telling, _ *worker) { x.ready.ready(whoSource) }},
		{"nothing comes", func(x *telling, _ *worker) { x.arrived.Store(1) }, func(x *telling, _ *worker) { x.arrived.Store(time.Now().Add(24 * time.Hour).UnixNano()) }},
		{"a history is stuck",
			func(_ *telling, w *worker) { w.queue.offer(queued{entry: &entry{number: 1}, records: 1}) },
			func(_ *telling, w *worker) { w.queue.take() }},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conf := config.Default()
				conf.Source.Stdin = &config.Stdin{}
				conf.HTTP.Listen = ""
				conf.Alerts.Stdout = true
				if c.name == "nothing comes" {
					conf.Alerts.SilentAfter = time.Minute
				}
				out := &stamped{}
				x := startTelling(t, conf, newMemStore(stdoutName), out)
				defer x.end()
				x.arrived.Store(time.Now().Add(24 * time.Hour).UnixNano())
				w := x.teller.watched()[0]
				x.found(t, "a")
				time.Sleep(10 * time.Minute)
				c.begin(x, w)
				time.Sleep(time.Hour)
				if n := out.notices(t, life.KindResolved); len(n) > 0 {
					t.Fatalf("%v is told to be over while nobody could look", n[0].Notification.Resolved)
				}
				c.end(x, w)
				time.Sleep(time.Hour)
				w.judged.Store(true) // the first record
				back := time.Now()
				time.Sleep(conf.Alerts.ResolveAfter - time.Minute)
				for _, n := range out.notices(t, life.KindResolved) {
					if n.Name == "lost-update" {
						t.Errorf("it is told to be over %v after the first record", time.Since(back))
					}
				}
				time.Sleep(2 * time.Minute)
				over := 0
				for _, n := range out.notices(t, life.KindResolved) {
					if n.Name == "lost-update" {
						over++
					}
				}
				if over != 1 {
					t.Errorf("it is told %d times to be over", over)
				}
			})
		})
	}
}
