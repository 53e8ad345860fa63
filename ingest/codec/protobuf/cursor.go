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
// byte base of the record. The first error stays, and no field comes behind it.
type cursor struct {
	b    []byte
	p    int
	base int
	err  *reject.Error
}

// Wire types, as tags have them.
const (
	varintType = uint64(protowire.VarintType)
	fixed64    = uint64(protowire.Fixed64Type)
	bytesType  = uint64(protowire.BytesType)
)

func (c *cursor) more() bool { return c.err == nil && c.p < len(c.b) }

// fail ends the message with an error, if it is one.
func (c *cursor) fail(e *reject.Error) {
	if c.err == nil {
		c.err = e
	}
}

// broken says that the bytes are not what the encoding demands.
func (c *cursor) broken(want string) {
	c.fail(reject.New(reject.BadProtobuf, "at byte %d: want %s", c.base+c.p, want))
}

// varint takes one.
func (c *cursor) varint() uint64 {
	if c.p < len(c.b) && c.b[c.p] < 0x80 {
		c.p++
		return uint64(c.b[c.p-1])
	}
	v, n := protowire.ConsumeVarint(c.b[c.p:])
	if n < 0 {
		c.broken("a whole varint")
		return 0
	}
	c.p += n
	return v
}

// tag takes what opens a field: its number and wire type, as one number.
func (c *cursor) tag() uint64 {
	at := c.p
	tag := c.varint()
	if c.err == nil && (tag>>3 == 0 || tag>>3 > uint64(protowire.MaxValidNumber)) {
		c.p = at
		c.broken("a field's number")
	}
	return tag
}

// bytes takes what is delimited by its length: a part of c.b.
func (c *cursor) bytes() []byte {
	n := c.varint()
	if n > uint64(len(c.b)-c.p) {
		c.broken(strconv.FormatUint(n, 10) + " bytes, which are not all there")
		return nil
	}
	c.p += int(n)
	return c.b[c.p-int(n) : c.p]
}

// message takes a message within this one. Its error is this one's in the end.
func (c *cursor) message() cursor {
	b := c.bytes()
	return cursor{b: b, base: c.base + c.p - len(b), err: c.err}
}

// fixed takes eight bytes.
func (c *cursor) fixed() uint64 {
	if len(c.b)-c.p < 8 {
		c.broken("eight bytes")
		return 0
	}
	c.p += 8
	return binary.LittleEndian.Uint64(c.b[c.p-8:])
}

// text takes a string.
func (c *cursor) text() []byte {
	b := c.bytes()
	if !utf8.Valid(b) {
		c.fail(reject.New(reject.InvalidUTF8, "the string at byte %d is not valid UTF-8", c.base+c.p-len(b)))
	}
	return b
}

// name takes a string that names something, which is said by what: "the session".
func (c *cursor) name(what string) []byte {
	b := c.text()
	if len(b) == 0 {
		c.fail(reject.New(reject.EmptyName, "%s is the empty string", what))
	}
	return b
}

// session takes the name of a session.
func (c *cursor) session() []byte {
	b := c.name("the session")
	c.fail(codec.CheckSession(b))
	return b
}

// history takes the name of a history.
func (c *cursor) history() []byte {
	b := c.name("the history")
	c.fail(codec.CheckHistory(b))
	return b
}

// time takes one, or says that it is negative.
func (c *cursor) time() int64 { return c.notNegative(int64(c.fixed())) }

// sequence takes a number in a session.
func (c *cursor) sequence() int64 { return c.notNegative(int64(c.varint())) }

func (c *cursor) notNegative(n int64) int64 {
	if n < 0 {
		c.fail(reject.New(reject.Negative, "%d is negative", n))
	}
	return n
}

// count takes an unsigned number of 32 bits that is at most max.
func (c *cursor) count(max uint32) uint32 {
	n := uint32(c.varint()) // larger ones are cut to 32 bits, as the encoding has it
	if n > max {
		c.fail(reject.New(reject.OutOfRange, "%d is more than %d", n, max))
	}
	return n
}

// float takes a double.
func (c *cursor) float() float64 {
	f := math.Float64frombits(c.fixed())
	if math.IsNaN(f) || math.IsInf(f, 0) {
		c.fail(reject.New(reject.OutOfRange, "%v is no value that a database holds", f))
	}
	return f
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

// each takes the fields, the value of each by take, and says which there were.
func (s *schema) each(c *cursor, take func(number uint)) (set uint) {
	for c.more() {
		tag := c.tag()
		if c.err != nil {
			return set
		}
		if tag>>3 >= uint64(len(s.fields)) || s.fields[tag>>3].wire != tag&7 {
			c.fail(s.unknown(tag))
			return set
		}
		number := uint(tag >> 3)
		f := &s.fields[number]
		if set&(1<<number|f.oneof) != 0 && !f.repeated {
			what := "another field of the same oneof"
			if set&(1<<number) != 0 {
				what = "the field twice"
			}
			c.fail(reject.In(f.name, reject.DuplicateField, "%s has %s", s.name, what))
			return set
		}
		set |= 1 << number
		if take(number); c.err != nil {
			c.err = c.err.Under(f.name)
		}
	}
	return set
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

// need makes sure that fields that have to be there are.
func (s *schema) need(c *cursor, set uint, numbers ...uint) {
	for _, number := range numbers {
		if name := s.fields[number].name; set&(1<<number) == 0 {
			c.fail(reject.In(name, reject.MissingField, "%s needs the field %q", s.name, name))
		}
	}
}
