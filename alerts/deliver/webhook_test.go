package deliver_test

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/isowatch/isowatch/alerts/deliver"
	"github.com/isowatch/isowatch/ingest/source/kafka"
	webhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// hook makes a webhook for a server's address with the path of a secret, and with ample time unless
// it is to have little.
func hook(t *testing.T, address string, opt deliver.WebhookOptions) *deliver.Webhook {
	t.Helper()
	opt.URL = address + "/hooks/T0PSECRET?token=hunter22"
	opt.Timeout = cmp.Or(opt.Timeout, ample)
	w, err := deliver.NewWebhook(opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	return w
}

func serve(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// unspoken checks that an error has none of the secrets.
func unspoken(t *testing.T, err error) {
	t.Helper()
	for _, s := range []string{"T0PSECRET", "hunter22", "hooks", "sesame", strings.TrimPrefix(secret, "whsec_")} {
		if err != nil && strings.Contains(err.Error(), s) {
			t.Errorf("the error tells %q: %v", s, err)
		}
	}
}

func TestRequest(t *testing.T) {
	const body = `{"id":"a1","summary":"T1 → T2"}`
	got := make(chan *http.Request, 1)
	address := serve(t, func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil || string(b) != body {
			t.Errorf("body %s, error %v", b, err)
		}
		verifier, err := webhooks.NewWebhook(secret)
		if err != nil {
			t.Error(err)
		}
		if err := verifier.Verify(b, r.Header); err != nil {
			t.Errorf("signature: %v", err)
		}
		got <- r
		w.WriteHeader(http.StatusNoContent)
	})
	w := hook(t, address, deliver.WebhookOptions{Secrets: []string{secret + "\n"}})
	if _, _, err := w.Notify(context.Background(), []byte(body), "a1"); err != nil {
		t.Fatal(err)
	}
	r := <-got
	if r.Method != http.MethodPost || r.URL.Path != "/hooks/T0PSECRET" || r.URL.RawQuery != "token=hunter22" || r.ContentLength != int64(len(body)) ||
		r.Header.Get("Content-Type") != "application/json" || r.Header.Get("Webhook-Id") != "a1" || r.Header.Get("User-Agent") != "isowatch" {
		t.Errorf("%s %s, headers %v", r.Method, r.URL, r.Header)
	}
}

func TestUnsigned(t *testing.T) {
	address := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if s := r.Header.Get("Webhook-Signature"); s != "" || r.Header.Get("Webhook-Timestamp") == "" {
			t.Errorf("headers %v", r.Header)
		}
	})
	if _, _, err := hook(t, address, deliver.WebhookOptions{}).Notify(context.Background(), []byte("{}"), "a1"); err != nil {
		t.Fatal(err)
	}
}

// The vector of the Standard Webhooks libraries: whatever signs here must give
// it.
func TestSignatureVector(t *testing.T) {
	w, err := webhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	got, err := w.Sign("msg_p5jXN8AQM9LWM0D4loKWxJek", time.Unix(1614265330, 0), []byte(`{"test": 2432232314}`))
	if want := "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="; err != nil || got != want {
		t.Errorf("%s, %v, want %s", got, err, want)
	}
}

func TestAnswers(t *testing.T) {
	for _, c := range []struct {
		status      int
		header      string // of Retry-After
		taken       bool
		recoverable bool
		after       time.Duration
	}{
		{status: 200, taken: true},
		{status: 202, taken: true},
		{status: 204, taken: true},
		{status: 300, recoverable: true},
		{status: 304, recoverable: true},
		{status: 400},
		{status: 401, recoverable: true},
		{status: 403, recoverable: true},
		{status: 404, recoverable: true},
		{status: 408, recoverable: true},
		{status: 410, recoverable: true},
		{status: 413},
		{status: 422},
		{status: 425, recoverable: true},
		{status: 429, recoverable: true},
		{status: 429, header: "120", recoverable: true, after: 2 * time.Minute},
		{status: 503, header: "7", recoverable: true, after: 7 * time.Second},
		{status: 503, header: "99999999", recoverable: true, after: time.Hour},
		{status: 503, header: "-5", recoverable: true},
		{status: 503, header: "soon", recoverable: true},
		{status: 503, header: "Fri, 01 Jan 2010 00:00:00 GMT", recoverable: true},
		{status: 503, header: "Fri, 01 Jan 2100 00:00:00 GMT", recoverable: true, after: time.Hour},
		{status: 500, recoverable: true},
		{status: 502, recoverable: true},
		{status: 599, recoverable: true},
	} {
		address := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if c.header != "" {
				w.Header().Set("Retry-After", c.header)
			}
			w.WriteHeader(c.status)
		})
		after, recoverable, err := hook(t, address, deliver.WebhookOptions{}).Notify(context.Background(), []byte("{}"), "a1")
		if (err == nil) != c.taken || recoverable != c.recoverable || after != c.after {
			t.Errorf("%d, Retry-After %q: %v, %v, %v", c.status, c.header, after, recoverable, err)
		}
		unspoken(t, err)
	}
}

