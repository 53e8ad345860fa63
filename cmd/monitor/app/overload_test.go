package app

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/isowatch/isowatch/config"
	"github.com/isowatch/isowatch/ingest/generate"
	"github.com/isowatch/isowatch/ingest/record"
)

// TestSlowHistory: as long as one history takes its time, the others are judged; and
// what waits for it is bounded.
func TestSlowHistory(t *testing.T) {
	brokers := cluster(t)
	p := producer(t, brokers)
	h := newHook(t)
	c := testConfig(brokers)
	c.Alerts.Webhooks = []config.Webhook{h.webhook()}
	c.HTTP.Listen = "127.0.0.1:0"
	free := make(chan struct{})
	var once sync.Once
	release := func() { once.Do(func() { close(free) }) }
	defer release()
	r := start(t, c, newMemStore(webhookName(h.webhook())), false, fine, func(a *App) {
		a.tuning.queue = 100
		a.tuning.slow = func(db string) {
			if db == "slow" {
				<-free
			}
		}
	})
	in := func(db string, txns []record.Transaction) []record.Transaction {
		for i := range txns {
			txns[i].DB = db
		}
		return txns
	}
	send(t, p, in("slow", lostUpdate(1, 1000))...)
	send(t, p, in("quick", lostUpdate(2, 1000))...)
	if a := h.next(t); a.DB != "quick" {
		t.Errorf("the first alert is of %s", a.DB)
	}
	// Its queue fills up, and reading waits for it.
	send(t, p, in("slow", generated(t, generate.Config{Level: generate.SER, Transactions: 1000, Sessions: 4, Seed: 3}))...)
	eventually(t, "reading waits", func() bool {
		return strings.Contains(get(t, r.Addr(), "/metrics"), `isowatch_overload_blocked{db="slow"} 1`)
	})
	release()
	if a := h.next(t); a.DB != "slow" {
		t.Errorf("the second alert is of %s", a.DB)
	}
	eventually(t, "all is judged", func() bool {
		return strings.Contains(get(t, r.Addr(), "/metrics"), `isowatch_transactions_total{db="slow"} 1`)
	})
	r.stop(t)
}

// TestSampling: a history that can't keep up has sessions left out, counted and told,
// and all are taken again when it has caught up.
func TestSampling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &App{cfg: config.Default(), log: zerolog.Nop(), metrics: newMetrics()}
		a.cfg.Overload = config.OverloadSample
		w := &worker{App: a, db: "d", queue: newQueue(100, newPool(1))}
		decide := func(after time.Duration, records int) uint8 {
			time.Sleep(after)
			w.queue.records = records
			return w.decide(time.Now())
		}
		for _, step := range []struct {
			after   time.Duration
			records int
			want    uint8
		}{
			{0, 70, 0},
			{0, 80, 1},
			{sampleRaise / 2, 100, 1}, // what was decided has not had time to help
			{sampleRaise / 2, 100, 2},
			{sampleRaise, 80, 3},
			{sampleLower, 50, 3},     // not caught up yet
			{sampleLower / 2, 10, 3}, // nor for long enough
			{sampleLower / 2, 10, 2},
			{sampleLower, 90, 3},
			{sampleLower / 2, 30, 3},
			{sampleLower, 0, 2},
			{sampleLower, 0, 1},
			{sampleLower, 0, 0},
			{sampleLower, 0, 0},
		} {
			if got := decide(step.after, step.records); got != step.want {
				t.Errorf("%v later with %d of 100 in the queue: level %d, want %d", step.after, step.records, got, step.want)
			}
		}
		a.cfg.Overload = config.OverloadBlock
		if got := decide(time.Hour, 100); got != 0 {
			t.Errorf("level %d where nothing may be left out", got)
		}
	})
}

// TestOverload: with sample-sessions a history that is held up has sessions left out,
// which the log tells and the metrics count.
func TestOverload(t *testing.T) {
	brokers := cluster(t)
	p := producer(t, brokers)
	c := testConfig(brokers)
	c.Overload = config.OverloadSample
	c.HTTP.Listen = "127.0.0.1:0"
	free := make(chan struct{})
	r := start(t, c, newMemStore(), false, fine, func(a *App) {
		a.tuning.queue = 60
		a.tuning.slow = func(string) { <-free }
	})
	txns := generated(t, generate.Config{Level: generate.SER, Transactions: 4000, Sessions: 64, Seed: 3})
	for chunk := range slices.Chunk(txns, 50) {
		send(t, p, chunk...)
	}
	eventually(t, "sessions are left out", func() bool {
		return strings.Contains(get(t, r.Addr(), "/metrics"), `isowatch_overload_sampled{db="default"}`)
	})
	close(free)
	eventually(t, "what is left out is counted", func() bool {
		return strings.Contains(get(t, r.Addr(), "/metrics"), `isowatch_overload_left_out_total{db="default"}`)
	})
	r.stop(t)
	if !strings.Contains(r.log.String(), "sessions are left out") {
		t.Error("the log does not tell that sessions are left out")
	}
}

// TestQueue: a queue holds no more than it may, hands out what came in, in order, and
// takes one entry however large it is.
func TestQueue(t *testing.T) {
	q := newQueue(10, newPool(1))
	e := make([]*entry, 6)
	for i := range e {
		e[i] = &entry{number: uint64(i)}
	}
	steps := []struct {
		x  queued
		ok bool
	}{
		{queued{e[0], 20, 1}, true}, // too many, but alone
		{queued{e[1], 0, 0}, false},
	}
	for i, s := range steps {
		if got := q.offer(s.x); got != s.ok {
			t.Errorf("step %d: taken %v, want %v", i, got, s.ok)
		}
	}
	if got, ok := q.pop(t.Context()); !ok || got != e[0] {
		t.Errorf("got %v", got)
	}
	for i, records := range []int{4, 4, 2, 1} {
		if got, want := q.offer(queued{e[i], records, 1}), i < 3; got != want {
			t.Errorf("with %d records more: taken %v, want %v", records, got, want)
		}
	}
	q.pool.share, q.pool.max, q.records = 1, 2, 0 // it has three
	q.pool.used.Store(2)
	if q.offer(queued{e[4], 0, 1}) {
		t.Error("more bytes are taken than there may be")
	}
	if fill := q.fill(); fill != 1 {
		t.Errorf("a full queue is full to %v", fill)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := q.push(ctx, queued{e[4], 0, 1}); err == nil {
		t.Error("more is pushed than fits")
	}
	q.close()
	for i := range 3 {
		if got, ok := q.pop(t.Context()); !ok || got != e[i] {
			t.Errorf("got %v, want entry %d", got, i)
		}
	}
	if got, ok := q.pop(t.Context()); ok {
		t.Errorf("got %v from an empty queue", got)
	}
}
