package packed

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/isowatch/isowatch/ingest/record"
)

// A block's bytes:
//
//	records, operations, names, bytes of names, bytes of records   uvarints
//	base: start, integer                                           varints
//	length of each name                                            uvarints
//	names
//	records, as in memory, without padding
//
// Where each record begins follows from the records.

// ErrDamaged is what Unmarshal's errors are.
var ErrDamaged = errors.New("the bytes of packed records are damaged")

func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrDamaged}, args...)...)
}

// Marshal appends the block's bytes to dst. They are neither compressed nor have
// they a checksum.
func (b *Block) Marshal(dst []byte) []byte {
	size := len(b.data) - padding
	for _, n := range []int{len(b.at), b.ops, len(b.ends), len(b.text), size} {
		dst = binary.AppendUvarint(dst, uint64(n))
	}
	dst = binary.AppendVarint(binary.AppendVarint(dst, b.base.start), b.base.num)
	from := uint32(0)
	for _, end := range b.ends {
		dst = binary.AppendUvarint(dst, uint64(end-from))
		from = end
	}
	return append(append(dst, b.text...), b.data[:size]...)
}

// Unmarshal is the inverse of Marshal, for any bytes: those that no block has are
// an error, an ErrDamaged. The block does not share memory with src. It takes a
// small multiple of len(src) in memory, and time O(len(src)).
func Unmarshal(src []byte) (*Block, error) {
	in := checker{data: src}
	records, ops, names := in.count("records"), in.count("operations"), in.count("names")
	text, data := in.count("bytes of names"), in.count("bytes of records")
	b := &Block{ops: ops, base: base{in.varint(), in.varint()}}
	if in.err != nil {
		return nil, in.err
	}
	if text > math.MaxUint32 || data > math.MaxUint32-padding {
		return nil, damaged("%d bytes of names and %d of records", text, data)
	}
	b.ends = make([]uint32, names)
	end := 0
	for i := range b.ends {
		n := in.uvarint()
		if n > uint64(text-end) {
			return nil, damaged("names of more than %d bytes", text)
		}
		end += int(n)
		b.ends[i] = uint32(end)
	}
	if in.err != nil {
		return nil, in.err
	}
	if end != text || len(in.data)-in.p != text+data {
		return nil, damaged("%d bytes of names and %d of records in %d bytes", text, data, len(in.data)-in.p)
	}
	b.text = string(in.data[in.p : in.p+text])
	in.data = in.data[in.p+text:]
	padded := make([]byte, data+padding)
	copy(padded, in.data)
	b.data = string(padded)
	var err error
	b.at, err = checkRecords(in.data, records, ops, names)
	if err != nil {
		return nil, err
	}
	return b, nil
}

// checkRecords makes sure that an unpacker can read data, and returns where each
// record begins.
func checkRecords(data []byte, records, ops, names int) ([]uint32, error) {
	c := checker{data: data, names: uint64(names)}
	at := make([]uint32, 0, records)
	total := 0
	for c.p < len(data) {
		if len(at) == records {
			return nil, damaged("more than %d records", records)
		}
		at = append(at, uint32(c.p))
		total += c.record()
		if c.err != nil {
			return nil, fmt.Errorf("record %d: %w", len(at)-1, c.err)
		}
	}
	if len(at) != records || total != ops {
		return nil, damaged("%d records of %d operations, not %d of %d", len(at), total, records, ops)
	}
	return at, nil
}

// checker reads bytes that may be anything. The first error stays; reading on
// gives zeros.
type checker struct {
	data  []byte
	p     int
	names uint64 // how many there are
	err   error
}

func (c *checker) fail(format string, args ...any) {
	if c.err == nil {
		c.err = damaged(format, args...)
	}
	c.p = len(c.data)
}

// left is how many bytes are left.
func (c *checker) left() int { return len(c.data) - c.p }

// bytes are the next n, or as many zeros as a number has.
func (c *checker) bytes(n uint64) []byte {
	if n > uint64(c.left()) {
		c.fail("they end too early")
		return make([]byte, 4)
	}
	c.p += int(n)
	return c.data[c.p-int(n) : c.p]
}

func (c *checker) byte() byte { return c.bytes(1)[0] }

func (c *checker) skip(n uint64) { c.bytes(n) }

func (c *checker) uvarint() uint64 {
	v, n := binary.Uvarint(c.data[c.p:])
	if n <= 0 {
		c.fail("no number at byte %d", c.p)
		return 0
	}
	c.p += n
	return v
}

func (c *checker) varint() int64 { return unzigzag(c.uvarint()) }

// count is a number of things, of which each takes a byte at least.
func (c *checker) count(what string) int {
	n := c.uvarint()
	if n > uint64(len(c.data)) {
		c.fail("%d %s in %d bytes", n, what, len(c.data))
		return 0
	}
	return int(n)
}

func (c *checker) name(n uint64) {
	if n >= c.names {
		c.fail("name %d of %d", n, c.names)
	}
}

// record passes over a record and returns how many operations it has.
func (c *checker) record() int {
	flags, n := c.byte(), uint64(c.byte())
	if n == manyOps {
		n = uint64(binary.LittleEndian.Uint32(c.bytes(4)))
	}
	if record.Status(flags&flagStatus) > record.Unknown {
		c.fail("status %d", flags&flagStatus)
	}
	if flags&flagContent != 0 && flags&flagID != 0 {
		c.fail("two IDs")
	}
	db := uint64(0)
	if flags&flagNames != 0 {
		db = c.uvarint()
		if node := c.uvarint(); node != 0 {
			c.name(node - 1)
		}
	}
	c.name(db)
	c.name(c.uvarint())
	if flags&(flagSeq|flagIdle) != 0 {
		c.uvarint()
	}
	if flags&flagID != 0 {
		c.skip(c.uvarint())
	}
	if flags&(flagTimes|flagIdle) != 0 {
		c.uvarint()
		c.uvarint()
	}
	const least = 3 // bytes of an operation
	if n > uint64(c.left()/least) {
		c.fail("%d operations in %d bytes", n, c.left())
		return 0
	}
	for range n {
		c.operation()
	}
	return int(n)
}

// operation passes over an operation.
func (c *checker) operation() {
	first := c.byte()
	k := uint64(binary.LittleEndian.Uint16(c.bytes(2)))
	if k == wide {
		k = uint64(binary.LittleEndian.Uint32(c.bytes(4)))
	}
	c.name(k)
	if first&flagInt != 0 {
		size := uint64(first & (1<<intShift - 1))
		if kind := record.OpKind(first >> intShift & 7); kind > record.PredicateWrite || size > 8 {
			c.fail("an operation of kind %d with an integer of %d bytes", kind, size)
		}
		c.skip(size)
		return
	}
	kind, value := record.OpKind(first&7), record.ValueKind(first>>valueShift&7)
	if kind > record.PredicateWrite || value > record.KindObject {
		c.fail("an operation of kind %d with a value of kind %d", kind, value)
	}
	switch value {
	case record.KindNull:
	case record.KindInt:
		c.uvarint()
	default:
		c.skip(c.uvarint())
	}
	if first&flagWhere != 0 {
		c.skip(c.uvarint())
	}
}
