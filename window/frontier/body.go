package frontier

import (
	"encoding/binary"
	"math"
	"strconv"

	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/wire"
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

// keyOf is the key of a body.
func keyOf(body []byte) []byte {
	r := wire.NewReader(body[2:])
	return r.Bytes()
}

// versionsOf is a reader of a body's versions, one by one with Bytes.
func versionsOf(body []byte) wire.Reader {
	r := wire.NewReader(body[2:])
	r.Bytes()
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
	r := wire.NewReader(raw)
	v.flags = r.Byte()
	v.number = r.Uint()
	v.end = int64(r.Fixed())
	v.start = v.end
	if v.flags&versionTimes != 0 {
		v.start = v.end - r.Int()
	}
	if v.flags&versionSeq != 0 {
		v.seq = r.Int()
	}
	v.session = r.Bytes()
	if v.flags&versionID != 0 {
		v.id = r.Bytes()
	}
	v.count = r.Uint()
	v.ops = r.Rest()
	return v, r.OK() && v.flags&^versionFlags == 0 && (v.flags&versionID != 0 || v.flags&versionSeq != 0)
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

func readOp(r *wire.Reader) (o op) {
	c := r.Byte()
	o.append = c&opAppend != 0
	switch o.kind = record.ValueKind(c &^ opAppend); {
	case o.kind == record.KindNull:
	case o.kind == record.KindInt:
		o.num = r.Int()
	case o.kind <= record.KindObject:
		o.text = r.Bytes()
	default:
		r.Fail()
	}
	return o
}

// last is the last operation of a version.
func (v *version) last() (o op) {
	r := wire.NewReader(v.ops)
	for range v.count {
		o = readOp(&r)
	}
	return o
}

// check tells whether bytes are a body whose transactions have numbers up to most.
func check(body []byte, most uint64) bool {
	if len(body) < 3 || State(body[0])&^stateMask != 0 || body[1] > perKeyMost || len(body) > math.MaxInt32 {
		return false
	}
	r := wire.NewReader(body[2:])
	r.Bytes()
	last := uint64(0)
	for range body[1] {
		v, ok := parse(r.Bytes())
		if !r.OK() || !ok || v.number <= last || v.number > most || v.count == 0 {
			return false
		}
		last = v.number
		ops := wire.NewReader(v.ops)
		for i := uint64(0); i < v.count && ops.OK(); i++ {
			readOp(&ops)
		}
		if !ops.Done() {
			return false
		}
	}
	return r.Done()
}

// appendHead begins a body without versions.
func appendHead[K string | []byte](dst []byte, st State, key K) []byte {
	dst = append(dst, byte(st), 0)
	return wire.AppendText(dst, key)
}

// appendVersion adds the packed version to a body that begins at from.
func appendVersion(body []byte, from int, raw []byte) []byte {
	body[from+1]++
	return wire.AppendText(body, raw)
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
	dst = wire.AppendText(dst, t.Session)
	if flags&versionID != 0 {
		dst = wire.AppendText(dst, t.ID)
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
		dst = wire.AppendText(dst, o.Value.Text)
	}
	return dst
}
