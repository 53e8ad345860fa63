package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kfake"
	"go.uber.org/goleak"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/alerts/life"
	"github.com/isowatch/isowatch/cmd/monitor/feed"
	"github.com/isowatch/isowatch/cmd/monitor/judge"
	"github.com/isowatch/isowatch/config"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/generate"
	histories "github.com/isowatch/isowatch/ingest/history"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/source"
	"github.com/isowatch/isowatch/ingest/source/kafka"
	"github.com/isowatch/isowatch/internal/lab/leak"
	"github.com/isowatch/isowatch/window/store"
)

// TestMain has tests run beside each other whatever the number of processors: most of the time they wait, for a
// broker, a browser or a disk.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

const testTopic = "transactions"

// patience bounds what a test waits for before it gives up: what takes seconds may take
// minutes under the race detector on a slow machine with much else to do.
const patience = 10 * time.Minute

// cluster starts a broker in this process and returns its addresses.
func cluster(t *testing.T, opts ...kfake.Opt) []string {
	t.Helper()
	c, err := kfake.NewCluster(append(opts, kfake.NumBrokers(1))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c.ListenAddrs()
}

// producer opens a producer, which makes the topic.
func producer(t *testing.T, brokers []string) *kafka.Producer {
	t.Helper()
	p, err := kafka.OpenProducer(t.Context(), kafka.ProducerOptions{Connection: kafka.Connection{Brokers: brokers}, Topic: testTopic, Partitions: 3})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// send produces records.
func send(t *testing.T, p *kafka.Producer, txns ...record.Transaction) {
	t.Helper()
	if err := feed.Send(t.Context(), p, feed.Form{}, txns); err != nil {
		t.Fatal(err)
	}
}

// testConfig is a configuration with short waits.
func testConfig(brokers []string) *config.Config {
	c := config.Default()
	c.Source.Kafka = &config.Kafka{Brokers: brokers, Topic: testTopic}
	c.Levels = []verdict.Level{verdict.SI, verdict.SER}
	c.Coverage = record.CoverageComplete
	c.Window.Lateness = 50 * time.Millisecond
	c.Window.MaxTransaction = time.Second
	c.Window.IdleAfter = time.Hour // no alert waits for it
	c.Solver.Every = 10 * time.Millisecond
	c.HTTP.Listen = ""
	c.Alerts.Repeat, c.Alerts.Rate = 0, config.Rate{Max: 1000, Per: time.Second} // every alert is told of at once
	return c
}

// elsewhere are transactions of another database, so that what is wrong with them is of
// another group.
func elsewhere(db string, txns []record.Transaction) []record.Transaction {
	for i := range txns {
		txns[i].DB = db
	}
	return txns
}

// hook is a webhook receiver that notes how often each alert came, by the ids that
// notices list, and the notices. What is operational or over goes to told alone.
type hook struct {
	mu   sync.Mutex
	seen map[string]int
	got  chan alerts.Alert
	told []life.Notice
	srv  *httptest.Server
}

func newHook(t *testing.T) *hook {
	h := &hook{seen: map[string]int{}, got: make(chan alerts.Alert, 1000)}
	h.srv = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			if r.Context().Err() == nil { // else a monitor that died, or was asked to stop, has cut it off
				t.Error(err)
			}
			return
		}
		n, err := life.Parse(body)
		if err != nil {
			t.Error(err)
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		h.told = append(h.told, n)
		for _, id := range n.Notification.IDs {
			h.seen[id]++
			n.Alert.ID = id // which may not be the one that stands for the group
		}
		if k := n.Notification.Kind; k != life.KindOperational && k != life.KindResolved {
			h.got <- n.Alert
		}
	}))
	t.Cleanup(h.srv.Close)
	return h
}

func (h *hook) webhook() config.Webhook {
	return config.Webhook{URL: h.srv.URL, Format: "generic", Timeout: patience} // or a notice comes again
}

