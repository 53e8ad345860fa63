// Package incremental is the engine: a pure state machine that takes
// transactions and ticks in and gives verdicts out. It has no clock, goroutine,
// logger or I/O; the same input gives the same output, byte for byte.
//
//	e := incremental.New(incremental.Options{Levels: []verdict.Level{verdict.SI}, Online: true})
//	id := e.Step(&txn, arrival)         // for each transaction, in the order of package window/order
//	out := e.Tick(watermark)            // now and then: what was found
//	results := e.Close()                // at the end: a verdict per level
//
// The batch checker is the same engine with Online unset: all is admitted, in
// the order of time or in bulk, by Close.
//
//	            record.Transaction
//	                    │ Step
//	             ┌──────▼──────┐  INT, own writes
//	             │   intake    │──────────────────────┐
//	             └──────┬──────┘                      │
//	   names as numbers │ reads and writes by cell    │
//	             ┌──────▼──────┐  thin-air, aborted,  │
//	             │   engine    │  intermediate, ...   │
//	             │  (resolve)  │──────────────────────┤
//	             └──────┬──────┘                      │
//	     reads by       │ version                     ▼
//	             ┌──────▼──────┐  divergence    verdict.Violation
//	             │   strand    │──────────────────────▲
//	             └──────┬──────┘                      │
//	   one a level kind │ edges, blocks, choices      │
//	             ┌──────▼──────┐  cycles, unsat       │
//	             │ constraint. ├───────────▶ report ──┘
//	             │  Polygraph  │             checks again what rests on times,
//	             └─────────────┘             and finds the evidence
//
//	file        what
//	options.go  what is asked and assumed
//	intake.go   records are read into numbers
//	history.go  what is known of them; names.go and values.go: its tables
//	writers.go  whom a read may be of, by what is known and may be assumed
//	engine.go   when transactions are admitted: as they come, by time, in bulk
//	resolve.go  which version a read saw, or may have, and when that is certain
//	lists.go    the same for lists, and the order of versions that they show
//	strand.go   a history, or part of one, read into polygraphs
//	report.go   violations, evidence, verdicts
//	weaklevels.go, weakchoices.go, weakreport.go
//	            g1, rc, ra, cc: the engine tells package weak's checker of each
//	            transaction and each read beside, or without, the strands
//
// Sub-packages, each importing only those before it: paged, graph, clock,
// reach, version, weak, sat, acyclic, constraint. Package verdict holds what is said; oracle
// and certificate judge it independently.
//
// Non-obvious:
//   - A cell is a pair of key and value; a version is what one transaction made
//     of a key. Where several transactions wrote one value a cell has several
//     versions; a read of it is a choice among them, made when all are known.
//   - A transaction of unknown outcome gets a slot when somebody may have read
//     from it, not before. It lies on no chain, and nothing follows it by
//     session or by the clock.
//   - As soon as a read is ambiguous each polygraph has a strand of its own,
//     because they may decide differently; until then they share one.
//   - Transactions have three numbers: TxnID counts every Step, the index
//     counts committed ones, the slot is the place in the order of admission.
//   - Polygraphs may use times for levels that do not have them (Options.Clock).
//     Edges that come from it are marked Assumed, and a proof that has one is
//     checked again from the records before it is reported (report.go, judge).
package incremental
