package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/alerts/life"
	"github.com/isowatch/isowatch/alerts/page"
	"github.com/isowatch/isowatch/alerts/text"
	"github.com/isowatch/isowatch/cmd/monitor/app"
	"github.com/isowatch/isowatch/config"
	"github.com/isowatch/isowatch/ingest/record"
)

// remote is a running monitor.
type remote struct {
	base   *url.URL
	client *http.Client
	token  string
	why    string // it is asked, and not the store; may be empty
}

// The limits of what is taken from a monitor.
const (
	remoteMax     = 64 << 20 // bytes of one answer
	remoteTimeout = time.Minute
)

// own is the address at which the monitor of a configuration can be asked from here.
func own(c *config.Config) string {
	scheme := "http"
	if c.HTTP.TLS != nil {
		scheme = "https"
	}
	return app.LocalURL(scheme, c.HTTP.Listen)
}

// newRemote is the monitor at an address: --url, or, if here, where it is on this machine,
// which its certificate need not name.
func newRemote(s *shelf, c *config.Config, address string, here bool) (*remote, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, unusablef("--url: wants an address such as http://127.0.0.1:8080")
	}
	r := &remote{base: u, token: strings.TrimSpace(os.Getenv(config.TokenEnv))}
	if r.token == "" {
		r.token = string(c.HTTP.Token)
	}
	t := http.DefaultTransport.(*http.Transport).Clone()
	if t.TLSClientConfig, err = s.tls(c); err != nil {
		return nil, unusable(err)
	}
	if here && c.HTTP.TLS != nil {
		t.TLSClientConfig.ServerName = certified(c.HTTP.TLS.Cert, u.Hostname())
	}
	r.client = &http.Client{Transport: t, Timeout: remoteTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse // the token is for nobody else
		}}
	return r, nil
}

// tls trusts what the flags say, and the certificate that the monitor itself shows if
// its configuration is at hand.
func (s *shelf) tls(c *config.Config) (*tls.Config, error) {
	out := &tls.Config{MinVersion: tls.VersionTLS12}
	trust := func(flag, file string) error {
		text, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("%s: %w", flag, err)
		}
		if out.RootCAs == nil {
			if out.RootCAs, err = x509.SystemCertPool(); err != nil {
				out.RootCAs = x509.NewCertPool()
			}
		}
		if !out.RootCAs.AppendCertsFromPEM(text) {
			return fmt.Errorf("%s: %s holds no certificate in PEM", flag, file)
		}
		return nil
	}
	if s.ca != "" {
		if err := trust("--tls-ca", s.ca); err != nil {
			return nil, err
		}
	}
	if c.HTTP.TLS != nil && c.HTTP.TLS.Cert != "" {
		if err := trust("http.tls.cert", c.HTTP.TLS.Cert); err != nil {
			return nil, err
		}
	}
	if (s.cert == "") != (s.key == "") {
		return nil, errors.New("--tls-cert and --tls-key go together")
	}
	if s.cert != "" {
		pair, err := tls.LoadX509KeyPair(s.cert, s.key)
		if err != nil {
			return nil, fmt.Errorf("--tls-cert, --tls-key: %w", err)
		}
		out.Certificates = []tls.Certificate{pair}
	}
	return out, nil
}

// certified is whom the first certificate of a file is for, if not for the host; empty if
// it is, or is for nobody. Who shows it is held to that name then, wherever he is asked.
func certified(file, host string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return "" // it is not trusted either, see tls
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return ""
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	switch {
	case err != nil || cert.VerifyHostname(host) == nil:
		return ""
	case len(cert.DNSNames) > 0:
		return strings.Replace(cert.DNSNames[0], "*", "monitor", 1) // any name that it covers
	case len(cert.IPAddresses) > 0:
		return cert.IPAddresses[0].String()
	}
	return ""
}

