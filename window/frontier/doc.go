// Package frontier remembers what may be forgotten of everything else: per key
// the last writes that a later transaction may still read. It is what closed
// segments of a stream leave behind (docs/decisions/0032). It is pure: no clock,
// goroutine or I/O.
//
//	released records ──▶ Forget ──▶ key ─▶ version, version, …   at most MaxPerKey
//	                                key ─▶ version                with its writer's
//	                                key ─▶ (only lossy)           session, times, id
//	                                   │
//	              Past, All ◀──────────┤ too many keys: Spill ──▶ disk
//	  transactions with nothing        │                Answer ◀── disk
//	  but these writes: the seed       └─ Snapshot ──▶ Restore
//	  of the next engine
//
// # Why it is sound
//
// A stub is a transaction that took place, with its place in its session and its
// times, without its reads and without the writes that nobody can read any more.
// To leave out reads, and to leave out edges, can hide a violation and never
// invent one. To leave out a *write* is different: whoever reads it later seems
// to read what nobody wrote. So a key of which any write was left out is Lossy,
// whatever the reason: its unseen writers are candidates without order and it
// has no initial version. What is not Lossy is known completely.
//
// That a version supersedes another decides only what is remembered, so it needs
// no proof to be sound. It is nevertheless proved, as a version that is not the
// last one is of no use and one that is still read is:
//
//   - by its session: the writer of the other precedes it there;
//   - by a read: its writer read the other and then wrote;
//   - by the clocks: the other's writer had ended, and MaxSkew passed, before
//     this one's began.
//
// A transaction of unknown outcome may take effect at any later time. It is kept
// beside, supersedes nothing, and is superseded only by one that read it.
//
// # Order
//
// Forget numbers the transactions. Stubs come in the order of these numbers,
// which is that of release and hence that of the ends, and never against the
// order of a session, as that of the ends alone may be where a clock stepped
// back.
//
// # Spilling
//
// More than MaxKeys keys do not stay in memory; those written least recently go
// first. Needs names the keys that have to be read back before anything is asked
// or forgotten of them, and Answer takes what the disk says: so nothing that is
// said depends on what is in memory. What was asked for stays until an engine ends
// (Begin), as its last writes will be forgotten then:
//
//	Needs, Answer ──▶ Past, State ──▶ … ──▶ Forget ──▶ Begin ──▶ Spill ──▶ disk
//	                                                              Gone  ◀── it is stored
//
// # Snapshots
//
// A snapshot is all that is in memory, and fits what is on disk at that time: who
// restores it has to take back what was spilled since (window/store does). To keep
// parts of what changed instead, in turn with parts of the rest, was tried: it
// costs less to write, but to let a key go takes two checkpoints then, and a
// history that must not depend on which keys are where can't be had without
// reading them back anyway.
package frontier
