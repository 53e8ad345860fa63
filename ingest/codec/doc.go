// Package codec turns the bytes of a transaction record into a
// record.Transaction, and back. It is pure: bytes in, values or a *reject.Error
// out; it never panics on any bytes and never keeps them.
//
// # The format
//
// One JSON object per Kafka message or per line of a file:
//
//	{"db":"orders","session":"api-3/7","seq":42,"id":"api-3/7#42",
//	 "start":1732160000123456789,"end":1732160000125000000,"status":"committed",
//	 "ops":[["r","acct:1",100],["w","acct:1",90],["append","feed:9",17],["r","feed:9",[3,17]]]}
//
//	field    type             when it is missing or null
//	session  non-empty string refused
//	status   committed, aborted or unknown
//	                          refused
//	ops      list, maybe empty
//	                          refused
//	db       non-empty string "default"
//	seq      integer >= 0     the record has none: arrival order is session order
//	id       non-empty string SESSION#SEQ; empty without a seq: whoever knows the
//	                          record's position has to make one from it
//	start    integer >= 0, nanoseconds
//	end      the same, >= start
//	                          both or neither
//
// Operations are lists of exactly three:
//
//	["r", KEY, VALUE]         read; null: the key was absent
//	["w", KEY, VALUE]         write; null: delete
//	["append", KEY, VALUE]    add to the list at KEY
//	["rp", {"table":T,"where":W}, {ROW:{…},…}]      rows that a predicate returned
//	["wp", {"table":T,"where":W}, {"set":{…}}]      what a predicate's rows were given
//
// A history file may open with a header, see Header.
//
// # Strictness
//
// What could hide a mistake is refused: unknown fields, a field twice, bytes after the
// record, numbers that do not fit, strings that are not UTF-8 (encoding/json
// would make different broken strings equal), more than DepthMax nested values. Sequence
// numbers and times are written without fraction or exponent, because a producer
// that writes 1.7e18 has lost the nanoseconds.
//
// # Values
//
// Values are any JSON and are compared by what they are, not by how they are
// written: 1.0 and 1e0 are 1, and an object's fields have no order.
// So each has one canonical form (canonical.go, number.go). Numbers are exact
// whatever their size, and 1e999999999 takes no more memory than its text.
//
// # Cost
//
// One pass over the bytes, by hand: several times less than general decoders need
// (BenchmarkDecode beside BenchmarkDecodeStandardLibrary). A Decoder makes a name once and
// remembers it in a bounded table, so that a record costs two allocations, its id and its
// operations. Who keeps whole histories has it Pack them: records as AppendJSON writes them,
// which all of ours are, then become a few bytes each without a string or an
// allocation, for less than half of the time and without anything for the garbage
// collector to follow (BenchmarkPack). Others are decoded and packed, which FuzzPack
// compares.
//
// Files: decoder.go the record, ops.go operations, scan.go strings and
// integers, word.go eight bytes at a time, pack.go records in AppendJSON's form,
// canonical.go and number.go values, header.go, encode.go.
package codec
