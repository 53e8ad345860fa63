package codec

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/isowatch/isowatch/ingest/reject"
)

// The scanner moves d.p over d.b. Where a function says "at the value", blanks
// have been skipped and d.p < len(d.b).

// space skips JSON's blanks.
func (d *Decoder) space() {
	b, p := d.b, d.p
	for p < len(b) && (b[p] == ' ' || b[p] == '\n' || b[p] == '\r' || b[p] == '\t') {
		p++
	}
	d.p = p
}

// peek skips blanks and returns the next byte without taking it; 0, which no
// JSON has there, at the end.
func (d *Decoder) peek() byte {
	if d.p < len(d.b) && d.b[d.p] > ' ' {
		return d.b[d.p]
	}
	d.space()
	if d.p < len(d.b) {
		return d.b[d.p]
	}
	return 0
}

// syntax says that something else was expected at d.p.
func (d *Decoder) syntax(want string) *reject.Error {
	if d.p >= len(d.b) {
		return reject.New(reject.BadJSON, "the record ends where %s should follow", want)
	}
	r, size := utf8.DecodeRune(d.b[d.p:])
	if r == utf8.RuneError && size <= 1 {
		return reject.New(reject.BadJSON, "at byte %d: want %s, not 0x%02x", d.p, want, d.b[d.p])
	}
	return reject.New(reject.BadJSON, "at byte %d: want %s, not %q", d.p, want, r)
}

// mistyped says that the value at d.p should be of another type.
func (d *Decoder) mistyped(want string) *reject.Error {
	var is string
	next := func(word string) bool { return bytes.HasPrefix(d.b[d.p:], []byte(word)) }
	switch c := d.peek(); {
	case c == '{':
		is = "an object"
	case c == '[':
		is = "a list"
	case c == '"':
		is = "a string"
	case next("true") || next("false"):
		is = "a boolean"
	case next("null"):
		is = "null"
	case c == '-' || isDigit(c):
		is = "a number"
	default:
		return d.syntax(want)
	}
	return reject.New(reject.WrongType, "want %s, not %s", want, is)
}

// open takes the bracket c; want says what it opens.
func (d *Decoder) open(c byte, want string) {
	if d.peek() != c {
		d.fail(d.mistyped(want))
		return
	}
	d.p++
}

// end makes sure that nothing but blanks follows.
func (d *Decoder) end() {
	if d.space(); d.p < len(d.b) {
		d.fail(d.syntax("the end of the record"))
	}
}

// member takes what stands before the next field of an object and its name, or
// the closing brace: then more is false. The name is valid until the next string.
func (d *Decoder) member(first bool) (name []byte, more bool) {
	switch c := d.peek(); {
	case c == '}':
		d.p++
		return nil, false
	case c == ',' && !first:
		d.p++
	case !first:
		d.fail(d.syntax("',' or '}'"))
		return nil, false
	}
	if d.peek() != '"' {
		d.fail(d.syntax("a field's name in quotes"))
		return nil, false
	}
	name = d.str()
	return name, d.err == nil
}

// element takes what stands before the next element of a list, or the closing
// bracket: then more is false.
func (d *Decoder) element(first bool) (more bool) {
	switch c := d.peek(); {
	case d.err != nil:
	case c == ']':
		d.p++
	case first:
		return true
	case c != ',':
		d.fail(d.syntax("',' or ']'"))
	default:
		if d.p++; d.peek() != ']' {
			return true
		}
		d.fail(d.syntax("a value"))
	}
	return false
}

func (d *Decoder) colon() {
	if d.peek() != ':' {
		d.fail(d.syntax("':'"))
		return
	}
	d.p++
	d.space()
}

// null takes the literal null if it is there.
func (d *Decoder) null() bool { return d.peek() == 'n' && d.word("null") }

// literal takes the word at d.p.
func (d *Decoder) literal(word string) {
	if !d.word(word) {
		d.fail(d.syntax("a value"))
	}
}

