package app

import (
	"container/list"
	"context"
	"crypto/tls"
	"net"
	"sync"
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
