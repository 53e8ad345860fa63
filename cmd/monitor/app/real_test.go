package app

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/isowatch/isowatch/cmd/monitor/feed"
	"github.com/isowatch/isowatch/config"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/generate"
	"github.com/isowatch/isowatch/ingest/source/kafka"
	"github.com/isowatch/isowatch/internal/lab/realkafka"
)

// TestRealKafka is the whole way with an Apache Kafka broker and a store on disk.
// While records flow, the broker is killed and started again, and the monitor is
// stopped and started again. Every anomaly that was planted is alerted, nothing
// else is, and a run to the end answers as check does.
func TestRealKafka(t *testing.T) {
	t.Parallel()
	b := realkafka.Start(t)
	b.CreateTopic(t, testTopic, 3, nil)
	g, err := generate.New(generate.Config{Level: verdict.SER, Transactions: 9000, Keys: 500, Sessions: 12, Seed: 11, Anomaly: "lost-update", Planted: 9})
	if err != nil {
		t.Fatal(err)
	}
	txns := slices.Collect(g.Transactions())
	planted := map[string]bool{} // the overwriters
	for _, p := range g.Planted() {
		planted[pair(p.Transactions[1:])] = true
	}

	h := newHook(t)
	c := testConfig([]string{b.Addr()})
	c.Window.Lateness = 500 * time.Millisecond
	c.Window.MaxTransaction = 10 * time.Second
	c.Store.Path = t.TempDir()
	c.Alerts.Webhooks = []config.Webhook{h.webhook()}
	r := start(t, c, nil, false)

	p, err := kafka.OpenProducer(t.Context(), kafka.ProducerOptions{Connection: kafka.Connection{Brokers: c.Source.Kafka.Brokers}, Topic: testTopic})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	third := len(txns) / 3
	sendAll := func(from, to int) {
		for ; from < to; from += 500 {
			if err := feed.Send(t.Context(), p, feed.Form{}, txns[from:min(from+500, to)]); err != nil {
				t.Fatal(err)
			}
		}
	}
	sendAll(0, third)
	b.Kill()
	b.Restart(t)
	sendAll(third, 2*third)
	r.stop(t)
	r = start(t, c, nil, false)
	sendAll(2*third, len(txns))

	alerted := map[string]bool{}
	for len(alerted) < len(planted) {
		a := h.next(t)
		if a.Name != "lost-update" || !planted[pair(a.Transactions)] {
			t.Fatalf("alert %s of %v was not planted:\n%s", a.Name, a.Transactions, a.Explanation)
		}
		alerted[pair(a.Transactions)] = true
	}
	r.stop(t)
	if !maps.Equal(alerted, planted) {
		t.Errorf("alerted %v, planted %v", alerted, planted)
	}
	first := h.ids()
	for id, n := range first {
		if n != 1 {
			t.Errorf("alert %s came %d times", id, n)
		}
	}

	// A second monitor with a store of its own finds the same, with the same ids.
	again := newHook(t)
	c.Store.Path = t.TempDir()
	c.Alerts.Webhooks = []config.Webhook{again.webhook()}
	r = start(t, c, nil, true)
	if err := r.wait(t); err != nil {
		t.Fatal(err)
	}
	if got := verdicts(t, r.App, "default"); got != "si violated, ser violated" {
		t.Errorf("to the end: %s", got)
	}
	if ids := again.ids(); !maps.Equal(ids, first) {
		t.Errorf("ids %v and %v", ids, first)
	}
}

// pair names two transactions whatever their order.
func pair(ids []string) string {
	ids = slices.Sorted(slices.Values(ids))
	return ids[0] + " " + ids[len(ids)-1]
}
