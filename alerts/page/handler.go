package page

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"
)

// Options of the page.
type Options struct {
	// Session answers POST and DELETE /api/v1/session, by which the page's form hands
	// in a token ({"token":"…"}) and gives it back; nil: no token is wanted. What
	// checks tokens lets this path, and the page's own files (Public), through.
	Session http.Handler
	// Records answers POST /api/v1/records; nil: records do not come this way.
	Records http.Handler
	// Heartbeat is how often a reader of events hears something at least; 0: every
	// 15 seconds.
	Heartbeat time.Duration
}

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

// RecordsPath is where records are posted to.
const RecordsPath = "/api/v1/records"

// Handler serves the page at / and what is behind it at /api/v1/. It stands behind Own.
func Handler(d Data, o Options) http.Handler {
	s := &server{data: d, opt: o, listeners: newLimit(listenersMax, listenersEach), large: newLimit(largeMax, largeEach)}
	if s.opt.Heartbeat <= 0 {
		s.opt.Heartbeat = 15 * time.Second
	}
	mux := http.NewServeMux()
	for name, a := range assets() {
		mux.Handle("GET "+exactly(name), a)
	}
	s.routes(mux)
	return guarded(mux)
}

// exactly is a pattern for this path alone.
func exactly(p string) string {
	if strings.HasSuffix(p, "/") {
		return p + "{$}"
	}
	return p
}

// server answers requests. It has no state but who is being answered.
type server struct {
	data      Data
	opt       Options
	listeners *limit // readers of events
	large     *limit // readers of answers that may be large
}

// The page loads nothing from elsewhere and runs nothing but its own files.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'none'; base-uri 'none'; frame-ancestors 'none'"

// guarded says on every answer what a browser may do with it.
func guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		next.ServeHTTP(w, r)
	})
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
