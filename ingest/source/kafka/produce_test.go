package kafka

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/isowatch/isowatch/ingest/source"
)

func producer(t *testing.T, c *kfake.Cluster, partitions int) *Producer {
	t.Helper()
	p, err := OpenProducer(testContext(t), ProducerOptions{Connection: Connection{Brokers: c.ListenAddrs()}, Topic: topic, Partitions: partitions})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

func TestProducerCreatesTheTopic(t *testing.T) {
	// A cluster that compacts by default: the topic must not be.
	c := fake(t, kfake.NumBrokers(3), kfake.BrokerConfigs(map[string]string{"log.cleanup.policy": "compact"}))
	producer(t, c, 5)
	if info := c.TopicInfo(topic); info == nil {
		t.Fatal("no topic was created")
	}
	if n := len(c.PartitionInfos(topic)); n != 5 {
		t.Errorf("%d partitions, want 5", n)
	}
	s := open(t, options(c))
	if s.Partitions() != 5 {
		t.Errorf("the source sees %d partitions", s.Partitions())
	}
	producer(t, c, 9) // there is one: it stays as it is
	if n := len(c.PartitionInfos(topic)); n != 5 {
		t.Errorf("%d partitions afterwards, want 5", n)
	}
}

// A session's records are in one partition, in order, also when some are too
// large for a batch; and sending survives what passes.
func TestProducerKeepsSessionsInOrder(t *testing.T) {
	t.Parallel()
	c := fake(t, kfake.NumBrokers(3), kfake.BrokerConfigs(map[string]string{"message.max.bytes": fmt.Sprint(10 << 20)}))
	p := producer(t, c, 4)
	const sessions, each = 6, 200
	stamp := time.UnixMilli(1_700_000_000_000)
	for from := 0; from < each; from += each / 4 {
		var batch []source.Message
		for i := from; i < from+each/4; i++ {
			for s := range sessions {
				m := source.Message{Key: fmt.Append(nil, "session ", s), Value: fmt.Append(nil, i), ContentType: "application/json", Time: stamp.UnixNano()}
				if i%100 == 3 && s == 0 {
					m.Value = fmt.Append(m.Value, strings.Repeat(" ", 2<<20))
				}
				batch = append(batch, m)
			}
		}
		if err := p.Send(testContext(t), batch...); err != nil {
			t.Fatal(err)
		}
		c.ShufflePartitionLeaders()
		c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.NotLeaderForPartition, Count: 2})
	}
	opts := options(c)
	opts.UntilEnd = true
	s := open(t, opts)
	next, where := map[string]int{}, map[string]int{}
	for n := 0; n < sessions*each; {
		b, err := s.Read(testContext(t))
		if err != nil {
			t.Fatalf("%v after %d records", err, n)
		}
		for _, m := range b.Messages {
			n++
			key := string(m.Key)
			var v int
			if _, err := fmt.Sscan(string(m.Value), &v); err != nil {
				t.Fatalf("%q: %v", m.Value, err)
			}
			if v != next[key] {
				t.Errorf("%s: %d, want %d", key, v, next[key])
			}
			next[key]++
			if w, ok := where[key]; ok && w != b.Partition {
				t.Errorf("%s is in partitions %d and %d", key, w, b.Partition)
			}
			where[key] = b.Partition
			if m.ContentType != "application/json" || m.Time != stamp.UnixNano() {
				t.Errorf("content type %q, time %d", m.ContentType, m.Time)
			}
		}
	}
}

func TestProducerErrors(t *testing.T) {
	c := fake(t, kfake.NumBrokers(1), kfake.EnableACLs(), kfake.EnableSASL(), kfake.User("PLAIN", "u", "pw", acl(kmsg.ACLOperationDescribe)))
	opts := ProducerOptions{Connection: Connection{Brokers: c.ListenAddrs(), SASL: &SASL{Mechanism: Plain, Username: "u", Password: "pw"}}, Topic: topic}
	_, err := OpenProducer(testContext(t), opts)
	var se *source.StartupError
	if !errors.As(err, &se) || !strings.Contains(err.Error(), "no right to create") {
		t.Errorf("got %v", err)
	}
	if _, err = OpenProducer(testContext(t), ProducerOptions{Connection: opts.Connection}); !errors.As(err, &se) || !strings.Contains(err.Error(), "topic") {
		t.Errorf("without a topic: %v", err)
	}
	if err := c.CreateTopic(topic, 1, nil); err != nil {
		t.Fatal(err)
	}
	p, err := OpenProducer(testContext(t), opts)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if err := p.Send(testContext(t), source.Message{Value: []byte("x")}); err == nil || !strings.Contains(err.Error(), "1 of 1 records not written") {
		t.Errorf("sending without the right to: %v", err)
	}
}
