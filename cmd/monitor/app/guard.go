package app

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/isowatch/isowatch/alerts/page"
	"github.com/isowatch/isowatch/config"
)

// guard decides who may ask the monitor what. It is safe for concurrent use.
//
// Who asks proves it by a certificate of http.tls.client_ca, by the token as a bearer,
// or by the session that a browser gets for the token (session). What may be another
// site's doing is refused before that (page.Own), on loopback by its name for the monitor too.
type guard struct {
	now    func() time.Time
	client bool     // http.tls.client_ca is given
	base   *url.URL // http.base_url; nil: none
	count  func(reason string)
	public func(*http.Request) bool

	mu       sync.Mutex
	token    [sha256.Size]byte // its hash, so that comparing tells nothing of its length either
	hasToken bool
	sessions map[[sha256.Size]byte]time.Time // hash → when it is over
	failures map[netip.Prefix]*rate.Limiter
}

// The limits of sessions and of wrong tokens. Wrong tokens are counted by address,
// an IPv6 network of /64 being one.
const (
	sessionsMax   = 256
	sessionLasts  = 12 * time.Hour
	failuresBurst = 10
	failuresEvery = 6 * time.Second
	failuresMax   = 1024 // addresses; beyond, all others count as one
	loginBytesMax = 4 << 10
)

func newGuard(c *config.HTTP, public func(*http.Request) bool, count func(reason string)) *guard {
	g := &guard{now: time.Now, count: count, client: c.TLS != nil && c.TLS.ClientCA != "", public: public,
		sessions: map[[sha256.Size]byte]time.Time{}, failures: map[netip.Prefix]*rate.Limiter{}}
	if u, err := url.Parse(c.BaseURL); err == nil && c.BaseURL != "" {
		g.base = u
	}
	g.setToken(string(c.Token))
	return g
}

// setToken changes the token; who came with the old one is out. Empty: none.
func (g *guard) setToken(token string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	sum := sha256.Sum256([]byte(token))
	if sum == g.token && g.hasToken == (token != "") {
		return
	}
	g.token, g.hasToken = sum, token != ""
	clear(g.sessions)
}

// asks tells whether anything has to be shown.
func (g *guard) asks() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.hasToken || g.client
}

// wrap lets those requests pass that are allowed. open: nobody has to show
// anything; loopback: the listener is on loopback.
func (g *guard) wrap(next http.Handler, open, loopback bool) http.Handler {
	return page.Own(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		if !open && g.asks() && !health(r) && !g.free(r) {
			ok, wait := g.allows(r)
			switch {
			case wait > 0:
				g.tooMany(w, wait)
				return
			case !ok:
				w.Header().Set("WWW-Authenticate", `Bearer realm="isowatch"`)
				g.refuse(w, http.StatusUnauthorized, "unauthorized", "the monitor wants a token or a client certificate",
					"send Authorization: Bearer and the contents of http.token_file, or open the monitor's page and enter it there")
				return
			}
			keepPlace(r.Context())
		}
		next.ServeHTTP(w, r)
	}), g.base, loopback, g.refuse)
}

// refuse answers a request that is not let pass.
func (g *guard) refuse(w http.ResponseWriter, status int, code, message, hint string) {
	g.count(code)
	page.WriteError(w, status, code, message, hint)
}

// tooMany answers who has shown too many wrong tokens.
func (g *guard) tooMany(w http.ResponseWriter, wait time.Duration) {
	w.Header().Set("Retry-After", strconv.Itoa(int(wait/time.Second)+1))
	g.refuse(w, http.StatusTooManyRequests, "too-many-failures", "too many wrong tokens from this address",
		"wait as long as Retry-After says")
}

// health tells whether a request is one of those that say nothing but how it goes.
func health(r *http.Request) bool { return r.URL.Path == "/healthz" || r.URL.Path == "/readyz" }

// free tells whether a request needs no token: it is for what a browser needs to
// ask for one. Where only certificates count, there is nothing to ask for.
func (g *guard) free(r *http.Request) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.hasToken && g.public != nil && g.public(r)
}

// allows tells whether a request shows something that counts; for wait see check.
func (g *guard) allows(r *http.Request) (ok bool, wait time.Duration) {
	if g.known(r) {
		return true, 0
	}
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		return false, 0
	}
	return g.check(r, strings.TrimSpace(token))
}

