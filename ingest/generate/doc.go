// Package generate makes histories as a database's clients would see them:
// valid at a chosen isolation level by construction, seeded, as long as one
// wants, in memory that depends on the number of sessions and keys alone (of keys
// beyond 4 million, on how many of them are written); with anomalies planted, if
// asked for.
//
//	g, err := generate.New(generate.Config{Level: verdict.SI, Transactions: 1_000_000, Seed: 7})
//	…
//	write(g.Header())
//	for t := range g.Transactions() {
//		write(t)
//	}
//
// # How a valid history is made
//
// A simulated store executes transactions of simulated sessions in simulated
// time. Each session runs one transaction after the other, with a random
// duration and a random pause; what matters happens at instants, which a heap
// keeps in order:
//
//	          start                      end
//	session 1   |-----------o-------------|          serializable: reads and
//	session 2        |------------o---|              writes at one instant
//
//	session 1   |--r-------------------c--|          snapshot isolation: reads
//	session 2        |--r-----------c-|              at one, writes at another
//
// Whatever the instants are, the execution is serializable, or snapshot
// isolated if a commit is refused that would overwrite what was committed
// since its reads. If all instants lie between start and end it also keeps
// real time (sser, strong-si). For ser and si a share of the transactions
// (Config.Stale) executes, or takes its snapshot, before it starts, yet after
// its session's previous one: as from a replica that lags.
//
// At pc nobody is refused; at lin a transaction keeps to one key. The levels below choose
// among several versions of a register: see choice.go.
//
// Instants have nothing to do with the order of ends, in which records are
// written: as in life, a read may end before its writer does.
//
// # Lists
//
// With the workloads Append and Mix keys may be lists, to which transactions append
// elements that are unique in the list. A list gets so many (Config.ListAppends);
// then a new one takes its place, as otherwise reads would grow without end. The
// generator forgets a retired list with the last transaction that uses it.
//
// # Anomalies
//
// An anomaly is a handful of scripted transactions on keys that nobody else
// uses, run by sessions of the workload between their other transactions, with
// times as the real thing would have; see anomaly.go for the scripts. Each first
// writes the versions that it plays with, so that it is found even by who
// knows nothing of the initial state, and breaks exactly the levels that it is
// known for. With Append the same scripts are played with lists.
//
// # Hard histories
//
// Hard is of another kind: no store executes it, it is a formula of propositional
// logic in the form of a history, and whether it is valid is not known. Triangle is a graph
// as a history, valid if it has no triangle; a lower bound for checkers of weak levels.
package generate
