// Package oracle judges tiny histories by brute force, straight from what the
// isolation levels mean operationally. It is the judge of every doubt: engine,
// closures, solver and replay checker must agree with it. Only tests import it.
//
// It shares nothing with the engine. There are no graphs, versions or cycles
// here: an imaginary database executes the transactions in every possible
// order and the oracle looks whether one of the executions answers every read
// as it was recorded.
//
//   - ser: there is a serial order of the transactions, keeping the order of
//     each session, in which every read returns what a serial execution from
//     the initial state returns. sser: the order also keeps real time.
//   - si: there is an order of starts and commits, one of each per transaction,
//     in which each session's next start follows the previous commit, every
//     read returns what had been committed at its transaction's start (its own
//     writes first), and no two transactions that write a common key overlap.
//     strong-si: starts also follow the commits that real time puts before them.
//   - pc: the same without the rule about overlapping writers.
//     At all of these, those who wrote a common key commit in the order of their LSNs, if both have one.
//   - cc, ra, rc, g1: there is a choice of a writer for each read and a commit
//     order as the axioms of Biswas and Enea (OOPSLA 2019) and Adya's G1 ask
//     for; see axioms.go. So are the session guarantees (HoldsGuarantee).
//   - lin: sser without sessions, of transactions on one key each.
//
// # What is assumed of values nobody wrote
//
// With an unknown initial state (record.InitialAny) a key starts with one
// unknown value. A read may return it only if no transaction, committed or not,
// anywhere makes that value: writes it to that key without having read it there
// before. Initial values are presumed different from those that are made; who
// writes what it read may have put back what was there.
//
// With partial coverage there may be any number of transactions that were not
// seen, each writing one key, at any time. They write no value that a seen
// transaction makes, unless UnseenUnique is false. Under
// si an unseen writer, too, must not commit while a seen writer of the same key
// is running. To a list that somebody appends to, unseen transactions append,
// one element each, and do nothing else.
//
// # Outcomes
//
// Aborted transactions take no effect, and their reads are not judged.
// Transactions of unknown outcome are tried both ways; one that took effect
// follows its session's predecessors and whatever ended before it started, but
// precedes nothing by session or clock.
//
// # Lists
//
// An append adds to the list that is there at commit; absent and [] are the
// same list. A key that is appended to starts empty, whatever the initial
// state. So does one that nobody changes and of which somebody reads [], under complete
// coverage: it is a list, too. For the weak levels its versions come in the order of commit, and who
// reads one reads from the writers of all its elements. A predicate
// operation reads each row of its table that the history names, at once, and of every row a version that fits what was
// seen of it; see Supported.
//
// # Cost
//
// Exponential: meant for at most six transactions or so, of at most 64 keys. A search remembers
// the database states from which it failed, which keeps five transactions well
// under a millisecond.
package oracle
