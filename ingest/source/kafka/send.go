package kafka

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	kafkago "github.com/segmentio/kafka-go"
)

// Sender writes single messages to a topic that exists, each acknowledged by all
// replicas in sync, and leaves retries to its caller. It is safe for concurrent use.
type Sender struct {
	topic  string
	conns  *connections
	writer *kafkago.Writer
}

// ErrTooLarge is wrapped by the error of Send if the brokers take no message so large.
var ErrTooLarge = errors.New("the message is larger than the topic takes (max.message.bytes)")

// NewSender prepares a Sender. Nothing is connected to before the first Send, so that
// the error is about the options.
func NewSender(c Connection, topic string) (*Sender, error) {
	c.ClientID = cmp.Or(c.ClientID, "isowatch")
	conns, err := c.connect(topic)
	if err != nil {
		return nil, err
	}
	return &Sender{topic: topic, conns: conns, writer: &kafkago.Writer{
		Addr: conns.addr, Topic: topic, Transport: conns.transport,
		Balancer: kafkago.Murmur2Balancer{}, RequiredAcks: kafkago.RequireAll,
		BatchSize: 1, BatchBytes: 1<<31 - 1, BatchTimeout: time.Millisecond, MaxAttempts: 1,
	}}, nil
}

// Send writes one message, the partition following from the key as with Java
// clients, and returns when the brokers have it. After another error than ErrTooLarge
// it may have been written all the same.
func (s *Sender) Send(ctx context.Context, key, value []byte, headers map[string]string) error {
	m := kafkago.Message{Key: key, Value: value}
	for name, v := range headers {
		m.Headers = append(m.Headers, kafkago.Header{Key: name, Value: []byte(v)})
	}
	err := s.writer.WriteMessages(ctx, m)
	var all kafkago.WriteErrors
	if errors.As(err, &all) && len(all) == 1 && all[0] != nil {
		err = all[0]
	}
	switch {
	case err == nil:
		return nil
	case errors.As(err, new(kafkago.MessageTooLargeError)), errors.Is(err, kafkago.MessageSizeTooLarge):
		return fmt.Errorf("kafka topic %q: %w", s.topic, ErrTooLarge)
	case errors.Is(err, kafkago.UnknownTopicOrPartition):
		return fmt.Errorf("kafka topic %q does not exist; create it, or name another: %w", s.topic, err)
	case errors.Is(err, kafkago.TopicAuthorizationFailed):
		return fmt.Errorf("kafka topic %q: no right to write; grant WRITE: %w", s.topic, err)
	}
	return fmt.Errorf("kafka topic %q: %w", s.topic, err)
}

// Close closes the connections.
func (s *Sender) Close() error {
	s.conns.close() // first: whatever is still tried fails at once
	return s.writer.Close()
}
