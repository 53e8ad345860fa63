package demo

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/isowatch/isowatch/cmd/monitor/feed"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/source/kafka"
)

// The demo's topic.
const (
	topic      = "transactions"
	partitions = 4
)

// broker is a Kafka broker inside this process, speaking the real protocol on a
// loopback port.
type broker struct{ cluster *kfake.Cluster }

func startBroker() (*broker, error) {
	c, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		return nil, fmt.Errorf("start the embedded broker: %w", err)
	}
	return &broker{cluster: c}, nil
}

func (b *broker) addrs() []string { return b.cluster.ListenAddrs() }
func (b *broker) close()          { b.cluster.Close() }

// recorder carries records from the clients to the topic, as a recorder beside
// a real application would: the clients never wait for the broker unless the
// queue is full.
type recorder struct {
	queue    chan record.Transaction
	producer *kafka.Producer
}

// queueMax bounds the records between clients and broker.
const queueMax = 10_000

func newRecorder(ctx context.Context, brokers []string) (*recorder, error) {
	p, err := kafka.OpenProducer(ctx, kafka.ProducerOptions{Connection: kafka.Connection{Brokers: brokers}, Topic: topic, Partitions: partitions})
	if err != nil {
		return nil, fmt.Errorf("open the recorder: %w", err)
	}
	return &recorder{queue: make(chan record.Transaction, queueMax), producer: p}, nil
}

// record takes one record in.
func (r *recorder) record(t record.Transaction) { r.queue <- t }

// run sends records until the queue is closed and empty.
func (r *recorder) run(ctx context.Context) error {
	for {
		t, ok := <-r.queue
		if !ok {
			return r.producer.Close()
		}
		batch := []record.Transaction{t}
	more:
		for len(batch) < cap(r.queue) {
			select {
			case t, ok := <-r.queue:
				if !ok {
					break more
				}
				batch = append(batch, t)
			default:
				break more
			}
		}
		if err := feed.Send(ctx, r.producer, batch); err != nil {
			// Clients must not be left waiting for a queue that nobody empties.
			go func() {
				for range r.queue {
				}
			}()
			return fmt.Errorf("record: %w", err)
		}
	}
}

// clock is a wall clock that does not jump: the machine's time at the start,
// then the monotonic clock.
func clock() func() int64 {
	start := time.Now()
	base := start.UnixNano()
	return func() int64 { return base + int64(time.Since(start)) }
}
