package certificate

import (
	"github.com/isowatch/isowatch/ingest/record"
)

// prepare numbers the keys and gives each its initial state.
func (r *replay) prepare() *Error {
	numbers := map[string]int32{}
	total := 0
	for n := range r.txns {
		total += len(r.txns[n].Ops)
	}
	r.keys = make([]int32, 0, total)
	r.first = make([]int, len(r.txns))
	for n := range r.txns {
		t := &r.txns[n]
		r.first[n] = len(r.keys)
		for j := range t.Ops {
			op := &t.Ops[j]
			if op.Kind > record.Append {
				return r.fail(none, n, j, "operation %q can't be replayed", op.Kind)
			}
			k, known := numbers[op.Key]
			if !known {
				k = int32(len(numbers))
				numbers[op.Key] = k
				r.objects = append(r.objects, r.initially(op.Key))
			}
			r.keys = append(r.keys, k)
			if op.Kind == record.Append {
				r.makeList(k, op.Value)
			}
		}
	}
	r.emptyLists()
	r.findPutBack()
	r.overlays = make([]overlay, len(r.objects))
	r.claims = map[written]*claim{}
	return nil
}

// emptyLists finds the lists to which nobody appends: a key that nobody changes, and of
// which somebody reads an empty list.
func (r *replay) emptyLists() {
	changed := make([]bool, len(r.objects))
	for n := range r.txns {
		for j := range r.txns[n].Ops {
			if r.txns[n].Ops[j].Kind != record.Read {
				changed[r.keys[r.first[n]+j]] = true
			}
		}
	}
	for _, e := range r.order {
		n := int(e.Txn)
		if n < 0 || n >= len(r.txns) {
			continue // walk says so
		}
		for j := range r.txns[n].Ops {
			op, k := &r.txns[n].Ops[j], r.keys[r.first[n]+j]
			if op.Kind == record.Read && op.Value.Kind == record.KindList && elements(op.Value) == "" && !changed[k] {
				o := &r.objects[k]
				o.isList, o.from, o.value = true, settled, record.Null
			}
		}
	}
}

// initially is what a key holds at first.
func (r *replay) initially(key string) object {
	o := object{lastCommit: none, initial: r.opt.Initial, unseen: r.opt.Coverage == record.CoveragePartial}
	if c, named := r.opt.Tables.Of(key); named {
		if o.unseen = c == record.CoveragePartial; !o.unseen {
			o.initial = record.InitialAbsent
		}
	}
	switch o.initial {
	case record.InitialAny:
		o.from = open
	case record.InitialZero:
		o.value = record.Int(0)
	}
	return o
}

// element is an element of a list.
type element struct {
	key  int32
	text string
}

// makeList notes that somebody appends to a key, which therefore starts empty.
func (r *replay) makeList(k int32, v record.Value) {
	o := &r.objects[k]
	o.isList, o.from, o.value = true, settled, record.Null
	if o.unseen {
		if r.appended == nil {
			r.appended = map[element]struct{}{}
		}
		r.appended[element{k, v.String()}] = struct{}{}
	}
}

// walk goes through the order and checks every read and, if exclusive, that no
// writers of a key overlap.
func (r *replay) walk() *Error {
	for i, e := range r.order {
		n, at := int(e.Txn), int32(i)
		if r.start[n] == at {
			if err := r.begin(at, n); err != nil {
				return r.contradicted(err)
			}
		}
		if r.commit[n] == at {
			if err := r.end(at, n); err != nil {
				return r.contradicted(err)
			}
		}
	}
	return r.contradicted(nil)
}

// begin checks the reads of transaction n, which starts at event i.
func (r *replay) begin(i int32, n int) *Error {
	t := &r.txns[n]
	keys := r.keys[r.first[n]:]
	for j := range t.Ops {
		op, mine := &t.Ops[j], &r.overlays[keys[j]]
		var err *Error
		switch {
		case op.Kind != record.Read:
			mine.apply(op)
		case mine.wrote:
			err = r.readOwn(i, n, j, keys[j])
		case mine.read:
			if has := r.objects[keys[j]].holding(mine.seen); !has.is(op.Value) {
				err = r.differs(i, n, j, has, "reads %s from %q, after %s before")
			}
		default:
			if err = r.readDatabase(i, n, j, keys[j], op.Value); err == nil {
				mine.read, mine.seen = true, op.Value
			}
		}
		if err != nil {
			return err
		}
	}
	for j := range t.Ops {
		r.overlays[keys[j]] = overlay{}
	}
	return nil
}