// name takes a string that names something and is likely to come again. What it
// names is said by what: "the session".
func (d *Decoder) name(what string) string { return d.names.String(d.nameBytes(what)) }

// HistoryMax is how many bytes the name of a history may have: it names what is stored.
const HistoryMax = 1 << 10

// history takes the name of a history.
func (d *Decoder) history() string {
	raw := d.nameBytes("the history")
	d.fail(CheckHistory(raw))
	return d.names.String(raw)
}

// session takes the name of a session.
func (d *Decoder) session() string {
	raw := d.nameBytes("the session")
	d.fail(CheckSession(raw))
	return d.names.String(raw)
}

// CheckHistory refuses the name of a history that is too long, or could be one of the
// monitor's own.
func CheckHistory(name []byte) *reject.Error {
	if len(name) > HistoryMax {
		return reject.New(reject.TooLarge, "the name of the history has %d bytes, more than the limit of %d", len(name),
			HistoryMax)
	}
	return withoutNul("the name of the history", name)
}

// CheckSession refuses the name of a session that could be one of the monitor's own.
func CheckSession(name []byte) *reject.Error { return withoutNul("the name of the session", name) }

// CheckStatements refuses a text of statements with U+0000.
func CheckStatements(text []byte) *reject.Error {
	return withoutNul("the text of the statements", text)
}

// withoutNul refuses names that have U+0000: what the monitor makes of names and keeps beside
// them is told from them by that.
func withoutNul(what string, name []byte) *reject.Error {
	if i := bytes.IndexByte(name, 0); i >= 0 {
		return reject.New(reject.NulInName, "%s has the character U+0000, at byte %d", what, i)
	}
	return nil
}

func (d *Decoder) nameBytes(what string) []byte {
	raw := d.wantString(what)
	if len(raw) == 0 {
		d.fail(reject.New(reject.EmptyName, "%s is the empty string", what))
	}
	return raw
}

// wantString takes a string. The bytes are valid until the next string is taken.
func (d *Decoder) wantString(what string) []byte {
	if d.peek() != '"' {
		d.fail(d.mistyped("a string for " + what))
		return nil
	}
	return d.str()
}

// str takes the string that opens at d.p and returns what it says: a part of
// d.b, or d.unescaped if it has escapes.
func (d *Decoder) str() []byte {
	s, err := d.scan()
	d.fail(err)
	return s
}

func (d *Decoder) scan() ([]byte, *reject.Error) {
	b, p := d.b, d.p+1
	from := p
	var bits byte
	for p < len(b) {
		c := b[p]
		if c == '"' {
			d.p = p + 1
			raw := b[from:p]
			if bits >= utf8.RuneSelf && !utf8.Valid(raw) {
				return nil, reject.New(reject.InvalidUTF8, "the string at byte %d is not valid UTF-8", from-1)
			}
			return raw, nil
		}
		if c == '\\' || c < ' ' {
			return d.escaped(from, p)
		}
		bits |= c
		p++
	}
	d.p = p
	return nil, d.syntax("the end of a string")
}

