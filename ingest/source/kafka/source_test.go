package kafka

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/isowatch/isowatch/ingest/source"
)

func TestAbortedAndMarkersAreHidden(t *testing.T) {
	c := fake(t, kfake.NumBrokers(1), kfake.SeedTopics(1, topic))
	plain := client(t, c)
	a, b := client(t, c, kgo.TransactionalID("a")), client(t, c, kgo.TransactionalID("b"))
	produce(t, plain, 0, "p0")                                             // 0
	txn(t, a, kgo.TryCommit, 0, "a1", "a2")                                // 1 2, marker 3
	txn(t, a, kgo.TryAbort, 0, "x1", "x2")                                 // 4 5, marker 6
	txn(t, b, kgo.TryAbort, 0, "y1")                                       // 7, marker 8
	begin(t, a, 0, "x3")                                                   // 9, of a transaction to be aborted
	txn(t, b, kgo.TryCommit, 0, "b1")                                      // 10, marker 11: between
	produce(t, plain, 0, "p1")                                             // 12
	produce(t, a, 0, "x4")                                                 // 13
	if err := a.EndTransaction(testContext(t), kgo.TryAbort); err != nil { // marker 14
		t.Fatal(err)
	}
	txn(t, a, kgo.TryCommit, 0, "a3") // 15, marker 16: the same producer again

	opts := options(c)
	opts.UntilEnd = true
	all := []string{"0/0:p0", "0/1:a1", "0/2:a2", "0/10:b1", "0/12:p1", "0/15:a3"}
	t.Run("from the beginning", func(t *testing.T) {
		got := take(t, open(t, opts), func(g *taken) bool { return g.next[0] == 17 })
		want(t, got, all...)
		wantGaps(t, got)
	})
	// Wherever it resumes, also amid hidden records, it sees what follows.
	for from := int64(0); from <= 17; from++ {
		var rest []string
		for _, v := range all {
			var offset int64
			if _, err := fmt.Sscanf(v, "0/%d:", &offset); err != nil {
				t.Fatal(err)
			}
			if offset >= from {
				rest = append(rest, v)
			}
		}
		opts.Offsets = map[int]int64{0: from}
		s := open(t, opts)
		var got taken
		for {
			batch, err := s.Read(testContext(t))
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			got.add(t, batch)
		}
		want(t, &got, rest...)
		wantGaps(t, &got)
		s.Close()
	}
}

func TestOpenTransactionHoldsBack(t *testing.T) {
	c := fake(t, kfake.NumBrokers(1), kfake.SeedTopics(1, topic))
	plain, a := client(t, c), client(t, c, kgo.TransactionalID("a"))
	produce(t, plain, 0, "before")
	begin(t, a, 0, "inside")
	produce(t, plain, 0, "after")

	until := options(c)
	until.UntilEnd = true
	want(t, drain(t, open(t, until)), "0/0:before")

	s := open(t, options(c))
	got := take(t, s, func(g *taken) bool { return g.caughtUp[0] })
	want(t, got, "0/0:before")
	if err := a.EndTransaction(testContext(t), kgo.TryCommit); err != nil {
		t.Fatal(err)
	}
	want(t, take(t, s, func(g *taken) bool { return g.next[0] == 4 }), "0/1:inside", "0/2:after")
}

func TestResumeReadsEveryRecordOnce(t *testing.T) {
	t.Parallel()
	c := fake(t, kfake.NumBrokers(3), kfake.SeedTopics(4, topic))
	cl := client(t, c)
	const each = 50
	for i := range each {
		for p := range int32(4) {
			produce(t, cl, p, fmt.Sprint(i))
		}
	}
	opts := options(c)
	opts.FetchMax = 400 // several fetches per partition
	seen := map[string]int{}
	for stop := 1; len(seen) < 4*each; stop++ {
		s := open(t, opts)
		got := take(t, s, values(min(stop, 4*each-len(seen))))
		for _, v := range got.values {
			seen[v]++
		}
		s.Close()
		opts.Offsets = merge(opts.Offsets, got.next)
	}
	for v, n := range seen {
		if n != 1 {
			t.Errorf("%s read %d times", v, n)
		}
	}
}

func merge(into, from map[int]int64) map[int]int64 {
	if into == nil {
		into = map[int]int64{}
	}
	for k, v := range from {
		into[k] = v
	}
	return into
}

