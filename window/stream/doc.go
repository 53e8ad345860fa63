// Package stream keeps one history of an unbounded stream in bounded memory: it
// puts what comes into order, lets one engine after the other judge it, and says
// what it found. It is pure: no clock, goroutine or I/O.
//
//	Entry ──▶ order ──▶ segments: engine, engine, … ──▶ Violation
//	                        │            ▲
//	                        └─▶ frontier ┘
//
// A History is a fold over numbered entries. An entry is a decoded batch of one
// partition and the time of day at which it was taken; who drives a History
// (cmd/monitor/app) numbers the entries and keeps them, so that a History can be
// made again from a Checkpoint and the entries that came after it: it finds then
// what it would have found. It is the driver's business to make entries durable
// before they are taken, and a checkpoint together with what was found until then.
//
//	h.Take(entry)
//	for h.Run(1000) {           // work off what is due
//		… h.Found …
//		… h.Needs, h.Answer …   // keys that are on disk
//		… h.Spill, h.Spilled …  // and those that go there
//	}
//	for _, v := range h.Found() { … v.Find … }
//
// # What does not matter
//
// As long as producers keep to the lateness, and but for the last moments of a
// stream that falls silent, what is found depends on the records alone: not on how
// they were cut into batches, in which order partitions were read, at what time of
// day, or how often a restart came between. The engine is told of time (Tick) at
// multiples of Every in the time of the records, and segments end at such ticks,
// after a number of records. While clocks are wrong by more than MaxSkew it depends on
// the time of day, too, how long nothing is concluded from what is absent (order, Patience).
//
// # What is forgotten
//
// Type segments says how: it tells the engine less than all, never anything that is not so. Package frontier says
// what is remembered and why that is sound, package segment where the stream is cut, and docs/windows.md what that
// means for verdicts.
package stream
