package app

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/isowatch/isowatch/config"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/reject"
	"github.com/isowatch/isowatch/window/store"
)

// in puts transactions into a history.
func in(db string, txns []record.Transaction) []record.Transaction {
	for i := range txns {
		txns[i].DB = db
	}
	return txns
}

// TestTooManyHistories: no more histories are watched than may be; what comes of others
// is set aside and told once, and those that are watched are judged. A larger limit
// lets others in, which are known to have missed something.
func TestTooManyHistories(t *testing.T) {
	t.Parallel()
	c, p, h := hooked(t)
	c.Window.Histories = 2
	st := newMemStore(webhookName(h.webhook()))
	r := start(t, c, st, false, fine)
	watched := func(n int) {
		t.Helper()
		eventually(t, fmt.Sprint(n, " are watched"), func() bool { return strings.Count(get(t, r.Addr(), "/metrics"), "isowatch_coverage_complete{") == n })
	}
	send(t, p, in("a", lostUpdate(1, 1000))...)
	watched(1)
	send(t, p, in("b", lostUpdate(2, 2000))...)
	watched(2)
	refused := 0
	for i := range 3 {
		txns := in(fmt.Sprint("further ", i), lostUpdate(3+i, int64(3000*(i+1))))
		refused += len(txns)
		send(t, p, txns...)
	}
	eventually(t, "the others' records are counted", func() bool {
		return strings.Contains(get(t, r.Addr(), "/metrics"), fmt.Sprintf(`isowatch_rejected_total{reason="too-many-histories"} %d`, refused))
	})
	for range 2 {
		if a := h.next(t); a.DB != "a" && a.DB != "b" {
			t.Errorf("an alert of %s", a.DB)
		}
	}
	watched(2)
	r.stop(t)
	letters := 0
	_ = st.DeadLetters(t.Context(), func(l store.DeadLetter) bool {
		letters++
		if l.Reason != reject.TooManyHistories.String() || !strings.Contains(l.Detail, "window.histories") || !strings.Contains(string(l.Value), `"db":"further `) {
			t.Errorf("dead letter %+v", l)
		}
		return true
	})
	if letters != refused {
		t.Errorf("%d dead letters, want %d", letters, refused)
	}
	if n := strings.Count(r.log.String(), reject.TooManyHistories.String()); n != 1 {
		t.Errorf("told %d times", n)
	}

	c.Window.Histories = 3
	r = start(t, c, st, false, fine)
	send(t, p, in("further 0", lostUpdate(9, 90_000))...)
	watched(3)
	r.stop(t)
	if !strings.Contains(r.log.String(), `"db":"further 0","coverage":"partial"`) {
		t.Error("coverage is said to be complete of a history of which records were set aside")
	}
}

// TestPool: queues share what they hold; each has its share whatever the others have,
// and gives back what it took.
func TestPool(t *testing.T) {
	p := &pool{share: 10, max: 100}
	a, b := newQueue(1000, p), newQueue(1000, p)
	offer := func(q *queue, bytes int64, want bool) {
		t.Helper()
		if got := q.offer(queued{&entry{}, 1, bytes}); got != want {
			t.Errorf("%d bytes more are taken: %v, want %v", bytes, got, want)
		}
	}
	offer(a, 60, true)
	offer(b, 50, true) // 50 and 40 are beyond the shares
	offer(a, 11, false)
	if fill := b.fill(); fill != 50.0/60 {
		t.Errorf("full to %v", fill)
	}
	offer(a, 10, true)
	offer(b, 1, false)
	if fill := b.fill(); fill != 1 {
		t.Errorf("full to %v", fill)
	}
	c := newQueue(1000, p)
	offer(c, 4, true)
	offer(c, 6, true)
	offer(c, 1, false)
	for _, q := range []*queue{a, a, b, c, c} {
		q.take()
	}
	if used := p.used.Load(); used != 0 {
		t.Errorf("%d bytes are taken by empty queues", used)
	}
	offer(b, 500, true) // alone
	for _, histories := range []int{1, 256, config.HistoriesMax} {
		p := newPool(histories)
		if p.share <= 0 || p.max+int64(histories)*p.share > queueBytesMax || p.max < queueBytesMax/2 {
			t.Errorf("%d histories: %d each, and %d", histories, p.share, p.max)
		}
	}
}

