package codec

import (
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/reject"
)

// operations takes the list of operations.
func (d *Decoder) operations() []record.Op {
	if d.open('[', "a list of operations"); d.err != nil {
		return nil
	}
	ops := d.ops[:0]
	for d.element(len(ops) == 0) {
		if len(ops) == cap(ops) {
			ops = append(ops, record.Op{})[:len(ops)]
		}
		ops = ops[:len(ops)+1]
		op := &ops[len(ops)-1]
		if kind, key, v, ok := d.plain(); ok {
			*op = record.Op{Kind: kind, Key: d.names.String(key), Value: v}
			continue
		}
		if d.operation(op); d.err != nil {
			d.underIndex(len(ops) - 1)
			return nil
		}
	}
	if d.underIndex(len(ops)); d.err != nil || len(ops) == 0 {
		return nil
	}
	if cap(ops) <= opsKept {
		d.ops = ops
	}
	if d.borrow {
		return ops
	}
	out := make([]record.Op, len(ops))
	copy(out, ops)
	return out
}

// operation takes one operation; all of *op is overwritten.
func (d *Decoder) operation(op *record.Op) {
	d.open('[', "an operation: a list of its kind, its key and its value")
	if d.next(0); d.err != nil {
		return
	}
	raw := d.wantString("the operation's kind")
	d.underIndex(0)
	var known bool
	if op.Kind, known = record.ParseOpKind(string(raw)); !known {
		d.fail(reject.In("[0]", reject.UnknownOp, "no operation is called %s: want r, w, append, rp or wp", quoted(raw)))
	}
	if d.next(1); d.err != nil {
		return
	}
	op.Where = ""
	predicate := op.Kind == record.PredicateRead || op.Kind == record.PredicateWrite
	if predicate {
		d.predicate(op)
	} else {
		op.Key = d.name("the key")
	}
	d.underIndex(1)
	if d.next(2); d.err != nil {
		return
	}
	if predicate && d.peek() != '{' {
		d.fail(d.mistyped("an object"))
	} else {
		op.Value = d.value()
	}
	if d.underIndex(2); d.err != nil {
		return
	}
	if op.Kind == record.PredicateWrite {
		d.hit(op)
	} else if d.element(false) {
		d.fail(reject.New(reject.WrongLength, "an operation has three elements, this one has more"))
	}
}

// hit takes the rows that a predicate write hit, if they are there: they become a member of its value.
func (d *Decoder) hit(op *record.Op) {
	members := op.Value.Fields()
	if _, given := members[record.Hit]; given {
		d.fail(reject.In(record.Hit, reject.UnknownField, "the rows that a predicate write hit are its fourth element").
			UnderIndex(2))
	}
	if !d.element(false) {
		return
	}
	if d.peek() != '[' {
		d.fail(d.mistyped("a list, of the rows that were hit"))
	} else if rows := d.value(); d.err == nil {
		op.Value, d.err = WithHit(op.Value, rows)
	}
	if d.underIndex(3); d.element(false) {
		d.fail(reject.New(reject.WrongLength, "a predicate write has four elements at most, this one has more"))
	}
}

// WithHit is a predicate write's value with the rows that it hit, a list of their keys.
func WithHit(v, rows record.Value) (record.Value, *reject.Error) {
	i := 0
	for r := range rows.Each() {
		if r.Kind != record.KindString || r.Text == "" {
			return v, reject.New(reject.WrongType, "want the key of a row, as a string, found %s", brief([]byte(r.String()))).
				UnderIndex(i)
		}
		i++
	}
	members := v.Fields()
	if members == nil {
		members = map[string]record.Value{}
	}
	members[record.Hit] = rows
	return record.ObjectOf(members), nil
}

// next moves on to element i of an operation.
func (d *Decoder) next(i int) {
	if !d.element(i == 0) {
		d.fail(reject.New(reject.WrongLength, "an operation has three elements, this one has %d", i))
	}
}

// Fields of a predicate.
const (
	predicateTable = 1 << iota
	predicateWhere
)

var predicateForm = form{fields: []string{"table", "where"}, has: "a predicate has table and where"}

// predicate takes {"table":T,"where":W}, where W is a text, or a list: the tree of a condition.
func (d *Decoder) predicate(op *record.Op) {
	given := d.object(&predicateForm, `an object, {"table":…,"where":…}`, func(f uint) {
		switch {
		case f == predicateTable:
			op.Key = d.name("the table")
		case d.peek() == '[': // a tree, which is kept as its text
			op.Where = d.names.String([]byte(d.value().Text))
		default:
			op.Where = d.name("the predicate")
		}
	})
	switch {
	case given&predicateTable == 0:
		d.fail(reject.In("table", reject.MissingField, "a predicate needs the field \"table\""))
	case given&predicateWhere == 0:
		d.fail(reject.In("where", reject.MissingField, "a predicate needs the field \"where\"; \"true\" means every row"))
	}
}
