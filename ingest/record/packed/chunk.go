package packed

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/bits"
	"slices"

	"github.com/isowatch/isowatch/ingest/record"
)

// The flags of a record. The low two bits are the status.
const (
	flagStatus  = 3
	flagSeq     = 1 << 2
	flagTimes   = 1 << 3
	flagID      = 1 << 4 // the ID is spelled out
	flagIdle    = 1 << 5 // Seq, Start and End are spelled out though not meaningful
	flagNames   = 1 << 6 // a DB other than the block's, or a label
	flagContent = 1 << 7 // the ID is made from the content, see Chunk.NameByContent
)

// manyOps in place of the number of operations says that it follows in four bytes.
const manyOps = math.MaxUint8

// The byte that opens an operation is its kind, the kind of its value, and whether
// it has a predicate:
//
//	0 w vvv kkk     w: a predicate follows the value
//	1 kkk nnnn      an integer of n bytes, without predicate
const (
	valueShift = 3
	flagWhere  = 1 << 6
	flagInt    = 1 << 7
	intShift   = 4
)

// wide opens a name's number that does not fit two bytes.
const wide = math.MaxUint16

// padding is how many zeros follow a block's records: integers are read 8 bytes at
// a time whatever their size.
const padding = 8

// base is what differences refer to: the first start and the first integer of the
// chunk. So every record can be read without those before it.
type base struct{ start, num int64 }

// Chunk packs consecutive records of one history, or of several. The zero Chunk
// is empty and ready. It is for one goroutine, and for at most 4 GiB.
type Chunk struct {
	// Summing: records are hashed as they are added, for Sums. It is set before the
	// first.
	Summing bool
	// Shortening: long texts are made short as records are added; see Shortened. It is set before
	// the first as well.
	Shortening bool

	data  []byte
	at    []uint32 // where each record begins
	heads []head
	log   []Logged
	names dictionary
	ops   int
	where int // of these, operations with a predicate

	base     base
	hasStart bool // base.start is set
	hasInt   bool
	lastInt  int64

	// How things stood when the record at hand began, for Undo.
	begun struct {
		data, ops, where int
		hasStart, hasInt bool
		id               int // where its ID stands, if spelled out
	}
	fresh   []uint32 // the names that it was the first to use as keys
	sums    []Sum
	digest  record.Digest // of the record at hand
	scratch []byte
	id      []byte // scratch
	label   []byte // of the record at hand
}

// head is what joining needs to know of a record.
type head struct {
	session uint32 // within the chunk
	seq     int64
	hasSeq  bool
	// regular: it has a seq, its ID is SESSION#SEQ, and its DB is the chunk's.
	regular   bool
	anonymous bool // its ID is empty
}

// Head is a record without its operations, as Begin takes it.
type Head struct {
	DB, Session []byte
	Node        []byte // empty: not known
	Statements  []byte // likewise
	Seq         int64  // if HasSeq
	Start, End  int64  // if HasTimes
	ID          []byte
	HasSeq      bool
	HasTimes    bool
	XID         []byte // empty: not known
	LSN         int64  // 0: not known
	// SeqID: the ID is SESSION#SEQ, whatever field ID says.
	SeqID  bool
	Status record.Status
}

// Len is how many records there are.
func (c *Chunk) Len() int { return len(c.heads) }

// Size is how many bytes they take, names not counted.
func (c *Chunk) Size() int { return len(c.data) }

// Begin begins a record. Its operations follow, and End or Undo.
func (c *Chunk) Begin(h *Head) { c.begin(h, false) }

