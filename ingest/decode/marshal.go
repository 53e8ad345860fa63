package decode

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"github.com/cespare/xxhash/v2"
	"github.com/klauspost/compress/zstd"

	"github.com/isowatch/isowatch/ingest/record/packed"
	"github.com/isowatch/isowatch/ingest/source"
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
//	flags               a byte: caught up
//	lag, bytes, lost    uvarints
//	gaps                uvarint; of each: source, partition, from, to - from, why
//	losses              uvarint; of each: db, session, transaction, offset, why
//	records             uvarint; of each: offset, difference from the one before
//	                    then of each: arrival, likewise
//	block               packed.Block.Marshal
//
// A text is its length and its bytes.
const (
	version      = 1
	checksumAt   = 1
	checksumSize = 8
	flagCaughtUp = 1
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
	c = append(c, flags)
	for _, n := range []int64{b.Lag, b.Bytes, int64(b.Lost), int64(len(b.Gaps))} {
		c = binary.AppendUvarint(c, uint64(n))
	}
	for i := range b.Gaps {
		g := &b.Gaps[i]
		c = appendText(c, g.Source)
		c = binary.AppendVarint(binary.AppendVarint(binary.AppendVarint(c, int64(g.Partition)), g.From), g.To-g.From)
		c = appendText(c, g.Why)
	}
	c = binary.AppendUvarint(c, uint64(len(b.Losses)))
	for i := range b.Losses {
		l := &b.Losses[i]
		c = appendText(appendText(appendText(c, l.DB), l.Session), l.Txn)
		c = appendText(binary.AppendVarint(c, l.Offset), l.Why)
	}
	c = binary.AppendUvarint(c, uint64(len(b.Offsets)))
	c = appendDifferences(appendDifferences(c, b.Offsets), b.Arrivals)
	return b.Block.Marshal(c)
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendDifferences(b []byte, list []int64) []byte {
	last := int64(0)
	for _, n := range list {
		b = binary.AppendVarint(b, n-last)
		last = n
	}
	return b
}

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
	in := reader{b: content}
	b := in.batch()
	if in.bad {
		return nil, damaged("a number or text does not fit")
	}
	if b.Block, err = packed.Unmarshal(in.b); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if len(b.Offsets) != b.Block.Len() {
		return nil, damaged("%d offsets of %d records", len(b.Offsets), b.Block.Len())
	}
	b.Sums, b.DBs = b.Block.Sums(), b.Block.DBs()
	return b, nil
}

// reader takes fields off the front of b. After a bad one it gives zeros.
type reader struct {
	b   []byte
	bad bool
}

// batch reads all but the block.
func (r *reader) batch() *Batch {
	b := &Batch{Partition: int(r.varint()), First: r.varint()}
	b.Next = b.First + r.varint()
	b.Identity = r.varint()
	b.Resume = b.Next - r.varint()
	flags := r.text(1)
	b.CaughtUp = flags == string(rune(flagCaughtUp))
	b.Lag, b.Bytes, b.Lost = int64(r.uvarint()), int64(r.uvarint()), int(r.uvarint())
	for n := r.count(); n > 0 && !r.bad; n-- {
		g := source.Gap{Source: r.text(r.count()), Partition: int(r.varint()), From: r.varint()}
		g.To = g.From + r.varint()
		g.Why = r.text(r.count())
		b.Gaps = append(b.Gaps, g)
	}
	for n := r.count(); n > 0 && !r.bad; n-- {
		b.Losses = append(b.Losses, Loss{DB: r.text(r.count()), Session: r.text(r.count()), Txn: r.text(r.count()), Offset: r.varint(), Why: r.text(r.count())})
	}
	records := r.count()
	b.Offsets = r.differences(records)
	b.Arrivals = r.differences(records)
	return b
}

func (r *reader) fail() {
	r.bad, r.b = true, nil
}

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) varint() int64 {
	v, n := binary.Varint(r.b)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.b = r.b[n:]
	return v
}

// count is a number of things that take at least a byte each.
func (r *reader) count() int {
	n := r.uvarint()
	if n > uint64(len(r.b)) {
		r.fail()
		return 0
	}
	return int(n)
}

func (r *reader) text(n int) string {
	if n > len(r.b) {
		r.fail()
		return ""
	}
	s := string(r.b[:n])
	r.b = r.b[n:]
	return s
}

func (r *reader) differences(n int) []int64 {
	if n > len(r.b) {
		r.fail()
		return nil
	}
	out := make([]int64, n)
	last := int64(0)
	for i := range out {
		last += r.varint()
		out[i] = last
	}
	return out
}
