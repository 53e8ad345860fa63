package realkafka

import (
	"os"
	"testing"

	"github.com/isowatch/isowatch/internal/lab/realkafka/node"
)

// Broker is a running Kafka node of a test. Its methods are for one goroutine.
type Broker struct{ node *node.Broker }

// The users of the secured listener; see node.
const (
	User     = node.User
	Stranger = node.Stranger
	Password = node.Password
)

// Start installs Kafka if need be and starts a broker, which the test's cleanup
// kills. settings are further lines for its server.properties. It skips the
// test where Java or Maven is missing, and fails it where CI is set.
func Start(t testing.TB, settings ...string) *Broker {
	t.Helper()
	n, err := node.New(t.Context(), t.TempDir(), node.Options{Settings: settings})
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("can't run Apache Kafka: %v", err)
		}
		t.Skipf("SKIPPED, Apache Kafka can't be run here: %v", err)
	}
	b := &Broker{n}
	t.Cleanup(b.Kill)
	b.Restart(t)
	return b
}

// Restart starts the broker on its data directory and returns when it answers.
// It must not be running.
func (b *Broker) Restart(t testing.TB) {
	t.Helper()
	check(t, b.node.Start(t.Context()))
}

// Kill ends the broker with SIGKILL and waits until it is gone. It may be called
// when it is gone already.
func (b *Broker) Kill() { b.node.Kill() }

// Addr is the broker's host:port, where everybody may do everything. It stays
// the same over restarts.
func (b *Broker) Addr() string { return b.node.Addr() }

// SecuredAddr is the host:port of a listener that asks for SASL, without TLS.
func (b *Broker) SecuredAddr() string { return b.node.SecuredAddr() }

// CreateTopic creates a topic with so many partitions.
func (b *Broker) CreateTopic(t testing.TB, name string, partitions int, configs map[string]string) {
	t.Helper()
	check(t, b.node.CreateTopic(t.Context(), name, partitions, configs))
}

// DeleteTopic deletes a topic.
func (b *Broker) DeleteTopic(t testing.TB, name string) {
	t.Helper()
	check(t, b.node.DeleteTopic(t.Context(), name))
}

// DeleteRecords deletes the records of a partition before an offset, as
// retention would.
func (b *Broker) DeleteRecords(t testing.TB, topic string, partition int, before int64) {
	t.Helper()
	check(t, b.node.DeleteRecords(t.Context(), topic, partition, before))
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
