// Package reject names why a record, or a whole input, is refused. The reasons
// are a closed set: the same value is the label of the metric
// isowatch_rejected_total{reason=…}, the reason kept beside a dead letter, and
// a row of the table in the documentation (Table).
//
//	if e := reject.From(err); e != nil {
//		rejected.WithLabelValues(e.Reason.String()).Inc()
//	}
//
// An Error adds the place (file and line, or topic, partition and offset; then
// the field inside the record) and a sentence for whoever has to mend the
// producer:
//
//	orders.jsonl:17: field ops[2][0]: no operation is called "x": want r, w, append, rp or wp (unknown-op)
package reject

import "fmt"

// Reason is why something is refused. The zero Reason is none.
type Reason uint8

// The reasons: first those of one record, then those of a record among others,
// then those of an input as a whole. Their meanings are in the table below.
const (
	None Reason = iota

	BadJSON
	BadProtobuf
	InvalidUTF8
	TooDeep
	TooLarge
	UnknownField
	DuplicateField
	MissingField
	WrongType
	OutOfRange
	Negative
	EmptyName
	NulInName
	WrongLength
	UnknownOp
	UnknownStatus
	UnknownEvent
	UnknownSetting
	OneTimeOnly
	TimeBackwards

	DuplicateID
	DuplicateSeq
	SeqMixed
	MisplacedHeader
	NotOpen
	Contradiction
	TooManyHistories

	ContentType
	EmptyInput
	ForeignBytes
	Truncated
	BadCompression
	BadStructure
	Unsupported

	numReasons
)

// table gives each reason its label, what it means, and what mends it.
var table = [numReasons]struct{ label, meaning, remedy string }{
	None: {"none", "nothing is wrong", "nothing"},

	BadJSON:        {"bad-json", "the bytes are not one JSON object, or something follows it", "write one complete JSON object per message or line"},
	BadProtobuf:    {"bad-protobuf", "the bytes are not one message of the schema", "send one isowatch.v1.Message per Kafka message, without a prefix of a schema registry"},
	InvalidUTF8:    {"invalid-utf8", "a string is not UTF-8, or escapes half of a surrogate pair", "encode binary keys and values, for instance in base64 or hexadecimal"},
	TooDeep:        {"too-deep", "a value nests too many lists or objects", "flatten the value, or record a hash of it"},
	TooLarge:       {"too-large", "the record or the input is larger than its limit", "split the transaction, record hashes of large values, or raise the limit"},
	UnknownField:   {"unknown-field", "an object has a field that the format does not know", "correct the field's spelling or leave it out"},
	DuplicateField: {"duplicate-field", "an object has the same field twice", "write each field once"},
	MissingField:   {"missing-field", "a field that every record needs is not there", "add the field"},
	WrongType:      {"wrong-type", "a field holds another type than the format says", "write the type that the message names"},
	OutOfRange:     {"out-of-range", "a number does not fit its field", "write integers that fit 64 bits, times in nanoseconds"},
	Negative:       {"negative", "a sequence number, time or duration is negative", "count from zero; write times since 1970 or since the start of the run"},
	EmptyName:      {"empty-name", "a session, key, table, id or history has the empty string for a name", "name it; leave out optional fields that are not known"},
	NulInName:      {"nul-in-name", "a session or history has the character U+0000 in its name, as only names of the monitor's own do", "leave U+0000 out of session and db"},
	WrongLength:    {"wrong-length", "an operation does not have exactly three elements", "write [\"r\", key, value], also when the value is null"},
	UnknownOp:      {"unknown-op", "an operation is of a kind that the format does not know", "use r, w, append, rp or wp"},
	UnknownStatus:  {"unknown-status", "the status is none of those the format knows", "use committed, aborted or unknown"},
	UnknownEvent:   {"unknown-event", "an event is of a kind that the format does not know", "use begin, op, commit, abort or unknown"},
	UnknownSetting: {"unknown-setting", "a header's setting has a value that does not exist", "use one of the values that the message names"},
	OneTimeOnly:    {"one-time-only", "a record has a start without an end, or the other way round", "write both times or neither"},
	TimeBackwards:  {"time-backwards", "a transaction ends before it starts", "take both times from the same clock, start before begin and end after the commit's answer"},

	DuplicateID:     {"duplicate-id", "two records have the same id and other content", "make ids unique in their history"},
	DuplicateSeq:    {"duplicate-seq", "two records of a session have the same sequence number", "count every transaction of a session once, aborted ones too"},
	SeqMixed:        {"seq-mixed", "some records of a session have sequence numbers, some not, and the lines are not in their order", "number all transactions of a session or none"},
	MisplacedHeader: {"misplaced-header", "a header stands behind the first line", "give each history a file of its own, header first"},
	NotOpen:         {"not-open", "an event belongs to a transaction of which no begin has come, in its partition", "send begin first, and key all events of a session by it, so that they share a partition"},
	Contradiction:   {"contradiction", "an event says something else than an earlier one of the same transaction", "give every transaction of a session a name of its own, and every operation its number"},

	TooManyHistories: {"too-many-histories", "the record is of another history (db) than those watched, which are as many as there may be", "name databases in db, nothing that is new for each run or request; or raise window.histories"},

	ContentType:    {"content-type", "a message's content-type is not known", "produce application/json or application/x-protobuf, or leave the Kafka header out"},
	EmptyInput:     {"empty-input", "there is not one transaction", "check the path and that the recorder wrote something"},
	ForeignBytes:   {"foreign-bytes", "the bytes are of no known format", "name the format if it was not recognised; convert the file otherwise"},
	Truncated:      {"truncated", "the input ends in the middle", "copy the file again; a recorder that was killed may have left its last record unfinished"},
	BadCompression: {"bad-compression", "gzip, zstd or tar data is damaged", "copy the file again, or unpack it by hand"},
	BadStructure:   {"bad-structure", "a foreign format's file contradicts itself", "see the message; the file is not what its format promises"},
	Unsupported:    {"unsupported", "a foreign format's file uses a feature that is not understood", "see the message"},
}

// String is the reason's label.
func (r Reason) String() string {
	if r < numReasons {
		return table[r].label
	}
	return fmt.Sprintf("reason(%d)", uint8(r))
}

// Meaning says what is wrong, in general.
func (r Reason) Meaning() string {
	if r < numReasons {
		return table[r].meaning
	}
	return ""
}

// Remedy says what to do about it, in general.
func (r Reason) Remedy() string {
	if r < numReasons {
		return table[r].remedy
	}
	return ""
}
