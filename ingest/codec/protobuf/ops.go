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
		tag, _ := c.tag()
		switch {
		case tag == txnOps<<3|bytesType:
			body, _ = c.message()
			return body, true
		case tag&7 == bytesType:
			_, _ = c.bytes()
		case tag&7 == fixed64:
			c.p += 8
		default:
			_, _ = c.varint()
		}
	}
	return cursor{}, false
}

// operation sets *op, which is zero, to an operation.
func (d *Decoder) operation(c cursor, op *record.Op) *reject.Error {
	var set uint
	for c.more() {
		number, err := operationSchema.field(&c, &set)
		if err != nil {
			return err
		}
		if number <= opPredicateWrite {
			err = d.target(&c, number, op)
		} else {
			op.Value, err = d.value(&c, number)
		}
		if err != nil {
			return err.Under(operationSchema.fields[number].name)
		}
	}
	switch {
	case set&opOn == 0:
		return reject.New(reject.MissingField,
			"an operation needs one of the fields read, write, append, predicate_read and predicate_write")
	case set&opValue == 0:
		return reject.New(reject.MissingField, "an operation needs a value: null says that there was none")
	case op.Where != "" && op.Value.Kind != record.KindObject:
		return reject.New(reject.WrongType, "the value of a predicate's operation is an object, in field json")
	case op.Kind == record.PredicateWrite:
		rows, given := op.Value.Fields()[record.Hit]
		if given && rows.Kind != record.KindList {
			return reject.In(record.Hit, reject.WrongType, "want a list of the rows that were hit, found %s", rows)
		}
		_, err := codec.WithHit(op.Value, rows)
		return err
	}
	return nil
}

// target takes what an operation was on.
func (d *Decoder) target(c *cursor, number uint, op *record.Op) *reject.Error {
	op.Kind = kindOf[number]
	if number < opPredicateRead {
		key, err := c.name("the key")
		if err == nil {
			op.Key = d.names.String(key)
		}
		return err
	}
	in, err := c.message()
	if err != nil {
		return err
	}
	var set uint
	for in.more() {
		number, err := predicateSchema.field(&in, &set)
		if err != nil {
			return err
		}
		what, to := "the table", &op.Key
		if number == predicateWhere {
			what, to = "the predicate", &op.Where
		}
		name, err := in.name(what)
		if err != nil {
			return err.Under(predicateSchema.fields[number].name)
		}
		*to = d.names.String(name)
	}
	return predicateSchema.missing(set, predicateTable, predicateWhere)
}

// value takes a value of the kind that the field's number says.
func (d *Decoder) value(c *cursor, number uint) (record.Value, *reject.Error) {
	switch number {
	case opInteger:
		v, err := c.varint()
		return record.Int(protowire.DecodeZigZag(v)), err
	case opText:
		text, err := c.text()
		return record.String(string(text)), err
	case opNull:
		v, err := c.varint()
		if err == nil && int32(v) != 0 {
			err = reject.New(reject.OutOfRange, "null is 0, not %d", int32(v))
		}
		return record.Null, err
	case opBoolean:
		v, err := c.varint()
		return record.Value{Kind: record.KindBool, Text: strconv.FormatBool(v != 0)}, err
	case opNumber:
		f, err := c.float()
		if err != nil {
			return record.Value{}, err
		}
		d.text = strconv.AppendFloat(d.text[:0], f, 'g', -1, 64)
		return d.json(d.text)
	case opIntegers:
		return d.integers(c)
	}
	text, err := c.text()
	if err != nil {
		return record.Value{}, err
	}
	return d.json(text)
}

func (d *Decoder) json(text []byte) (record.Value, *reject.Error) {
	v, err := d.values.Value(text)
	return v, reject.From(err)
}

// integers takes a list of them, in canonical JSON text.
func (d *Decoder) integers(c *cursor) (record.Value, *reject.Error) {
	in, err := c.message()
	if err != nil {
		return record.Value{}, err
	}
	b := append(d.text[:0], '[')
	add := func(c *cursor) *reject.Error {
		v, err := c.varint()
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, protowire.DecodeZigZag(v), 10)
		return err
	}
	for in.more() {
		tag, err := in.tag()
		if err != nil {
			return record.Value{}, err
		}
		switch tag {
		case integersValues<<3 | varintType:
			err = add(&in)
		case integersValues<<3 | bytesType:
			var run cursor
			for run, err = in.message(); err == nil && run.more(); {
				err = add(&run)
			}
		default:
			err = integersSchema.unknown(tag)
		}
		if err != nil {
			return record.Value{}, err
		}
	}
	d.text = append(b, ']')
	return record.Value{Kind: record.KindList, Text: string(d.text)}, nil
}
