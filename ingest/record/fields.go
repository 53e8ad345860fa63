package record

import (
	"maps"
	"slices"
)

// Fields are the members of an object, by name. Anything but an object has none. Cost: linear in the text.
func (v Value) Fields() map[string]Value {
	if v.Kind != KindObject || len(v.Text) <= 2 {
		return nil
	}
	out := map[string]Value{}
	for text := v.Text[1 : len(v.Text)-1]; len(text) > 0; {
		n := elementEnd(text)
		name := nameEnd(text)
		out[element(text[:name]).Text] = element(text[name+1 : n])
		if n == len(text) {
			break
		}
		text = text[n+1:]
	}
	return out
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
	text := []byte{'{'}
	for i, name := range slices.Sorted(maps.Keys(members)) {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(AppendJSONString(text, name), ':')
		text = members[name].AppendJSON(text)
	}
	return Value{Kind: KindObject, Text: string(append(text, '}'))}
}
