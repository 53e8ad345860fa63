package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Who waits, as /readyz names them.
const (
	whoInput   = "input"   // for the first batch
	whoSource  = "source"  // for a source that fails
	whoRestart = "restart" // for the state of the run before
	whoStore   = "store"   // for room on the disk
)

// readiness says whether the monitor does its work, and else what it waits for.
// It is safe for concurrent use.
type readiness struct {
	mu    sync.Mutex
	waits map[string]string // who waits → for what
}

// wait says what somebody waits for, and tells whether they did not wait yet.
func (r *readiness) wait(who, what string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.waits == nil {
		r.waits = map[string]string{}
	}
	_, waited := r.waits[who]
	r.waits[who] = what
	return !waited
}

// ready says that who does not wait any more, and tells whether it did.
func (r *readiness) ready(who string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, waited := r.waits[who]
	delete(r.waits, who)
	return waited
}

// reasons lists what is waited for, sorted; empty when ready.
func (r *readiness) reasons() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]string, 0, len(r.waits))
	for who, what := range r.waits {
		out = append(out, who+": "+what)
	}
	sort.Strings(out)
	return out
}

// server is the monitor's HTTP server.
type server struct {
	listener net.Listener
	http     *http.Server
	failed   chan error
}

// serve listens on addr and answers /healthz, /readyz and /metrics until
// stopped.
func serve(addr string, ready *readiness, m *metrics) (*server, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("http.listen: %w", err)
	}
	s := &server{listener: l, failed: make(chan error, 1), http: &http.Server{
		Handler:           routes(ready, m),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       30 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
	}}
	go func() {
		if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			s.failed <- err
		}
		close(s.failed)
	}()
	return s, nil
}

func routes(ready *readiness, m *metrics) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "ok")
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if reasons := ready.reasons(); len(reasons) > 0 {
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprintln(w, strings.Join(reasons, "\n"))
			return
		}
		fmt.Fprintln(w, "ready")
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{Registry: m.registry}))
	return mux
}

// stop ends the server; requests that are being answered get a second.
func (s *server) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	err := s.http.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = s.http.Close()
	}
	if failed := <-s.failed; failed != nil {
		err = failed
	}
	return err
}
