package deliver_test

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/isowatch/isowatch/alerts/deliver"
	"github.com/isowatch/isowatch/ingest/source/kafka"
)

// TestKafkaSecured: notices reach a topic over TLS with SASL, and what is wrong with
// either is an outage, which a person can put right, and never tells the password.
func TestKafkaSecured(t *testing.T) {
	s := httptest.NewTLSServer(nil) // for its certificate
	defer s.Close()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "alerts"), kfake.TLS(&tls.Config{Certificates: s.TLS.Certificates, MinVersion: tls.VersionTLS12}),
		kfake.EnableSASL(), kfake.Superuser("PLAIN", "u", "sesame"), kfake.Superuser("SCRAM-SHA-512", "u", "sesame"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close) // when all parts have ended
	for _, x := range []struct {
		name, mechanism, password string
		tls                       *kafka.TLS
		ok                        bool
	}{
		{"PLAIN", kafka.Plain, "sesame", &kafka.TLS{CA: ca}, true},
		{"SCRAM", kafka.ScramSHA512, "sesame", &kafka.TLS{CA: ca}, true},
		{"another password", kafka.Plain, "sesame1", &kafka.TLS{CA: ca}, false},
		{"an unknown authority", kafka.Plain, "sesame", &kafka.TLS{}, false},
		{"no TLS", kafka.Plain, "sesame", nil, false},
	} {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel() // those that fail wait for their time to be over
			timeout := ample
			if !x.ok {
				timeout = 3 * time.Second
			}
			ctx, cancel := context.WithTimeout(t.Context(), timeout)
			defer cancel()
			k, err := deliver.NewKafka(kafka.Connection{Brokers: c.ListenAddrs(), TLS: x.tls, SASL: &kafka.SASL{Mechanism: x.mechanism, Username: "u", Password: x.password}}, "alerts")
			if err != nil {
				t.Fatal(err)
			}
			defer k.Close()
			_, recoverable, err := k.Notify(ctx, lostUpdate().JSON(), "n1")
			if (err == nil) != x.ok || err != nil && (!recoverable || strings.Contains(err.Error(), "sesame")) {
				t.Errorf("%v, %v", recoverable, err)
			}
		})
	}
}
