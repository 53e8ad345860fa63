package protobuf

import (
	"encoding/binary"
	"math"
	"strconv"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/isowatch/isowatch/ingest/codec"
	"github.com/isowatch/isowatch/ingest/reject"
)

// cursor reads the fields of one message, whose bytes are b and which stands at
// byte base of the record.
type cursor struct {
	b    []byte
	p    int
	base int
}

// Wire types, as tags have them.
const (
	varintType = uint64(protowire.VarintType)
	fixed64    = uint64(protowire.Fixed64Type)
	bytesType  = uint64(protowire.BytesType)
)

func (c *cursor) more() bool { return c.p < len(c.b) }

// broken says that the bytes are not what the encoding demands.
func (c *cursor) broken(want string) *reject.Error {
	return reject.New(reject.BadProtobuf, "at byte %d: want %s", c.base+c.p, want)
}

// varint takes one.
func (c *cursor) varint() (uint64, *reject.Error) {
	if c.p < len(c.b) && c.b[c.p] < 0x80 {
		c.p++
		return uint64(c.b[c.p-1]), nil
	}
	v, n := protowire.ConsumeVarint(c.b[c.p:])
	if n < 0 {
		return 0, c.broken("a whole varint")
	}
	c.p += n
	return v, nil
}

// tag takes what opens a field: its number and wire type, as one number.
func (c *cursor) tag() (uint64, *reject.Error) {
	at := c.p
	tag, err := c.varint()
	if err != nil {
		return 0, err
	}
	if tag>>3 == 0 || tag>>3 > uint64(protowire.MaxValidNumber) {
		c.p = at
		return 0, c.broken("a field's number")
	}
	return tag, nil
}

// bytes takes what is delimited by its length: a part of c.b.
func (c *cursor) bytes() ([]byte, *reject.Error) {
	n, err := c.varint()
	if err != nil {
		return nil, err
	}
	if n > uint64(len(c.b)-c.p) {
		return nil, c.broken(strconv.FormatUint(n, 10) + " bytes, which are not all there")
	}
	c.p += int(n)
	return c.b[c.p-int(n) : c.p], nil
}

// message takes a message within this one.
func (c *cursor) message() (cursor, *reject.Error) {
	b, err := c.bytes()
	return cursor{b: b, base: c.base + c.p - len(b)}, err
}

// fixed takes eight bytes.
func (c *cursor) fixed() (uint64, *reject.Error) {
	if len(c.b)-c.p < 8 {
		return 0, c.broken("eight bytes")
	}
	c.p += 8
	return binary.LittleEndian.Uint64(c.b[c.p-8:]), nil
}

// text takes a string.
func (c *cursor) text() ([]byte, *reject.Error) {
	b, err := c.bytes()
	if err == nil && !utf8.Valid(b) {
		return nil, reject.New(reject.InvalidUTF8, "the string at byte %d is not valid UTF-8", c.base+c.p-len(b))
	}
	return b, err
}

// name takes a string that names something, which is said by what: "the session".
func (c *cursor) name(what string) ([]byte, *reject.Error) {
	b, err := c.text()
	if err == nil && len(b) == 0 {
		return nil, reject.New(reject.EmptyName, "%s is the empty string", what)
	}
	return b, err
}

// session takes the name of a session.
func (c *cursor) session() ([]byte, *reject.Error) {
	b, err := c.name("the session")
	if err == nil {
		err = codec.CheckSession(b)
	}
	return b, err
}

// history takes the name of a history.
func (c *cursor) history() ([]byte, *reject.Error) {
	b, err := c.name("the history")
	if err == nil {
		err = codec.CheckHistory(b)
	}
	return b, err
}

// time takes one, or says that it is negative.
func (c *cursor) time() (int64, *reject.Error) {
	v, err := c.fixed()
	return notNegative(int64(v), err)
}

// count takes an unsigned number of 32 bits that is at most max.
func (c *cursor) count(max uint32) (uint32, *reject.Error) {
	v, err := c.varint()
	if err != nil {
		return 0, err
	}
	if n := uint32(v); n <= max { // larger ones are cut to 32 bits, as the encoding has it
		return n, nil
	}
	return 0, reject.New(reject.OutOfRange, "%d is more than %d", uint32(v), max)
}

// sequence takes a number in a session.
func (c *cursor) sequence() (int64, *reject.Error) {
	v, err := c.varint()
	return notNegative(int64(v), err)
}

func notNegative(n int64, err *reject.Error) (int64, *reject.Error) {
	if err == nil && n < 0 {
		return 0, reject.New(reject.Negative, "%d is negative", n)
	}
	return n, err
}

// float takes a double.
func (c *cursor) float() (float64, *reject.Error) {
	v, err := c.fixed()
	if err != nil {
		return 0, err
	}
	f := math.Float64frombits(v)
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return 0, reject.New(reject.OutOfRange, "%v is no value that a database holds", f)
	}
	return f, nil
}

// schema is what is known of a message.
type schema struct {
	name   string
	fields []field // by number
}

// field is one of a message's.
type field struct {
	name     string
	wire     uint64
	oneof    uint // the numbers of those of which there is one at most, as bits
	repeated bool
}

// field takes what opens the next field, and notes its number in set.
func (s *schema) field(c *cursor, set *uint) (number uint, err *reject.Error) {
	tag, err := c.tag()
	if err != nil {
		return 0, err
	}
	if tag>>3 >= uint64(len(s.fields)) || s.fields[tag>>3].wire != tag&7 {
		return 0, s.unknown(tag)
	}
	number = uint(tag >> 3)
	switch f := &s.fields[number]; {
	case f.repeated:
	case *set&(1<<number) != 0:
		return 0, reject.In(f.name, reject.DuplicateField, "%s has the field twice", s.name)
	case *set&f.oneof != 0:
		return 0, reject.In(f.name, reject.DuplicateField, "%s has another field of the same oneof", s.name)
	}
	*set |= 1 << number
	return number, nil
}

// unknown says what is wrong with a tag that the message does not have.
func (s *schema) unknown(tag uint64) *reject.Error {
	number := tag >> 3
	if number < uint64(len(s.fields)) {
		return reject.In(s.fields[number].name, reject.WrongType,
			"the field has wire type %d, which is not that of the schema", tag&7)
	}
	return reject.In(strconv.FormatUint(number, 10), reject.UnknownField, "%s has no field of number %d", s.name, number)
}

// missing says which of the fields that have to be there is not.
func (s *schema) missing(set uint, needed ...uint) *reject.Error {
	for _, number := range needed {
		if set&(1<<number) == 0 {
			name := s.fields[number].name
			return reject.In(name, reject.MissingField, "%s needs the field %q", s.name, name)
		}
	}
	return nil
}
