package kafka

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"

	kafkago "github.com/segmentio/kafka-go"

	"github.com/isowatch/isowatch/ingest/source"
)

// startup turns an error that only a person can mend into a
// *source.StartupError, and returns nil for every other: those are retried.
func (o *Options) startup(err error) *source.StartupError {
	var se *source.StartupError
	if errors.As(err, &se) {
		return se
	}
	brokers := strings.Join(o.Brokers, ",")
	if what, do := tlsFault(err, o.TLS != nil); what != "" {
		return &source.StartupError{What: fmt.Sprintf("kafka %s: %s", brokers, what), Do: do, Err: err}
	}
	var code kafkago.Error
	if !errors.As(err, &code) {
		return nil
	}
	switch code {
	case kafkago.SASLAuthenticationFailed:
		return &source.StartupError{What: "kafka " + brokers + ": the broker refuses the credentials",
			Do: "check source.kafka.sasl: mechanism, username and password", Err: err}
	case kafkago.UnsupportedSASLMechanism:
		return &source.StartupError{What: fmt.Sprintf("kafka %s: the broker does not offer the SASL mechanism %s", brokers,
			o.mechanismName()),
			Do: "set source.kafka.sasl.mechanism to one that the broker has enabled", Err: err}
	case kafkago.IllegalSASLState:
		return &source.StartupError{What: "kafka " + brokers + ": the listener does not expect SASL",
			Do: "remove source.kafka.sasl, or name the listener's SASL port in source.kafka.brokers", Err: err}
	case kafkago.TopicAuthorizationFailed:
		return &source.StartupError{What: fmt.Sprintf("kafka topic %q: no right to read it", o.Topic),
			Do: "grant the user the operations READ and DESCRIBE on the topic", Err: err}
	case kafkago.ClusterAuthorizationFailed:
		return &source.StartupError{What: "kafka " + brokers + ": no right to use the cluster",
			Do: "grant the user the operation READ on the topic", Err: err}
	case kafkago.InvalidTopic:
		return &source.StartupError{What: fmt.Sprintf("%q is no valid name of a Kafka topic", o.Topic),
			Do: "set source.kafka.topic", Err: err}
	}
	return nil
}

// tlsFault recognises errors of a TLS handshake that repeating it won't mend.
func tlsFault(err error, withTLS bool) (what, do string) {
	var (
		unknown  x509.UnknownAuthorityError
		host     x509.HostnameError
		invalid  x509.CertificateInvalidError
		verify   *tls.CertificateVerificationError
		record   tls.RecordHeaderError
		alert    tls.AlertError
		wanted   = strings.Contains(err.Error(), "expecting TLS")
		alertAny = strings.Contains(err.Error(), "remote error: tls:")
	)
	switch {
	case errors.As(err, &unknown):
		return "the broker's certificate is signed by an unknown authority",
			"set source.kafka.tls.ca to the authority's certificate"
	case errors.As(err, &host):
		return "the broker's certificate is for another host", "name the broker as its certificate does"
	case errors.As(err, &invalid), errors.As(err, &verify):
		return "the broker's certificate is not valid", "renew it, or correct source.kafka.tls.ca"
	case errors.As(err, &record):
		return "the listener does not speak TLS",
			"remove source.kafka.tls, or name the listener's TLS port in source.kafka.brokers"
	case withTLS && (errors.As(err, &alert) || alertAny):
		return "the broker ends the TLS handshake",
			"check source.kafka.tls.cert and .key: the broker may ask for a client certificate that it trusts"
	case !withTLS && wanted:
		return "the listener expects TLS", "set source.kafka.tls"
	}
	return "", ""
}

// explain adds to a failure what its cause may be, where the error alone does
// not say it: a broker that does not understand the first bytes hangs up.
func (o *Options) explain(err error) error {
	if !hungUp(err) {
		return err
	}
	tls, sasl := "does not speak TLS", "refuses these SASL credentials"
	if o.TLS == nil {
		tls = "expects TLS (source.kafka.tls)"
	}
	if o.SASL == nil {
		sasl = "expects SASL (source.kafka.sasl)"
	}
	return fmt.Errorf("%w (the broker does not answer; if it never does, its listener %s or %s)", err, tls, sasl)
}

// Error codes that kafka-go has no name for.
const (
	codeUnknownTopicID      = 100
	codeInconsistentTopicID = 103
)

// staleTopology tells whether an error code of a fetch means that partitions
// or leaders are not where they were thought to be.
func staleTopology(code int16) bool {
	switch kafkago.Error(code) {
	case kafkago.UnknownTopicOrPartition, kafkago.NotLeaderForPartition, kafkago.LeaderNotAvailable,
		kafkago.ReplicaNotAvailable, kafkago.FencedLeaderEpoch, kafkago.UnknownLeaderEpoch, kafkago.KafkaStorageError:
		return true
	}
	return code == codeUnknownTopicID || code == codeInconsistentTopicID
}

// codeError is a Kafka error code as an error.
func codeError(code int16) error {
	switch code {
	case codeUnknownTopicID, codeInconsistentTopicID:
		return fmt.Errorf("error %d: the topic is not the one it was", code)
	}
	return kafkago.Error(code)
}
