package history

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/isowatch/isowatch/ingest/reject"
)

// jsonInput reads one large JSON value piece by piece and knows the line of
// each piece. Memory is that of the piece at hand.
type jsonInput struct {
	*json.Decoder
	in    *input
	read  int64   // bytes that the decoder has been given
	line  int64   // up to which line breaks are counted
	ahead []int64 // offsets of the line breaks behind that
	err   error   // how reading ended, if not with the input
	bad   error   // the first thing that is wrong, at its place: nothing is taken after it
}

func newJSON(in *input) (*jsonInput, error) {
	j := &jsonInput{in: in, line: 1}
	mark, err := in.r.Peek(len(byteOrderMark))
	if isReadError(err) {
		return nil, err
	}
	if bytes.Equal(mark, byteOrderMark) {
		if _, err := in.r.Discard(len(mark)); err != nil {
			return nil, err
		}
	}
	j.Decoder = json.NewDecoder(j)
	j.UseNumber()
	return j, nil
}

// Read is for the decoder.
func (j *jsonInput) Read(p []byte) (int, error) {
	n, err := j.in.r.Read(p)
	for i, c := range p[:n] {
		if c == '\n' {
			j.ahead = append(j.ahead, j.read+int64(i))
		}
	}
	j.read += int64(n)
	if isReadError(err) {
		j.err = err
	}
	return n, err
}

// lineAt is the line of the byte at offset, which must not go back.
func (j *jsonInput) lineAt(offset int64) int64 {
	passed := 0
	for passed < len(j.ahead) && j.ahead[passed] < offset {
		passed++
	}
	j.line += int64(passed)
	j.ahead = append(j.ahead[:0], j.ahead[passed:]...)
	return j.line
}

// fail notes what is wrong with the piece that has just been taken, if anything is.
func (j *jsonInput) fail(e *reject.Error) {
	if e != nil && j.bad == nil {
		at := j.InputOffset()
		j.bad = j.in.at(e, j.lineAt(at), at)
	}
}

// under says in what the thing is that is wrong.
func (j *jsonInput) under(name string) {
	if e, ok := j.bad.(*reject.Error); ok && j.bad != j.err {
		e.Under(name)
	}
}

func (j *jsonInput) underIndex(i int) {
	if j.bad != nil {
		j.under(fmt.Sprintf("[%d]", i))
	}
}

// explain notes an error of the decoder with its reason and place.
func (j *jsonInput) explain(err error) {
	var syntax *json.SyntaxError
	var typed *json.UnmarshalTypeError
	switch {
	case err == nil || j.bad != nil:
	case j.err != nil: // the environment's, or one that has its reason
		j.bad = j.err
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		j.bad = j.in.at(reject.New(reject.Truncated, "the JSON ends in the middle"), j.lineAt(j.read), j.read)
	case errors.As(err, &syntax):
		// Offset counts from the beginning of the input, 1-based.
		at := syntax.Offset - 1
		j.bad = j.in.at(reject.New(reject.BadJSON, "this is no JSON: %v", err), j.lineAt(at), at)
	case errors.As(err, &typed):
		j.fail(reject.In(typed.Field, reject.WrongType, "a JSON %s does not belong here", typed.Value))
	default:
		j.fail(reject.New(reject.BadJSON, "this is no JSON of this format: %v", err))
	}
}

func (j *jsonInput) more() bool { return j.bad == nil && j.More() }

// token takes the next token, nil after an error.
func (j *jsonInput) token() (t json.Token) {
	if j.bad == nil {
		var err error
		t, err = j.Token()
		j.explain(err)
	}
	return t
}

// piece takes the next value whole.
func (j *jsonInput) piece(v any) (ok bool) {
	if j.bad == nil {
		j.explain(j.Decode(v))
	}
	return j.bad == nil
}

// open takes the token '[' or '{'.
func (j *jsonInput) open(want json.Delim) {
	if t := j.token(); t != want {
		j.fail(reject.New(reject.WrongType, "want %v, not %s", want, describe(t)))
	}
}