// What a receiver says is shown, but short and printable, and not at all if it repeats a secret.
func TestErrorShowsAnswer(t *testing.T) {
	address := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		said := ""
		if r.Header.Get("webhook-id") == "repeat" {
			said = r.URL.String()
		}
		_, _ = io.WriteString(w, "no\n such \x1b[31mchannel: "+said+strings.Repeat("x", 1<<20))
	})
	for id, want := range map[string]string{"a1": `no such \x1b[31mchannel`, "repeat": "its answer is not shown"} {
		_, _, err := hook(t, address, deliver.WebhookOptions{}).Notify(context.Background(), []byte("{}"), id)
		unspoken(t, err)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "400 Bad Request") || len(err.Error()) > 500 {
			t.Errorf("%v", err)
		}
	}
}

func TestRedirects(t *testing.T) {
	elsewhere := serve(t, func(w http.ResponseWriter, r *http.Request) { t.Error("it was followed to another host") })
	for _, c := range []struct {
		status int
		to     string
		ok     bool
	}{
		{http.StatusTemporaryRedirect, "/moved", true},
		{http.StatusPermanentRedirect, "/moved", true},
		{http.StatusFound, "/moved", false}, // would become a GET
		{http.StatusTemporaryRedirect, elsewhere + "/T0PSECRET", false},
		{http.StatusTemporaryRedirect, "/hooks/again", false}, // in circles
		{http.StatusTemporaryRedirect, "http://%zz/T0PSECRET", false},
	} {
		address := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if b, err := io.ReadAll(r.Body); r.Method != http.MethodPost || string(b) != "{}" || err != nil {
				t.Errorf("%d: %s %q", c.status, r.Method, b)
			}
			if r.URL.Path == "/moved" {
				return
			}
			w.Header().Set("Location", c.to)
			w.WriteHeader(c.status)
		})
		_, recoverable, err := hook(t, address, deliver.WebhookOptions{}).Notify(context.Background(), []byte("{}"), "a1")
		if (err == nil) != c.ok || err != nil && !recoverable {
			t.Errorf("%d to %s: %v, %v", c.status, c.to, recoverable, err)
		}
		unspoken(t, err)
	}
}

