// Package shrink makes evidence small: fewer transactions and operations that
// are still a violation, judged by a function that is handed in.
//
//	T0: w(x,0)            T0: w(x,0)
//	T1: r(x,0) w(x,1)     T1: r(x,0) w(x,1)
//	T2: r(x,0) w(x,2)     T2: r(x,0) w(x,2)
//	T3: r(x,2) w(y,7)
//	T4: r(y,7)
//
// # What may be left out
//
// Evidence has to be honest: if what is left is a violation, the whole must be
// one, whatever the judge would say of it. So nothing is left out that could
// turn a proper history into a violation; docs/soundness.md, "Why evidence never
// invents a violation", has the argument.
//
//   - A read may go: that only takes a constraint away.
//   - A write goes with all reads that returned its value, of whichever writer.
//     A read that stayed would seem to be of the initial version, of another
//     writer of the same value, or of nobody.
//   - A transaction's last write of a key goes with its earlier ones.
//   - An append goes with all reads of lists that hold its element. With partial
//     coverage (Options.Unseen) these lists may stay as they are: the element
//     then belongs to a transaction that was not recorded. But only if nobody
//     else appends it; and all that the transaction appends to that list goes with it, and
//     what it read of the list after that.
//   - The last append to a key goes with all reads of it: without one, nobody
//     knows that the key holds a list.
//   - Where a key is both written and appended to, any write goes with all reads of
//     the key; where there are predicate reads no write goes.
//
// What is left is therefore always part of the truth, whatever the judge
// assumes of values that nobody wrote.
//
// # Cost
//
// Delta debugging: ever smaller groups are tried, first of transactions, then of
// operations, until nothing more can go or the judge has had as much work as it may
// (Options.Spent). When it has not, the result is minimal: no
// transaction and no operation can go alone. What follows from an earlier answer is
// not asked.
package shrink
