package codec

import (
	"github.com/isowatch/isowatch/ingest/codec/intern"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/reject"
)

const (
	// SizeDefault is the largest record, in bytes, unless Options say otherwise.
	SizeDefault = 8 << 20
	// NamesDefault is how many names a Decoder remembers unless Options say
	// otherwise.
	NamesDefault = 1 << 14
	// DepthMax is how deep lists and objects of a value may nest.
	DepthMax = 64
)

// Options are what a Decoder may spend. The zero Options are the defaults.
type Options struct {
	SizeMax  int // bytes of one record; 0 means SizeDefault
	NamesMax int // keys, sessions and databases remembered; 0 means NamesDefault
}

// Decoder decodes records, reusing what it can from one to the next. It is for
// one goroutine. Records that it made do not share memory with the input.
type Decoder struct {
	opt   Options
	names *intern.Table

	b   []byte        // the record at hand
	p   int           // the next byte of it
	err *reject.Error // the first: nothing more is taken after it

	// Scratch, overwritten by the next use.
	ops       []record.Op
	unescaped []byte   // the string scanned last, if it had escapes
	canon     []byte   // the list or object at hand in canonical form
	members   []member // of the objects being canonicalised, a stack
	sorted    []byte
	digits    []byte // of the number scanned last
	id        []byte
	txn       record.Transaction // of Pack
	borrow    bool               // operations are returned in scratch, and values as parts of the record
}

// opsKept bounds the scratch that outlives a record.
const opsKept = 4096

// New makes a Decoder.
func New(opt Options) *Decoder {
	if opt.SizeMax <= 0 {
		opt.SizeMax = SizeDefault
	}
	if opt.NamesMax <= 0 {
		opt.NamesMax = NamesDefault
	}
	return &Decoder{opt: opt, names: intern.NewTable(opt.NamesMax)}
}

// Decode decodes a single record with the default Options. Decoding many is
// faster with one Decoder.
func Decode(b []byte, t *record.Transaction) error { return New(Options{}).Decode(b, t) }

// Decode sets *t to the record in b. An error is a *reject.Error without a
// position, and leaves *t zero.
func (d *Decoder) Decode(b []byte, t *record.Transaction) error {
	*t = record.Transaction{}
	err := d.whole("record", b, func() { d.transaction(t) })
	if err != nil {
		*t = record.Transaction{}
	}
	return err
}

// whole has b taken, which is what the word says, within the limit.
func (d *Decoder) whole(what string, b []byte, take func()) error {
	if len(b) > d.opt.SizeMax {
		return reject.New(reject.TooLarge, "the %s has %d bytes, more than the limit of %d", what, len(b), d.opt.SizeMax)
	}
	d.b, d.p, d.err = b, 0, nil
	take()
	if d.b = nil; d.err != nil {
		return d.err
	}
	return nil
}

// fail notes an error, if it is one.
func (d *Decoder) fail(e *reject.Error) {
	if d.err == nil {
		d.err = e
	}
}

// under says in what the error is, if there is one.
func (d *Decoder) under(name string) {
	if d.err != nil {
		d.err = d.err.Under(name)
	}
}

func (d *Decoder) underIndex(i int) {
	if d.err != nil {
		d.err = d.err.UnderIndex(i)
	}
}

// Fields of a record, as bits of those seen.
const (
	fieldDB = 1 << iota
	fieldSession
	fieldSeq
	fieldID
	fieldStart
	fieldEnd
	fieldStatus
	fieldOps
	fieldNode
	fieldStatements
	fieldXID
	fieldLSN
)

var recordForm = form{
	fields: []string{"db", "session", "seq", "id", "start", "end", "status", "ops", "node",
		"statements", "xid", "lsn"},
	optional: fieldDB | fieldSeq | fieldID | fieldStart | fieldEnd | fieldNode | fieldStatements | fieldXID | fieldLSN,
	has:      "a record has db, session, seq, id, node, statements, xid, lsn, start, end, status and ops",
}

// transaction parses all of d.b. The fields that are absent are set by finish.
func (d *Decoder) transaction(t *record.Transaction) {
	given := d.object(&recordForm, "one JSON object", func(f uint) { d.field(f, t) })
	if e := d.err; e != nil && e.Reason == reject.UnknownField && e.Field == "history" {
		d.err = reject.In("history", reject.MisplacedHeader, "a header is no record: it stands only on the first line of a file")
	}
	d.end()
	d.need(&recordForm, given, fieldSession|fieldStatus|fieldOps, "a record")
	d.fail(d.finish(t, given))
}

// field parses the value of one field.
func (d *Decoder) field(f uint, t *record.Transaction) {
	switch f {
	case fieldDB:
		t.DB = d.history()
	case fieldSession:
		t.Session = d.session()
	case fieldSeq:
		t.Seq, t.HasSeq = d.integer(), true
	case fieldID:
		t.ID = string(d.nameBytes("the id"))
	case fieldNode:
		t.Node = string(d.nameBytes("the node"))
	case fieldStatements:
		raw := d.nameBytes("the text of the statements")
		d.fail(CheckStatements(raw))
		t.Statements = string(raw)
	case fieldXID:
		t.XID = string(d.nameBytes("the xid"))
	case fieldLSN:
		t.LSN = d.integer()
		d.fail(CheckLSN(t.LSN))
	case fieldStart:
		t.Start = d.integer()
	case fieldEnd:
		t.End = d.integer()
	case fieldStatus:
		t.Status = d.status()
	case fieldOps:
		t.Ops = d.operations()
	}
}

// finish sets what is absent and checks what only the whole record tells.
func (d *Decoder) finish(t *record.Transaction, given uint) *reject.Error {
	var err *reject.Error
	if t.HasTimes, err = CheckTimes(given&fieldStart != 0, given&fieldEnd != 0, t.Start, t.End); err != nil {
		return err
	}
	if given&fieldDB == 0 {
		t.DB = record.DefaultDB
	}
	if given&fieldID == 0 && t.HasSeq {
		d.id = record.AppendSequenceID(d.id[:0], t.Session, t.Seq)
		t.ID = string(d.id)
	}
	return nil
}

// CheckTimes tells whether a record has times. It refuses one without the other, and an end before its start.
func CheckTimes(hasStart, hasEnd bool, start, end int64) (both bool, err *reject.Error) {
	switch {
	case hasStart && !hasEnd:
		return false, reject.In("end", reject.OneTimeOnly, "there is a start and no end")
	case hasEnd && !hasStart:
		return false, reject.In("start", reject.OneTimeOnly, "there is an end and no start")
	case hasStart && end < start:
		return false, reject.In("end", reject.TimeBackwards, "the transaction ends at %d, %d ns before its start at %d", end,
			start-end, start)
	}
	return hasStart, nil
}

// CheckLSN refuses an LSN that is none.
func CheckLSN(lsn int64) *reject.Error {
	if lsn <= 0 {
		return reject.New(reject.OutOfRange, "an LSN is above 0, not %d", lsn)
	}
	return nil
}

func (d *Decoder) status() record.Status {
	switch raw := d.wantString("the status"); string(raw) {
	case "committed":
		return record.Committed
	case "aborted":
		return record.Aborted
	case "unknown":
		return record.Unknown
	default:
		d.fail(reject.New(reject.UnknownStatus, "no status is called %s: want committed, aborted or unknown", quoted(raw)))
	}
	return 0
}
