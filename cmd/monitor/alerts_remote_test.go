package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/isowatch/isowatch/alerts/page"
	"github.com/isowatch/isowatch/config"
)

// listed lists the alerts of a book.
func listed(t *testing.T, b book) (err error) {
	t.Helper()
	for _, err = range everyAlert(t.Context(), b, page.Filter{}) {
	}
	return err
}

// asked lists the alerts of a monitor at an address.
func asked(t *testing.T, s *shelf, address string) error {
	t.Helper()
	r, err := newRemote(s, config.Default(), address, false)
	if err != nil {
		return err
	}
	defer r.Close()
	return listed(t, r)
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

// TestRemoteHere: the monitor of a configuration is asked at this machine's address,
// whoever its certificate is for; another one, or one that is named by --url, must have a
// certificate for what it was named by.
func TestRemoteHere(t *testing.T) {
	issue := func(template x509.Certificate) (tls.Certificate, string) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		template.SerialNumber, template.NotBefore, template.NotAfter = big.NewInt(1), time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
		der, err := x509.CreateCertificate(rand.Reader, &template, &template, &key.PublicKey, key)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "cert.pem")
		if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, file
	}
	other, _ := issue(x509.Certificate{DNSNames: []string{"isowatch.example.org"}})
	for _, tc := range []struct {
		name     string
		template x509.Certificate
		here     bool
		other    bool // shows a certificate that the configuration does not name
		says     string
	}{
		{"for a name", x509.Certificate{DNSNames: []string{"isowatch.example.org", "other.example.org"}}, true, false, ""},
		{"for all names of a domain", x509.Certificate{DNSNames: []string{"*.example.org"}}, true, false, ""},
		{"for another address", x509.Certificate{IPAddresses: []net.IP{net.IPv4(192, 0, 2, 7)}}, true, false, ""},
		{"for this address", x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}, true, false, ""},
		{"for nobody", x509.Certificate{}, true, false, "certificate"},
		{"another one's", x509.Certificate{DNSNames: []string{"isowatch.example.org"}}, true, true, "certificate"},
		{"named by --url", x509.Certificate{DNSNames: []string{"isowatch.example.org"}}, false, false, "certificate"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			pair, file := issue(tc.template)
			if tc.other {
				pair = other
			}
			srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{}`) }))
			srv.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
			srv.Config.ErrorLog = log.New(io.Discard, "", 0)
			srv.StartTLS()
			defer srv.Close()
			c := config.Default()
			c.HTTP.TLS = &config.ServerTLS{Cert: file}
			r, err := newRemote(&shelf{}, c, srv.URL, tc.here)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			err = listed(t, r)
			if (err == nil) != (tc.says == "") || err != nil && !strings.Contains(err.Error(), tc.says) {
				t.Errorf("%v, want %q", err, tc.says)
			}
		})
	}
}
