package history

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/isowatch/isowatch/ingest/codec"
	"github.com/isowatch/isowatch/ingest/record"
)

// fieldOf takes a field of an operation's map.
func fieldOf(m any, name string) (v any, present bool) {
	of, _ := m.(mapping)
	for _, p := range slices.Backward(of) {
		switch p.key {
		case keyword(name):
			return p.value, true
		case name:
			if !present {
				v, present = p.value, true
			}
		}
	}
	return v, present
}

// untagged takes off tags: #jepsen.history.Op{…} is a map.
func untagged(v any) any {
	for {
		t, ok := v.(tag)
		if !ok || t.name == charTag {
			return v
		}
		v = t.value
	}
}

// wordOf is the name of a keyword; JSON writes it as a string.
func wordOf(v any) (string, bool) {
	switch v := v.(type) {
	case keyword:
		return string(v), true
	case symbol:
		return string(v), true
	case string:
		return v, true
	}
	return "", false
}

// numberText is the text of a number of any kind.
func numberText(v any) (string, bool) {
	switch v := v.(type) {
	case int64:
		return strconv.FormatInt(v, 10), true
	case json.Number:
		return string(v), true
	}
	return "", false
}

// numberOf is the value of a number; false if v is none. Ratios, hexadecimal and
// symbolic numbers are their texts.
func numberOf(v any) (record.Value, bool) {
	text, ok := numberText(v)
	if !ok {
		return record.Null, false
	}
	if n, ok := v.(int64); ok {
		return record.Int(n), true
	}
	plain := strings.TrimPrefix(strings.TrimRight(text, "NM"), "+")
	if n, err := codec.ParseValue([]byte(plain)); err == nil {
		return n, true
	}
	return record.String("#" + text), true
}

// elements are those of a list, a vector or a set; a set's in canonical order.
func elements(v any) ([]any, bool) {
	switch v := untagged(v).(type) {
	case []any:
		return v, true
	case set:
		return canonicalOrder(v, func(e any) any { return e }), true
	}
	return nil, false
}

// entries are those of a map in canonical order of keys.
func entries(v any) ([]pair, bool) {
	m, ok := untagged(v).(mapping)
	return canonicalOrder(m, func(p pair) any { return p.key }), ok
}

// canonicalOrder is list in the order of the text of what key says, shorter numbers first; of equal ones the last.
func canonicalOrder[T any](list []T, key func(T) any) []T {
	type named struct {
		text string
		it   T
	}
	all := make([]named, len(list))
	for i, it := range list {
		all[i] = named{string(appendText(nil, key(it))), it}
	}
	slices.SortStableFunc(all, func(a, b named) int {
		if c := len(a.text) - len(b.text); c != 0 && isDecimal(a.text) && isDecimal(b.text) {
			return c
		}
		return strings.Compare(a.text, b.text)
	})
	var out []T
	for i, n := range all {
		if i+1 == len(all) || all[i+1].text != n.text {
			out = append(out, n.it)
		}
	}
	return out
}

func isDecimal(s string) bool { return strings.Trim(s, "0123456789") == "" }

// special are the first characters of names that stand for something else than a
// string of the same text; a string that begins so is written with quotes.
const special = ":\"'\\#{[(+-0123456789"

// nameOf is the text of a key: two keys have the same text only if they are the
// same. 3 is 3, :x is :x, "x" is x, [1 :a] is [1 :a], "3" is "3" with its quotes.
func nameOf(v any) string {
	switch v := untagged(v).(type) {
	case string:
		if v != "" && strings.IndexByte(special, v[0]) < 0 && v != "nil" && v != "true" && v != "false" {
			return v
		}
	case symbol:
		return "'" + string(v)
	}
	return string(appendText(nil, v))
}

// valueOf is what a record holds of v: numbers, strings, booleans and lists are
// themselves, everything else is its text.
func valueOf(v any) record.Value {
	if n, ok := numberOf(v); ok {
		return n
	}
	switch v := v.(type) {
	case nil:
		return record.Null
	case bool:
		return record.Value{Kind: record.KindBool, Text: strconv.FormatBool(v)}
	case string:
		if v == "" || strings.IndexByte(":\"'\\#{", v[0]) < 0 {
			return record.String(v)
		}
	case symbol:
		return record.String("'" + string(v))
	case []any:
		text := []byte{'['}
		for i, e := range v {
			if i > 0 {
				text = append(text, ',')
			}
			text = valueOf(e).AppendJSON(text)
		}
		return record.Value{Kind: record.KindList, Text: string(append(text, ']'))}
	}
	return record.String(string(appendText(nil, v)))
}

// appendText appends the EDN text of v, sets and maps in canonical order.
func appendText(b []byte, v any) []byte {
	if text, ok := numberText(v); ok {
		if n, _ := numberOf(v); n.Kind == record.KindString {
			return append(b, text...)
		}
		n, _ := numberOf(v)
		return n.AppendJSON(b)
	}
	list := func(open string, vs []any, end byte) {
		b = append(b, open...)
		for i, e := range vs {
			if i > 0 {
				b = append(b, ' ')
			}
			b = appendText(b, e)
		}
		b = append(b, end)
	}
	switch v := v.(type) {
	case nil:
		return append(b, "nil"...)
	case bool:
		return strconv.AppendBool(b, v)
	case string:
		return record.AppendJSONString(b, v)
	case rune:
		return append(append(b, '\\'), string(v)...)
	case keyword:
		return append(append(b, ':'), v...)
	case symbol:
		return append(b, v...)
	case tag:
		b = append(append(append(b, '#'), v.name...), ' ')
		return appendText(b, v.value)
	case []any:
		list("[", v, ']')
	case set:
		in, _ := elements(v)
		list("#{", in, '}')
	default:
		es, _ := entries(v)
		flat := make([]any, 0, 2*len(es))
		for _, e := range es {
			flat = append(flat, e.key, e.value)
		}
		list("{", flat, '}')
	}
	return b
}