func TestStart(t *testing.T) {
	c := fake(t, kfake.NumBrokers(1), kfake.SeedTopics(2, topic))
	cl := client(t, c)
	at := func(ms int64, p int32, v string) {
		if err := cl.ProduceSync(testContext(t), &kgo.Record{Partition: p, Timestamp: time.UnixMilli(ms), Value: []byte(v)}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	at(1000, 0, "a")
	at(2000, 0, "b")
	at(3000, 0, "c")
	at(1000, 1, "d")
	var none time.Time
	for _, tc := range []struct {
		latest  bool
		since   time.Time
		offsets map[int]int64
		want    []string
	}{
		{false, none, nil, []string{"0/0:a", "0/1:b", "0/2:c", "1/0:d"}},
		{false, none, map[int]int64{0: 1}, []string{"0/1:b", "0/2:c", "1/0:d"}},
		{true, none, map[int]int64{0: 1}, []string{"0/1:b", "0/2:c"}},
		{true, none, nil, nil},
		{false, none, map[int]int64{1: 1}, []string{"0/0:a", "0/1:b", "0/2:c"}},
		{false, time.UnixMilli(2000), nil, []string{"0/1:b", "0/2:c"}},
	} {
		opts := options(c)
		opts.UntilEnd, opts.Offsets, opts.Latest, opts.Since = true, tc.offsets, tc.latest, tc.since
		got := drain(t, open(t, opts))
		want(t, got, tc.want...)
		wantGaps(t, got)
	}
}

func TestDeletedRecordsAreAGap(t *testing.T) {
	c := fake(t, kfake.NumBrokers(1), kfake.SeedTopics(1, topic))
	cl := client(t, c)
	for i := range 10 {
		produce(t, cl, 0, fmt.Sprint(i))
	}
	if err := c.DeleteRecords(topic, 0, 6); err != nil {
		t.Fatal(err)
	}
	opts := options(c)
	opts.UntilEnd = true
	opts.Offsets = map[int]int64{0: 2}
	got := drain(t, open(t, opts))
	want(t, got, "0/6:6", "0/7:7", "0/8:8", "0/9:9")
	wantGaps(t, got, source.Gap{From: 2, To: 6})

	// Who never read the deleted records misses nothing, but is told that there were some.
	opts.Offsets = nil
	got = drain(t, open(t, opts))
	want(t, got, "0/6:6", "0/7:7", "0/8:8", "0/9:9")
	wantGaps(t, got)
	opts.UntilEnd = false
	sent := false
	got = take(t, open(t, opts), func(g *taken) bool {
		if !sent && len(g.values) == 4 {
			sent = true
			produce(t, cl, 0, "10")
		}
		return len(g.values) == 5
	})
	if !got.midst[0] {
		t.Error("it is not told that the partition is read from its middle on")
	}
}

func TestStoredOffsetBeyondTheLog(t *testing.T) {
	c := fake(t, kfake.NumBrokers(1), kfake.SeedTopics(1, topic))
	cl := client(t, c)
	produce(t, cl, 0, "new0")
	produce(t, cl, 0, "new1")
	for _, until := range []bool{true, false} {
		opts := options(c)
		opts.UntilEnd = until
		opts.Offsets = map[int]int64{0: 100}
		s := open(t, opts)
		got := take(t, s, values(2))
		want(t, got, "0/0:new0", "0/1:new1")
		wantGaps(t, got, source.Gap{From: 100, To: 100})
		if until {
			want(t, drain(t, s))
		}
	}
}

func TestRecreatedTopicIsReadFromItsBeginning(t *testing.T) {
	c := fake(t, kfake.NumBrokers(1), kfake.SeedTopics(1, topic))
	cl := client(t, c)
	produce(t, cl, 0, "old0")
	produce(t, cl, 0, "old1")
	s := open(t, options(c))
	want(t, take(t, s, values(2)), "0/0:old0", "0/1:old1")
	if err := c.DeleteTopic(topic); err != nil {
		t.Fatal(err)
	}
	if err := c.CreateTopic(topic, 1, nil); err != nil {
		t.Fatal(err)
	}
	again := client(t, c) // one that does not know the old topic
	for i := range 5 {    // longer than the old one: the offset alone tells nothing
		produce(t, again, 0, fmt.Sprint("new", i))
	}
	got := take(t, s, values(5))
	want(t, got, "0/0:new0", "0/1:new1", "0/2:new2", "0/3:new3", "0/4:new4")
	wantGaps(t, got, source.Gap{From: 2, To: 2})
}

// The stored identity tells a topic that was created anew while nobody looked,
// also when the new one is longer.
func TestTopicRecreatedBetweenRuns(t *testing.T) {
	c := fake(t, kfake.NumBrokers(1), kfake.SeedTopics(1, topic))
	cl := client(t, c)
	produce(t, cl, 0, "old0")
	produce(t, cl, 0, "old1")
	opts := options(c)
	opts.UntilEnd = true
	opts.Offsets = map[int]int64{}
	read := func() *taken {
		s := open(t, opts)
		defer s.Close()
		var g taken
		for {
			b, err := s.Read(testContext(t))
			if errors.Is(err, io.EOF) {
				return &g
			}
			if err != nil {
				t.Fatal(err)
			}
			g.add(t, b)
			opts.Offsets[b.Partition], opts.Offsets[source.IdentityKey(b.Partition)] = b.Next, b.Identity
		}
	}
	want(t, read(), "0/0:old0", "0/1:old1")
	if err := c.DeleteTopic(topic); err != nil {
		t.Fatal(err)
	}
	if err := c.CreateTopic(topic, 1, nil); err != nil {
		t.Fatal(err)
	}
	again := client(t, c)
	for i := range 4 {
		produce(t, again, 0, fmt.Sprint("new", i))
	}
	got := read()
	want(t, got, "0/0:new0", "0/1:new1", "0/2:new2", "0/3:new3")
	wantGaps(t, got, source.Gap{From: 2, To: 2})
	produce(t, again, 0, "new4")
	got = read()
	want(t, got, "0/4:new4")
	wantGaps(t, got)
}

func TestLeaderMovesAndFaults(t *testing.T) {
	c := fake(t, kfake.NumBrokers(3), kfake.SeedTopics(3, topic))
	cl := client(t, c)
	opts := options(c)
	opts.OnRetry = func(err error) { t.Log(err) }
	s := open(t, opts)
	n := 0
	put := func() {
		for p := range int32(3) {
			produce(t, cl, p, fmt.Sprint(n))
		}
		n++
	}
	for _, disturb := range []func(){
		func() {},
		c.ShufflePartitionLeaders,
		func() {
			for p := range int32(3) {
				if err := c.MoveTopicPartition(topic, p, (c.LeaderFor(topic, p)+1)%3); err != nil {
					t.Fatal(err)
				}
			}
		},
		func() { c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Err: kerr.NotLeaderForPartition, Count: 5}) },
		func() { c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Err: kerr.UnknownServerError, Count: 5}) },
		func() { c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Err: kerr.KafkaStorageError, Count: 3}) },
		func() { c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Metadata}, Err: kerr.LeaderNotAvailable, Count: 3}) },
		func() { c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Err: kerr.OffsetOutOfRange, Count: 3}) },
		func() { // the connection breaks instead of an answer
			broken := 0
			c.ControlKey(int16(kmsg.Fetch), func(kmsg.Request) (kmsg.Response, error, bool) {
				broken++
				c.KeepControl()
				return nil, errors.New("gone"), broken < 4
			})
		},
	} {
		t.Log("round", n)
		disturb()
		put()
		got := take(t, s, values(3))
		wantGaps(t, got)
		for _, v := range got.values {
			if !strings.HasSuffix(v, fmt.Sprintf("/%d:%d", n-1, n-1)) {
				t.Errorf("round %d delivered %s", n-1, v)
			}
		}
	}
}

