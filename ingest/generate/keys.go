package generate

import (
	"math"
	"strconv"
	"strings"

	"github.com/isowatch/isowatch/ingest/record"
)

// ref names a key inside the generator: a register by its number, from 0, a list
// by the complement of its number, below 0.
type ref = int64

// unread is a register that nobody ever reads: it needs no place in the store.
const unread ref = math.MinInt64

// cell is what the store holds at a register.
type cell struct {
	value     int64 // 0 is the initial value
	committed int64 // the step at which it was committed
}

// tableMax is how many registers are tabled.
const tableMax = 1 << 22

// registers are what the store holds. Up to tableMax they are a table; beyond, only
// those that were written are there, at some 35 bytes each.
type registers struct {
	names []string
	cells []cell
	few   map[int64]cell // in place of both
	text  chunk
}

// chunk is where names are cut from, of which many share one allocation.
type chunk struct{ text strings.Builder }

// textChunk is how many bytes are allocated for names at once.
const textChunk = 1 << 12

// cut makes a string of a name.
func (c *chunk) cut(name []byte) string {
	if c.text.Cap()-c.text.Len() < len(name) {
		c.text = strings.Builder{}
		c.text.Grow(max(textChunk, len(name)))
	}
	from := c.text.Len()
	c.text.Write(name)
	return c.text.String()[from:]
}

func newRegisters(n int) registers {
	if n > tableMax {
		return registers{few: map[int64]cell{}}
	}
	r := registers{names: make([]string, n), cells: make([]cell, n)}
	for i := range r.names {
		r.names[i] = keyName(i)
	}
	return r
}

func (r *registers) name(k ref) string {
	if r.few == nil {
		return r.names[k]
	}
	var digits [24]byte
	return r.text.cut(strconv.AppendInt(append(digits[:0], keyPrefix), k, 10))
}

func (r *registers) get(k ref) cell {
	if r.few != nil {
		return r.few[k]
	}
	return r.cells[k]
}

func (r *registers) set(k ref, c cell) {
	if r.few != nil {
		r.few[k] = c
		return
	}
	r.cells[k] = c
}

const keyPrefix = 'k'

func keyName(i int) string { return string(keyPrefix) + strconv.Itoa(i) }

// list is what the store holds at a list, and who still needs it.
type list struct {
	name      string
	value     record.Value // Null while empty
	committed int64        // the step at which the last element was committed
	given     int          // elements given out to transactions
	users     int          // operations of running transactions
	retired   bool
}

// lists are those in use and those retired that a running transaction uses still.
type lists struct {
	all    map[ref]*list
	active []ref
	made   int64
}

func newLists(n int) lists {
	ls := lists{all: map[ref]*list{}, active: make([]ref, n)}
	for slot := range ls.active {
		ls.renew(slot)
	}
	return ls
}

// renew puts a new list into a slot.
func (ls *lists) renew(slot int) {
	k := ^ls.made
	ls.active[slot] = k
	ls.all[k] = &list{name: "l" + strconv.FormatInt(ls.made, 10)}
	ls.made++
}

// use hands out the list in a slot to one operation. An append gets its element,
// and the last of them retires the list.
func (ls *lists) use(slot int, appends bool, limit int) (k ref, name string, element record.Value) {
	k = ls.active[slot]
	l := ls.all[k]
	l.users++
	if appends {
		l.given++
		element = record.Int(int64(l.given))
		if l.given >= limit {
			l.retired = true
			ls.renew(slot)
		}
	}
	return k, l.name, element
}

// release ends the use by one operation.
func (ls *lists) release(k ref) {
	l := ls.all[k]
	l.users--
	if l.retired && l.users == 0 {
		delete(ls.all, k)
	}
}

// extended is a list with one element more.
func extended(v, element record.Value) record.Value {
	b := make([]byte, 0, len(v.Text)+12)
	if v.IsNull() {
		b = append(b, '[')
	} else {
		b = append(append(b, v.Text[:len(v.Text)-1]...), ',')
	}
	b = element.AppendJSON(b)
	return record.Value{Kind: record.KindList, Text: string(append(b, ']'))}
}
