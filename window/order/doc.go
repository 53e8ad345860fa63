// Package order puts the transactions of one history into one order, whatever
// the interleaving in which the partitions of the input were read, and says how
// far the stream is complete: the watermark. It is pure: no clock, goroutine or
// I/O. The time of day comes in as a number.
//
//	partition 0  ──t──t──t──▶ ┐            sessions            heads by end
//	partition 1  ──t──t──────▶ ├─ Add ─▶  a: t─t─t  ─┐
//	partition 2  ──t──t──t──▶ ┘          b: t        ├─▶  a b c  ─▶ Next
//	                                     c: t─t     ─┘     while end < watermark
//
// A session is a queue in session order. Only its first record competes with
// those of other sessions, so session order cannot be violated, and every step
// costs O(log sessions). A record that follows one with a later end (a clock
// stepped back) waits for it and leaves under its end.
//
// Use:
//
//	switch o.Add(partition, txn, arrival) {
//	case order.Duplicate:     // count
//	case order.Contradiction: // dead letter
//	}
//	for r, ok := o.Next(); ok; r, ok = o.Next() {
//		engine.Step(r.Txn, r.Arrival)
//	}
//	engine.Tick(o.Watermark())
//
// # The watermark
//
// The watermark is the least end time that may still arrive. All that ends
// before it has been handed out by the time Next returns false. It is the least
// of the partitions' bounds, and never falls.
//
// Let delay = Lateness + MaxSkew. A producer sends a record at most Lateness
// after its transaction ended, and at most MaxSkew lies between any two clocks.
// So once a record that ended at e is in a log, whatever is appended to any log
// afterwards ended at e-delay or later. From this a partition's bound is
//
//   - (greatest end seen in it) - delay, while there is more to read, and
//   - (the stream's time when it was seen to be read to its end) - delay, as
//     CaughtUp tells. The stream's time is the greatest end seen in any partition,
//     plus what has passed since by the clock of the caller. So a partition
//     with little traffic holds nothing back, and a stream that falls silent is
//     handed out completely after delay.
//
// Nothing compares client clocks with the caller's: the latter only measures how
// much time passed. Histories with relative, logical or old times need no
// special treatment. As a second precaution the watermark never passes the
// greatest end seen by more than one nanosecond: silence proves nothing about
// times that the stream has not reached.
//
// Sessions hold nothing back on their own. A transaction that still runs will end
// later than now; and a hole in a session's sequence numbers is filled, within
// lateness, before the watermark reaches the record behind it, for what precedes
// in a session ended earlier. What is still missing then is a gap in the capture.
//
// # IdleAfter
//
// A partition that gives neither records nor CaughtUp for IdleAfter (its broker is
// away, or its reader stuck) stops holding the watermark back. When it comes back,
// what ended before the watermark is Late. If all are stuck the watermark goes
// to the greatest end seen.
//
// # When it is full
//
// A partition that lags makes the others wait in memory. At MaxBuffered waiting
// records Full is true; a caller that can pause partitions reads on only from
// those that Wants names. It may go on adding nevertheless: then the first in
// order leave early, the watermark follows them, and what arrives behind it is Late.
// Memory is bounded in both cases; only the second loses completeness, counted
// as Forced.
//
// # Records without times
//
// Without times, the broker's timestamp serves in place of the end: records leave
// in the order of (arrival, partition, place in it), sessions kept. In a partition
// that has shown records with times, one without stands where it arrived: at the
// partition's greatest end. It has no end that could be late.
//
// # Which times are dropped
//
// Released records that have times have ends that never fall, and each session's
// starts follow its ends. What does not fit is handed out as a copy with HasTimes
// false, flagged TimesDropped and counted: to forget a time order can hide a
// violation, but a clock that jumped would invent one. These are: a record that
// ends before its session's previous one, or starts before it by more than
// MaxSkew (the clock stepped back); one that ends MaxAhead or more after it
// arrived (the clock runs ahead; it must not drag the watermark along); a late one.
//
// # Non-obvious
//
//   - CaughtUp must be called in the order in which partitions were read,
//     relative to the Adds of all partitions: it says that at this moment nothing
//     more was there, and "this moment" is measured in the ends seen so far.
//   - Add never moves the watermark unless the buffer is full. It moves in
//     Next, so after Next returned false, Watermark is consistent with what was
//     handed out.
//   - A session belongs in one partition. One that is spread over several is
//     ordered by seq; without seq its order is that of the reading.
//   - A record that comes after a successor of its session has left is
//     handed out as a session of its own (Detached): the engine takes the order
//     of Steps for session order, and a false one would be a false alarm.
package order
