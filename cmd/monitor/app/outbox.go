package app

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/isowatch/isowatch/window/store"
)

// outbox is what a full store did not take yet: alerts, what was decided about them,
// and the notices of it, which are delivered from here.
type outbox struct {
	alerts map[string]store.Alert // News are all that were not stored
	raised []string               // the IDs in alerts, in the order in which they came
	bytes  int64

	// notices are those that some receiver has not taken yet.
	notices     []store.Notice
	noticeBytes int64
	// handled are the news that are pending in the store, or held, and are not any
	// more. life is the state that goes with it; nil: it did not change.
	handled map[string]int
	life    []byte
	// sent has, by receiver, the notices that were delivered without the store
	// knowing it.
	sent map[string]map[string]bool
}

// The most that is held of alerts and notices.
const (
	heldAlertsMax      = 4096
	heldAlertBytesMax  = 64 << 20
	heldNotices        = 256
	heldNoticeBytesMax = 16 << 20
)

func newOutbox() outbox {
	return outbox{alerts: map[string]store.Alert{}, handled: map[string]int{}, sent: map[string]map[string]bool{}}
}

// holdAlerts keeps alerts until the store takes them. Beyond the limit they are lost
// but for the log, which says so.
func (k *keeper) holdAlerts(found []store.Alert) {
	for _, a := range found {
		old, again := k.alerts[a.ID]
		grown := int64(len(a.Body) - len(old.Body))
		if !again && len(k.alerts) >= heldAlertsMax || k.bytes+grown > heldAlertBytesMax {
			k.metrics.alertsLost.Inc()
			k.log.Error().Str("id", a.ID).Msg("an alert can be neither stored nor held, as the store is full and too many " +
				"alerts wait for it")
			continue
		}
		if !again {
			k.raised = append(k.raised, a.ID)
		}
		a.News += old.News
		k.alerts[a.ID] = a
		k.bytes += grown
	}
}

// tell makes a state durable, with the notices that led to it and the news that they
// are of.
func (k *keeper) tell(ctx context.Context, life []byte, notices []store.Notice, handled []store.Handled) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.full == nil {
		err := k.Store.Commit(ctx, store.Commit{Life: life, Notices: notices, Handled: handled})
		if err == nil || !k.hold(err) {
			return err
		}
	}
	k.life = life
	for _, h := range handled {
		k.handled[h.ID] += h.News
	}
	for _, n := range notices {
		if slices.ContainsFunc(k.notices, func(old store.Notice) bool { return old.ID == n.ID }) {
			continue
		}
		k.notices = append(k.notices, n)
		k.noticeBytes += int64(len(n.Body))
	}
	k.show()
	return nil
}

// tells says whether there is room for more notices. While there is none, news
// stay pending.
func (k *keeper) tells() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.full == nil || len(k.notices) < heldNotices && k.noticeBytes < heldNoticeBytesMax
}

// storeNotices writes notices and what was decided, and then which of them have been
// delivered. The alerts are stored by then, and their news pending: a crash before is as if
// nobody had been told, so that somebody may be told twice.
func (k *keeper) storeNotices(ctx context.Context) error {
	for len(k.notices) > 0 {
		n := k.notices[0]
		if err := k.Store.Commit(ctx, store.Commit{Notices: []store.Notice{n}}); err != nil {
			return err
		}
		k.noticeBytes -= int64(len(n.Body))
		k.notices = k.notices[1:]
	}
	k.notices = nil
	for len(k.handled) > 0 || k.life != nil {
		c := store.Commit{Life: k.life}
		for _, id := range slices.Sorted(maps.Keys(k.handled)) {
			if len(c.Handled) < store.LimitHandled {
				c.Handled = append(c.Handled, store.Handled{ID: id, News: k.handled[id]})
			}
		}
		if err := k.Store.Commit(ctx, c); err != nil {
			return err
		}
		for _, h := range c.Handled {
			delete(k.handled, h.ID)
		}
		k.life = nil
	}
	for receiver, ids := range k.sent {
		for id := range ids {
			if err := k.Store.Delivered(ctx, receiver, id); err != nil {
				return err
			}
			delete(ids, id)
		}
	}
	return nil
}

// Life is the state that was decided last, stored or not.
func (k *keeper) Life(ctx context.Context) ([]byte, bool, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.life != nil {
		return k.life, true, nil
	}
	return k.Store.Life(ctx)
}

// Alert finds an alert that was raised, stored or not.
func (k *keeper) Alert(ctx context.Context, id string) (store.Alert, bool, error) {
	k.mu.Lock()
	a, ok := k.alerts[id]
	k.mu.Unlock()
	if ok {
		a.News = 0
		return a, true, nil
	}
	return k.Store.Alert(ctx, id)
}

