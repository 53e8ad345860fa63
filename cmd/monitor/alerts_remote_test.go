package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/isowatch/isowatch/alerts/page"
	"github.com/isowatch/isowatch/config"
)

// asked lists the alerts of a monitor at an address.
func asked(t *testing.T, s *shelf, address string) error {
	t.Helper()
	r, err := newRemote(s, config.Default(), address)
	if err != nil {
		return err
	}
	defer r.Close()
	return r.Alerts(t.Context(), page.Filter{}, func(page.Summary) error { return nil })
}

// TestRemoteAnswers: whatever answers in the place of a monitor, the error says what to
// do, with the exit status of whose fault it is, in bounded memory and without the token.
func TestRemoteAnswers(t *testing.T) {
	const token = "s3same-s3same-s3same"
	t.Setenv(config.TokenEnv, token)
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("the request went on to another host, with %q", r.Header.Get("Authorization"))
	}))
	defer elsewhere.Close()
	say := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}
	}
	for _, c := range []struct {
		name   string
		answer http.HandlerFunc
		status int
		says   string
	}{
		{"an empty list", say(200, `{"alerts":[]}`), exitOK, ""},
		{"no JSON", say(200, "<html>It works!</html>"), exitEnvironment, "no monitor"},
		{"another JSON", say(200, `{"alerts":7}`), exitEnvironment, "no monitor"},
		{"nothing", say(200, ""), exitEnvironment, "no monitor"},
		{"no token", say(401, `{"error":{"code":"unauthorized","message":"a token is wanted","hint":"send one"}}`), exitUnusable, "a token is wanted; send one"},
		{"a question that is wrong", say(400, `{"error":{"code":"bad","message":"what \u001b[31mlevel"}}`), exitUnusable, `what \x1b[31mlevel`},
		{"an error", say(500, "oops"), exitEnvironment, "answered 500"},
		{"a proxy", say(502, "<html>"), exitEnvironment, "answered 502"},
		{"a redirect", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
		}, exitEnvironment, "answered 307"},
		{"an endless list", say(200, `{"alerts":[],"next":7}`), exitEnvironment, "again and again"},
		{"a huge answer", func(w http.ResponseWriter, _ *http.Request) {
			chunk := make([]byte, 1<<20)
			for range remoteMax>>20 + 8 {
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
		}, exitEnvironment, "larger than"},
		{"an answer that breaks off", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			_, _ = io.WriteString(w, `{"alerts":[`)
		}, exitEnvironment, "unexpected EOF"},
	} {
		t.Run(c.name, func(t *testing.T) {
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Authorization") != "Bearer "+token {
					t.Errorf("Authorization %q", r.Header.Get("Authorization"))
				}
				c.answer(w, r)
			}))
			defer srv.Close()
			err := asked(t, &shelf{}, srv.URL)
			if c.status == exitOK {
				if err != nil {
					t.Error(err)
				}
				return
			}
			var e *failure
			if !errors.As(err, &e) || e.status != c.status || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), token) || strings.Contains(err.Error(), "\x1b") {
				t.Errorf("%v, want status %d and %q", err, c.status, c.says)
			}
		})
	}
}

// TestRemoteTLS: a monitor's certificate is verified, and one is shown to it where it
// asks for one.
func TestRemoteTLS(t *testing.T) {
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{}`) }))
	srv.StartTLS()
	defer srv.Close()
	dir := t.TempDir()
	file := func(name, kind string, der []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	key, err := x509.MarshalPKCS8PrivateKey(srv.TLS.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	ca, private := file("ca.pem", "CERTIFICATE", srv.Certificate().Raw), file("key.pem", "PRIVATE KEY", key)
	strict := httptest.NewUnstartedServer(srv.Config.Handler)
	strict.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert, MinVersion: tls.VersionTLS12}
	strict.StartTLS()
	defer strict.Close()
	for _, c := range []struct {
		name    string
		shelf   shelf
		address string
		says    string
	}{
		{"trusted", shelf{ca: ca}, srv.URL, ""},
		{"not trusted", shelf{}, srv.URL, "certificate"},
		{"it wants one", shelf{ca: ca}, strict.URL, "certificate required"},
		{"it gets one", shelf{ca: ca, cert: ca, key: private}, strict.URL, ""},
		{"half of one", shelf{ca: ca, cert: ca}, strict.URL, "go together"},
		{"no authority", shelf{ca: private}, srv.URL, "holds no certificate"},
	} {
		err := asked(t, &c.shelf, c.address)
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
