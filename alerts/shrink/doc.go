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
// Leaving out a read only takes a constraint away, so what is a violation
// without it is one with it. Leaving out a write is another matter: a read of it
// would then seem to be of the initial version, of another writer of the same
// value, or of nobody, and a proper history may become a violation. So a write
// goes only when no remaining read may have come from it; with a write go all
// reads that returned its value. What is left is therefore always part of the
// truth, whatever the judge assumes of values that nobody wrote.
//
// # Cost
//
// Delta debugging: ever smaller groups are tried, first of transactions, then of
// operations, until nothing more can go or the judge was called as often as it
// may be. When it was not, the result is minimal: no transaction and no
// operation can go alone.
package shrink
