package kafka

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/segmentio/kafka-go/compress"

	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/source"
	read "github.com/isowatch/isowatch/internal/wire"
)

// A record batch, as Kafka 0.11 and later store it (magic 2):
//
//	 0 base offset    8     21 attributes        2     43 producer id    8
//	 8 length         4     23 last offset delta 4     51 producer epoch 2
//	12 leader epoch   4     27 first timestamp   8     53 sequence       4
//	16 magic          1     35 max timestamp     8     57 records        4
//	17 CRC-32C        4                                61 the records, maybe compressed
//
// The length counts from 12, the checksum covers from 21. A record is
//
//	length, attributes 1, timestamp delta, offset delta, key, value, headers
//
// where all but the attributes are zigzag varints or prefixed by one, and a
// length of -1 means null.
const (
	batchHeader    = 61
	batchLengthAt  = 12 // what the length counts from
	batchPrefix    = 17 // up to the magic: common to all formats
	batchCRCFrom   = 21
	attrCodec      = 7
	attrAppendTime = 1 << 3
	attrTxn        = 1 << 4
	attrControl    = 1 << 5
	controlAbort   = 0
	// oversizeKeep is how much of an oversize value is kept, for the dead letter.
	oversizeKeep = 64 << 10
	// recordOverhead is what a record costs in memory beside its bytes.
	recordOverhead = 160
	headerTypeKey  = "content-type"
)

var crcTable = crc32.MakeTable(crc32.Castagnoli)

// decoder turns record sets into messages: the read-committed algorithm.
//
// The broker names the transactions in the fetched range that were aborted, by
// producer and first offset. Walking the batches in order, a producer is
// active from the first offset of its aborted transaction to the abort marker;
// its transactional batches in between are passed over. A producer has at most
// one transaction open in a partition, so that a set of producers is enough.
type decoder struct {
	ask
	out     *fetched
	aborted []abortedTxn // still ahead, by first offset
	active  map[int64]struct{}
	cur     source.Batch // being filled
	memory  *memory      // of cur; nil: there is none yet
	full    bool         // decodedMax or end was reached
	// contentType is that of the last record which had one: most have the same.
	contentType string
}

func newDecoder(a ask, out *fetched, aborted []abortedTxn) *decoder {
	slices.SortFunc(aborted, func(a, b abortedTxn) int { return int(min(max(a.first-b.first, -1), 1)) })
	return &decoder{ask: a, out: out, aborted: aborted, active: map[int64]struct{}{}}
}

// recordSet decodes batches until the set ends, is full, or is bad.
func (d *decoder) recordSet(set *io.LimitedReader) {
	seen := false
	for !d.full && d.out.bad == nil {
		var h header
		whole, err := h.read(set)
		switch {
		case err != nil:
			d.bad(h, err)
			return
		case !whole:
			// The broker cuts the last batch where the limit falls; but the first
			// it sends whole.
			if !seen && h.prefixed {
				d.bad(h, errors.New("the broker sent only a part of a batch"))
				d.out.skip = d.out.next // nothing says that the batch is damaged
			}
			return
		}
		seen = true
		if d.out.stable >= 0 && h.base >= d.out.stable {
			return // not decided yet; a broker that honours the isolation level does not send it
		}
		d.batch(h, set)
	}
}

// finish closes the batch being filled.
func (d *decoder) finish() {
	d.out.next = min(d.out.next, max(d.end, d.next))
	d.flush()
}

func (d *decoder) flush() {
	if len(d.cur.Messages) > 0 || len(d.cur.Gaps) > 0 {
		d.cur.Next = d.out.next
		if len(d.cur.Messages) < cap(d.cur.Messages)/2 {
			d.cur.Messages = slices.Clone(d.cur.Messages) // what was expected was not wanted
		}
		if d.memory != nil {
			d.memory.messages = d.cur.Messages
			d.cur.Free = d.memory.free
		}
		d.out.batches = append(d.out.batches, d.cur)
	}
	d.cur, d.memory = source.Batch{}, nil
}

