package record

import (
	"iter"
	"maps"
	"slices"
)

// Members are the members of an object, in the order of their names. Anything but an object has none. Cost: linear in
// the text.
func (v Value) Members() iter.Seq2[string, Value] {
	return func(yield func(string, Value) bool) {
		for rest := v.Inside(KindObject); !rest.Ended(); {
			if name := rest.Element().Text; !yield(name, rest.Element()) {
				return
			}
		}
	}
}

// Fields are the members of an object, by name. Anything but an object has none.
func (v Value) Fields() map[string]Value {
	if v.Kind != KindObject || len(v.Text) <= 2 {
		return nil
	}
	return maps.Collect(v.Members())
}

// nameEnd is the length of the quoted name that canonical text begins with.
func nameEnd(text string) int {
	i := 1
	for ; text[i] != '"'; i++ {
		if text[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// ObjectOf is the object with those members.
func ObjectOf(members map[string]Value) Value {
	size := 2
	for name, v := range members {
		size += len(name) + len(v.Text) + len(`"":"",`)
	}
	text := append(make([]byte, 0, size), '{')
	for i, name := range slices.Sorted(maps.Keys(members)) {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(AppendJSONString(text, name), ':')
		text = members[name].AppendJSON(text)
	}
	return Value{Kind: KindObject, Text: string(append(text, '}'))}
}
