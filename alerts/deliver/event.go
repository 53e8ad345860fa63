package deliver

import "time"

// Outcome is what came of an attempt; a closed set, fit for a metric's label.
type Outcome string

// The outcomes.
const (
	// Delivered: the receiver took it, and that is recorded.
	Delivered Outcome = "delivered"
	// Retrying: the receiver could not be reached or said try again.
	Retrying Outcome = "retrying"
	// Refused: the receiver will never take this alert. It stays in the store.
	Refused Outcome = "refused"
	// Filtered: the receiver is not to get it.
	Filtered Outcome = "filtered"
	// Resent: what is active was told again; the event has no ID.
	Resent Outcome = "resent"
	// StoreFailed: the outbox could not be read or written.
	StoreFailed Outcome = "store-failed"
)

// Event tells of one attempt. It holds no secrets.
type Event struct {
	Receiver string
	ID       string // of the alert; empty when the outbox could not be read, and of what is told again
	Outcome  Outcome
	Attempt  int           // for this alert since the start, from 1
	Took     time.Duration // the attempt
	Wait     time.Duration // until the next attempt of this lane
	Err      error         // nil if delivered
}
