package rig

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/isowatch/isowatch/ingest/codec"
	"github.com/isowatch/isowatch/ingest/codec/protobuf"
	"github.com/isowatch/isowatch/ingest/record"
)

// Encoding is a form of records in a topic.
type Encoding struct {
	Name string
	// ContentType is the message's header; empty: none, which means JSON.
	ContentType string
	Append      func([]byte, *record.Transaction) []byte
}

// Encodings lists those that the monitor reads.
func Encodings() []Encoding {
	return []Encoding{
		{Name: "json", Append: codec.AppendJSON},
		{Name: "protobuf", ContentType: protobuf.ContentType, Append: protobuf.Append},
	}
}

// EncodingNamed finds an encoding.
func EncodingNamed(name string) (Encoding, error) {
	var names []string
	for _, e := range Encodings() {
		if e.Name == name {
			return e, nil
		}
		names = append(names, e.Name)
	}
	return Encoding{}, fmt.Errorf("encoding %q: use one of %s", name, strings.Join(names, ", "))
}

// Feed puts records into a topic as fast as the broker takes them, each session in one
// partition and in its order. It is for one goroutine, and does what the producer of `monitor replay`
// does with a library that is several times as fast, so that measurements begin soon.
type Feed struct {
	client *kgo.Client
	enc    Encoding
	header []kgo.RecordHeader
	slab   []byte // records are cut from it
	bytes  int64
	sent   int64

	acked  atomic.Int64
	failed sync.Once
	err    error
	down   chan struct{} // closed when err is set
}

// feedMax bounds the records that the broker has not answered for.
const feedMax = 50_000

// NewFeed connects to a broker. An unreachable broker is tried for ever.
func NewFeed(addr, topic string, enc Encoding) (*Feed, error) {
	f := &Feed{enc: enc, down: make(chan struct{})}
	if enc.ContentType != "" {
		f.header = []kgo.RecordHeader{{Key: "content-type", Value: []byte(enc.ContentType)}}
	}
	var err error
	f.client, err = kgo.NewClient(kgo.SeedBrokers(addr), kgo.DefaultProduceTopic(topic), kgo.MaxBufferedRecords(feedMax),
		kgo.ProducerBatchMaxBytes(900<<10),
		kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.ProducerLinger(2*time.Millisecond),
		kgo.RecordPartitioner(kgo.StickyKeyPartitioner(nil)),
		kgo.MetadataMinAge(50*time.Millisecond), kgo.RetryBackoffFn(func(int) time.Duration { return 50 * time.Millisecond }),
		kgo.UnknownTopicRetries(-1))
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", addr, err)
	}
	return f, nil
}

// slabMin is how much is allocated at once for the bytes of records.
const slabMin = 1 << 20

// Message is a record as it was sent, to be sent again.
type Message struct{ Key, Value []byte }

// Encode makes the message of a record, whose bytes stay as they are.
func (f *Feed) Encode(t *record.Transaction) Message {
	if cap(f.slab)-len(f.slab) < 4<<10 {
		f.slab = make([]byte, 0, slabMin)
	}
	from := len(f.slab)
	f.slab = append(f.slab, t.Session...)
	mid := len(f.slab)
	f.slab = f.enc.Append(f.slab, t)
	return Message{f.slab[from:mid:mid], f.slab[mid:len(f.slab):len(f.slab)]}
}

// Send hands a message to the producer, which sends it soon; it waits while too many are on their way.
func (f *Feed) Send(ctx context.Context, m Message) error {
	f.bytes += int64(len(m.Value))
	f.sent++
	f.client.Produce(ctx, &kgo.Record{Key: m.Key, Value: m.Value, Headers: f.header}, func(_ *kgo.Record, err error) {
		if err != nil {
			f.failed.Do(func() {
				f.err = fmt.Errorf("produce: %w", err)
				close(f.down)
			})
			return
		}
		f.acked.Add(1)
	})
	select {
	case <-f.down:
		return f.err
	default:
		return nil
	}
}

// Flush waits until the broker has all.
func (f *Feed) Flush(ctx context.Context) error {
	err := f.client.Flush(ctx)
	select {
	case <-f.down:
		return errors.Join(err, f.err)
	default:
		return err
	}
}

// Sent is how many records were sent, Bytes the sum of their sizes.
func (f *Feed) Sent() int64 { return f.sent }

// Bytes is the sum of the sizes of what was sent.
func (f *Feed) Bytes() int64 { return f.bytes }

// Acked is how many of them the broker has.
func (f *Feed) Acked() int64 { return f.acked.Load() }

// Close closes the connections; what was not flushed may be lost.
func (f *Feed) Close() { f.client.Close() }

// Pace waits for moments of a stream's time, of which the first it is asked about is now.
type Pace struct {
	began time.Time
	first int64
}

// worthWaiting is how far something must be ahead to be waited for: a timer would not be
// more exact.
const worthWaiting = time.Millisecond

// Until returns at time t, nanoseconds of the stream, and says whether it waited.
func (p *Pace) Until(ctx context.Context, t int64) (waited bool, err error) {
	if p.began.IsZero() {
		p.began, p.first = time.Now(), t
	}
	ahead := time.Duration(t-p.first) - time.Since(p.began)
	if ahead < worthWaiting {
		return false, nil
	}
	timer := time.NewTimer(ahead)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true, nil
	case <-ctx.Done():
		return true, ctx.Err()
	}
}
