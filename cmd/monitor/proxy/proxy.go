// Package proxy stands between an application and its PostgreSQL. It passes on what both say, as it is, and records
// what transactions read and wrote (recorder/postgres).
//
//	client ──▶ proxy ──▶ PostgreSQL
//	             │
//	             ▼ records
//
// Whatever becomes of the recording, the traffic goes on.
package proxy

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/rs/zerolog"

	"github.com/isowatch/isowatch/recorder/postgres"
)

// Options of a Proxy.
type Options struct {
	// Upstream is where PostgreSQL is. Its user and password are not used: clients give their own.
	Upstream *pgconn.Config
	// TLS is for clients who ask for it; nil: they are told that there is none.
	TLS     *tls.Config
	Capture *postgres.Capture
	Log     zerolog.Logger
}

// Proxy passes connections on.
type Proxy struct {
	Options
	open atomic.Int64
}

// New makes a proxy; Serve lets it work.
func New(o Options) *Proxy { return &Proxy{Options: o} }

// Connections is how many clients are connected.
func (p *Proxy) Connections() int64 { return p.open.Load() }

// Serve takes connections from l until ctx ends, and ends them then.
func (p *Proxy) Serve(ctx context.Context, l net.Listener) error {
	var serving sync.WaitGroup
	defer serving.Wait()
	ctx, end := context.WithCancel(ctx)
	defer end()
	defer closeWith(ctx, l)()
	for {
		client, err := l.Accept()
		switch {
		case err == nil:
			serving.Go(func() { p.serve(ctx, client) })
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, net.ErrClosed):
			return err
		default:
			p.Log.Error().Err(err).Msg("a connection could not be taken")
			time.Sleep(acceptPause)
		}
	}
}

// closeWith closes c when ctx ends, or what it returns is called.
func closeWith(ctx context.Context, c io.Closer) func() {
	undo := context.AfterFunc(ctx, func() { c.Close() })
	return func() {
		undo()
		c.Close()
	}
}

const (
	// acceptPause is how long after a connection could not be taken the next is tried, as where there are too many files.
	acceptPause = 50 * time.Millisecond
	// helloMax is how long a client may take to say what it wants, and PostgreSQL to be reached.
	helloMax = 30 * time.Second
	// helloBytes is how long what it says may be, as PostgreSQL has it.
	helloBytes = 10_000
	// buffered is how much is passed on at once.
	buffered = 32 << 10
)

// The requests that come in place of a startup message.
const (
	requestCancel = 80877102
	requestTLS    = 80877103
	requestGSS    = 80877104
)

// serve passes on one connection.
func (p *Proxy) serve(ctx context.Context, client net.Conn) {
	defer closeWith(ctx, client)()
	_ = client.SetDeadline(time.Now().Add(helloMax))
	client, hello, err := p.hello(client)
	if err != nil {
		return // it was no client, or went
	}
	server, err := p.dial(ctx)
	if err != nil {
		p.Log.Error().Err(err).Msg("PostgreSQL can't be reached")
		refuse(client, err)
		return
	}
	defer closeWith(ctx, server)()
	if _, err := server.Write(hello); err != nil {
		return
	}
	if binary.BigEndian.Uint32(hello[4:]) == requestCancel {
		_, _ = io.Copy(io.Discard, server) // until it has taken it
		return
	}
	_ = client.SetDeadline(time.Time{})
	p.open.Add(1)
	defer p.open.Add(-1)
	heard := p.Capture.Connect()
	defer heard.Close()
	heard.FromClient(hello)
	var back sync.WaitGroup
	back.Go(func() {
		if !isSecure(server) || isSecure(client) || unbind(client, server, heard.FromServer) == nil {
			pass(client, server, heard.FromServer)
		}
		client.Close()
	})
	pass(server, client, heard.FromClient)
	server.Close()
	back.Wait()
}

