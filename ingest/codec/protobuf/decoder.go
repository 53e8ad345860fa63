package protobuf

import (
	"bytes"
	"strconv"

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

	txnSession, txnSeq, txnStart, txnEnd, txnStatus, txnDB, txnID, txnOps, txnNode = 1, 2, 3, 4, 5, 6, 7, 8, 9
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
	}}
)

// Message decodes a message. A whole record is added to c, or nothing if there is an
// error; an event is put into *e. Errors are *reject.Errors without a position.
func (d *Decoder) Message(b []byte, c *packed.Chunk, e *assemble.Event) (isEvent bool, err error) {
	if d.packCanonical(b, c) {
		return false, nil
	}
	kind, body, bad := d.open(b)
	if bad != nil {
		return false, bad
	}
	if kind != messageTransaction {
		if bad := d.event(kind, body, e); bad != nil {
			return true, bad.Under(messageSchema.fields[kind].name)
		}
		return true, nil
	}
	if bad := d.pack(body, c); bad != nil {
		return false, bad
	}
	return false, nil
}

// open takes the message's only field.
func (d *Decoder) open(b []byte) (kind int, body cursor, err *reject.Error) {
	if len(b) > d.opt.SizeMax {
		return 0, body, reject.New(reject.TooLarge, "the record has %d bytes, more than the limit of %d", len(b),
			d.opt.SizeMax)
	}
	c := cursor{b: b}
	if !c.more() {
		return 0, body, reject.New(reject.MissingField, "the message is empty: want one of transaction, begin, step and end")
	}
	tag, err := c.tag()
	if err != nil {
		return 0, body, err
	}
	if tag>>3 > messageEnd || tag&7 != bytesType {
		return 0, body, messageSchema.unknown(tag)
	}
	if body, err = c.message(); err != nil {
		return 0, body, err.Under(messageSchema.fields[tag>>3].name)
	}
	if c.more() {
		again, err := c.tag()
		switch {
		case err != nil:
			return 0, body, err
		case again>>3 <= messageEnd && again&7 == bytesType:
			return 0, body, reject.In(messageSchema.fields[again>>3].name, reject.DuplicateField,
				"a message is one transaction or one event, not several")
		}
		return 0, body, messageSchema.unknown(again)
	}
	return int(tag >> 3), body, nil
}

func (d *Decoder) sequenceID(session []byte, seq int64) []byte {
	d.id = strconv.AppendInt(append(append(d.id[:0], session...), '#'), seq, 10)
	return d.id
}

var defaultDB = []byte(record.DefaultDB)

// head takes all fields but the operations, of which it says where the first stands; -1 if there is none.
func (d *Decoder) head(c *cursor, h *packed.Head) (from int, err *reject.Error) {
	from = -1
	var set uint
	for ops := 0; c.more(); {
		at := c.p
		number, err := transactionSchema.field(c, &set)
		if err != nil {
			return 0, err
		}
		if number != txnOps {
			if err := headField(c, number, h); err != nil {
				return 0, err.Under(transactionSchema.fields[number].name)
			}
			continue
		}
		if ops == 0 {
			from = at
		}
		if _, err := c.bytes(); err != nil {
			return 0, err.UnderIndex(ops).Under("ops")
		}
		ops++
	}
	return from, d.finish(h, set)
}

// headField takes a field of a transaction.
func headField(c *cursor, number uint, h *packed.Head) (err *reject.Error) {
	switch number {
	case txnSession:
		h.Session, err = c.session()
	case txnSeq:
		h.Seq, err = c.sequence()
		h.HasSeq = true
	case txnStart:
		h.Start, err = c.time()
	case txnEnd:
		h.End, err = c.time()
	case txnStatus:
		h.Status, err = status(c)
	case txnDB:
		h.DB, err = c.history()
	case txnID:
		h.ID, err = c.name("the id")
	case txnNode:
		h.Node, err = c.name("the node")
	}
	return err
}

// finish sets what is absent and checks what only the whole record tells.
func (d *Decoder) finish(h *packed.Head, set uint) (err *reject.Error) {
	if err := transactionSchema.missing(set, txnSession, txnStatus); err != nil {
		return err
	}
	if h.HasTimes, err = codec.CheckTimes(set&(1<<txnStart) != 0, set&(1<<txnEnd) != 0, h.Start, h.End); err != nil {
		return err
	}
	if h.DB == nil {
		h.DB = defaultDB
	}
	h.SeqID = h.HasSeq && (h.ID == nil || bytes.Equal(h.ID, d.sequenceID(h.Session, h.Seq)))
	return nil
}

// statusOf are the outcomes by their numbers in the schema.
var statusOf = [...]record.Status{1: record.Committed, 2: record.Aborted, 3: record.Unknown}

func status(c *cursor) (record.Status, *reject.Error) {
	v, err := c.varint()
	if err != nil {
		return 0, err
	}
	if n := int32(v); 0 < n && int(n) < len(statusOf) { // enums are cut to 32 bits, as the encoding has it
		return statusOf[n], nil
	}
	return 0, reject.New(reject.UnknownStatus, "no status has the number %d: want COMMITTED, ABORTED or UNKNOWN", int32(v))
}
