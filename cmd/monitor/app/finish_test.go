package app

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/alerts/life"
	"github.com/isowatch/isowatch/alerts/name"
	"github.com/isowatch/isowatch/config"
	"github.com/isowatch/isowatch/window/store"
)

// mischief is a store on which something happens at the n-th access that has to do with
// what is told, reading or writing. As the real one does, it takes nothing of a context
// that has ended.
type mischief struct {
	*memStore
	n     atomic.Int64
	left  atomic.Int64 // which one it is
	begin func()       // before the n-th access
	fail  int          // so many accesses fail, from the n-th on
	after bool         // a commit that fails has been made
	late  atomic.Int64 // accesses with a context that had ended
}

// access is called at the beginning of each. The error is to be given.
func (m *mischief) access(ctx context.Context) error {
	at := int(m.n.Add(1) - m.left.Load())
	if at == 0 && m.begin != nil {
		m.begin()
	}
	if at >= 0 && at < m.fail {
		return errDisk
	}
	if ctx.Err() != nil {
		m.late.Add(1)
	}
	return ctx.Err()
}

func (m *mischief) Commit(ctx context.Context, c store.Commit) error {
	if c.Life == nil {
		return m.memStore.Commit(ctx, c)
	}
	err := m.access(ctx)
	if err == nil || m.after && ctx.Err() == nil {
		if err := m.memStore.Commit(ctx, c); err != nil {
			return err
		}
	}
	return err
}

func (m *mischief) Life(ctx context.Context) ([]byte, bool, error) {
	if err := m.access(ctx); err != nil {
		return nil, false, err
	}
	return m.memStore.Life(ctx)
}

func (m *mischief) Pending(ctx context.Context, f func(store.Alert) bool) error {
	if err := m.access(ctx); err != nil {
		return err
	}
	return m.memStore.Pending(ctx, f)
}

func (m *mischief) Alert(ctx context.Context, id string) (store.Alert, bool, error) {
	if err := m.access(ctx); err != nil {
		return store.Alert{}, false, err
	}
	return m.memStore.Alert(ctx, id)
}

// TestEndWhileTelling: the input ends, or the monitor is asked to stop, while any access to
// the store goes on that what is told needs; or the access fails, once or more often, whether
// what it wrote is there or not; or both. Each alert is told of as new, in one notice, and
// each event is, counted right; nothing is told to be over; and if the monitor gave up, the
// next run does what is left.
func TestEndWhileTelling(t *testing.T) {
	t.Parallel()
	for _, way := range []struct {
		name  string
		ends  bool // at the access
		fail  int
		after bool
	}{
		{"it ends", true, 0, false},
		{"it ends, and the access fails", true, 1, false},
		{"it ends, and two fail", true, 2, false},
		{"it ends, and the access fails after all was done", true, 1, true},
		{"it fails", false, 1, false},
		{"two fail", false, 2, false},
		{"three fail", false, 3, false},
		{"it fails after all was done", false, 1, true},
	} {
		for _, rest := range []time.Duration{0, 3 * tellAgain} {
			t.Run(fmt.Sprintf("%s, %v later the input does", way.name, rest), func(t *testing.T) {
				for n := 2; ; n++ { // the first is the beginning's
					m := &mischief{memStore: newMemStore("stdout"), fail: way.fail, after: way.after}
					m.left.Store(int64(n))
					synctest.Test(t, func(t *testing.T) { endWhileTelling(t, m, way.ends, rest) })
					if t.Failed() {
						t.Fatalf("at access %d", n)
					}
					if int(m.n.Load()) < n {
						if t.Logf("%d accesses", m.n.Load()); n < 8 {
							t.Error("that is too few")
						}
						break
					}
				}
			})
		}
	}
}

// endWhileTelling has three alerts found and an event happen, ends at the access that m
// has in mind, or when there has been time to rest, and looks at what was told.
func endWhileTelling(t *testing.T, m *mischief, ends bool, rest time.Duration) {
	c := config.Default()
	c.Source.Stdin = &config.Stdin{}
	c.HTTP.Listen = ""
	c.Alerts.Stdout = true
	out := &stamped{}
	x := startRun(t, c, m, out, func(stop func()) {
		if ends {
			m.begin = stop
		}
	})
	ids := []string{"a", "b", "c"}
	for i, id := range ids {
		x.found(t, id)
		if i == 1 {
			x.teller.event(life.Condition{Kind: troubleLetters, Of: "bad", Severity: name.Warning, Text: "bad", Count: 2})
		}
		time.Sleep(2 * roundEvery)
	}
	time.Sleep(rest)
	err := x.finish(t)
	if err != nil {
		// What was found is in the store. Events are of the run.
		if m.fail == 0 {
			t.Errorf("it ends with %v", err)
		}
		m.fail = 0
		if err := startRun(t, c, m, out).finish(t); err != nil {
			t.Error(err)
		}
	}
	if n := m.late.Load(); n > 0 {
		t.Errorf("%d accesses are cut short", n)
	}
	toldOnce(t, out, ids, err == nil)
}

