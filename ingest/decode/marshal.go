package decode

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/isowatch/isowatch/ingest/record/packed"
	"github.com/isowatch/isowatch/ingest/source"
	"github.com/isowatch/isowatch/internal/wire"
)

// A batch's bytes:
//
//	size               uvarint: of the content before compression
//	content            a zstd frame
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
// A text is its length and its bytes. Who keeps it has a checksum.

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
	decompressor = must(zstd.NewReader(nil, zstd.WithDecoderConcurrency(2), zstd.WithDecoderMaxMemory(sizeMax),
		zstd.WithDecodeAllCapLimit(true)))
)

func must[T any](coder T, err error) T {
	if err != nil {
		panic("decode: can't happen, because the options are constants: " + err.Error())
	}
	return coder
}

// Marshal appends the batch to dst, compressed. Of Rejected
// it keeps only how many there are. The same batch gives the same bytes.
func (b *Batch) Marshal(dst []byte) []byte {
	buffer := contents.Get().(*[]byte)
	c := b.appendContent((*buffer)[:0])
	dst = compressor.EncodeAll(c, binary.AppendUvarint(dst, uint64(len(c))))
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
func (b *Batch) appendContent(dst []byte) []byte {
	c := wire.Coder{B: dst}
	b.code(&c)
	return b.Block.Marshal(c.B)
}

// code lists all but the block.
func (b *Batch) code(c *wire.Coder) {
	partition, length, ahead := int64(b.Partition), b.Next-b.First, b.Next-b.Resume
	c.Ints(&partition, &b.First, &length, &b.Identity, &ahead)
	c.Flags(&b.CaughtUp, &b.Midst)
	lag, size := uint64(b.Lag), uint64(b.Bytes)
	c.Uints(&lag, &size)
	wire.Number(c, &b.Lost)
	wire.List(c, &b.Gaps, math.MaxInt, 5, func(g *source.Gap) {
		of, length := int64(g.Partition), g.To-g.From
		c.Texts(&g.Source)
		c.Ints(&of, &g.From, &length)
		c.Texts(&g.Why)
		if c.Reading {
			g.Partition, g.To = int(of), g.From+length
		}
	})
	wire.List(c, &b.Losses, math.MaxInt, 5, func(l *Loss) {
		c.Texts(&l.DB, &l.Session, &l.Txn)
		c.Ints(&l.Offset)
		c.Texts(&l.Why)
	})
	records := len(b.Offsets)
	wire.Number(c, &records)
	differences(c, &b.Offsets, records)
	differences(c, &b.Arrivals, records)
	if c.Reading {
		b.Partition, b.Next, b.Lag, b.Bytes = int(partition), b.First+length, int64(lag), int64(size)
		b.Resume = b.Next - ahead
	}
}

// differences are so many numbers, each as its difference from the one before.
func differences(c *wire.Coder, list *[]int64, n int) {
	if c.Reading {
		if n > c.Len() {
			c.Fail()
			return
		}
		*list = make([]int64, n)
	}
	last := int64(0)
	for i := range *list {
		d := (*list)[i] - last
		c.Ints(&d)
		last += d
		if c.Reading {
			(*list)[i] = last
		}
	}
}

// Unmarshal is the inverse of Marshal, for any bytes: those that Marshal did not
// make are an ErrDamaged. The batch does not share memory with src.
func Unmarshal(src []byte) (*Batch, error) {
	size, n := binary.Uvarint(src)
	frame := src[max(n, 0):]
	if n <= 0 || size > sizeMax || size > ratioMax*uint64(len(frame)) {
		return nil, damaged("a size of %d in %d bytes", size, len(src))
	}
	content, err := decompressor.DecodeAll(frame, make([]byte, 0, size))
	if err != nil {
		return nil, damaged("%v", err)
	}
	if uint64(len(content)) != size {
		return nil, damaged("%d bytes, should be %d", len(content), size)
	}
	b, in := &Batch{}, wire.Reads(content)
	b.code(&in)
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
