package app

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/isowatch/isowatch/config"
	"github.com/isowatch/isowatch/ingest/codec"
	"github.com/isowatch/isowatch/ingest/source/kafka"
)

// TestQuietTopicRecovers: a source that failed works again as soon as it can be read,
// whether or not a record comes.
func TestQuietTopicRecovers(t *testing.T) {
	t.Parallel()
	broker, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(broker.Close)
	var fails atomic.Int32 // how many of the three partitions do
	broker.ControlKey(int16(kmsg.Fetch), func(r kmsg.Request) (kmsg.Response, error, bool) {
		broker.KeepControl()
		asked := r.(*kmsg.FetchRequest)
		if !slices.ContainsFunc(asked.Topics, func(t kmsg.FetchRequestTopic) bool {
			return slices.ContainsFunc(t.Partitions, func(p kmsg.FetchRequestTopicPartition) bool { return p.Partition < fails.Load() })
		}) {
			return nil, nil, false
		}
		answer := asked.ResponseKind().(*kmsg.FetchResponse)
		for _, topic := range asked.Topics {
			out := kmsg.NewFetchResponseTopic()
			out.Topic, out.TopicID = topic.Topic, topic.TopicID
			for _, p := range topic.Partitions {
				part := kmsg.NewFetchResponseTopicPartition()
				part.Partition, part.ErrorCode = p.Partition, kerr.NotLeaderForPartition.Code
				out.Partitions = append(out.Partitions, part)
			}
			answer.Topics = append(answer.Topics, out)
		}
		return answer, nil, true
	})
	producer(t, broker.ListenAddrs())
	r := start(t, testConfig(broker.ListenAddrs()), newMemStore("r"), false)
	is := func(failing bool) func() bool {
		return func() bool { _, waits := r.ready.waiting(whoSource); return waits == failing }
	}
	eventually(t, "the topic is read", func() bool { _, waits := r.ready.waiting(whoInput); return !waits })
	for _, partitions := range []int32{3, 1} {
		fails.Store(partitions)
		eventually(t, "the source fails", is(true))
		fails.Store(0)
		eventually(t, "the source works again", is(false))
	}
	r.stop(t)
}

// TestFailing: a source works again when each part of it that failed does.
func TestFailing(t *testing.T) {
	var f failing
	broken := errors.New("broken")
	f.begin(&kafka.PartitionError{Partition: 2, Err: broken})
	f.begin(fmt.Errorf("wrapped: %w", &kafka.PartitionError{Partition: 1, Err: broken}))
	f.begin(broken) // is over with the next batch, whatever it is of
	for _, step := range []struct {
		batch int
		works bool
	}{{0, false}, {1, false}, {0, false}, {2, true}, {1, true}} {
		if works := f.end(step.batch); works != step.works {
			t.Errorf("after a batch of partition %d: works %v, want %v", step.batch, works, step.works)
		}
	}
}

// TestSilentPipe: what came last through a pipe of this process, as records of a proxy and a canary do, is judged though
// nothing follows.
func TestSilentPipe(t *testing.T) {
	t.Parallel()
	c, st := testConfig(nil), newMemStore()
	c.Source = config.Source{Stdin: &config.Stdin{}}
	var lines []byte
	for _, x := range lostUpdate(1, time.Now().UnixNano()) {
		lines = append(codec.AppendJSON(lines, &x), '\n')
	}
	in, feed := io.Pipe()
	defer feed.Close()
	r := start(t, c, st, false, func(a *App) { a.stdin = in })
	if _, err := feed.Write(lines); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is found", func() bool { return len(st.ids()) == 1 })
	r.stop(t)
}
