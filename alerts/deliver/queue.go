package deliver

import "github.com/isowatch/isowatch/window/store"

const (
	// batchMax bounds how many alerts a lane reads at once, and with it the
	// memory it takes.
	batchMax = 64
	// troubledMax bounds how many of these may be ones that keep failing, so
	// that they can't fill the batch.
	troubledMax = 16
	// triesMax is how often the oldest alert is tried before younger ones get
	// their turn: it may be the alert that is at fault, not the receiver.
	triesMax = 5
)

// tries counts failed attempts by alert id, until it is delivered.
type tries map[string]int

// troubled tells whether an alert has failed so often that others may pass it.
func (t tries) troubled(id string) bool { return t[id] >= triesMax }

// collect returns a function for store.Undelivered that fills batch, leaving
// out troubled alerts beyond troubledMax.
func (t tries) collect(batch *[]store.Notice) func(store.Notice) bool {
	troubled := 0
	return func(a store.Notice) bool {
		if t.troubled(a.ID) {
			if troubled++; troubled > troubledMax {
				return true
			}
		}
		*batch = append(*batch, a)
		return len(*batch) < batchMax
	}
}

// next is the place in batch of the alert to try: the oldest of those that
// failed least, where failing less than triesMax times is as good as never.
func (t tries) next(batch []store.Notice) int {
	best, least := 0, -1
	for i, a := range batch {
		n := max(0, t[a.ID]-triesMax+1)
		if least < 0 || n < least {
			best, least = i, n
		}
	}
	return best
}
