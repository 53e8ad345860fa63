package record

// Rest is what is left of a list's elements, or an object's members, as they are taken one after the other. Cost:
// linear in the text of what is taken, without memory of its own.
type Rest struct{ text string }

// Inside are all elements of a list (KindList), or members of an object (KindObject) in the order of their names.
// Anything else than that has none.
func (v Value) Inside(is ValueKind) Rest {
	if v.Kind != is || len(v.Text) <= 2 {
		return Rest{}
	}
	return Rest{v.Text[1 : len(v.Text)-1]}
}

// Ended tells whether nothing is left.
func (r *Rest) Ended() bool { return r.text == "" }

// Element takes an element of a list.
func (r *Rest) Element() Value { return element(r.take(elementEnd(r.text))) }

// Member takes a member of an object.
func (r *Rest) Member() (name string, v Value) {
	name = element(r.take(nameEnd(r.text))).Text
	return name, r.Element()
}

// Is takes what is next if first and second are its canonical text: of a member its name in quotes with the colon, and
// its value. It compares texts, and takes none apart.
func (r *Rest) Is(first, second string) bool {
	n := len(first) + len(second)
	if len(r.text) < n || r.text[:len(first)] != first || r.text[len(first):n] != second ||
		n < len(r.text) && r.text[n] != ',' {
		return false
	}
	r.take(n)
	return true
}

// take takes so much, and the comma or colon behind it.
func (r *Rest) take(n int) string {
	text := r.text[:n]
	r.text = r.text[min(n+1, len(r.text)):]
	return text
}
