package history

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/isowatch/isowatch/ingest/codec"
	"github.com/isowatch/isowatch/ingest/reject"
)

// forms reads the outermost values of a text of EDN or JSON, one by one: a file is a sequence of them, or one list or
// vector of them, which may be larger than memory. Size and nesting of each are bounded. A value is one of: nil, bool,
// int64, json.Number (what is no plain integer, as it is written: nothing of it is lost), string, rune (a character),
// keyword, symbol, tag, []any (a list or vector), set, mapping. Of JSON that is built otherwise, begin and elements
// read what is inside its lists one by one.
type forms struct {
	in           *input
	r            io.ByteReader
	json         bool
	what         string // a form is
	single       bool   // a list is a form itself, not a list of forms
	ahead        int    // the byte to come, if it was looked at; else -1
	line, offset int64
	inside       byte // what closes the list that the forms stand in; 0 if none is open
	form         struct{ line, offset int64 }
	text         []byte // of the string or word at hand
	raw          []byte // all that was read since begin, if keep
	keep         bool
	words        map[string]any // what words say that came before, up to wordsMax of them
	strings      map[string]string
	err          error // the first: nothing is taken after it
}

type (
	keyword string
	symbol  string
	set     []any  // as it was written: elements puts it in order
	mapping []pair // the same
	pair    struct{ key, value any }
	tag     struct {
		name  string
		value any
	}
)

const (
	// formDepthMax bounds lists in lists and tags on tags: what stands around
	// a value of the deepest kind that a record can hold.
	formDepthMax = codec.DepthMax + 8
	// charTag marks a character beyond EDN's, regexTag the text of a regular expression.
	charTag  = "isowatch/char"
	regexTag = "isowatch/regex"
	wordsMax = 1 << 12
)

func newForms(in *input, r io.ByteReader, json bool) *forms {
	return &forms{in: in, r: r, json: json, what: "operation", ahead: -1, line: 1, words: map[string]any{}, strings: map[string]string{}}
}

func (s *forms) fail(r reject.Reason, format string, args ...any) {
	s.refuse(reject.New(r, format, args...))
}

// refuse notes what is wrong with what was read last.
func (s *forms) refuse(e *reject.Error) {
	if s.err == nil {
		s.err = s.in.at(e, s.line, s.offset)
	}
}

// bad refuses what is not in the notation.
func (s *forms) bad(format string, args ...any) {
	if s.json {
		s.fail(reject.BadJSON, "the "+s.what+" is not JSON: "+format, args...)
	} else {
		s.fail(reject.BadStructure, "the "+s.what+" is not EDN: "+format, args...)
	}
}

// peek looks at the byte to come; false: there is none, or an error.
func (s *forms) peek() (byte, bool) {
	if s.ahead < 0 && s.err == nil {
		c, err := s.r.ReadByte()
		switch {
		case err == nil:
			s.ahead = int(c)
		case !errors.Is(err, io.EOF):
			s.err = err
		}
	}
	return byte(s.ahead), s.ahead >= 0 && s.err == nil
}

// skip passes over the byte that was looked at.
func (s *forms) skip() {
	if s.offset++; s.ahead == '\n' {
		s.line++
	}
	if s.keep {
		s.raw = append(s.raw, byte(s.ahead))
	}
	s.ahead = -1
}

// need looks at a byte that has to come, within the bounds of a form.
func (s *forms) need() byte {
	c, ok := s.peek()
	switch {
	case !ok:
		s.fail(reject.Truncated, "the input ends in the middle of the %s", s.what)
	case s.offset-s.form.offset >= int64(s.in.opt.RecordMax):
		s.fail(reject.TooLarge, "the %s has more than %d bytes, the limit of a record", s.what, s.in.opt.RecordMax)
	}
	return c
}

// next returns the next form; io.EOF behind the last.
func (s *forms) next() (any, error) {
	for {
		c, ok := s.peek()
		switch {
		case !ok && s.inside != 0:
			s.fail(reject.Truncated, "the input ends before the list of operations does")
			return nil, s.err
		case !ok:
			return nil, cmp.Or(s.err, io.EOF)
		case isBlank(c), s.offset < int64(len(byteOrderMark)) && c == byteOrderMark[s.offset]:
			s.skip()
			continue
		case c == s.inside:
			s.inside = 0
			s.skip()
			continue
		case s.inside == 0 && !s.single && (c == '[' || c == '(' && !s.json):
			s.inside = closing(c)
			s.skip()
			continue
		}
		s.begin()
		if v, ok := s.value(0); ok || s.err != nil {
			return v, s.err
		}
	}
}

// begin begins a form with the byte to come.
func (s *forms) begin() {
	s.form.line, s.form.offset = s.line, s.offset
	s.raw = s.raw[:0]
}

// elements has take read what stands in a list of JSON, one after the other. what says what the list is of.
func (s *forms) elements(what string, take func(i int)) {
	if s.first() != '[' {
		v, _ := s.value(0)
		s.fail(reject.WrongType, "want %s, not %.60s", what, appendText(nil, v))
		return
	}
	s.skip()
	for i := 0; ; i++ {
		s.begin()
		if !s.another(']', separator('[', i)) {
			return
		}
		take(i)
		s.under(fmt.Sprintf("[%d]", i))
	}
}

