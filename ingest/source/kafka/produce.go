package kafka

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/cenkalti/backoff/v5"
	kafkago "github.com/segmentio/kafka-go"

	"github.com/isowatch/isowatch/ingest/source"
)

// ProducerOptions configure a Producer. Brokers and Topic are needed.
type ProducerOptions struct {
	Connection
	Topic string
	// Partitions of the topic, if it has to be created; default 4.
	Partitions int
	// OnRetry is told failures to reach the cluster while opening. May be nil.
	OnRetry func(error)
}

// produceBytes bounds what is sent at a time, but for a record that is larger by itself. Brokers refuse
// batches of more than 1 MiB unless they are told otherwise.
const (
	produceBytes    = 900 << 10
	produceMessages = 5000
	produceAttempts = 60 // with back-off up to a second: about a minute
)

// Producer writes records to a topic: for `monitor replay`, the demo and tests.
// It is not for concurrent use.
//
// Records with the same key stay in order and in one partition, the one that
// Java clients choose. Nothing is written twice on purpose, but an answer that
// is lost makes it send again: the reader drops the second by its id.
type Producer struct {
	conns  *connections
	writer *kafkago.Writer
}

// OpenProducer connects and creates the topic if it is missing, with the
// cleanup policy that a monitor needs. Unreachable brokers are tried until ctx
// ends; what no retry mends is a *source.StartupError.
func OpenProducer(ctx context.Context, opts ProducerOptions) (*Producer, error) {
	opts.ClientID = cmp.Or(opts.ClientID, "isowatch")
	opts.Partitions = cmp.Or(opts.Partitions, 4)
	conns, err := opts.connect(opts.Topic)
	if err != nil {
		return nil, err
	}
	// The same loop opens a source: it knows which errors are worth a retry.
	s := &Source{conns: conns, opts: Options{Connection: opts.Connection, Topic: opts.Topic, OnRetry: opts.OnRetry}}
	if err := s.opts.complete(); err != nil {
		conns.close()
		return nil, err
	}
	if _, err := retryStartup(ctx, s, func() (struct{}, error) {
		return struct{}{},
			createTopic(ctx, conns, opts)
	}); err != nil {
		conns.close()
		return nil, err
	}
	return &Producer{conns: conns, writer: &kafkago.Writer{
		Addr: conns.addr, Topic: opts.Topic, Transport: conns.transport,
		Balancer: kafkago.Murmur2Balancer{}, RequiredAcks: kafkago.RequireAll,
		BatchSize: produceMessages, BatchBytes: 1<<31 - 1, BatchTimeout: 5 * time.Millisecond,
		MaxAttempts: produceAttempts, WriteBackoffMin: 50 * time.Millisecond, WriteBackoffMax: time.Second,
	}}, nil
}

// createTopic makes the topic unless there is one.
func createTopic(ctx context.Context, conns *connections, opts ProducerOptions) error {
	switch _, err := askTopology(ctx, conns.wire, opts.Topic); {
	case err == nil:
		return nil
	case !errors.Is(err, errTopicMissing):
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	client := &kafkago.Client{Addr: conns.addr, Transport: conns.transport}
	resp, err := client.CreateTopics(ctx, &kafkago.CreateTopicsRequest{Topics: []kafkago.TopicConfig{{
		Topic: opts.Topic, NumPartitions: opts.Partitions, ReplicationFactor: -1,
		ConfigEntries: []kafkago.ConfigEntry{{ConfigName: "cleanup.policy", ConfigValue: "delete"}},
	}}})
	if err != nil {
		return err
	}
	switch err := resp.Errors[opts.Topic]; {
	case err == nil, errors.Is(err, kafkago.TopicAlreadyExists):
		return nil
	case errors.Is(err, kafkago.TopicAuthorizationFailed), errors.Is(err, kafkago.ClusterAuthorizationFailed):
		return &source.StartupError{What: fmt.Sprintf("kafka topic %q: no right to create it", opts.Topic),
			Do: "create it with cleanup.policy=delete, or grant CREATE", Err: err}
	case errors.Is(err, kafkago.InvalidReplicationFactor), errors.Is(err, kafkago.InvalidPartitionNumber),
		errors.Is(err, kafkago.PolicyViolation), errors.Is(err, kafkago.InvalidTopic):
		return &source.StartupError{What: fmt.Sprintf("kafka topic %q can't be created with %d partitions", opts.Topic,
			opts.Partitions),
			Do: "create it by hand with cleanup.policy=delete", Err: err}
	default:
		return err
	}
}

// Send writes records and returns when the brokers have them all. Of a Message
// it takes Key, Value, ContentType and Time (0: now). It retries for about a
// minute; after an error it is not known which records were written, and the
// producer should be closed. More records in one call are faster.
func (p *Producer) Send(ctx context.Context, messages ...source.Message) error {
	var batch []kafkago.Message
	size := 0
	for _, m := range messages {
		out := kafkago.Message{Key: m.Key, Value: m.Value}
		if m.Time != 0 {
			out.Time = time.Unix(0, m.Time)
		}
		if m.ContentType != "" {
			out.Headers = []kafkago.Header{{Key: headerTypeKey, Value: []byte(m.ContentType)}}
		}
		more := len(m.Key) + len(m.Value) + 1<<7 // and what is around it
		if size += more; size > produceBytes && len(batch) > 0 {
			if err := p.write(ctx, batch); err != nil {
				return err
			}
			batch, size = batch[:0], more
		}
		batch = append(batch, out)
	}
	return p.write(ctx, batch)
}

// write writes records. kafka-go retries what it has
// begun to write; what fails before, when it looks for the topic's partitions,
// is retried here.
func (p *Producer) write(ctx context.Context, messages []kafkago.Message) error {
	retry := backoff.NewExponentialBackOff()
	retry.MaxInterval = p.writer.WriteBackoffMax
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		err := p.writer.WriteMessages(ctx, messages...)
		var some kafkago.WriteErrors
		var large kafkago.MessageTooLargeError
		switch {
		case errors.As(err, &some):
			for _, e := range some {
				if e != nil {
					err = fmt.Errorf("%d of %d records not written to Kafka: %w", some.Count(), len(some), e)
					break
				}
			}
			return struct{}{}, backoff.Permanent(err)
		case errors.As(err, &large), errors.Is(err, io.ErrClosedPipe), ctx.Err() != nil && err != nil:
			return struct{}{}, backoff.Permanent(err)
		}
		return struct{}{}, err
	}, backoff.WithBackOff(retry), backoff.WithMaxElapsedTime(time.Minute))
	return err
}

// Close closes the connections.
func (p *Producer) Close() error {
	p.conns.close() // first: whatever a writer still tries fails at once
	return p.writer.Close()
}
