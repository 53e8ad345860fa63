package app

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/isowatch/isowatch/config"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/generate"
	"github.com/isowatch/isowatch/ingest/source/kafka"
)

// gate is a place at which a history's worker is held.
type gate struct {
	t    *testing.T
	free chan struct{}
	once sync.Once
}

func newGate(t *testing.T) *gate { return &gate{t: t, free: make(chan struct{})} }

func (g *gate) open() { g.once.Do(func() { close(g.free) }) }

// holds keeps a history from taking anything until the gate is open, as a search does
// that takes long; its queue holds so many records.
func (g *gate) holds(db string, queue int) func(*App) {
	return func(a *App) {
		g.t.Cleanup(g.open) // before it is waited for that the monitor ends
		a.tuning.queue = queue
		a.tuning.slow = func(x string) {
			if x == db {
				<-g.free
			}
		}
	}
}

// read is how many records are durably read.
func (s *memStore) read() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := int64(0)
	for _, next := range s.offsets["kafka "+testTopic] {
		n += next
	}
	return int(n)
}

// many are records of a history, sent a few at a time so that they are many entries.
func many(t *testing.T, p *kafka.Producer, db string, n int) int {
	t.Helper()
	txns := in(db, generated(t, generate.Config{Level: verdict.SER, Transactions: n, Sessions: 4, Seed: 3}))
	for chunk := range slices.Chunk(txns, 50) {
		send(t, p, chunk...)
	}
	return len(txns)
}

// TestSlowHistory: as long as one history takes its time, however much comes for it, the
// others are judged to their ends, and what is read is durable. What waits for it is in
// the journal, and it is judged to the end too when it gets on.
func TestSlowHistory(t *testing.T) {
	t.Parallel()
	c, p, h := hooked(t)
	g := newGate(t)
	st := newMemStore(webhookName(h.webhook()))
	r := start(t, c, st, false, fine, g.holds("slow", 100))
	send(t, p, in("quick", lostUpdate(1, 1000))...)
	if a := h.next(t); a.DB != "quick" {
		t.Errorf("the first alert is of %s", a.DB)
	}
	sent := 3 + many(t, p, "slow", 1000)
	send(t, p, in("slow", lostUpdate(2, 1000))...)
	send(t, p, in("quick", lostUpdate(3, 5000))...)
	sent += 6
	if a := h.next(t); a.DB != "quick" {
		t.Errorf("the second alert is of %s", a.DB)
	}
	eventually(t, "all is durable", func() bool { return st.read() == sent })
	eventually(t, "the backlog is shown", func() bool {
		m := get(t, r.Addr(), "/metrics")
		return strings.Contains(m, `isowatch_backlog_records{db="slow"}`) && !strings.Contains(m, `isowatch_backlog_records{db="slow"} 0`) &&
			strings.Contains(m, `isowatch_backlog_records{db="quick"} 0`) && strings.Contains(m, "isowatch_overload_blocked_longest_seconds 0\n")
	})
	if n := len(r.log.String()); strings.Count(r.log.String(), "waits in the journal") != 1 {
		t.Errorf("in %d bytes of log, it is not told once that records wait in the journal", n)
	}
	g.open()
	if a := h.next(t); a.DB != "slow" {
		t.Errorf("the third alert is of %s", a.DB)
	}
	eventually(t, "all is judged", func() bool {
		m := get(t, r.Addr(), "/metrics")
		return strings.Contains(m, `isowatch_backlog_records{db="slow"} 0`) && strings.Contains(m, `isowatch_backlog_bytes{db="slow"} 0`) &&
			strings.Contains(m, `isowatch_queue_length{queue="history slow"} 0`)
	})
	r.stop(t)
}

// TestBacklogSurvives: what waits in the journal for a history when the monitor ends is
// judged by the next run, which reads nothing again; so does what a run that ends
// with its input has left there.
func TestBacklogSurvives(t *testing.T) {
	t.Parallel()
	brokers := cluster(t)
	topicOf(t, brokers, testTopic, append(in("slow", planted(t, 1200)), in("quick", lostUpdate(900, 1000))...))
	c := testConfig(brokers)
	smallWindows(c)
	whole := newMemStore("r")
	if err := start(t, c, whole, true, fine).wait(t); err != nil {
		t.Fatal(err)
	}
	if n := len(whole.ids()); n != 7 {
		t.Fatalf("%d alerts, want 7", n)
	}
	st := newMemStore("r")
	g := newGate(t)
	r := start(t, c, st, false, fine, g.holds("slow", 20))
	eventually(t, "all is durable", func() bool { return st.read() == whole.read() })
	r.cancel()
	g.open()
	if err := r.wait(t); err != nil {
		t.Fatal(err)
	}
	if err := start(t, c, st, true, fine, func(a *App) { a.tuning.queue = 20 }).wait(t); err != nil {
		t.Fatal(err)
	}
	if got, want := st.ids(), whole.ids(); !slices.Equal(got, want) {
		t.Errorf("%d alerts, want %d", len(got), len(want))
	}
}

// TestBacklogIsBounded: reading waits where no more may be left in the journal, and
// where what is read is not in it because the disk is full; either way all is judged.
func TestBacklogIsBounded(t *testing.T) {
	for _, tc := range []struct {
		name string
		set  func(*App)
		full bool
	}{
		{"limit", func(a *App) { a.tuning.backlog = 1 }, false},
		{"full", func(*App) {}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c, p, h := hooked(t)
			g := newGate(t)
			st := newMemStore(webhookName(h.webhook()))
			r := start(t, c, st, false, fine, g.holds("slow", 100), tc.set)
			send(t, p, in("quick", lostUpdate(1, 1000))...)
			h.next(t)
			st.setFull(tc.full)
			many(t, p, "slow", 1000)
			eventually(t, "reading waits", func() bool {
				return strings.Contains(get(t, r.Addr(), "/metrics"), `isowatch_overload_blocked{db="slow"} 1`)
			})
			st.setFull(false)
			g.open()
			send(t, p, in("slow", lostUpdate(2, 90_000))...)
			if a := h.next(t); a.DB != "slow" {
				t.Errorf("the second alert is of %s", a.DB)
			}
			r.stop(t)
		})
	}
}

