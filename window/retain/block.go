package retain

import (
	"encoding/binary"
	"errors"
	"math"
	"strconv"

	"github.com/isowatch/isowatch/ingest/record"
)

// The flags of a record. The low two bits are the status.
const (
	flagSeq   = 1 << 2
	flagTimes = 1 << 3
	flagID    = 1 << 4 // the ID is spelled out
	flagIdle  = 1 << 5 // Seq, Start or End are spelled out though not meaningful
	flagDB    = 1 << 6 // a DB other than the block's
)

// dictionary numbers the prefixes of strings, from 1 in the order of their first
// use in the block. 0 announces a new one.
type dictionary struct {
	number map[string]uint64
}

// encoder builds a block.
type encoder struct {
	buf   []byte
	n     int // records
	words dictionary
	last  int64 // the previous integer value
	start int64 // the previous start
	seqs  map[string]int64
	db    string
}

func (e *encoder) reset() {
	clear(e.words.number)
	clear(e.seqs)
	*e = encoder{buf: e.buf[:0], words: dictionary{number: e.words.number}, seqs: e.seqs}
}

func (e *encoder) uint(n uint64) { e.buf = binary.AppendUvarint(e.buf, n) }
func (e *encoder) int(n int64)   { e.buf = binary.AppendVarint(e.buf, n) }

// prefixMax bounds the prefixes that numbers are added to, so that a small damaged
// block can't blow up when it is read.
const prefixMax = 255

// split cuts s into a prefix and the decimal number that it ends with: the
// number plus 1, or 0 if there is none. prefix + number in decimal is s.
func split(s string) (prefix string, number uint64) {
	i := len(s)
	for i > 0 && len(s)-i < 18 && s[i-1] >= '0' && s[i-1] <= '9' {
		i--
	}
	for i < len(s)-1 && s[i] == '0' {
		i++ // leading zeros belong to the prefix
	}
	if i == len(s) || i > prefixMax {
		return s, 0
	}
	for _, c := range []byte(s[i:]) {
		number = 10*number + uint64(c-'0')
	}
	return s[:i], number + 1
}

// string puts a string that may occur again, or differ from others in a number.
func (e *encoder) string(s string) {
	prefix, number := split(s)
	if n, ok := e.words.number[prefix]; ok {
		e.uint(n)
	} else {
		if e.words.number == nil {
			e.words.number = make(map[string]uint64)
		}
		e.words.number[prefix] = uint64(len(e.words.number)) + 1
		e.uint(0)
		e.uint(uint64(len(prefix)))
		e.buf = append(e.buf, prefix...)
	}
	e.uint(number)
}

// sequenceID is the ID that most recorders give.
func sequenceID(b []byte, t *record.Transaction) []byte {
	b = append(append(b, t.Session...), '#')
	return strconv.AppendInt(b, t.Seq, 10)
}

// add puts one record. O(size of t).
func (e *encoder) add(t *record.Transaction) {
	if e.n == 0 {
		e.db = t.DB
		e.string(t.DB)
		if e.seqs == nil {
			e.seqs = make(map[string]int64)
		}
	}
	e.n++
	flags := uint64(t.Status) & 3
	if t.HasSeq {
		flags |= flagSeq
	}
	if t.HasTimes {
		flags |= flagTimes
	}
	var space [64]byte
	if string(sequenceID(space[:0], t)) != t.ID {
		flags |= flagID
	}
	if (!t.HasSeq && t.Seq != 0) || (!t.HasTimes && (t.Start != 0 || t.End != 0)) {
		flags |= flagIdle
	}
	if t.DB != e.db {
		flags |= flagDB
	}
	e.uint(flags)
	if flags&flagDB != 0 {
		e.string(t.DB)
	}
	e.string(t.Session)
	if flags&(flagSeq|flagIdle) != 0 {
		e.int(t.Seq - e.seqs[t.Session])
		e.seqs[t.Session] = t.Seq
	}
	if flags&flagID != 0 {
		e.string(t.ID)
	}
	if flags&(flagTimes|flagIdle) != 0 {
		e.int(t.Start - e.start)
		e.start = t.Start
		e.int(t.End - t.Start)
	}
	e.uint(uint64(len(t.Ops)))
	for i := range t.Ops {
		e.op(&t.Ops[i])
	}
}

