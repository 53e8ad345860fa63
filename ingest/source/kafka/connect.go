package kafka

import (
	"context"
	"net"
	"sync"
	"time"

	kafkago "github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// connections are a transport and the network connections it opened, so that
// closing leaves none behind: the transport alone closes only the idle ones.
type connections struct {
	*wire
	cancel context.CancelFunc

	mu     sync.Mutex
	open   map[net.Conn]struct{}
	closed bool
}

// connect prepares connections; none is opened before the first request.
// topics are those whose metadata the transport itself keeps.
func (c *Connection) connect(topics ...string) (*connections, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	tlsConfig, err := c.TLS.Config(c.key() + ".tls")
	if err != nil {
		return nil, err
	}
	mechanism, err := c.mechanism()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	cs := &connections{cancel: cancel, open: map[net.Conn]struct{}{}}
	cs.wire = &wire{
		transport: &kafkago.Transport{
			Dial:           cs.dial,
			MetadataTopics: topics,
			MetadataTTL:    5 * time.Second,
			ClientID:       c.ClientID,
			TLS:            tlsConfig,
			SASL:           mechanism,
			Context:        ctx,
		},
		addr:     kafkago.TCP(c.Brokers...),
		format:   kmsg.NewRequestFormatter(kmsg.FormatterClientID(c.ClientID)),
		versions: map[int32]map[int16]int16{},
	}
	return cs, nil
}

var dialer = net.Dialer{Timeout: 3 * time.Second, KeepAlive: 15 * time.Second}

func (cs *connections) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if cs.closed {
		conn.Close()
		return nil, net.ErrClosed
	}
	t := &tracked{Conn: conn, cs: cs}
	cs.open[t] = struct{}{}
	return t, nil
}

// close closes every connection. Requests under way fail.
func (cs *connections) close() {
	cs.cancel()
	cs.mu.Lock()
	cs.closed = true
	open := make([]net.Conn, 0, len(cs.open))
	for c := range cs.open {
		open = append(open, c)
	}
	cs.mu.Unlock()
	for _, c := range open {
		c.Close()
	}
	cs.transport.CloseIdleConnections()
}

// tracked is a connection that leaves the list when it is closed.
type tracked struct {
	net.Conn
	cs *connections
}

func (t *tracked) Close() error {
	t.cs.mu.Lock()
	delete(t.cs.open, t)
	t.cs.mu.Unlock()
	return t.Conn.Close()
}
