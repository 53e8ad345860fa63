package app

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	stdlog "log"
	"net"
	"net/http"
	"net/http/pprof"
	"sort"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/rs/zerolog"

	"github.com/isowatch/isowatch/alerts/page"
	"github.com/isowatch/isowatch/config"
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

// server is the monitor's HTTP server: http.listen, http.admin, or both.
type server struct {
	public, admin net.Listener // nil: none
	guard         *guard
	certs         *certificates // nil: no TLS
	running       []*http.Server
	failed        chan error
	stopped       chan struct{}
	serving       sync.WaitGroup
}

// Limits of the server; for bodies and answers see paced.
const (
	headerTimeout = 5 * time.Second
	idleTimeout   = 2 * time.Minute
)

// serve listens where the configuration says, and answers until stopped.
func (a *App) serve() (*server, error) {
	c := &a.cfg.HTTP
	s := &server{guard: newGuard(c, page.Public, func(reason string) { a.metrics.refused.WithLabelValues(reason).Inc() }),
		failed: make(chan error, 2), stopped: make(chan struct{})}
	if c.TLS != nil {
		var err error
		if s.certs, err = newCertificates(*c.TLS); err != nil {
			return nil, err
		}
		a.metrics.certificate.Set(float64(s.certs.expires.Load()))
		s.serving.Go(func() { s.certs.watch(s.stopped, func(_ bool, err error) { a.recertified(s.certs, err) }) })
	}
	var err error
	if c.Listen != "" {
		// A token that is given counts on loopback too: others may share the machine.
		if s.public, err = s.listen("http.listen", c.Listen, a.log, a.routes(s.guard), false); err != nil {
			return nil, errors.Join(err, s.stop())
		}
	}
	if c.Admin != "" {
		if s.admin, err = s.listen("http.admin", c.Admin, a.log, a.adminRoutes(), config.Loopback(c.Admin)); err != nil {
			return nil, errors.Join(err, s.stop())
		}
	}
	return s, nil
}

// listen answers on an address, which a key of the configuration has. open: nobody has to show anything.
func (s *server) listen(key, address string, log zerolog.Logger, routes http.Handler, open bool) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		err = fmt.Errorf("%w; name another, or none: --set %s=", err, key)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	loopback := config.Loopback(address)
	srv := &http.Server{
		Handler:           paced(s.guard.wrap(routes, open, loopback), time.Now),
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
		ConnContext:       withPlace,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: streamsMax},
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          stdlog.New(debugLines{log}, "", 0),
	}
	var serving net.Listener = &places{Listener: l, max: connectionsMax,
		taken: func() { s.guard.count("too-many-connections") }}
	if s.certs != nil && !(open && loopback) {
		serving = tls.NewListener(serving, s.certs.server())
	}
	s.running = append(s.running, srv)
	s.serving.Go(func() {
		if err := srv.Serve(serving); !errors.Is(err, http.ErrServerClosed) {
			s.failed <- err
		}
	})
	return l, nil
}

// debugLines are what the HTTP server says of connections that fail: mostly of
// others' making, and as many as they like.
type debugLines struct{ log zerolog.Logger }

func (d debugLines) Write(b []byte) (int, error) {
	d.log.Debug().Str("part", "http").Msg(strings.TrimSpace(string(b)))
	return len(b), nil
}

// routes are those of http.listen.
func (a *App) routes(g *guard) http.Handler {
	mux := http.NewServeMux()
	a.common(mux)
	if a.data != nil {
		var o page.Options
		if a.cfg.Source.HTTP != nil {
			o.Records = a.posts()
		}
		if a.cfg.HTTP.TokenFile != "" {
			o.Session = g.session()
		}
		mux.Handle("/", page.Handler(a.data, o))
	}
	return mux
}

// adminRoutes are those of http.admin.
func (a *App) adminRoutes() http.Handler {
	mux := http.NewServeMux()
	a.common(mux)
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("POST /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return mux
}

// common are the routes of both.
func (a *App) common(mux *http.ServeMux) {
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		if stuck := a.pulse.stuck(time.Now()); len(stuck) > 0 {
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprintln(w, strings.Join(stuck, "\n"))
			return
		}
		fmt.Fprintln(w, "ok")
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if reasons := a.ready.reasons(); len(reasons) > 0 {
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprintln(w, strings.Join(reasons, "\n"))
			return
		}
		fmt.Fprintln(w, "ready")
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(a.metrics.registry, promhttp.HandlerOpts{Registry: a.metrics.registry}))
}

// recertified tells that certificates were read again.
func (a *App) recertified(certs *certificates, err error) {
	if err != nil {
		a.log.Error().Err(err).Msg("the certificates can't be read again; those from before stay")
		return
	}
	a.metrics.certificate.Set(float64(certs.expires.Load()))
	a.log.Info().Time("expires", time.Unix(certs.expires.Load(), 0)).Msg("the certificates were read again")
}

// strictJSON reads an object that has nothing but v's fields.
func strictJSON(b []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if d.More() {
		return errors.New("more follows behind the object")
	}
	return nil
}

// stop ends the server; requests that are being answered get a moment.
func (s *server) stop() error {
	close(s.stopped)
	ctx, cancel := context.WithTimeout(context.Background(), stopGrace)
	defer cancel()
	var errs []error
	for _, srv := range s.running {
		err := srv.Shutdown(ctx)
		if errors.Is(err, context.DeadlineExceeded) {
			err = srv.Close()
		}
		errs = append(errs, err)
	}
	s.serving.Wait()
	close(s.failed)
	for err := range s.failed {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// stopGrace is how long requests are waited for at the end. Readers of events stay
// for as long as they may.
const stopGrace = 250 * time.Millisecond