// TestSearchIsNotWaitedFor: reading goes on while the only history there is searches;
// once it gets on, reading waits for it.
func TestSearchIsNotWaitedFor(t *testing.T) {
	brokers := cluster(t)
	p := producer(t, brokers)
	c := testConfig(brokers)
	g := newGate(t)
	st := newMemStore()
	r := start(t, c, st, false, fine, g.holds("alone", 100))
	sent := many(t, p, "alone", 2000)
	eventually(t, "all is durable", func() bool { return st.read() == sent })
	g.open()
	eventually(t, "all is judged", func() bool {
		return total(r.metrics.transactions.WithLabelValues("alone")) > float64(sent/2)
	})
	r.stop(t)
}

// TestSampling: a history that can't keep up has sessions left out, counted and told,
// and all are taken again when it has caught up.
func TestSampling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &setting{cfg: config.Default(), log: zerolog.Nop(), metrics: newMetrics()}
		a.cfg.Overload = config.OverloadSample
		w := &worker{setting: a, db: "d", queue: newQueue(100, newPool(1))}
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
	t.Parallel()
	brokers := cluster(t)
	p := producer(t, brokers)
	c := testConfig(brokers)
	c.Overload = config.OverloadSample
	c.HTTP.Listen = "127.0.0.1:0"
	g := newGate(t)
	r := start(t, c, newMemStore(), false, fine, g.holds("default", 60))
	txns := generated(t, generate.Config{Level: verdict.SER, Transactions: 4000, Sessions: 64, Seed: 3})
	for chunk := range slices.Chunk(txns, 50) {
		send(t, p, chunk...)
	}
	eventually(t, "sessions are left out", func() bool {
		return strings.Contains(get(t, r.Addr(), "/metrics"), `isowatch_overload_sampled{db="default"}`)
	})
	g.open()
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
		e[i] = &entry{number: uint64(i) + 1, size: 6}
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
	nothing := func(number uint64) (queued, error) { return queued{}, fmt.Errorf("entry %d is not left", number) }
	if got, err := q.pop(t.Context(), nothing); err != nil || got != e[0] {
		t.Errorf("got %v, %v", got, err)
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
	q.leave(queued{e[3], 3, 1})
	q.leave(queued{e[4], 2, 1})
	if records, bytes := q.backlog(); records != 5 || bytes != 12 {
		t.Errorf("%d records, %d bytes are left", records, bytes)
	}
	q.close()
	for i := range 3 {
		if got, err := q.pop(t.Context(), nothing); err != nil || got != e[i] {
			t.Errorf("got %v, %v, want entry %d", got, err, i)
		}
	}
	if q.offer(queued{e[5], 0, 0}) {
		t.Error("what comes later is taken before what is left")
	}
	if _, left, closed := q.take(); left != e[3].number || closed {
		t.Error("the queue ends before what is left")
	}
	if got, err := q.pop(t.Context(), nothing); err == nil {
		t.Errorf("got %v, which can't be read", got)
	}
	for i := 3; i < 5; i++ {
		got, err := q.pop(t.Context(), func(number uint64) (queued, error) {
			if number != e[i].number {
				t.Errorf("entry %d is next of what is left, want %d", number, e[i].number)
			}
			return queued{e[i], 6 - i, 1}, nil
		})
		if err != nil || got != e[i] {
			t.Errorf("got %v, %v, want entry %d", got, err, i)
		}
	}
	if records, bytes := q.backlog(); records != 0 || bytes != 0 {
		t.Errorf("%d records, %d bytes are left", records, bytes)
	}
	if got, err := q.pop(t.Context(), nothing); got != nil || err != nil {
		t.Errorf("got %v, %v from an empty queue", got, err)
	}
}

// TestNothingIsPassedOver: however the steps of who reads and who judges fall, every entry comes out, once and in order.
func TestNothingIsPassedOver(t *testing.T) {
	const entries = 40
	for seed := range uint64(500) {
		rng := rand.New(rand.NewPCG(seed, 1))
		q := newQueue(1+rng.IntN(4), newPool(1))
		entry := func(number uint64) queued { return queued{&entry{number: number, size: 1}, 1, 1} }
		read, judged, loading := uint64(0), uint64(0), uint64(0)
		for judged < entries {
			if read < entries && rng.IntN(2) == 0 {
				if read++; !q.offer(entry(read)) {
					q.leave(entry(read))
				}
				continue
			}
			if loading == 0 {
				e, left, _ := q.take()
				if loading = left; e == nil {
					if read == entries && left == 0 {
						t.Fatalf("seed %d: the queue ends behind entry %d of %d", seed, judged, entries)
					}
					continue
				}
				if judged++; e.number != judged {
					t.Fatalf("seed %d: entry %d comes out, want %d", seed, e.number, judged)
				}
				continue
			}
			if judged++; loading != judged {
				t.Fatalf("seed %d: entry %d comes out of the journal, want %d", seed, loading, judged)
			}
			q.took(entry(loading))
			loading = 0
		}
		if records, bytes := q.backlog(); records != 0 || bytes != 0 {
			t.Fatalf("seed %d: %d records of %d bytes are left", seed, records, bytes)
		}
	}
}
