package canary

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
