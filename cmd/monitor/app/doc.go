// Package app is the monitor's lifecycle: it wires source, decoding, journal,
// histories, alerts, store and delivery.
//
//	source ─▶ decode.Stage ─▶ ingest ──────────────▶ queue ─▶ worker "a": stream.History ─▶ alerts
//	          in parallel,    number, journal,       queue ─▶ worker "b": stream.History ─▶ alerts
//	          in order        then hand on           (bounded)            │ checkpoint       │
//	                             │                                        ▼                  ▼
//	                             └──────────────────────────────────▶ keeper ─▶ store ─▶ deliver
//
// Goroutines: those of the stage, the ingest (ingest.go), one worker for each
// history (worker.go), one per receiver, one that lets the store free space, and the
// HTTP server.
//
//	ingest.go, entry.go, marks.go   what was read: numbered, journaled, handed on; where the input is
//	queue.go                        what waits for a history
//	worker.go, raise.go, proved.go  a history: its steps, its alerts, and what came of proofs
//	told.go                         which anomalies have an alert
//	checkpoint.go, restore.go       a history in the store, and made again from there
//	keeper.go, outbox.go            the store, and what it has no room for
//	life.go, receivers.go           what is news, and who hears of it
//	trouble.go, pulse.go            the monitor watches itself
//	status.go, http.go, guard.go    the page, and who may see it
//
// # Entries
//
// What the ingest takes is an entry: one decoded batch of one partition, the time of
// day, how many partitions there are, which share of a history's sessions is taken;
// all that is not in the records and that a history's state may depend on. Entries
// are numbered. The state of a history is a function of the entries so far, so that
// the journal of entries is all that has to be durable, and everything else can be
// had again:
//
//   - The ingest commits entries together with the input's offsets and the dead
//     letters, several at a time, and only then hands them to the workers.
//   - A worker commits a checkpoint every now and then: small, as it refers to the
//     journal for its records. What it finds is committed when it is found.
//   - A restart (restore.go) makes each history again from its checkpoint, gives it
//     the entries that came after, and goes on with the input at the stored offsets. What is found again has the same
//     id; a worker knows the last entry of the run before, and does not count it twice. There the restart is over.
//
// # Queues
//
// What waits for a history is bounded (queue.go). A search that takes long delays
// nobody but its own history: what its queue has no room for is left in the journal, and
// read from there. Reading pauses when that is too much, and the lag shows. With
// overload: sample-sessions a queue that
// fills up has whole sessions of its history left out instead. Which ones is part of
// the entry, as a replay must leave out the same ones.
//
// # A full disk
//
// The keeper (keeper.go, outbox.go) is all that writes. While the disk is full it
// holds what is to be written, and alerts are delivered from there. Offsets never
// run ahead of what is durable.
//
// # Non-obvious
//
//   - The number of the next entry is stored with the offsets. Entries from there on
//     are not valid: they are of a way back from a full disk that was not finished.
//   - Journal and checkpoints are of the input that the store was used for last, which is
//     stored with the offsets too. Another one begins behind its entries, and has the
//     checkpoints go.
//   - With --until-end a history is judged in one segment of window.max_transactions,
//     so that the answer is that of check. The last checkpoint is from before the end
//     was told: if the input goes on after all, so does the next run.
//   - Standard input can't be read again: nothing is journaled of it.
//   - Not all is a checkpoint or an offset that the store takes for one. Under names that no history has (reserved, in
//     marks.go) are, among checkpoints, events that wait for their transaction, what came of
//     proofs and what happened to the database; under the input's name with a suffix are, among offsets, what was
//     seen, of which topic, and the number of the next entry.
//   - A history that is first seen in an entry has its birth committed with that entry; a
//     restart would not know from where it has to be given entries otherwise.
package app
