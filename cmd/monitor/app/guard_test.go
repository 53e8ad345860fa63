package app

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/isowatch/isowatch/alerts/page"
	"github.com/isowatch/isowatch/config"
)

const testToken = "0123456789abcdef"

// guarded is a guard of a configuration, its clock, and what it has refused.
func guarded(c config.HTTP) (g *guard, clock *time.Time, refused map[string]int) {
	now, refused := time.Unix(1000, 0), map[string]int{}
	g = newGuard(&c, page.Public, func(reason string) { refused[reason]++ })
	g.now = func() time.Time { return now }
	return g, &now, refused
}

// ask sends a request through a guard, and returns its status.
func ask(g *guard, open, loopback bool, r *http.Request) int {
	w := httptest.NewRecorder()
	g.wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }), open, loopback).ServeHTTP(w, r)
	return w.Code
}

func TestGuard(t *testing.T) {
	const (
		passes  = http.StatusTeapot
		unknown = http.StatusUnauthorized
		foreign = http.StatusMisdirectedRequest
		cross   = http.StatusForbidden
	)
	token := config.HTTP{Token: testToken, TokenFile: "f"}
	ca := config.HTTP{TLS: &config.ServerTLS{ClientCA: "ca"}}
	both := config.HTTP{Token: testToken, TokenFile: "f", TLS: ca.TLS}
	named := config.HTTP{BaseURL: "https://watch.example.org/isowatch"}
	const right = "Bearer " + testToken
	for _, tc := range []struct {
		name           string
		config         config.HTTP
		open, loopback bool
		method, target string // GET, /metrics
		host           string // 127.0.0.1:8080
		header         map[string]string
		certificate    bool
		want           int
	}{
		{name: "loopback asks for nothing", loopback: true, want: passes},
		{name: "by another loopback address", loopback: true, host: "[::1]:8080", want: passes},
		{name: "localhost", loopback: true, host: "LOCALHOST:8080", want: passes},
		{name: "a site that calls itself 127.0.0.1", loopback: true, host: "evil.example:8080", want: foreign},
		{name: "so does one for its health", loopback: true, host: "evil.example", target: "/readyz", want: foreign},
		{name: "localhost as a part of a name", loopback: true, host: "localhost.evil.example", want: foreign},
		{name: "the name that people use", config: named, loopback: true, host: "watch.example.org", want: passes},
		{name: "behind a proxy names are its matter", config: token, host: "any.example", header: map[string]string{"Authorization": right}, want: passes},
		{name: "no token", config: token, want: unknown},
		{name: "the token", config: token, header: map[string]string{"Authorization": right}, want: passes},
		{name: "a part of the token", config: token, header: map[string]string{"Authorization": right[:len(right)-1]}, want: unknown},
		{name: "the token and more", config: token, header: map[string]string{"Authorization": right + "0"}, want: unknown},
		{name: "the token by another way", config: token, header: map[string]string{"Authorization": "Basic " + testToken}, want: unknown},
		{name: "an empty token", config: token, header: map[string]string{"Authorization": "Bearer "}, want: unknown},
		{name: "an empty token where there is none", config: ca, header: map[string]string{"Authorization": "Bearer "}, want: unknown},
		{name: "a token counts on loopback too", config: token, loopback: true, want: unknown},
		{name: "an open listener", config: token, open: true, loopback: true, want: passes},
		{name: "health is open", config: token, target: "/healthz", want: passes},
		{name: "readiness is open", config: ca, target: "/readyz", want: passes},
		{name: "what begins like it is not", config: token, target: "/healthz/x", want: unknown},
		{name: "the page's files are open to who has a token to enter", config: token, target: "/", want: passes},
		{name: "the page's data are not", config: token, target: "/api/v1/status", want: unknown},
		{name: "where only certificates count, nothing is open", config: ca, target: "/", want: unknown},
		{name: "a certificate", config: ca, certificate: true, want: passes},
		{name: "a certificate or a token", config: both, certificate: true, want: passes},
		{name: "a certificate where none counts", config: token, certificate: true, want: unknown},
		{name: "a request that another site makes", config: token, method: "POST", target: "/api/v1/silences",
			header: map[string]string{"Authorization": right, "Sec-Fetch-Site": "cross-site"}, want: cross},
		{name: "one of an older browser", loopback: true, method: "DELETE", header: map[string]string{"Origin": "https://evil.example"}, want: cross},
		{name: "the page's own", loopback: true, method: "POST", header: map[string]string{"Origin": "http://127.0.0.1:8080"}, want: passes},
		{name: "the page's own behind a proxy", config: named, loopback: true, method: "POST", header: map[string]string{"Origin": "https://watch.example.org"}, want: passes},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g, _, _ := guarded(tc.config)
			target, host, method := tc.target, tc.host, tc.method
			if target == "" {
				target = "/metrics"
			}
			if host == "" {
				host = "127.0.0.1:8080"
			}
			if method == "" {
				method = http.MethodGet
			}
			r := httptest.NewRequest(method, target, nil)
			r.Host = host
			for k, v := range tc.header {
				r.Header.Set(k, v)
			}
			if tc.certificate {
				r.TLS = &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{{}}}}
			}
			if got := ask(g, tc.open, tc.loopback, r); got != tc.want {
				t.Errorf("%d, want %d", got, tc.want)
			}
		})
	}
}

// from is a request from an address, with a token.
func from(address, token string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	r.RemoteAddr = address
	r.Header.Set("Authorization", "Bearer "+token)
	return r
}

