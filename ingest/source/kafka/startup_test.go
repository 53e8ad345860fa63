package kafka

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/isowatch/isowatch/ingest/source"
	"github.com/isowatch/isowatch/internal/ports"
)

// refused opens a source that must not open.
func refused(t *testing.T, opts Options, says ...string) {
	t.Helper()
	opts.OnRetry = func(err error) { t.Logf("retries %#v: %v", errors.Unwrap(err), err) }
	s, err := Open(testContext(t), opts)
	if err == nil {
		s.Close()
	}
	var se *source.StartupError
	if !errors.As(err, &se) {
		t.Errorf("got %v, want a start-up error", err)
		return
	}
	if se.Do == "" {
		t.Errorf("%v does not say what to do", err)
	}
	for _, text := range says {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%q does not say %q", err, text)
		}
	}
}

func TestMissingTopic(t *testing.T) {
	t.Parallel()
	c := fake(t, kfake.NumBrokers(1), kfake.SeedTopics(2, topic))
	opts := options(c)
	opts.Topic = "elsewhere"
	refused(t, opts, `"elsewhere"`, "no such topic", "create it")
	opts.Topic = ""
	refused(t, opts, "no Kafka topic")
	opts = options(c)
	opts.Topic = "no/such name"
	c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Metadata}, Err: kerr.InvalidTopicException, Count: -1})
	refused(t, opts, "no valid name")
	opts.Brokers = nil
	refused(t, opts, "no Kafka broker")
}

func TestCompactedTopic(t *testing.T) {
	c := fake(t, kfake.NumBrokers(1))
	for name, policy := range map[string]string{"compacted": "compact", "both": "compact,delete"} {
		if err := c.CreateTopic(name, 1, map[string]string{"cleanup.policy": policy}); err != nil {
			t.Fatal(err)
		}
		opts := options(c)
		opts.Topic = name
		refused(t, opts, "is compacted", "cleanup.policy="+policy)
	}
}

func acl(op kmsg.ACLOperation) kfake.ACL {
	return kfake.ACL{Resource: kmsg.ACLResourceTypeTopic, Name: topic, Pattern: kmsg.ACLResourcePatternTypeLiteral, Operation: op, Allow: true}
}

func TestRights(t *testing.T) {
	c := fake(t, kfake.NumBrokers(1), kfake.SeedTopics(1, topic), kfake.EnableACLs(), kfake.EnableSASL(),
		kfake.Superuser("PLAIN", "root", "pw"),
		kfake.User("PLAIN", "nobody", "pw"),
		kfake.User("PLAIN", "describer", "pw", acl(kmsg.ACLOperationDescribe)),
		kfake.User("PLAIN", "reader", "pw", acl(kmsg.ACLOperationDescribe), acl(kmsg.ACLOperationRead)))
	as := func(user, password string) Options {
		opts := options(c)
		opts.SASL = &SASL{Mechanism: Plain, Username: user, Password: password}
		return opts
	}
	refused(t, as("nobody", "pw"), "no right to read", topic, "grant")
	refused(t, as("describer", "pw"), "no right to read", "grant")

	opts := as("reader", "pw")
	var warning atomic.Value
	opts.OnWarning = func(w string) { warning.Store(w) }
	opts.UntilEnd = true
	drain(t, open(t, opts))
	if w, _ := warning.Load().(string); !strings.Contains(w, "DESCRIBE_CONFIGS") {
		t.Errorf("who may not see the cleanup policy is warned %q", w)
	}
	warning.Store("")
	opts = as("root", "pw")
	opts.OnWarning = func(w string) { warning.Store(w) }
	open(t, opts)
	if w := warning.Load().(string); w != "" {
		t.Errorf("who may is warned %q", w)
	}
}

func TestSASLMechanisms(t *testing.T) {
	t.Parallel()
	c := fake(t, kfake.NumBrokers(1), kfake.SeedTopics(1, topic), kfake.EnableSASL(),
		kfake.Superuser("PLAIN", "u", "pw"), kfake.Superuser("SCRAM-SHA-256", "u", "pw"), kfake.Superuser("SCRAM-SHA-512", "u", "pw"))
	for _, m := range []string{Plain, ScramSHA256, "SCRAM-SHA-512"} {
		opts := options(c)
		opts.SASL = &SASL{Mechanism: m, Username: "u", Password: "pw"}
		opts.UntilEnd = true
		drain(t, open(t, opts))
	}
	opts := options(c)
	refused(t, opts, "expects SASL", "set source.kafka.sasl")
	opts.SASL = &SASL{Mechanism: "gssapi", Username: "u"}
	refused(t, opts, `"gssapi"`, Plain, ScramSHA512)
	opts.SASL = &SASL{Mechanism: Plain}
	refused(t, opts, "username")

}

