package decode

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/cespare/xxhash/v2"
	"github.com/klauspost/compress/zstd"

	"github.com/isowatch/isowatch/ingest/record/packed"
	"github.com/isowatch/isowatch/ingest/source"
	"github.com/isowatch/isowatch/internal/wire"
)

// A batch's bytes:
//
//	0  version      1
//	1  checksum     8   xxHash64 of all that follows, little-endian
//	9  size             uvarint: of the content before compression
//	   content          a zstd frame
//
// and the content, in varints unless said otherwise:
//
//	partition, first, next - first, identity, next - resume
//	flags               a byte: caught up, read from the middle on
//	lag, bytes, lost    uvarints
//	gaps                uvarint; of each: source, partition, from, to - from, why
//	losses              uvarint; of each: db, session, transaction, offset, why
//	records             uvarint; of each: offset, difference from the one before
//	                    then of each: arrival, likewise
//	block               packed.Block.Marshal
//
// A text is its length and its bytes.
const (
	version      = 2
	checksumAt   = 1
	checksumSize = 8
	flagCaughtUp = 1
	flagMidst    = 2
)

const (
	// sizeMax bounds a batch's content, which is in memory as a whole.
	sizeMax = 1 << 30
	// ratioMax is more than zstd can compress: a block of at most 128 KiB takes 4 bytes.
	ratioMax = 1 << 15
)

// ErrDamaged is what Unmarshal's errors are.
var ErrDamaged = errors.New("the bytes of a batch of records are damaged")

func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrDamaged}, args...)...)
}

// The coders are safe for concurrent use. Concurrency is how many may work at
// once; each has tables of some 100 KiB.
var (
	compressor = must(zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(2),
		zstd.WithEncoderCRC(false), zstd.WithLowerEncoderMem(true), zstd.WithWindowSize(1<<19)))
	decompressor = must(zstd.NewReader(nil, zstd.WithDecoderConcurrency(2), zstd.WithDecoderMaxMemory(sizeMax), zstd.WithDecodeAllCapLimit(true)))
)

func must[T any](coder T, err error) T {
	if err != nil {
		panic("decode: can't happen, because the options are constants: " + err.Error())
	}
	return coder
}

// Marshal appends the batch to dst, compressed and with a checksum. Of Rejected
// it keeps only how many there are. The same batch gives the same bytes.
func (b *Batch) Marshal(dst []byte) []byte {
	buffer := contents.Get().(*[]byte)
	c := b.appendContent((*buffer)[:0])
	from := len(dst)
	dst = append(dst, version, 0, 0, 0, 0, 0, 0, 0, 0)
	dst = compressor.EncodeAll(c, binary.AppendUvarint(dst, uint64(len(c))))
	sum := dst[from+checksumAt:]
	binary.LittleEndian.PutUint64(sum, xxhash.Sum64(sum[checksumSize:]))
	if *buffer = c; cap(c) <= contentKept {
		contents.Put(buffer)
	}
	return dst
}

// contents are buffers for what is to be compressed.
var contents = sync.Pool{New: func() any { return new([]byte) }}

// contentKept bounds the buffers that are kept.
const contentKept = 4 << 20

// appendContent appends what is to be compressed.
func (b *Batch) appendContent(c []byte) []byte {
	c = binary.AppendVarint(c, int64(b.Partition))
	c = binary.AppendVarint(c, b.First)
	c = binary.AppendVarint(c, b.Next-b.First)
	c = binary.AppendVarint(c, b.Identity)
	c = binary.AppendVarint(c, b.Next-b.Resume)
	flags := byte(0)
	if b.CaughtUp {
		flags |= flagCaughtUp
	}
	if b.Midst {
		flags |= flagMidst
	}
	c = append(c, flags)
	for _, n := range []int64{b.Lag, b.Bytes, int64(b.Lost), int64(len(b.Gaps))} {
		c = binary.AppendUvarint(c, uint64(n))
	}
	for i := range b.Gaps {
		g := &b.Gaps[i]
		c = wire.AppendText(c, g.Source)
		c = binary.AppendVarint(binary.AppendVarint(binary.AppendVarint(c, int64(g.Partition)), g.From), g.To-g.From)
		c = wire.AppendText(c, g.Why)
	}
	c = binary.AppendUvarint(c, uint64(len(b.Losses)))
	for i := range b.Losses {
		l := &b.Losses[i]
		c = wire.AppendText(wire.AppendText(wire.AppendText(c, l.DB), l.Session), l.Txn)
		c = wire.AppendText(binary.AppendVarint(c, l.Offset), l.Why)
	}
	c = binary.AppendUvarint(c, uint64(len(b.Offsets)))
	c = appendDifferences(appendDifferences(c, b.Offsets), b.Arrivals)
	return b.Block.Marshal(c)
}