// Receivers that hang, before or in the middle of an answer, close early or lie
// about lengths.
func TestBadReceivers(t *testing.T) {
	free := make(chan struct{})
	hang := serve(t, func(w http.ResponseWriter, r *http.Request) { <-free })
	t.Cleanup(func() { close(free) }) // before the server closes, which waits for it
	raw := func(answer string) string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				_, _ = c.Read(make([]byte, 4096))
				_, _ = io.WriteString(c, answer)
				_ = c.Close()
			}
		})
		t.Cleanup(func() { _ = l.Close(); wg.Wait() })
		return "http://" + l.Addr().String()
	}
	closed := httptest.NewServer(nil)
	closed.Close()
	for what, c := range map[string]struct {
		address string
		taken   bool
		timeout time.Duration
	}{
		"hangs":                    {address: hang, timeout: 50 * time.Millisecond},
		"is not there":             {address: closed.URL},
		"hangs up":                 {address: raw("")},
		"says nonsense":            {address: raw("SMTP ready\r\n")},
		"breaks off in headers":    {address: raw("HTTP/1.1 200 OK\r\nContent-")},
		"has endless headers":      {address: raw("HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 1<<20) + "\r\n\r\n")},
		"breaks off in the answer": {address: raw("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nok"), taken: true},
		"speaks no TLS":            {address: strings.Replace(raw("HTTP/1.0 400 Bad Request\r\n\r\n"), "http:", "https:", 1)},
	} {
		w := hook(t, c.address, deliver.WebhookOptions{Timeout: c.timeout})
		_, recoverable, err := w.Notify(context.Background(), []byte("{}"), "a1")
		if (err == nil) != c.taken || err != nil && !recoverable {
			t.Errorf("a receiver that %s: %v, %v", what, recoverable, err)
		}
		unspoken(t, err)
	}
}

// Certificates are verified.
func TestUnknownAuthority(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { t.Error("it was told") }))
	s.Config.ErrorLog = nil
	s.StartTLS()
	defer s.Close()
	_, recoverable, err := hook(t, s.URL, deliver.WebhookOptions{}).Notify(context.Background(), []byte("{}"), "a1")
	if err == nil || !recoverable || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("%v, %v", recoverable, err)
	}
	unspoken(t, err)

	ca := filepath.Join(t.TempDir(), "ca.pem")
	block := pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}
	if err := os.WriteFile(ca, pem.EncodeToMemory(&block), 0o600); err != nil {
		t.Fatal(err)
	}
	w := hook(t, s.URL, deliver.WebhookOptions{TLS: &kafka.TLS{CA: ca}})
	s.Config.Handler = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	if _, _, err := w.Notify(context.Background(), []byte("{}"), "a1"); err != nil {
		t.Errorf("with the right authority: %v", err)
	}
}

func TestNewWebhookErrors(t *testing.T) {
	for _, opt := range []deliver.WebhookOptions{
		{},
		{URL: "hooks/T0PSECRET"},
		{URL: "ftp://host/T0PSECRET"},
		{URL: "https:///T0PSECRET"},
		{URL: "https://%zz/T0PSECRET"},
		{URL: "https://host/T0PSECRET", Secrets: []string{"whsec_!sesame!"}},
		{URL: "https://host/T0PSECRET", Secrets: []string{"whsec_"}},
	} {
		_, err := deliver.NewWebhook(opt)
		if err == nil {
			t.Errorf("%+v was taken", opt)
		}
		unspoken(t, err)
	}
}

func TestRedact(t *testing.T) {
	for in, want := range map[string]string{
		"https://user:sesame@host:8443/hooks/T0PSECRET?token=1#x": "https://host:8443/…",
		"http://[::1]:80":   "http://[::1]:80/…",
		"T0PSECRET":         "…",
		"https://%zz/x":     "…",
		"mailto:me@example": "…",
	} {
		if got := deliver.Redact(in); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
	w, err := deliver.NewWebhook(deliver.WebhookOptions{URL: "https://user:sesame@host/T0PSECRET", Secrets: []string{base64.StdEncoding.EncodeToString([]byte("k"))}})
	if err != nil || w.String() != "webhook https://host/…" {
		t.Errorf("%v, %v", w, err)
	}
}

// The whole way: an outbox, a receiver that is busy, then down, then well.
func TestDispatchOverHTTP(t *testing.T) {
	var mu sync.Mutex
	var got []string
	address := serve(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, r.Header.Get("Webhook-Id"))
		switch len(got) {
		case 1:
			w.WriteHeader(http.StatusInternalServerError)
		case 2:
			w.WriteHeader(http.StatusTooManyRequests)
		}
	})
	st, seen := newMemory([]string{"a"}, "1", "2"), &events{}
	d := deliver.New(st, map[string]deliver.Receiver{"a": hook(t, address, deliver.WebhookOptions{Secrets: []string{secret}})},
		deliver.Options{Observe: seen.Observe, WaitMin: time.Millisecond, WaitMax: 2 * time.Millisecond})
	defer run(d)()
	if err := d.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if strings.Join(got, " ") != "1 1 1 2" {
		t.Errorf("the receiver saw %v", got)
	}
	if o := seen.outcomes(); len(o) != 4 || o[1] != deliver.Retrying || o[3] != deliver.Delivered {
		t.Errorf("outcomes %v", o)
	}
	for _, e := range seen.all {
		unspoken(t, e.Err)
	}
}
