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
	if x.worker != nil && x.worker.progress.Load() != nil {
		a.At = &x.worker.progress.Load().Place
	}
	if err := x.keeper.save(t.Context(), "shop", nil, []store.Alert{{ID: id, Body: a.JSON(), News: 1}}, nil, nil); err != nil {
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

// Nothing but what is judged ends an alert: not a source that fails, not one that is silent,
// not a history that does not get on, and not a monitor that is started anew. What is judged
// of another database is not of this one.
func TestOnlyWhatIsJudgedResolves(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name       string
		begin, end func(x *telling, w *worker)
	}{
		{"nothing comes", func(*telling, *worker) {}, func(*telling, *worker) {}},
		{"the source fails", func(x *telling, _ *worker) { x.ready.wait(whoSource, "broker down") }, func(x *telling, _ *worker) { x.ready.ready(whoSource) }},
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
				out, st := &stamped{}, newMemStore("stdout")
				x := startTelling(t, conf, st, out)
				over := func() (n int) {
					for _, n1 := range out.notices(t, life.KindResolved) {
						if n1.Name == "lost-update" {
							n++
						}
					}
					return n
				}
				x.worker.judge(5000)
				x.found(t, "a")
				time.Sleep(10 * time.Minute)
				c.begin(x, x.worker)
				time.Sleep(time.Hour)
				c.end(x, x.worker)
				x.end()
				x = startTelling(t, conf, st, out)
				defer func() { x.end() }()
				other := &worker{setting: &x.setting, teller: x.teller, db: "stock", queue: newQueue(100, newPool(1))}
				x.teller.watches(other)
				for range 24 {
					time.Sleep(time.Hour)
					other.judge(1_000_000)
				}
				if got := x.teller.Snapshot().Standing("shop", "si", time.Now().UnixNano()); got.Health != life.BrokenEarlier || got.Alerts != 1 || over() != 0 {
					t.Fatalf("%+v, told to be over %d times", got, over())
				}
				x.worker.judge(5999) // a transaction is missing
				time.Sleep(time.Minute)
				if got := x.teller.Snapshot().Standing("shop", "si", time.Now().UnixNano()); got.Health != life.BrokenEarlier || got.Judged.Transactions != 999 || over() != 0 {
					t.Fatalf("%+v, told to be over %d times", got, over())
				}
				x.worker.judge(6000)
				time.Sleep(time.Minute)
				if got := x.teller.Snapshot().Standing("shop", "si", time.Now().UnixNano()); got.Health != life.Holds || got.Alerts != 1 || over() != 1 {
					t.Fatalf("%+v, told to be over %d times", got, over())
				}
			})
		})
	}
}