// escaped goes on with scan where the first escape stands.
func (d *Decoder) escaped(from, p int) ([]byte, *reject.Error) {
	b, out := d.b, append(d.unescaped[:0], d.b[from:p]...)
	for p < len(b) {
		c := b[p]
		p++
		switch {
		case c == '"':
			d.p = p
			d.unescaped = out
			if !utf8.Valid(out) {
				return nil, reject.New(reject.InvalidUTF8, "the string at byte %d is not valid UTF-8", from-1)
			}
			return out, nil
		case c < ' ':
			d.p = p - 1
			return nil, d.syntax("an escape sequence for a control character")
		case c != '\\':
			out = append(out, c)
			continue
		case p >= len(b):
			d.p = p
			return nil, d.syntax("an escape sequence")
		}
		e := b[p]
		p++
		switch e {
		case '"', '\\', '/':
			out = append(out, e)
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'u':
			r, ok := hex4(b, p)
			if !ok {
				d.p = min(p, len(b))
				return nil, d.syntax("four hexadecimal digits")
			}
			p += 4
			if utf16.IsSurrogate(r) {
				low, ok := rune(0), false
				if p+1 < len(b) && b[p] == '\\' && b[p+1] == 'u' {
					low, ok = hex4(b, p+2)
				}
				if r = utf16.DecodeRune(r, low); !ok || r == utf8.RuneError {
					return nil, reject.New(reject.InvalidUTF8, "the string at byte %d escapes half of a surrogate pair", from-1)
				}
				p += 6
			}
			out = utf8.AppendRune(out, r)
		default:
			d.p = p - 1
			return nil, d.syntax(`one of "\/bfnrtu`)
		}
	}
	d.p = p
	return nil, d.syntax("the end of a string")
}

func hex4(b []byte, p int) (rune, bool) {
	if len(b)-p < 4 {
		return 0, false
	}
	var r rune
	for _, c := range b[p : p+4] {
		switch {
		case isDigit(c):
			r = r<<4 | rune(c-'0')
		case 'a' <= c && c <= 'f':
			r = r<<4 | rune(c-'a'+10)
		case 'A' <= c && c <= 'F':
			r = r<<4 | rune(c-'A'+10)
		default:
			return 0, false
		}
	}
	return r, true
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// integer takes a sequence number or a time.
func (d *Decoder) integer() int64 {
	c := d.peek()
	if c != '-' && !isDigit(c) {
		d.fail(d.mistyped("an integer"))
		return 0
	}
	n, from := d.short()
	if d.p == from {
		d.number()
		text := d.b[from:d.p]
		if bytes.ContainsAny(text, ".eE") {
			d.fail(reject.New(reject.WrongType, "want an integer, written without fraction or exponent, not %s", brief(text)))
		}
		if c != '-' {
			d.fail(reject.New(reject.OutOfRange, "%s is more than %d", brief(text), int64(math.MaxInt64)))
		}
		n = -1
	}
	if n < 0 {
		d.fail(reject.New(reject.Negative, "%s is negative", brief(d.b[from:d.p])))
	}
	return n
}

// short takes the number at d.p if it is an integer of the plainest kind that
// fits; from is where it stood. It takes nothing otherwise: number will.
func (d *Decoder) short() (n int64, from int) {
	b, p := d.b, d.p
	from = p
	negative := b[p] == '-'
	if negative {
		p++
	}
	digits := p
	var u uint64
	for len(b)-p >= 8 {
		w := binary.LittleEndian.Uint64(b[p:])
		if leadingDigits(w) < 8 {
			break
		}
		u = u*100_000_000 + eightDigits(w)
		p += 8
	}
	for p < len(b) {
		c := b[p] - '0'
		if c > 9 {
			break
		}
		u = u*10 + uint64(c)
		p++
	}
	// 19 digits are below 10^19 < 2^64, so u has not wrapped around.
	switch count := p - digits; {
	case count == 0 || count > 19 || count > 1 && b[digits] == '0' || u > math.MaxInt64:
		return 0, from
	case p < len(b) && (b[p] == '.' || b[p] == 'e' || b[p] == 'E'):
		return 0, from
	}
	d.p = p
	if negative {
		return -int64(u), from
	}
	return int64(u), from
}

// brief cuts what a message quotes: records are large and messages are kept.
func brief(b []byte) string {
	const long = 40
	if len(b) > long {
		return fmt.Sprintf("%s… (%d bytes)", strings.ToValidUTF8(string(b[:long]), ""), len(b))
	}
	return string(b)
}

// quoted is brief, in quotes.
func quoted(b []byte) string { return strconv.Quote(brief(b)) }
