package app

import (
	"context"
	"errors"
	"slices"

	"github.com/isowatch/isowatch/window/store"
)

// outbox are the alerts that a full store did not take yet. They are delivered from
// here.
type outbox struct {
	alerts map[string]store.Alert
	raised []string // the IDs in alerts, in the order in which they came
	bytes  int64
	// sent has, by receiver, the alerts that were delivered without the store
	// knowing it.
	sent map[string]map[string]bool
}

// The most that is held of alerts.
const (
	heldAlertsMax     = 4096
	heldAlertBytesMax = 64 << 20
)

func newOutbox() outbox {
	return outbox{alerts: map[string]store.Alert{}, sent: map[string]map[string]bool{}}
}

// holdAlerts keeps alerts until the store takes them. Beyond the limit they are lost
// but for the log, which says so.
func (k *keeper) holdAlerts(found []store.Alert) {
	for _, a := range found {
		old, again := k.alerts[a.ID]
		grown := int64(len(a.Body) - len(old.Body))
		if !again && len(k.alerts) >= heldAlertsMax || k.bytes+grown > heldAlertBytesMax {
			k.metrics.alertsLost.Inc()
			k.log.Error().Str("id", a.ID).Msg("an alert can be neither stored nor held, as the store is full and too many alerts wait for it")
			continue
		}
		if !again {
			k.raised = append(k.raised, a.ID)
		}
		k.alerts[a.ID] = a
		k.bytes += grown
	}
}

// storeAlerts writes the alerts that are held, and then which of them have been
// delivered.
func (k *keeper) storeAlerts(ctx context.Context) error {
	for len(k.raised) > 0 {
		id := k.raised[0]
		if err := k.Store.Commit(ctx, store.Commit{Alerts: []store.Alert{k.alerts[id]}}); err != nil {
			return err
		}
		k.bytes -= int64(len(k.alerts[id].Body))
		delete(k.alerts, id)
		k.raised = k.raised[1:]
	}
	k.raised = nil
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

// Alert finds an alert that was raised, stored or not.
func (k *keeper) Alert(ctx context.Context, id string) (store.Alert, bool, error) {
	k.mu.Lock()
	a, ok := k.alerts[id]
	k.mu.Unlock()
	if ok {
		return a, true, nil
	}
	return k.Store.Alert(ctx, id)
}

// HasAlert is Alert without its body.
func (k *keeper) HasAlert(ctx context.Context, id string) (bool, error) {
	k.mu.Lock()
	_, ok := k.alerts[id]
	k.mu.Unlock()
	if ok {
		return true, nil
	}
	return k.Store.HasAlert(ctx, id)
}

// Undelivered calls f for what is to be delivered to a receiver: what the store has,
// then what is held.
func (k *keeper) Undelivered(ctx context.Context, receiver string, f func(store.Alert) bool) error {
	k.mu.Lock()
	sent := map[string]bool{}
	for id := range k.sent[receiver] {
		sent[id] = true
	}
	var held []store.Alert
	for _, id := range k.raised {
		if !sent[id] {
			held = append(held, k.alerts[id])
		}
	}
	k.mu.Unlock()
	more := true
	err := k.Store.Undelivered(ctx, receiver, func(a store.Alert) bool {
		if sent[a.ID] || slices.ContainsFunc(held, func(h store.Alert) bool { return h.ID == a.ID }) {
			return true // held ones are newer
		}
		more = f(a)
		return more
	})
	for _, a := range held {
		if err != nil || !more {
			break
		}
		more = f(a)
	}
	return err
}

// Delivered notes that a receiver has taken an alert, in memory if the store does
// not take that.
func (k *keeper) Delivered(ctx context.Context, receiver, id string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, held := k.alerts[id]; !held {
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
	return nil
}
