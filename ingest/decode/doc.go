// Package decode turns a source's messages into batches of packed records, in
// parallel and yet in the source's order, and batches into bytes for the journal.
//
//	source.Source           Workers goroutines            whoever calls Read
//	┌────────┐ batch ┌─────┐ part  ┌────────────────┐      ┌───────────────┐
//	│ Read   │──────▶│split│──┬───▶│ Pack, seal,    │─done─▶ in order,     │──▶ *Batch
//	└────────┘       └─────┘  │    │ hash           │      │ events joined │
//	                          │    └────────────────┘      └───────────────┘
//	                          └───────── queue of parts ─────────▲
//
// One goroutine reads the source and cuts large batches into parts of at most
// RecordsMax messages. A part goes into a queue, which keeps the order, and to the workers;
// Read takes the first of the queue and waits until it is done. So what comes out does
// not depend on how many workers there are or who was faster: a part's packing knows nothing of
// other parts.
//
// What waits is bounded in parts and in bytes, from when the source has handed it out
// until Read hands it on. Beyond that the source is not read, and has bounds of
// its own.
//
// # Content types
//
// How a message's bytes become a record depends on its content type: there is a format for each, which
// packs into a packed.Chunk and adds nothing when it returns an error.
//
// A message may also be an event, a part of a record (begin, an operation, the end). Workers
// only take it apart. An assemble.Assembler for each partition makes records of events, in Read, in
// their order; a record stands where its last event does. Batch.Resume says from where on events
// would have to be read again, and Batch.State what else is needed.
//
// # Names of records
//
// A record that names itself neither by id nor by seq gets an ID here: from what it says if
// it has times (record.AppendContentID), from its position otherwise
// (record.AppendPositionID). Both are the same when it is read again.
//
// Files: stage.go the goroutines, work.go what a worker does, assemble.go events, batch.go what comes
// out, marshal.go its bytes.
package decode
