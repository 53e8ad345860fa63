package kafka

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/isowatch/isowatch/ingest/source"
)

const (
	// fetchVersionByName is the last fetch version that names the topic by name
	// and has the old encoding, fetchVersionByID the first that names it by
	// identity.
	fetchVersionByName = 11
	fetchVersionByID   = 13
	// abortedMax bounds the list of aborted transactions in one response; a
	// longer one is cut off by an error before it is allocated.
	abortedMax = 1 << 20
	noOffset   = -1
)

var errAbortedMax = fmt.Errorf("more than %d aborted transactions in one fetch", abortedMax)

// ask is one fetch of one partition.
type ask struct {
	leader    int32
	topic     string
	topicID   [16]byte // zero where the brokers have none
	partition int32
	next      int64 // the first offset wanted
	end       int64 // offsets from here on are not wanted
	// lastEpoch is the leader epoch of the last batch read, or -1. The broker
	// then says if its log has parted from the one that was read (KIP-320).
	lastEpoch int32
	wait      time.Duration
	bytesMax  int32
	limits    limits
}

// limits bound what a response may hold in memory.
type limits struct {
	messageMax int // a larger record is cut; bytes
	decodedMax int // decoding stops at the first record boundary past it; bytes
}

var ordinary = limits{messageMax: messageMax, decodedMax: messageMax}

// fetched is what one fetch of one partition returned.
type fetched struct {
	asked      time.Time
	code       int16 // Kafka's error code; the rest means nothing unless 0
	high       int64 // high watermark: the end of what is replicated
	stable     int64 // last stable offset: the end of what is decided
	start      int64 // of the log; noOffset if the broker did not say
	batches    []source.Batch
	next       int64 // where to go on
	epoch      int32 // of the last batch passed; -1 if there was none
	diverged   bool  // the log parted from what was read before, at divergedAt
	divergedAt int64
	bytes      int   // that batches take in memory
	wire       int64 // bytes of the record set as it came
	// bad says why decoding stopped at next, nil if it did not. skip is then
	// the offset after the batch that can't be decoded.
	bad  error
	skip int64
}

// send asks the leader and waits for the answer, no longer than ask.wait and
// the time that a slow network may take.
func (a ask) send(ctx context.Context, w *wire) (*fetched, error) {
	ctx, cancel := context.WithTimeout(ctx, a.wait+3*callTimeout)
	defer cancel()
	req := kmsg.NewPtrFetchRequest()
	req.MaxWaitMillis = int32(a.wait / time.Millisecond)
	req.MinBytes = 1
	req.MaxBytes = a.bytesMax
	req.IsolationLevel = 1 // read committed: the broker stops at the last stable offset
	req.SessionEpoch = -1  // no fetch session
	topic := kmsg.NewFetchRequestTopic()
	topic.Topic, topic.TopicID = a.topic, a.topicID
	part := kmsg.NewFetchRequestTopicPartition()
	part.Partition = a.partition
	part.FetchOffset = a.next
	part.LastFetchedEpoch = a.lastEpoch
	part.PartitionMaxBytes = a.bytesMax
	topic.Partitions = append(topic.Partitions, part)
	req.Topics = append(req.Topics, topic)
	version := int16(fetchVersionByName)
	if a.topicID != [16]byte{} {
		version = fetchVersionByID
	}
	asked := time.Now()
	body, err := w.call(ctx, a.leader, req, version, func(r *bufio.Reader, version int16) (any, error) {
		// A broker that has identities and yet no fetch by identity is asked by
		// name: version 12 would still carry the name.
		return a.decode(r, version)
	})
	if err != nil {
		return nil, err
	}
	f := body.(*fetched)
	f.asked = asked
	return f, nil
}

