package page

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"mime"
	"net"
	"net/http"
	"net/url"
	"path"
	"strings"
	"sync"
	"time"
)

// Options of the page.
type Options struct {
	// Version of the program, as it is shown.
	Version string
	// BaseURL is where people reach the page, https://monitor.example:8080; empty:
	// wherever the request was sent to. Requests that change something have to come
	// from a page of this origin, or of the host that they are sent to.
	BaseURL string
	// Guarded says that whoever gets this far has shown a token or a certificate.
	// Otherwise requests are only answered under a name that can't be somebody
	// else's: an address, localhost, or the host of BaseURL. So a foreign page whose
	// name was made to point here (DNS rebinding) reads nothing.
	Guarded bool
	// Session answers POST and DELETE /api/v1/session, by which the page's form hands
	// in a token ({"token":"…"}) and gives it back; nil: no token is wanted. What
	// checks tokens lets this path, and the page's own files (Public), through.
	Session http.Handler
	// Heartbeat is how often a reader of events hears something at least; 0: every
	// 15 seconds.
	Heartbeat time.Duration
}

// subscribersMax is how many may listen to events at once.
const subscribersMax = 64

// Public tells whether a request is for what the page needs before anybody has
// shown a token: its own files, and the form's way to hand one in. None has data
// in it.
func Public(r *http.Request) bool {
	if r.URL.Path == sessionPath {
		return true
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return false
	}
	_, ok := assets()[r.URL.Path]
	return ok
}

const sessionPath = "/api/v1/session"

// Handler serves the page at / and what is behind it at /api/v1/.
func Handler(d Data, o Options) http.Handler {
	s := &server{data: d, opt: o, listeners: make(chan struct{}, subscribersMax)}
	if s.opt.Heartbeat <= 0 {
		s.opt.Heartbeat = 15 * time.Second
	}
	if u, err := url.Parse(o.BaseURL); err == nil && o.BaseURL != "" {
		s.host = u.Hostname()
		// An origin has no path.
		_ = s.origin.AddTrustedOrigin(u.Scheme + "://" + u.Host)
	}
	s.origin.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fail(w, http.StatusForbidden, "cross-origin", "the request comes from another site", "open the monitor's own page, or set http.base_url to the address that people use")
	}))
	mux := http.NewServeMux()
	for name, a := range assets() {
		mux.Handle("GET "+exactly(name), a)
	}
	s.routes(mux)
	return s.guard(s.origin.Handler(mux))
}

// exactly is a pattern for this path alone.
func exactly(p string) string {
	if strings.HasSuffix(p, "/") {
		return p + "{$}"
	}
	return p
}

// server answers requests. It has no state but who listens.
type server struct {
	data      Data
	opt       Options
	host      string // of BaseURL
	origin    http.CrossOriginProtection
	listeners chan struct{} // one in it for each reader of events
}

// The page loads nothing from elsewhere and runs nothing but its own files.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"

// guard says on every answer what a browser may do with it, and refuses foreign
// names.
func (s *server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		if !s.opt.Guarded && !s.own(r.Host) {
			fail(w, http.StatusMisdirectedRequest, "foreign-host", "the monitor is not known by the name "+quote(r.Host), "use its address, or set http.base_url to the address that people use")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// own tells whether a Host header names this server for certain.
func (s *server) own(hostport string) bool {
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	}
	host = strings.Trim(host, "[]")
	if net.ParseIP(host) != nil || strings.EqualFold(host, "localhost") {
		return true
	}
	return s.host != "" && strings.EqualFold(host, s.host)
}

//go:embed static
var static embed.FS

// asset is one of the page's files.
type asset struct {
	data, kind, tag string
}

// ServeHTTP implements http.Handler. A browser asks each time whether the file is
// still the same, so that after an update no old part meets a new one.
func (a asset) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", a.kind)
	h.Set("Cache-Control", "no-cache")
	h.Set("ETag", a.tag)
	http.ServeContent(w, r, "", time.Time{}, strings.NewReader(a.data))
}

// assets are the page's files by their paths.
var assets = sync.OnceValue(func() map[string]asset {
	out := map[string]asset{}
	err := fs.WalkDir(static, "static", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(static, p)
		sum := sha256.Sum256(data)
		name := strings.TrimPrefix(p, "static")
		a := asset{data: string(data), kind: kind(p), tag: `"` + hex.EncodeToString(sum[:12]) + `"`}
		if out[name] = a; name == "/index.html" {
			out["/"] = a
		}
		return err
	})
	if err != nil {
		panic("can't happen, because the files are part of the program: " + err.Error())
	}
	return out
})

// kind is a file's media type. It does not depend on what the machine knows.
func kind(p string) string {
	switch path.Ext(p) {
	case ".html":
		return "text/html; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".js", ".mjs":
		return "text/javascript; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	case ".yaml":
		return "application/yaml"
	}
	if t := mime.TypeByExtension(path.Ext(p)); t != "" {
		return t
	}
	return "text/plain; charset=utf-8"
}