// known tells whether a request shows what nobody can guess: a certificate or a
// session.
func (g *guard) known(r *http.Request) bool {
	if g.client && r.TLS != nil && len(r.TLS.VerifiedChains) > 0 {
		return true
	}
	c, err := r.Cookie(g.cookie(r).Name)
	if err != nil {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	over, ok := g.sessions[sha256.Sum256([]byte(c.Value))]
	return ok && g.now().Before(over)
}

// check compares a token, in a time that tells nothing of it, and counts wrong ones. After too many of
// them none is looked at, and whoever shows one has to wait. That is decided when all of the token is
// there: between a look at the count and the token, others could come in.
func (g *guard) check(r *http.Request, token string) (ok bool, wait time.Duration) {
	sum := sha256.Sum256([]byte(token))
	g.mu.Lock()
	defer g.mu.Unlock()
	failures := g.limiter(r)
	if missing := 1 - failures.TokensAt(g.now()); missing > 0 {
		return false, time.Duration(missing * float64(failuresEvery))
	}
	if g.hasToken && subtle.ConstantTimeCompare(sum[:], g.token[:]) == 1 {
		return true, 0
	}
	failures.AllowN(g.now(), 1)
	return false, 0
}

// limiter counts the wrong tokens of the address that a request comes from. g.mu is
// held.
func (g *guard) limiter(r *http.Request) *rate.Limiter {
	from := page.Network(r)
	if l := g.failures[from]; l != nil {
		return l
	}
	if len(g.failures) >= failuresMax {
		for p, l := range g.failures {
			if l.TokensAt(g.now()) >= failuresBurst {
				delete(g.failures, p)
			}
		}
	}
	if len(g.failures) >= failuresMax {
		from = netip.Prefix{} // all that are not known
		if l := g.failures[from]; l != nil {
			return l
		}
	}
	l := rate.NewLimiter(rate.Every(failuresEvery), failuresBurst)
	g.failures[from] = l
	return l
}

// cookie is the cookie of a session, without its value. Cookies know no ports: the
// name has this one, so that two monitors on a machine don't take each other's.
func (g *guard) cookie(r *http.Request) *http.Cookie {
	c := &http.Cookie{Name: "isowatch", Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode,
		Secure: r.TLS != nil || g.base != nil && g.base.Scheme == "https"}
	if at, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok {
		if _, port, err := net.SplitHostPort(at.String()); err == nil {
			c.Name += "-" + port
		}
	}
	if c.Secure {
		c.Name = "__Host-" + c.Name
	}
	return c
}

// session answers POST, by which a browser gives the token for a session, and
// DELETE, which ends it. The token is in the body, {"token": "…"}, or a form's field of
// that name.
func (g *guard) session() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		c := g.cookie(r)
		switch r.Method {
		case http.MethodPost:
			token, err := handedIn(w, r)
			if err != nil {
				g.refuse(w, http.StatusBadRequest, "invalid", "the token can't be read: "+err.Error(),
					`send {"token": "…"} as application/json`)
				return
			}
			ok, wait := g.check(r, token)
			switch {
			case wait > 0:
				g.tooMany(w, wait)
				return
			case !ok:
				g.refuse(w, http.StatusUnauthorized, "unauthorized", "that is not the token",
					"it stands in the file that http.token_file names")
				return
			}
			keepPlace(r.Context())
			c.Value, c.MaxAge = g.begin(), int(sessionLasts/time.Second)
		case http.MethodDelete:
			if had, err := r.Cookie(c.Name); err == nil {
				g.mu.Lock()
				delete(g.sessions, sha256.Sum256([]byte(had.Value)))
				g.mu.Unlock()
			}
			c.MaxAge = -1
		default:
			w.Header().Set("Allow", "POST, DELETE")
			g.refuse(w, http.StatusMethodNotAllowed, "method", r.Method+" is not for a session",
				"POST begins one, DELETE ends it")
			return
		}
		http.SetCookie(w, c)
		w.WriteHeader(http.StatusNoContent)
	})
}

// handedIn reads the token from the body of a request.
func handedIn(w http.ResponseWriter, r *http.Request) (string, error) {
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	body := http.MaxBytesReader(w, r.Body, loginBytesMax)
	if kind == "application/json" {
		var in struct {
			Token string `json:"token"`
		}
		b, err := io.ReadAll(body)
		if err == nil {
			err = strictJSON(b, &in)
		}
		return strings.TrimSpace(in.Token), err
	}
	r.Body = body
	err := r.ParseForm()
	return strings.TrimSpace(r.PostForm.Get("token")), err
}

// begin makes a session and returns what the cookie says. The one that is over
// first goes when there are too many.
func (g *guard) begin() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails
	value := hex.EncodeToString(b[:])
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	var first [sha256.Size]byte
	var least time.Time
	for id, over := range g.sessions {
		if !now.Before(over) {
			delete(g.sessions, id)
			continue
		}
		if least.IsZero() || over.Before(least) {
			first, least = id, over
		}
	}
	if len(g.sessions) >= sessionsMax {
		delete(g.sessions, first)
	}
	g.sessions[sha256.Sum256([]byte(value))] = now.Add(sessionLasts)
	return value
}
