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
	messageSchema     = &schema{"Message", []string{"", "transaction", "begin", "step", "end"}}
	transactionSchema = &schema{"Transaction",
		[]string{"", "session", "seq", "start", "end", "status", "db", "id", "ops", "node"}}
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
			return true, bad.Under(messageSchema.fields[kind])
		}
		return true, nil
	}
	if bad := d.pack(body, c); bad != nil {
		return false, bad
	}
	return false, nil
}

// Pack adds the record in b to c. It does what Decode and c.Add would, with the same
// errors, without making a record.Transaction. An event is refused.
func (d *Decoder) Pack(b []byte, c *packed.Chunk) error {
	if d.packCanonical(b, c) {
		return nil
	}
	body, err := d.record(b)
	if err == nil {
		err = d.pack(body, c)
	}
	if err != nil {
		return err
	}
	return nil
}

// Decode sets *t to the record in b. An error is a *reject.Error without a
// position, and leaves *t zero. An event is refused.
func (d *Decoder) Decode(b []byte, t *record.Transaction) error {
	*t = record.Transaction{}
	body, err := d.record(b)
	if err == nil {
		err = d.transaction(body, t)
	}
	if err != nil {
		*t = record.Transaction{}
		return err
	}
	return nil
}

// record opens a message that has to be a whole record.
func (d *Decoder) record(b []byte) (cursor, *reject.Error) {
	kind, body, err := d.open(b)
	if err == nil && kind != messageTransaction {
		err = reject.In(messageSchema.fields[kind], reject.WrongType, "want a whole transaction, not an event of one")
	}
	return body, err
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
		return 0, body, err.Under(messageSchema.fields[tag>>3])
	}
	if c.more() {
		again, err := c.tag()
		switch {
		case err != nil:
			return 0, body, err
		case again>>3 <= messageEnd && again&7 == bytesType:
			return 0, body, reject.In(messageSchema.fields[again>>3], reject.DuplicateField,
				"a message is one transaction or one event, not several")
		}
		return 0, body, messageSchema.unknown(again)
	}
	return int(tag >> 3), body, nil
}

// transaction is pack, to a record.
func (d *Decoder) transaction(c cursor, t *record.Transaction) *reject.Error {
	var h packed.Head
	n, from, err := d.head(&c, &h)
	if err != nil {
		return err
	}
	t.DB, t.Session, t.Node = d.names.String(h.DB), d.names.String(h.Session), d.names.String(h.Node)
	t.Seq, t.HasSeq = h.Seq, h.HasSeq
	t.Start, t.End, t.HasTimes = h.Start, h.End, h.HasTimes
	t.Status = h.Status
	if h.SeqID {
		t.ID = string(d.sequenceID(h.Session, h.Seq))
	} else {
		t.ID = string(h.ID)
	}
	if n == 0 {
		return nil
	}
	// Room is not made for more of them than the bytes can hold: if there seem to be
	// more, one is wrong.
	t.Ops = make([]record.Op, 0, min(n, len(c.b)/operationMin))
	c.p = from
	t.Ops, err = d.operations(&c, t.Ops)
	return err
}

func (d *Decoder) sequenceID(session []byte, seq int64) []byte {
	d.id = strconv.AppendInt(append(append(d.id[:0], session...), '#'), seq, 10)
	return d.id
}

var defaultDB = []byte(record.DefaultDB)

// head takes all fields but the operations, of which it says how many there are and
// where the first stands; -1 if there is none.
func (d *Decoder) head(c *cursor, h *packed.Head) (ops, from int, err *reject.Error) {
	from = -1
	var set uint
	for c.more() {
		at := c.p
		tag, err := c.tag()
		if err != nil {
			return 0, 0, err
		}
		if tag == txnOps<<3|bytesType {
			if ops == 0 {
				from = at
			}
			if _, err := c.bytes(); err != nil {
				return 0, 0, err.UnderIndex(ops).Under("ops")
			}
			ops++
			continue
		}
		if err := d.field(c, tag, &set, h); err != nil {
			return 0, 0, err
		}
	}
	return ops, from, d.finish(h, set)
}

// field takes a field of a transaction, whose tag has been taken.
func (d *Decoder) field(c *cursor, tag uint64, set *uint, h *packed.Head) (err *reject.Error) {
	number := uint(tag >> 3)
	if tag>>3 >= uint64(len(transactionSchema.fields)) || transactionWire[number] != tag&7 {
		return transactionSchema.unknown(tag)
	}
	if err := transactionSchema.seen(set, number, 0); err != nil {
		return err
	}
	switch number {
	case txnSession:
		h.Session, err = c.session()
	case txnSeq:
		var v uint64
		v, err = c.varint()
		h.Seq, err = notNegative(int64(v), err)
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
	if err != nil {
		return err.Under(transactionSchema.fields[number])
	}
	return nil
}

// transactionWire are the wire types of a transaction's fields.
var transactionWire = [...]uint64{txnSession: bytesType, txnSeq: varintType, txnStart: fixed64, txnEnd: fixed64,
	txnStatus: varintType, txnOps: bytesType, txnDB: bytesType, txnID: bytesType, txnNode: bytesType}

// finish sets what is absent and checks what only the whole record tells.
func (d *Decoder) finish(h *packed.Head, set uint) *reject.Error {
	for _, needed := range [...]uint{txnSession, txnStatus} {
		if set&(1<<needed) == 0 {
			return transactionSchema.missing(needed)
		}
	}
	switch set & (1<<txnStart | 1<<txnEnd) {
	case 1<<txnStart | 1<<txnEnd:
		h.HasTimes = true
		if h.End < h.Start {
			return reject.In("end", reject.TimeBackwards, "the transaction ends at %d, %d ns before its start at %d", h.End,
				h.Start-h.End, h.Start)
		}
	case 1 << txnStart:
		return reject.In("end", reject.OneTimeOnly, "there is a start and no end")
	case 1 << txnEnd:
		return reject.In("start", reject.OneTimeOnly, "there is an end and no start")
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