// differs is the Error of a read of another value than has. The format takes
// the value that was read, the key, and has.
func (r *replay) differs(i int32, n, j int, has content, format string) *Error {
	op := &r.txns[n].Ops[j]
	expected, found := brief(has.String()), brief(op.Value.String())
	err := r.fail(i, n, j, format, found, op.Key, expected)
	err.Expected, err.Found = expected, found
	return err
}

// readOwn checks a read of a key that the transaction wrote or appended to.
func (r *replay) readOwn(i int32, n, j int, key int32) *Error {
	v, o, mine := r.txns[n].Ops[j].Value, &r.objects[key], &r.overlays[key]
	var has content
	switch {
	case mine.replaced:
		has = o.holding(mine.value).plus(mine.list)
	case mine.read:
		has = o.holding(mine.seen).plus(mine.list)
	case o.unseen:
		// What stands before the own elements was read from the database.
		base, ok := cutOwn(elements(v), mine.list)
		if !ok {
			return r.differs(i, n, j, content{isList: true, own: mine.list},
				"reads %s from %q, which should end with its own %s")
		}
		mine.read, mine.seen = true, record.Value{Kind: record.KindList, Text: "[" + base + "]"}
		return r.readDatabase(i, n, j, key, mine.seen)
	default:
		has = o.content().plus(mine.list)
	}
	if !has.is(v) {
		return r.differs(i, n, j, has, "reads %s from %q, its own write left %s")
	}
	return nil
}

// readDatabase checks that transaction n, which starts at event i, reads v from
// the database by its operation j.
func (r *replay) readDatabase(i int32, n, j int, key int32, v record.Value) *Error {
	o := &r.objects[key]
	if o.unseen {
		return r.readPartial(i, n, j, key, v)
	}
	if o.from == open {
		o.value, o.from = v, foreign
	}
	if has := o.content(); !has.is(v) {
		return r.differs(i, n, j, has, "reads %s from %q, which holds %s")
	}
	if o.from == foreign {
		r.presume(i, n, j, key, v, "")
	}
	return nil
}

// readPartial is readDatabase with partial coverage: what nobody is recorded to
// have written, an unseen transaction may have written at any time.
func (r *replay) readPartial(i int32, n, j int, key int32, v record.Value) *Error {
	o := &r.objects[key]
	has := o.content()
	switch {
	case r.saysNothing(v):
	case has.isList && v.Kind == record.KindList:
		recorded := func(text string) bool { _, ok := r.appended[element{key, text}]; return ok }
		if !shows(elements(v), o.list, recorded) {
			return r.differs(i, n, j, has, "reads %s from %q, which holds %s apart from what nobody is recorded to have appended")
		}
	case o.from == open:
		r.presume(i, n, j, key, v, "")
	case !has.is(v):
		r.presume(i, n, j, key, v, brief(has.String()))
	}
	return nil
}

// saysNothing tells whether a read of v proves nothing under partial coverage:
// somebody may have deleted the key, or put back what it held at first.
func (r *replay) saysNothing(v record.Value) bool {
	return v.IsNull() || r.opt.Initial == record.InitialZero && v == record.Int(0) || v.Kind == record.KindList &&
		elements(v) == ""
}

// end makes the writes of transaction n, which commits at event i, part of the
// database.
func (r *replay) end(i int32, n int) *Error {
	t := &r.txns[n]
	keys := r.keys[r.first[n]:]
	for j := range t.Ops {
		op, o := &t.Ops[j], &r.objects[keys[j]]
		if op.Kind == record.Read {
			continue
		}
		if r.exclusive && o.lastCommit > r.start[n] && o.lastCommit != i {
			other := r.order[o.lastCommit].Txn
			return r.fail(i, n, j, "writes %q, as does %s, which committed since this one started", op.Key, r.who(int(other)))
		}
		if lsn := t.LSN; lsn != 0 && t.Status == record.Committed {
			if o.lsn > lsn {
				return r.fail(i, n, j, "writes %q behind one whom the database's log has later", op.Key)
			}
			o.lsn = lsn
		}
		o.apply(op)
		o.lastCommit = i
	}
	return nil
}
