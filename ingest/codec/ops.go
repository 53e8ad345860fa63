package codec

import (
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/reject"
)

// operations takes the list of operations.
func (d *Decoder) operations() ([]record.Op, *reject.Error) {
	if err := d.open('[', "a list of operations"); err != nil {
		return nil, err
	}
	ops := d.ops[:0]
	for {
		more, err := d.element(len(ops) == 0)
		if err != nil {
			return nil, err.UnderIndex(len(ops))
		}
		if !more {
			break
		}
		if len(ops) == cap(ops) {
			ops = append(ops, record.Op{})[:len(ops)]
		}
		ops = ops[:len(ops)+1]
		op := &ops[len(ops)-1]
		if d.plain(op) {
			continue
		}
		if err := d.operation(op); err != nil {
			return nil, err.UnderIndex(len(ops) - 1)
		}
	}
	if len(ops) == 0 {
		return nil, nil
	}
	if cap(ops) <= opsKept {
		d.ops = ops
	}
	if d.borrow {
		return ops, nil
	}
	out := make([]record.Op, len(ops))
	copy(out, ops)
	return out, nil
}

// plain takes an operation if it is of the commonest form, which encoders write
// nearly always: ["r","KEY",INTEGER] or the same with "w", without blanks or
// escapes and in ASCII. It takes nothing otherwise: operation will, and says what
// is wrong if anything is. It halves the time of a record.
func (d *Decoder) plain(op *record.Op) bool {
	const before, behind = len(`["r","`), len(`",0]`)
	b, p := d.b, d.p
	if len(b)-p < before+behind || b[p] != '[' || b[p+1] != '"' || b[p+3] != '"' || b[p+4] != ',' || b[p+5] != '"' {
		return false
	}
	switch b[p+2] {
	case 'r':
		op.Kind = record.Read
	case 'w':
		op.Kind = record.Write
	default:
		return false
	}
	p += before
	from := p
	p = plainEnd(b, p)
	if p == from || len(b)-p < behind || b[p] != '"' || b[p+1] != ',' {
		return false
	}
	key := b[from:p]
	d.p = p + 2
	n, at := d.short()
	if d.p == at || d.p >= len(b) || b[d.p] != ']' {
		d.p = from - before
		return false
	}
	d.p++
	op.Key, op.Value, op.Where = d.names.String(key), record.Int(n), ""
	return true
}

// operation takes one operation; all of *op is overwritten.
func (d *Decoder) operation(op *record.Op) *reject.Error {
	if err := d.open('[', "an operation: a list of its kind, its key and its value"); err != nil {
		return err
	}
	if err := d.next(0); err != nil {
		return err
	}
	raw, err := d.wantString("the operation's kind")
	if err != nil {
		return err.UnderIndex(0)
	}
	switch string(raw) {
	case "r":
		op.Kind = record.Read
	case "w":
		op.Kind = record.Write
	case "append":
		op.Kind = record.Append
	case "rp":
		op.Kind = record.PredicateRead
	case "wp":
		op.Kind = record.PredicateWrite
	default:
		return reject.In("[0]", reject.UnknownOp, "no operation is called %s: want r, w, append, rp or wp", quoted(raw))
	}
	if err := d.next(1); err != nil {
		return err
	}
	op.Where = ""
	predicate := op.Kind == record.PredicateRead || op.Kind == record.PredicateWrite
	if predicate {
		err = d.predicate(op)
	} else {
		op.Key, err = d.name("the key")
	}
	if err != nil {
		return err.UnderIndex(1)
	}
	if err := d.next(2); err != nil {
		return err
	}
	if predicate && d.peek() != '{' {
		return d.mistyped("an object").UnderIndex(2)
	}
	if op.Value, err = d.value(); err != nil {
		return err.UnderIndex(2)
	}
	if op.Kind == record.PredicateWrite {
		return d.hit(op)
	}
	more, err := d.element(false)
	if err == nil && more {
		err = reject.New(reject.WrongLength, "an operation has three elements, this one has more")
	}
	return err
}

// hit takes the rows that a predicate write hit, if they are there: they become a member of its value.
func (d *Decoder) hit(op *record.Op) *reject.Error {
	members := op.Value.Fields()
	if _, given := members[record.Hit]; given {
		return reject.In(record.Hit, reject.UnknownField, "the rows that a predicate write hit are its fourth element").
			UnderIndex(2)
	}
	more, err := d.element(false)
	if err != nil || !more {
		return err
	}
	if d.peek() != '[' {
		return d.mistyped("a list, of the rows that were hit").UnderIndex(3)
	}
	rows, err := d.value()
	if err == nil {
		op.Value, err = WithHit(op.Value, rows)
	}
	if err != nil {
		return err.UnderIndex(3)
	}
	if more, err = d.element(false); err == nil && more {
		err = reject.New(reject.WrongLength, "a predicate write has four elements at most, this one has more")
	}
	return err
}

// WithHit is a predicate write's value with the rows that it hit, a list of their keys.
func WithHit(v, rows record.Value) (record.Value, *reject.Error) {
	for i, r := range rows.Elements() {
		if r.Kind != record.KindString || r.Text == "" {
			return v, reject.New(reject.WrongType, "want the key of a row, as a string, found %s", brief([]byte(r.String()))).
				UnderIndex(i)
		}
	}
	members := v.Fields()
	if members == nil {
		members = map[string]record.Value{}
	}
	members[record.Hit] = rows
	return record.ObjectOf(members), nil
}

// next moves on to element i of an operation.
func (d *Decoder) next(i int) *reject.Error {
	more, err := d.element(i == 0)
	if err == nil && !more {
		err = reject.New(reject.WrongLength, "an operation has three elements, this one has %d", i)
	}
	return err
}

// Fields of a predicate.
const (
	predicateTable = 1 << iota
	predicateWhere
)

var predicateForm = form{fields: []string{"table", "where"}, unknown: func(name []byte) *reject.Error {
	return reject.In(brief(name), reject.UnknownField, "no field is called %s: a predicate has table and where",
		quoted(name))
}}

// predicate takes {"table":T,"where":W}.
func (d *Decoder) predicate(op *record.Op) *reject.Error {
	given, err := d.object(&predicateForm, `an object, {"table":…,"where":…}`, func(f uint) (err *reject.Error) {
		if f == predicateTable {
			op.Key, err = d.name("the table")
		} else {
			op.Where, err = d.name("the predicate")
		}
		return err
	})
	switch {
	case err != nil:
		return err
	case given&predicateTable == 0:
		return reject.In("table", reject.MissingField, "a predicate needs the field \"table\"")
	case given&predicateWhere == 0:
		return reject.In("where", reject.MissingField, "a predicate needs the field \"where\"; \"true\" means every row")
	}
	return nil
}
