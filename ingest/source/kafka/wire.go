package kafka

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	kafkago "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	// anyBroker asks whichever bootstrap broker answers.
	anyBroker = -1
	// callTimeout bounds a request that the broker is not asked to hold back.
	callTimeout = 10 * time.Second
	// responseMax bounds the responses that are read into memory whole: all but
	// those to fetches.
	responseMax = 16 << 20
)

// wire sends requests over the connections of a kafka-go transport. The
// requests are kmsg's, whose versions reach further than kafka-go's own (topic
// identities); the transport lets a message speak for itself on a connection
// (protocol.RawExchanger), which is all that is needed.
type wire struct {
	transport *kafkago.Transport
	addr      net.Addr // of the bootstrap brokers
	format    *kmsg.RequestFormatter

	mu sync.Mutex
	// versions are the highest versions per API key that a broker speaks,
	// forgotten when a connection to it fails: it may come back upgraded.
	versions map[int32]map[int16]int16
}

// bodyReader reads the body of a response from r, which ends with it.
type bodyReader func(r *bufio.Reader, version int16) (any, error)

// call sends req to a broker and returns what read makes of the response's
// body. max caps the request's version; kmsg's own limit and the broker's
// apply as well.
func (w *wire) call(ctx context.Context, broker int32, req kmsg.Request, max int16, read bodyReader) (any, error) {
	resp, err := w.transport.RoundTrip(ctx, w.addr, &exchange{w: w, broker: broker, req: req, max: max, read: read})
	if err != nil {
		w.forget(broker)
		return nil, err
	}
	return resp.(*reply).body, nil
}

// request is call for responses that are read whole.
func request[R kmsg.Response](ctx context.Context, w *wire, broker int32, req kmsg.Request) (R, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var none R
	body, err := w.call(ctx, broker, req, req.MaxVersion(), func(r *bufio.Reader, version int16) (any, error) {
		resp := req.ResponseKind()
		return resp, readWhole(resp)(r, version)
	})
	if err != nil {
		return none, err
	}
	return body.(R), nil
}

// readWhole reads a response.
func readWhole(resp kmsg.Response) func(*bufio.Reader, int16) error {
	return func(r *bufio.Reader, version int16) error {
		b, err := io.ReadAll(r)
		if err != nil {
			return err
		}
		resp.SetVersion(version)
		return resp.ReadFrom(b)
	}
}

func (w *wire) forget(broker int32) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.versions, broker)
}

// highest tells which version of the API to use on a connection to broker. It
// asks the broker on that connection if it is not known. A bootstrap address
// may be any broker, so what it said is not kept.
func (w *wire) highest(rw io.ReadWriter, broker int32, key int16) (int16, error) {
	w.mu.Lock()
	known := w.versions[broker]
	w.mu.Unlock()
	if known == nil {
		req := kmsg.NewPtrApiVersionsRequest() // version 0, which every broker speaks
		resp := req.ResponseKind().(*kmsg.ApiVersionsResponse)
		if err := w.exchange(rw, req, responseMax, readWhole(resp)); err != nil {
			return 0, fmt.Errorf("asking for protocol versions: %w", err)
		}
		if resp.ErrorCode != 0 {
			return 0, fmt.Errorf("asking for protocol versions: %w", kafkago.Error(resp.ErrorCode))
		}
		known = make(map[int16]int16, len(resp.ApiKeys))
		for _, k := range resp.ApiKeys {
			known[k.ApiKey] = k.MaxVersion
		}
		if broker != anyBroker {
			w.mu.Lock()
			w.versions[broker] = known
			w.mu.Unlock()
		}
	}
	v, ok := known[key]
	if !ok {
		return 0, fmt.Errorf("the broker does not offer %s", kmsg.NameForKey(key))
	}
	return v, nil
}

var bodyReaders = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, 64<<10) }}

// correlation is the id of every request: a connection carries one at a time,
// and a response to another is an error whichever number it has.
const correlation = 0x69736f77

// exchange writes a request and reads its response on one connection. The body
// is handed to read, and what read leaves of it is discarded, so that the
// connection can serve the next request.
func (w *wire) exchange(rw io.ReadWriter, req kmsg.Request, sizeMax int64,
	read func(*bufio.Reader, int16) error) error {
	if _, err := rw.Write(w.format.AppendRequest(nil, req, correlation)); err != nil {
		return err
	}
	var head [8]byte
	if _, err := io.ReadFull(rw, head[:]); err != nil {
		return err
	}
	size := int64(int32(binary.BigEndian.Uint32(head[:4]))) - 4
	if size < 0 || size > sizeMax {
		return fmt.Errorf("the broker announces a response of %d bytes to %s: is this a Kafka port without TLS?",
			size, kmsg.NameForKey(req.Key()))
	}
	if id := binary.BigEndian.Uint32(head[4:]); id != correlation {
		return fmt.Errorf("response %#x to request %#x", id, uint32(correlation))
	}
	r := bodyReaders.Get().(*bufio.Reader)
	defer func() {
		r.Reset(nil)
		bodyReaders.Put(r)
	}()
	r.Reset(io.LimitReader(rw, size))
	// Responses to ApiVersions have the old header in every version.
	if req.IsFlexible() && req.Key() != int16(kmsg.ApiVersions) {
		f := fields{r: r}
		if f.skipTags(); f.err != nil {
			return f.err
		}
	}
	if err := read(r, req.GetVersion()); err != nil {
		return err
	}
	_, err := io.Copy(io.Discard, r)
	return err
}

// exchange is a request as the transport routes it, speaking for itself once it
// has a connection.
type exchange struct {
	w      *wire
	broker int32
	req    kmsg.Request
	max    int16
	read   bodyReader
}

// reply is the response to an exchange.
type reply struct {
	key  protocol.ApiKey
	body any
}

var (
	_ protocol.RawExchanger  = (*exchange)(nil)
	_ protocol.BrokerMessage = (*exchange)(nil)
)

func (r *reply) ApiKey() protocol.ApiKey    { return r.key }
func (e *exchange) ApiKey() protocol.ApiKey { return protocol.ApiKey(e.req.Key()) }

// Broker implements protocol.BrokerMessage: who is asked is decided here, not
// from the transport's metadata, which may be older.
func (e *exchange) Broker(protocol.Cluster) (protocol.Broker, error) {
	return protocol.Broker{ID: e.broker}, nil
}

// Required implements protocol.RawExchanger.
func (e *exchange) Required(map[protocol.ApiKey]int16) bool { return true }

// RawExchange implements protocol.RawExchanger. An error closes the connection.
func (e *exchange) RawExchange(rw io.ReadWriter) (protocol.Message, error) {
	v, err := e.w.highest(rw, e.broker, e.req.Key())
	if err != nil {
		return nil, err
	}
	e.req.SetVersion(min(v, e.max, e.req.MaxVersion()))
	limit := int64(responseMax)
	if e.req.Key() == int16(kmsg.Fetch) {
		limit = 1<<31 - 1 // decoded as it streams in
	}
	out := &reply{key: e.ApiKey()}
	if err := e.w.exchange(rw, e.req, limit, func(r *bufio.Reader, version int16) (err error) {
		out.body, err = e.read(r, version)
		return err
	}); err != nil {
		return nil, err
	}
	return out, nil
}
