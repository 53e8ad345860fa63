// Package segment decides where a stream is cut. It is pure: no clock, goroutine
// or I/O.
//
//	released records ──▶ Add ──▶ sessions, their proofs ──▶ Cut ──▶ From, Kind, Complete
//	                              ends, fence keys,
//	                              snapshot readers
//
// A segment of the stream is judged by an engine of its own. The next segment
// begins with an overlap: records that the one before had too. What is before the
// overlap is remembered as a frontier only. A cut is the place From where the
// overlap begins, and it is Complete if everything before it is proved to precede
// everything that is still to come; then a cycle cannot lead from what comes back
// to what was forgotten, and those within one segment are found there
// (docs/windows.md, "Cuts").
//
//	… before From … | overlap, at least MinOverlap | still to come
//	      a         |                              |      b          a precedes b
//
// # What proves it
//
//   - Clock. All before From ended, and MaxSkew passed, before the last end of
//     each live session: sessions do one thing at a time, so what they do next
//     begins later. It proves order only where the level holds real time.
//   - Fence. A key that every session reads and writes, one after the other. These
//     transactions make a chain, as each reads what the one before wrote. What a
//     session did before its fence i precedes it, and fence i precedes every fence
//     j > i and whatever j's session does afterwards. (Cobra, section 6.1, has
//     such fences.)
//   - Snapshot. A transaction that reads all keys that were written. It comes after
//     the writers of what it read, and of what those overwrote, and before
//     whatever its session does afterwards.
//   - Limit. Nothing proves anything, but the segment has to end.
//
// With fences and snapshots every session proves for itself. One that has proved
// nothing since From, a new one or one that was silent, has no order against what
// is before: it Straddles until it commits a fence or a snapshot. So does, with
// the clock, a transaction that began before what is before From had ended. Add
// says so of each record, and the stretch that it touches is not complete.
//
// Everything is by observation. Memory is bounded: by the sessions that are
// followed, the overlap in steps of some records, and some keys.
package segment
