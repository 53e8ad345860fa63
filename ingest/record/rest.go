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

// Element takes an element of a list, or of a member first its name, then its value.
func (r *Rest) Element() Value { return element(r.take(elementEnd(r.text))) }

// Is takes what Element would, if that is its canonical text.
func (r *Rest) Is(text string) bool {
	n := len(text)
	if len(r.text) < n || r.text[:n] != text || n < len(r.text) && r.text[n] != ',' && r.text[n] != ':' {
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
