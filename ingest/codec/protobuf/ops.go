package protobuf

import (
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/isowatch/isowatch/ingest/codec"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/reject"
)

// Numbers of an Operation's fields, and of those in it.
const (
	opRead, opWrite, opAppend, opPredicateRead, opPredicateWrite = 1, 2, 3, 4, 5

	opInteger, opText, opNull, opBoolean, opNumber, opIntegers, opJSON = 6, 7, 8, 9, 10, 11, 12

	predicateTable, predicateWhere = 1, 2
	integersValues                 = 1

	opOn    = 1<<opRead | 1<<opWrite | 1<<opAppend | 1<<opPredicateRead | 1<<opPredicateWrite
	opValue = 1<<opInteger | 1<<opText | 1<<opNull | 1<<opBoolean | 1<<opNumber | 1<<opIntegers | 1<<opJSON
)

var (
	operationSchema = &schema{"Operation", []field{
		opRead:           {name: "read", wire: bytesType, oneof: opOn},
		opWrite:          {name: "write", wire: bytesType, oneof: opOn},
		opAppend:         {name: "append", wire: bytesType, oneof: opOn},
		opPredicateRead:  {name: "predicate_read", wire: bytesType, oneof: opOn},
		opPredicateWrite: {name: "predicate_write", wire: bytesType, oneof: opOn},
		opInteger:        {name: "integer", wire: varintType, oneof: opValue},
		opText:           {name: "text", wire: bytesType, oneof: opValue},
		opNull:           {name: "null", wire: varintType, oneof: opValue},
		opBoolean:        {name: "boolean", wire: varintType, oneof: opValue},
		opNumber:         {name: "number", wire: fixed64, oneof: opValue},
		opIntegers:       {name: "integers", wire: bytesType, oneof: opValue},
		opJSON:           {name: "json", wire: bytesType, oneof: opValue},
	}}
	predicateSchema = &schema{"Predicate", []field{
		predicateTable: {name: "table", wire: bytesType},
		predicateWhere: {name: "where", wire: bytesType},
	}}
	integersSchema = &schema{"Integers", []field{integersValues: {name: "values"}}}

	kindOf = [...]record.OpKind{opRead: record.Read, opWrite: record.Write, opAppend: record.Append,
		opPredicateRead: record.PredicateRead, opPredicateWrite: record.PredicateWrite}
)

// next moves on to the next operation of a transaction whose fields are known to be
// well-formed; more is false behind the last.
func (c *cursor) next() (body cursor, more bool) {
	for c.p < len(c.b) {
		switch tag := c.tag(); {
		case tag == txnOps<<3|bytesType:
			return c.message(), true
		case tag&7 == bytesType:
			c.bytes()
		case tag&7 == fixed64:
			c.p += 8
		default:
			c.varint()
		}
	}
	return cursor{}, false
}

// operation sets *op, which is zero, to an operation.
func (d *Decoder) operation(c *cursor, op *record.Op) {
	set := operationSchema.each(c, func(number uint) {
		if number <= opPredicateWrite {
			d.target(c, number, op)
		} else {
			op.Value = d.value(c, number)
		}
	})
	switch {
	case set&opOn == 0:
		c.fail(reject.New(reject.MissingField,
			"an operation needs one of the fields read, write, append, predicate_read and predicate_write"))
	case set&opValue == 0:
		c.fail(reject.New(reject.MissingField, "an operation needs a value: null says that there was none"))
	case op.Where != "" && op.Value.Kind != record.KindObject:
		c.fail(reject.New(reject.WrongType, "the value of a predicate's operation is an object, in field json"))
	case op.Kind == record.PredicateWrite:
		rows, given := op.Value.Fields()[record.Hit]
		if given && rows.Kind != record.KindList {
			c.fail(reject.In(record.Hit, reject.WrongType, "want a list of the rows that were hit, found %s", rows))
		}
		_, err := codec.WithHit(op.Value, rows)
		c.fail(err)
	}
}

// target takes what an operation was on.
func (d *Decoder) target(c *cursor, number uint, op *record.Op) {
	op.Kind = kindOf[number]
	if number < opPredicateRead {
		op.Key = d.names.String(c.name("the key"))
		return
	}
	in := c.message()
	set := predicateSchema.each(&in, func(number uint) {
		if number == predicateTable {
			op.Key = d.names.String(in.name("the table"))
		} else {
			op.Where = d.names.String(in.name("the predicate"))
		}
	})
	predicateSchema.need(&in, set, predicateTable, predicateWhere)
	c.err = in.err
}

// value takes a value of the kind that the field's number says.
func (d *Decoder) value(c *cursor, number uint) record.Value {
	switch number {
	case opInteger:
		return record.Int(protowire.DecodeZigZag(c.varint()))
	case opText:
		return record.String(string(c.text()))
	case opNull:
		if v := int32(c.varint()); v != 0 {
			c.fail(reject.New(reject.OutOfRange, "null is 0, not %d", v))
		}
		return record.Null
	case opBoolean:
		return record.Value{Kind: record.KindBool, Text: strconv.FormatBool(c.varint() != 0)}
	case opNumber:
		d.text = strconv.AppendFloat(d.text[:0], c.float(), 'g', -1, 64)
		return d.json(c, d.text)
	case opIntegers:
		return d.integers(c)
	}
	return d.json(c, c.text())
}

func (d *Decoder) json(c *cursor, text []byte) record.Value {
	v, err := d.values.Value(text)
	c.fail(reject.From(err))
	return v
}

// integers takes a list of them, in canonical JSON text.
func (d *Decoder) integers(c *cursor) record.Value {
	in, b := c.message(), append(d.text[:0], '[')
	add := func(c *cursor) {
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, protowire.DecodeZigZag(c.varint()), 10)
	}
	for in.more() {
		switch tag := in.tag(); tag {
		case integersValues<<3 | varintType:
			add(&in)
		case integersValues<<3 | bytesType:
			run := in.message()
			for run.more() {
				add(&run)
			}
			in.err = run.err
		default:
			in.fail(integersSchema.unknown(tag))
		}
	}
	c.err = in.err
	d.text = append(b, ']')
	return record.Value{Kind: record.KindList, Text: string(d.text)}
}
