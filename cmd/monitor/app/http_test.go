package app

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/isowatch/isowatch/config"
)

// authority makes certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{}
	a.cert, a.key = a.issue(t, &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	return a
}

// issue makes a certificate, an authority's own if it has none yet.
func (a *authority) issue(t *testing.T, c *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		t.Fatal(err)
	}
	c.SerialNumber, c.NotBefore, c.NotAfter = serial, time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	c.Subject = pkix.Name{CommonName: "test " + serial.String()}
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	out, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return out, key
}

// pair is a certificate for a server on 127.0.0.1 and for a client.
func (a *authority) pair(t *testing.T) tls.Certificate {
	t.Helper()
	c, key := a.issue(t, &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}})
	return tls.Certificate{Certificate: [][]byte{c.Raw}, PrivateKey: key, Leaf: c}
}

// put writes a certificate and its key as the configuration names them.
func put(t *testing.T, c *config.ServerTLS, pair tls.Certificate) {
	t.Helper()
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	for path, b := range map[string]*pem.Block{c.Cert: {Type: "CERTIFICATE", Bytes: pair.Certificate[0]}, c.Key: {Type: "PRIVATE KEY", Bytes: key}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(b), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// secured is a monitor that has not begun, with TLS, an authority for clients and a
// token, and the configuration that it has.
func secured(t *testing.T, ca *authority, change ...func(*config.Config)) (*App, *config.Config, *syncBuffer) {
	t.Helper()
	dir := t.TempDir()
	c := config.Default()
	c.Source.Stdin = &config.Stdin{}
	c.HTTP.Listen, c.HTTP.Admin = "127.0.0.1:0", "127.0.0.1:0"
	c.HTTP.TLS = &config.ServerTLS{Cert: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem"), ClientCA: filepath.Join(dir, "ca.pem")}
	c.HTTP.TokenFile, c.HTTP.Token = "token", testToken
	put(t, c.HTTP.TLS, ca.pair(t))
	if err := os.WriteFile(c.HTTP.TLS.ClientCA, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.cert.Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, f := range change {
		f(c)
	}
	log := &syncBuffer{}
	level := &LogLevel{}
	c.Log.Level = "warn"
	if err := level.Set(c.Log.Level); err != nil {
		t.Fatal(err)
	}
	a, err := New(Options{Config: c, Log: zerolog.New(log).Hook(level), LogLevel: level, Store: newMemStore()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	return a, c, log
}

// fetch asks for a page, by a client with or without a certificate, and returns its
// status and the certificate that the server showed.
func fetch(t *testing.T, url, token string, ca *authority, mine ...tls.Certificate) (int, *x509.Certificate, string) {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AddCert(ca.cert)
	tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: mine}, DisableKeepAlives: true}
	defer tr.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := (&http.Client{Transport: tr}).Do(req)
	if err != nil {
		return 0, nil, err.Error()
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.TLS == nil {
		return resp.StatusCode, nil, string(body)
	}
	return resp.StatusCode, resp.TLS.PeerCertificates[0], string(body)
}

func TestTLS(t *testing.T) {
	ca, others := newAuthority(t), newAuthority(t)
	a, _, _ := secured(t, ca)
	url := "https://" + a.Addr()
	for _, tc := range []struct {
		name, path, token string
		mine              []tls.Certificate
		want              int
	}{
		{"nobody", "/metrics", "", nil, http.StatusUnauthorized},
		{"the token", "/metrics", testToken, nil, http.StatusOK},
		{"a certificate", "/metrics", "", []tls.Certificate{ca.pair(t)}, http.StatusOK},
		{"health", "/healthz", "", nil, http.StatusOK},
		{"profiles are elsewhere", "/debug/pprof/", testToken, nil, http.StatusNotFound},
	} {
		if got, _, body := fetch(t, url+tc.path, tc.token, ca, tc.mine...); got != tc.want {
			t.Errorf("%s: %d, want %d: %s", tc.name, got, tc.want, body)
		}
	}
	// A client does not even show a certificate of an authority that is not asked for,
	// so that it is as one without.
	if got, _, body := fetch(t, url+"/metrics", "", ca, others.pair(t)); got == http.StatusOK {
		t.Errorf("a foreign certificate: %d %s", got, body)
	}
	admin := "http://" + a.server.admin.Addr().String()
	for _, path := range []string{"/metrics", "/debug/pprof/", "/debug/pprof/cmdline"} {
		if got, _, body := fetch(t, admin+path, "", ca); got != http.StatusOK {
			t.Errorf("%s on the admin listener: %d %s", path, got, body)
		}
	}
}

// TestReload: certificates, token and log level change at once; what can't is named, and
// what can't be read changes nothing.
func TestReload(t *testing.T) {
	ca := newAuthority(t)
	a, c, log := secured(t, ca)
	url := "https://" + a.Addr() + "/metrics"
	_, before, _ := fetch(t, url, testToken, ca)

	next := *c
	next.Log.Level, next.HTTP.Token, next.Window.Lateness = "info", "fedcba9876543210", time.Hour
	put(t, c.HTTP.TLS, ca.pair(t))
	if err := a.Reload(&next); err != nil {
		t.Fatal(err)
	}
	code, after, body := fetch(t, url, "fedcba9876543210", ca)
	if code != http.StatusOK || after.Equal(before) {
		t.Errorf("%d, the certificate is the same: %v", code, after.Equal(before))
	}
	if code, _, _ := fetch(t, url, testToken, ca); code != http.StatusUnauthorized {
		t.Errorf("with the old token: %d", code)
	}
	for _, want := range []string{`"keys":["window.lateness"]`, `"changed":["log.level","http.token_file"]`} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log has no %s:\n%s", want, log)
		}
	}
	if !strings.Contains(body, "isowatch_config_last_reload_successful 1\n") {
		t.Error("the metrics don't say that it succeeded")
	}

	// The key of another certificate: nothing changes, not even what is right.
	if err := os.WriteFile(c.HTTP.TLS.Key, []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	third := next
	third.HTTP.Token = "a third token, also long"
	if err := a.Reload(&third); !errors.As(err, new(config.Errors)) {
		t.Errorf("got %v", err)
	}
	code, still, body := fetch(t, url, "fedcba9876543210", ca)
	if code != http.StatusOK || !still.Equal(after) {
		t.Errorf("after a failure: %d, the certificate is the same: %v", code, still.Equal(after))
	}
	if !strings.Contains(body, "isowatch_config_last_reload_successful 0\n") {
		t.Error("the metrics don't say that it failed")
	}

	// Without a token anybody could come in: that is no configuration for this address.
	put(t, c.HTTP.TLS, ca.pair(t))
	fourth := next
	fourth.HTTP.Token, fourth.HTTP.TokenFile = "", ""
	if err := a.Reload(&fourth); err != nil {
		t.Fatal(err)
	}
	if code, _, _ := fetch(t, url, "", ca); code != http.StatusUnauthorized {
		t.Errorf("without a token: %d", code)
	}
	if !strings.Contains(log.String(), errTokenGone.Error()) {
		t.Errorf("the log does not say why the token stays:\n%s", log)
	}
}

func TestStuckIsUnhealthy(t *testing.T) {
	var p pulse
	now := time.Unix(5000, 0)
	p.of("idle").rest()
	p.of("quick").work(now.Add(-time.Second))
	if got := p.stuck(now); len(got) > 0 {
		t.Errorf("stuck: %q", got)
	}
	p.of("history b").work(now.Add(-stuckAfter))
	p.of("history a").work(now.Add(-stuckAfter - time.Minute))
	want := "history a: has been at one piece of work for 6m0s\nhistory b: has been at one piece of work for 5m0s"
	if got := strings.Join(p.stuck(now), "\n"); got != want {
		t.Errorf("stuck: %q, want %q", got, want)
	}
	if got := p.longest(now); got != stuckAfter+time.Minute {
		t.Errorf("longest: %v", got)
	}
	p.of("history a").rest()
	p.of("history b").work(now)
	if got := p.stuck(now); len(got) > 0 {
		t.Errorf("afterwards stuck: %q", got)
	}
}
