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
//	record.Transaction
//	      │ Step
//	┌─────▼─────┐   names as numbers, INT, own writes
//	│  intake   │─────────────────────────────────────┐
//	└─────┬─────┘                                     │
//	┌─────▼─────┐   what is known of the records;     │
//	│  history  │   every stage below asks it         │
//	└─────┬─────┘                                     │
//	┌─────▼─────┐   thin air, aborted, intermediate   │
//	│ resolver  │─────────────────────────────────────┤
//	└──┬─────┬──┘                                     │ findings
//	   │     └─ reads by writer ──▶ weakChecks ───────┤
//	   │ reads by version            g1, rc, ra, cc   │
//	┌──▼────────┐                               ┌─────▼─────┐   violations   ┌──────────┐
//	│  graphs   │─ cycles, unsat ──────────────▶│ evidence  │───────────────▶│  output  │
//	└───────────┘   strands, polygraphs         └───────────┘                └──────────┘
//
// Each stage knows those that it asks, and none knows the Engine, which says when: who is admitted, when levels are
// solved, and that a history is read again without times of which evidence says that they made a finding.
//
//	file          what
//	options.go    what is asked and assumed
//	engine.go     when transactions are admitted: as they come, by time, in bulk; when levels are solved
//	intake.go     records are read into numbers
//	history.go    what is known of them; names.go and values.go: its tables
//	writers.go    whom a read may be of, by what is known and may be assumed
//	resolve.go    which version a read saw, or may have, and when that is certain; anomalies.go: what none can have
//	lists.go      the same for lists, and the order of versions that they show
//	graphs.go     the polygraphs, together and apart, and made anew
//	strand.go     a history, or part of one, read into polygraphs
//	evidence.go   findings as violations, with what proves them
//	output.go     what is told, and once
//	report.go     findings judged, and verdicts
//	weaklevels.go, weakchoices.go
//	              g1, rc, ra, cc: package weak's checker is told of each transaction and each read beside, or without,
//	              the strands
//
// Sub-packages, each importing only those before it: paged, budget, verdict, version, graph, sets,
// reach, weak, sat, acyclic, constraint. Package certificate, and internal/lab/oracle, judge
// independently what is said.
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
//   - Transactions have three numbers: TxnID counts every Step, the ordinal those
//     that are, or may be, committed, the slot is the place in the order of admission.
//   - Polygraphs may use times for levels that do not have them (Options.Clock).
//     Edges that come from it are marked Assumed, and a proof that has one is
//     checked again from the records before it is reported (report.go, judge).
package incremental
