package deliver

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/isowatch/isowatch/ingest/source/kafka"
)

// Kafka writes notices to a topic.
type Kafka struct {
	sender  *kafka.Sender
	topic   string
	timeout time.Duration
}

// KafkaOptions are the settings of a Kafka.
type KafkaOptions struct {
	kafka.Connection
	Topic   string
	Timeout time.Duration // of one attempt; 0 means KafkaTimeoutDefault
}

// KafkaTimeoutDefault bounds an attempt, in which a leader may have to be looked for.
const KafkaTimeoutDefault = 20 * time.Second

// The headers of a message.
const (
	// KafkaNoticeID is the notice's id: the same when it comes again.
	KafkaNoticeID = "notice-id"
	kafkaType     = "content-type"
)

// NewKafka checks the options; nothing is connected to before the first notice.
func NewKafka(opt KafkaOptions) (*Kafka, error) {
	s, err := kafka.NewSender(opt.Connection, opt.Topic)
	if err != nil {
		return nil, err
	}
	k := &Kafka{sender: s, topic: opt.Topic, timeout: opt.Timeout}
	k.timeout = cmp.Or(k.timeout, KafkaTimeoutDefault)
	return k, nil
}

// Notify implements Receiver. The key is the group, so that what is said of it stays in
// order. A notice that is too large for the topic goes without its evidence.
func (k *Kafka) Notify(ctx context.Context, body []byte, id string) (time.Duration, bool, error) {
	n, err := parse(body)
	if err != nil {
		return 0, false, err
	}
	ctx, cancel := context.WithTimeout(ctx, k.timeout)
	defer cancel()
	headers := map[string]string{KafkaNoticeID: id, kafkaType: "application/json"}
	err = k.sender.Send(ctx, []byte(n.group()), body, headers)
	if errors.Is(err, kafka.ErrTooLarge) {
		short, failed := withoutEvidence(body)
		if failed != nil {
			return 0, false, failed
		}
		err = k.sender.Send(ctx, []byte(n.group()), short, headers)
	}
	return 0, !errors.Is(err, kafka.ErrTooLarge), err
}

// String is what errors call it.
func (k *Kafka) String() string { return "kafka topic " + k.topic }

// Close closes the connections.
func (k *Kafka) Close() error { return k.sender.Close() }