// A broker that hangs and answers in the end was out of reach as one that fails: those who write may have tried in vain.
func TestBrokerHangs(t *testing.T) {
	t.Parallel()
	c := fake(t, kfake.NumBrokers(1), kfake.SeedTopics(1, topic))
	cl := client(t, c)
	hung, works := make(chan error, 10), make(chan int, 10)
	opts := options(c)
	opts.OnRetry = func(err error) { hung <- err }
	opts.OnWorks = func(partition int) { works <- partition }
	s := open(t, opts)
	produce(t, cl, 0, "a")
	take(t, s, values(1))
	c.ControlKey(int16(kmsg.Fetch), func(kmsg.Request) (kmsg.Response, error, bool) {
		time.Sleep(waitDefault + hangMin + time.Second)
		return nil, nil, false
	})
	produce(t, cl, 0, "b")
	produce(t, cl, 0, "c")
	take(t, s, values(2))
	var of *PartitionError
	if err := <-hung; !errors.As(err, &of) || !strings.Contains(err.Error(), "answered only after") {
		t.Error(err)
	}
	if p := <-works; p != 0 {
		t.Errorf("partition %d works again", p)
	}
}

// One that goes on to answer slowly is slow, and no outage.
func TestSlowBroker(t *testing.T) {
	p := partition{s: &Source{opts: Options{Wait: waitDefault}}}
	at := time.Unix(1000, 0)
	for i, c := range []struct {
		pause, took time.Duration
		hangs       bool
	}{
		{0, time.Second, false},
		{0, 2 * time.Second, true},
		{0, 2 * time.Second, false},
		{0, time.Second, false},
		{50 * time.Second, 20 * time.Second, false},
		{hangAgain + 1, time.Second, false},
		{0, 20 * time.Second, true},
	} {
		at = at.Add(c.pause)
		if got := p.hangs(at, at.Add(c.took)); got != c.hangs {
			t.Errorf("%d: it hangs: %v", i, got)
		}
		at = at.Add(c.took)
	}
}

