package app

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/isowatch/isowatch/alerts/life"
	"github.com/isowatch/isowatch/alerts/page"
	"github.com/isowatch/isowatch/config"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/codec"
	"github.com/isowatch/isowatch/ingest/generate"
	"github.com/isowatch/isowatch/ingest/record"
)

// fetches begins a broker of which so many of three partitions can't be fetched.
func fetches(t *testing.T) (broker *kfake.Cluster, fails *atomic.Int32) {
	t.Helper()
	broker, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(broker.Close)
	fails = new(atomic.Int32)
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
	return broker, fails
}

// TestQuietTopicRecovers: a source that failed works again as soon as it can be read,
// whether or not a record comes.
func TestQuietTopicRecovers(t *testing.T) {
	t.Parallel()
	broker, fails := fetches(t)
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

// The monitor is away for a while, and again in the midst of what it waits for those who write: they may have found the
// source out of reach as long, and one writes later than another what is older. Nothing is lost.
func TestAwayWithTheSource(t *testing.T) {
	t.Parallel()
	const away = 6 * time.Second
	brokers := cluster(t)
	p, st, c := producer(t, brokers), newMemStore("r"), testConfig(brokers)
	at := time.Now().Add(-time.Minute).UnixNano()
	first, second := lostUpdate(1, at), lostUpdate(2, at+int64(20*time.Second))
	latest := record.Transaction{DB: "default", Session: "other", ID: "other", HasTimes: true}
	latest.Start, latest.End = at+int64(40*time.Second), at+int64(40*time.Second)
	latest.Ops = []record.Op{{Kind: record.Write, Key: "other", Value: record.Int(1)}}
	send(t, p, first...)
	r := start(t, c, st, false)
	eventually(t, "it is found", func() bool { return len(st.ids()) == 1 })
	r.stop(t)
	st.mu.Lock()
	st.offsets["kafka "+testTopic+stateSuffix][stateTime] -= int64(away)
	st.mu.Unlock()
	send(t, p, latest)
	for again := range 2 {
		before := st.next()
		r = start(t, c, st, false)
		eventually(t, "it is read, and time passes", func() bool { return st.next() > before+8 })
		if again == 0 {
			r.stop(t)
		}
	}
	send(t, p, second...)
	eventually(t, "it is found", func() bool { return len(st.ids()) == 2 })
	r.stop(t)
	if strings.Contains(r.log.String(), "partial") {
		t.Errorf("coverage is partial")
	}
}

// What is read meanwhile has room, however much there is: the rest is read when those who write have had their time.
func TestReturnedHasRoom(t *testing.T) {
	t.Parallel()
	g, err := generate.New(generate.Config{Level: verdict.SER, Transactions: 3000, Keys: 200, Sessions: 8, Seed: 5, Anomaly: "lost-update", Planted: 1})
	if err != nil {
		t.Fatal(err)
	}
	broker, fails := fetches(t)
	c, st := testConfig(broker.ListenAddrs()), newMemStore("r")
	c.Window.MaxTransactions = 2500
	p := producer(t, broker.ListenAddrs())
	fails.Store(3)
	r := start(t, c, st, false, func(a *App) { a.tuning.records = 50 })
	txns := slices.Collect(g.Transactions())
	began := txns[0].Start
	for i := range txns { // so that few end within lateness
		x := &txns[i]
		x.Start, x.End = began+30*(x.Start-began), began+30*(x.End-began)
	}
	send(t, p, txns...)
	eventually(t, "the source fails", func() bool { _, waits := r.ready.waiting(whoSource); return waits })
	fails.Store(0)
	eventually(t, "it is found", func() bool { return len(st.ids()) > 0 })
	r.stop(t)
	if strings.Contains(r.log.String(), "partial") || !strings.Contains(r.log.String(), "works again") {
		t.Errorf("%s", r.log)
	}
}

// What waits for a missing record is behind what was read, by as much as the metric and the alert say.
func TestLag(t *testing.T) {
	t.Parallel()
	brokers := cluster(t)
	p, c := producer(t, brokers), testConfig(brokers)
	c.Window.Lateness, c.Window.MaxTransaction = time.Hour, 2*time.Hour
	at := time.Now().Add(-10 * time.Minute).UnixNano()
	var txns []record.Transaction
	for i, seq := range []int64{0, 5, 6} {
		x := record.Transaction{DB: "default", Session: "s", ID: strconv.Itoa(i), Seq: seq, HasSeq: true, HasTimes: true}
		x.Start = at + int64(i)*int64(2*time.Minute)
		x.End = x.Start + 1000
		x.Ops = []record.Op{{Kind: record.Write, Key: "x", Value: record.Int(int64(i))}}
		txns = append(txns, x)
	}
	r := start(t, c, newMemStore("r"), false)
	send(t, p, txns[0])
	eventually(t, "it is read", func() bool { return r.metric(t, "records_total") == 1 })
	send(t, p, txns[1:]...)
	eventually(t, "the lag is told", func() bool { return r.metric(t, "watermark_lag_seconds") >= 120 })
	r.stop(t)
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

// TestReadsThatWait: nothing holds that rests on reads of what somebody may still have written, in silence either. When it
// is known that nobody has, what they show is told.
func TestReadsThatWait(t *testing.T) {
	t.Parallel()
	c, st := testConfig(nil), newMemStore()
	c.Source, c.Initial, c.Coverage = config.Source{Stdin: &config.Stdin{}}, record.InitialAbsent, record.CoverageComplete
	c.HTTP.Listen = "127.0.0.1:0"
	in, feed := io.Pipe()
	defer feed.Close()
	r := start(t, c, st, false, func(a *App) { a.stdin = in })
	at, seqs := time.Now().UnixNano(), map[string]int64{}
	write := func(after time.Duration, session string, read, wrote record.Value, key string) {
		x := record.Transaction{DB: "shop", Session: session, Seq: seqs[session], HasSeq: true, HasTimes: true,
			Start: at + int64(after), End: at + int64(after) + 5e6, ID: fmt.Sprint(session, seqs[session]),
			Ops: []record.Op{{Kind: record.Read, Key: key, Value: read}, {Kind: record.Write, Key: key, Value: wrote}}}
		seqs[session]++
		if _, err := feed.Write(append(codec.AppendJSON(nil, &x), '\n')); err != nil {
			t.Fatal(err)
		}
	}
	shop := func() (h page.History) {
		if all := call[page.Status](t, r, "GET", "status", "", 200).Histories; len(all) == 1 {
			h = all[0]
		}
		return h
	}
	null := record.Value{Kind: record.KindNull}
	write(0, "a", null, record.Int(1), "x")
	write(time.Millisecond, "b", null, record.Int(2), "x")
	eventually(t, "two wait", func() bool { return shop().Undecided == 2 })
	if h := shop(); h.Health != life.NotJudged || h.Levels[0].Judged.Transactions > 0 || len(h.Stretches) > 0 {
		t.Errorf("nobody may come any more: %+v", h)
	}
	for i, before := range []record.Value{null, record.Int(0), record.Int(1), record.Int(2), record.Int(3), record.Int(4), record.Int(5), record.Int(6)} {
		write(2*c.Window.MaxTransaction+time.Duration(i)*time.Second, "c", before, record.Int(int64(i)), "y")
	}
	eventually(t, "it is told", func() bool { return len(st.ids()) == 1 && shop().Health == life.Broken })
	r.stop(t)
}
