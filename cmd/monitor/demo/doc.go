// Package demo shows the monitor at work, with real parts and nothing installed:
//
//	clients ──▶ Badger store      a bank: transfers and audits, several at once
//	   │
//	   └─ what each saw ─▶ Kafka topic ─▶ the monitor ─▶ webhook receiver
//	                       (in-process)   (package app)   (checks and prints)
//
// For a while the store keeps its promise: it detects conflicting transactions
// and refuses one of them. Then the same files are reopened with that detection
// switched off, which is an option of Badger's. Nothing else changes, no error is
// ever returned, and clients begin to overwrite each other's transfers. Only what
// the clients saw tells so.
//
// # Non-obvious
//
//   - Every write has a value of its own, "balance#n" with n counted over the
//     whole run, so that a read names its writer. A bank that stores bare balances
//     could be watched as well, but with less certainty.
//   - The clients' clock is the wall clock at the start and the monotonic clock
//     after, so that an adjustment of the machine's time in the middle is not
//     mistaken for an anomaly.
//   - A transaction that Badger refuses is recorded as aborted, with what it did:
//     a client that read from it would be an anomaly too.
package demo
