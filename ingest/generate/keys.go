package generate

import (
	"math"
	"strconv"

	"github.com/isowatch/isowatch/ingest/codec/intern"
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

// table is what there is of each register. Up to tableMax they are tabled; beyond, only those that were set are there,
// at some 35 bytes each.
type table[T any] struct {
	tabled []T
	few    map[ref]T
}

func (t *table[T]) get(k ref) T {
	if k < int64(len(t.tabled)) {
		return t.tabled[k]
	}
	return t.few[k]
}

func (t *table[T]) set(k ref, x T) {
	switch {
	case k < int64(len(t.tabled)):
		t.tabled[k] = x
	case t.few == nil:
		t.few = map[ref]T{k: x}
	default:
		t.few[k] = x
	}
}

// registers are what the store holds.
type registers struct {
	table[cell]
	names []string // of those that are tabled
	text  intern.Text
}

func newRegisters(n int) registers {
	if n > tableMax {
		return registers{}
	}
	r := registers{names: make([]string, n), table: table[cell]{tabled: make([]cell, n)}}
	for i := range r.names {
		r.names[i] = keyName(i)
	}
	return r
}

func (r *registers) name(k ref) string {
	if k < int64(len(r.names)) {
		return r.names[k]
	}
	var digits [24]byte
	return r.text.String(strconv.AppendInt(append(digits[:0], keyPrefix), k, 10))
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
