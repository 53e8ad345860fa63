// Package deliver brings alerts from the store's outbox to their receivers, at
// least once each.
//
//	             ┌─▶ lane A: dedupe ─▶ notify, retry ─▶ record ─▶ webhook A
//	outbox ──────┤
//	(in store)   └─▶ lane B: dedupe ─▶ notify, retry ─▶ record ─▶ webhook B
//
// The engine's loop commits an alert to the store, which puts it into the outbox
// of every receiver in the same step, and calls Wake. Whatever happens after
// that is no longer its concern: it is never blocked.
//
// # Files
//
//   - deliver.go: Receiver, the Dispatcher with its lanes, and what is told to logs and metrics.
//   - lane.go: one receiver's goroutine, the three stages, and which alert is next.
//   - http.go: one POST, what is refused, and what answers mean.
//   - webhook.go: the generic webhook, and a stream; slack.go, pagerduty.go: its other formats;
//     notice.go: what is shown of a notice, and the least that says it.
//   - alertmanager.go: notices, and what is active again and again.
//   - kafka.go: a topic.
//   - filter.go: who gets what.
//   - redact.go: addresses without what is secret in them.
//
// # What a receiver may rely on
//
//   - At least once. An alert is taken out of the outbox only after the receiver
//     said yes. If the monitor dies in between it comes again, with the same id
//     (header webhook-id, and id in the body).
//   - Oldest first, but a notice that keeps failing lets those about other groups pass.
//   - A receiver that is down is tried for ever, at growing intervals of at most
//     a minute, give or take a random part; Retry-After is obeyed up to an hour.
//   - An answer that says the notice itself is refused (400, 413, 422 …) gets it once
//     more in its plainest form, and then ends its delivery to this receiver. The alert
//     stays in the store. What an answer says of the receiver (401, 403, 404, 410) is
//     an outage.
//
// # Non-obvious
//
//   - A redirect to another host is refused, as the body and the signature are
//     meant for one receiver; so is one that would turn the POST into a GET. It
//     counts as an outage, not as a refusal: nothing was said about the alert.
//   - The path of a webhook's URL often is its password. No error, event or log
//     line has it; see redact.go. Errors of net/http hold the whole URL, and are
//     therefore unwrapped.
//   - When the monitor stops, an attempt in progress has a grace period to
//     finish, and what it achieved is recorded.
package deliver
