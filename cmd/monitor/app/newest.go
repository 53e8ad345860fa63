package app

import (
	"context"

	"github.com/isowatch/isowatch/window/store"
)

// heldBase is the number of the first alert that is held; those in the store never
// come so far. A number below 2^53 is the same in every JSON parser.
const heldBase = 1 << 50

// holding is how many alerts the store has not taken yet.
func (k *keeper) holding() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.raised)
}

// AlertsBefore calls f for alerts, the latest first: what is held, then what the store
// has; see there.
func (k *keeper) AlertsBefore(ctx context.Context, before uint64, f func(number uint64, a store.Alert) bool) error {
	k.mu.Lock()
	held := make([]store.Alert, 0, len(k.raised))
	newer := make(map[string]bool, len(k.raised))
	for _, id := range k.raised {
		held = append(held, k.alerts[id])
		newer[id] = true
	}
	k.mu.Unlock()
	for i := len(held) - 1; i >= 0; i-- {
		number := uint64(heldBase + i)
		if (before == 0 || number < before) && !f(number, held[i]) {
			return nil
		}
	}
	if before > heldBase {
		before = 0
	}
	return k.Store.AlertsBefore(ctx, before, func(number uint64, a store.Alert) bool {
		return newer[a.ID] || f(number, a)
	})
}