// hooked is a configuration of a monitor that watches a topic and tells a webhook, and has an
// address; with a producer of that topic.
func hooked(t *testing.T) (*config.Config, *kafka.Producer, *hook) {
	t.Helper()
	brokers := cluster(t)
	p, h := producer(t, brokers), newHook(t)
	c := testConfig(brokers)
	c.Alerts.Webhooks = []config.Webhook{h.webhook()}
	c.HTTP.Listen = "127.0.0.1:0"
	return c, p, h
}

// next waits for an alert.
func (h *hook) next(t *testing.T) alerts.Alert {
	t.Helper()
	select {
	case a := <-h.got:
		return a
	case <-time.After(patience):
		t.Fatal("no alert came")
		return alerts.Alert{}
	}
}

// ids are how often each alert came.
func (h *hook) ids() map[string]int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.seen)
}

// running is an App that runs in the background.
type running struct {
	*App
	log    *syncBuffer
	cancel context.CancelFunc
	done   chan error
	ended  chan struct{} // closed when it has
}

// start runs the monitor. At the end of the test it is stopped, if it is not yet.
func start(t *testing.T, c *config.Config, st store.Store, untilEnd bool, set ...func(*App)) *running {
	t.Helper()
	r := &running{log: &syncBuffer{}, done: make(chan error, 1), ended: make(chan struct{})}
	var err error
	r.App, err = New(Options{Config: c, Log: zerolog.New(r.log), UntilEnd: untilEnd, Store: st})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	t.Cleanup(func() {
		cancel()
		select { // its files are the test's, and are removed after this
		case <-r.ended:
		case <-time.After(patience):
			t.Error("the monitor does not end")
		}
		if t.Failed() {
			t.Logf("the monitor's log:\n%s", r.log)
		}
	})
	for _, f := range set { // what these leave to the end of the test comes before the above
		f(r.App)
	}
	go func() {
		defer close(r.ended)
		r.done <- r.Run(ctx)
	}()
	return r
}

// wait waits for the end of the run.
func (r *running) wait(t *testing.T) error {
	t.Helper()
	select {
	case err := <-r.done:
		return err
	case <-time.After(patience):
		t.Fatal("the monitor does not end")
		return nil
	}
}

// stop stops it gracefully.
func (r *running) stop(t *testing.T) {
	t.Helper()
	r.cancel()
	if err := r.wait(t); err != nil {
		t.Fatalf("graceful stop: %v", err)
	}
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("in vain waited until %s", what)
		}
	}
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// generated makes a history.
func generated(t *testing.T, c generate.Config) []record.Transaction {
	t.Helper()
	g, err := generate.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return slices.Collect(g.Transactions())
}

// verdicts are the levels' verdicts in a line.
func verdicts(t *testing.T, a *App, db string) string {
	t.Helper()
	for _, h := range a.Reports() {
		if h.DB != db {
			continue
		}
		var out []string
		for _, r := range h.Results {
			out = append(out, r.Level+" "+r.Verdict)
		}
		return strings.Join(out, ", ")
	}
	t.Fatalf("no report on %s in %+v", db, a.Reports())
	return ""
}

// lostUpdate are two sessions that read the same version of a key and both
// overwrite it. n makes the keys and ids of several such.
func lostUpdate(n int, at int64) []record.Transaction {
	key, w := fmt.Sprintf("acct:%d", n), func(v int64) record.Op {
		return record.Op{Kind: record.Write, Key: fmt.Sprintf("acct:%d", n), Value: record.Int(int64(n)*10 + v)}
	}
	r := record.Op{Kind: record.Read, Key: key, Value: record.Int(int64(n)*10 + 1)}
	txn := func(session string, start, end int64, ops ...record.Op) record.Transaction {
		return record.Transaction{DB: "default", Session: session, ID: fmt.Sprintf("%s/%d", session, n), HasTimes: true, Start: at + start, End: at + end, Ops: ops}
	}
	return []record.Transaction{
		txn(fmt.Sprintf("init%d", n), 0, 10, w(1)),
		txn(fmt.Sprintf("a%d", n), 20, 40, r, w(2)),
		txn(fmt.Sprintf("b%d", n), 21, 41, r, w(3)),
	}
}

