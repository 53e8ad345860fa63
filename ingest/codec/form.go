package codec

import (
	"math/bits"

	"github.com/isowatch/isowatch/ingest/reject"
)

// form is what is known of objects of one kind. Their fields are told by bits, the first
// by 1.
type form struct {
	fields []string
	// optional are those that null is as good as missing for.
	optional uint
	// unknown says of a name that it is none of the fields.
	unknown func(name []byte) *reject.Error
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

// name is that of the first field of a set, which is not empty.
func (f *form) name(set uint) string { return f.fields[bits.TrailingZeros(set)] }

// reading is an object that is being read.
type reading struct {
	*form
	seen  uint // the fields that were there
	given uint // of these, those that were not null
}

// object takes the bracket that opens an object; want says what the object is.
func (d *Decoder) object(f *form, want string) (reading, *reject.Error) {
	return reading{form: f}, d.open('{', want)
}

// nextField takes all up to the value of the next field that is not null, and returns its bit; 0
// at the end of the object.
func (d *Decoder) nextField(o *reading) (uint, *reject.Error) {
	for {
		name, more, err := d.member(o.seen == 0)
		if err != nil || !more {
			return 0, err
		}
		f := o.bit(name)
		switch {
		case f == 0:
			return 0, o.unknown(name)
		case o.seen&f != 0:
			return 0, reject.In(string(name), reject.DuplicateField, "the field %q is there twice", name)
		}
		o.seen |= f
		if err := d.colon(); err != nil {
			return 0, err
		}
		if f&o.optional != 0 && d.null() {
			continue
		}
		o.given |= f
		return f, nil
	}
}