// end takes the last token, which closes. Nothing may follow it.
func (j *jsonInput) end() {
	if j.token(); j.bad != nil {
		return
	}
	switch _, err := j.Token(); {
	case err != nil && j.err != nil:
		j.bad = j.err
	case !errors.Is(err, io.EOF):
		j.fail(reject.New(reject.BadStructure, "something follows the end of the history"))
	}
}

// describe names a token for messages.
func describe(t json.Token) string {
	switch t := t.(type) {
	case json.Delim:
		return t.String()
	case string:
		return fmt.Sprintf("the string %.40q", t)
	case json.Number:
		return fmt.Sprintf("the number %.40s", t)
	case nil:
		return "null"
	}
	return fmt.Sprint(t)
}

// shape says, of the first bytes of a JSON value, which brackets open it, and
// the names of the fields of the first object in it, as far as they can be seen.
func shape(head []byte) (brackets string, fields []string) {
	head = bytes.TrimPrefix(head, byteOrderMark)
	if first := bytes.TrimLeft(head, " \t\r\n"); len(first) == 0 || first[0] != '[' && first[0] != '{' {
		return "", nil
	}
	d := json.NewDecoder(bytes.NewReader(head))
	d.UseNumber()
	for len(brackets) < 4 {
		t, err := d.Token()
		delim, ok := t.(json.Delim)
		if err != nil || !ok {
			return brackets, nil
		}
		brackets += delim.String()
		if delim != '[' {
			break
		}
	}
	if !strings.HasSuffix(brackets, "{") {
		return brackets, nil
	}
	depth, name := 1, true
	for depth > 0 {
		t, err := d.Token()
		if err != nil {
			break
		}
		switch t := t.(type) {
		case json.Delim:
			if t == '{' || t == '[' {
				depth++
			} else {
				depth--
			}
			name = depth == 1
		case string:
			if depth == 1 && name {
				fields = append(fields, t)
				name = false
				continue
			}
			name = depth == 1
		default:
			name = depth == 1
		}
	}
	return brackets, fields
}

func isNull(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

// integer is a JSON number, or a string of one, that fits an int64.
func (j *jsonInput) integer(field string, raw json.RawMessage) int64 {
	text := strings.TrimSpace(string(raw))
	if s, err := unquoted(raw); err == nil {
		text = s
	}
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case isNull(raw):
		j.fail(reject.In(field, reject.MissingField, "want an integer, and it is not there"))
	case errors.Is(err, strconv.ErrRange):
		j.fail(reject.In(field, reject.OutOfRange, "%.40s does not fit 64 bits", text))
	case err != nil:
		j.fail(reject.In(field, reject.WrongType, "want an integer, not %.40s", raw))
	}
	return n
}

// number is a JSON number that fits 64 bits without a sign.
func (j *jsonInput) number(field string, raw json.RawMessage) uint64 {
	if isNull(raw) {
		j.fail(reject.In(field, reject.MissingField, "want an unsigned integer, and it is not there"))
	}
	n, err := unsigned(field, raw)
	j.fail(err)
	return n
}

// name is a JSON string or number as a name.
func (j *jsonInput) name(field string, raw json.RawMessage) string {
	if isNull(raw) {
		j.fail(reject.In(field, reject.MissingField, "want a name or number, and it is not there"))
		return ""
	}
	text := string(raw)
	if raw[0] == '"' {
		s, err := unquoted(raw)
		if err != nil {
			j.fail(reject.In(field, reject.WrongType, "want a name or number, not %.40s", raw))
		}
		text = s
	} else if _, err := strconv.ParseInt(text, 10, 64); err != nil {
		if _, err := strconv.ParseUint(text, 10, 64); err != nil {
			j.fail(reject.In(field, reject.WrongType, "want a name or an integer, not %.40s", raw))
		}
	}
	if text == "" {
		j.fail(reject.In(field, reject.EmptyName, "the name is empty"))
	}
	return text
}

func unquoted(raw json.RawMessage) (s string, err error) {
	if len(raw) == 0 || raw[0] != '"' {
		return "", errNoString
	}
	err = json.Unmarshal(raw, &s)
	return s, err
}

var errNoString = errors.New("no string")
