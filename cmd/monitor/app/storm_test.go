package app

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/alerts/life"
	"github.com/isowatch/isowatch/config"
	"github.com/isowatch/isowatch/internal/lab/race"
	"github.com/isowatch/isowatch/window/store"
)

// stamped notes when each line came, by a clock that stands still while anything is done.
type stamped struct {
	mu    sync.Mutex
	lines [][]byte
	times []time.Time
}

func (s *stamped) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, bytes.Clone(p))
	s.times = append(s.times, time.Now())
	return len(p), nil
}

// telling is what of a monitor decides and delivers, on a store.
type telling struct {
	*App
	keeper *keeper
	worker *worker
	end    func()
}

// judge says that so many transactions of a history are judged, up to now.
func (w *worker) judge(transactions int64) {
	now := time.Now().UnixNano()
	w.progress.Store(&life.Progress{DB: w.db, Place: alerts.Place{History: 1, Transactions: transactions, Time: now}, LastRecord: now, Levels: []life.Asked{{Level: "si", Complete: life.Complete}}})
	w.teller.poke()
}

func startTelling(t *testing.T, c *config.Config, st store.Store, out *stamped) *telling {
	t.Helper()
	a, err := New(Options{Config: c, Log: zerolog.Nop(), Store: st, Stdout: out})
	if err != nil {
		t.Fatal(err)
	}
	receivers, err := Receivers(c, out)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	x := &telling{App: a, keeper: newKeeper(&a.setting, a.store)}
	if err := a.begin(ctx, x.keeper, receivers); err != nil {
		t.Fatal(err)
	}
	w := &worker{setting: &a.setting, teller: a.teller, db: "shop", queue: newQueue(100, newPool(1))}
	x.worker = w
	a.teller.watches(w)
	var wg sync.WaitGroup
	wg.Go(func() { a.teller.run(ctx) })
	wg.Go(func() { a.dispatcher.Run(ctx) })
	x.end = func() { cancel(); wg.Wait() }
	return x
}

// TestStorm: of 10,000 alerts in a minute people hear five times a minute at most, also
// where the monitor is killed again and again in between: each alert is in the store and
// in a notice, one that comes again has the id that it had, what waits in memory is
// bounded, and in the end everything is said to be over.
func TestStorm(t *testing.T) {
	t.Parallel()
	const storm, groups = 10_000, 3000
	for _, kills := range []int{0, 7} {
		if kills == 0 && race.Brief() {
			continue // with kills there is all that without has
		}
		t.Run(fmt.Sprint(kills, " kills"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := config.Default()
				c.Source.Stdin = &config.Stdin{}
				c.HTTP.Listen = ""
				c.Alerts.Stdout = true
				st, out := newMemStore("stdout"), &stamped{}
				x := startTelling(t, c, st, out)
				const chunk = 50
				judged := int64(1)
				x.worker.judge(judged)
				most, killed := 0, 0
				for i := 0; i < storm; i += chunk {
					var found []store.Alert
					for j := i; j < i+chunk; j++ {
						id := fmt.Sprintf("%032x", j)
						a := alerts.Alert{Version: alerts.Version, ID: id, DB: "shop", Level: "si", Name: "lost-update", Severity: "critical", Keys: []string{fmt.Sprint(j % groups)}, Count: 1, LastSeen: time.Now().UnixNano(), At: &alerts.Place{History: 1, Transactions: judged, Time: time.Now().UnixNano()}}
						a.Name = fmt.Sprint("anomaly-", j%groups) // as if there were so many kinds
						found = append(found, store.Alert{ID: id, Body: a.JSON(), News: 1})
					}
					if err := x.keeper.save(t.Context(), "shop", nil, found, nil, nil); err != nil {
						t.Fatal(err)
					}
					x.teller.poke()
					time.Sleep(time.Minute * chunk / storm)
					most = max(most, x.teller.Snapshot().Withheld)
					if killed < kills && i >= (killed+1)*storm/(kills+1) {
						// Within a commit or soon after, and it begins again at once.
						killed++
						st.die(1 + killed%3)
						x.teller.poke()
						time.Sleep(time.Duration(killed) * 30 * time.Millisecond)
						x.end()
						st.die(0)
						x = startTelling(t, c, st, out)
					}
				}
				for range 40 * 4 {
					time.Sleep(15 * time.Second)
					judged += 100
					x.worker.judge(judged)
					most = max(most, x.teller.Snapshot().Withheld)
				}
				for _, g := range x.teller.Snapshot().Groups {
					if g.ResolvedAt == 0 {
						t.Errorf("%s %v is not over", g.Name, g.Keys)
					}
				}
				x.end()
				if n := len(st.ids()); n != storm {
					t.Errorf("%d alerts are stored, want %d", n, storm)
				}
				if most == 0 || most > life.WithheldMaxDefault {
					t.Errorf("%d alerts waited in memory", most)
				}
				notices, told, resolved := map[string]time.Time{}, map[string]int{}, 0
				var first []time.Time
				for i, line := range out.lines {
					n, err := life.Parse(line)
					if err != nil {
						t.Fatal(err)
					}
					if _, again := notices[n.Notification.ID]; again {
						continue
					}
					notices[n.Notification.ID] = out.times[i]
					first = append(first, out.times[i])
					for _, id := range n.Notification.IDs {
						told[id]++
					}
					resolved += len(n.Notification.Resolved)
				}
				for i := range first {
					if j := i + 5; j < len(first) && first[j].Sub(first[i]) < time.Minute {
						t.Errorf("notices %d to %d came within %v", i, j, first[j].Sub(first[i]))
					}
				}
				for _, id := range st.ids() {
					if told[id] != 1 {
						t.Fatalf("alert %s is in %d notices", id, told[id])
					}
				}
				if again := len(out.lines) - len(first); again > kills {
					t.Errorf("%d kills, and %d notices came again", kills, again)
				}
				if len(first) < 6 || resolved == 0 {
					t.Errorf("%d notices, %d groups over", len(first), resolved)
				}
				t.Logf("%d notices, at most %d alerts waited in memory, %d notices came again", len(first), most, len(out.lines)-len(first))
			})
		})
	}
}