func TestBrokerGoneAndBack(t *testing.T) {
	c := fake(t, kfake.NumBrokers(3), kfake.SeedTopics(3, topic))
	cl := client(t, c)
	retried := make(chan struct{}, 1)
	var mu sync.Mutex
	fails, works := map[int]bool{}, map[int]bool{}
	opts := options(c)
	opts.OnWorks = func(partition int) {
		mu.Lock()
		defer mu.Unlock()
		if works[partition] = true; !fails[partition] {
			t.Errorf("partition %d works again, and did not fail", partition)
		}
		delete(fails, partition)
	}
	opts.OnRetry = func(err error) {
		var of *PartitionError
		if errors.As(err, &of) {
			mu.Lock()
			defer mu.Unlock()
			fails[of.Partition] = true
		}
		select {
		case retried <- struct{}{}:
		default:
		}
	}
	s := open(t, opts)
	for p := range int32(3) {
		produce(t, cl, p, "a")
	}
	take(t, s, values(3))
	if err := c.RemoveNode(c.LeaderFor(topic, 1)); err != nil {
		t.Fatal(err)
	}
	select {
	case <-retried:
	case <-time.After(patience):
		t.Fatal("nobody noticed that the broker is gone")
	}
	for p := range int32(3) {
		produce(t, cl, p, "b")
	}
	got := take(t, s, values(3))
	wantGaps(t, got)
	mu.Lock()
	defer mu.Unlock()
	if len(fails) > 0 || !works[1] { // what comes of it is behind that it works
		t.Errorf("%v fail, %v worked again", fails, works)
	}
}

func TestAddedPartitionsAreReadFromTheirBeginning(t *testing.T) {
	c := fake(t, kfake.NumBrokers(2), kfake.SeedTopics(1, topic))
	s := open(t, options(c))
	if s.Partitions() != 1 {
		t.Errorf("%d partitions, want 1", s.Partitions())
	}
	cl := client(t, c)
	produce(t, cl, 0, "a")
	req := kmsg.NewPtrCreatePartitionsRequest()
	rt := kmsg.NewCreatePartitionsRequestTopic()
	rt.Topic, rt.Count = topic, 3
	req.Topics = append(req.Topics, rt)
	if _, err := req.RequestWith(testContext(t), cl); err != nil {
		t.Fatal(err)
	}
	more := client(t, c)
	for p := range int32(3) {
		produce(t, more, p, "b")
	}
	got := take(t, s, values(4))
	wantGaps(t, got)
	if s.Partitions() != 3 {
		t.Errorf("%d partitions, want 3", s.Partitions())
	}
}

func TestEmptyTopicEndsAndCatchesUp(t *testing.T) {
	c := fake(t, kfake.NumBrokers(1), kfake.SeedTopics(3, topic))
	opts := options(c)
	take(t, open(t, opts), func(g *taken) bool { return g.caughtUp[0] && g.caughtUp[1] && g.caughtUp[2] })
	opts.UntilEnd = true
	want(t, drain(t, open(t, opts)))
}

