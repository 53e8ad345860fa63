package certificate

import (
	"fmt"

	"github.com/isowatch/isowatch/ingest/record"
)

// never is a place before all events.
const never = -1

// object is what the database holds at a key, and what the walk must remember
// of it.
type object struct {
	value  record.Value // if it is no list
	list   []byte       // elements between commas; meaningful if isList
	isList bool         // somebody appends to the key: absent and [] are the same
	from   origin

	lastCommit int // event of the last commit that wrote the key, or never
	shown      int // last event that showed the value: that commit, or a later read
	writer     int // start event of the running writer, or never
}

// origin says where a value comes from.
type origin uint8

const (
	settled origin = iota // written by a seen transaction, or a stated initial value
	open                  // an initial value that nobody has read yet
	foreign               // an unstated initial value, or one of an unseen transaction
)

// overlay is what the transaction that starts has itself made of a key.
type overlay struct {
	exists   bool
	replaced bool         // a write: what the database holds doesn't matter
	value    record.Value // what replaced it
	list     []byte       // elements appended since
}

// reads walks through the order and checks every read and, if exclusive, that
// no writers of a key overlap.
func (r *replay) reads() error {
	if err := r.prepare(); err != nil {
		return err
	}
	for i, e := range r.order {
		n := int(e.Txn)
		if r.start[n] == i {
			if err := r.begin(i, n); err != nil {
				return err
			}
		}
		if r.commit[n] == i {
			if err := r.end(i, n); err != nil {
				return err
			}
		}
	}
	return nil
}

// prepare numbers the keys, gives each its initial state, and notes who writes
// what where that matters.
func (r *replay) prepare() error {
	numbers := map[string]int32{}
	foreign := r.opt.Initial == record.InitialAny || r.opt.Coverage == record.CoveragePartial
	r.writers = map[written]int{}
	r.first = make([]int, len(r.txns))
	for n := range r.txns {
		t := &r.txns[n]
		r.first[n] = len(r.keys)
		for j := range t.Ops {
			op := &t.Ops[j]
			k, known := numbers[op.Key]
			if !known {
				k = int32(len(numbers))
				numbers[op.Key] = k
				o := object{lastCommit: never, shown: never, writer: never}
				switch r.opt.Initial {
				case record.InitialAny:
					o.from = open
				case record.InitialZero:
					o.value = record.Int(0)
				}
				r.objects = append(r.objects, o)
			}
			r.keys = append(r.keys, k)
			switch op.Kind {
			case record.Read:
			case record.Write:
				if !foreign {
					continue
				}
				w := written{k, op.Value}
				if before, ok := r.writers[w]; ok && before != n {
					r.writers[w] = several
				} else {
					r.writers[w] = n
				}
			case record.Append:
				if r.opt.Coverage == record.CoveragePartial {
					return &Error{-1, t.ID, j, "lists can be replayed under complete coverage only"}
				}
				o := &r.objects[k]
				o.isList, o.from, o.value = true, settled, record.Null
			default:
				return &Error{-1, t.ID, j, fmt.Sprintf("operation %q can't be replayed", op.Kind)}
			}
		}
	}
	r.overlays = make([]overlay, len(r.objects))
	return nil
}

// writtenByOther tells whether some other transaction than n, of whatever
// outcome, writes that value to that key.
func (r *replay) writtenByOther(n int, key int32, v record.Value) bool {
	w, ok := r.writers[written{key, v}]
	return ok && w != n
}

// begin checks the reads of transaction n, which starts at event i.
func (r *replay) begin(i, n int) error {
	t := &r.txns[n]
	keys := r.keys[r.first[n]:]
	for j := range t.Ops {
		op, o, mine := &t.Ops[j], &r.objects[keys[j]], &r.overlays[keys[j]]
		switch op.Kind {
		case record.Write:
			*mine = overlay{exists: true, replaced: true, value: op.Value}
			continue
		case record.Append:
			mine.exists = true
			mine.list = appendElement(mine.list, op.Value)
			continue
		}
		if mine.exists {
			if has := o.with(mine); !has.is(op.Value) {
				return &Error{i, t.ID, j, fmt.Sprintf("reads %v from %q, its own write left %v", op.Value, op.Key, has)}
			}
			continue
		}
		if o.from != settled && r.writtenByOther(n, keys[j], op.Value) {
			return &Error{i, t.ID, j, fmt.Sprintf("reads %v from %q, whose writer has not committed yet", op.Value, op.Key)}
		}
		if o.from == open {
			o.value, o.from = op.Value, foreign
		}
		if has := o.content(); !has.is(op.Value) {
			if !r.unseenCommit(i, n, keys[j], op.Value) {
				return &Error{i, t.ID, j, fmt.Sprintf("reads %v from %q, which holds %v", op.Value, op.Key, has)}
			}
			o.value, o.isList, o.from = op.Value, false, foreign
		}
		o.shown = i
	}
	for j := range t.Ops {
		if t.Ops[j].Kind != record.Read {
			r.objects[keys[j]].writer = i
			r.overlays[keys[j]] = overlay{}
		}
	}
	return nil
}