// TestWrongTokensAreLimited: after a few wrong tokens an address has to wait, with the
// right one too; others don't.
func TestWrongTokensAreLimited(t *testing.T) {
	g, clock, refused := guarded(config.HTTP{Token: testToken, TokenFile: "f"})
	for i := range failuresBurst {
		if got := ask(g, false, false, from("192.0.2.1:1", "wrong")); got != http.StatusUnauthorized {
			t.Fatalf("attempt %d: %d", i, got)
		}
	}
	for _, tc := range []struct {
		address, token string
		want           int
	}{
		{"192.0.2.1:2", "wrong", http.StatusTooManyRequests},
		{"192.0.2.1:3", testToken, http.StatusTooManyRequests},
		{"192.0.2.2:1", testToken, http.StatusTeapot},
		{"[2001:db8::1]:1", "wrong", http.StatusUnauthorized},
	} {
		if got := ask(g, false, false, from(tc.address, tc.token)); got != tc.want {
			t.Errorf("%s %s: %d, want %d", tc.address, tc.token, got, tc.want)
		}
	}
	*clock = clock.Add(failuresEvery)
	if got := ask(g, false, false, from("192.0.2.1:4", testToken)); got != http.StatusTeapot {
		t.Errorf("later: %d", got)
	}
	if refused["unauthorized"] != failuresBurst+1 || refused["too-many-failures"] != 2 {
		t.Errorf("counted %v", refused)
	}
	// A network of one owner is one address, and addresses are bounded.
	for i := range failuresBurst {
		ask(g, false, false, from(fmt.Sprintf("[2001:db8::%d]:1", i+2), "wrong"))
	}
	if got := ask(g, false, false, from("[2001:db8::ffff]:1", testToken)); got != http.StatusTooManyRequests {
		t.Errorf("another address of the same network: %d", got)
	}
	for i := range 3 * failuresMax {
		ask(g, false, false, from(fmt.Sprintf("10.%d.%d.1:1", i/256, i%256), "wrong"))
	}
	if n := len(g.failures); n > failuresMax+1 {
		t.Errorf("%d addresses are kept", n)
	}
}

// login hands in a token.
func login(g *guard, body, kind string, secure bool) *http.Response {
	r := httptest.NewRequest(http.MethodPost, "/api/v1/session", strings.NewReader(body))
	r.Header.Set("Content-Type", kind)
	if secure {
		r.TLS = &tls.ConnectionState{}
	}
	w := httptest.NewRecorder()
	g.session().ServeHTTP(w, r)
	return w.Result()
}

func TestSession(t *testing.T) {
	g, clock, _ := guarded(config.HTTP{Token: testToken, TokenFile: "f"})
	const asJSON = "application/json"
	for _, tc := range []struct {
		body, kind string
		want       int
	}{
		{`{"token":"wrong"}`, asJSON, http.StatusUnauthorized},
		{`{"token":""}`, asJSON, http.StatusUnauthorized},
		{`{"tokem":"x"}`, asJSON, http.StatusBadRequest},
		{`nonsense`, asJSON, http.StatusBadRequest},
		{`{"token":"` + strings.Repeat("x", loginBytesMax) + `"}`, asJSON, http.StatusBadRequest},
		{"token=" + testToken, "application/x-www-form-urlencoded", http.StatusNoContent},
		{`{"token":"` + testToken + `\n"}`, asJSON + "; charset=utf-8", http.StatusNoContent},
	} {
		if got := login(g, tc.body, tc.kind, false); got.StatusCode != tc.want {
			t.Errorf("%.40s: %d, want %d", tc.body, got.StatusCode, tc.want)
		}
	}
	c := login(g, `{"token":"`+testToken+`"}`, asJSON, false).Cookies()[0]
	if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Secure || strings.Contains(c.Value, testToken) {
		t.Errorf("cookie %s", c)
	}
	if s := login(g, `{"token":"`+testToken+`"}`, asJSON, true).Cookies()[0]; !s.Secure || !strings.HasPrefix(s.Name, "__Host-") {
		t.Errorf("under TLS, cookie %s", s)
	}
	with := func(value string) int {
		r := httptest.NewRequest(http.MethodGet, "/api/v1/status", nil)
		r.AddCookie(&http.Cookie{Name: c.Name, Value: value})
		return ask(g, false, false, r)
	}
	if got := with(c.Value); got != http.StatusTeapot {
		t.Errorf("with its cookie: %d", got)
	}
	if got := with(c.Value + "0"); got != http.StatusUnauthorized {
		t.Errorf("with another: %d", got)
	}
	*clock = clock.Add(sessionLasts - time.Second)
	if got := with(c.Value); got != http.StatusTeapot {
		t.Errorf("just before it is over: %d", got)
	}
	*clock = clock.Add(time.Second)
	if got := with(c.Value); got != http.StatusUnauthorized {
		t.Errorf("when it is over: %d", got)
	}
	// It ends with DELETE, and with another token.
	c = login(g, `{"token":"`+testToken+`"}`, asJSON, false).Cookies()[0]
	r := httptest.NewRequest(http.MethodDelete, "/api/v1/session", nil)
	r.AddCookie(c)
	g.session().ServeHTTP(httptest.NewRecorder(), r)
	if got := with(c.Value); got != http.StatusUnauthorized {
		t.Errorf("after DELETE: %d", got)
	}
	c = login(g, `{"token":"`+testToken+`"}`, asJSON, false).Cookies()[0]
	g.setToken(testToken)
	if got := with(c.Value); got != http.StatusTeapot {
		t.Errorf("with the same token read again: %d", got)
	}
	g.setToken("another token, longer")
	if got := with(c.Value); got != http.StatusUnauthorized {
		t.Errorf("after the token changed: %d", got)
	}
	for range sessionsMax + 5 {
		g.begin()
	}
	if n := len(g.sessions); n != sessionsMax {
		t.Errorf("%d sessions are kept, want %d", n, sessionsMax)
	}
}
