package page

import (
	"context"
	"net/http"
	"net/netip"
	"sync"
	"time"
)

// limit bounds how many requests of a kind are answered at once, in all and of one
// address, an IPv6 network of /64 being one. It is safe for concurrent use.
type limit struct {
	all, each int

	mu    sync.Mutex
	taken map[netip.Prefix]int
	total int
	freed chan struct{} // closed when one is done, and made anew
}

func newLimit(all, each int) *limit {
	return &limit{all: all, each: each, taken: map[netip.Prefix]int{}, freed: make(chan struct{})}
}

// Network is where a request comes from: an address, or a /64 of IPv6; the zero Prefix if that is not known.
func Network(r *http.Request) netip.Prefix {
	ap, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Prefix{}
	}
	a, bits := ap.Addr().Unmap().WithZone(""), 32
	if a.Is6() {
		bits = 64
	}
	p, _ := a.Prefix(bits) // there are so many bits
	return p
}

// take lets one more of an address in, and returns what has to be called when it is done; or
// else what is closed when another one is.
func (l *limit) take(who netip.Prefix) (done func(), freed <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.total >= l.all || l.taken[who] >= l.each {
		return nil, l.freed
	}
	l.total++
	l.taken[who]++
	return func() { l.free(who) }, nil
}

func (l *limit) free(who netip.Prefix) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.total--
	if l.taken[who]--; l.taken[who] == 0 {
		delete(l.taken, who)
	}
	close(l.freed)
	l.freed = make(chan struct{})
}

// wait is take, for as long as a request may wait; nil: it waited in vain.
func (l *limit) wait(ctx context.Context, who netip.Prefix, most time.Duration) func() {
	late := time.NewTimer(most)
	defer late.Stop()
	for {
		done, freed := l.take(who)
		if done != nil {
			return done
		}
		select {
		case <-freed:
		case <-late.C:
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}

// The bounds. An alert has up to some megabytes, of which an answer takes several times as
// many in memory, for as long as its reader takes.
const (
	listenersMax, listenersEach = 128, 32
	largeMax, largeEach         = 8, 4
	largePatience               = 5 * time.Second
)

// bounded answers f's requests, which may be large, a few at a time.
func (s *server) bounded(f func(http.ResponseWriter, *http.Request) error) func(http.ResponseWriter,
	*http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		done := s.large.wait(r.Context(), Network(r), largePatience)
		if done == nil {
			w.Header().Set("Retry-After", "5")
			return &problem{http.StatusServiceUnavailable, "busy", "too many alerts are being read at once",
				"ask again, and read the answers as they come"}
		}
		defer done()
		return f(w, r)
	}
}
