package deliver

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Limits of what is taken from a receiver.
const (
	answerMax    = 16 << 10 // bytes of an answer that are read
	redirectsMax = 3
)

// TimeoutDefault bounds an attempt, from connecting to the end of the answer.
const TimeoutDefault = 10 * time.Second

// poster sends bodies to one address and keeps what is secret about it to itself.
// Safe for concurrent use.
type poster struct {
	what    string // how errors call the receiver
	url     *url.URL
	headers map[string]string
	secrets []string // that answers may repeat, beside those of the address
	timeout time.Duration
	client  *http.Client
}

func newPoster(what string, opt WebhookOptions) (*poster, error) {
	u, err := url.Parse(opt.URL)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: the url can't be parsed; write it as https://host/path", what)
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("%s: the url must begin with https:// or http://", what)
	case u.Host == "":
		return nil, fmt.Errorf("%s: the url has no host; write it as https://host/path", what)
	}
	p := &poster{what: what, url: u, headers: map[string]string{"User-Agent": "isowatch"},
		timeout: cmp.Or(opt.Timeout, TimeoutDefault)}
	for name, value := range opt.Headers {
		p.headers[name] = value
		p.secrets = append(p.secrets, strings.Fields(value)...)
	}
	t := http.DefaultTransport.(*http.Transport).Clone() // obeys the proxy variables of the environment
	if t.TLSClientConfig, err = opt.TLS.Config("tls"); err != nil {
		return nil, fmt.Errorf("%s: %w", p, err)
	}
	t.MaxResponseHeaderBytes = answerMax
	t.MaxIdleConnsPerHost = 1
	p.client = &http.Client{Transport: t, CheckRedirect: p.redirect}
	return p, nil
}

// String is what is posted to without what is secret about it.
func (p *poster) String() string { return p.what + " " + Redact(p.url.String()) }

// redirect allows what stays with the same receiver and keeps the POST.
func (p *poster) redirect(req *http.Request, via []*http.Request) error {
	switch {
	case origin(req.URL) != origin(p.url):
		return errors.New("it redirects to " + Redact(req.URL.String()) +
			", which is refused; configure that url if it is right")
	case req.Method != http.MethodPost:
		return errors.New("it redirects in a way that drops the alert (301, 302 or 303); configure the url that it " +
			"redirects to")
	case len(via) > redirectsMax:
		return errors.New("it redirects again and again; configure the url that it means")
	}
	return nil
}

// origin is whom an address speaks to.
func origin(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.Scheme + "://" + strings.ToLower(u.Hostname()) + ":" + port
}

// answer is what came of a post that was not accepted.
type answer struct {
	status      int // 0: there was none
	after       time.Duration
	recoverable bool
	err         error
}

// post sends a body once; nil: it was accepted.
func (p *poster) post(ctx context.Context, body []byte, headers map[string]string) *answer {
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url.String(), bytes.NewReader(body))
	if err != nil {
		return &answer{err: fmt.Errorf("%s: %w", p, plainError(err))}
	}
	for _, all := range []map[string]string{p.headers, {"Content-Type": "application/json"}, headers} {
		for name, value := range all {
			req.Header.Set(name, value)
		}
	}
	resp, err := p.client.Do(req)
	if resp != nil {
		defer resp.Body.Close()
	}
	if err != nil {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return &answer{recoverable: true, err: fmt.Errorf("%s: no answer within %v", p, p.timeout)}
		}
		return &answer{recoverable: true, err: fmt.Errorf("%s: %w", p, plainError(err))}
	}
	// The answer is read to its end where it is short, so that the connection
	// can be used again. The status has been said: an answer that breaks off
	// changes nothing.
	said, _ := io.ReadAll(io.LimitReader(resp.Body, answerMax))
	if accepted(resp.StatusCode) {
		return nil
	}
	return &answer{status: resp.StatusCode, after: retryAfter(resp.Header, time.Now()),
		recoverable: again(resp.StatusCode),
		err: fmt.Errorf("%s: answered %d %s: %s", p, resp.StatusCode, http.StatusText(resp.StatusCode),
			scrub(said, p.url, p.secrets))}
}

// Close gives up idle connections.
func (p *poster) Close() error {
	p.client.CloseIdleConnections()
	return nil
}

// accepted tells whether a status says that the alert was taken.
func accepted(status int) bool { return status >= 200 && status < 300 }

// again tells whether another attempt may help after a status that is not
// accepted. What the receiver says about the notice itself is final. That it is busy,
// broken or elsewhere is not, and neither is that nobody is there under this address
// or that it does not know who asks (Slack says so of a channel that is archived): a
// person can put that right, and then wants to hear what happened meanwhile.
func again(status int) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusPaymentRequired, http.StatusForbidden, http.StatusNotFound,
		http.StatusMethodNotAllowed, http.StatusProxyAuthRequired,
		http.StatusRequestTimeout, http.StatusConflict, http.StatusGone, http.StatusMisdirectedRequest, http.StatusLocked,
		http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	}
	return status < 400 || status >= 500
}

// retryAfter reads the header Retry-After: seconds or a date. 0 if there is
// none that makes sense.
func retryAfter(h http.Header, now time.Time) time.Duration {
	v := strings.TrimSpace(h.Get("Retry-After"))
	if n, err := strconv.ParseUint(v, 10, 32); err == nil {
		return min(time.Duration(n)*time.Second, retryAfterMax)
	}
	if at, err := http.ParseTime(v); err == nil {
		return min(max(at.Sub(now), 0), retryAfterMax)
	}
	return 0
}