// first is the first byte behind blanks, which has to come.
func (s *forms) first() byte {
	for {
		if c, ok := s.peek(); !ok || c > ' ' && (s.offset >= int64(len(byteOrderMark)) || c != byteOrderMark[s.offset]) {
			return s.need()
		}
		s.skip()
	}
}

// end makes sure that nothing follows.
func (s *forms) end() {
	for c, ok := s.peek(); ok; c, ok = s.peek() {
		if c > ' ' {
			s.fail(reject.BadStructure, "something follows the end of the history")
			return
		}
		s.skip()
	}
}

// under says in what the thing is that is wrong, if something is and it has a place.
func (s *forms) under(name string) {
	if e := reject.From(s.err); e != nil && e.Pos.Line > 0 {
		e.Under(name)
	}
}

// value reads a value, or what is none and stands where one may: a comment, or what is crossed out.
func (s *forms) value(depth int) (v any, ok bool) {
	c := s.need()
	switch {
	case s.err != nil:
	case depth > formDepthMax:
		s.fail(reject.TooDeep, "the %s nests more than %d lists, maps or tags", s.what, formDepthMax)
	case strings.IndexByte(")]}", c) >= 0:
		s.fail(reject.BadStructure, "%q closes nothing that is open", c)
	case c == '"':
		v = s.str(false)
	case c == '{':
		v = s.pairs(depth)
	case c == '[' || c == '(' && !s.json:
		v = s.list(depth)
	case s.json:
		v = s.word()
	case c == ';':
		for more := true; more && c != '\n'; c, more = s.peek() { // who wants more finds that there is none
			s.skip()
		}
		return nil, false
	case c == '#':
		return s.dispatch(depth)
	case c == '\\':
		v = s.char()
	default:
		v = s.word()
	}
	return v, s.err == nil
}

// list reads the values up to the bracket that closes the one to come.
func (s *forms) list(depth int) []any {
	opened := byte(s.ahead)
	s.skip()
	list := []any{}
	for {
		v, ok := s.more(depth, closing(opened), separator(opened, len(list)))
		if !ok {
			return list
		}
		list = append(list, v)
	}
}

// separator is what JSON has before the n-th value behind a bracket; 0 for nothing.
func separator(opened byte, n int) byte {
	switch {
	case n == 0:
		return 0
	case opened == '{' && n%2 != 0:
		return ':'
	}
	return ','
}

// more reads the next value inside another, unless its end comes before.
func (s *forms) more(depth int, end, before byte) (v any, ok bool) {
	for !ok && s.another(end, before) {
		v, ok = s.value(depth + 1)
	}
	return v, ok
}

// another goes on to the next value inside another, behind what JSON has before it; false: the end came before.
func (s *forms) another(end, before byte) bool {
	for s.err == nil {
		switch c := s.need(); {
		case s.err != nil:
		case c <= ' ' || c == ',' && !s.json:
			s.skip()
		case c == end:
			s.skip()
			return false
		case s.json && before != 0:
			if c != before {
				s.bad("want %q, not %q", before, c)
			}
			s.skip()
			before, end = 0, 0
		default:
			return true
		}
	}
	return false
}

// pairs reads a map. Of JSON, which has no other way to write them, keys that are integers are numbers.
func (s *forms) pairs(depth int) mapping {
	list := s.list(depth)
	if len(list)%2 != 0 {
		s.bad("a map has a key without a value")
	}
	m := make(mapping, 0, len(list)/2)
	for i := 0; i+1 < len(list); i += 2 {
		name, isString := list[i].(string)
		switch {
		case s.json && !isString:
			s.bad("a key is no string")
		case s.json && name != "" && !isOddNumber([]byte(name)) && isDecimal(strings.TrimPrefix(name, "-")):
			list[i] = json.Number(name)
		}
		m = append(m, pair{list[i], list[i+1]})
	}
	return m
}

// dispatch reads what begins with #.
func (s *forms) dispatch(depth int) (any, bool) {
	s.skip()
	switch c := s.need(); {
	case s.err != nil:
		return nil, false
	case c == '{':
		return set(s.list(depth)), true
	case c == '_':
		s.skip()
		s.more(depth, 0, 0)
		return nil, false
	case c == '"':
		return tag{regexTag, s.str(true)}, true
	}
	s.collect("#")
	word := string(s.text)
	if strings.HasPrefix(word, "##") { // ##Inf, ##NaN
		return json.Number(word), true
	}
	name := strings.TrimLeft(word[1:], ":") // #:name{…}: its name becomes a tag
	if !tagName().MatchString(name) {
		s.bad("%.60q is no tag", word)
	}
	v, ok := s.more(depth, 0, 0)
	return tag{name, v}, ok
}

// wordPart is what may stand in a symbol or keyword.
const wordPart = `[\pL0-9.*+!\-_?$%&=<>:#']`

