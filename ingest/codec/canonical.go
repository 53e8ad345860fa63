package codec

import (
	"bytes"
	"slices"
	"unsafe"

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
	err = d.whole("value", b, func() {
		v = d.value()
		d.end()
	})
	if err != nil {
		return record.Value{}, err
	}
	return v, nil
}

// value takes any JSON value.
func (d *Decoder) value() record.Value {
	kind := record.KindObject
	switch c := d.peek(); {
	case c == '-' || isDigit(c):
		if n, from := d.short(); d.p > from {
			return record.Int(n)
		}
		return d.number()
	case c == '"':
		return record.String(string(d.str()))
	case c == 'n':
		d.literal("null")
		return record.Null
	case c == 't' || c == 'f':
		kind = record.KindBool
	case c == '[':
		kind = record.KindList
	}
	if end := asWritten(d.b, d.p, 1); end > 0 {
		raw := d.b[d.p:end]
		d.p = end
		if d.borrow {
			return record.Value{Kind: kind, Text: unsafe.String(&raw[0], len(raw))}
		}
		return record.Value{Kind: kind, Text: string(raw)}
	}
	d.canon, d.members = d.canon[:0], d.members[:0]
	d.canonical(1)
	return record.Value{Kind: kind, Text: string(d.canon)}
}

// asWritten is where the value at b[p] ends if it is plainly in canonical text: without blanks or escapes, in ASCII, with
// fields in order, and without numbers but short integers. 0: it is for canonical to say what it is, and whether
// anything is wrong.
func asWritten(b []byte, p, depth int) int {
	if p >= len(b) || depth > DepthMax {
		return 0
	}
	switch c := b[p]; c {
	case '"':
		return stringAsWritten(b, p)
	case '[', '{':
		closing := c + 2
		if p++; p < len(b) && b[p] == closing {
			return p + 1
		}
		for name := []byte(nil); ; p++ {
			if c == '{' {
				end := stringAsWritten(b, p)
				if end == 0 || end == len(b) || b[end] != ':' || name != nil && bytes.Compare(name, b[p:end-1]) >= 0 {
					return 0
				}
				name, p = b[p:end-1], end+1
			}
			if p = asWritten(b, p, depth+1); p == 0 || p == len(b) {
				return 0
			}
			if b[p] == closing {
				return p + 1
			}
			if b[p] != ',' {
				return 0
			}
		}
	case 't', 'f', 'n':
		for _, word := range [...]string{"true", "false", "null"} {
			if bytes.HasPrefix(b[p:], []byte(word)) {
				return p + len(word)
			}
		}
		return 0
	default:
		const digitsMost = 18 // as many fit an integer
		negative := c == '-'
		if negative {
			p++
		}
		from := p
		for p < len(b) && isDigit(b[p]) {
			p++
		}
		if n := p - from; n == 0 || n > digitsMost || b[from] == '0' && (n > 1 || negative) {
			return 0
		}
		return p
	}
}

// stringAsWritten is asWritten of a string.
func stringAsWritten(b []byte, p int) int {
	if p < len(b) && b[p] == '"' {
		if p = plainEnd(b, p+1); p < len(b) && b[p] == '"' {
			return p + 1
		}
	}
	return 0
}

// member is a field of an object in d.canon: "NAME":VALUE is
// d.canon[from:to], and the name with its quotes ends at name.
type member struct{ from, name, to int }

// canonical takes any value and appends its canonical text to d.canon. depth
// counts it and what it stands in.
func (d *Decoder) canonical(depth int) {
	switch c := d.peek(); {
	case c == '-' || isDigit(c):
		negative, point, err := d.decompose()
		if err != nil {
			d.fail(err)
			return
		}
		d.canon = appendNumber(d.canon, negative, d.digits, point)
	case c == '"':
		d.canonicalString()
	case c == 'n':
		d.canonicalWord("null")
	case c == 't':
		d.canonicalWord("true")
	case c == 'f':
		d.canonicalWord("false")
	case c != '[' && c != '{':
		d.fail(d.syntax("a value"))
	case depth > DepthMax:
		d.fail(reject.New(reject.TooDeep, "the value nests more than %d lists or objects", DepthMax))
	case c == '[':
		d.canonicalList(depth)
	default:
		d.canonicalObject(depth)
	}
}

func (d *Decoder) canonicalWord(word string) {
	d.canon = append(d.canon, word...)
	d.literal(word)
}

func (d *Decoder) canonicalString() {
	from := d.p
	raw := d.str()
	if d.p-from == len(raw)+2 { // no escapes: it stands there as it should
		d.canon = append(d.canon, d.b[from:d.p]...)
		return
	}
	d.canon = record.AppendJSONString(d.canon, string(raw))
}

func (d *Decoder) canonicalList(depth int) {
	d.p++
	d.canon = append(d.canon, '[')
	i := 0
	for ; d.element(i == 0); i++ {
		if i > 0 {
			d.canon = append(d.canon, ',')
		}
		if d.canonical(depth + 1); d.err != nil {
			break
		}
	}
	d.underIndex(i)
	d.canon = append(d.canon, ']')
}

// canonicalObject writes the fields as they come, and puts them in order
// afterwards if they were not: by the canonical text of their names.
func (d *Decoder) canonicalObject(depth int) {
	d.p++
	base, start := len(d.members), len(d.canon)
	d.canon = append(d.canon, '{')
	inOrder := true
	for i := 0; ; i++ {
		switch c := d.peek(); {
		case c == '}':
			d.p++
			d.canon = append(d.canon, '}')
			d.arrange(base, start, inOrder)
			d.members = d.members[:base]
			return
		case i == 0:
		case c == ',':
			d.p++
			d.canon = append(d.canon, ',')
		default:
			d.fail(d.syntax("',' or '}'"))
			return
		}
		if d.peek() != '"' {
			d.fail(d.syntax("a field's name in quotes"))
			return
		}
		m := member{from: len(d.canon)}
		d.canonicalString()
		m.name = len(d.canon)
		if d.colon(); d.err != nil {
			return
		}
		d.canon = append(d.canon, ':')
		if d.canonical(depth + 1); d.err != nil {
			d.under(brief(d.nameIn(m)))
			return
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
func (d *Decoder) arrange(base, start int, inOrder bool) {
	if inOrder {
		return
	}
	fields := d.members[base:]
	slices.SortFunc(fields, func(x, y member) int { return bytes.Compare(d.nameIn(x), d.nameIn(y)) })
	d.sorted = append(d.sorted[:0], '{')
	for i, m := range fields {
		if i > 0 {
			if bytes.Equal(d.nameIn(fields[i-1]), d.nameIn(m)) {
				d.fail(reject.In(brief(d.nameIn(m)), reject.DuplicateField, "the object has this field twice"))
				return
			}
			d.sorted = append(d.sorted, ',')
		}
		d.sorted = append(d.sorted, d.canon[m.from:m.to]...)
	}
	copy(d.canon[start:], append(d.sorted, '}'))
}
