// Package frontier remembers what may be forgotten of everything else: per key
// the last writes that a later transaction may still read. It is what closed
// segments of a stream leave behind (design 4, "Closing"). It is pure: no clock,
// goroutine or I/O.
//
//	released records ──▶ Forget ──▶ key ─▶ version, version, …   at most MaxPerKey
//	                                key ─▶ version                with its writer's
//	                                key ─▶ (only lossy)           session, times, id
//	                                   │
//	              Stubs, All ◀─────────┤ too many keys: Spill ──▶ disk
//	  transactions with nothing        │                Answer ◀── disk
//	  but these writes: the seed       └─ Checkpoint ──▶ parts ──▶ Restore
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
// first. Needs names the keys that must be asked for before Stubs or State are
// asked about them, and Answer takes what the disk says. To forget a write of a
// key that is not in memory needs no answer: what the disk has is put beneath
// it when it is asked for.
//
// What is on disk is never ahead of a checkpoint from which a restart may begin:
//
//	Spill        gives only keys that the last durable checkpoint holds, so
//	             whatever is overwritten on disk is not what a restart reads
//	Checkpoint   says of keys that were given to Spill, and have not changed
//	             since, that they are gone: it must not be made durable before them
//	Durable      lets them go from memory
//
// # Checkpoints
//
// A checkpoint is a part: what changed since the part before, and a share of what
// did not, going round and round. After a round all parts before it are of no
// use: Floor says which are. So a checkpoint costs about twice what changed,
// never a pause, and all parts together a few times the frontier.
//
//	part := magic, version, number, floor, counters, gone…, unchanged…, changed…, CRC-32C
package frontier
