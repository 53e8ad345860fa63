package codec

import (
	"cmp"
	"math/bits"

	"github.com/isowatch/isowatch/ingest/reject"
)

// form is what is known of objects of one kind. Their fields are told by bits, the first
// by 1.
type form struct {
	fields []string
	// optional are those that null is as good as missing for.
	optional uint
	// has says what there is, where a name is none of the fields, and word what these are called if not fields.
	has, word string
}

// unknown says of a name that it is none of the fields.
func (f *form) unknown(name []byte) *reject.Error {
	return reject.In(brief(name), reject.UnknownField, "no %s is called %s: %s", cmp.Or(f.word, "field"), quoted(name), f.has)
}

// bit is that of a field's name; 0 if there is none.
func (f *form) bit(name []byte) uint {
	for i, known := range f.fields {
		if string(name) == known {
			return 1 << i
		}
	}
	return 0
}

// need refuses an object that lacks a field; of says of what.
func (d *Decoder) need(f *form, given, needs uint, of string) {
	if missing := needs &^ given; missing != 0 {
		name := f.name(missing)
		d.fail(reject.In(name, reject.MissingField, "%s needs the field %q", of, name))
	}
}

// name is that of the first field of a set, which is not empty.
func (f *form) name(set uint) string { return f.fields[bits.TrailingZeros(set)] }

// object takes an object of a form; want says what it is. take is called behind the name of each field that is not
// null, with its bit, and takes its value. It returns the fields that take was called for.
func (d *Decoder) object(f *form, want string, take func(field uint)) (given uint) {
	d.open('{', want)
	for seen := uint(0); d.err == nil; {
		name, more := d.member(seen == 0)
		if !more {
			break
		}
		field := f.bit(name)
		switch {
		case field == 0:
			d.fail(f.unknown(name))
		case seen&field != 0:
			d.fail(reject.In(string(name), reject.DuplicateField, "the field %q is there twice", name))
		}
		seen |= field
		if d.colon(); d.err != nil || field&f.optional != 0 && d.null() {
			continue
		}
		given |= field
		take(field)
		d.under(f.name(field))
	}
	return given
}
