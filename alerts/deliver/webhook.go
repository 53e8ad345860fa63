package deliver

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	webhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// WebhookOptions are the settings of a Webhook.
type WebhookOptions struct {
	// URL is where alerts are sent with POST.
	URL string
	// Secrets sign them as Standard Webhooks has it: "whsec_" and base64, as the
	// receiver shows it. All sign, side by side, so that one can be replaced by
	// another without a gap. Empty: not signed.
	Secrets []string
	// Timeout bounds one attempt; 0 means TimeoutDefault.
	Timeout time.Duration
	// UserAgent is sent along; empty means "isowatch".
	UserAgent string
	// Transport carries the requests; nil means a new one, which checks
	// certificates and obeys the proxy variables of the environment.
	Transport http.RoundTripper
}

// TimeoutDefault bounds an attempt, from connecting to the end of the answer.
const TimeoutDefault = 10 * time.Second

// Limits of what is taken from a receiver.
const (
	answerMax    = 16 << 10 // bytes of an answer that are read
	redirectsMax = 3
)

// Webhook sends alerts by HTTP as https://www.standardwebhooks.com describes:
// webhook-id, webhook-timestamp and, with a secret, webhook-signature.
type Webhook struct {
	url     *url.URL
	signers []*webhooks.Webhook // none: not signed
	agent   string
	timeout time.Duration
	client  *http.Client
}

// NewWebhook checks the options. Errors hold no secrets.
func NewWebhook(opt WebhookOptions) (*Webhook, error) {
	u, err := url.Parse(opt.URL)
	switch {
	case err != nil:
		return nil, errors.New("webhook: the url can't be parsed; write it as https://host/path")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("webhook: the url must begin with https:// or http://")
	case u.Host == "":
		return nil, errors.New("webhook: the url has no host; write it as https://host/path")
	}
	w := &Webhook{url: u, agent: opt.UserAgent, timeout: opt.Timeout}
	if w.agent == "" {
		w.agent = "isowatch"
	}
	if w.timeout == 0 {
		w.timeout = TimeoutDefault
	}
	for _, secret := range opt.Secrets {
		secret = strings.TrimSpace(secret)
		signer, err := webhooks.NewWebhook(secret)
		if err != nil || strings.TrimPrefix(secret, "whsec_") == "" {
			return nil, fmt.Errorf("webhook %s: a secret is not base64 after whsec_; copy it again from the receiver", w)
		}
		w.signers = append(w.signers, signer)
	}
	transport := opt.Transport
	if transport == nil {
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
		t.MaxResponseHeaderBytes = answerMax
		t.MaxIdleConnsPerHost = 1
		transport = t
	}
	w.client = &http.Client{Transport: transport, CheckRedirect: w.redirect}
	return w, nil
}

// String is the address without its secrets.
func (w *Webhook) String() string { return Redact(w.url.String()) }

// redirectError is why a redirect was not followed.
type redirectError struct{ why string }

func (e redirectError) Error() string { return e.why }

// redirect allows what stays with the same receiver and keeps the POST.
func (w *Webhook) redirect(req *http.Request, via []*http.Request) error {
	switch {
	case origin(req.URL) != origin(w.url):
		return redirectError{"it redirects to " + Redact(req.URL.String()) + ", which is refused; configure that url if it is right"}
	case req.Method != http.MethodPost:
		return redirectError{"it redirects in a way that drops the alert (301, 302 or 303); configure the url that it redirects to"}
	case len(via) > redirectsMax:
		return redirectError{"it redirects again and again; configure the url that it means"}
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

// Notify implements Receiver.
func (w *Webhook) Notify(ctx context.Context, body []byte, id string) (time.Duration, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, w.timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url.String(), bytes.NewReader(body))
	if err != nil {
		return 0, false, fmt.Errorf("webhook %s: %w", w, plainError(err))
	}
	now := time.Now()
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", w.agent)
	req.Header.Set(webhooks.HeaderWebhookID, id)
	req.Header.Set(webhooks.HeaderWebhookTimestamp, strconv.FormatInt(now.Unix(), 10))
	signature, err := w.sign(id, now, body)
	if err != nil {
		return 0, false, fmt.Errorf("webhook %s: signing: %w", w, err)
	}
	if signature != "" {
		req.Header.Set(webhooks.HeaderWebhookSignature, signature)
	}
	resp, err := w.client.Do(req)
	if resp != nil {
		defer resp.Body.Close()
	}
	if err != nil {
		if ctx.Err() == context.DeadlineExceeded {
			return 0, true, fmt.Errorf("webhook %s: no answer within %v", w, w.timeout)
		}
		return 0, true, fmt.Errorf("webhook %s: %w", w, plainError(err))
	}
	// The answer is read to its end where it is short, so that the connection
	// can be used again. The status has been said: an answer that breaks off
	// changes nothing.
	answer, _ := io.ReadAll(io.LimitReader(resp.Body, answerMax))
	if accepted(resp.StatusCode) {
		return 0, false, nil
	}
	err = fmt.Errorf("webhook %s: answered %d %s: %s", w, resp.StatusCode, http.StatusText(resp.StatusCode), scrub(answer, w.url))
	return retryAfter(resp.Header, now), again(resp.StatusCode), err
}

// sign makes a signature with each secret, separated by spaces; empty without any.
func (w *Webhook) sign(id string, at time.Time, body []byte) (string, error) {
	all := make([]string, len(w.signers))
	for i, s := range w.signers {
		var err error
		if all[i], err = s.Sign(id, at, body); err != nil {
			return "", err
		}
	}
	return strings.Join(all, " "), nil
}

// Close gives up idle connections.
func (w *Webhook) Close() { w.client.CloseIdleConnections() }