// TestSilenceIsStoredOrRefused: of a silence that is asked for while the monitor is asked to
// stop, or the store fails, or both, the next run knows exactly if it was not refused.
func TestSilenceIsStoredOrRefused(t *testing.T) {
	for _, stops := range []bool{false, true} {
		for _, fails := range []int{0, 1} {
			refused, made := 0, 0
			for n := range int64(8) {
				m := &mischief{memStore: newMemStore("stdout"), fail: fails}
				m.left.Store(1 << 30)
				synctest.Test(t, func(t *testing.T) {
					c := config.Default()
					c.Source.Stdin = &config.Stdin{}
					c.HTTP.Listen = ""
					c.Alerts.Stdout = true
					x := startRun(t, c, m, &stamped{}, func(stop func()) {
						if stops {
							m.begin = stop
						}
					})
					x.found(t, "a")
					time.Sleep(10 * roundEvery)
					synctest.Wait()
					m.left.Store(m.n.Load() + 1 + n)
					s, err := x.teller.Silence(t.Context(), life.Silence{Name: "lost-update", Until: time.Now().Add(time.Hour).UnixNano()})
					x.found(t, "b")
					time.Sleep(2 * roundEvery)
					_ = x.finish(t) // it may fail, as the store does
					m.fail = 0
					next := startRun(t, c, m, &stamped{})
					has := slices.ContainsFunc(next.teller.Snapshot().Silences, func(o life.Silence) bool { return o.ID == s.ID })
					if has != (err == nil) {
						t.Errorf("at access %d it is there: %v; the answer was: %v", n, has, err)
					}
					if n := m.late.Load(); n > 0 {
						t.Errorf("%d accesses are cut short", n)
					}
					if err != nil {
						refused++
					} else {
						made++
					}
					if err := next.finish(t); err != nil {
						t.Error(err)
					}
				})
			}
			if made == 0 || refused == 0 && fails > 0 {
				t.Errorf("stop %v, failures %d: made %d times, refused %d", stops, fails, made, refused)
			}
		}
	}
}

// toldRun is a telling that ends as Run does.
type toldRun struct {
	*telling
	stop context.CancelFunc
	wait func()
}

func startRun(t *testing.T, c *config.Config, st store.Store, out *stamped, before ...func(stop func())) *toldRun {
	t.Helper()
	a, err := New(Options{Config: c, Log: zerolog.Nop(), Store: st, Stdout: out})
	if err != nil {
		t.Fatal(err)
	}
	receivers, err := Receivers(c, out)
	if err != nil {
		t.Fatal(err)
	}
	x := &toldRun{telling: &telling{App: a, keeper: newKeeper(&a.setting, a.store)}}
	var ctx context.Context
	ctx, x.stop = context.WithCancel(context.Background())
	if err := a.begin(ctx, x.keeper, receivers); err != nil {
		t.Fatal(err)
	}
	delivery, end := context.WithCancel(context.Background())
	for _, f := range before {
		f(x.stop)
	}
	var wg sync.WaitGroup
	wg.Go(func() { a.teller.run(ctx) })
	wg.Go(func() { a.dispatcher.Run(delivery) })
	x.wait = func() { end(); wg.Wait() }
	return x
}

// finish is what Run does at the end.
func (x *toldRun) finish(t *testing.T) error {
	t.Helper()
	defer x.wait()
	err := x.teller.finish(context.Background(), x.stop)
	if flushed := x.dispatcher.Flush(context.Background()); flushed != nil {
		t.Error(flushed)
	}
	return err
}

// toldOnce looks at what a receiver got: each alert is in one notice, which says that it is
// new; if events are asked for, the one there was is told of.
func toldOnce(t *testing.T, out *stamped, ids []string, events bool) {
	t.Helper()
	seen := map[string]bool{}
	of := map[string]int{}
	var says []string
	bad, found := int64(0), 0
	for _, line := range out.lines {
		n, err := life.Parse(line)
		if err != nil {
			t.Fatal(err)
		}
		says = append(says, fmt.Sprintf("%s %s %v over %v, count %d", n.Notification.Kind, n.State, n.Notification.IDs, n.Notification.Resolved, n.Notification.Count))
		if seen[n.Notification.ID] {
			continue // at least once
		}
		seen[n.Notification.ID] = true
		for _, id := range n.Notification.IDs {
			of[id]++
		}
		if n.Notification.Kind == life.KindOperational {
			bad = n.Notification.Count
			continue
		}
		found += len(n.Notification.IDs) // all are of one group
		if (n.State == alerts.Fresh) != (found == len(n.Notification.IDs)) || n.Notification.Count != int64(found) || len(n.Notification.Resolved) > 0 {
			t.Errorf("told is %s", says[len(says)-1])
		}
	}
	for _, id := range ids {
		if of[id] != 1 {
			t.Errorf("alert %s is in %d notices", id, of[id])
		}
	}
	if events && bad != 2 {
		t.Errorf("%d of 2 events are told of", bad)
	}
	if t.Failed() {
		t.Logf("%v", slices.Clip(says))
	}
}