// begin also spells out what is not meaningful if it is idle.
func (c *Chunk) begin(h *Head, idle bool) {
	if c.Shortening {
		short := *h
		short.Session, short.ID = Shortened(h.Session), Shortened(h.ID)
		short.Node, short.Statements = Shortened(h.Node), Shortened(h.Statements)
		h = &short
	}
	c.label = append(c.label[:0], h.Node...)
	if len(h.Statements) > 0 || bytes.IndexByte(h.Node, 0) >= 0 { // see record.Transaction.Label
		c.label = append(append(c.label, 0), h.Statements...)
	}
	c.begun.data, c.begun.ops, c.begun.where = len(c.data), c.ops, c.where
	c.begun.hasStart, c.begun.hasInt = c.hasStart, c.hasInt
	c.fresh = c.fresh[:0]
	c.at = append(c.at, uint32(len(c.data)))
	c.lastInt = c.base.num
	flags := byte(h.Status) & flagStatus
	if h.HasSeq {
		flags |= flagSeq
	}
	if h.HasTimes {
		flags |= flagTimes
	}
	if !h.SeqID {
		flags |= flagID
	}
	if idle {
		flags |= flagIdle
	}
	db := c.names.number(h.DB)
	label := uint32(0)
	if len(c.label) > 0 {
		label = c.names.number(c.label) + 1
	}
	if db != 0 || label != 0 { // the chunk's db is the first name of all
		flags |= flagNames
	}
	session := c.names.number(h.Session)
	b := append(c.data, flags, 0) // the number of operations: End sets it
	if flags&flagNames != 0 {
		b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(db)), uint64(label))
	}
	b = binary.AppendUvarint(b, uint64(session))
	if flags&(flagSeq|flagIdle) != 0 {
		b = binary.AppendVarint(b, h.Seq)
	}
	if flags&flagID != 0 {
		c.begun.id = len(b)
		b = appendText(b, h.ID)
	}
	if flags&(flagTimes|flagIdle) != 0 {
		if !c.hasStart {
			c.hasStart, c.base.start = true, h.Start
		}
		b = binary.AppendVarint(b, h.Start-c.base.start)
		b = binary.AppendVarint(b, h.End-h.Start)
	}
	c.data = b
	if c.Summing {
		c.sum(h)
	}
	if len(h.XID) > 0 || h.LSN != 0 {
		c.log = append(c.log, Logged{Record: len(c.heads), XID: string(h.XID), LSN: h.LSN})
	}
	c.heads = append(c.heads, head{session: session, seq: h.Seq, hasSeq: h.HasSeq,
		regular: h.HasSeq && h.SeqID && db == 0, anonymous: !h.SeqID && len(h.ID) == 0})
}

// sum begins to hash a record, and hashes its ID.
func (c *Chunk) sum(h *Head) {
	r := record.Head{Seq: h.Seq, Start: h.Start, End: h.End, HasSeq: h.HasSeq, HasTimes: h.HasTimes, Status: h.Status}
	c.digest = record.NewDigest(&r, record.HashBytes(h.Session))
	id := h.ID
	if h.SeqID {
		id = record.AppendSequenceID(c.id[:0], h.Session, h.Seq)
		c.id = id
	}
	c.sums = append(c.sums, Sum{ID: record.IDHashBytes(id)})
}