// decode reads a response of version 4 to 13. An error means that the stream
// is out of step and the connection must be closed.
func (a ask) decode(r *bufio.Reader, version int16) (*fetched, error) {
	f := &fields{r: r, compact: version >= 12}
	out := &fetched{start: noOffset, next: a.next, epoch: -1}
	f.skip(4) // throttle time
	if version >= 7 {
		out.code = f.int16()
		f.skip(4) // session
	}
	if n := f.arrayLen(); n != 1 {
		if n == 0 && out.code != 0 && f.err == nil {
			return out, nil
		}
		return nil, f.unexpected("topics", n)
	}
	if version >= fetchVersionByID {
		f.skip(16)
	} else {
		f.skip(f.stringLen())
	}
	if n := f.arrayLen(); n != 1 {
		return nil, f.unexpected("partitions", n)
	}
	if got := f.int32(); got != a.partition && f.err == nil {
		return nil, fmt.Errorf("fetched partition %d and got %d", a.partition, got)
	}
	if code := f.int16(); code != 0 {
		out.code = code
	}
	out.high, out.stable = f.int64(), f.int64()
	if version >= 5 {
		out.start = f.int64()
	}
	aborted, err := f.aborted()
	if err != nil {
		return nil, err
	}
	if version >= 11 {
		f.skip(4) // preferred replica: only of interest to who names its rack
	}
	size := int64(f.arrayLen())
	if f.err != nil {
		return nil, f.err
	}
	out.wire = size
	set := &io.LimitedReader{R: r, N: size}
	if out.code == 0 {
		d := newDecoder(a, out, aborted)
		d.recordSet(set)
		d.finish()
	}
	if _, err := io.Copy(io.Discard, set); err != nil {
		return nil, err
	}
	if set.N > 0 {
		return nil, io.ErrUnexpectedEOF
	}
	if f.compact {
		a.tags(f, out)
	}
	return out, f.err
}

// tags reads the partition's tagged fields, of which the diverging epoch
// matters.
func (a ask) tags(f *fields, out *fetched) {
	const tagDivergingEpoch = 0
	for n := f.uvarint(); n > 0 && f.err == nil; n-- {
		tag, size := f.uvarint(), f.uvarint()
		if tag != tagDivergingEpoch || size < 12 {
			f.skip(int64(size))
			continue
		}
		f.skip(4) // the epoch
		if end := f.int64(); end >= 0 && end < a.next {
			out.diverged, out.divergedAt = true, end
		}
		f.skip(int64(size) - 12)
	}
}

// abortedTxn says that the transaction which that producer began at that
// offset was aborted.
type abortedTxn struct{ producer, first int64 }

// fields reads the fixed fields of a response. The first error stays.
type fields struct {
	r       *bufio.Reader
	compact bool // the encoding of the flexible versions
	err     error
}

func (f *fields) bytes(n int) []byte {
	var zero [8]byte
	if f.err != nil {
		return zero[:n]
	}
	b, err := f.r.Peek(n)
	if err != nil {
		f.err = noEOF(err)
		return zero[:n]
	}
	copy(zero[:], b)
	_, f.err = f.r.Discard(n)
	return zero[:n]
}

func (f *fields) int16() int16 { return int16(binary.BigEndian.Uint16(f.bytes(2))) }
func (f *fields) int32() int32 { return int32(binary.BigEndian.Uint32(f.bytes(4))) }
func (f *fields) int64() int64 { return int64(binary.BigEndian.Uint64(f.bytes(8))) }

func (f *fields) uvarint() uint32 {
	if f.err != nil {
		return 0
	}
	n, err := binary.ReadUvarint(f.r)
	if err == nil && n > math.MaxInt32 {
		err = fmt.Errorf("a length of %d in a fetch response", n)
	}
	if err != nil {
		f.err = noEOF(err)
		return 0
	}
	return uint32(n)
}

func (f *fields) skip(n int64) {
	if f.err != nil || n <= 0 {
		return
	}
	_, err := io.CopyN(io.Discard, f.r, n)
	f.err = noEOF(err)
}

// arrayLen is the length of an array; 0 for a null one.
func (f *fields) arrayLen() int {
	if f.compact {
		return max(int(f.uvarint())-1, 0)
	}
	return max(int(f.int32()), 0)
}

func (f *fields) stringLen() int64 {
	if f.compact {
		return max(int64(f.uvarint())-1, 0)
	}
	return max(int64(f.int16()), 0)
}

func (f *fields) aborted() ([]abortedTxn, error) {
	n := f.arrayLen()
	if n > abortedMax {
		return nil, errAbortedMax
	}
	var out []abortedTxn
	for i := 0; i < n && f.err == nil; i++ {
		out = append(out, abortedTxn{producer: f.int64(), first: f.int64()})
		if f.compact {
			f.skipTags()
		}
	}
	return out, f.err
}

func (f *fields) unexpected(what string, n int) error {
	if f.err != nil {
		return f.err
	}
	return fmt.Errorf("fetched one partition of one topic and got %d %s", n, what)
}

// skipTags passes over tagged fields.
func (f *fields) skipTags() {
	for n := f.uvarint(); n > 0 && f.err == nil; n-- {
		f.uvarint()
		f.skip(int64(f.uvarint()))
	}
}

// noEOF makes an end in the middle of something an error.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
