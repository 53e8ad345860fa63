package certificate

import (
	"github.com/isowatch/isowatch/ingest/record"
)

// object is what the database holds at a key, and what the walk must remember
// of it.
type object struct {
	value    record.Value // if it is no list
	list     []byte       // elements between commas; meaningful if isList
	isList   bool         // somebody appends to the key: absent and [] are the same
	from     origin
	presumed bool // there are claims about the key
	initial  record.Initial
	unseen   bool // its coverage is partial

	lsn        int64 // of the last of those with one whose commit wrote the key
	lastCommit int32 // event of the last commit that wrote the key, or none
}

// origin says where the value that a key holds comes from.
type origin uint8

const (
	settled origin = iota // written by a recorded transaction, or a stated initial value
	open                  // an initial value that nobody has read yet
	foreign               // an unstated initial value that a read told
)

// overlay is what the transaction that starts knows of a key.
type overlay struct {
	read     bool         // it has read what the database holds, which was seen
	seen     record.Value // as it read it
	wrote    bool
	replaced bool         // by a write: what the database holds doesn't matter
	value    record.Value // what replaced it
	list     []byte       // elements appended since
}

// content is what a key holds for a reader. Lists are in two parts, so that what
// the database holds need not be copied to be compared.
type content struct {
	value  record.Value // if it is no list
	base   []byte       // elements between commas; meaningful if isList
	own    []byte       // and those that the reader appended
	isList bool
}

// elements is the inside of a list's text; of what is no list it is empty.
func elements(v record.Value) string {
	if v.Kind != record.KindList || len(v.Text) < 2 {
		return ""
	}
	return v.Text[1 : len(v.Text)-1]
}

// content is what the database holds.
func (o *object) content() content {
	if o.isList && (len(o.list) > 0 || o.value.IsNull()) {
		return content{isList: true, base: o.list}
	}
	return content{value: o.value}
}

// holding is what a key holds that was written to be v, or read so. It copies v
// if that is a list.
func (o *object) holding(v record.Value) content {
	if o.isList && (v.IsNull() || v.Kind == record.KindList) {
		return content{isList: true, base: []byte(elements(v))}
	}
	return content{value: v}
}

// plus is c with elements appended. What is no list counts as empty.
func (c content) plus(list []byte) content {
	if len(list) == 0 {
		return c
	}
	return content{isList: true, base: c.base, own: list}
}

// is compares with a recorded value.
func (c content) is(v record.Value) bool {
	if !c.isList {
		return c.value == v
	}
	if v.Kind != record.KindList && !v.IsNull() {
		return false
	}
	text, n := elements(v), len(c.base)
	if n == 0 || len(c.own) == 0 {
		return len(text) == n+len(c.own) && text[:n] == string(c.base) && text[n:] == string(c.own)
	}
	return len(text) == n+1+len(c.own) && text[:n] == string(c.base) && text[n] == ',' && text[n+1:] == string(c.own)
}

func (c content) String() string {
	switch {
	case !c.isList:
		return c.value.String()
	case len(c.base) == 0 || len(c.own) == 0:
		return "[" + string(c.base) + string(c.own) + "]"
	}
	return "[" + string(c.base) + "," + string(c.own) + "]"
}

func appendElement(list []byte, v record.Value) []byte {
	if len(list) > 0 {
		list = append(list, ',')
	}
	return v.AppendJSON(list)
}

// apply makes a transaction's operation part of the database.
func (o *object) apply(op *record.Op) {
	switch {
	case op.Kind == record.Append:
		o.list, o.value = appendElement(o.list, op.Value), record.Null
	case o.isList && op.Value.Kind == record.KindList:
		o.list, o.value = append(o.list[:0], elements(op.Value)...), record.Null
	default:
		o.list, o.value = o.list[:0], op.Value
	}
	o.from = settled
}

// apply makes an operation part of what the transaction itself made of a key.
func (mine *overlay) apply(op *record.Op) {
	if mine.wrote = true; op.Kind == record.Append {
		mine.list = appendElement(mine.list, op.Value)
		return
	}
	mine.replaced, mine.value, mine.list = true, op.Value, nil
}

// cutElement splits the first element off a list's inside, which is canonical
// JSON text: commas within strings, lists and objects separate nothing.
func cutElement[T string | []byte](list T) (first, rest T) {
	depth, quoted := 0, false
	for i := 0; i < len(list); i++ {
		switch c := list[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '[' || c == '{':
			depth++
		case c == ']' || c == '}':
			depth--
		case c == ',' && depth == 0:
			return list[:i], list[i+1:]
		}
	}
	return list, list[len(list):]
}

// shows tells whether a list that was read may be the one that is held, when
// there are appends that nobody recorded: their elements are passed over, and if
// the last is one, it may have been read at any time.
func shows(read string, held []byte, recorded func(element string) bool) bool {
	known := true
	for len(read) > 0 {
		var e string
		e, read = cutElement(read)
		next, rest := cutElement(held)
		known = recorded(e)
		switch {
		case len(held) > 0 && string(next) == e:
			held, known = rest, true
		case known:
			return false
		}
	}
	return !known || len(held) == 0
}

// cutOwn takes the elements that a transaction appended itself off the end of a
// list that it read.
func cutOwn(read string, own []byte) (base string, ok bool) {
	if read == string(own) {
		return "", true
	}
	n := len(read) - len(own)
	if n < 1 || read[n-1] != ',' || read[n:] != string(own) {
		return "", false
	}
	return read[:n-1], true
}