func (e *encoder) op(op *record.Op) {
	where := uint64(0)
	if op.Where != "" {
		where = 1
	}
	e.uint(where | uint64(op.Value.Kind)<<1 | uint64(op.Kind)<<4)
	e.string(op.Key)
	switch op.Value.Kind {
	case record.KindNull:
	case record.KindInt:
		e.int(op.Value.Num - e.last)
		e.last = op.Value.Num
	default:
		e.string(op.Value.Text)
	}
	if where != 0 {
		e.string(op.Where)
	}
}

// errDamaged is all that can be said of a block that is not what was written.
var errDamaged = errors.New("damaged block of records")

// decoder reads a block. After the first error it stays at the end.
type decoder struct {
	buf   []byte
	bad   bool
	words []string
	last  int64
	start int64
	seqs  map[string]int64
}

func (d *decoder) fail() {
	d.bad, d.buf = true, nil
}

func (d *decoder) uint() uint64 {
	n, size := binary.Uvarint(d.buf)
	if size <= 0 {
		d.fail()
		return 0
	}
	d.buf = d.buf[size:]
	return n
}

func (d *decoder) int() int64 {
	n, size := binary.Varint(d.buf)
	if size <= 0 {
		d.fail()
		return 0
	}
	d.buf = d.buf[size:]
	return n
}

func (d *decoder) string() string {
	n := d.uint()
	var prefix string
	switch {
	case n == 0:
		size := d.uint()
		if size > uint64(len(d.buf)) {
			d.fail()
			return ""
		}
		prefix = string(d.buf[:size])
		d.buf = d.buf[size:]
		d.words = append(d.words, prefix)
	case n <= uint64(len(d.words)):
		prefix = d.words[n-1]
	default:
		d.fail()
		return ""
	}
	number := d.uint()
	if number == 0 {
		return prefix
	}
	if len(prefix) > prefixMax {
		d.fail()
		return ""
	}
	var space [64]byte
	return string(strconv.AppendUint(append(space[:0], prefix...), number-1, 10))
}

// decode reads a block's records. db, if not empty, stands for the block's own
// name of the history, so that records share it.
func decode(block []byte, db string) ([]record.Transaction, error) {
	d := decoder{buf: block, seqs: make(map[string]int64)}
	if name := d.string(); name != db {
		db = name
	}
	var out []record.Transaction
	for len(d.buf) > 0 {
		out = append(out, d.transaction(db))
	}
	if d.bad {
		return nil, errDamaged
	}
	return out, nil
}

func (d *decoder) transaction(db string) record.Transaction {
	flags := d.uint()
	t := record.Transaction{DB: db, Status: record.Status(flags & 3), HasSeq: flags&flagSeq != 0, HasTimes: flags&flagTimes != 0}
	if flags&flagDB != 0 {
		t.DB = d.string()
	}
	t.Session = d.string()
	if flags&(flagSeq|flagIdle) != 0 {
		t.Seq = d.seqs[t.Session] + d.int()
		d.seqs[t.Session] = t.Seq
	}
	if flags&flagID != 0 {
		t.ID = d.string()
	} else {
		t.ID = string(sequenceID(nil, &t))
	}
	if flags&(flagTimes|flagIdle) != 0 {
		t.Start = d.start + d.int()
		d.start = t.Start
		t.End = t.Start + d.int()
	}
	n := d.uint()
	// An operation takes three bytes at least.
	if n > uint64(len(d.buf)/3) || t.Status > record.Unknown || flags > math.MaxUint8 {
		d.fail()
		return t
	}
	if n > 0 {
		t.Ops = make([]record.Op, n)
	}
	for i := range t.Ops {
		d.op(&t.Ops[i])
	}
	return t
}

func (d *decoder) op(op *record.Op) {
	head := d.uint()
	op.Kind = record.OpKind(head >> 4)
	op.Key = d.string()
	switch op.Value.Kind = record.ValueKind(head >> 1 & 7); op.Value.Kind {
	case record.KindNull:
	case record.KindInt:
		op.Value.Num = d.last + d.int()
		d.last = op.Value.Num
	default:
		op.Value.Text = d.string()
	}
	if head&1 != 0 {
		op.Where = d.string()
	}
	if head>>4 > uint64(record.PredicateWrite) || op.Value.Kind > record.KindObject {
		d.fail()
	}
}
