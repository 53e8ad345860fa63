// Package app is the monitor's lifecycle: it wires source, codec, order, engine,
// alerts, store and delivery, and runs the one loop that drives them.
//
//	source ─▶ reader ─▶ batches ─▶ loop ─▶ Commit ─▶ deliver
//	          decodes   (bounded)  order, engine    one step   retries
//	                               alerts           on disk    for ever
//
// Goroutines: the reader, the loop, one per receiver, and the HTTP server. The
// loop alone touches orders and engines, one of each per history (`db`); the
// reader and the loop are joined by a channel with a fixed capacity, so that a
// slow loop slows the reading and nothing grows.
//
// # What a stored offset means
//
// Two offsets are kept per partition, in one atomic step with dead letters and
// alerts:
//
//   - seen: everything before it was decoded and counted once. A dead letter is
//     made for records at or after it only, so that none is made twice.
//   - resume: everything before it has been judged and lies further back than any
//     running transaction can reach. A restart reads again from here, so that the
//     engines have their context back and an anomaly that straddles the restart
//     is still found. What is found a second time has the same id, and is
//     delivered once.
//
// After a restart the records before resume are unseen: the engines run with
// partial coverage, whatever the configuration says, and the log tells so.
//
// # Loss
//
// A record that can't be decoded, a hole in the offsets, a record that comes too
// late: each may have held a write, so that from then on "nobody wrote this" can't
// be said any more. The first loss turns the coverage of the histories that
// it may touch from complete to partial, with a line in the log, for good.
package app
