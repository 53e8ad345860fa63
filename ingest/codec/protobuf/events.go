package protobuf

import (
	"github.com/isowatch/isowatch/ingest/assemble"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/reject"
)

// Numbers of the events' fields.
const (
	eventSession, eventTxn = 1, 2

	beginSeq, beginStart, beginDB, beginID = 3, 4, 5, 6
	stepN, stepOp                          = 3, 4
	endStatus, endCount, endEnd            = 3, 4, 5
)

// eventForm is what an event's message holds.
type eventForm struct {
	schema
	wire   []uint64
	needed []uint
	kind   assemble.Kind
}

var eventForms = [...]*eventForm{
	messageBegin: {kind: assemble.Begin, needed: []uint{eventSession, eventTxn},
		schema: schema{"Begin", []string{"", "session", "txn", "seq", "start", "db", "id"}},
		wire:   []uint64{0, bytesType, bytesType, varintType, fixed64, bytesType, bytesType}},
	messageStep: {kind: assemble.Step, needed: []uint{eventSession, eventTxn, stepN, stepOp},
		schema: schema{"Step", []string{"", "session", "txn", "n", "op"}},
		wire:   []uint64{0, bytesType, bytesType, varintType, bytesType}},
	messageEnd: {kind: assemble.End, needed: []uint{eventSession, eventTxn, endStatus, endCount},
		schema: schema{"End", []string{"", "session", "txn", "status", "count", "end"}},
		wire:   []uint64{0, bytesType, bytesType, varintType, varintType, fixed64}},
}

// event sets *e to the event of a kind, a field of Message.
func (d *Decoder) event(kind int, c cursor, e *assemble.Event) *reject.Error {
	form := eventForms[kind]
	*e = assemble.Event{Kind: form.kind}
	var set uint
	for c.more() {
		tag, err := c.tag()
		if err != nil {
			return err
		}
		number := uint(tag >> 3)
		if tag>>3 >= uint64(len(form.wire)) || form.wire[number] != tag&7 {
			return form.unknown(tag)
		}
		if err := form.seen(&set, number, 0); err != nil {
			return err
		}
		if err := d.eventField(&c, kind, number, e); err != nil {
			return err.Under(form.fields[number])
		}
	}
	for _, needed := range form.needed {
		if set&(1<<needed) == 0 {
			return form.missing(needed)
		}
	}
	if kind == messageBegin && e.DB == "" {
		e.DB = record.DefaultDB
	}
	return nil
}

func (d *Decoder) eventField(c *cursor, kind int, number uint, e *assemble.Event) (err *reject.Error) {
	switch number {
	case eventSession:
		e.Session, err = d.intern(c.session())
		return err
	case eventTxn:
		e.Txn, err = d.intern(c.name("the transaction"))
		return err
	}
	switch kind {
	case messageBegin:
		return d.beginField(c, number, e)
	case messageStep:
		return d.stepField(c, number, e)
	}
	switch number {
	case endStatus:
		e.Status, err = status(c)
	case endCount:
		e.N, err = c.count(assemble.OpsLimit)
	case endEnd:
		e.HasTime = true
		e.Time, err = c.time()
	}
	return err
}

func (d *Decoder) beginField(c *cursor, number uint, e *assemble.Event) (err *reject.Error) {
	switch number {
	case beginSeq:
		var v uint64
		v, err = c.varint()
		e.HasSeq = true
		e.Seq, err = notNegative(int64(v), err)
	case beginStart:
		e.HasTime = true
		e.Time, err = c.time()
	case beginDB:
		e.DB, err = d.intern(c.history())
	case beginID:
		var id []byte
		id, err = c.name("the id")
		e.ID = string(id)
	}
	return err
}

func (d *Decoder) stepField(c *cursor, number uint, e *assemble.Event) (err *reject.Error) {
	if number == stepN {
		e.N, err = c.count(assemble.OpsLimit - 1)
		return err
	}
	op, err := c.message()
	if err != nil {
		return err
	}
	return d.operation(op, &e.Op)
}

// intern makes a text of a name that was taken.
func (d *Decoder) intern(b []byte, err *reject.Error) (string, *reject.Error) {
	if err != nil {
		return "", err
	}
	return d.names.String(b), nil
}
