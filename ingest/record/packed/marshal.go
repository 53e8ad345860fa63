package packed

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"runtime"

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
	if b.at, err = b.checkRecords(records, ops, names); err != nil {
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

// checkRecords makes sure that an unpacker can read the block's data, by having one read it, and returns where each
// record begins.
func (b *Block) checkRecords(records, ops, names int) (at []uint32, err error) {
	defer func() {
		switch e := recover().(type) {
		case nil:
		case runtime.Error: // of who reads beyond the data: what is well-formed is read without asking each time
			at, err = nil, damaged("record %d can't be read", len(at)-1)
		default:
			panic(e)
		}
	}()
	u := unpacker{data: b.data, base: b.base}
	total, size := 0, len(b.data)-padding
	for u.p < size {
		if len(at) == records {
			return nil, damaged("more than %d records", records)
		}
		at = append(at, uint32(u.p))
		const least = 3 // bytes of an operation
		u.head()
		if h := &u.h; record.Status(h.flags&flagStatus) > record.Unknown || h.flags&flagContent != 0 && h.flags&flagID != 0 ||
			max(h.db, h.session, max(h.label, 1)-1) >= uint64(names) || h.ops > (size-u.p)/least {
			return nil, damaged("record %d can't be read", len(at)-1)
		}
		u.operations(u.h.ops)
		for i, k := range u.keys {
			if op := &u.ops[i]; k >= uint32(names) || op.Kind > record.PredicateWrite || op.Value.Kind > record.KindObject {
				return nil, damaged("operation %d of record %d can't be read", i, len(at)-1)
			}
		}
		total += u.h.ops
	}
	if u.p != size || len(at) != records || total != ops {
		return nil, damaged("%d records of %d operations, not %d of %d", len(at), total, records, ops)
	}
	return at, nil
}
