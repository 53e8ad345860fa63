package kafka

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	kafkago "github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/isowatch/isowatch/ingest/source"
	"github.com/isowatch/isowatch/internal/wait"
)

// topology is where the partitions of the topic are. It is a value: a refresh
// makes a new one.
type topology struct {
	// id tells a topic from a later one of the same name; zero if the brokers
	// have no identities (before Kafka 2.8).
	id      [16]byte
	leaders []int32 // broker id by partition; -1 for none
}

// errTopicMissing: the cluster has no such topic.
var errTopicMissing = errors.New("the cluster has no such topic")

// leader is the broker to ask for a partition.
func (t *topology) leader(partition int) (int32, error) {
	if partition >= len(t.leaders) {
		return 0, fmt.Errorf("the topic has only %d partitions", len(t.leaders))
	}
	if t.leaders[partition] < 0 {
		return 0, errors.New("the partition has no leader")
	}
	return t.leaders[partition], nil
}

// askTopology asks any broker for the topic.
func askTopology(ctx context.Context, w *wire, name string) (*topology, error) {
	req := kmsg.NewPtrMetadataRequest()
	topic := kmsg.NewMetadataRequestTopic()
	topic.Topic = &name
	req.Topics = append(req.Topics, topic)
	resp, err := request[*kmsg.MetadataResponse](ctx, w, anyBroker, req)
	if err != nil {
		return nil, err
	}
	if len(resp.Topics) != 1 {
		return nil, fmt.Errorf("asked for one topic and got %d", len(resp.Topics))
	}
	t := resp.Topics[0]
	switch code := kafkago.Error(t.ErrorCode); {
	case code == kafkago.UnknownTopicOrPartition:
		return nil, errTopicMissing
	case code != 0:
		return nil, code
	case len(t.Partitions) == 0:
		return nil, errors.New("the topic has no partitions yet")
	}
	out := &topology{id: t.TopicID, leaders: make([]int32, len(t.Partitions))}
	for i := range out.leaders {
		out.leaders[i] = -1
	}
	for _, p := range t.Partitions {
		if p.Partition < 0 || int(p.Partition) >= len(out.leaders) {
			return nil, fmt.Errorf("partition %d of %d", p.Partition, len(out.leaders))
		}
		out.leaders[p.Partition] = p.Leader
	}
	return out, nil
}

// Timestamps with a meaning of their own in ListOffsets.
const (
	offsetLatest   = -1
	offsetEarliest = -2
)

// askOffset asks the leader for an offset of a partition: the earliest, the
// last stable one, or the first at or after a timestamp in milliseconds (-1 if
// there is none).
func askOffset(ctx context.Context, w *wire, t *topology, topic string, partition int, timestamp int64) (int64, error) {
	leader, err := t.leader(partition)
	if err != nil {
		return 0, err
	}
	req := kmsg.NewPtrListOffsetsRequest()
	req.IsolationLevel = 1
	rt := kmsg.NewListOffsetsRequestTopic()
	rt.Topic = topic
	rp := kmsg.NewListOffsetsRequestTopicPartition()
	rp.Partition = int32(partition)
	rp.Timestamp = timestamp
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	resp, err := request[*kmsg.ListOffsetsResponse](ctx, w, leader, req)
	if err != nil {
		return 0, err
	}
	if len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1 {
		return 0, errors.New("asked for the offset of one partition and got others")
	}
	p := resp.Topics[0].Partitions[0]
	if p.ErrorCode != 0 {
		return 0, codeError(p.ErrorCode)
	}
	return p.Offset, nil
}

// startOffset is where a partition begins without a stored offset.
func (s *Source) startOffset(ctx context.Context, t *topology, partition int) (int64, error) {
	timestamp := int64(offsetEarliest)
	switch {
	case s.opts.Latest:
		timestamp = offsetLatest
	case !s.opts.Since.IsZero():
		timestamp = max(s.opts.Since.UnixMilli(), 0)
	}
	offset, err := askOffset(ctx, s.conns.wire, t, s.opts.Topic, partition, timestamp)
	if err == nil && offset < 0 { // no record that late
		offset, err = askOffset(ctx, s.conns.wire, t, s.opts.Topic, partition, offsetLatest)
	}
	return offset, err
}

// check looks at what must be true of the topic before it is read: it exists,
// it is not compacted, it may be read. It returns a *source.StartupError if
// not, and another error where asking again may help.
func (s *Source) check(ctx context.Context) (*topology, error) {
	var t *topology
	// A broker that has just started may not know the topic yet.
	for try := 0; ; try++ {
		var err error
		if t, err = askTopology(ctx, s.conns.wire, s.opts.Topic); err == nil {
			break
		}
		if !errors.Is(err, errTopicMissing) {
			return nil, err
		}
		if try == 2 {
			return nil, &source.StartupError{What: fmt.Sprintf("kafka topic %q", s.opts.Topic),
				Do: "create it, or set source.kafka.topic", Err: err}
		}
		if err := wait.Sleep(ctx, 300*time.Millisecond); err != nil {
			return nil, err
		}
	}
	if err := s.checkPolicy(ctx); err != nil {
		return nil, err
	}
	// Describing a topic and reading it are two rights; a fetch needs the second.
	leader, err := t.leader(0)
	if err != nil {
		return nil, err
	}
	from, err := askOffset(ctx, s.conns.wire, t, s.opts.Topic, 0, offsetEarliest)
	if err != nil {
		return nil, err
	}
	f, err := ask{leader: leader, topic: s.opts.Topic, topicID: t.id, next: from, end: from,
		lastEpoch: -1, bytesMax: 1, limits: ordinary}.send(ctx, s.conns.wire)
	if err != nil {
		return nil, err
	}
	if f.code != 0 && kafkago.Error(f.code) != kafkago.OffsetOutOfRange {
		return nil, codeError(f.code)
	}
	return t, nil
}

// checkPolicy refuses a compacted topic: compaction removes records that were
// written under a key again, which are most of a session's.
func (s *Source) checkPolicy(ctx context.Context) error {
	const policy = "cleanup.policy"
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	client := &kafkago.Client{Addr: s.conns.addr, Transport: s.conns.transport}
	resp, err := client.DescribeConfigs(ctx,
		&kafkago.DescribeConfigsRequest{Resources: []kafkago.DescribeConfigRequestResource{{
			ResourceType: kafkago.ResourceTypeTopic, ResourceName: s.opts.Topic, ConfigNames: []string{policy}}}})
	if err != nil {
		return err
	}
	for _, r := range resp.Resources {
		if r.Error != nil {
			if errors.Is(r.Error, kafkago.TopicAuthorizationFailed) || errors.Is(r.Error, kafkago.ClusterAuthorizationFailed) {
				s.warn(fmt.Sprintf("kafka topic %q: no right to describe its configuration (%v), so it is not known whether it "+
					"is compacted: "+
					"a compacted topic loses records; grant DESCRIBE_CONFIGS to have it checked", s.opts.Topic, r.Error))
				continue
			}
			return r.Error
		}
		for _, e := range r.ConfigEntries {
			if e.ConfigName == policy && strings.Contains(e.ConfigValue, "compact") {
				return &source.StartupError{
					What: fmt.Sprintf("kafka topic %q is compacted (%s=%s), so Kafka deletes records that a verdict needs",
						s.opts.Topic, policy, e.ConfigValue),
					Do: "set its cleanup.policy to delete, or name another topic"}
			}
		}
	}
	return nil
}
