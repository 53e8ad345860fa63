package protobuf

import (
	"bytes"
	"encoding/binary"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/record/packed"
)

// pack adds the transaction to out.
func (d *Decoder) pack(c *cursor, out *packed.Chunk) {
	var h packed.Head
	from := d.head(c, &h)
	if c.err != nil {
		return
	}
	out.Begin(&h)
	if from >= 0 {
		c.p = from
	}
	for i := 0; ; i++ {
		body, more := c.next()
		if !more {
			break
		}
		var op record.Op
		if d.operation(&body, &op); body.err != nil {
			out.Undo()
			c.err = body.err.UnderIndex(i).Under("ops")
			return
		}
		out.Op(&op)
	}
	out.End()
}

// Tags of the form that packCanonical takes.
const (
	tagTransaction = messageTransaction<<3 | byte(bytesType)
	tagSession     = txnSession<<3 | byte(bytesType)
	tagSeq         = txnSeq<<3 | byte(varintType)
	tagStart       = txnStart<<3 | byte(fixed64)
	tagEnd         = txnEnd<<3 | byte(fixed64)
	tagStatus      = txnStatus<<3 | byte(varintType)
	tagDB          = txnDB<<3 | byte(bytesType)
	tagID          = txnID<<3 | byte(bytesType)
	tagOps         = txnOps<<3 | byte(bytesType)
	tagRead        = opRead<<3 | byte(bytesType)
	tagWrite       = opWrite<<3 | byte(bytesType)
	tagAppend      = opAppend<<3 | byte(bytesType)
	tagInteger     = opInteger<<3 | byte(varintType)
	tagNull        = opNull<<3 | byte(varintType)
)

// packCanonical adds the transaction in the message b if its fields stand in the order of
// their numbers and it is of the common kind. Where it can't, it adds nothing: whether anything is
// wrong, and what, is for the other way to say.
func (d *Decoder) packCanonical(b []byte, out *packed.Chunk) bool {
	if len(b) < 2 || len(b) > d.opt.SizeMax || b[0] != tagTransaction {
		return false
	}
	n, p, ok := uvarint(b, 1)
	if !ok || n != uint64(len(b)-p) {
		return false
	}
	var h packed.Head
	if p, ok = d.canonicalHead(b, p, &h); !ok {
		return false
	}
	out.Begin(&h)
	for p < len(b) {
		if len(b)-p < 2 || b[p] != tagOps || b[p+1] >= 0x80 {
			break
		}
		from := p + 2
		end := from + int(b[p+1])
		if end > len(b) {
			break
		}
		if !packPlain(b, from, end, out) {
			var op record.Op
			in := cursor{b: b[from:end]}
			if d.operation(&in, &op); in.err != nil {
				break
			}
			out.Op(&op)
		}
		p = end
	}
	if p < len(b) {
		out.Undo()
		return false
	}
	out.End()
	return true
}

// canonicalHead takes all that stands before the operations.
func (d *Decoder) canonicalHead(b []byte, p int, h *packed.Head) (_ int, ok bool) {
	if h.Session, p, ok = shortText(b, p, tagSession); !ok || bytes.IndexByte(h.Session, 0) >= 0 {
		return 0, false
	}
	if p < len(b) && b[p] == tagSeq {
		var n uint64
		if n, p, ok = uvarint(b, p+1); !ok || int64(n) < 0 {
			return 0, false
		}
		h.Seq, h.HasSeq = int64(n), true
	}
	if len(b)-p > 18 && b[p] == tagStart && b[p+9] == tagEnd {
		h.Start, h.End = int64(binary.LittleEndian.Uint64(b[p+1:])), int64(binary.LittleEndian.Uint64(b[p+10:]))
		if h.Start < 0 || h.End < h.Start {
			return 0, false
		}
		h.HasTimes = true
		p += 18
	}
	if len(b)-p < 2 || b[p] != tagStatus || b[p+1] == 0 || int(b[p+1]) >= len(statusOf) {
		return 0, false
	}
	h.Status = statusOf[b[p+1]]
	p += 2
	h.DB = defaultDB
	if p < len(b) && b[p] == tagDB {
		if h.DB, p, ok = shortText(b, p, tagDB); !ok || bytes.IndexByte(h.DB, 0) >= 0 {
			return 0, false
		}
	}
	h.SeqID = h.HasSeq
	if p < len(b) && b[p] == tagID {
		if h.ID, p, ok = shortText(b, p, tagID); !ok {
			return 0, false
		}
		h.SeqID = h.HasSeq && string(h.ID) == string(d.sequenceID(h.Session, h.Seq))
	}
	return p, true
}

