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
	needed []uint
	kind   assemble.Kind
}

var eventForms = [...]*eventForm{
	messageBegin: {kind: assemble.Begin, needed: []uint{eventSession, eventTxn}, schema: schema{"Begin", []field{
		eventSession: {name: "session", wire: bytesType},
		eventTxn:     {name: "txn", wire: bytesType},
		beginSeq:     {name: "seq", wire: varintType},
		beginStart:   {name: "start", wire: fixed64},
		beginDB:      {name: "db", wire: bytesType},
		beginID:      {name: "id", wire: bytesType},
	}}},
	messageStep: {kind: assemble.Step, needed: []uint{eventSession, eventTxn, stepN, stepOp}, schema: schema{"Step", []field{
		eventSession: {name: "session", wire: bytesType},
		eventTxn:     {name: "txn", wire: bytesType},
		stepN:        {name: "n", wire: varintType},
		stepOp:       {name: "op", wire: bytesType},
	}}},
	messageEnd: {kind: assemble.End, needed: []uint{eventSession, eventTxn, endStatus, endCount}, schema: schema{"End", []field{
		eventSession: {name: "session", wire: bytesType},
		eventTxn:     {name: "txn", wire: bytesType},
		endStatus:    {name: "status", wire: varintType},
		endCount:     {name: "count", wire: varintType},
		endEnd:       {name: "end", wire: fixed64},
	}}},
}

// event sets *e to the event of a kind, a field of Message.
func (d *Decoder) event(kind int, c cursor, e *assemble.Event) *reject.Error {
	form := eventForms[kind]
	*e = assemble.Event{Kind: form.kind}
	var set uint
	for c.more() {
		number, err := form.field(&c, &set)
		if err != nil {
			return err
		}
		name := form.fields[number].name
		if err := d.eventField(&c, name, e); err != nil {
			return err.Under(name)
		}
	}
	if kind == messageBegin && e.DB == "" {
		e.DB = record.DefaultDB
	}
	return form.missing(set, form.needed...)
}

// eventField takes a field, which means the same in each kind of event that has it.
func (d *Decoder) eventField(c *cursor, name string, e *assemble.Event) (err *reject.Error) {
	switch name {
	case "session":
		e.Session, err = d.intern(c.session())
	case "txn":
		e.Txn, err = d.intern(c.name("the transaction"))
	case "seq":
		e.HasSeq = true
		e.Seq, err = c.sequence()
	case "start", "end":
		e.HasTime = true
		e.Time, err = c.time()
	case "db":
		e.DB, err = d.intern(c.history())
	case "id":
		var id []byte
		id, err = c.name("the id")
		e.ID = string(id)
	case "n":
		e.N, err = c.count(assemble.OpsLimit - 1)
	case "count":
		e.N, err = c.count(assemble.OpsLimit)
	case "status":
		e.Status, err = status(c)
	case "op":
		var op cursor
		if op, err = c.message(); err == nil {
			err = d.operation(op, &e.Op)
		}
	}
	return err
}

// intern makes a text of a name that was taken.
func (d *Decoder) intern(b []byte, err *reject.Error) (string, *reject.Error) {
	if err != nil {
		return "", err
	}
	return d.names.String(b), nil
}
