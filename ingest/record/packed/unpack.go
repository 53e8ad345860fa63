package packed

import (
	"strings"

	"github.com/isowatch/isowatch/ingest/record"
)

// numbers are what stands before a record's operations, with names as numbers.
type numbers struct {
	db, session     uint64
	label           uint64 // its number and 1; 0: none
	seq, start, end int64
	id              string // if it is spelled out
	ops             int
	flags           byte
}

// unpacker reads records from p on. What it reads is known to be well-formed: it
// comes from a Chunk, or Unmarshal has looked at it.
type unpacker struct {
	data string
	base base
	p    int

	h    numbers
	t    record.Transaction // without names
	ops  []record.Op        // of t
	keys []uint32           // numbers of their keys
	ids  strings.Builder    // that IDs are cut from
}

// head reads what stands before the operations.
func (u *unpacker) head() {
	h := &u.h
	h.flags, h.ops = u.data[u.p], int(u.data[u.p+1])
	u.p += 2
	if h.ops == manyOps {
		h.ops = int(uint32(load(u.data, u.p)))
		u.p += 4
	}
	h.db, h.label = 0, 0
	if h.flags&flagNames != 0 {
		h.db, h.label = u.uint(), u.uint()
	}
	h.session = u.uint()
	h.seq, h.start, h.end, h.id = 0, 0, 0, ""
	if h.flags&(flagSeq|flagIdle) != 0 {
		h.seq = u.int()
	}
	if h.flags&flagID != 0 {
		h.id = u.text()
	}
	if h.flags&(flagTimes|flagIdle) != 0 {
		h.start = u.base.start + u.int()
		h.end = h.start + u.int()
	}
}

// next reads a record but its names, and its ID if that has to be made.
func (u *unpacker) next() {
	u.head()
	h := &u.h
	u.operations(h.ops)
	u.t = record.Transaction{ID: h.id, Seq: h.seq, Start: h.start, End: h.end, Status: record.Status(h.flags & flagStatus),
		HasSeq: h.flags&flagSeq != 0, HasTimes: h.flags&flagTimes != 0, Ops: u.ops}
}

// operations reads n.
func (u *unpacker) operations(n int) {
	if cap(u.ops) < n {
		u.ops = make([]record.Op, n)
	}
	if cap(u.keys) < n {
		u.keys = make([]uint32, n)
	}
	ops, keys := u.ops[:n], u.keys[:n]
	data, p, last := u.data, u.p, u.base.num
	for i := range ops {
		op := &ops[i]
		first, k := data[p], uint32(data[p+1])|uint32(data[p+2])<<8
		if p += 3; k == wide {
			k = uint32(load(data, p))
			p += 4
		}
		keys[i] = k
		if first&flagInt != 0 {
			size := int(first & (1<<intShift - 1))
			last += unzigzag(load(data, p) & (1<<(8*size) - 1))
			p += size
			*op = record.Op{Kind: record.OpKind(first >> intShift & 7), Value: record.Value{Kind: record.KindInt, Num: last}}
			continue
		}
		*op = record.Op{Kind: record.OpKind(first & 7), Value: record.Value{Kind: record.ValueKind(first >> valueShift & 7)}}
		u.p = p
		switch op.Value.Kind {
		case record.KindNull:
		case record.KindInt:
			last += u.int()
			op.Value.Num = last
		default:
			op.Value.Text = u.text()
		}
		if first&flagWhere != 0 {
			op.Where = u.text()
		}
		p = u.p
	}
	u.ops, u.keys, u.p = ops, keys, p
}

// idsBlock is how many bytes IDs are cut from at once.
const idsBlock = 4 << 10

// identify makes the ID of the record if it has to be made, cut from a block of
// many.
func (u *unpacker) identify() {
	var room [96]byte
	id := room[:0]
	switch {
	case u.h.flags&flagContent != 0:
		head := record.HeadOf(&u.t)
		id = record.AppendContentID(id, u.t.Session, head.Content)
	case u.h.flags&flagID == 0:
		id = record.AppendSequenceID(id, u.t.Session, u.t.Seq)
	default:
		return
	}
	if u.ids.Cap()-u.ids.Len() < len(id) {
		u.ids = strings.Builder{}
		u.ids.Grow(max(idsBlock, len(id)))
	}
	// A Builder never rewrites what it holds, and within its capacity never moves it.
	from := u.ids.Len()
	u.ids.Write(id)
	u.t.ID = u.ids.String()[from:]
}

// uint reads an unsigned varint.
func (u *unpacker) uint() uint64 {
	data, p := u.data, u.p
	if c := data[p]; c < 0x80 {
		u.p = p + 1
		return uint64(c)
	}
	var n uint64
	for shift := uint(0); ; shift += 7 {
		c := data[p]
		p++
		n |= uint64(c&0x7f) << shift
		if c < 0x80 {
			u.p = p
			return n
		}
	}
}

// int reads a signed one.
func (u *unpacker) int() int64 {
	return unzigzag(u.uint())
}

func unzigzag(n uint64) int64 { return int64(n>>1) ^ -int64(n&1) }

// load are the 8 bytes at p, the least significant first.
func load(data string, p int) uint64 {
	s := data[p : p+8]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// text reads a text, which is a part of the data.
func (u *unpacker) text() string {
	n := int(u.uint())
	u.p += n
	return u.data[u.p-n : u.p]
}