// shortText takes a field that is a string of 1 to 127 bytes.
func shortText(b []byte, p int, tag byte) (s []byte, next int, ok bool) {
	if len(b)-p < 3 || b[p] != tag || b[p+1] >= 0x80 || b[p+1] == 0 {
		return nil, p, false
	}
	next = p + 2 + int(b[p+1])
	if next > len(b) {
		return nil, p, false
	}
	s = b[p+2 : next]
	return s, next, isASCII(s) || utf8.Valid(s)
}

// isASCII tells of short texts, eight bytes at a time.
func isASCII(s []byte) bool {
	const high = 0x8080808080808080
	if len(s) < 8 {
		var set byte
		for _, c := range s {
			set |= c
		}
		return set < utf8.RuneSelf
	}
	set := binary.LittleEndian.Uint64(s[len(s)-8:])
	for ; len(s) > 8; s = s[8:] {
		set |= binary.LittleEndian.Uint64(s)
	}
	return set&high == 0
}

// uvarint takes a varint of up to nine bytes.
func uvarint(b []byte, p int) (v uint64, next int, ok bool) {
	for shift := uint(0); p < len(b) && shift < 63; shift += 7 {
		c := b[p]
		p++
		v |= uint64(c&0x7f) << shift
		if c < 0x80 {
			return v, p, true
		}
	}
	return 0, p, false
}

// packPlain takes the operation b[p:end] if it is of the commonest form: a key and then an
// integer or null. It takes nothing otherwise. It may look at what follows in b.
func packPlain(b []byte, p, end int, out *packed.Chunk) bool {
	if end-p < 5 || b[p+1] >= 0x80 {
		return false
	}
	on, behind := b[p], p+2+int(b[p+1])
	if on != tagRead && on != tagWrite && on != tagAppend || b[p+1] == 0 || end-behind < 2 {
		return false
	}
	key := b[p+2 : behind]
	if !isASCII(key) && !utf8.Valid(key) {
		return false
	}
	kind := record.OpKind(on>>3 - opRead)
	switch b[behind] {
	case tagInteger:
		n := end - behind - 1
		if n <= 8 && len(b)-behind > 8 {
			// Its length is known from the operation's, so that there is no loop over its bytes.
			if v, ok := compact(binary.LittleEndian.Uint64(b[behind+1:]), n); ok {
				out.Int(kind, key, protowire.DecodeZigZag(v))
				return true
			}
			return false
		}
		if v, next, ok := uvarint(b[:end], behind+1); ok && next == end {
			out.Int(kind, key, protowire.DecodeZigZag(v))
			return true
		}
	case tagNull:
		if end-behind == 2 && b[behind+1] == 0 {
			out.Null(kind, key)
			return true
		}
	}
	return false
}

// compact is the varint in the n lowest bytes of w, 1 to 8; not ok if it does not end
// just there.
func compact(w uint64, n int) (v uint64, ok bool) {
	const more = 0x8080808080808080
	w &= 1<<(8*n) - 1
	if w&more != more&(1<<(8*(n-1))-1) {
		return 0, false
	}
	w &^= more
	w = w&0x007f007f007f007f | w&0x7f007f007f007f00>>1
	w = w&0x00003fff00003fff | w&0x3fff00003fff0000>>2
	return w&0x0fffffff | w&0x0fffffff00000000>>4, true
}