// hello reads what a client wants first, and gives the connection on which it goes on: under TLS, if it has asked for
// that and there is some. What is refused, as the protocol has it, the client goes on without, or goes.
func (p *Proxy) hello(client net.Conn) (net.Conn, []byte, error) {
	for offers := p.TLS != nil; ; {
		b := make([]byte, 8, 256)
		if _, err := io.ReadFull(client, b); err != nil {
			return nil, nil, err
		}
		length := binary.BigEndian.Uint32(b)
		if length < 8 || length > helloBytes {
			return nil, nil, errors.New("no PostgreSQL client")
		}
		b = append(b, make([]byte, length-8)...)
		if _, err := io.ReadFull(client, b[8:]); err != nil {
			return nil, nil, err
		}
		answer, request := byte('N'), binary.BigEndian.Uint32(b[4:])
		switch {
		case request == requestTLS && offers:
			answer = 'S'
		case request != requestTLS && request != requestGSS:
			return client, b, nil
		}
		if _, err := client.Write([]byte{answer}); err != nil {
			return nil, nil, err
		}
		if answer == 'S' { // nothing of what came before is read as if it had come under TLS
			offers, client = false, tls.Server(client, p.TLS)
		}
	}
}

// dial connects to PostgreSQL, with TLS as its address says.
func (p *Proxy) dial(ctx context.Context) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, helloMax)
	defer cancel()
	tries := []*pgconn.FallbackConfig{{Host: p.Upstream.Host, Port: p.Upstream.Port, TLSConfig: p.Upstream.TLSConfig}}
	var failed error
	for _, to := range append(tries, p.Upstream.Fallbacks...) {
		network, address := pgconn.NetworkAddress(to.Host, to.Port)
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if err == nil && to.TLSConfig != nil {
			conn, err = secure(ctx, conn, to.TLSConfig)
		}
		if err == nil {
			return conn, nil
		}
		failed = errors.Join(failed, fmt.Errorf("%s: %w", address, err))
	}
	return nil, failed
}

// secure begins TLS on a connection to PostgreSQL, which it closes when ctx ends before.
func secure(ctx context.Context, conn net.Conn, c *tls.Config) (net.Conn, error) {
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	answer := []byte{0}
	_, err := conn.Write(binary.BigEndian.AppendUint32([]byte{0, 0, 0, 8}, requestTLS))
	if err == nil {
		_, err = io.ReadFull(conn, answer)
	}
	if err == nil && answer[0] != 'S' {
		err = errors.New("it has no TLS; sslmode=disable in the address does without")
	}
	if err == nil {
		secured := tls.Client(conn, c)
		if err = secured.HandshakeContext(ctx); err == nil {
			return secured, nil
		}
	}
	conn.Close()
	return nil, err
}

func isSecure(c net.Conn) bool {
	_, is := c.(*tls.Conn)
	return is
}

// unbind passes on what a PostgreSQL under TLS answers first to a client that is not: from the ways to log in that it
// offers the one is left out that is bound to TLS, at which such a client would take the offer for an attack.
func unbind(client io.Writer, server io.Reader, heard func([]byte)) error {
	const saslOffer, bound = 10, "SCRAM-SHA-256-PLUS\x00"
	for {
		b := make([]byte, 5)
		if _, err := io.ReadFull(server, b); err != nil {
			return err
		}
		length := binary.BigEndian.Uint32(b[1:])
		if length < 4 || length > buffered {
			return errors.New("no PostgreSQL")
		}
		b = append(b, make([]byte, length-4)...)
		if _, err := io.ReadFull(server, b[5:]); err != nil {
			return err
		}
		kind := b[0]
		if kind == 'R' && length > 8 && binary.BigEndian.Uint32(b[5:]) == saslOffer {
			b = append(b[:9], bytes.ReplaceAll(b[9:], []byte(bound), nil)...)
			binary.BigEndian.PutUint32(b[1:], uint32(len(b)-1))
		}
		heard(b)
		if _, err := client.Write(b); err != nil || kind != 'N' && kind != 'v' { // a notice, another version
			return err
		}
	}
}

// refuse tells a client that there is no PostgreSQL.
func refuse(client net.Conn, why error) {
	m := pgproto3.ErrorResponse{Severity: "FATAL", SeverityUnlocalized: "FATAL", Code: "08006",
		Message: "monitor proxy: PostgreSQL can't be reached: " + why.Error()}
	if b, err := m.Encode(nil); err == nil {
		_, _ = client.Write(b)
	}
}

// pass passes on what from says, which is heard before to gets it.
func pass(to io.Writer, from io.Reader, heard func([]byte)) {
	b := make([]byte, buffered)
	for {
		n, err := from.Read(b)
		if n > 0 {
			heard(b[:n])
			if _, err := to.Write(b[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
