// Package history reads whole histories, ours and other tools', for the batch
// checker: from a file, a directory, a tar, compressed with gzip or zstd or not.
//
//	hs, err := history.Open("h.jsonl.gz", history.Options{})
//
//	path ─▶ unpack ─▶ recognise ─▶ a format's reader ─▶ []History
//	        gzip        by content    isowatch.go, dbcop.go,
//	        zstd, tar                 polysi.go, cobra.go, …
//
// A History is ready for an engine: its transactions have ids that are unique
// in it, and those of one session stand in session order. Its Header holds what the
// format implies, such as that every key starts as 0; nobody reading it needs to
// know where it came from.
//
// Bad input is a *reject.Error that names the file, the line and the field, or the byte;
// any other error is the environment's. Nothing in an input makes these readers
// panic, or allocate much more than was read; Options.SizeMax bounds that.
//
// # What the formats are mapped to
//
//   - isowatch: the lines of ingest/codec, after a header if there is one. Several
//     databases in a file are several histories. The same record again is dropped
//     and counted; the same id with other content is an error. A session's records
//     take its seq as their order where they have one, whatever their lines' order.
//   - dbcop-bincode (dbcop, PolySI): unwritten keys are 0. A transaction without
//     success is aborted: its writes are kept, as somebody may have read them. Failed
//     operations are left out and counted. The times are the run's, so transactions have none.
//   - polysi-text (PolySI, Plume): unwritten keys are 0. Transaction -1 is an aborted one.
//   - cobra-logs: a value is the write id that Cobra gave it, and unwritten keys are
//     absent. Timestamps of logs that have them are not used: Cobra does not say
//     by which clock they were taken.
//   - jepsen-edn, jepsen-json: a process is a session; an invocation and its completion are a
//     transaction, whose times are their places in the file, as the order of lines is the
//     clock. Completions without invocations have no times. Unwritten keys are absent.
//     What operations other than :txn become is said in jepsen_workload.go; those that no
//     record can say are refused. Names of keys are EDN, strings without quotes.
//   - porcupine-etcd-log, porcupine-kv-edn: likewise; porcupine.go says what a failed
//     cas becomes, porcupine_strings.go what appending to a string.
//   - awdit-test: there is no initial state, so unwritten keys are absent, which no read can
//     say: what was read and not written is out of thin air.
//   - dbcop-hist, dbcop-json: ==? and null are reads of unwritten keys, which are absent. So is
//     version 0, unless a committed transaction writes it.
//   - dbcop-yaml: as dbcop-bincode.
//   - 3ts-log, hermitage-sql: transcripts of SQL, see transcript.go. They can't be written.
//   - timekiller-kv-json, timekiller-list-json: times are the ranks of the database's own
//     timestamps; timekiller.go says what they order, and what unwritten keys hold.
//
// # Writing
//
// Write is the way back (write.go: what a format can say; write_values.go: what
// values become; a file per family of formats), for conversion: verdicts stay, and
// what can't be said is refused with the transaction and operation that it is.
//
// To add a format, write its reader in a file of its own and add a line to the
// table in format.go; a line of text is best found by its first bytes. Its writer
// registers itself.
package history
