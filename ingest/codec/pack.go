package codec

import (
	"bytes"
	"encoding/binary"

	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/record/packed"
)

// Pack adds the record in b to c. It does what Decode and c.Add would, with the
// same errors, in a fraction of the time if the record is written as AppendJSON
// writes it: no record.Transaction is made, and no string.
func (d *Decoder) Pack(b []byte, c *packed.Chunk) error {
	d.borrow = true
	defer func() { d.borrow = false }()
	if len(b) <= d.opt.SizeMax && d.packCanonical(b, c) {
		return nil
	}
	err := d.Decode(b, &d.txn)
	if err == nil {
		c.Add(&d.txn)
	}
	return err
}

// packCanonical adds the record if its fields are in AppendJSON's order and
// without blanks between them, in ASCII without escapes. Operations may be any, but the
// plain ones are faster. Where it can't, it adds nothing: whether anything is wrong,
// and what, is for Decode to say.
func (d *Decoder) packCanonical(b []byte, c *packed.Chunk) bool {
	d.b, d.p, d.err = b, 0, nil
	defer func() { d.b = nil }()
	var h packed.Head
	if !d.canonicalHead(&h) {
		return false
	}
	c.Begin(&h)
	if !d.packOperations(c) || d.p != len(b) {
		c.Undo()
		return false
	}
	c.End()
	return true
}

// word takes what must stand at d.p, or nothing.
func (d *Decoder) word(w string) bool {
	if len(d.b)-d.p < len(w) || string(d.b[d.p:d.p+len(w)]) != w {
		return false
	}
	d.p += len(w)
	return true
}

// plainString takes a string, from behind the quotes that open it to behind those
// that close it, if it is not empty, in ASCII and without escapes.
func (d *Decoder) plainString() ([]byte, bool) {
	b, p := d.b, plainEnd(d.b, d.p)
	if p == d.p || p == len(b) || b[p] != '"' {
		return nil, false
	}
	s := b[d.p:p]
	d.p = p + 1
	return s, true
}

// plainInteger takes an integer >= 0.
func (d *Decoder) plainInteger() (int64, bool) {
	if d.p >= len(d.b) {
		return 0, false
	}
	n, from := d.short()
	return n, d.p > from && n >= 0 && d.b[from] != '-'
}

// canonicalHead takes all before the list of operations, and its bracket.
func (d *Decoder) canonicalHead(h *packed.Head) (ok bool) {
	if !d.word(`{"`) {
		return false
	}
	h.DB = defaultDB
	if d.word(`db":"`) {
		if h.DB, ok = d.plainString(); !ok || len(h.DB) > HistoryMax || !d.word(`,"`) {
			return false
		}
	}
	if !d.word(`session":"`) {
		return false
	}
	if h.Session, ok = d.plainString(); !ok {
		return false
	}
	var seq []byte
	if d.word(`,"seq":`) {
		from := d.p
		if h.Seq, ok = d.plainInteger(); !ok {
			return false
		}
		h.HasSeq, h.SeqID = true, true
		seq = d.b[from:d.p]
	}
	if d.word(`,"id":"`) {
		if h.ID, ok = d.plainString(); !ok {
			return false
		}
		n := len(h.Session)
		h.SeqID = h.HasSeq && len(h.ID) == n+1+len(seq) && h.ID[n] == '#' && bytes.HasPrefix(h.ID, h.Session) &&
			bytes.HasSuffix(h.ID, seq)
	}
	if d.word(`,"node":"`) {
		if h.Node, ok = d.plainString(); !ok {
			return false
		}
	}
	if d.word(`,"statements":"`) {
		if h.Statements, ok = d.plainString(); !ok {
			return false
		}
	}
	if d.word(`,"xid":"`) {
		if h.XID, ok = d.plainString(); !ok {
			return false
		}
	}
	if d.word(`,"lsn":`) {
		if h.LSN, ok = d.plainInteger(); !ok || h.LSN == 0 {
			return false
		}
	}
	if d.word(`,"start":`) {
		if h.Start, ok = d.plainInteger(); !ok || !d.word(`,"end":`) {
			return false
		}
		if h.End, ok = d.plainInteger(); !ok || h.End < h.Start {
			return false
		}
		h.HasTimes = true
	}
	switch {
	case d.word(`,"status":"committed","ops":[`):
		h.Status = record.Committed
	case d.word(`,"status":"aborted","ops":[`):
		h.Status = record.Aborted
	case d.word(`,"status":"unknown","ops":[`):
		h.Status = record.Unknown
	default:
		return false
	}
	return true
}

var defaultDB = []byte(record.DefaultDB)

// packOperations takes them, and the brackets that close their list and the
// record.
func (d *Decoder) packOperations(c *packed.Chunk) bool {
	if d.word(`]}`) {
		return true
	}
	for {
		switch kind, key, v, ok := d.plain(); {
		case ok && v.Kind == record.KindInt:
			c.Int(kind, key, v.Num)
		case ok:
			c.Null(kind, key)
		default:
			var op record.Op
			if d.operation(&op); d.err != nil {
				return false
			}
			c.Op(&op)
		}
		b, p := d.b, d.p
		switch {
		case p >= len(b):
			return false
		case b[p] == ',':
			d.p++
		default:
			return d.word(`]}`)
		}
	}
}

// plain takes an operation of one of the commonest forms, which encoders write nearly always: ["r","KEY",INTEGER],
// the same with "w" or with null, without blanks or escapes and in ASCII. It takes
// nothing otherwise: operation will, and says what is wrong if anything is. It halves the time of a record.
func (d *Decoder) plain() (kind record.OpKind, key []byte, v record.Value, ok bool) {
	const before, behind = len(`["r","`), len(`",0]`)
	b, p := d.b, d.p
	if len(b)-p < before+behind || b[p] != '[' || b[p+1] != '"' || b[p+3] != '"' || b[p+4] != ',' || b[p+5] != '"' {
		return 0, nil, v, false
	}
	switch b[p+2] {
	case 'r':
		kind = record.Read
	case 'w':
		kind = record.Write
	default:
		return 0, nil, v, false
	}
	p += before
	from := p
	p = plainEnd(b, p)
	if p == from || len(b)-p < behind || b[p] != '"' || b[p+1] != ',' {
		return 0, nil, v, false
	}
	key = b[from:p]
	p += 2
	if len(b)-p >= 8 {
		// An integer of up to seven digits has no loop and no branch on its length.
		w := binary.LittleEndian.Uint64(b[p:])
		if n := leadingDigits(w); 0 < n && n < 8 && b[p+n] == ']' && (b[p] != '0' || n == 1) {
			d.p = p + n + 1
			return kind, key, record.Int(int64(eightDigits(w << (64 - 8*n)))), true
		}
	}
	start := d.p
	if d.p = p; d.word("null]") {
		return kind, key, record.Null, true
	}
	n, at := d.short()
	if d.p == at || d.p >= len(b) || b[d.p] != ']' {
		d.p = start
		return 0, nil, v, false
	}
	d.p++
	return kind, key, record.Int(n), true
}