func TestUntilEndAnswersLikeCheck(t *testing.T) {
	t.Parallel()
	brokers := cluster(t)
	for _, tc := range []struct {
		anomaly, want string
		alerts        int
	}{
		{"", "si satisfied, ser satisfied", 0},
		{"write-skew", "si satisfied, ser violated", 1},
		{"lost-update", "si violated, ser violated", 1},
		{"long-fork", "si violated, ser violated", 1},
	} {
		t.Run("anomaly "+tc.anomaly, func(t *testing.T) {
			brokers := brokers
			p, err := kafka.OpenProducer(t.Context(), kafka.ProducerOptions{Connection: kafka.Connection{Brokers: brokers}, Topic: "t" + tc.anomaly, Partitions: 3})
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			if err := feed.Send(t.Context(), p, feed.Form{}, generated(t, generate.Config{Level: verdict.SER, Transactions: 2000, Keys: 200, Sessions: 8, Seed: 3, Anomaly: tc.anomaly})); err != nil {
				t.Fatal(err)
			}
			h := newHook(t)
			c := testConfig(brokers)
			c.Source.Kafka.Topic = "t" + tc.anomaly
			c.Alerts.Webhooks = []config.Webhook{h.webhook()}
			st := newMemStore(webhookName(h.webhook()))
			r := start(t, c, st, true)
			if err := r.wait(t); err != nil {
				t.Fatal(err)
			}
			if got := verdicts(t, r.App, "default"); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
			h.mu.Lock()
			defer h.mu.Unlock()
			if len(h.seen) != tc.alerts {
				t.Errorf("%d alerts came, want %d: %v", len(h.seen), tc.alerts, h.seen)
			}
			for id, n := range h.seen {
				if n != 1 {
					t.Errorf("alert %s came %d times", id, n)
				}
			}
		})
	}
}

// TestEvidenceProvesTheAlert: what the receiver gets is violated by itself.
func TestEvidenceProvesTheAlert(t *testing.T) {
	t.Parallel()
	brokers := cluster(t)
	send(t, producer(t, brokers), lostUpdate(1, 1000)...)
	h := newHook(t)
	c := testConfig(brokers)
	c.Alerts.Webhooks = []config.Webhook{h.webhook()}
	r := start(t, c, newMemStore(webhookName(h.webhook())), false)
	a := h.next(t)
	if a.Name != "lost-update" || a.Level != "si" || !slices.Equal(a.Breaks, []string{"si", "ser"}) {
		t.Errorf("alert %s at %s, breaks %v", a.Name, a.Level, a.Breaks)
	}
	header, txns := parseEvidence(t, a.Evidence)
	if got := judge.NewProver(nil, 1<<40).Judge(verdict.SI, header, txns); got != verdict.Violated {
		t.Errorf("the evidence is %s:\n%s", got, a.Evidence)
	}
	r.stop(t)
}

func TestEmptyTopicIsWaitedFor(t *testing.T) {
	t.Parallel()
	brokers := cluster(t)
	p := producer(t, brokers)
	h := newHook(t)
	c := testConfig(brokers)
	c.HTTP.Listen = "127.0.0.1:0"
	c.Alerts.Webhooks = []config.Webhook{h.webhook()}
	r := start(t, c, newMemStore(webhookName(h.webhook())), false)
	eventually(t, "the monitor is ready", func() bool { return get(t, r.Addr(), "/readyz") == "ready\n" })
	send(t, p, lostUpdate(1, 1000)...)
	h.next(t)
	r.stop(t)
}

