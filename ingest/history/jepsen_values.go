package history

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"

	"olympos.io/encoding/edn"

	"github.com/isowatch/isowatch/ingest/codec"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/reject"
)

// What is decoded from a form is one of: nil, bool, int64, string, rune (a
// character), edn.Keyword, edn.Symbol, edn.Tag, json.Number, []any (lists and
// vectors), map[any]any, map[any]bool (sets), map[string]any (JSON's).

// ednTags keeps tags that the library would convert, and refuse to, as tags.
var ednTags = sync.OnceValue(func() *edn.TagMap {
	tags := new(edn.TagMap)
	for _, name := range []string{"inst", "base64"} {
		tags.MustAddTagFn(name, func(v any) (edn.Tag, error) { return edn.Tag{Tagname: name, Value: v}, nil })
	}
	return tags
})

// ednReaders are buffers to decode from: the library makes one per decoder
// otherwise, of ten times the size of an operation.
var ednReaders = sync.Pool{New: func() any { return bufio.NewReader(nil) }}

// decodeEDN decodes a form that was cut by forms, and so is of bounded depth.
func decodeEDN(text []byte) (v any, err *reject.Error) {
	// The library panics on what it did not foresee. Its state is its own, so
	// nothing outlives this form.
	defer func() {
		if p := recover(); p != nil {
			v, err = nil, reject.New(reject.BadStructure, "the operation is not EDN: %.200v", p)
		}
	}()
	r := ednReaders.Get().(*bufio.Reader)
	defer ednReaders.Put(r)
	r.Reset(bytes.NewReader(text))
	d := edn.NewDecoder(r) // reads from r itself, as that is a bufio.Reader
	d.UseTagMap(ednTags())
	if bad := d.Decode(&v); bad != nil {
		return nil, reject.New(reject.BadStructure, "the operation is not EDN: %.200v", bad)
	}
	if strings.IndexByte(")]}", text[len(text)-1]) >= 0 {
		return v, nil // nothing can follow: forms cuts behind the last bracket
	}
	var more any
	if bad := d.Decode(&more); !errors.Is(bad, io.EOF) {
		return nil, reject.New(reject.BadStructure, "the operation is not EDN: something follows it")
	}
	return v, nil
}

// decodeJSON decodes a form without rounding numbers.
func decodeJSON(text []byte) (v any, err *reject.Error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if bad := d.Decode(&v); bad != nil {
		return nil, reject.New(reject.BadJSON, "the operation is not JSON: %.200v", bad)
	}
	return v, nil
}

// fieldOf takes a field of an operation's map.
func fieldOf(m any, name string) (v any, present bool) {
	switch m := m.(type) {
	case map[any]any:
		if v, present = m[edn.Keyword(name)]; !present {
			v, present = m[name]
		}
	case map[string]any:
		v, present = m[name]
	}
	return v, present
}

// untagged takes off tags: #jepsen.history.Op{…} is a map.
func untagged(v any) any {
	for {
		t, ok := v.(edn.Tag)
		if !ok || t.Tagname == numberTag || t.Tagname == charTag {
			return v
		}
		v = t.Value
	}
}

// wordOf is the name of a keyword; JSON writes it as a string.
func wordOf(v any) (string, bool) {
	switch v := v.(type) {
	case edn.Keyword:
		return string(v), true
	case edn.Symbol:
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
	case edn.Tag:
		s, ok := v.Value.(string)
		return s, ok && v.Tagname == numberTag
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
	case map[any]bool:
		set := make([]any, 0, len(v))
		for e := range v {
			set = append(set, member(e))
		}
		sortByText(set, func(e any) any { return e })
		return set, true
	}
	return nil, false
}

// member is a member of a set or a key of a map: the library puts lists and
// maps, which can't be Go's, behind pointers.
func member(e any) any {
	if p, ok := e.(*any); ok {
		return *p
	}
	return e
}

// pair is an entry of a map.
type pair struct{ key, value any }

// entries are those of a map in canonical order of keys.
func entries(v any) ([]pair, bool) {
	var out []pair
	switch m := untagged(v).(type) {
	case map[any]any:
		for k, e := range m {
			out = append(out, pair{member(k), e})
		}
	case map[string]any:
		for k, e := range m {
			var key any = k
			if k != "" && !isOddNumber([]byte(k)) && isDecimal(strings.TrimPrefix(k, "-")) {
				key = json.Number(k) // JSON has no other way to write it here
			}
			out = append(out, pair{key, e})
		}
	default:
		return nil, false
	}
	sortByText(out, func(p pair) any { return p.key })
	return out, true
}

// sortByText sorts by the text of what key says, shorter numbers first.
func sortByText[T any](list []T, key func(T) any) {
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
	for i, n := range all {
		list[i] = n.it
	}
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
	case edn.Symbol:
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
	case edn.Symbol:
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
	case edn.Keyword:
		return append(append(b, ':'), v...)
	case edn.Symbol:
		return append(b, v...)
	case edn.Tag:
		b = append(append(append(b, '#'), v.Tagname...), ' ')
		return appendText(b, v.Value)
	case []any:
		list("[", v, ']')
	case map[any]bool:
		set, _ := elements(v)
		list("#{", set, '}')
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
