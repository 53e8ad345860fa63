// Package certificate checks the proof of a satisfied verdict: an order of the
// transactions, or of their starts and commits, that explains everything the
// clients saw. It is the reason why a "satisfied" need not be believed: it
// shares nothing with the engine that found the order but the types of records
// and verdicts, and is small enough to be read in one sitting.
//
//	err := certificate.Replay(result, txns, opt) // nil, or an *Error that says where it fails
//
// What makes an order a proof is described in docs/certificates.md; its files are package certfile's.
//
// # What is replayed
//
// For ser, sser and lin the certificate is a serial order:
//
//	T1 T3 T2
//
// and for si, strong-si and pc an order of starts and commits:
//
//	start T1, start T3, commit T1, start T2, commit T3, commit T2
//
// Replay walks through it once, holding what the database would hold, and
// checks that
//
//   - every committed transaction is there exactly once, its start before its
//     commit; aborted ones are not; ones of unknown outcome may be;
//   - a transaction starts after the commits of its session's predecessors, and
//     for the real-time levels after the commits of whatever had ended before
//     it started by more than the clocks' skew; unknown ones precede nothing;
//   - each read returns the transaction's own last write of the key, or else
//     what was committed at its start, and a key read twice the same twice;
//   - for si and strong-si, nobody committed a write of a key between the start
//     and the commit of another transaction that writes it.
//
// It compares values, not writers: where several transactions wrote a value it
// is the same to it which of them was read.
//
// For cc, ra, rc and g1 the certificate is an order of commits that contains
// session order and read-from, and is held against the axioms; see commits.go.
// There a read's writer matters. Of those that commit before the reader only one
// may have written the value, or the certificate names the one that was read
// (verdict.Source). A list is read from all who appended what it shows, and the order has
// to be theirs, but at g1.
//
// Orders of commits are for what was found at these levels. A level that holds because a stronger
// one does is proved by that one's order, replayed as above, and nobody needs to be named.
//
// Replay looks for nothing: whoever found the verdict knows what it read.
//
// # What nobody is known to have written
//
// With complete coverage and an unknown initial state, the first read of a key
// that nobody wrote before it in the order settles its initial value, unless
// another transaction writes that value somewhere.
//
// With partial coverage a value that no other recorded transaction writes may
// come from an unseen one, which has no place in the order: such a read is
// compared with nothing but its transaction's other reads of the key. The same
// goes for null, the empty list, the declared initial value (somebody may have
// deleted the key, or put it back), and a list whose last element nobody is
// recorded to have appended. In other lists, elements that nobody is recorded
// to have appended are passed over. A certificate then says no more than what
// it checked: that the reads of recorded values are explained.
//
//	file            what
//	certificate.go  Replay, and what does not depend on values
//	clock.go        real-time order
//	walk.go         the imaginary database: serial orders, and starts and commits
//	object.go       what it holds at a key; lists
//	claim.go        what nobody is to have written
//	commits.go      the axioms of g1, rc and ra; causal.go: of cc
//	writers.go      whom each read is from; versions.go: of lists
//
// # Cost
//
// One pass in linear time and space for serial orders and orders of starts and
// commits. g1 is linear, rc and ra take O(n^1.5) time at worst, cc O(n·k) for k
// sessions, all in linear space.
package certificate