func TestUntilEndOfAnEmptyTopic(t *testing.T) {
	brokers := cluster(t)
	producer(t, brokers)
	r := start(t, testConfig(brokers), newMemStore(), true)
	if err := r.wait(t); err != nil {
		t.Fatal(err)
	}
	if !r.Ended() || len(r.Reports()) != 0 {
		t.Errorf("ended %v, reports %v", r.Ended(), r.Reports())
	}
}

func TestMissingTopicIsUnusable(t *testing.T) {
	t.Parallel()
	r := start(t, testConfig(cluster(t)), newMemStore(), false)
	err := r.wait(t)
	var startup *source.StartupError
	if err == nil || !errors.As(err, &startup) {
		t.Errorf("got %v", err)
	}
}

// TestUnreachableBrokerIsRetried: the monitor waits and says for what.
func TestUnreachableBrokerIsRetried(t *testing.T) {
	c := testConfig([]string{"127.0.0.1:1"})
	c.HTTP.Listen = "127.0.0.1:0"
	r := start(t, c, newMemStore(), false)
	eventually(t, "/readyz names the broker's failure", func() bool {
		return strings.Contains(get(t, r.Addr(), "/readyz"), "127.0.0.1:1")
	})
	if got := get(t, r.Addr(), "/healthz"); got != "ok\n" {
		t.Errorf("/healthz: %q", got)
	}
	r.stop(t)
}

// poison are messages that are no records, with the reasons.
func poison() []source.Message {
	return []source.Message{
		{Key: []byte("p"), Value: []byte("\x00\xff not json")},
		{Key: []byte("p"), Value: []byte(`{"session":"s","status":"committed","ops":[["x","k",1]]}`)},
		{Key: []byte("p"), Value: []byte(`{"session":5,"status":"committed","ops":[]}`)},
		{Key: []byte("p"), Value: []byte(`{"session":"s","status":"committed","start":9,"end":3,"ops":[]}`)},
		{Key: []byte("p"), Value: []byte(`{}`), ContentType: "application/avro"},
		{Key: []byte("p"), Value: nil},
	}
}

var poisonReasons = []string{"bad-json", "unknown-op", "wrong-type", "time-backwards", "content-type", "bad-json"}

func TestPoisonedRecordsBecomeDeadLettersAndTheStreamGoesOn(t *testing.T) {
	t.Parallel()
	brokers := cluster(t)
	p := producer(t, brokers)
	if err := p.Send(t.Context(), poison()...); err != nil {
		t.Fatal(err)
	}
	// Another record of the same id with other content, and the same again.
	txns := lostUpdate(1, 1000)
	other := txns[0]
	other.Ops = txns[1].Ops
	send(t, p, txns...)
	send(t, p, txns[0], other)

	h := newHook(t)
	c := testConfig(brokers)
	c.HTTP.Listen = "127.0.0.1:0"
	c.Alerts.Webhooks = []config.Webhook{h.webhook()}
	st := newMemStore(webhookName(h.webhook()))
	r := start(t, c, st, false)
	if a := h.next(t); a.Name != "lost-update" {
		t.Errorf("alert %s", a.Name)
	}
	want := slices.Sorted(slices.Values(append([]string{"duplicate-id"}, poisonReasons...)))
	reasons := func() (out []string) {
		st.mu.Lock()
		defer st.mu.Unlock()
		for _, d := range st.letters {
			out = append(out, d.Reason)
			if d.Pos.Source != testTopic || !d.Pos.Kafka || d.Detail == "" {
				t.Errorf("dead letter %+v", d)
			}
		}
		slices.Sort(out)
		return out
	}
	eventually(t, "all dead letters are stored", func() bool { return len(reasons()) >= len(want) })
	if got := reasons(); !slices.Equal(got, want) {
		t.Errorf("dead letters %v, want %v", got, want)
	}
	metrics := get(t, r.Addr(), "/metrics")
	for _, line := range []string{
		`isowatch_rejected_total{reason="bad-json"} 2`,
		`isowatch_rejected_total{reason="duplicate-id"} 1`,
		`isowatch_order_total{db="default",what="duplicate"} 1`,
		`isowatch_coverage_complete{db="default"} 0`,
		`isowatch_records_total 11`,
		`isowatch_alerts_total{db="default",name="lost-update"} 1`,
	} {
		if !strings.Contains(metrics, line) {
			t.Errorf("/metrics has no line %s\n%s", line, grep(metrics, "isowatch"))
		}
	}
	if got := strings.Count(r.log.String(), `"reason":"bad-json"`); got != 1 {
		t.Errorf("bad-json is logged %d times, want once", got)
	}
	r.stop(t)

	// A restart reads some records again and makes no dead letter twice.
	r = start(t, c, st, true)
	if err := r.wait(t); err != nil {
		t.Fatal(err)
	}
	if got := reasons(); !slices.Equal(got, want) {
		t.Errorf("after a restart %v, want %v", got, want)
	}
}

