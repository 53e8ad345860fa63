package history

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"

	"github.com/isowatch/isowatch/ingest/codec"
	"github.com/isowatch/isowatch/ingest/reject"
)

// forms cuts a text of EDN or JSON into its outermost values, called forms, so that
// a library can decode them one by one: a file is a sequence of forms, or one
// list or vector of them, which may be larger than memory. To the cutter both
// notations look the same but for what EDN adds: comments, tags, characters.
//
// The EDN library recurses without bound, knows no place in a file, and refuses
// what Clojure prints beyond the standard (ratios, hexadecimal and symbolic
// numbers, regular expressions, maps with a namespace). So the cutter bounds
// size and nesting, counts lines, and writes such things as tagged strings.
type forms struct {
	in           *input
	r            *bufio.Reader
	json         bool
	single       bool  // a list is a form itself, not a list of forms
	line, offset int64 // of the byte to come
	inside       byte  // what closes the list that the forms stand in; 0 if none is open
	started      bool

	// Of the form at hand.
	text     []byte
	closers  []byte // of what is open in it, innermost last
	missing  int    // values still to come at its outermost level
	prefixes int    // tags and discards directly before the value to come
	discards int
}

// form is one form; its text is its own.
type form struct {
	text         []byte
	line, offset int64
}

const (
	// formDepthMax bounds lists in lists and tags on tags: what stands around
	// a value of the deepest kind that a record can hold.
	formDepthMax = codec.DepthMax + 8
	// discardsMax bounds what is crossed out in one form: the library's stack
	// grows with each.
	discardsMax = 1000
	// numberTag marks the text of a number that is not a plain integer, so that
	// nothing of it is lost, charTag that of a character beyond EDN's.
	numberTag = "isowatch/number"
	charTag   = "isowatch/char"
	regexTag  = "isowatch/regex"
)

func newForms(in *input, r *bufio.Reader, json bool) *forms {
	return &forms{in: in, r: r, json: json, line: 1}
}

func (s *forms) fail(r reject.Reason, format string, args ...any) error {
	return s.in.at(reject.New(r, format, args...), s.line, s.offset)
}

// get takes a byte.
func (s *forms) get() (byte, error) {
	c, err := s.r.ReadByte()
	if err != nil {
		return 0, err
	}
	s.offset++
	if c == '\n' {
		s.line++
	}
	return c, nil
}

// peek looks at the byte to come; 0 at the end, where get tells why.
func (s *forms) peek() byte {
	b, _ := s.r.Peek(1)
	if len(b) == 0 {
		return 0
	}
	return b[0]
}

// put adds to the form's text, within bounds.
func (s *forms) put(b ...byte) error {
	if len(s.text)+len(b) > s.in.opt.RecordMax {
		return s.fail(reject.TooLarge, "the operation has more than %d bytes, the limit of a record", s.in.opt.RecordMax)
	}
	s.text = append(s.text, b...)
	return nil
}

// next returns the next form; io.EOF behind the last.
func (s *forms) next() (form, error) {
	if !s.started {
		s.started = true
		if b, _ := s.r.Peek(len(byteOrderMark)); bytes.Equal(b, byteOrderMark) {
			n, _ := s.r.Discard(len(byteOrderMark))
			s.offset += int64(n)
		}
	}
	s.text, s.closers, s.missing, s.prefixes, s.discards = nil, s.closers[:0], 1, 0, 0
	var f form
	for s.missing > 0 || len(s.closers) > 0 {
		fresh := len(s.text) == 0
		if fresh {
			f.line, f.offset = s.line, s.offset
		}
		c, err := s.get()
		switch {
		case errors.Is(err, io.EOF):
			return f, s.atEnd()
		case err != nil:
			return f, err
		case isBlank(c):
			if fresh {
				continue
			}
			err = s.put(c)
		case len(s.closers) == 0 && s.inside != 0 && c == s.inside && s.onlyDiscarded():
			s.inside = 0
			s.text, s.missing, s.prefixes = nil, 1, 0
		case fresh && s.inside == 0 && !s.single && (c == '[' || c == '(' && !s.json):
			s.inside = closing(c)
		default:
			err = s.token(c)
		}
		if err != nil {
			return f, err
		}
	}
	f.text = s.text
	return f, nil
}

// onlyDiscarded tells whether all that was read of the form is crossed out.
func (s *forms) onlyDiscarded() bool { return s.missing == 1 && s.prefixes == 0 }

// atEnd says what the end of the input means.
func (s *forms) atEnd() error {
	switch {
	case len(s.closers) > 0 || !s.onlyDiscarded():
		return s.fail(reject.Truncated, "the input ends in the middle of an operation")
	case s.inside != 0:
		return s.fail(reject.Truncated, "the input ends before the list of operations does")
	}
	return io.EOF
}

// token takes what c begins.
func (s *forms) token(c byte) error {
	switch c {
	case '{', '[', '(':
		return s.open(c)
	case '}', ']', ')':
		return s.close(c)
	case '"':
		if err := s.str(false); err != nil {
			return err
		}
		return s.valueEnds()
	}
	if !s.json {
		switch c {
		case ';':
			return s.comment()
		case '#':
			return s.dispatch()
		case '\\':
			return s.char()
		}
	}
	word, err := s.word(c)
	if err != nil {
		return err
	}
	if !s.json && isOddNumber(word) {
		word = tagged(numberTag, word)
	}
	if err := s.put(word...); err != nil {
		return err
	}
	return s.valueEnds()
}