// A broker that hangs up once, or is too slow to answer, is asked again, even if it would talk
// about SASL without expecting it.
func TestHangingUpIsNoSASL(t *testing.T) {
	t.Parallel()
	c := fake(t, kfake.NumBrokers(1), kfake.SeedTopics(1, topic))
	c.ControlKey(int16(kmsg.ListOffsets), func(kmsg.Request) (kmsg.Response, error, bool) {
		return nil, errors.New("hang up"), true // once
	})
	opts := options(c)
	opts.UntilEnd = true
	var retries atomic.Int64
	opts.OnRetry = func(error) { retries.Add(1) }
	drain(t, open(t, opts))
	if retries.Load() == 0 {
		t.Error("the broker did not hang up")
	}
}

// answer makes the cluster answer one kind of request with an error, as Apache
// Kafka does and kfake does not: that hangs up.
func answer(c *kfake.Cluster, key kmsg.Key, fail func(kmsg.Response)) {
	c.ControlKey(int16(key), func(r kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		resp := r.ResponseKind()
		fail(resp)
		return resp, nil, true
	})
}

func TestSASLRefused(t *testing.T) {
	t.Parallel()
	c := fake(t, kfake.NumBrokers(1), kfake.SeedTopics(1, topic), kfake.EnableSASL(), kfake.Superuser("PLAIN", "u", "pw"), kfake.Superuser("SCRAM-SHA-256", "u", "pw"))
	for _, m := range []string{Plain, ScramSHA256} {
		opts := options(c)
		opts.SASL = &SASL{Mechanism: m, Username: "u", Password: "not it"}
		hint := make(chan string, 1)
		opts.OnRetry = func(err error) {
			select {
			case hint <- err.Error():
			default:
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { _, err := Open(ctx, opts); done <- err }()
		if text := <-hint; !strings.Contains(text, "SASL credentials") {
			t.Errorf("a broker that hangs up is explained by %q", text)
		}
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	}
	opts := options(c)
	opts.SASL = &SASL{Mechanism: ScramSHA256, Username: "u", Password: "pw"}
	answer(c, kmsg.SASLAuthenticate, func(r kmsg.Response) {
		r.(*kmsg.SASLAuthenticateResponse).ErrorCode = kerr.SaslAuthenticationFailed.Code
	})
	refused(t, opts, "refuses the credentials", "password")
	answer(c, kmsg.SASLHandshake, func(r kmsg.Response) {
		r.(*kmsg.SASLHandshakeResponse).ErrorCode = kerr.UnsupportedSaslMechanism.Code
	})
	refused(t, opts, "does not offer the SASL mechanism SCRAM-SHA-256")
}

// authority makes a certificate authority's and a server's certificate, and
// writes the PEM files that a client needs.
func authority(t *testing.T) (server tls.Certificate, pool *x509.CertPool, caFile, certFile, keyFile string) {
	t.Helper()
	dir := t.TempDir()
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ca := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	sign := func(tmpl *x509.Certificate) (der []byte, key *ecdsa.PrivateKey) {
		if key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
			t.Fatal(err)
		}
		if tmpl == ca {
			key = caKey
		}
		if der, err = x509.CreateCertificate(rand.Reader, tmpl, ca, &key.PublicKey, caKey); err != nil {
			t.Fatal(err)
		}
		return der, key
	}
	write := func(name, kind string, der []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	caDER, _ := sign(ca)
	caFile = write("ca.pem", "CERTIFICATE", caDER)
	leaf := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "leaf"}, NotBefore: ca.NotBefore, NotAfter: ca.NotAfter,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	der, key := sign(leaf)
	server = tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	pool = x509.NewCertPool()
	parsed, err := x509.ParseCertificate(caDER)
	if err != nil {
		t.Fatal(err)
	}
	pool.AddCert(parsed)
	return server, pool, caFile, write("cert.pem", "CERTIFICATE", der), write("key.pem", "EC PRIVATE KEY", keyDER)
}

func TestTLS(t *testing.T) {
	server, pool, ca, cert, key := authority(t)
	_, _, otherCA, otherCert, otherKey := authority(t)
	with := func(config *tls.Config) *kfake.Cluster {
		return fake(t, kfake.NumBrokers(1), kfake.SeedTopics(1, topic), kfake.TLS(config))
	}
	oneWay := with(&tls.Config{Certificates: []tls.Certificate{server}})
	mutual := with(&tls.Config{Certificates: []tls.Certificate{server}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool})
	opts := func(c *kfake.Cluster, conf *TLS) Options {
		o := options(c)
		o.TLS, o.UntilEnd = conf, true
		return o
	}
	drain(t, open(t, opts(oneWay, &TLS{CA: ca})))
	drain(t, open(t, opts(mutual, &TLS{CA: ca, Cert: cert, Key: key})))

	refused(t, opts(oneWay, &TLS{CA: otherCA}), "unknown authority", "tls.ca")
	refused(t, opts(mutual, &TLS{CA: ca}), "ends the TLS handshake", "tls.cert")
	refused(t, opts(mutual, &TLS{CA: ca, Cert: otherCert, Key: otherKey}), "ends the TLS handshake")
	refused(t, opts(oneWay, nil), "expects TLS", "set source.kafka.tls")
	refused(t, opts(oneWay, &TLS{CA: "/nonexistent"}), "tls.ca")
	refused(t, opts(oneWay, &TLS{CA: key}), "holds no certificate")
	refused(t, opts(oneWay, &TLS{CA: ca, Cert: cert}), "only one of cert and key")
	refused(t, opts(oneWay, &TLS{CA: ca, Cert: cert, Key: otherKey}), "tls.cert and .key")

	byName := opts(oneWay, &TLS{CA: ca})
	_, port, err := net.SplitHostPort(byName.Brokers[0])
	if err != nil {
		t.Fatal(err)
	}
	byName.Brokers = []string{"localhost:" + port}
	refused(t, byName, "for another host")
}

// A broker that can't be reached is no reason to give up: Open goes on until it
// is there, and tells of each failure.
func TestUnreachableBrokerIsRetried(t *testing.T) {
	t.Parallel()
	free, err := ports.Free(1)
	if err != nil {
		t.Fatal(err)
	}
	port := free[0]
	opts := Options{Connection: Connection{Brokers: []string{fmt.Sprintf("127.0.0.1:%d", port)}}, Topic: topic,
		RetryMin: time.Millisecond, RetryMax: 10 * time.Millisecond, UntilEnd: true}
	failures := make(chan error, 1000)
	opts.OnRetry = func(err error) {
		select {
		case failures <- err:
		default:
		}
	}
	opened := make(chan error, 1)
	go func() {
		s, err := Open(testContext(t), opts)
		if err == nil {
			s.Close()
		}
		opened <- err
	}()
	for range 3 {
		select {
		case err := <-failures:
			if !strings.Contains(err.Error(), topic) {
				t.Errorf("%v does not name the topic", err)
			}
		case err := <-opened:
			t.Fatalf("Open gave up: %v", err)
		}
	}
	fake(t, kfake.NumBrokers(1), kfake.Ports(port), kfake.SeedTopics(1, topic))
	if err := <-opened; err != nil {
		t.Errorf("the broker is there and Open says %v", err)
	}
}

func TestTransientStartupFaultsAreRetried(t *testing.T) {
	c := fake(t, kfake.NumBrokers(1), kfake.SeedTopics(1, topic))
	cl := client(t, c)
	produce(t, cl, 0, "a")
	for _, key := range []kmsg.Key{kmsg.Metadata, kmsg.ListOffsets, kmsg.Fetch} {
		c.Fault(kfake.Fault{Keys: []kmsg.Key{key}, Err: kerr.NotLeaderForPartition, Count: 4})
		opts := options(c)
		opts.UntilEnd = true
		want(t, drain(t, open(t, opts)), "0/0:a")
	}
}

// A broker that goes down between the two connections of a probe: the second is
// refused, and there is nothing to close.
func TestProbeOfABrokerThatGoesDown(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		conn, err := l.Accept()
		if err != nil {
			return
		}
		l.Close()
		conn.Close()
	}()
	o := Options{Connection: Connection{Brokers: []string{l.Addr().String()}}}
	if se := o.probe(testContext(t), &wire{}); se != nil {
		t.Errorf("said %v, but nothing is known", se)
	}
	<-done
}
