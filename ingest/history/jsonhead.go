package history

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
)

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

func unquoted(raw json.RawMessage) (s string, err error) {
	if len(raw) == 0 || raw[0] != '"' {
		return "", errNoString
	}
	err = json.Unmarshal(raw, &s)
	return s, err
}

var errNoString = errors.New("no string")
