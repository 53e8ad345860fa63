package protobuf

import (
	"bytes"

	"github.com/isowatch/isowatch/ingest/assemble"
	"github.com/isowatch/isowatch/ingest/codec"
	"github.com/isowatch/isowatch/ingest/codec/intern"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/record/packed"
	"github.com/isowatch/isowatch/ingest/reject"
)

// ContentType is what the header of a message says that is in this form.
const ContentType = "application/x-protobuf"

// Decoder decodes messages, reusing what it can from one to the next. It is for
// one goroutine. What it made does not share memory with the input.
type Decoder struct {
	opt    codec.Options
	names  *intern.Table
	values *codec.Decoder // of values that are JSON

	// Scratch, overwritten by the next use.
	id   []byte
	text []byte
}

// New makes a Decoder. Options mean what they mean to the JSON decoder.
func New(opt codec.Options) *Decoder {
	if opt.SizeMax <= 0 {
		opt.SizeMax = codec.SizeDefault
	}
	if opt.NamesMax <= 0 {
		opt.NamesMax = codec.NamesDefault
	}
	return &Decoder{opt: opt, names: intern.NewTable(opt.NamesMax), values: codec.New(opt)}
}

// Numbers of fields.
const (
	messageTransaction, messageBegin, messageStep, messageEnd = 1, 2, 3, 4

	txnSession, txnSeq, txnStart, txnEnd, txnStatus, txnDB, txnID, txnOps, txnNode, txnStatements, txnXID, txnLSN = 1, 2,
		3, 4, 5, 6, 7, 8, 9, 10, 11, 12
)

var (
	messageSchema     = &schema{"Message", []field{{}, {name: "transaction"}, {name: "begin"}, {name: "step"}, {name: "end"}}}
	transactionSchema = &schema{"Transaction", []field{
		txnSession: {name: "session", wire: bytesType},
		txnSeq:     {name: "seq", wire: varintType},
		txnStart:   {name: "start", wire: fixed64},
		txnEnd:     {name: "end", wire: fixed64},
		txnStatus:  {name: "status", wire: varintType},
		txnDB:      {name: "db", wire: bytesType},
		txnID:      {name: "id", wire: bytesType},
		txnOps:     {name: "ops", wire: bytesType, repeated: true},
		txnNode:    {name: "node", wire: bytesType},

		txnStatements: {name: "statements", wire: bytesType},
		txnXID:        {name: "xid", wire: bytesType},
		txnLSN:        {name: "lsn", wire: varintType},
	}}
)

// Message decodes a message. A whole record is added to c, or nothing if there is an
// error; an event is put into *e. Errors are *reject.Errors without a position.
func (d *Decoder) Message(b []byte, c *packed.Chunk, e *assemble.Event) (isEvent bool, err error) {
	if d.packCanonical(b, c) {
		return false, nil
	}
	kind, body := d.open(b)
	switch {
	case body.err != nil:
	case kind == messageTransaction:
		d.pack(&body, c)
	default:
		isEvent = true
		if d.event(kind, &body, e); body.err != nil {
			body.err = body.err.Under(messageSchema.fields[kind].name)
		}
	}
	if body.err != nil {
		return isEvent, body.err
	}
	return isEvent, nil
}

// open takes the message's only field.
func (d *Decoder) open(b []byte) (kind uint64, body cursor) {
	c := cursor{b: b}
	switch {
	case len(b) > d.opt.SizeMax:
		c.fail(reject.New(reject.TooLarge, "the record has %d bytes, more than the limit of %d", len(b), d.opt.SizeMax))
	case len(b) == 0:
		c.fail(reject.New(reject.MissingField, "the message is empty: want one of transaction, begin, step and end"))
	}
	if c.err != nil {
		return 0, c
	}
	tag := c.tag()
	if kind = tag >> 3; c.err == nil && (kind > messageEnd || tag&7 != bytesType) {
		c.fail(messageSchema.unknown(tag))
	}
	if c.err != nil {
		return 0, c
	}
	if body = c.message(); c.err != nil {
		body.err = c.err.Under(messageSchema.fields[kind].name)
	}
	if !c.more() {
		return kind, body
	}
	again := c.tag()
	switch {
	case c.err != nil:
	case again>>3 <= messageEnd && again&7 == bytesType:
		c.fail(reject.In(messageSchema.fields[again>>3].name, reject.DuplicateField,
			"a message is one transaction or one event, not several"))
	default:
		c.fail(messageSchema.unknown(again))
	}
	body.err = c.err
	return kind, body
}

func (d *Decoder) sequenceID(session []byte, seq int64) []byte {
	d.id = record.AppendSequenceID(d.id[:0], session, seq)
	return d.id
}

var defaultDB = []byte(record.DefaultDB)

// head takes all fields but the operations, of which it says where the first stands; -1 if there is none.
func (d *Decoder) head(c *cursor, h *packed.Head) (from int) {
	from = -1
	ops, at := 0, c.p
	set := transactionSchema.each(c, func(number uint) {
		switch number {
		case txnSession:
			h.Session = c.session()
		case txnSeq:
			h.Seq, h.HasSeq = c.sequence(), true
		case txnStart:
			h.Start = c.time()
		case txnEnd:
			h.End = c.time()
		case txnStatus:
			h.Status = status(c)
		case txnDB:
			h.DB = c.history()
		case txnID:
			h.ID = c.name("the id")
		case txnNode:
			h.Node = c.name("the node")
		case txnStatements:
			h.Statements = c.name("the text of the statements")
			c.fail(codec.CheckStatements(h.Statements))
		case txnXID:
			h.XID = c.name("the xid")
		case txnLSN:
			h.LSN = int64(c.varint())
			c.fail(codec.CheckLSN(h.LSN))
		case txnOps:
			if ops == 0 {
				from = at
			}
			if c.bytes(); c.err != nil {
				c.err = c.err.UnderIndex(ops)
			}
			ops++
		}
		at = c.p
	})
	transactionSchema.need(c, set, txnSession, txnStatus)
	// What only the whole record tells, and what is absent.
	var err *reject.Error
	h.HasTimes, err = codec.CheckTimes(set&(1<<txnStart) != 0, set&(1<<txnEnd) != 0, h.Start, h.End)
	c.fail(err)
	if h.DB == nil {
		h.DB = defaultDB
	}
	h.SeqID = h.HasSeq && (h.ID == nil || bytes.Equal(h.ID, d.sequenceID(h.Session, h.Seq)))
	return from
}

// statusOf are the outcomes by their numbers in the schema.
var statusOf = [...]record.Status{1: record.Committed, 2: record.Aborted, 3: record.Unknown}

func status(c *cursor) record.Status {
	n := int32(c.varint())
	if 0 < n && int(n) < len(statusOf) { // enums are cut to 32 bits, as the encoding has it
		return statusOf[n]
	}
	c.fail(reject.New(reject.UnknownStatus, "no status has the number %d: want COMMITTED, ABORTED or UNKNOWN", n))
	return 0
}
