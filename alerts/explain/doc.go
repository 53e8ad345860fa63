// Package explain puts a violation into words, for somebody who is woken by it:
// one sentence that says what happened, then every step with its reason, then
// why these steps can't all be true.
//
//	api-1#7 and api-3#42 both read acct:1 = 100 and both overwrote it, with 90
//	and 80: one of the two updates is lost. That breaks snapshot isolation (si).
//
// # Files
//
//   - explain.go: Explain, which puts the parts together, and what levels ask for.
//   - records.go: what the records say of a read or a write, and who may have made it.
//   - sentence.go: the one sentence, by name of the anomaly.
//   - missed.go: writes that were visible and missed, below prefix consistency.
//   - edge.go: an edge of a cycle with its reason; sentences with words for what an edge is of.
//   - lists.go: what lists that were read show of the order of their elements.
//   - writers.go: reads that several may have written, outcomes never learned.
//   - tree.go: either this or that, where no choice works.
//   - next.go: what to look at next, by name.
//
// # Non-obvious
//
//   - All that comes from the database passes through package text: it is cut
//     to a bounded length and holds nothing that a terminal obeys.
//   - Records may be missing. A sentence then says less, never something wrong.
//   - "There is no other possibility" is said of a tree of questions only if the
//     records show that every answer is there: all writers of a value, both
//     orders of two writes.
//   - Ordering words are chosen with care: "comes before" is an order in which
//     the database must have taken the transactions; "had ended before" is a
//     statement of clocks.
package explain
