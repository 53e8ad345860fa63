package deliver

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	webhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/isowatch/isowatch/ingest/source/kafka"
)

// WebhookOptions are the settings of a receiver over HTTP.
type WebhookOptions struct {
	// URL is where notices are sent with POST.
	URL string
	// Headers are sent along; their values are secrets.
	Headers map[string]string
	// Secrets sign as Standard Webhooks has it: "whsec_" and base64, as the
	// receiver shows it. All sign, side by side, so that one can be replaced by
	// another without a gap. Empty: not signed.
	Secrets []string
	// RoutingKey is PagerDuty's, 32 characters.
	RoutingKey string
	// Hold is how long an Alertmanager keeps an alert that it is not told of again;
	// 0 means HoldDefault.
	Hold time.Duration
	// TLS are certificates; nil: the system's authorities are trusted.
	TLS *kafka.TLS
	// Timeout bounds one attempt; 0 means TimeoutDefault.
	Timeout time.Duration
}

// format makes the bodies that a notice is told with, one after the other. plain asks
// for the least that says it, after the receiver refused the usual form.
type format func(body []byte, plain bool) ([][]byte, error)

// Webhook sends notices by HTTP. It is safe for concurrent use.
type Webhook struct {
	*poster
	format  format
	signers []*webhooks.Webhook // none: not signed

	mu sync.Mutex
	// sent is, by notice, how many of its bodies were accepted while a later one was
	// not.
	sent map[string]int
}

// NewWebhook makes the generic receiver, which gets notices as they are, as
// https://www.standardwebhooks.com describes: webhook-id, webhook-timestamp and, with
// secrets, webhook-signature. Errors hold no secrets.
func NewWebhook(opt WebhookOptions) (*Webhook, error) {
	w, err := newWebhook("webhook", opt, generic)
	if err != nil {
		return nil, err
	}
	for _, secret := range opt.Secrets {
		secret = strings.TrimSpace(secret)
		signer, err := webhooks.NewWebhook(secret)
		if err != nil || strings.TrimPrefix(secret, "whsec_") == "" {
			return nil, fmt.Errorf("%s: a secret is not base64 after whsec_; copy it again from the receiver", w)
		}
		w.signers = append(w.signers, signer)
		w.secrets = append(w.secrets, secret, strings.TrimPrefix(secret, "whsec_"))
	}
	return w, nil
}

// NewSlack makes a receiver that is an incoming webhook of Slack.
func NewSlack(opt WebhookOptions) (*Webhook, error) { return newWebhook("slack", opt, slack) }

// NewPagerDuty makes a receiver that takes PagerDuty's Events API v2.
func NewPagerDuty(opt WebhookOptions) (*Webhook, error) {
	w, err := newWebhook("pagerduty", opt, pagerDuty{opt.RoutingKey}.bodies)
	if err == nil {
		w.secrets = append(w.secrets, opt.RoutingKey)
	}
	return w, err
}

func newWebhook(what string, opt WebhookOptions, f format) (*Webhook, error) {
	p, err := newPoster(what, opt)
	if err != nil {
		return nil, err
	}
	return &Webhook{poster: p, format: f, sent: map[string]int{}}, nil
}

// generic sends the notice itself; plain, without its evidence.
func generic(body []byte, plain bool) ([][]byte, error) {
	if plain {
		var err error
		if body, err = withoutEvidence(body); err != nil {
			return nil, err
		}
	}
	return [][]byte{body}, nil
}

// Notify implements Receiver. A notice that is refused is tried once more in the
// plainest form there is: somebody should hear of it.
func (w *Webhook) Notify(ctx context.Context, body []byte, id string) (time.Duration, bool, error) {
	refused := w.tell(ctx, body, id, false)
	if refused == nil {
		return 0, false, nil
	}
	if refused.status == 0 || refused.recoverable {
		return refused.after, refused.recoverable, refused.err
	}
	plain := w.tell(ctx, body, id, true)
	switch {
	case plain == nil:
		return 0, false, nil
	case plain.recoverable: // as a whole it is tried again
		return plain.after, true, plain.err
	}
	return 0, false, refused.err
}

// tell sends the bodies of one form.
func (w *Webhook) tell(ctx context.Context, body []byte, id string, plain bool) *answer {
	bodies, err := w.format(body, plain)
	if err != nil {
		return &answer{err: fmt.Errorf("%s: %w", w, err)}
	}
	for i := w.before(id); i < len(bodies); i++ {
		headers, err := w.headers(id, bodies[i])
		if err != nil {
			return &answer{err: fmt.Errorf("%s: signing: %w", w, err)}
		}
		if a := w.post(ctx, bodies[i], headers); a != nil {
			return a
		}
		if len(bodies) > 1 {
			w.progress(id, i+1)
		}
	}
	w.progress(id, 0)
	return nil
}

func (w *Webhook) before(id string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.sent[id]
}

// progress remembers how many bodies of a notice were accepted; 0 forgets it. What is
// forgotten too early is sent again.
func (w *Webhook) progress(id string, n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n == 0 {
		delete(w.sent, id)
		return
	}
	if len(w.sent) > batchMax {
		clear(w.sent)
	}
	w.sent[id] = n
}

// headers say which notice it is, when it was sent, and by whom.
func (w *Webhook) headers(id string, body []byte) (map[string]string, error) {
	now := time.Now()
	h := map[string]string{webhooks.HeaderWebhookID: id,
		webhooks.HeaderWebhookTimestamp: strconv.FormatInt(now.Unix(), 10)}
	all := make([]string, len(w.signers))
	for i, s := range w.signers {
		var err error
		if all[i], err = s.Sign(id, now, body); err != nil {
			return nil, err
		}
	}
	if len(all) > 0 {
		h[webhooks.HeaderWebhookSignature] = strings.Join(all, " ")
	}
	return h, nil
}

// Writer writes notices to a stream, a JSON object a line.
type Writer struct{ w io.Writer }

// NewWriter makes a receiver of a stream. It is the only one that writes to it while
// notices are delivered.
func NewWriter(w io.Writer) *Writer { return &Writer{w} }

// Notify implements Receiver. A line is written whole, or written again.
func (w *Writer) Notify(_ context.Context, body []byte, _ string) (time.Duration, bool, error) {
	var line bytes.Buffer
	if err := json.Compact(&line, body); err != nil {
		return 0, false, fmt.Errorf("standard output: the notice can't be read, and is given up: %w", err)
	}
	line.WriteByte('\n')
	if _, err := w.w.Write(line.Bytes()); err != nil {
		return 0, true, fmt.Errorf("standard output: %w", err)
	}
	return 0, false, nil
}

// Close leaves the stream as it is.
func (w *Writer) Close() error { return nil }
