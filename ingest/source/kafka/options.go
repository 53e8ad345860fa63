package kafka

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/segmentio/kafka-go/sasl"
	"github.com/segmentio/kafka-go/sasl/plain"
	"github.com/segmentio/kafka-go/sasl/scram"

	"github.com/isowatch/isowatch/ingest/source"
)

// TLS configures a client of TLS. The files are PEM.
type TLS struct {
	CA   string // authorities that sign servers' certificates; empty: the system's
	Cert string // client certificate, with its chain; empty for none
	Key  string // its private key
}

// The SASL mechanisms.
const (
	Plain       = "plain"
	ScramSHA256 = "scram-sha-256"
	ScramSHA512 = "scram-sha-512"
)

// SASL configures authentication.
type SASL struct {
	Mechanism string // Plain, ScramSHA256 or ScramSHA512, in any case
	Username  string
	Password  string
}

const (
	// messageMax is the size in bytes from which on a record is not delivered whole (source.Message.Oversize).
	messageMax = 16 << 20
	// queueMax bounds the bytes that wait to be read, in equal shares of the
	// partitions: each may have so many, or one batch. At most 256 batches wait, or one
	// of each partition. It is enough for 50 MB/s from brokers 25 ms away.
	// Beside it every partition holds at most one response in memory, of about
	// half its share, and if a record or the compression makes it larger of at most
	// messageMax bytes decoded (a response that decompresses to more is
	// decoded in parts).
	queueMax = 4 << 20
)

// Defaults of Options.
const (
	fetchMaxDefault = 1 << 20
	waitDefault     = 500 * time.Millisecond
	refreshDefault  = 5 * time.Second
	retryMinDefault = 100 * time.Millisecond
	retryMaxDefault = time.Second
)

// Connection says how to reach a cluster.
type Connection struct {
	Brokers  []string // host:port of some brokers; the others are learned
	TLS      *TLS     // nil: no TLS
	SASL     *SASL    // nil: no authentication
	ClientID string   // what the brokers log; default "isowatch"
	Key      string   // what messages about TLS and SASL files call it; default "source.kafka"
}

// Options configure a Source. The zero value of every field but Brokers and
// Topic is usable.
type Options struct {
	Connection
	Topic string
	// Offsets are as source.IdentityKey has them: the next offset by partition, and the
	// topic's identity, which may be absent. Partitions without begin at the earliest record that Kafka has; with
	// Latest with the first one that is decided after the start; with Since, if it is not zero, with the first whose
	// timestamp is that or later, or at the end if there is none.
	Offsets map[int]int64
	Latest  bool
	Since   time.Time
	// UntilEnd ends the source with io.EOF once every partition is read up to its
	// last stable offset as of the start. What follows an open transaction is
	// behind that offset, and so is the open transaction.
	UntilEnd bool

	// FetchMax is how many bytes to ask a partition for at a time, at most. Default 1 MiB.
	// It is less where half of the partition's share of queueMax is less, but that is taken
	// for 64 KiB at least. A first batch that is larger comes whole.
	FetchMax int
	// Wait is how long a broker may hold back an empty answer. Default 500 ms.
	Wait time.Duration
	// Refresh is how often partitions and leaders are asked for, also without
	// cause. Default 5 s.
	Refresh time.Duration
	// RetryMin and RetryMax bound the back-off after failures. Defaults 100 ms and
	// 1 s: for as long as one partition sleeps although its broker is back, those that
	// woke earlier get ahead of it, and who puts records in order does not wait for ever.
	RetryMin, RetryMax time.Duration

	// OnRetry is told every failure that will be retried, and OnWorks when a partition of which it was told can be read
	// again, before that is read. OnWarning is told what is amiss and yet no reason to stop. Each may be nil; they are
	// called by one goroutine at a time, but not always the same, and must not block.
	OnRetry   func(error)
	OnWorks   func(partition int)
	OnWarning func(string)
}