func appendDifferences(b []byte, list []int64) []byte {
	last := int64(0)
	for _, n := range list {
		b = binary.AppendVarint(b, n-last)
		last = n
	}
	return b
}

// Form is the form in which Marshal writes a batch, the first of its bytes. One that another
// version of the program wrote may have another, which Unmarshal does not read.
const Form = version

// Unmarshal is the inverse of Marshal, for any bytes: those that Marshal did not
// make are an ErrDamaged. The batch does not share memory with src.
func Unmarshal(src []byte) (*Batch, error) {
	const head = checksumAt + checksumSize
	if len(src) < head {
		return nil, damaged("%d bytes", len(src))
	}
	if src[0] != version {
		return nil, damaged("version %d; this program knows %d", src[0], version)
	}
	want, body := binary.LittleEndian.Uint64(src[checksumAt:]), src[head:]
	if got := xxhash.Sum64(body); got != want {
		return nil, damaged("checksum %016x, should be %016x", got, want)
	}
	return unmarshalBody(body)
}

// unmarshalBody reads what is behind the checksum.
func unmarshalBody(body []byte) (*Batch, error) {
	size, n := binary.Uvarint(body)
	frame := body[max(n, 0):]
	if n <= 0 || size > sizeMax || size > ratioMax*uint64(len(frame)) {
		return nil, damaged("a size of %d in %d bytes", size, len(body))
	}
	content, err := decompressor.DecodeAll(frame, make([]byte, 0, size))
	if err != nil {
		return nil, damaged("%v", err)
	}
	if uint64(len(content)) != size {
		return nil, damaged("%d bytes, should be %d", len(content), size)
	}
	in := wire.NewReader(content)
	b := readBatch(&in)
	if !in.OK() {
		return nil, damaged("a number or text does not fit")
	}
	if b.Block, err = packed.Unmarshal(in.Rest()); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if len(b.Offsets) != b.Block.Len() {
		return nil, damaged("%d offsets of %d records", len(b.Offsets), b.Block.Len())
	}
	b.Sums, b.DBs = b.Block.Sums(), b.Block.DBs()
	return b, nil
}

// readBatch reads all but the block.
func readBatch(r *wire.Reader) *Batch {
	b := &Batch{Partition: int(r.Int()), First: r.Int()}
	b.Next = b.First + r.Int()
	b.Identity = r.Int()
	b.Resume = b.Next - r.Int()
	flags := r.Byte()
	b.CaughtUp, b.Midst = flags&flagCaughtUp != 0, flags&flagMidst != 0
	b.Lag, b.Bytes, b.Lost = int64(r.Uint()), int64(r.Uint()), int(r.Uint())
	for n := things(r); n > 0 && r.OK(); n-- {
		g := source.Gap{Source: r.Text(), Partition: int(r.Int()), From: r.Int()}
		g.To = g.From + r.Int()
		g.Why = r.Text()
		b.Gaps = append(b.Gaps, g)
	}
	for n := things(r); n > 0 && r.OK(); n-- {
		b.Losses = append(b.Losses, Loss{DB: r.Text(), Session: r.Text(), Txn: r.Text(), Offset: r.Int(), Why: r.Text()})
	}
	records := things(r)
	b.Offsets = differences(r, records)
	b.Arrivals = differences(r, records)
	return b
}

// things is a number of what takes at least a byte each.
func things(r *wire.Reader) int { return r.Count(math.MaxInt, 1) }

// differences is the inverse of appendDifferences.
func differences(r *wire.Reader, n int) []int64 {
	if n > r.Len() {
		r.Fail()
		return nil
	}
	out := make([]int64, n)
	last := int64(0)
	for i := range out {
		last += r.Int()
		out[i] = last
	}
	return out
}