// TestHugeRecordIsADeadLetter: a record of 50 MB neither stops nor fills the
// monitor.
func TestHugeRecordIsADeadLetter(t *testing.T) {
	t.Parallel()
	brokers := cluster(t, kfake.BrokerConfigs(map[string]string{"message.max.bytes": "100000000"}))
	p := producer(t, brokers)
	huge := append([]byte(`{"session":"s","status":"committed","ops":[["w","k","`), bytes.Repeat([]byte("x"), 50<<20)...)
	if err := p.Send(t.Context(), source.Message{Key: []byte("s"), Value: append(huge, `"]]}`...)}); err != nil {
		t.Fatal(err)
	}
	send(t, p, lostUpdate(1, 1000)...)
	h := newHook(t)
	c := testConfig(brokers)
	c.Alerts.Webhooks = []config.Webhook{h.webhook()}
	st := newMemStore(webhookName(h.webhook()))
	r := start(t, c, st, false)
	h.next(t)
	eventually(t, "the dead letter is stored", func() bool {
		st.mu.Lock()
		defer st.mu.Unlock()
		return len(st.letters) == 1 && st.letters[0].Reason == "too-large" && st.letters[0].Size > 50<<20
	})
	r.stop(t)
}

// TestRestartFindsWhatStraddlesIt: half of an anomaly is read before a stop, the
// other half after it; what was found before is not delivered again.
func TestRestartFindsWhatStraddlesIt(t *testing.T) {
	t.Parallel()
	brokers := cluster(t)
	p := producer(t, brokers)
	h := newHook(t)
	c := testConfig(brokers)
	c.Window.MaxTransaction = time.Minute
	c.Alerts.Webhooks = []config.Webhook{h.webhook()}
	st := newMemStore(webhookName(h.webhook()))

	first, second := lostUpdate(1, 1000), elsewhere("b", lostUpdate(2, 2000))
	send(t, p, first...)
	send(t, p, second[:2]...)
	r := start(t, c, st, false)
	if a := h.next(t); !slices.Contains(a.Transactions, first[1].ID) {
		t.Errorf("first alert of %v", a.Transactions)
	}
	r.stop(t)

	send(t, p, second[2])
	r = start(t, c, st, false)
	if a := h.next(t); !slices.Contains(a.Transactions, second[1].ID) {
		t.Errorf("second alert of %v", a.Transactions)
	}
	r.stop(t)
	h.mu.Lock()
	defer h.mu.Unlock()
	for id, n := range h.seen {
		if n != 1 {
			t.Errorf("alert %s came %d times", id, n)
		}
	}
}