// ask makes one request and reads its answer into to, unless that is nil.
func (r *remote) ask(ctx context.Context, method, path string, query url.Values, in, to any) error {
	u := r.base.JoinPath(path)
	u.RawQuery = query.Encode()
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return fmt.Errorf("can't happen, because everything that is asked has a JSON form: %w", err)
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, u.String(), body)
	if err != nil {
		return unusable(err)
	}
	req.Header.Set("Accept", "application/json")
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if r.token != "" {
		req.Header.Set("Authorization", "Bearer "+r.token)
	}
	resp, err := r.client.Do(req)
	if err != nil {
		return r.unreachable(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, remoteMax+1))
	if err != nil {
		return r.unreachable(err)
	}
	if len(answer) > remoteMax {
		return environment(fmt.Errorf("%s: the answer is larger than %d bytes; stop the monitor and read its store", r.base,
			remoteMax))
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return r.refused(resp.StatusCode, answer)
	}
	if to == nil {
		return nil
	}
	if err := json.Unmarshal(answer, to); err != nil {
		return environment(fmt.Errorf("%s: what answers is no monitor, or one of another version: %w", r.base, err))
	}
	return nil
}

// unreachable says why nobody answered.
func (r *remote) unreachable(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	err = fmt.Errorf("%s: %w", r.base.Redacted(), err)
	if r.why != "" {
		err = fmt.Errorf("%w; %s", err, r.why)
	}
	return environment(err)
}

// refused gives an answer that is no success its exit status.
func (r *remote) refused(status int, answer []byte) error {
	var e page.Error
	said := http.StatusText(status)
	if json.Unmarshal(answer, &e) == nil && e.Error.Message != "" {
		said = text.Printable(e.Error.Message)
		if e.Error.Hint != "" {
			said += "; " + text.Printable(e.Error.Hint)
		}
	}
	switch {
	case status == http.StatusNotFound && e.Error.Code != "":
		return page.ErrNotFound
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return unusablef("%s: %s; put the token into %s, or name the configuration with --config", r.base.Redacted(), said,
			config.TokenEnv)
	case status == http.StatusBadRequest, status == http.StatusConflict:
		return unusablef("%s: %s", r.base.Redacted(), said)
	}
	return environment(fmt.Errorf("%s: answered %d: %s", r.base.Redacted(), status, said))
}

func (r *remote) Alerts(ctx context.Context, f page.Filter) (l page.List, err error) {
	q := url.Values{"limit": {strconv.Itoa(f.Limit)}}
	for name, value := range map[string]string{"db": f.DB, "level": f.Level, "name": f.Name, "state": f.State,
		"severity": f.Severity, "q": f.Text} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if f.Since != 0 {
		q.Set("since", strconv.FormatInt(f.Since, 10))
	}
	if f.After != 0 {
		q.Set("after", strconv.FormatUint(f.After, 10))
	}
	err = r.ask(ctx, http.MethodGet, "/api/v1/alerts", q, nil, &l)
	return l, err
}

func (r *remote) Alert(ctx context.Context, id string) (alerts.Alert, error) {
	var a alerts.Alert
	err := r.ask(ctx, http.MethodGet, "/api/v1/alerts/"+url.PathEscape(id), nil, nil, &a)
	return a, err
}

func (r *remote) Promises(ctx context.Context) ([]page.Promise, error) {
	var st page.Status
	err := r.ask(ctx, http.MethodGet, "/api/v1/status", nil, nil, &st)
	return st.Promises(), err
}

func (r *remote) Silences(ctx context.Context) ([]life.Silence, error) {
	var out struct {
		Silences []life.Silence `json:"silences"`
	}
	err := r.ask(ctx, http.MethodGet, "/api/v1/silences", nil, nil, &out)
	return out.Silences, err
}

func (r *remote) Silence(ctx context.Context, s life.Silence) (life.Silence, error) {
	var out life.Silence
	err := r.ask(ctx, http.MethodPost, "/api/v1/silences", nil, s, &out)
	return out, err
}

func (r *remote) Expire(ctx context.Context, id string) error {
	return r.ask(ctx, http.MethodDelete, "/api/v1/silences/"+url.PathEscape(id), nil, nil, nil)
}

func (r *remote) Happen(ctx context.Context, e record.Event) error {
	return r.ask(ctx, http.MethodPost, "/api/v1/events", nil, happening(e), nil)
}

func (r *remote) Close() error {
	r.client.CloseIdleConnections()
	return nil
}