// unseenCommit tells whether an unseen transaction may have put a value at a key,
// between the last event that shows another one and event i, at which
// transaction n reads it.
func (r *replay) unseenCommit(i, n int, key int32, v record.Value) bool {
	o := &r.objects[key]
	if r.opt.Coverage != record.CoveragePartial || r.writtenByOther(n, key, v) {
		return false
	}
	if o.shown == i {
		return false // the transaction itself has read something else
	}
	return !r.exclusive || o.writer == never || o.shown < o.writer
}

// end makes the writes of transaction n, which commits at event i, part of the
// database.
func (r *replay) end(i, n int) error {
	t := &r.txns[n]
	keys := r.keys[r.first[n]:]
	for j := range t.Ops {
		op, o := &t.Ops[j], &r.objects[keys[j]]
		switch op.Kind {
		case record.Write:
			o.value, o.list, o.from = op.Value, o.list[:0], settled
			if op.Value.Kind == record.KindList && o.isList {
				o.value = record.Null
				o.list = append(o.list, op.Value.Text[1:len(op.Value.Text)-1]...)
			}
		case record.Append:
			o.list = appendElement(o.list, op.Value)
			o.value = record.Null
		default:
			continue
		}
		if r.exclusive && o.lastCommit > r.start[n] && o.lastCommit != i {
			other := r.order[o.lastCommit].Txn
			return &Error{i, t.ID, j, fmt.Sprintf("writes %q, as does %s, which committed since the start at event %d", op.Key, r.txns[other].ID, r.start[n])}
		}
		o.lastCommit, o.shown, o.writer = i, i, never
	}
	return nil
}

// content is what a key holds for a reader.
type content struct {
	value  record.Value
	list   [2][]byte // elements, in two parts; meaningful if isList
	isList bool
}

// content is what the database holds.
func (o *object) content() content {
	return content{value: o.value, list: [2][]byte{o.list}, isList: o.isList && (len(o.list) > 0 || o.value.IsNull())}
}

// with is what a transaction reads that made that of it.
func (o *object) with(mine *overlay) content {
	if !mine.replaced {
		c := o.content()
		c.list[1], c.isList = mine.list, true
		return c
	}
	c := content{value: mine.value}
	switch {
	case len(mine.list) > 0:
		c.isList, c.list[1] = true, mine.list
		if v := mine.value; v.Kind == record.KindList {
			c.list[0] = []byte(v.Text[1 : len(v.Text)-1])
		}
	case o.isList && mine.value.IsNull():
		c.isList = true
	case o.isList && mine.value.Kind == record.KindList:
		c.isList, c.list[0] = true, []byte(mine.value.Text[1:len(mine.value.Text)-1])
	}
	return c
}

// is compares with a recorded value, without copying a list.
func (c content) is(v record.Value) bool {
	if !c.isList {
		return c.value == v
	}
	text := ""
	switch v.Kind {
	case record.KindList:
		text = v.Text[1 : len(v.Text)-1]
	case record.KindNull:
	default:
		return false
	}
	a, b := c.list[0], c.list[1]
	switch {
	case len(a) == 0:
		return text == string(b)
	case len(b) == 0:
		return text == string(a)
	}
	return len(text) == len(a)+1+len(b) && text[:len(a)] == string(a) && text[len(a)] == ',' && text[len(a)+1:] == string(b)
}

func (c content) String() string {
	switch {
	case !c.isList:
		return c.value.String()
	case len(c.list[0]) == 0:
		return "[" + string(c.list[1]) + "]"
	case len(c.list[1]) == 0:
		return "[" + string(c.list[0]) + "]"
	}
	return "[" + string(c.list[0]) + "," + string(c.list[1]) + "]"
}

func appendElement(list []byte, v record.Value) []byte {
	if len(list) > 0 {
		list = append(list, ',')
	}
	return v.AppendJSON(list)
}