// TestCausesAreNewsAgain: what was not met for an hour is told again.
func TestCausesAreNewsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := causes{}
		for i, s := range []struct {
			after time.Duration
			cause string
			want  bool
		}{
			{0, "a", true}, {0, "b", true}, {0, "a", false},
			{causeForgotten - 1, "a", false},
			{causeForgotten - 1, "a", false}, // it never ceased
			{causeForgotten, "a", true},
			{0, "b", true},
		} {
			time.Sleep(s.after)
			if got := c.news(s.cause, time.Now()); got != s.want {
				t.Errorf("step %d: %v", i, got)
			}
		}
	})
}

// TestFullAtTheStart: where there is no room for the store the monitor waits for it,
// says so, and begins when there is.
func TestFullAtTheStart(t *testing.T) {
	t.Parallel()
	c, p, h := hooked(t)
	room := make(chan struct{})
	noRoom := func(a *App) {
		a.store, a.tuning.reopen = nil, time.Millisecond
		a.opening = func() (store.Store, error) {
			select {
			case <-room:
				return newMemStore(webhookName(h.webhook())), nil
			default:
				return nil, fmt.Errorf("the twin: %w", store.ErrFull)
			}
		}
	}
	r := start(t, c, newMemStore(), false, fine, noRoom)
	send(t, p, lostUpdate(1, 1000)...)
	eventually(t, "/readyz names the disk", func() bool { return strings.Contains(get(t, r.Addr(), "/readyz"), whoStore+": the twin") })
	stopped := start(t, c2(c), newMemStore(), false, fine, noRoom)
	eventually(t, "the other waits", func() bool { return strings.Contains(stopped.log.String(), "waits for room") })
	stopped.stop(t) // gracefully
	close(room)
	h.next(t)
	eventually(t, "it is ready", func() bool { return get(t, r.Addr(), "/readyz") == "ready\n" })
	r.stop(t)
	if n := strings.Count(r.log.String(), "waits for room"); n != 1 {
		t.Errorf("told %d times", n)
	}

	r = start(t, c, newMemStore(), false, fine, func(a *App) {
		a.store = nil
		a.opening = func() (store.Store, error) { return nil, errDisk }
	})
	if err := r.wait(t); !errors.Is(err, errDisk) {
		t.Errorf("another failure is waited for: %v", err)
	}
}

// c2 is a configuration without a server, for a second monitor.
func c2(c *config.Config) *config.Config {
	again := *c
	again.HTTP.Listen = ""
	return &again
}

// damagedStore is a store of which a history's checkpoint is damaged.
type damagedStore struct{ *memStore }

func (damagedStore) Checkpoints(context.Context) ([]string, error) { return []string{"d"}, nil }
func (damagedStore) Checkpoint(context.Context, string) ([]byte, bool, error) {
	return nil, false, &store.Damage{Kind: "checkpoint", Key: `of history "d"`, File: "large/1", Why: "its checksum is wrong"}
}

// TestDamagedCheckpoint: what is damaged is named, with what helps.
func TestDamagedCheckpoint(t *testing.T) {
	err := start(t, testConfig([]string{"127.0.0.1:1"}), damagedStore{newMemStore()}, false).wait(t)
	if !errors.Is(err, store.ErrDamaged) || strings.Count(err.Error(), "checkpoint") != 1 || strings.Count(err.Error(), "--rebuild") != 1 {
		t.Errorf("got %v", err)
	}
}
