package kafka

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/isowatch/isowatch/ingest/source"
	"github.com/isowatch/isowatch/internal/lab/leak"
)

// TestMain has tests run beside each other whatever the number of processors, as most of the time they wait for a broker.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	leak.Main(m)
}

const topic = "transactions"

// patience is how long a test waits for what must happen; nothing asserts on
// how long it took.
const patience = 10 * time.Minute

func testContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// fake starts an in-process cluster.
func fake(t testing.TB, opts ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	c, err := kfake.NewCluster(opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// client is an independent Kafka client, to produce with.
func client(t testing.TB, c *kfake.Cluster, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	cl, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(c.ListenAddrs()...),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.DefaultProduceTopic(topic)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return cl
}

// produce writes one record and returns its offset.
func produce(t testing.TB, cl *kgo.Client, partition int32, value string) int64 {
	t.Helper()
	r, err := cl.ProduceSync(testContext(t), &kgo.Record{Partition: partition, Key: []byte("s"), Value: []byte(value)}).First()
	if err != nil {
		t.Fatal(err)
	}
	return r.Offset
}

// txn writes values in one transaction and ends it.
func txn(t testing.TB, cl *kgo.Client, end kgo.TransactionEndTry, partition int32, values ...string) {
	t.Helper()
	begin(t, cl, partition, values...)
	if err := cl.EndTransaction(testContext(t), end); err != nil {
		t.Fatal(err)
	}
}

// begin writes values in a transaction that stays open.
func begin(t testing.TB, cl *kgo.Client, partition int32, values ...string) {
	t.Helper()
	if err := cl.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	for _, v := range values {
		produce(t, cl, partition, v)
	}
}

// options for a source of the fake cluster, quick to retry.
func options(c *kfake.Cluster) Options {
	return Options{Connection: Connection{Brokers: c.ListenAddrs()}, Topic: topic,
		RetryMin: 2 * time.Millisecond, RetryMax: 50 * time.Millisecond, Refresh: 50 * time.Millisecond, Wait: 100 * time.Millisecond}
}

func open(t testing.TB, opts Options) *Source {
	t.Helper()
	s, err := Open(testContext(t), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// taken is what a source delivered.
type taken struct {
	values   []string // "partition/offset:value", per partition in order
	gaps     []source.Gap
	next     map[int]int64
	caughtUp map[int]bool
	midst    map[int]bool // partitions whose first batch said so
}

func (g *taken) add(t testing.TB, b source.Batch) {
	t.Helper()
	if g.next == nil {
		g.next, g.caughtUp, g.midst = map[int]int64{}, map[int]bool{}, map[int]bool{}
	}
	if _, old := g.next[b.Partition]; b.Midst && old {
		t.Errorf("partition %d is read from its middle on, which a batch says that is not the first", b.Partition)
	}
	g.midst[b.Partition] = g.midst[b.Partition] || b.Midst
	last := int64(-1)
	for _, m := range b.Messages {
		if m.Pos.Partition != b.Partition || m.Pos.Offset <= last || m.Pos.Offset >= b.Next || !m.Pos.Kafka || m.Pos.Source != topic {
			t.Errorf("message at %v (after offset %d) in a batch of partition %d with next %d", m.Pos, last, b.Partition, b.Next)
		}
		last = m.Pos.Offset
		g.values = append(g.values, fmt.Sprintf("%d/%d:%s", b.Partition, m.Pos.Offset, m.Value))
	}
	g.gaps = append(g.gaps, b.Gaps...)
	g.next[b.Partition], g.caughtUp[b.Partition] = b.Next, b.CaughtUp
}

// take reads until done says so.
func take(t testing.TB, s *Source, done func(*taken) bool) *taken {
	t.Helper()
	var g taken
	ctx := testContext(t)
	for !done(&g) {
		b, err := s.Read(ctx)
		if err != nil {
			t.Fatalf("%v after %v, gaps %v, next %v", err, g.values, g.gaps, g.next)
		}
		g.add(t, b)
	}
	return &g
}

// values waits for n values.
func values(n int) func(*taken) bool { return func(g *taken) bool { return len(g.values) >= n } }

// drain reads a source with UntilEnd to its end.
func drain(t testing.TB, s *Source) *taken {
	t.Helper()
	var g taken
	ctx := testContext(t)
	for {
		b, err := s.Read(ctx)
		if errors.Is(err, io.EOF) {
			slices.Sort(g.values)
			return &g
		}
		if err != nil {
			t.Fatalf("%v after %v, gaps %v, next %v", err, g.values, g.gaps, g.next)
		}
		g.add(t, b)
	}
}

func want(t testing.TB, got *taken, values ...string) {
	t.Helper()
	if !slices.Equal(got.values, values) {
		t.Errorf("got  %q\nwant %q", got.values, values)
	}
}

func wantGaps(t testing.TB, got *taken, gaps ...source.Gap) {
	t.Helper()
	have := slices.Clone(got.gaps)
	for i := range have {
		if have[i].Why == "" || have[i].Source != topic {
			t.Errorf("gap %+v names no cause or source", have[i])
		}
		have[i].Why, have[i].Source = "", ""
	}
	if !slices.Equal(have, gaps) {
		t.Errorf("got gaps  %+v\nwant gaps %+v", have, gaps)
	}
}
