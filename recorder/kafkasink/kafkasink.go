// Package kafkasink sends what a recorder records to a Kafka topic. It is apart from package recorder so that an
// application that writes to a file has no Kafka client in it.
//
//	producer, err := kafka.OpenProducer(ctx, kafka.ProducerOptions{Connection: kafka.Connection{Brokers: brokers}, Topic: "transactions"})
//	rec := recorder.New(&kafkasink.Topic{Producer: producer}, recorder.Options{DB: "orders"})
package kafkasink

import (
	"context"
	"strconv"
	"time"

	"github.com/isowatch/isowatch/ingest/source"
	"github.com/isowatch/isowatch/ingest/source/kafka"
)

// Topic is a sink into a Kafka topic: a message per record, all in one partition, so that where what was sent ends
// nothing is missing before.
type Topic struct {
	Producer *kafka.Producer
	key      []byte
}

// Put implements recorder.Sink.
func (t *Topic) Put(ctx context.Context, records [][]byte) error {
	if t.key == nil {
		t.key = strconv.AppendInt(nil, time.Now().UnixNano(), 36)
	}
	messages := make([]source.Message, len(records))
	for i, r := range records {
		messages[i] = source.Message{Key: t.key, Value: r}
	}
	return t.Producer.Send(ctx, messages...)
}

// Close implements recorder.Sink.
func (t *Topic) Close() error { return t.Producer.Close() }
