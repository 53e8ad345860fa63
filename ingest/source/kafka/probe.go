package kafka

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	kafkago "github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/isowatch/isowatch/ingest/source"
)

// hungUp tells whether the broker ended the connection without an answer, or
// gave none, as it does when it does not understand the first bytes. It is also
// what a broker looks like that is just going down.
func hungUp(err error) bool {
	return ended(err) || errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded)
}

// ended tells whether the broker ended the connection.
func ended(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET)
}

// probe finds out why brokers hang up, by speaking to them in the ways that
// are not configured. It returns nil where that tells nothing.
func (o *Options) probe(ctx context.Context, w *wire) *source.StartupError {
	for _, addr := range o.Brokers {
		if se := o.probeBroker(ctx, w, addr); se != nil {
			return se
		}
	}
	return nil
}

func (o *Options) probeBroker(ctx context.Context, w *wire, addr string) *source.StartupError {
	if se := o.probeTLS(ctx, w, addr); se != nil || o.SASL != nil || o.TLS != nil {
		return se
	}
	return o.probeSASL(ctx, w, addr)
}

// probeDial opens a connection that no request outlives for long. It may fail
// at any of the probes: a broker that hangs up is often one that is going down.
func probeDial(ctx context.Context, addr string) (net.Conn, error) {
	conn, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	_ = conn.SetDeadline(time.Now().Add(2 * time.Second)) // a connection without it is only slower to fail
	return conn, nil
}

// probeTLS finds out whether the listener and the configuration disagree about
// TLS.
func (o *Options) probeTLS(ctx context.Context, w *wire, addr string) *source.StartupError {
	conn, err := probeDial(ctx, addr)
	if err != nil {
		return nil
	}
	defer conn.Close()
	if o.TLS == nil {
		// Only whether there is a handshake matters, nothing is sent over it.
		if tls.Client(conn, &tls.Config{InsecureSkipVerify: true}).HandshakeContext(ctx) == nil {
			return &source.StartupError{What: "kafka " + addr + ": the listener expects TLS",
				Do: "set source.kafka.tls, or name the plaintext port"}
		}
	} else if _, err := probeFor[*kmsg.ApiVersionsResponse](w, conn, kmsg.NewPtrApiVersionsRequest(), 0); err == nil {
		return &source.StartupError{What: "kafka " + addr + ": the listener does not speak TLS",
			Do: "remove source.kafka.tls, or name the listener's TLS port in source.kafka.brokers"}
	}
	return nil
}

// probeSASL finds out whether the listener expects an authentication that is
// not configured.
func (o *Options) probeSASL(ctx context.Context, w *wire, addr string) *source.StartupError {
	conn, err := probeDial(ctx, addr)
	if err != nil {
		return nil
	}
	defer conn.Close()
	req := kmsg.NewPtrSASLHandshakeRequest()
	req.Mechanism = "PLAIN"
	resp, err := probeFor[*kmsg.SASLHandshakeResponse](w, conn, req, 1)
	if err != nil || kafkago.Error(resp.ErrorCode) == kafkago.IllegalSASLState || !refusesStrangers(ctx, w, addr) {
		return nil
	}
	do := "set source.kafka.sasl"
	if len(resp.SupportedMechanisms) > 0 {
		do += "; the broker offers " + strings.Join(resp.SupportedMechanisms, ", ")
	}
	return &source.StartupError{What: fmt.Sprintf("kafka %s: the listener expects SASL authentication", addr), Do: do}
}

// refusesStrangers tells whether the listener ends the connection of who asks for something
// and did not say who he is. That it would talk about authentication is not enough: not every
// broker says that it has no use for one, and one that was only slow to answer before is no reason
// to give up.
func refusesStrangers(ctx context.Context, w *wire, addr string) bool {
	conn, err := probeDial(ctx, addr)
	if err != nil {
		return false
	}
	defer conn.Close()
	req := kmsg.NewPtrMetadataRequest()
	req.Topics = []kmsg.MetadataRequestTopic{} // none; nil would be all
	_, err = probeFor[*kmsg.MetadataResponse](w, conn, req, 4)
	return ended(err)
}

// probeFor sends a request of a version on a connection that is not the
// transport's.
func probeFor[R kmsg.Response](w *wire, conn net.Conn, req kmsg.Request, version int16) (R, error) {
	req.SetVersion(version)
	resp := req.ResponseKind()
	err := w.exchange(conn, req, responseMax, readWhole(resp))
	return resp.(R), err
}
