// Package packed keeps records in little memory: whole histories, as a batch checker
// has them between decoding and the evidence, for which it needs a handful of
// them again; and blocks of a stream, which wait and may be asked for again.
//
// A record.Transaction takes 112 bytes and 72 for each operation, most of it
// pointers that the garbage collector has to follow. Packed, an operation of the
// usual kind takes 8 to 12 bytes without a pointer (TestSize), and is taken out
// again in some 15 ns (BenchmarkAll).
//
//	one goroutine each                        one goroutine
//	┌──────────────┐ Part  ┌───────────────┐ Append  ┌─────────┐ Records ┌─────────┐
//	│ Chunk        │──────▶│ Part          │────────▶│ Builder │────────▶│ Records │
//	│ Add, or      │       │ bytes         │         │ numbers │         │ At, All │
//	│ Begin Op End │       │ its own names │         │ names   │         │ Summary │
//	└──────────────┘       └───────────────┘         └─────────┘         └─────────┘
//	       │ Seal          ┌────────────────────┐ Marshal
//	       └──────────────▶│ Block              │─────────▶ bytes, and back
//	                       │ At, Head, Sums     │
//	                       └────────────────────┘
//
// Several goroutines make parts of consecutive records; joining them in order
// gives every name one number for the whole history, in the order of first use,
// so that who was faster does not show. A block stands for itself: each of its
// records can be taken out alone, in any order. TestBlockSize: 77 bytes for a record of
// eight operations on one of 10,000 keys each, of which 23 are its part of 4,096 records' names.
//
// # A record
//
//	flags    a byte: status, seq?, times?, id spelled out?, …
//	ops      a byte: how many operations; five if they are 255 or more
//	db, label names, if it is another db than that of the block's first record, or there is a label: then
//	         the number of its name and 1, else 0
//	session  name
//	seq      varint, if there is one
//	id       text, unless it is SESSION#SEQ or follows from the content
//	start    varint: difference from the base
//	length   varint: end - start
//	ops      of each: a byte of kinds; key: two bytes, or six for numbers that
//	         are large; value: nothing for null, for an integer 0 to 8 bytes, the
//	         difference from the integer before, else text; predicate: text
//
// Varints are as encoding/binary has them, signed numbers zigzag. Operations have
// none: sizes that stand in front, and not in each byte, make no branch that can't be
// foretold. A name is its number within the block; in Records, a table per block gives
// the number within the history. A text is its length and its bytes: the strings of records
// that are taken out are parts of the block, which is a string itself. The base are the
// first start and the first integer of the block: differences from the record before
// would be a byte shorter, and to read a record all before it would have to be.
//
// Nothing is lost: what is taken out is == to what was put in, operation by
// operation, if its values are in the codec's canonical form.
package packed
