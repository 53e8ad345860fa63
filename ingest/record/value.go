package record

import (
	"strconv"
)

// ValueKind is the JSON type of a Value.
type ValueKind uint8

// The kinds. Everything that is not Null or an int64 is kept as canonical JSON
// text, so that equal values are equal Go values.
const (
	KindNull   ValueKind = iota // absent
	KindInt                     // an integer that fits an int64
	KindNumber                  // any other number, normalised
	KindBool                    // "true" or "false"
	KindString                  // the string itself, unquoted
	KindList                    // canonical JSON text of an array
	KindObject                  // canonical JSON text of an object, keys sorted
)

// Value is what a key held or was given. It is comparable: two values are the
// same exactly if they are ==. The zero Value is Null.
type Value struct {
	Kind ValueKind
	Num  int64  // meaningful for KindInt
	Text string // meaningful for all kinds but KindNull and KindInt
}

// Null is the value of an absent key.
var Null = Value{}

// Int makes an integer value.
func Int(n int64) Value { return Value{Kind: KindInt, Num: n} }

// String makes a string value.
func String(s string) Value { return Value{Kind: KindString, Text: s} }

// IsNull tells whether the value means absent.
func (v Value) IsNull() bool { return v.Kind == KindNull }

// AppendJSON appends the value's canonical JSON text to b.
func (v Value) AppendJSON(b []byte) []byte {
	switch v.Kind {
	case KindNull:
		return append(b, "null"...)
	case KindInt:
		return strconv.AppendInt(b, v.Num, 10)
	case KindString:
		return AppendJSONString(b, v.Text)
	default:
		return append(b, v.Text...)
	}
}

// String is the value's canonical JSON text.
func (v Value) String() string { return string(v.AppendJSON(nil)) }

const hexDigits = "0123456789abcdef"

// AppendJSONString appends s as a JSON string. Control characters, quotes and
// backslashes are escaped; the rest, assumed valid UTF-8 as the decoder leaves
// it, is kept as it is.
func AppendJSONString(b []byte, s string) []byte {
	b = append(b, '"')
	from := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' {
			continue
		}
		b = append(b, s[from:i]...)
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, '\\', 'n')
		case '\t':
			b = append(b, '\\', 't')
		case '\r':
			b = append(b, '\\', 'r')
		default:
			b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
		from = i + 1
	}
	b = append(b, s[from:]...)
	return append(b, '"')
}
