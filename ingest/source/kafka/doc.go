// Package kafka reads transaction records from a Kafka topic so that nothing
// that was committed is lost, nothing that was not is seen, and what can't be
// read is said.
//
// # The way of a record
//
//	leader of partition 0 ──▶ fetch loop 0 ──▶ read-committed filter ─┐
//	leader of partition 1 ──▶ fetch loop 1 ──▶ read-committed filter ─┼─▶ queue ──▶ Source.Read
//	leader of partition 2 ──▶ fetch loop 2 ──▶ read-committed filter ─┘  (bounded, joined by time)
//	         any broker ◀──── topology: partitions, leaders, topic id
//
// A monitor reads all partitions, and no consumer group can take one away. Offsets are the caller's: they
// come in through Options.Offsets and go out in Batch.Next, to be stored in the
// same transaction as what the batch caused. The broker is never told.
//
// # Files
//
//	options.go    what can be configured, and its check
//	source.go     opening, reading, closing
//	topology.go   the topic: partitions, leaders, identity, start-up checks
//	partition.go  one fetch loop: offsets, gaps, retries
//	fetch.go      the request, and the response as it streams in
//	batch.go      record batches, and the read-committed filter
//	queue.go      the bound on what waits to be read, and which partition is next
//	wire.go       requests over kafka-go's connections
//	errors.go     whose fault an error is
//	produce.go    the other direction, for replay and demo
//
// kafka-go gives the connections (pool, TLS, SASL), the compression codecs and
// the producer. The fetch response is decoded here:
// docs/decisions/kafka-fetch.md says why.
//
// # Non-obvious
//
//   - Records of aborted transactions and the markers that end transactions are
//     on the wire also under read_committed; it is the reader who leaves them
//     out. Their offsets are used up, so they are no gaps.
//   - Every offset below a batch's last one is accounted for by that batch. So a
//     hole between two batches, or within one, is a gap: records that retention,
//     DeleteRecords or compaction took away.
//   - A fetch that starts in the middle of a batch returns the whole batch.
//   - The last stable offset, not the high watermark, ends what may be read: a
//     transaction that stays open holds back everything after it. UntilEnd
//     therefore ends at the last stable offset as of the start.
//   - A topic that was deleted and created anew has the same name and another
//     identity. Fetches name the topic by its identity where the broker can
//     (Kafka 3.1 and later), so that offsets of the old topic never pick records
//     of the new one.
//   - Partitions are read at the same pace by the broker's time, not by bytes: who
//     puts records in order keeps what is ahead until the others get there. A
//     partition that is behind is waited for a moment, and no time, however wrong,
//     holds a partition back for good.
//   - The first batch of a fetch comes whole, whatever limit the request states.
//     The response is therefore decoded while it arrives, and what it may hold in
//     memory is bounded here.
package kafka
