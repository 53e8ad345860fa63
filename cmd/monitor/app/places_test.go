package app

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/isowatch/isowatch/config"
	"github.com/isowatch/isowatch/internal/lab/race"
)

// client is a connection to a monitor, by hand. It gives up long after anything must have happened.
type client struct {
	net.Conn
	r *bufio.Reader
}

// dialled connects to the monitor's own server, under TLS if there are roots.
func dialled(t *testing.T, address string, roots *x509.CertPool) func() *client {
	return func() *client {
		t.Helper()
		dialer := &net.Dialer{Timeout: time.Minute}
		var c net.Conn
		var err error
		if roots != nil {
			c, err = tls.DialWithDialer(dialer, "tcp", address, &tls.Config{RootCAs: roots, NextProtos: []string{"http/1.1"}})
		} else {
			c, err = dialer.DialContext(t.Context(), "tcp", address)
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		if err := c.SetDeadline(time.Now().Add(2 * time.Minute)); err != nil {
			t.Fatal(err)
		}
		return &client{c, bufio.NewReader(c)}
	}
}

// send writes the head of a request.
func (w *client) send(t *testing.T, method, target string, header ...string) {
	t.Helper()
	head := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: %s\r\n%s\r\n", method, target, w.RemoteAddr(), strings.Join(append(header, ""), "\r\n"))
	if _, err := io.WriteString(w, head); err != nil {
		t.Fatal(err)
	}
}

// status is that of the next answer, which is read to its end.
func (w *client) status() (int, error) {
	resp, err := http.ReadResponse(w.r, nil)
	if err != nil {
		return 0, err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, errors.Join(err, resp.Body.Close())
}

// asked sends GET on a connection and wants an answer.
func (w *client) asked(t *testing.T, target string, want int, header ...string) {
	t.Helper()
	w.send(t, http.MethodGet, target, header...)
	if got, err := w.status(); got != want || err != nil {
		t.Fatalf("GET %s: %d, %v; want %d", target, got, err, want)
	}
}

// servers are a monitor with a token, with and without TLS, and how one connects to it.
func servers(t *testing.T, each func(t *testing.T, connect func() *client)) {
	t.Run("tls", func(t *testing.T) {
		if race.Enabled {
			t.Skip("hundreds of handshakes take minutes with the race detector; they are done without it")
		}
		ca := newAuthority(t)
		a, _, _ := secured(t, ca)
		roots := x509.NewCertPool()
		roots.AddCert(ca.cert)
		each(t, dialled(t, a.Addr(), roots))
	})
	t.Run("plain", func(t *testing.T) {
		a, _, _ := secured(t, newAuthority(t), func(c *config.Config) { c.HTTP.TLS = nil })
		each(t, dialled(t, a.Addr(), nil))
	})
}

// TestNobodyHoldsAllPlaces: however many connections are held open, who asks how the monitor does is
// answered, and so is who has shown the token; no more connections are open than may be.
func TestNobodyHoldsAllPlaces(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, connect func() *client) {
		owner := connect()
		owner.asked(t, "/metrics", http.StatusOK, "Authorization: Bearer "+testToken)
		held := make([]*client, connectionsMax)
		for i := range held {
			held[i] = connect()
			held[i].asked(t, "/healthz", http.StatusOK)
		}
		silent := connect() // not even a request comes
		connect().asked(t, "/healthz", http.StatusOK)
		// The owner, all that were held, the silent one and the last are three too many.
		for i, w := range held[:3] {
			if _, err := w.r.ReadByte(); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("connection %d is open: %v", i, err)
			}
		}
		for _, w := range []*client{held[3], held[len(held)-1], silent} {
			w.asked(t, "/healthz", http.StatusOK)
		}
		owner.asked(t, "/metrics", http.StatusOK, "Authorization: Bearer "+testToken)
	})
}

// TestHeldTokensAreCounted: tokens whose requests were all begun before the first was wrong are wrong
// tokens like others.
func TestHeldTokensAreCounted(t *testing.T) {
	servers(t, func(t *testing.T, connect func() *client) {
		const more = 5
		body := `{"token":"a wrong token, and long"}`
		held := make([]*client, 0, failuresBurst+more)
		for range failuresBurst + more {
			w := connect()
			w.send(t, http.MethodPost, "/api/v1/session", "Content-Type: application/json", fmt.Sprint("Content-Length: ", len(body)), "Expect: 100-continue")
			// The server asks for the body.
			if got, err := w.status(); got != http.StatusContinue || err != nil {
				t.Fatalf("%d, %v", got, err)
			}
			held = append(held, w)
		}
		got := map[int]int{}
		for _, w := range held {
			if _, err := io.WriteString(w, body); err != nil {
				t.Fatal(err)
			}
			status, err := w.status()
			if err != nil {
				t.Fatal(err)
			}
			got[status]++
		}
		if got[http.StatusTooManyRequests] != more || got[http.StatusUnauthorized] != failuresBurst {
			t.Errorf("answers %v, want %d looked at and %d not", got, failuresBurst, more)
		}
	})
}

// TestPlaces: strangers go before those who are known, the oldest first; where all are known the oldest
// of them goes, and what was closed takes no place.
func TestPlaces(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	taken := 0
	p := &places{Listener: l, max: 3, taken: func() { taken++ }}
	var conns []net.Conn
	for _, step := range []struct {
		do   string // connects, shows (its token) or leaves
		who  int
		open string // who is open then
	}{
		{"connects", 0, "0"}, {"shows", 0, "0"}, {"connects", 1, "01"}, {"connects", 2, "012"},
		{"connects", 3, "023"}, {"shows", 3, "023"}, {"connects", 4, "034"}, {"shows", 4, "034"},
		{"connects", 5, "345"}, {"connects", 6, "346"}, {"leaves", 3, "46"}, {"shows", 3, "46"}, {"connects", 7, "467"}, {"leaves", 3, "467"}, {"connects", 8, "478"},
	} {
		switch step.do {
		case "connects":
			c, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			accepted, err := p.Accept()
			if err != nil {
				t.Fatal(err)
			}
			conns = append(conns, accepted)
		case "shows":
			keepPlace(withPlace(t.Context(), conns[step.who]))
		case "leaves":
			_ = conns[step.who].Close()
		}
		open := ""
		for i, c := range conns {
			if c.(*place).list != nil {
				open += fmt.Sprint(i)
			}
		}
		if open != step.open || p.strangers.Len()+p.known.Len() != len(open) {
			t.Fatalf("%d %s: open are %s, want %s", step.who, step.do, open, step.open)
		}
	}
	if taken != 5 {
		t.Errorf("%d places were taken, want 5", taken)
	}
}
