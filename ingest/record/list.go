package record

import (
	"encoding/json"
	"iter"
	"slices"
	"strconv"
	"strings"
)

// Elements are the values that a list holds. Anything but a list has none. Cost:
// linear in the text.
func (v Value) Elements() []Value {
	if v.Kind != KindList || len(v.Text) <= 2 {
		return nil
	}
	return slices.AppendSeq(make([]Value, 0, 1+strings.Count(v.Text, ",")), v.Each())
}

// Each are the elements of a list one by one, without memory of their own.
func (v Value) Each() iter.Seq[Value] {
	return func(yield func(Value) bool) {
		for rest := v.Inside(KindList); !rest.Ended(); {
			if !yield(rest.Element()) {
				return
			}
		}
	}
}

// elementEnd is the length of the first element of canonical text.
func elementEnd(text string) int {
	if text[0] == '"' {
		return nameEnd(text)
	}
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case '[', '{':
			depth++
		case ']', '}':
			depth--
		case ',':
			if depth == 0 {
				return i
			}
		}
	}
	return len(text)
}

// element is the value whose canonical text is given.
func element(text string) Value {
	switch c := text[0]; {
	case text == "null":
		return Null
	case c == 't' || c == 'f':
		return Value{Kind: KindBool, Text: text}
	case c == '[':
		return Value{Kind: KindList, Text: text}
	case c == '{':
		return Value{Kind: KindObject, Text: text}
	case c == '"':
		if !strings.Contains(text, `\`) {
			return String(text[1 : len(text)-1])
		}
		var s string
		if json.Unmarshal([]byte(text), &s) == nil {
			return String(s)
		}
		return String(text)
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return Int(n)
	}
	return Value{Kind: KindNumber, Text: text}
}