var (
	ednWord = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(/|(:[\pL0-9.*+!\-_?$%&=<>#']|[\pL.*+!\-_?$%&=<>])` + wordPart + `*(/` + wordPart +
			`+)?)$`)
	})
	tagName = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^\pL` + wordPart + `*(/` + wordPart +
			`+)?$`)
	})
)

// word reads a number or a name.
func (s *forms) word() (v any) {
	s.collect("")
	if v, known := s.words[string(s.text)]; known || s.err != nil {
		return v
	}
	text := string(s.text)
	switch {
	case text == "true" || text == "false":
		v = text == "true"
	case text == either(s.json, "null", "nil"):
	case s.json && !json.Valid(s.text):
		s.bad("%.60q is no value", text)
	case isOddNumber(s.text):
		return json.Number(text)
	case isDecimal(strings.TrimPrefix(text, "-")) && text != "-":
		n, _ := strconv.ParseInt(text, 10, 64)
		return n
	case s.json:
		return json.Number(text)
	case !ednWord().MatchString(text):
		s.bad("%.60q is no word", text)
	case text[0] == ':':
		v = keyword(text[1:])
	default:
		v = symbol(text)
	}
	if len(s.words) < wordsMax {
		s.words[text] = v
	}
	return v
}

// collect reads bytes up to what can't belong to a symbol or number, behind what begins them.
func (s *forms) collect(begin string) {
	s.text = append(s.text[:0], begin...)
	for {
		c, ok := s.peek()
		if !ok || isBlank(c) || strings.IndexByte("{}[]()\";\\", c) >= 0 || s.json && c == ':' {
			return
		}
		if len(s.text) >= s.in.opt.RecordMax {
			s.fail(reject.TooLarge, "a word has more than %d bytes, the limit of a record", s.in.opt.RecordMax)
			return
		}
		s.text = append(s.text, c)
		s.skip()
	}
}

// char reads a character: a backslash, any byte, and what may belong to it.
func (s *forms) char() any {
	s.skip()
	c := s.need()
	s.skip()
	s.collect(string([]byte{c}))
	name := string(s.text)
	text, known := charNames[name]
	switch {
	case name == "backspace" || c == ',' || len(name) > 1 && c == 'o':
		return tag{charTag, name}
	case known:
		return text
	case len(name) == 5 && c == 'u':
		var err error
		name, err = unquoted([]byte(`"\` + name + `"`))
		known = err == nil
	default:
		known = utf8.ValidString(name) && c > ' '
	}
	if !known || utf8.RuneCountInString(name) != 1 {
		s.bad("%.60q is no character", `\`+name)
	}
	r, _ := utf8.DecodeRuneInString(name)
	return r
}

var charNames = map[string]rune{"newline": '\n', "return": '\r', "space": ' ', "tab": '\t', "formfeed": '\f'}

// str reads a string. In a regular expression a backslash is itself, but before a quote.
func (s *forms) str(regex bool) string {
	s.skip()
	s.text = append(s.text[:0], '"')
	plain := true
	for s.err == nil {
		c := s.need()
		s.skip()
		switch {
		case c == '"':
			if plain && utf8.Valid(s.text) {
				if text, known := s.strings[string(s.text[1:])]; known {
					return text
				}
				text := string(s.text[1:])
				if len(s.strings) < wordsMax {
					s.strings[text] = text
				}
				return text
			}
			text, err := unquoted(append(s.text, c))
			if err != nil {
				s.bad("%.60q is no string", s.text)
			}
			return text
		case c == '\\':
			next := s.need()
			s.skip()
			if plain = false; regex && next != '"' {
				s.text = append(s.text, c, c)
				if next == c {
					s.text = append(s.text, c)
				}
			} else {
				s.text = append(s.text, c)
			}
			s.text = append(s.text, next)
		case c < ' ' && !s.json: // EDN has them as they are
			plain = false
			s.text = append(append(s.text, `\u00`...), "0123456789abcdef"[c>>4], "0123456789abcdef"[c&15])
		default:
			plain = plain && c >= ' '
			s.text = append(s.text, c)
		}
	}
	return ""
}

// isBlank: commas are blanks in EDN, and so they are between the operations of JSON.
func isBlank(c byte) bool { return c <= ' ' || c == ',' }

func closing(c byte) byte {
	switch c {
	case '{':
		return '}'
	case '[':
		return ']'
	}
	return ')'
}

// isOddNumber recognises a number that is not a plain integer of an int64.
func isOddNumber(word []byte) bool {
	digits := word
	if word[0] == '-' || word[0] == '+' {
		digits = word[1:]
	}
	if len(digits) == 0 || digits[0] < '0' || digits[0] > '9' {
		return false
	}
	return !isDecimal(string(digits)) || len(digits) > 18 || word[0] == '+' || len(digits) > 1 && digits[0] == '0'
}

// unquoted is what a JSON string says.
func unquoted(raw json.RawMessage) (s string, err error) {
	if len(raw) == 0 || raw[0] != '"' {
		return "", errNoString
	}
	err = json.Unmarshal(raw, &s)
	return s, err
}

var errNoString = errors.New("no string")
