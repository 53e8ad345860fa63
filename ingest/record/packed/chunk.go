package packed

import (
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
	"strconv"

	"github.com/isowatch/isowatch/ingest/record"
)

// The flags of a record. The low two bits are the status.
const (
	flagSeq   = 1 << 2
	flagTimes = 1 << 3
	flagID    = 1 << 4 // the ID is spelled out
	flagIdle  = 1 << 5 // Seq, Start and End are spelled out though not meaningful
	flagDB    = 1 << 6 // a DB other than the block's
)

// The byte that opens an operation is its kind, the kind of its value, and whether
// it has a predicate:
//
//	0 w vvv kkk     w: a predicate follows the value
//	1 kkk nnnn      an integer of n bytes, without predicate
//
// opsEnd is none such.
const (
	valueShift = 3
	flagWhere  = 1 << 6
	flagInt    = 1 << 7
	intShift   = 4
	opsEnd     = 1<<7 - 1
)

// wide opens a name's number that does not fit two bytes.
const wide = math.MaxUint16

// padding is how many zeros follow a block's records: integers are read 8 bytes at
// a time whatever their size.
const padding = 8

// A mark stands before a record when there are markRecords since the last one, or
// they have markBytes: so At has to pass over few, and never over large ones.
const (
	markRecords = 32
	markBytes   = 1 << 10
)

// mark is where At can begin to read.
type mark struct {
	record int // within the block
	at     int // in the data
}

// Chunk packs consecutive records of one history, or of several. The zero Chunk
// is empty and ready. It is for one goroutine.
type Chunk struct {
	data  []byte
	marks []mark
	heads []head
	names dictionary
	ops   int

	lastStart, lastInt int64 // what differences refer to

	// How things stood when the record at hand began, for Undo.
	begun struct {
		data, marks, ops   int
		lastStart, lastInt int64
	}
	fresh   []uint32 // the names that it was the first to use as keys
	scratch []byte
}

// head is what joining needs to know of a record.
type head struct {
	session uint32 // within the block
	seq     int64
	hasSeq  bool
	// regular: it has a seq, its ID is SESSION#SEQ, and its DB is the block's.
	regular bool
}

// Head is a record without its operations, as Begin takes it.
type Head struct {
	DB, Session []byte
	Seq         int64 // if HasSeq
	Start, End  int64 // if HasTimes
	ID          []byte
	HasSeq      bool
	HasTimes    bool
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
	c.begun.data, c.begun.marks, c.begun.ops = len(c.data), len(c.marks), c.ops
	c.begun.lastInt, c.begun.lastStart = c.lastInt, c.lastStart
	c.fresh = c.fresh[:0]
	if n := len(c.marks); n == 0 || len(c.heads)-c.marks[n-1].record >= markRecords || len(c.data)-c.marks[n-1].at >= markBytes {
		c.marks = append(c.marks, mark{len(c.heads), len(c.data)})
		c.lastInt, c.lastStart = 0, 0
	}
	flags := byte(h.Status) & 3
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
	if db != 0 { // the block's is the first name of all
		flags |= flagDB
	}
	session := c.names.number(h.Session)
	b := append(c.data, flags)
	if flags&flagDB != 0 {
		b = binary.AppendUvarint(b, uint64(db))
	}
	b = binary.AppendUvarint(b, uint64(session))
	if flags&(flagSeq|flagIdle) != 0 {
		b = binary.AppendVarint(b, h.Seq)
	}
	if flags&flagID != 0 {
		b = appendText(b, h.ID)
	}
	if flags&(flagTimes|flagIdle) != 0 {
		b = binary.AppendVarint(b, h.Start-c.lastStart)
		b = binary.AppendVarint(b, h.End-h.Start)
		c.lastStart = h.Start
	}
	c.data = b
	c.heads = append(c.heads, head{session: session, seq: h.Seq, hasSeq: h.HasSeq, regular: h.HasSeq && h.SeqID && db == 0})
}

func appendText[T string | []byte](b []byte, text T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

// key is the number of a name that is used as a key.
func (c *Chunk) key(name []byte) uint32 {
	k := c.names.number(name)
	if e := &c.names.entries[k]; !e.isKey {
		e.isKey = true
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

// Int adds an operation with an integer and without a predicate. O(len(key)).
func (c *Chunk) Int(kind record.OpKind, key []byte, n int64) {
	c.ops++
	d := n - c.lastInt
	c.lastInt = n
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
	c.ops++
	c.data = c.open(byte(kind)|byte(record.KindNull)<<valueShift, c.key(key))
}

// Op adds any operation.
func (c *Chunk) Op(op *record.Op) {
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
	first := byte(op.Kind) | byte(op.Value.Kind)<<valueShift
	if op.Where != "" {
		first |= flagWhere
	}
	b := c.open(first, c.key(c.scratch))
	switch op.Value.Kind {
	case record.KindNull:
	case record.KindInt:
		b = binary.AppendVarint(b, op.Value.Num-c.lastInt)
		c.lastInt = op.Value.Num
	default:
		b = appendText(b, op.Value.Text)
	}
	if op.Where != "" {
		b = appendText(b, op.Where)
	}
	c.data = b
}

// End ends the record that has begun.
func (c *Chunk) End() { c.data = append(c.data, opsEnd) }

// Undo takes back the record that has begun.
func (c *Chunk) Undo() {
	for _, k := range c.fresh {
		c.names.entries[k].isKey = false
	}
	c.data = c.data[:c.begun.data]
	c.marks = c.marks[:c.begun.marks]
	c.heads = c.heads[:len(c.heads)-1]
	c.ops, c.lastInt, c.lastStart = c.begun.ops, c.begun.lastInt, c.begun.lastStart
}

// Add adds a record. O(size of t); the record is not kept.
func (c *Chunk) Add(t *record.Transaction) {
	h := Head{Seq: t.Seq, Start: t.Start, End: t.End, HasSeq: t.HasSeq, HasTimes: t.HasTimes, Status: t.Status}
	b := sequenceID(c.scratch[:0], t.Session, t.Seq)
	h.SeqID = t.HasSeq && string(b) == t.ID
	session, id := len(t.Session), len(b)
	b = append(append(b, t.ID...), t.DB...)
	h.Session, h.ID, h.DB = b[:session], b[id:id+len(t.ID)], b[id+len(t.ID):]
	c.scratch = b
	c.begin(&h, !t.HasSeq && t.Seq != 0 || !t.HasTimes && (t.Start != 0 || t.End != 0))
	for i := range t.Ops {
		c.Op(&t.Ops[i])
	}
	c.End()
}

// sequenceID is the ID that most recorders give.
func sequenceID(b []byte, session string, seq int64) []byte {
	return strconv.AppendInt(append(append(b, session...), '#'), seq, 10)
}

// Seal makes the records into a block and empties the chunk.
func (c *Chunk) Seal() *Block {
	c.data = append(c.data, make([]byte, padding)...)
	b := &Block{
		block: block{data: string(c.data), marks: slices.Clone(c.marks)},
		heads: c.heads, ops: c.ops, names: c.names.entries, text: string(c.names.text),
	}
	c.data, c.marks, c.ops = c.data[:0], c.marks[:0], 0
	c.heads = make([]head, 0, len(b.heads)+len(b.heads)/8)
	c.names.reset()
	return b
}

// Block are sealed records, to be appended to a Builder once.
type Block struct {
	block
	heads []head
	ops   int
	names []entry
	text  string // of the names, one after the other
}

// Len is how many records there are.
func (b *Block) Len() int { return len(b.heads) }
