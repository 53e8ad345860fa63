package protobuf

import (
	"github.com/isowatch/isowatch/ingest/assemble"
	"github.com/isowatch/isowatch/ingest/record"
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
func (d *Decoder) event(kind uint64, c *cursor, e *assemble.Event) {
	form := eventForms[kind]
	*e = assemble.Event{Kind: form.kind}
	set := form.each(c, func(number uint) { d.eventField(c, kind<<3|uint64(number), e) })
	if kind == messageBegin && e.DB == "" {
		e.DB = record.DefaultDB
	}
	form.need(c, set, form.needed...)
}

// eventField takes a field, by the kind of the event and its number.
func (d *Decoder) eventField(c *cursor, field uint64, e *assemble.Event) {
	switch field {
	case messageBegin<<3 | eventSession, messageStep<<3 | eventSession, messageEnd<<3 | eventSession:
		e.Session = d.names.String(c.session())
	case messageBegin<<3 | eventTxn, messageStep<<3 | eventTxn, messageEnd<<3 | eventTxn:
		e.Txn = d.names.String(c.name("the transaction"))
	case messageBegin<<3 | beginSeq:
		e.Seq, e.HasSeq = c.sequence(), true
	case messageBegin<<3 | beginStart, messageEnd<<3 | endEnd:
		e.Time, e.HasTime = c.time(), true
	case messageBegin<<3 | beginDB:
		e.DB = d.names.String(c.history())
	case messageBegin<<3 | beginID:
		e.ID = string(c.name("the id"))
	case messageStep<<3 | stepN:
		e.N = c.count(assemble.OpsLimit - 1)
	case messageEnd<<3 | endCount:
		e.N = c.count(assemble.OpsLimit)
	case messageEnd<<3 | endStatus:
		e.Status = status(c)
	case messageStep<<3 | stepOp:
		op := c.message()
		d.operation(&op, &e.Op)
		c.err = op.err
	}
}