// Pending calls f for each alert of which there is news: what the store has, then
// what is held. f must not call the keeper.
func (k *keeper) Pending(ctx context.Context, f func(store.Alert) bool) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	more, alerts := true, maps.Clone(k.alerts)
	give := func(a store.Alert) bool {
		if a.News -= k.handled[a.ID]; a.News > 0 {
			more = f(a)
		}
		return more
	}
	err := k.Store.Pending(ctx, func(a store.Alert) bool {
		if h, ok := alerts[a.ID]; ok { // it is newer
			a.Body, a.News = h.Body, a.News+h.News
			delete(alerts, a.ID)
		}
		return give(a)
	})
	for _, id := range k.raised {
		if err != nil || !more {
			break
		}
		if a, ok := alerts[id]; ok {
			give(a)
		}
	}
	return err
}

// Undelivered calls f for what is to be delivered to a receiver: what the store has,
// then what is held.
func (k *keeper) Undelivered(ctx context.Context, receiver string, f func(store.Notice) bool) error {
	k.mu.Lock()
	sent, held := maps.Clone(k.sent[receiver]), slices.Clone(k.notices)
	k.mu.Unlock()
	more := true
	give := func(n store.Notice) bool {
		if !sent[n.ID] {
			more = f(n)
		}
		return more
	}
	err := k.Store.Undelivered(ctx, receiver, func(n store.Notice) bool {
		held = slices.DeleteFunc(held, func(h store.Notice) bool { return h.ID == n.ID })
		return give(n)
	})
	for _, n := range held {
		if err != nil || !more {
			break
		}
		give(n)
	}
	return err
}

// Delivered notes that a receiver has taken a notice, in memory if the store does
// not take that. A notice that is held and that all have taken is held no longer.
func (k *keeper) Delivered(ctx context.Context, receiver, id string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	held := slices.IndexFunc(k.notices, func(n store.Notice) bool { return n.ID == id })
	if held < 0 {
		err := k.Store.Delivered(ctx, receiver, id)
		if err == nil || !errors.Is(err, store.ErrFull) {
			return err
		}
		if k.full == nil {
			k.hold(err)
		}
	}
	if k.sent[receiver] == nil {
		k.sent[receiver] = map[string]bool{}
	}
	k.sent[receiver][id] = true
	if held < 0 || slices.ContainsFunc(k.receivers, func(r string) bool { return !k.sent[r][id] }) {
		return nil
	}
	k.noticeBytes -= int64(len(k.notices[held].Body))
	k.notices = slices.Delete(k.notices, held, held+1)
	for _, ids := range k.sent {
		delete(ids, id)
	}
	return nil
}

// gauges are a metric of which the values are asked for when they are wanted, counters too, one for each
// of the values of its labels, which are joined by labelEnd; of one without labels under an empty name.
type gauges struct {
	desc     *prometheus.Desc
	kind     prometheus.ValueType
	labelled bool
	values   atomic.Pointer[func() map[string]float64] // nil: there are none yet
}

func (g *gauges) set(values func() map[string]float64) { g.values.Store(&values) }

func (g *gauges) Describe(ch chan<- *prometheus.Desc) { ch <- g.desc }

func (g *gauges) Collect(ch chan<- prometheus.Metric) {
	if f := g.values.Load(); f != nil {
		for label, v := range (*f)() {
			var values []string
			if g.labelled {
				values = strings.Split(label, labelEnd)
			}
			ch <- prometheus.MustNewConstMetric(g.desc, g.kind, v, values...)
		}
	}
}

// labelEnd is in no name of a database.
const labelEnd = "\x00"

// waitingMost is how many notices of a receiver are counted: counting costs, and whoever
// sees so many knows.
const waitingMost = 10_000

// waiting are the notices that each receiver has not taken yet.
func (k *keeper) waiting() map[string]float64 {
	out := make(map[string]float64, len(k.receivers))
	for _, r := range k.receivers {
		if n, err := k.waitingFor(context.Background(), r); err == nil {
			out[r] = float64(n)
		}
	}
	return out
}

// waitingFor counts what waits for one receiver: what the store has and what is held, but
// for what was delivered without the store's knowing.
func (k *keeper) waitingFor(ctx context.Context, receiver string) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	n, err := k.Store.Waiting(ctx, receiver, waitingMost)
	return max(0, min(n+len(k.notices)-len(k.sent[receiver]), waitingMost)), err
}
