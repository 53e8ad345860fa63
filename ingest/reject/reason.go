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

// table gives each reason its label, and what it means.
var table = [numReasons]struct{ label, meaning string }{
	None: {"none", "nothing is wrong"},

	BadJSON:        {"bad-json", "the bytes are not one JSON object, or something follows it"},
	BadProtobuf:    {"bad-protobuf", "the bytes are not one message of the schema"},
	InvalidUTF8:    {"invalid-utf8", "a string is not UTF-8, or escapes half of a surrogate pair"},
	TooDeep:        {"too-deep", "a value nests too many lists or objects"},
	TooLarge:       {"too-large", "the record or the input is larger than its limit"},
	UnknownField:   {"unknown-field", "an object has a field that the format does not know"},
	DuplicateField: {"duplicate-field", "an object has the same field twice"},
	MissingField:   {"missing-field", "a field that every record needs is not there"},
	WrongType:      {"wrong-type", "a field holds another type than the format says"},
	OutOfRange:     {"out-of-range", "a number does not fit its field"},
	Negative:       {"negative", "a sequence number, time or duration is negative"},
	EmptyName:      {"empty-name", "a session, key, table, id or history has the empty string for a name"},
	NulInName: {"nul-in-name", "a session or history has the character U+0000 in its name, as only names of the " +
		"monitor's own do"},
	WrongLength:    {"wrong-length", "an operation does not have exactly three elements"},
	UnknownOp:      {"unknown-op", "an operation is of a kind that the format does not know"},
	UnknownStatus:  {"unknown-status", "the status is none of those the format knows"},
	UnknownEvent:   {"unknown-event", "an event is of a kind that the format does not know"},
	UnknownSetting: {"unknown-setting", "a header's setting has a value that does not exist"},
	OneTimeOnly:    {"one-time-only", "a record has a start without an end, or the other way round"},
	TimeBackwards:  {"time-backwards", "a transaction ends before it starts"},

	DuplicateID:  {"duplicate-id", "two records have the same id and other content"},
	DuplicateSeq: {"duplicate-seq", "two records of a session have the same sequence number"},
	SeqMixed: {"seq-mixed", "some records of a session have sequence numbers, some not, and the lines are not in " +
		"their order"},
	MisplacedHeader: {"misplaced-header", "a header stands behind the first line"},
	NotOpen:         {"not-open", "an event belongs to a transaction of which no begin has come, in its partition"},
	Contradiction:   {"contradiction", "an event says something else than an earlier one of the same transaction"},

	TooManyHistories: {"too-many-histories",
		"the record is of another history (db) than those watched, which are as many as there may be"},

	ContentType:    {"content-type", "a message's content-type is not known"},
	EmptyInput:     {"empty-input", "there is not one transaction"},
	ForeignBytes:   {"foreign-bytes", "the bytes are of no known format"},
	Truncated:      {"truncated", "the input ends in the middle"},
	BadCompression: {"bad-compression", "gzip, zstd or tar data is damaged"},
	BadStructure:   {"bad-structure", "a foreign format's file contradicts itself"},
	Unsupported:    {"unsupported", "a foreign format's file uses a feature that is not understood"},
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
