package codec

import (
	"bytes"
	"slices"

	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/reject"
)

// ParseValue returns the value that the JSON text b says, and nothing else.
func ParseValue(b []byte) (record.Value, error) {
	d := Decoder{opt: Options{SizeMax: SizeDefault}}
	return d.Value(b)
}

// Value is ParseValue within the Decoder's limit, reusing its scratch.
func (d *Decoder) Value(b []byte) (v record.Value, err error) {
	err = d.whole("value", b, func() (bad *reject.Error) {
		if v, bad = d.value(); bad == nil {
			bad = d.end()
		}
		return bad
	})
	if err != nil {
		return record.Value{}, err
	}
	return v, nil
}

// value takes any JSON value.
func (d *Decoder) value() (record.Value, *reject.Error) {
	switch c := d.peek(); {
	case c == '-' || isDigit(c):
		if n, from := d.short(); d.p > from {
			return record.Int(n), nil
		}
		return d.number()
	case c == '"':
		raw, err := d.str()
		if err != nil {
			return record.Value{}, err
		}
		return record.String(string(raw)), nil
	case c == 'n':
		return record.Null, d.literal("null")
	case c == 't':
		return record.Value{Kind: record.KindBool, Text: "true"}, d.literal("true")
	case c == 'f':
		return record.Value{Kind: record.KindBool, Text: "false"}, d.literal("false")
	}
	kind := record.KindObject
	if d.peek() == '[' {
		kind = record.KindList
	}
	d.canon, d.members = d.canon[:0], d.members[:0]
	if err := d.canonical(1); err != nil {
		return record.Value{}, err
	}
	return record.Value{Kind: kind, Text: string(d.canon)}, nil
}

// member is a field of an object in d.canon: "NAME":VALUE is
// d.canon[from:to], and the name with its quotes ends at name.
type member struct{ from, name, to int }

// canonical takes any value and appends its canonical text to d.canon. depth
// counts it and what it stands in.
func (d *Decoder) canonical(depth int) *reject.Error {
	switch c := d.peek(); {
	case c == '-' || isDigit(c):
		negative, point, err := d.decompose()
		if err != nil {
			return err
		}
		d.canon = appendNumber(d.canon, negative, d.digits, point)
		return nil
	case c == '"':
		return d.canonicalString()
	case c == 'n':
		d.canon = append(d.canon, "null"...)
		return d.literal("null")
	case c == 't':
		d.canon = append(d.canon, "true"...)
		return d.literal("true")
	case c == 'f':
		d.canon = append(d.canon, "false"...)
		return d.literal("false")
	case c != '[' && c != '{':
		return d.syntax("a value")
	case depth > DepthMax:
		return reject.New(reject.TooDeep, "the value nests more than %d lists or objects", DepthMax)
	case c == '[':
		return d.canonicalList(depth)
	}
	return d.canonicalObject(depth)
}

func (d *Decoder) canonicalString() *reject.Error {
	from := d.p
	raw, err := d.str()
	if err != nil {
		return err
	}
	if d.p-from == len(raw)+2 { // no escapes: it stands there as it should
		d.canon = append(d.canon, d.b[from:d.p]...)
		return nil
	}
	d.canon = record.AppendJSONString(d.canon, string(raw))
	return nil
}

func (d *Decoder) canonicalList(depth int) *reject.Error {
	d.p++
	d.canon = append(d.canon, '[')
	for i := 0; ; i++ {
		more, err := d.element(i == 0)
		if err != nil {
			return err.UnderIndex(i)
		}
		if !more {
			d.canon = append(d.canon, ']')
			return nil
		}
		if i > 0 {
			d.canon = append(d.canon, ',')
		}
		if err := d.canonical(depth + 1); err != nil {
			return err.UnderIndex(i)
		}
	}
}

// canonicalObject writes the fields as they come, and puts them in order
// afterwards if they were not: by the canonical text of their names.
func (d *Decoder) canonicalObject(depth int) *reject.Error {
	d.p++
	base, start := len(d.members), len(d.canon)
	d.canon = append(d.canon, '{')
	inOrder := true
	for i := 0; ; i++ {
		switch c := d.peek(); {
		case c == '}':
			d.p++
			d.canon = append(d.canon, '}')
			err := d.arrange(base, start, inOrder)
			d.members = d.members[:base]
			return err
		case i == 0:
		case c == ',':
			d.p++
			d.canon = append(d.canon, ',')
		default:
			return d.syntax("',' or '}'")
		}
		if d.peek() != '"' {
			return d.syntax("a field's name in quotes")
		}
		m := member{from: len(d.canon)}
		if err := d.canonicalString(); err != nil {
			return err
		}
		m.name = len(d.canon)
		if err := d.colon(); err != nil {
			return err
		}
		d.canon = append(d.canon, ':')
		if err := d.canonical(depth + 1); err != nil {
			return err.Under(brief(d.nameIn(m)))
		}
		m.to = len(d.canon)
		if inOrder && i > 0 && bytes.Compare(d.nameIn(d.members[len(d.members)-1]), d.nameIn(m)) >= 0 {
			inOrder = false
		}
		d.members = append(d.members, m)
	}
}

func (d *Decoder) nameIn(m member) []byte { return d.canon[m.from+1 : m.name-1] }

// arrange sorts the object that began at d.canon[start], whose fields are
// d.members[base:], and refuses a field that is there twice.
func (d *Decoder) arrange(base, start int, inOrder bool) *reject.Error {
	if inOrder {
		return nil
	}
	fields := d.members[base:]
	slices.SortFunc(fields, func(x, y member) int { return bytes.Compare(d.nameIn(x), d.nameIn(y)) })
	d.sorted = append(d.sorted[:0], '{')
	for i, m := range fields {
		if i > 0 {
			if bytes.Equal(d.nameIn(fields[i-1]), d.nameIn(m)) {
				return reject.In(brief(d.nameIn(m)), reject.DuplicateField, "the object has this field twice")
			}
			d.sorted = append(d.sorted, ',')
		}
		d.sorted = append(d.sorted, d.canon[m.from:m.to]...)
	}
	copy(d.canon[start:], append(d.sorted, '}'))
	return nil
}
