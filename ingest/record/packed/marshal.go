package packed

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/wire"
)

// A block's bytes:
//
//	records, operations, names, bytes of names, bytes of records   uvarints
//	base: start, integer                                           varints
//	length of each name                                            uvarints
//	names
//	records, as in memory, without padding
//	of each of Log: how many without are before it, XID, LSN       uvarint, text, varint
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
	dst = append(append(dst, b.text...), b.data[:size]...)
	next := 0
	for _, x := range b.log {
		dst = appendText(binary.AppendUvarint(dst, uint64(x.Record-next)), x.XID)
		dst = binary.AppendVarint(dst, x.LSN)
		next = x.Record + 1
	}
	return dst
}

// Unmarshal is the inverse of Marshal, for any bytes: those that no block has are
// an error, an ErrDamaged. The block does not share memory with src. It takes a
// small multiple of len(src) in memory, and time O(len(src)).
func Unmarshal(src []byte) (*Block, error) {
	in := wire.NewReader(src)
	count := func() int { return in.Count(len(src), 1) }
	records, ops, names, text, data := count(), count(), count(), count(), count()
	b := &Block{ops: ops, base: base{in.Int(), in.Int()}}
	if in.Len() < names || text > math.MaxUint32 || data > math.MaxUint32-padding {
		return nil, damaged("%d names of %d bytes and %d bytes of records in %d bytes", names, text, data, len(src))
	}
	b.ends = make([]uint32, names)
	end := 0
	for i := range b.ends {
		end += in.Count(text-end, 1)
		b.ends[i] = uint32(end)
	}
	if !in.OK() || end != text || in.Len() < text+data {
		return nil, damaged("%d bytes of names and %d of records in %d bytes", text, data, in.Len())
	}
	b.text = string(in.Take(uint64(text)))
	padded := make([]byte, data+padding)
	copy(padded, in.Take(uint64(data)))
	b.data = string(padded)
	var err error
	if b.at, err = checkRecords(padded[:data], records, ops, names); err != nil {
		return nil, err
	}
	for next := uint64(0); in.Len() > 0; next++ {
		skipped := in.Uint()
		x := Logged{XID: string(in.Bytes()), LSN: in.Int()}
		if !in.OK() || skipped >= uint64(records)-next {
			return nil, damaged("an LSN behind record %d of %d", next, records)
		}
		next += skipped
		x.Record = int(next)
		b.log = append(b.log, x)
	}
	return b, nil
}

// checkRecords makes sure that an unpacker can read data, and returns where each
// record begins.
func checkRecords(data []byte, records, ops, names int) ([]uint32, error) {
	c := checker{Reader: wire.NewReader(data), names: uint64(names)}
	at := make([]uint32, 0, records)
	total := 0
	for c.Len() > 0 {
		if len(at) == records {
			return nil, damaged("more than %d records", records)
		}
		at = append(at, uint32(len(data)-c.Len()))
		if total += c.record(); !c.OK() {
			return nil, damaged("record %d can't be read", len(at)-1)
		}
	}
	if len(at) != records || total != ops {
		return nil, damaged("%d records of %d operations, not %d of %d", len(at), total, records, ops)
	}
	return at, nil
}

// checker reads records that may be anything.
type checker struct {
	wire.Reader
	names uint64 // how many there are
}

func (c *checker) name(n uint64) {
	if n >= c.names {
		c.Fail()
	}
}

// short and long are numbers of two bytes and of four, the least first.
func (c *checker) short() uint64 {
	if b := c.Take(2); b != nil {
		return uint64(binary.LittleEndian.Uint16(b))
	}
	return 0
}

func (c *checker) long() uint64 { return c.short() | c.short()<<16 }

// record passes over a record and returns how many operations it has.
func (c *checker) record() int {
	flags, n := c.Byte(), uint64(c.Byte())
	if n == manyOps {
		n = c.long()
	}
	if record.Status(flags&flagStatus) > record.Unknown || flags&flagContent != 0 && flags&flagID != 0 {
		c.Fail()
	}
	db := uint64(0)
	if flags&flagNames != 0 {
		db = c.Uint()
		if node := c.Uint(); node != 0 {
			c.name(node - 1)
		}
	}
	c.name(db)
	c.name(c.Uint())
	if flags&(flagSeq|flagIdle) != 0 {
		c.Uint()
	}
	if flags&flagID != 0 {
		c.Bytes()
	}
	if flags&(flagTimes|flagIdle) != 0 {
		c.Uint()
		c.Uint()
	}
	const least = 3 // bytes of an operation
	if n > uint64(c.Len()/least) {
		c.Fail()
		return 0
	}
	for range n {
		c.operation()
	}
	return int(n)
}

// operation passes over an operation.
func (c *checker) operation() {
	first := c.Byte()
	k := c.short()
	if k == wide {
		k = c.long()
	}
	c.name(k)
	if first&flagInt != 0 {
		size := uint64(first & (1<<intShift - 1))
		if kind := record.OpKind(first >> intShift & 7); kind > record.PredicateWrite || size > 8 {
			c.Fail()
		}
		c.Take(size)
		return
	}
	kind, value := record.OpKind(first&7), record.ValueKind(first>>valueShift&7)
	if kind > record.PredicateWrite || value > record.KindObject {
		c.Fail()
	}
	switch value {
	case record.KindNull:
	case record.KindInt:
		c.Uint()
	default:
		c.Bytes()
	}
	if first&flagWhere != 0 {
		c.Bytes()
	}
}
