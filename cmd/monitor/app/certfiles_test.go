package app

import (
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	webhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/isowatch/isowatch/config"
)

// TestReloadFiles: what the files of a receiver hold, its authority and its secret, is
// read again at a reload that changes nothing else; files that can't be used change
// nothing.
func TestReloadFiles(t *testing.T) {
	t.Parallel()
	const before, after = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"
	ca, other := newAuthority(t), newAuthority(t)
	h := newHook(t)
	signed := make(chan string, 100)
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		for _, secret := range []string{before, after} {
			verifier, err := webhooks.NewWebhook(secret)
			if err != nil {
				t.Error(err)
			}
			if verifier.Verify(body, r.Header) == nil {
				signed <- secret
			}
		}
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		h.srv.Config.Handler.ServeHTTP(w, r)
	}))
	srv.TLS = &tls.Config{Certificates: []tls.Certificate{ca.pair(t)}, MinVersion: tls.VersionTLS12}
	srv.StartTLS()
	t.Cleanup(srv.Close)

	dir := t.TempDir()
	file := func(name string, text []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	trust := func(a *authority) string {
		return file("ca.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw}))
	}
	authority, secret := trust(other), file("secret", []byte(before))
	brokers := cluster(t)
	p := producer(t, brokers)
	load := func() *config.Config {
		t.Helper()
		text := fmt.Sprintf("source: {kafka: {brokers: [%s], topic: %s}}\nalerts: {webhooks: [{url: %q, secret_file: %q, tls: {ca: %q}}]}\n", brokers[0], testTopic, srv.URL, secret, authority)
		l, err := config.Load(config.Sources{File: file("isowatch.yaml", []byte(text))})
		if err != nil {
			t.Fatal(err)
		}
		c := testConfig(brokers)
		c.Alerts.Webhooks = l.Config.Alerts.Webhooks
		return c
	}
	c := load()
	r := start(t, c, newMemStore(webhookName(c.Alerts.Webhooks[0])), false)
	reload := func() {
		t.Helper()
		if err := r.Reload(load()); err != nil {
			t.Fatal(err)
		}
	}

	send(t, p, lostUpdate(1, 1000)...)
	eventually(t, "the certificate is refused", func() bool { return strings.Contains(r.log.String(), "certificate") })
	reload()
	trust(ca)
	reload()
	h.next(t)
	if s := <-signed; s != before {
		t.Errorf("signed with %s", s)
	}

	file("ca.pem", []byte("no certificate"))
	reload()
	if !strings.Contains(r.log.String(), `"keys":["alerts.webhooks","alerts.kafka"],"message":"these settings stay as they were"`) {
		t.Error("the log does not say that the receivers stay as they were")
	}
	send(t, p, lostUpdate(2, 2000)...)
	h.next(t)
	<-signed

	trust(ca)
	file("secret", []byte(after))
	reload()
	send(t, p, lostUpdate(3, 3000)...)
	h.next(t)
	if s := <-signed; s != after {
		t.Errorf("signed with %s", s)
	}
	r.stop(t)
}
