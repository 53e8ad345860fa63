package frontier

import (
	"encoding/binary"
	"math"
	"strconv"

	"github.com/isowatch/isowatch/ingest/record"
)

// A key with all that is known of it is packed as its body, in memory, on disk
// and in snapshots:
//
//	body    := state (1) versions (1) len key version…
//	version := len flags (1) number time (8) [end-start] [seq] len session [len id] ops op…
//	op      := value kind, plus 8 if it is an append (1) [integer | len text]
//
// Numbers and lengths are varints; time is the end, of a record without times its
// arrival. The oldest version comes first.

// The flags of a version.
const (
	versionUnknown = 1 << iota // of unknown outcome, else committed
	versionTimes
	versionSeq
	versionID // the ID is spelled out; else it is session#seq

	versionFlags = versionUnknown | versionTimes | versionSeq | versionID
)

const opAppend = 1 << 3

// reader takes a packed body apart. Once it meets what can't be, ok is false and
// all that follows is empty.
type reader struct {
	b  []byte
	ok bool
}

func (r *reader) fail() { r.b, r.ok = nil, false }

func (r *reader) byte() byte {
	if len(r.b) == 0 {
		r.fail()
		return 0
	}
	c := r.b[0]
	r.b = r.b[1:]
	return c
}

func (r *reader) uint() uint64 {
	if len(r.b) > 0 && r.b[0] < 0x80 {
		c := r.b[0]
		r.b = r.b[1:]
		return uint64(c)
	}
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) int() int64 {
	v, n := binary.Varint(r.b)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) fixed() int64 {
	if len(r.b) < 8 {
		r.fail()
		return 0
	}
	v := binary.LittleEndian.Uint64(r.b)
	r.b = r.b[8:]
	return int64(v)
}

func (r *reader) bytes() []byte {
	n := r.uint()
	if n > uint64(len(r.b)) {
		r.fail()
		return nil
	}
	b := r.b[:n:n]
	r.b = r.b[n:]
	return b
}

// keyOf is the key of a body.
func keyOf(body []byte) []byte {
	r := reader{body[2:], true}
	return r.bytes()
}

// versionsOf is a reader of a body's versions, one by one with bytes.
func versionsOf(body []byte) reader {
	r := reader{body[2:], true}
	r.bytes()
	return r
}

// version is one, taken apart; slices are of its body.
type version struct {
	flags       byte
	number      uint64
	start, end  int64
	seq         int64
	session, id []byte
	count       uint64
	ops         []byte
}

func (v *version) committed() bool { return v.flags&versionUnknown == 0 }
func (v *version) timed() bool     { return v.flags&versionTimes != 0 }

// parse takes a version apart, all but its operations.
func parse(raw []byte) (v version, ok bool) {
	r := reader{raw, true}
	v.flags = r.byte()
	v.number = r.uint()
	v.end = r.fixed()
	v.start = v.end
	if v.flags&versionTimes != 0 {
		v.start = v.end - r.int()
	}
	if v.flags&versionSeq != 0 {
		v.seq = r.int()
	}
	v.session = r.bytes()
	if v.flags&versionID != 0 {
		v.id = r.bytes()
	}
	v.count = r.uint()
	v.ops = r.b
	return v, r.ok && v.flags&^versionFlags == 0 && (v.flags&versionID != 0 || v.flags&versionSeq != 0)
}

// op is a packed write.
type op struct {
	append bool
	kind   record.ValueKind
	num    int64
	text   []byte
}

func (o *op) is(v record.Value) bool {
	return o.kind == v.Kind && o.num == v.Num && string(o.text) == v.Text
}

func (o *op) record(key string) record.Op {
	out := record.Op{Kind: record.Write, Key: key, Value: record.Value{Kind: o.kind, Num: o.num, Text: string(o.text)}}
	if o.append {
		out.Kind = record.Append
	}
	return out
}

func (r *reader) op() (o op) {
	c := r.byte()
	o.append = c&opAppend != 0
	switch o.kind = record.ValueKind(c &^ opAppend); {
	case o.kind == record.KindNull:
	case o.kind == record.KindInt:
		o.num = r.int()
	case o.kind <= record.KindObject:
		o.text = r.bytes()
	default:
		r.fail()
	}
	return o
}

// last is the last operation of a version.
func (v *version) last() (o op) {
	r := reader{v.ops, true}
	for range v.count {
		o = r.op()
	}
	return o
}

// check tells whether bytes are a body whose transactions have numbers up to most.
func check(body []byte, most uint64) bool {
	if len(body) < 3 || State(body[0])&^stateMask != 0 || body[1] > perKeyMost || len(body) > math.MaxInt32 {
		return false
	}
	r := reader{body[2:], true}
	r.bytes()
	last := uint64(0)
	for range body[1] {
		v, ok := parse(r.bytes())
		if !r.ok || !ok || v.number <= last || v.number > most || v.count == 0 {
			return false
		}
		last = v.number
		ops := reader{v.ops, true}
		for i := uint64(0); i < v.count && ops.ok; i++ {
			ops.op()
		}
		if !ops.ok || len(ops.b) > 0 {
			return false
		}
	}
	return r.ok && len(r.b) == 0
}

// appendHead begins a body without versions.
func appendHead[K string | []byte](dst []byte, st State, key K) []byte {
	dst = append(dst, byte(st), 0)
	dst = binary.AppendUvarint(dst, uint64(len(key)))
	return append(dst, key...)
}

// appendVersion adds the packed version to a body that begins at from.
func appendVersion(body []byte, from int, raw []byte) []byte {
	body[from+1]++
	body = binary.AppendUvarint(body, uint64(len(raw)))
	return append(body, raw...)
}

// packWriter packs a transaction's part of a version: all but operations.
func packWriter(dst []byte, t *record.Transaction, number uint64, arrival int64) []byte {
	flags, end := byte(0), arrival
	if t.Status == record.Unknown {
		flags |= versionUnknown
	}
	if t.HasTimes {
		flags, end = flags|versionTimes, t.End
	}
	if t.HasSeq {
		flags |= versionSeq
	}
	if !derived(t) {
		flags |= versionID
	}
	dst = append(dst, flags)
	dst = binary.AppendUvarint(dst, number)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(end))
	if t.HasTimes {
		dst = binary.AppendVarint(dst, t.End-t.Start)
	}
	if t.HasSeq {
		dst = binary.AppendVarint(dst, t.Seq)
	}
	dst = binary.AppendUvarint(dst, uint64(len(t.Session)))
	dst = append(dst, t.Session...)
	if flags&versionID != 0 {
		dst = binary.AppendUvarint(dst, uint64(len(t.ID)))
		dst = append(dst, t.ID...)
	}
	return dst
}

// derived tells whether the ID is session#seq.
func derived(t *record.Transaction) bool {
	n := len(t.Session)
	if !t.HasSeq || len(t.ID) <= n+1 || t.ID[:n] != t.Session || t.ID[n] != '#' {
		return false
	}
	var digits [20]byte
	return t.ID[n+1:] == string(strconv.AppendInt(digits[:0], t.Seq, 10))
}

// packOp packs a write.
func packOp(dst []byte, o *record.Op) []byte {
	c := byte(o.Value.Kind)
	if o.Kind == record.Append {
		c |= opAppend
	}
	dst = append(dst, c)
	switch o.Value.Kind {
	case record.KindNull:
	case record.KindInt:
		dst = binary.AppendVarint(dst, o.Value.Num)
	default:
		dst = binary.AppendUvarint(dst, uint64(len(o.Value.Text)))
		dst = append(dst, o.Value.Text...)
	}
	return dst
}
