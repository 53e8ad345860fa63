package app

import (
	"container/list"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"time"
)

// places is a listener on which at most max connections are open. One more takes the place of
// another: the one that has been open for longest without having shown who it is, or, if all have,
// the oldest of them. So nobody who does no more than hold connections keeps others out, and least of
// all those who ask how it goes. It is safe for concurrent use.
type places struct {
	net.Listener

	max   int
	taken func() // a place was taken from somebody

	mu               sync.Mutex
	strangers, known list.List // of *place, oldest first
}

// place is a connection that has one.
type place struct {
	net.Conn

	in   *places
	list *list.List // nil: it is closed
	at   *list.Element
}

// Accept waits for a connection, never for a place.
func (p *places) Accept() (net.Conn, error) {
	c, err := p.Listener.Accept()
	if err != nil {
		return nil, err
	}
	next := &place{Conn: c, in: p}
	p.mu.Lock()
	var gone *place
	if p.strangers.Len()+p.known.Len() >= p.max {
		from := &p.strangers
		if from.Len() == 0 {
			from = &p.known
		}
		gone = from.Front().Value.(*place)
		gone.leave()
	}
	next.enter(&p.strangers)
	p.mu.Unlock()
	if gone != nil {
		_ = gone.Conn.Close() // whoever reads or writes there learns it
		p.taken()
	}
	return next, nil
}

// enter puts a connection behind those of a list; leave takes it out of its own. p.in.mu is held.
func (p *place) enter(l *list.List) { p.list, p.at = l, l.PushBack(p) }

func (p *place) leave() {
	if p.list != nil {
		p.list.Remove(p.at)
		p.list, p.at = nil, nil
	}
}

// Close implements net.Conn.
func (p *place) Close() error {
	p.in.mu.Lock()
	p.leave()
	p.in.mu.Unlock()
	return p.Conn.Close()
}

// placeKey is where a request's context has its connection.
type placeKey struct{}

// withPlace is for http.Server.ConnContext.
func withPlace(ctx context.Context, c net.Conn) context.Context {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	return context.WithValue(ctx, placeKey{}, c)
}

// keepPlace says that whoever sends a request has shown who they are.
func keepPlace(ctx context.Context) {
	p, ok := ctx.Value(placeKey{}).(*place)
	if !ok {
		return
	}
	p.in.mu.Lock()
	defer p.in.mu.Unlock()
	if p.list == &p.in.strangers {
		p.leave()
		p.enter(&p.in.known)
	}
}

// The pace that clients have to keep.
const (
	// bodyTimeout is for all of a request's body. What is sent to the monitor is small.
	bodyTimeout = 10 * time.Second
	// writePatience is how long a reader may take for each paceBytes of an answer.
	writePatience = 30 * time.Second
	paceBytes     = 64 << 10
	// connectionsMax is how many connections a listener has at once (places): those of both listeners leave the store the
	// files that it needs where a process may have 1,024. streamsMax is how many requests there are on each at once
	// under HTTP/2.
	connectionsMax = 128
	streamsMax     = 32
)

// paced ends what does not go on: a body that does not come, and an answer that is not
// read. How long all of an answer takes is up to its reader, as long as it reads.
// Who streams sets deadlines of its own.
func paced(next http.Handler, now func() time.Time) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Every connection of a listener has deadlines.
		control := http.NewResponseController(w)
		if r.ContentLength != 0 {
			_ = control.SetReadDeadline(now().Add(bodyTimeout))
		}
		p := &pacer{ResponseWriter: w, control: control, now: now}
		p.more() // those of the request before still hold
		next.ServeHTTP(p, r)
	})
}

// pacer moves the deadline with what is read of an answer.
type pacer struct {
	http.ResponseWriter

	control *http.ResponseController
	now     func() time.Time
}

// Unwrap is for http.ResponseController.
func (p *pacer) Unwrap() http.ResponseWriter { return p.ResponseWriter }

func (p *pacer) more() { _ = p.control.SetWriteDeadline(p.now().Add(writePatience)) }

// Write implements http.ResponseWriter.
func (p *pacer) Write(b []byte) (n int, err error) {
	for {
		part := b[n:min(len(b), n+paceBytes)]
		p.more()
		m, err := p.ResponseWriter.Write(part)
		if n += m; err != nil || n == len(b) {
			return n, err
		}
	}
}