func appendText[T string | []byte](b []byte, text T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

// key is the number of a name that is used as a key.
func (c *Chunk) key(name []byte) uint32 {
	k := c.names.number(name)
	if !c.names.isKey[k] {
		c.names.isKey[k] = true
		c.fresh = append(c.fresh, k)
	}
	return k
}

// open makes room for an operation and puts its first byte and its key.
func (c *Chunk) open(first byte, k uint32) []byte {
	const most = 1 + 6 + 8 // first byte, key, integer
	b := c.data
	if cap(b)-len(b) < most {
		b = slices.Grow(b, max(most, cap(b)/2))
	}
	if k < wide {
		return append(b, first, byte(k), byte(k>>8))
	}
	return binary.LittleEndian.AppendUint32(append(b, first, 0xff, 0xff), k)
}

// difference is n as it is kept: minus the integer before it in its record, or
// minus the chunk's first.
func (c *Chunk) difference(n int64) int64 {
	if !c.hasInt {
		c.hasInt, c.base.num, c.lastInt = true, n, n
	}
	d := n - c.lastInt
	c.lastInt = n
	return d
}

// Int adds an operation with an integer and without a predicate. O(len(key)).
func (c *Chunk) Int(kind record.OpKind, key []byte, n int64) {
	if c.Shortening {
		key = Shortened(key)
	}
	c.ops++
	if c.Summing {
		c.digest = c.digest.Int(kind, record.HashBytes(key), n)
	}
	d := c.difference(n)
	zigzag := uint64(d<<1) ^ uint64(d>>63)
	size := (bits.Len64(zigzag) + 7) / 8
	b := c.open(flagInt|byte(kind)<<intShift|byte(size), c.key(key))
	end := len(b)
	b = b[:end+8]
	binary.LittleEndian.PutUint64(b[end:], zigzag)
	c.data = b[:end+size]
}

// Null is Int with null.
func (c *Chunk) Null(kind record.OpKind, key []byte) {
	if c.Shortening {
		key = Shortened(key)
	}
	c.ops++
	if c.Summing {
		c.digest = c.digest.Null(kind, record.HashBytes(key))
	}
	c.data = c.open(byte(kind)|byte(record.KindNull)<<valueShift, c.key(key))
}

// Op adds any operation.
func (c *Chunk) Op(op *record.Op) {
	if c.Shortening && (len(op.Key) > TextMax || len(op.Value.Text) > TextMax) {
		op = new(ShortOp(*op))
	}
	c.scratch = append(c.scratch[:0], op.Key...)
	if op.Where == "" {
		switch op.Value.Kind {
		case record.KindInt:
			c.Int(op.Kind, c.scratch, op.Value.Num)
			return
		case record.KindNull:
			c.Null(op.Kind, c.scratch)
			return
		}
	}
	c.ops++
	if c.Summing {
		c.digest = c.digest.Op(op, record.HashBytes(c.scratch))
	}
	first := byte(op.Kind) | byte(op.Value.Kind)<<valueShift
	if op.Where != "" {
		first |= flagWhere
		c.where++
	}
	b := c.open(first, c.key(c.scratch))
	switch op.Value.Kind {
	case record.KindNull:
	case record.KindInt:
		b = binary.AppendVarint(b, c.difference(op.Value.Num))
	default:
		b = appendText(b, op.Value.Text)
	}
	if op.Where != "" {
		b = appendText(b, op.Where)
	}
	c.data = b
}

// End ends the record that has begun.
func (c *Chunk) End() {
	n, at := c.ops-c.begun.ops, c.begun.data+1
	if c.Summing {
		if len(c.label) > 0 {
			c.digest = c.digest.Label(record.HashBytes(c.label))
		}
		c.sums[len(c.sums)-1].Content = c.digest.Sum(n)
	}
	if n < manyOps {
		c.data[at] = byte(n)
		return
	}
	c.data[at] = manyOps
	var long [4]byte
	binary.LittleEndian.PutUint32(long[:], uint32(n))
	c.data = slices.Insert(c.data, at+1, long[:]...)
	c.begun.id += len(long)
}

// Undo takes back the record that has begun, also when it has ended. It can be
// called once.
func (c *Chunk) Undo() {
	for _, k := range c.fresh {
		c.names.isKey[k] = false
	}
	c.data = c.data[:c.begun.data]
	c.at = c.at[:len(c.at)-1]
	c.heads = c.heads[:len(c.heads)-1]
	if n := len(c.log); n > 0 && c.log[n-1].Record == len(c.heads) {
		c.log = c.log[:n-1]
	}
	if c.Summing {
		c.sums = c.sums[:len(c.sums)-1]
	}
	c.ops, c.where, c.hasStart, c.hasInt = c.begun.ops, c.begun.where, c.begun.hasStart, c.begun.hasInt
}

// Anonymous tells whether the record that ended last has the empty ID.
func (c *Chunk) Anonymous() bool {
	n := len(c.heads)
	return n > 0 && c.heads[n-1].anonymous
}

// Timed tells whether the record that ended last has times.
func (c *Chunk) Timed() bool {
	n := len(c.at)
	return n > 0 && c.data[c.at[n-1]]&flagTimes != 0
}

// Name gives the record that ended last, which is anonymous, an ID.
func (c *Chunk) Name(id []byte) {
	c.heads[len(c.heads)-1].anonymous = len(id) == 0
	if c.Summing {
		c.sums[len(c.sums)-1].ID = record.IDHashBytes(id)
	}
	c.scratch = appendText(c.scratch[:0], id)
	c.data = slices.Replace(c.data, c.begun.id, c.begun.id+1, c.scratch...)
}

// NameByContent gives the record that ended last, which is anonymous, an ID that
// follows from all that it says (record.AppendContentID). It takes no memory.
func (c *Chunk) NameByContent() {
	last := &c.heads[len(c.heads)-1]
	last.anonymous = false
	if c.Summing {
		sum := &c.sums[len(c.sums)-1]
		c.id = record.AppendContentID(c.id[:0], c.names.name(last.session), sum.Content)
		sum.ID = record.IDHashBytes(c.id)
	}
	flags := &c.data[c.begun.data]
	*flags = *flags&^flagID | flagContent
	c.data = slices.Delete(c.data, c.begun.id, c.begun.id+1)
}

// Add adds a record. O(size of t); the record is not kept.
func (c *Chunk) Add(t *record.Transaction) {
	h := Head{Seq: t.Seq, Start: t.Start, End: t.End, XID: []byte(t.XID), LSN: t.LSN,
		HasSeq: t.HasSeq, HasTimes: t.HasTimes, Status: t.Status}
	b := record.AppendSequenceID(c.scratch[:0], t.Session, t.Seq)
	h.SeqID = t.HasSeq && string(b) == t.ID
	session, id := len(t.Session), len(b)
	b = append(append(append(append(b, t.ID...), t.DB...), t.Node...), t.Statements...)
	db, node := id+len(t.ID), id+len(t.ID)+len(t.DB)
	statements := node + len(t.Node)
	h.Session, h.ID, h.DB, h.Node, h.Statements = b[:session], b[id:db], b[db:node], b[node:statements], b[statements:]
	c.scratch = b
	c.begin(&h, !t.HasSeq && t.Seq != 0 || !t.HasTimes && (t.Start != 0 || t.End != 0))
	for i := range t.Ops {
		c.Op(&t.Ops[i])
	}
	c.End()
}

// Sums are the hashes of the records so far, if Summing is set.
func (c *Chunk) Sums() []Sum { return slices.Clone(c.sums) }

// text is the records as a string, with padding.
func (c *Chunk) text() string {
	var zeros [padding]byte
	c.data = append(c.data, zeros[:]...)
	return string(c.data)
}

// reset empties the chunk.
func (c *Chunk) reset() {
	c.data, c.at, c.heads, c.sums, c.ops = c.data[:0], c.at[:0], c.heads[:0], c.sums[:0], 0
	c.where, c.log = 0, nil
	c.base, c.hasStart, c.hasInt = base{}, false, false
	c.names.reset()
}

// Seal makes the records into a block and empties the chunk. O(size).
func (c *Chunk) Seal() *Block {
	b := &Block{data: c.text(), at: slices.Clone(c.at), base: c.base, ops: c.ops,
		log: c.log, text: string(c.names.text), ends: slices.Clone(c.names.ends)}
	c.reset()
	return b
}

// Part is Seal for records that a Builder is to join with others.
func (c *Chunk) Part() *Part {
	p := &Part{block: block{data: c.text(), base: c.base, log: c.log}, heads: slices.Clone(c.heads), ops: c.ops, where: c.where,
		text: string(c.names.text), ends: slices.Clone(c.names.ends), hashes: slices.Clone(c.names.hashes),
		isKey: slices.Clone(c.names.isKey)}
	for i, at := range c.at {
		if n := len(p.marks); n == 0 || i-p.marks[n-1].record >= markRecords || int(at)-p.marks[n-1].at >= markBytes {
			p.marks = append(p.marks, mark{i, int(at)})
		}
	}
	c.reset()
	return p
}

// Part are sealed records, to be appended to a Builder once.
type Part struct {
	block
	heads []head
	ops   int
	where int
	// Of the names:
	text   string // one after the other
	ends   []uint32
	hashes []uint32
	isKey  []bool
}