func (s *forms) open(c byte) error {
	if len(s.closers)+s.prefixes >= formDepthMax {
		return s.fail(reject.TooDeep, "the operation nests more than %d lists or maps", formDepthMax)
	}
	s.closers = append(s.closers, closing(c))
	s.prefixes = 0
	return s.put(c)
}

func (s *forms) close(c byte) error {
	n := len(s.closers)
	if n == 0 || s.closers[n-1] != c {
		return s.fail(reject.BadStructure, "%q closes nothing that is open", c)
	}
	s.closers = s.closers[:n-1]
	if err := s.put(c); err != nil {
		return err
	}
	return s.valueEnds()
}

func (s *forms) valueEnds() error {
	s.prefixes = 0
	if len(s.closers) == 0 {
		s.missing--
	}
	return nil
}

// prefix counts a tag or a discard, which stands before a value.
func (s *forms) prefix() error {
	if s.prefixes++; s.prefixes+len(s.closers) > formDepthMax {
		return s.fail(reject.TooDeep, "the operation nests more than %d tags or lists", formDepthMax)
	}
	return nil
}

// str takes a string to its end. In a regular expression a backslash is itself.
func (s *forms) str(regex bool) error {
	if err := s.put('"'); err != nil {
		return err
	}
	for {
		c, err := s.body()
		if err != nil {
			return err
		}
		if err := s.put(c); err != nil {
			return err
		}
		switch c {
		case '"':
			return nil
		case '\\':
			if c, err = s.body(); err != nil {
				return err
			}
			if regex && c != '"' {
				err = s.put('\\')
			}
			if err == nil {
				err = s.put(c)
			}
			if err == nil && regex && c == '\\' {
				err = s.put('\\')
			}
			if err != nil {
				return err
			}
		}
	}
}

// body takes a byte that has to come.
func (s *forms) body() (byte, error) {
	c, err := s.get()
	if errors.Is(err, io.EOF) {
		return 0, s.fail(reject.Truncated, "the input ends in the middle of an operation")
	}
	return c, err
}

// comment passes over the rest of the line.
func (s *forms) comment() error {
	for {
		c, err := s.get()
		switch {
		case c == '\n' && len(s.text) > 0:
			return s.put(c)
		case c == '\n' || errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

// dispatch takes what begins with #.
func (s *forms) dispatch() error {
	switch c := s.peek(); c {
	case '{':
		if _, err := s.get(); err != nil {
			return err
		}
		if err := s.put('#'); err != nil {
			return err
		}
		return s.open('{')
	case '_':
		if _, err := s.get(); err != nil {
			return err
		}
		if s.discards++; s.discards > discardsMax {
			return s.fail(reject.TooLarge, "the operation has more than %d values crossed out with #_", discardsMax)
		}
		if len(s.closers) == 0 {
			s.missing++
		}
		if err := s.prefix(); err != nil {
			return err
		}
		return s.put('#', '_')
	case '"':
		if _, err := s.get(); err != nil {
			return err
		}
		if err := s.put([]byte("#" + regexTag + " ")...); err != nil {
			return err
		}
		if err := s.str(true); err != nil {
			return err
		}
		return s.valueEnds()
	}
	word, err := s.word('#')
	if err != nil {
		return err
	}
	switch {
	case bytes.HasPrefix(word, []byte("##")): // ##Inf, ##NaN
		if err := s.put(tagged(numberTag, word)...); err != nil {
			return err
		}
		return s.valueEnds()
	case bytes.HasPrefix(word, []byte("#:")): // #:name{…}: its name becomes a tag
		word = append([]byte("#"), bytes.TrimLeft(word[1:], ":")...)
	}
	if err := s.prefix(); err != nil {
		return err
	}
	return s.put(append(word, ' ')...)
}

// char takes a character: a backslash, any byte, and what may belong to it.
func (s *forms) char() error {
	c, err := s.body()
	if err != nil {
		return err
	}
	name, err := s.word(c)
	if err != nil {
		return err
	}
	word := append([]byte{'\\'}, name...)
	if string(name) == "backspace" || name[0] == ',' || len(name) > 1 && name[0] == 'o' {
		word = tagged(charTag, name)
	}
	if err := s.put(word...); err != nil {
		return err
	}
	return s.valueEnds()
}

// word takes bytes, of which c is the first, up to what can't belong to a
// symbol or number.
func (s *forms) word(c byte) ([]byte, error) {
	word := []byte{c}
	for {
		b, err := s.r.Peek(1)
		if isReadError(err) {
			return nil, err
		}
		if len(b) == 0 || isBlank(b[0]) || strings.IndexByte("{}[]()\";\\", b[0]) >= 0 {
			return word, nil
		}
		if len(word) >= s.in.opt.RecordMax {
			return nil, s.fail(reject.TooLarge, "a word has more than %d bytes, the limit of a record", s.in.opt.RecordMax)
		}
		if c, err = s.get(); err != nil {
			return nil, err
		}
		word = append(word, c)
	}
}

// isBlank: commas are blanks in EDN, and JSON's say nothing that its brackets do not.
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
	for _, c := range digits {
		if c < '0' || c > '9' {
			return true
		}
	}
	return len(digits) > 18 || word[0] == '+' || len(digits) > 1 && digits[0] == '0'
}

// tagged is word as a string with a tag.
func tagged(tag string, word []byte) []byte {
	b := append([]byte("#"), tag...)
	b = append(b, ' ', '"')
	for _, c := range word {
		if c == '"' || c == '\\' {
			b = append(b, '\\')
		}
		b = append(b, c)
	}
	return append(b, '"')
}
