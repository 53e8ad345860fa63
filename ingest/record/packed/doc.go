// Package packed keeps whole histories in little memory: what a batch checker
// does with the records between decoding them and the evidence, for which it
// needs a handful of them again.
//
// A record.Transaction takes 112 bytes and 72 for each operation, most of it
// pointers that the garbage collector has to follow. Packed, an operation of the
// usual kind takes 8 to 12 bytes without a pointer (TestSize), and is taken out
// again in some 15 ns (BenchmarkAll).
//
//	one goroutine each                        one goroutine
//	┌──────────────┐ Seal  ┌───────────────┐ Append  ┌─────────┐ Records ┌─────────┐
//	│ Chunk        │──────▶│ Block         │────────▶│ Builder │────────▶│ Records │
//	│ Add, or      │       │ bytes         │         │ numbers │         │ At, All │
//	│ Begin Op End │       │ its own names │         │ names   │         │ Summary │
//	└──────────────┘       └───────────────┘         └─────────┘         └─────────┘
//
// Several goroutines make blocks of consecutive records; joining them in order
// gives every name one number for the whole history, in the order of first use,
// so that who was faster does not show.
//
// # A record
//
//	flags    a byte: status, seq?, times?, id spelled out?, …
//	db       name, if it is not that of the block's first record
//	session  name
//	seq      varint, if there is one
//	id       text, unless it is SESSION#SEQ
//	start    varint: difference from the record before
//	length   varint: end - start
//	ops      for each: a byte of kinds; key: two bytes, or six for numbers that
//	         are large; value: nothing for null, for an integer 0 to 8 bytes, the
//	         difference from the integer before, else text; predicate: text
//	end      a byte that begins no operation
//
// Varints are as encoding/binary has them, signed numbers zigzag. Operations have
// none: sizes that stand in front, and not in each byte, make no branch that can't be
// foretold. A name is its number within the
// block; a table per block gives the number within the history. A text is its length and its bytes: the strings of records that are
// taken out are parts of the block, which is a string itself. What differences
// refer to begins anew every 32 records, or every KiB, where At can begin to read.
//
// Nothing is lost: what is taken out is == to what was put in, operation by
// operation, if its values are in the codec's canonical form.
package packed
