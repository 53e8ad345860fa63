// Package retain keeps the transactions that an engine has taken in, by the
// number it gave them, for as long as evidence may ask for them. This version
// keeps them in memory; whatever keeps them on disk joins behind the same
// interface, Records, and can use the same block format.
//
// Evidence is asked for rarely, and millions are kept for it: so they are small
// and cheap to put away, and it is the asking that pays.
//
//	Append ─▶ open block: 256 records, encoded     ─▶ full: compressed, sealed
//	                                                   │
//	Get(id) ◀─ decode the block, keep it decoded ◀─────┘   oldest ones forgotten
//
// # The block
//
// A block holds consecutive records and stands alone: to read any needs the block
// and nothing else. A record is
//
//	flags    status, seq?, times?, id is session#seq?, what differs from the default
//	session  string
//	seq      difference from the session's previous one in the block
//	id       string, unless it is the session, '#' and seq
//	start    difference from the previous record's start
//	length   end - start
//	ops      their number, then for each: kind and kind of value in a byte,
//	         key, value, predicate
//
// Numbers are varints, signed ones zigzag. Integer values are differences from the
// previous integer value in the block. Strings come in two parts: "acct:1042" is a
// prefix "acct:", which the block knows by number after its first use, and the
// number 1042; so keys made of a name and a number, the common ones, take three
// bytes and no dictionary that grows with the number of keys. Sealed blocks are
// compressed with zstd at its fastest level.
//
// The decoder trusts nothing: it checks every length against what is left and
// returns an error, as a block on disk may be damaged.
package retain