// bad stops decoding before the batch of h.
func (d *decoder) bad(h header, err error) {
	d.out.bad = fmt.Errorf("record batch at offset %d: %w", h.base, err)
	d.out.skip = d.out.next + 1
	// The header may be what is damaged: it is believed within the log.
	if last := h.base + int64(h.lastDelta); h.prefixed && h.base >= 0 && h.lastDelta >= 0 && last < d.out.high {
		d.out.skip = max(d.out.skip, last+1)
	}
}

// gap notes that the offsets from next on are missing, up to but without to, where it
// goes on.
func (d *decoder) gap(to int64, why string) {
	if len(d.cur.Messages) > 0 {
		d.flush() // a batch tells its gaps before its messages
	}
	d.cur.Gaps = append(d.cur.Gaps, source.Gap{Source: d.topic, Partition: int(d.partition), From: d.out.next, To: to,
		Why: why})
	d.out.next = to
}

const (
	whyHole      = "the log has no records there: they were deleted or compacted away"
	whyUndecoded = "the records there can't be decoded"
)

// batch decodes one batch whose header was read. What it added is taken back
// when the batch turns out to be damaged.
func (d *decoder) batch(h header, set *io.LimitedReader) {
	body := &checked{r: io.LimitedReader{R: set, N: int64(h.length) - (batchHeader - batchLengthAt)},
		sum: crc32.New(crcTable)}
	body.sum.Write(h.raw[batchCRCFrom:])
	last := h.base + int64(h.lastDelta)
	for len(d.aborted) > 0 && d.aborted[0].first <= last {
		d.active[d.aborted[0].producer] = struct{}{}
		d.aborted = d.aborted[1:]
	}
	mark, curMark := *d.out, d.cur
	ended := false // an aborted transaction ends here
	var err error
	_, aborted := d.active[h.producer]
	switch {
	case last < d.out.next:
		// Read before; the fetch began in the middle of what is stored together.
	case h.attributes&attrControl != 0:
		var kind int16
		if kind, err = h.control(body); err == nil {
			d.pass(h, last)
			ended = kind == controlAbort
		}
	case aborted && h.attributes&attrTxn != 0:
		d.pass(h, last)
	default:
		d.expect(h, set.N)
		err = d.records(h, last, body)
	}
	if _, e := io.Copy(io.Discard, body); err == nil {
		err = noEOF(e)
	}
	if err == nil && body.r.N > 0 {
		err = io.ErrUnexpectedEOF
	}
	if sum := body.sum.Sum32(); err == nil && sum != h.crc {
		err = fmt.Errorf("checksum %#x, should be %#x", sum, h.crc)
	}
	if err != nil {
		*d.out, d.cur, d.full = mark, curMark, false
		d.bad(h, err)
		return
	}
	if ended {
		delete(d.active, h.producer)
	}
	d.out.epoch = h.epoch
}

// pass goes over a batch that is not shown.
func (d *decoder) pass(h header, last int64) {
	if h.base > d.out.next {
		d.gap(min(h.base, d.end), whyHole)
	}
	d.out.next = last + 1
	d.full = d.out.next >= d.end
}

// expectMax bounds the messages that room is made for at once, as nothing proves that they
// will come.
const expectMax = 1 << 14

// expect makes room for the messages of the batch of h and, when it has to, for those of
// the rest of the set as well, left bytes with this batch, as if all its batches were like
// this one: what grows step by step is copied, and has up to a quarter more than
// it needs for as long as it waits.
func (d *decoder) expect(h header, left int64) {
	if n := int(h.records); n > cap(d.cur.Messages)-len(d.cur.Messages) {
		if d.memory == nil {
			d.begin()
		}
		all := float64(n) * max(float64(left)/float64(h.length), 1)
		d.cur.Messages = slices.Grow(d.cur.Messages, int(min(all*33/32, expectMax)))
	}
}

