// Package kafkasink sends what a recorder records to a Kafka topic. It is apart from package recorder so that an
// application that writes to a file has no Kafka client in it.
//
//	producer, err := kafka.OpenProducer(ctx, kafka.ProducerOptions{Connection: kafka.Connection{Brokers: brokers}, Topic: "transactions"})
//	rec := recorder.New(&kafkasink.Topic{Producer: producer}, recorder.Options{DB: "orders"})
package kafkasink

import (
	"context"

	"github.com/isowatch/isowatch/ingest/source"
	"github.com/isowatch/isowatch/ingest/source/kafka"
	"github.com/isowatch/isowatch/recorder"
)

// Topic is a sink into a Kafka topic: a message per record, keyed by session, so that a session stays in one
// partition.
type Topic struct{ Producer *kafka.Producer }

// Put implements recorder.Sink.
func (t *Topic) Put(ctx context.Context, records []recorder.Record) error {
	messages := make([]source.Message, len(records))
	for i, r := range records {
		messages[i] = source.Message{Key: []byte(r.Session), Value: r.JSON}
	}
	return t.Producer.Send(ctx, messages...)
}

// Close implements recorder.Sink.
func (t *Topic) Close() error { return t.Producer.Close() }
