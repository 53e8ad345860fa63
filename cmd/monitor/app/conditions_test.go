package app

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/isowatch/isowatch/alerts/life"
	"github.com/isowatch/isowatch/config"
	"github.com/isowatch/isowatch/ingest/reject"
	"github.com/isowatch/isowatch/internal/lab/race"
	"github.com/isowatch/isowatch/window/store"
	"github.com/isowatch/isowatch/window/stream"
)

// badgerStore is a store as the monitor has it, with an outbox for standard output.
func badgerStore(t *testing.T, path string, now func() time.Time) *store.Badger {
	t.Helper()
	st, err := store.Open(store.Options{Path: path, Receivers: []string{"stdout"}, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// TestConditions: each kind of trouble is told of once, with its name and severity, and once
// more when it is over, from a store on the disk.
func TestConditions(t *testing.T) {
	t.Parallel()
	var broken = errors.New("broker down")
	for i, c := range []struct {
		kind, severity string
		event          bool
		begin, end     func(x *telling, w *worker)
	}{
		{kind: troubleSilent, severity: "warning", begin: func(x *telling, _ *worker) { x.teller.arrived(time.Now().UnixNano()) },
			end: func(x *telling, _ *worker) { x.teller.arrived(time.Now().Add(24 * time.Hour).UnixNano()) }},
		{kind: troubleSource, severity: "error", begin: func(x *telling, _ *worker) { x.retrying(broken) }, end: func(x *telling, _ *worker) { x.ready.ready(whoSource) }},
		{kind: troubleStore, severity: "critical", begin: func(x *telling, _ *worker) { x.ready.wait(whoStore, "no room") }, end: func(x *telling, _ *worker) { x.ready.ready(whoStore) }},
		{kind: troubleLag, severity: "warning", begin: func(_ *telling, w *worker) { w.lag.Store(int64(time.Hour)) }, end: func(_ *telling, w *worker) { w.lag.Store(0) }},
		{kind: troubleStuck, severity: "error", begin: func(_ *telling, w *worker) { w.queue.offer(queued{entry: &entry{number: 1}, records: 1}) }, end: func(_ *telling, w *worker) { w.queue.take() }},
		{kind: troubleStuck, severity: "error", begin: func(_ *telling, w *worker) { w.came.Add(1) }, end: func(_ *telling, w *worker) { w.upTo.Add(1) }},
		{kind: troubleOverload, severity: "warning", begin: func(_ *telling, w *worker) { w.blocked.Store(true) }, end: func(_ *telling, w *worker) { w.blocked.Store(false) }},
		{kind: troubleSampling, severity: "warning", begin: func(_ *telling, w *worker) { w.leavesOut.Store(true) }, end: func(_ *telling, w *worker) { w.leavesOut.Store(false) }},
		{kind: troubleGap, severity: "warning", event: true, begin: func(x *telling, _ *worker) {
			x.teller.event(life.Condition{Kind: troubleGap, Severity: "warning", Text: "gone"})
		}},
		{kind: troubleLoss, severity: "info", event: true, begin: func(_ *telling, w *worker) { w.missing(stream.Loss{Session: "s", From: 3, To: 4}) }},
		{kind: troubleNumbers, severity: "warning", event: true, begin: func(_ *telling, w *worker) { w.missing(stream.Loss{Why: stream.LostNumber, ID: "s#3"}) }},
		{kind: troubleCoverage, severity: "warning", event: true, begin: func(x *telling, _ *worker) {
			x.teller.event(life.Condition{Kind: troubleCoverage, DB: "shop", Severity: "warning", Text: "lost"})
		}},
		{kind: troubleLetters, severity: "warning", event: true, begin: func(x *telling, _ *worker) { x.teller.setAside(reject.New(reject.TooLarge, "huge")) }},
		{kind: troubleUnproved, severity: "warning", event: true, begin: func(x *telling, _ *worker) {
			x.teller.event(life.Condition{Kind: troubleUnproved, DB: "shop", Severity: "warning", Text: "a bug"})
		}},
	} {
		if race.Brief() && i%3 > 0 {
			continue // each looks at the monitor a thousand times
		}
		t.Run(c.kind, func(t *testing.T) {
			path := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				conf := config.Default()
				conf.Source.Stdin = &config.Stdin{}
				conf.HTTP.Listen, conf.Alerts.Stdout = "", true
				if c.kind == troubleSilent {
					conf.Alerts.SilentAfter = time.Minute
				}
				st, out := badgerStore(t, path, time.Now), &stamped{}
				defer func() {
					if err := st.Close(); err != nil {
						t.Error(err)
					}
				}()
				x := startTelling(t, conf, st, out)
				defer x.end()
				x.log = zerolog.Nop()
				w := x.teller.watched()[0]
				x.teller.arrived(time.Now().Add(24 * time.Hour).UnixNano())
				time.Sleep(2 * time.Minute)
				c.begin(x, w)
				time.Sleep(3 * time.Minute)
				told := out.notices(t, life.KindOperational)
				if len(told) != 1 || told[0].Name != life.Operational+c.kind || string(told[0].Severity) != c.severity || told[0].Summary == "" {
					t.Fatalf("told is %+v", told)
				}
				if over := out.notices(t, life.KindResolved); len(over) > 0 {
					t.Fatalf("over is %v", over[0].Notification)
				}
				if !c.event {
					c.end(x, w)
				}
				time.Sleep(20 * time.Minute)
				over := out.notices(t, life.KindResolved)
				if len(over) != 1 || fmt.Sprint(over[0].Notification.Resolved) != fmt.Sprint([]string{told[0].Group}) {
					t.Errorf("over is %+v", over)
				}
			})
		})
	}
}

// TestSilenceInStore: a silence that is made while the monitor runs holds after a restart,
// what it keeps is in the store and counted, and when it ends, what goes on is told.
func TestSilenceInStore(t *testing.T) {
	path := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		conf := config.Default()
		conf.Source.Stdin = &config.Stdin{}
		conf.HTTP.Listen, conf.Alerts.Stdout = "", true
		out := &stamped{}
		st := badgerStore(t, path, time.Now)
		x := startTelling(t, conf, st, out)
		if _, err := x.teller.Silence(t.Context(), life.Silence{Name: "Lost Update", Until: time.Now().Add(10 * time.Minute).UnixNano()}); err != nil {
			t.Fatal(err)
		}
		x.found(t, "a")
		time.Sleep(time.Minute)
		x.end()
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
		st = badgerStore(t, path, time.Now)
		x = startTelling(t, conf, st, out)
		x.found(t, "b")
		time.Sleep(8 * time.Minute)
		if n := len(out.lines); n > 0 {
			t.Errorf("%d notices in a silence: %s", n, out.lines[0])
		}
		for _, id := range []string{"a", "b"} {
			if _, ok, err := st.Alert(t.Context(), id); !ok || err != nil {
				t.Errorf("alert %s is stored: %v, %v", id, ok, err)
			}
		}
		time.Sleep(2 * time.Minute)
		told := map[string]int64{}
		for _, n := range append(out.notices(t, life.KindAlert), out.notices(t, life.KindSummary)...) {
			told[n.ID] += n.Notification.Silenced
		}
		if len(told) != 1 || told["a"] != 2 { // they are of one group
			t.Errorf("told after the silence, and how much was silenced: %v", told)
		}
		x.end()
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestRetention: alerts go from the store when they are old, and beyond max_alerts, but for those that stand for
// groups which are not over and those that a receiver is still to be told of: what breaks for ever fills no disk.
func TestRetention(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	minute := time.Minute
	if race.Brief() {
		minute /= 3 // it is looked at every second
	}
	synctest.Test(t, func(t *testing.T) {
		conf := config.Default()
		conf.Source.Stdin = &config.Stdin{}
		conf.HTTP.Listen, conf.Alerts.Stdout = "", true
		conf.Alerts.Retain, conf.Alerts.ResolveAfter = 60*minute, minute
		conf.Alerts.MaxAlerts, conf.Alerts.Repeat = 5, 10*minute
		st, out := badgerStore(t, path, time.Now), &stamped{}
		x := startTelling(t, conf, st, out)
		stored := func(id string) bool {
			t.Helper()
			_, ok, err := st.Alert(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			return ok
		}
		x.worker.judge(1)
		x.found(t, "old")
		time.Sleep(25 * minute)
		x.worker.judge(5000) // it is over
		time.Sleep(25 * minute)
		x.found(t, "young")
		time.Sleep(15 * minute)
		if stored("old") || !stored("young") {
			t.Errorf("after %v: old %v, young %v", conf.Alerts.Retain, stored("old"), stored("young"))
		}
		time.Sleep(180 * minute)
		x.worker.judge(10_000)
		time.Sleep(2 * minute)
		x.found(t, "open")
		time.Sleep(180 * minute)
		if !stored("open") {
			t.Error("an alert is dropped that stands for what is not over")
		}
		for i := range 15 {
			x.found(t, fmt.Sprint("more ", i))
		}
		time.Sleep(2 * minute)
		if !stored("more 1") {
			t.Error("an alert is dropped that nobody was told of")
		}
		time.Sleep(20 * minute)
		if n, err := st.Stats(t.Context()); err != nil || n.Alerts > int64(conf.Alerts.MaxAlerts)+1 {
			t.Errorf("%d alerts are stored of one group that goes on, %v; %d may be", n.Alerts, err, conf.Alerts.MaxAlerts)
		}
		if !stored("open") || !stored("more 14") {
			t.Errorf("what stands for the group is stored: %v, the last one: %v", stored("open"), stored("more 14"))
		}
		x.end()
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
}