func TestUntilEndLeavesOutWhatCameLater(t *testing.T) {
	c := fake(t, kfake.NumBrokers(1), kfake.SeedTopics(1, topic))
	cl := client(t, c)
	for i := range 3 {
		produce(t, cl, 0, fmt.Sprint(i))
	}
	opts := options(c)
	opts.UntilEnd = true
	s := open(t, opts)
	produce(t, cl, 0, "later")
	got := drain(t, s)
	want(t, got, "0/0:0", "0/1:1", "0/2:2")
}

func TestMessageFields(t *testing.T) {
	c := fake(t, kfake.NumBrokers(1), kfake.SeedTopics(1, topic))
	cl := client(t, c)
	stamp := time.UnixMilli(1_700_000_000_123)
	for _, codec := range []kgo.CompressionCodec{kgo.NoCompression(), kgo.GzipCompression(), kgo.SnappyCompression(), kgo.Lz4Compression(), kgo.ZstdCompression()} {
		comp := client(t, c, kgo.ProducerBatchCompression(codec))
		if err := comp.ProduceSync(testContext(t), &kgo.Record{Key: []byte("session"), Value: []byte(strings.Repeat("v", 2000)), Timestamp: stamp,
			Headers: []kgo.RecordHeader{{Key: "other", Value: []byte("o")}, {Key: "Content-Type", Value: []byte("application/x-protobuf")}}}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	if err := cl.ProduceSync(testContext(t), &kgo.Record{}).FirstErr(); err != nil { // no key, no value
		t.Fatal(err)
	}
	opts := options(c)
	opts.UntilEnd = true
	s := open(t, opts)
	var all []source.Message
	for {
		b, err := s.Read(testContext(t))
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, b.Messages...)
	}
	if len(all) != 6 {
		t.Fatalf("%d messages", len(all))
	}
	for i, m := range all[:5] {
		if string(m.Key) != "session" || len(m.Value) != 2000 || m.ContentType != "application/x-protobuf" || m.Time != stamp.UnixNano() || m.Oversize != 0 {
			t.Errorf("message %d: key %q, %d bytes, %q, time %d, oversize %d", i, m.Key, len(m.Value), m.ContentType, m.Time, m.Oversize)
		}
	}
	if m := all[5]; m.Key != nil || m.Value != nil || m.ContentType != "" {
		t.Errorf("the empty message came as %+v", m)
	}
}

func TestOversizeIsDeliveredCut(t *testing.T) {
	t.Parallel()
	c := fake(t, kfake.NumBrokers(1), kfake.SeedTopics(1, topic),
		kfake.BrokerConfigs(map[string]string{"message.max.bytes": fmt.Sprint(100 << 20)}))
	const size = 50 << 20
	for _, codec := range []kgo.CompressionCodec{kgo.NoCompression(), kgo.ZstdCompression()} {
		cl := client(t, c, kgo.ProducerBatchMaxBytes(64<<20), kgo.BrokerMaxWriteBytes(200<<20), kgo.ProducerBatchCompression(codec))
		produce(t, cl, 0, "small")
		produce(t, cl, 0, strings.Repeat("large", size/5))
		produce(t, cl, 0, "small again")
	}
	opts := options(c)
	opts.UntilEnd = true
	s := open(t, opts)
	var got []string
	for {
		b, err := s.Read(testContext(t))
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(b.Gaps) > 0 {
			t.Errorf("gaps %v", b.Gaps)
		}
		for _, m := range b.Messages {
			got = append(got, fmt.Sprintf("%d:%d:%d:%s", m.Pos.Offset, m.Oversize, len(m.Value), m.Value[:5]))
		}
	}
	wantText := "0:0:5:small 1:52428800:65536:large 2:0:11:small 3:0:5:small 4:52428800:65536:large 5:0:11:small"
	if text := strings.Join(got, " "); text != wantText {
		t.Errorf("got  %s\nwant %s", text, wantText)
	}
}

func TestReadEndsWithItsContextAndClose(t *testing.T) {
	c := fake(t, kfake.NumBrokers(1), kfake.SeedTopics(1, topic))
	s := open(t, options(c))
	take(t, s, func(g *taken) bool { return g.caughtUp[0] })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Read(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := s.Read(t.Context())
		done <- err
	}()
	s.Close()
	if err := <-done; !errors.Is(err, ErrClosed) {
		t.Errorf("got %v, want ErrClosed", err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
}
