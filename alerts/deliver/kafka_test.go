package deliver_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/isowatch/isowatch/alerts/deliver"
	"github.com/isowatch/isowatch/alerts/life"
	"github.com/isowatch/isowatch/ingest/source"
	"github.com/isowatch/isowatch/ingest/source/kafka"
	"github.com/isowatch/isowatch/internal/ports"
)

func freePort(t *testing.T) string {
	t.Helper()
	addr, err := ports.Address()
	if err != nil {
		t.Fatal(err)
	}
	return addr
}

// consumed are all messages of a topic.
func consumed(t *testing.T, brokers []string) []source.Message {
	t.Helper()
	s, err := kafka.Open(withTimeout(t), kafka.Options{Connection: kafka.Connection{Brokers: brokers}, Topic: "alerts", UntilEnd: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var out []source.Message
	for {
		b, err := s.Read(withTimeout(t))
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range b.Messages {
			m.Key, m.Value = append([]byte(nil), m.Key...), append([]byte(nil), m.Value...)
			out = append(out, m)
		}
	}
}

func TestKafka(t *testing.T) {
	c, err := kfake.NewCluster(kfake.NumBrokers(3), kfake.SeedTopics(3, "alerts"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	k, err := deliver.NewKafka(kafka.Connection{Brokers: c.ListenAddrs()}, "alerts")
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	large := lostUpdate()
	large.Notification.ID, large.Notification.Group = "n9", "g9"
	large.Evidence = append(large.Evidence, []byte(`"`+strings.Repeat("x", 2<<20)+`"`))
	tell(t, k, lostUpdate(), resolved(), large)
	got := consumed(t, c.ListenAddrs())
	byKey := map[string][]string{}
	for _, m := range got {
		n, err := life.Parse(m.Value)
		if err != nil {
			t.Fatal(err)
		}
		if m.ContentType != "application/json" {
			t.Errorf("content type %q", m.ContentType)
		}
		byKey[string(m.Key)] = append(byKey[string(m.Key)], n.Notification.ID)
		if n.Notification.ID == "n9" && (len(n.Evidence) != 0 || !strings.Contains(string(m.Value), `"truncated":true`)) {
			t.Errorf("too large a notice was sent as %d bytes", len(m.Value))
		}
	}
	if strings.Join(byKey["g1"], " ") != "n1 n2" || strings.Join(byKey["g9"], " ") != "n9" {
		t.Errorf("%v", byKey)
	}
}

// A topic that is not there, and brokers that are not, are an outage and no refusal.
func TestKafkaOutage(t *testing.T) {
	c, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, brokers := range [][]string{c.ListenAddrs(), {freePort(t)}} {
		k, err := deliver.NewKafka(kafka.Connection{Brokers: brokers}, "alerts")
		if err != nil {
			t.Fatal(err)
		}
		if _, recoverable, err := k.Notify(t.Context(), lostUpdate().JSON(), "n1"); err == nil || !recoverable || !strings.Contains(err.Error(), `"alerts"`) {
			t.Errorf("%v, %v", recoverable, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, recoverable, err := k.Notify(ctx, lostUpdate().JSON(), "n1"); err == nil || !recoverable {
			t.Errorf("given up: %v, %v", recoverable, err)
		}
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	}
}