// records decodes the batch's records from next on.
func (d *decoder) records(h header, last int64, body io.Reader) error {
	r := recordReaders.Get().(*bufio.Reader)
	defer func() {
		r.Reset(nil)
		recordReaders.Put(r)
	}()
	if codec := compress.Compression(h.attributes & attrCodec); codec != compress.None {
		c := codec.Codec()
		if c == nil {
			return fmt.Errorf("unknown compression %d", int(codec))
		}
		z := c.NewReader(body)
		defer z.Close()
		body = z
	}
	r.Reset(body)
	before := int64(-1)
	for range h.records {
		if d.out.next >= d.end || d.out.bytes >= d.limits.decodedMax {
			d.full = true
			return nil
		}
		m, delta, err := d.record(h, r)
		if err != nil {
			return err
		}
		offset := h.base + delta
		if delta < 0 || offset > last || delta <= before {
			return fmt.Errorf("a record at offset %d in the batch of offsets %d to %d", offset, h.base, last)
		}
		before = delta
		if offset < d.out.next {
			continue
		}
		if offset > d.out.next {
			d.gap(min(offset, d.end), whyHole)
			if offset >= d.end {
				d.full = true
				return nil
			}
		}
		m.Pos = record.Position{Source: d.topic, Kafka: true, Partition: int(d.partition), Offset: offset}
		d.cur.Messages = append(d.cur.Messages, m)
		d.out.bytes += len(m.Key) + len(m.Value) + recordOverhead
		d.out.next = offset + 1
	}
	if d.out.next <= last {
		d.gap(min(last+1, d.end), whyHole)
	}
	d.full = d.out.next >= d.end
	return nil
}

var recordReaders = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, 32<<10) }}

// record reads one record. One larger than messageMax is read only in part and
// marked; nothing of its size is allocated.
func (d *decoder) record(h header, r *bufio.Reader) (m source.Message, offsetDelta int64, err error) {
	size, err := binary.ReadVarint(r)
	if err != nil {
		return m, 0, noEOF(err)
	}
	if size < 0 || size > math.MaxInt32 {
		return m, 0, fmt.Errorf("a record of %d bytes", size)
	}
	if size > int64(d.limits.messageMax) {
		return d.oversize(h, r, size)
	}
	b := d.take(int(size))
	if _, err := io.ReadFull(r, b); err != nil {
		return m, 0, noEOF(err)
	}
	in := read.NewReader(b)
	in.Byte() // attributes, of which there are none
	m.Time = h.time(in.Int())
	offsetDelta = in.Int()
	m.Key = field(&in)
	m.Value = field(&in)
	for n := in.Int(); n > 0 && in.OK(); n-- {
		key, value := field(&in), field(&in)
		if strings.EqualFold(string(key), headerTypeKey) {
			if m.ContentType = d.contentType; m.ContentType != string(value) {
				m.ContentType = string(value)
				d.contentType = m.ContentType
			}
		}
	}
	if !in.OK() {
		return m, 0, errors.New("a record whose lengths contradict each other")
	}
	return m, offsetDelta, nil
}

// oversize reads a record of size bytes without keeping more of key and value
// than oversizeKeep each. Its headers are passed over.
func (d *decoder) oversize(h header, r *bufio.Reader, size int64) (m source.Message, offsetDelta int64, err error) {
	limited := &io.LimitedReader{R: r, N: size}
	br := byteReader{limited}
	if _, err = br.ReadByte(); err != nil {
		return m, 0, noEOF(err)
	}
	var ts, n int64
	for _, v := range []*int64{&ts, &offsetDelta, &n} {
		if *v, err = binary.ReadVarint(br); err != nil {
			return m, 0, noEOF(err)
		}
	}
	m.Time = h.time(ts)
	if m.Key, err = readPart(limited, n); err != nil {
		return m, 0, err
	}
	if n, err = binary.ReadVarint(br); err != nil {
		return m, 0, noEOF(err)
	}
	if m.Value, err = readPart(limited, n); err != nil {
		return m, 0, err
	}
	// A record may also be oversize by its key or headers alone.
	m.Oversize = max(n, 1)
	if _, err = io.Copy(io.Discard, limited); err == nil && limited.N > 0 {
		err = io.ErrUnexpectedEOF
	}
	return m, offsetDelta, noEOF(err)
}

// readPart reads n bytes and returns the first of them, at most oversizeKeep.
func readPart(r *io.LimitedReader, n int64) ([]byte, error) {
	if n < 0 {
		return nil, nil
	}
	if n > r.N {
		return nil, errors.New("a record whose lengths contradict each other")
	}
	b := make([]byte, min(n, oversizeKeep))
	if _, err := io.ReadFull(r, b); err != nil {
		return nil, noEOF(err)
	}
	_, err := io.CopyN(io.Discard, r, n-int64(len(b)))
	return b, noEOF(err)
}

