// Package protobuf turns the bytes of messages in Isowatch's protobuf form into
// records and events, and back. The schema is docs/isowatch.proto: it is the
// contract with producers, and what each field means is said there.
//
//	Message ─┬─ transaction: a whole record ─▶ packed.Chunk
//	         └─ begin, step, end: an event  ─▶ assemble.Event
//
// It is the codec package's twin: the same records, the same strictness, the same
// reasons (a *reject.Error whose Field is named as in the schema, as ops[2].read). So what general
// decoders of protobuf do, to keep unknown fields and to take the last of two, is not
// done here: both are refused, since they could hide a mistake. What the encoding itself leaves open is
// accepted as the specification says: fields in any order, numbers in more bytes than
// they need, lists packed or not, enums cut to 32 bits.
//
// # Cost
//
// By hand, in one pass over the bytes, for transactions whose fields stand in the order of their
// numbers, as encoders write them, and whose operations are a key and then an integer or null:
// these make no value and no string when they are packed (BenchmarkPack). All others
// are gone over twice: for what stands beside the operations, passing over each
// by its length, and for the operations. That way also says what is wrong.
//
// Files: decoder.go messages and transactions, ops.go operations and values, events.go, pack.go, cursor.go
// fields, encode.go.
package protobuf
