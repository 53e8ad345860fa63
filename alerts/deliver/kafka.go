package deliver

import (
	"context"
	"errors"
	"time"

	"github.com/isowatch/isowatch/ingest/source/kafka"
)

// Kafka writes notices to a topic.
type Kafka struct{ *kafka.Sender }

// kafkaTimeout bounds an attempt, in which a leader may have to be looked for.
const kafkaTimeout = 20 * time.Second

// The headers of a message.
const (
	// KafkaNoticeID is the notice's id: the same when it comes again.
	KafkaNoticeID = "notice-id"
	kafkaType     = "content-type"
)

// NewKafka checks the connection's settings; nothing is connected to before the first notice.
func NewKafka(c kafka.Connection, topic string) (*Kafka, error) {
	s, err := kafka.NewSender(c, topic)
	if err != nil {
		return nil, err
	}
	return &Kafka{s}, nil
}

// Notify implements Receiver. The key is the group, so that what is said of it stays in
// order. A notice that is too large for the topic goes without its evidence.
func (k *Kafka) Notify(ctx context.Context, body []byte, id string) (time.Duration, bool, error) {
	n, err := parse(body)
	if err != nil {
		return 0, false, err
	}
	ctx, cancel := context.WithTimeout(ctx, kafkaTimeout)
	defer cancel()
	headers := map[string]string{KafkaNoticeID: id, kafkaType: "application/json"}
	err = k.Send(ctx, []byte(n.group()), body, headers)
	if errors.Is(err, kafka.ErrTooLarge) {
		short, failed := withoutEvidence(body)
		if failed != nil {
			return 0, false, failed
		}
		err = k.Send(ctx, []byte(n.group()), short, headers)
	}
	return 0, !errors.Is(err, kafka.ErrTooLarge), err
}