// byteReader reads single bytes, for varints.
type byteReader struct{ io.Reader }

func (r byteReader) ReadByte() (byte, error) {
	var b [1]byte
	_, err := io.ReadFull(r.Reader, b[:])
	return b[0], err
}

// header is the head of a record batch.
type header struct {
	raw        [batchHeader]byte
	prefixed   bool // the fields up to the magic are valid
	base       int64
	length     int32
	epoch      int32
	crc        uint32
	attributes int16
	lastDelta  int32
	firstTime  int64 // milliseconds
	maxTime    int64
	producer   int64
	records    int32
}

// read reads the header. It returns false when the set ends before the batch
// does, and an error when the batch is none.
func (h *header) read(set *io.LimitedReader) (whole bool, err error) {
	if set.N < batchPrefix {
		return false, nil
	}
	if _, err := io.ReadFull(set, h.raw[:batchPrefix]); err != nil {
		return false, noEOF(err)
	}
	h.base = int64(binary.BigEndian.Uint64(h.raw[0:]))
	h.length = int32(binary.BigEndian.Uint32(h.raw[8:]))
	h.epoch = int32(binary.BigEndian.Uint32(h.raw[12:]))
	h.prefixed = true
	if magic := h.raw[16]; magic < 2 {
		return false, fmt.Errorf("message format %d, older than Kafka 0.11, is not read", magic)
	} else if magic > 2 {
		return false, fmt.Errorf("message format %d is not known", magic)
	}
	if h.length < batchHeader-batchLengthAt {
		return false, fmt.Errorf("a length of %d", h.length)
	}
	if int64(h.length)-(batchPrefix-batchLengthAt) > set.N {
		return false, nil
	}
	if _, err := io.ReadFull(set, h.raw[batchPrefix:]); err != nil {
		return false, noEOF(err)
	}
	h.crc = binary.BigEndian.Uint32(h.raw[17:])
	h.attributes = int16(binary.BigEndian.Uint16(h.raw[21:]))
	h.lastDelta = int32(binary.BigEndian.Uint32(h.raw[23:]))
	h.firstTime = int64(binary.BigEndian.Uint64(h.raw[27:]))
	h.maxTime = int64(binary.BigEndian.Uint64(h.raw[35:]))
	h.producer = int64(binary.BigEndian.Uint64(h.raw[43:]))
	h.records = int32(binary.BigEndian.Uint32(h.raw[57:]))
	if h.base < 0 || h.base > math.MaxInt64-math.MaxInt32 || h.lastDelta < 0 || h.records < 0 {
		return false, fmt.Errorf("%d records from offset %d to %d more", h.records, h.base, h.lastDelta)
	}
	return true, nil
}

// time is the broker's or producer's timestamp of a record, in nanoseconds.
func (h *header) time(delta int64) int64 {
	ms := h.firstTime + delta
	if h.attributes&attrAppendTime != 0 {
		ms = h.maxTime
	}
	const nanos = int64(time.Millisecond)
	if ms < 0 || ms > math.MaxInt64/nanos {
		return 0 // -1 means none
	}
	return ms * nanos
}

// control reads which marker a control batch is: controlAbort, commit (1), or
// one that is none of ours.
func (h *header) control(body io.Reader) (kind int16, err error) {
	if h.records == 0 {
		return -1, nil // compacted away
	}
	// The record is small: a version and a type as key, an epoch as value.
	b, err := io.ReadAll(io.LimitReader(body, 1<<10))
	if err != nil {
		return 0, err
	}
	r := read.NewReader(b)
	r.Int()
	r.Byte()
	r.Int()
	r.Int()
	key := field(&r)
	if !r.OK() || len(key) < 4 {
		return 0, errors.New("a control record without a type")
	}
	return int16(binary.BigEndian.Uint16(key[2:])), nil
}

// field is a part of a record that is prefixed by its length, nil if that is negative. It shares
// the record's memory.
func field(r *read.Reader) []byte {
	if n := r.Int(); n >= 0 {
		return r.Take(uint64(n))
	}
	return nil
}

// checked reads a batch's body and sums it up.
type checked struct {
	r   io.LimitedReader
	sum hash.Hash32
}

func (c *checked) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.sum.Write(p[:n])
	return n, err
}