// TestEveryCommitMayFail: wherever the disk fails, the monitor stops with an
// error, or tries again where only what is to be told could not be written, and the
// next run makes up for it: every alert once, no dead letter lost or made twice.
func TestEveryCommitMayFail(t *testing.T) {
	brokers := cluster(t)
	p := producer(t, brokers)
	if err := p.Send(t.Context(), poison()...); err != nil {
		t.Fatal(err)
	}
	send(t, p, lostUpdate(1, 1000)...)
	c := testConfig(brokers)
	for failAt := 1; failAt <= 5; failAt++ {
		st := newMemStore("r")
		st.failAt = failAt
		r := start(t, c, st, true)
		err := r.wait(t)
		if st.commits >= failAt && !st.news && (err == nil || !strings.Contains(err.Error(), errDisk.Error())) {
			t.Errorf("commit %d failed and Run returned %v", failAt, err)
		}
		st.failAt = 0
		r = start(t, c, st, true)
		if err := r.wait(t); err != nil {
			t.Fatal(err)
		}
		if len(st.alerts) != 1 || len(st.letters) != len(poison()) {
			t.Errorf("commit %d failed: %d alerts and %d dead letters, want 1 and %d", failAt, len(st.alerts), len(st.letters), len(poison()))
		}
	}
}

// TestSeveralHistories: each db has its own engine, and one with little traffic
// is not held up by the others.
func TestSeveralHistories(t *testing.T) {
	brokers := cluster(t)
	p := producer(t, brokers)
	quiet := lostUpdate(1, 1_732_160_000_000_000_000)
	for i := range quiet {
		quiet[i].DB = "quiet"
	}
	send(t, p, quiet...)
	send(t, p, generated(t, generate.Config{Level: verdict.SSER, DB: "busy", Transactions: 1000, Seed: 1})...)
	r := start(t, testConfig(brokers), newMemStore(), true)
	if err := r.wait(t); err != nil {
		t.Fatal(err)
	}
	if got := verdicts(t, r.App, "quiet"); got != "si violated, ser violated" {
		t.Errorf("quiet: %s", got)
	}
	if got := verdicts(t, r.App, "busy"); !strings.HasPrefix(got, "si satisfied") {
		t.Errorf("busy: %s", got)
	}
}

func TestNothingIsLeftRunning(t *testing.T) {
	brokers := cluster(t)
	producer(t, brokers)
	ignore := goleak.IgnoreCurrent()
	h := newHook(t)
	c := testConfig(brokers)
	c.HTTP.Listen = "127.0.0.1:0"
	c.Alerts.Webhooks = []config.Webhook{h.webhook()}
	r := start(t, c, newMemStore(webhookName(h.webhook())), false)
	eventually(t, "the monitor is ready", func() bool { return get(t, r.Addr(), "/readyz") == "ready\n" })
	r.stop(t)
	h.srv.Close()
	http.DefaultClient.CloseIdleConnections()
	leak.None(t, ignore, goleak.IgnoreAnyFunction("github.com/twmb/franz-go/pkg/kfake.(*clientConn).read"),
		goleak.IgnoreAnyFunction("github.com/twmb/franz-go/pkg/kfake.(*clientConn).read.func1"), // the producer's, anew for each request
		goleak.IgnoreAnyFunction("github.com/twmb/franz-go/pkg/kfake.(*clientConn).write"))
}

func parseEvidence(t *testing.T, lines []json.RawMessage) (record.Header, []record.Transaction) {
	t.Helper()
	var text bytes.Buffer
	for _, l := range lines {
		text.Write(append(l, '\n'))
	}
	hs, err := histories.Read("evidence", &text, histories.Options{})
	if err != nil || len(hs) != 1 {
		t.Fatalf("evidence: %d histories, %v", len(hs), err)
	}
	return hs[0].Header, hs[0].Transactions
}

// get fetches a page of the monitor; what it answers when it is not there yet is
// empty.
func get(t *testing.T, addr, path string) string {
	t.Helper()
	resp, err := http.Get("http://" + addr + path)
	if err != nil {
		return ""
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func grep(text, what string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if strings.Contains(line, what) && !strings.HasPrefix(line, "#") {
			b.WriteString(line)
		}
	}
	return b.String()
}