// complete checks o and fills in the defaults.
func (o *Options) complete() error {
	o.ClientID = cmp.Or(o.ClientID, "isowatch")
	o.FetchMax = cmp.Or(o.FetchMax, fetchMaxDefault)
	o.Wait = cmp.Or(o.Wait, waitDefault)
	o.Refresh = cmp.Or(o.Refresh, refreshDefault)
	o.RetryMin = cmp.Or(o.RetryMin, retryMinDefault)
	o.RetryMax = cmp.Or(o.RetryMax, retryMaxDefault)
	if o.Topic == "" {
		return &source.StartupError{What: "no Kafka topic is configured", Do: "set source.kafka.topic"}
	}
	return o.Connection.check()
}

func (c *Connection) check() error {
	if len(c.Brokers) == 0 {
		return &source.StartupError{What: "no Kafka broker is configured",
			Do: "set source.kafka.brokers to host:port of at least one"}
	}
	for _, b := range c.Brokers {
		if _, _, err := net.SplitHostPort(b); err != nil {
			return &source.StartupError{What: fmt.Sprintf("Kafka broker %q", b), Do: "write it as host:port", Err: err}
		}
	}
	return nil
}

func (c *Connection) mechanismName() string {
	if c.SASL == nil {
		return "none"
	}
	return strings.ToUpper(c.SASL.Mechanism)
}

// key is what messages call the connection.
func (c *Connection) key() string { return cmp.Or(c.Key, "source.kafka") }

// Check reads the TLS files and tries the settings that don't need a broker; the error is a
// *source.StartupError.
func (c *Connection) Check() error {
	if _, err := c.TLS.Config(c.key() + ".tls"); err != nil {
		return err
	}
	_, err := c.mechanism()
	return err
}

// Config reads the files; key is what messages call their part of the configuration. Nil gives nil.
func (t *TLS) Config(key string) (*tls.Config, error) {
	if t == nil {
		return nil, nil
	}
	cfg := &tls.Config{MinVersion: tls.VersionTLS12}
	if t.CA != "" {
		pem, err := os.ReadFile(t.CA)
		if err != nil {
			return nil, &source.StartupError{What: key + ".ca", Do: "name a readable PEM file", Err: err}
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(pem) {
			return nil, &source.StartupError{What: key + ".ca: " + t.CA + " holds no certificate",
				Do: "name a PEM file with CERTIFICATE blocks"}
		}
	}
	if (t.Cert == "") != (t.Key == "") {
		return nil, &source.StartupError{What: key + " has only one of cert and key", Do: "set both or neither"}
	}
	if t.Cert != "" {
		pair, err := tls.LoadX509KeyPair(t.Cert, t.Key)
		if err != nil {
			return nil, &source.StartupError{What: key + ".cert and .key",
				Do: "name a PEM certificate and the private key that belongs to it", Err: err}
		}
		cfg.Certificates = []tls.Certificate{pair}
	}
	return cfg, nil
}

// mechanism makes the SASL mechanism.
func (c *Connection) mechanism() (sasl.Mechanism, error) {
	if c.SASL == nil {
		return nil, nil
	}
	if c.SASL.Username == "" {
		return nil, &source.StartupError{What: c.key() + ".sasl has no username", Do: "set " + c.key() + ".sasl.username"}
	}
	var (
		m   sasl.Mechanism
		err error
	)
	switch strings.ToLower(c.SASL.Mechanism) {
	case Plain:
		m = plain.Mechanism{Username: c.SASL.Username, Password: c.SASL.Password}
	case ScramSHA256:
		m, err = scram.Mechanism(scram.SHA256, c.SASL.Username, c.SASL.Password)
	case ScramSHA512:
		m, err = scram.Mechanism(scram.SHA512, c.SASL.Username, c.SASL.Password)
	default:
		err = errors.New("unknown mechanism")
	}
	if err != nil {
		return nil, &source.StartupError{What: fmt.Sprintf("%s.sasl: mechanism %q", c.key(), c.SASL.Mechanism),
			Do: "use " + Plain + ", " + ScramSHA256 + " or " + ScramSHA512, Err: err}
	}
	return m, nil
}
