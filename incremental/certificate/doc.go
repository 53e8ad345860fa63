// Package certificate replays the proof of a satisfied verdict: an order of the
// transactions, or of their starts and commits, that explains everything the
// clients saw. It is the reason why a "satisfied" need not be believed: it
// shares nothing with the engine that found the order, and is small enough to be
// read in one sitting.
//
// # What is replayed
//
// For ser and sser the certificate is a serial order:
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
//     what was committed at its start;
//   - for si and strong-si, nobody committed a write of a key between the start
//     and the commit of another transaction that writes it.
//
// # What nobody is known to have written
//
// With an unknown initial state, the first read of a key that nobody wrote
// before it in the order settles its initial value, unless another transaction
// writes that value somewhere. With partial coverage such a value may come
// from an unseen transaction at any time; but under si the unseen commit must
// find a moment in which no seen writer of the key is running, after the last
// event that shows another value. With R a reader of 7, which nobody is seen to write:
//
//	commit W1(x)   start R: r(x, 7)                 fine: between the two
//	start W1(x)    start R: r(x, 7)   commit W1(x)  fine: before W1
//	start W1: r(x, 5) w(x, 6)   start R: r(x, 7)    refused: W1 saw 5 and runs
package certificate
