package app

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/isowatch/isowatch/alerts/deliver"
	"github.com/isowatch/isowatch/alerts/life"
	"github.com/isowatch/isowatch/alerts/name"
	"github.com/isowatch/isowatch/config"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/source/kafka"
	"github.com/isowatch/isowatch/window/store"
)

// Receiver is one who is told of alerts.
type Receiver struct {
	// Name is under which the store and the metrics know it, Key its place in the
	// configuration.
	Name, Key string
	deliver.Receiver
	Filter deliver.Filter
	open   func() (deliver.Receiver, error)
}

// Receivers makes the receivers of a configuration, in its order; nothing is connected
// to yet. out is standard output. Errors are config.Errors. Whoever calls closes them.
func Receivers(c *config.Config, out io.Writer) ([]*Receiver, error) {
	if out == nil {
		out = os.Stdout
	}
	var all []*Receiver
	var errs config.Errors
	for _, r := range addressed(c, out) {
		var err error
		if r.Receiver, err = r.open(); err != nil {
			errs = append(errs, &config.Error{Path: r.Key, Msg: err.Error()})
			continue
		}
		all = append(all, &r)
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs, CloseReceivers(all))
	}
	return all, nil
}

// addressed are the receivers of a configuration, in its order, none of which is made yet.
func addressed(c *config.Config, out io.Writer) (all []Receiver) {
	for i := range c.Alerts.Webhooks {
		w := &c.Alerts.Webhooks[i]
		all = append(all, Receiver{Name: webhookName(*w), Key: fmt.Sprintf("alerts.webhooks[%d]", i),
			Filter: filterOf(w.MinSeverity, w.Levels, w.DB),
			open:   func() (deliver.Receiver, error) { return webhook(w, holdOf(c)) }})
	}
	if k := c.Alerts.Kafka; k != nil {
		all = append(all, Receiver{Name: "kafka-" + k.Topic, Key: "alerts.kafka",
			Filter: filterOf(k.MinSeverity, k.Levels, k.DB), open: func() (deliver.Receiver, error) {
				return deliver.NewKafka(Connection("alerts.kafka", k.Brokers, k.TLS, k.SASL), k.Topic)
			}})
	}
	if c.Alerts.Stdout {
		all = append(all, Receiver{Name: "stdout", Key: "alerts.stdout",
			open: func() (deliver.Receiver, error) { return deliver.NewWriter(out), nil }})
	}
	return all
}

// newDispatcher delivers from the store to receivers.
func (a *App) newDispatcher(st store.Store, receivers []*Receiver) *deliver.Dispatcher {
	by, filters := map[string]deliver.Receiver{}, map[string]deliver.Filter{}
	for _, r := range receivers {
		by[r.Name], filters[r.Name] = r.Receiver, r.Filter
	}
	return deliver.New(st, by, deliver.Options{Observe: a.delivered, Filters: filters,
		Active: a.active})
}

// CloseReceivers closes all of them.
func CloseReceivers(all []*Receiver) error {
	var errs []error
	for _, r := range all {
		errs = append(errs, r.Close())
	}
	return errors.Join(errs...)
}

// webhook makes what a webhook's format asks for.
func webhook(w *config.Webhook, hold time.Duration) (deliver.Receiver, error) {
	o := deliver.WebhookOptions{URL: w.Target(), TLS: (*kafka.TLS)(w.TLS), RoutingKey: string(w.RoutingKey),
		Timeout: w.Timeout, Hold: hold, Headers: map[string]string{}}
	for _, s := range w.Secrets {
		o.Secrets = append(o.Secrets, string(s))
	}
	for name, value := range w.Headers {
		o.Headers[name] = string(value)
	}
	switch w.Format {
	case config.FormatAlertmanager:
		return deliver.NewAlertmanager(o)
	case config.FormatSlack:
		return deliver.NewSlack(o)
	case config.FormatPagerDuty:
		return deliver.NewPagerDuty(o)
	}
	return deliver.NewWebhook(o)
}

func filterOf(severity string, levels []verdict.Level, dbs []string) deliver.Filter {
	return deliver.Filter{MinSeverity: name.Severity(severity), DBs: dbs, Levels: verdict.Names(levels)}
}

// Connection is how a cluster is reached; key is that of the configuration.
func Connection(key string, brokers []string, t *config.TLS, s *config.SASL) kafka.Connection {
	c := kafka.Connection{Brokers: brokers, Key: key, TLS: (*kafka.TLS)(t)}
	if s != nil {
		c.SASL = &kafka.SASL{Mechanism: s.Mechanism, Username: s.Username, Password: string(s.Password)}
	}
	return c
}

// receiverNames are the names under which the store and the metrics know the
// receivers of a configuration, in its order.
func receiverNames(c *config.Config) []string {
	var out []string
	for _, r := range addressed(c, nil) {
		out = append(out, r.Name)
	}
	return out
}

// webhookName is what the store and the metrics call a webhook: its host for
// people, and a hash that tells receivers apart without showing what is secret
// in them. It does not depend on the place in the list, so that an outbox stays with
// its receiver.
func webhookName(w config.Webhook) string {
	sum := sha256.Sum256([]byte(w.Identity()))
	host := "webhook"
	if u, err := url.Parse(w.Target()); err == nil {
		host = u.Host
	}
	return fmt.Sprintf("%s-%x", host, sum[:4])
}

// Try sends a body through a receiver once, and says what to do if that fails.
func (r *Receiver) Try(ctx context.Context, body []byte, id string) error {
	_, _, err := r.Notify(ctx, body, id)
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w%s", err, r.advice(err.Error()))
}

// advice says what to do about what a receiver said.
func (r *Receiver) advice(said string) string {
	for _, c := range []struct{ has, do string }{
		{"answered 401", "check the secret or " + r.Key + ".headers_file"},
		{"answered 403", "check the secret, " + r.Key + ".headers_file, or what the address may do"},
		{"answered 404", "check the address: copy it again from the receiver"},
		{"answered 410", "the address is no longer in use: get a new one from the receiver"},
		{"answered 400", "the receiver does not take this form: check " + r.Key +
			".format, and with pagerduty the routing key"},
		{"answered 429", "the receiver has had too much for now: try again later"},
		{"answered 5", "the receiver is in trouble: look at its log, or try again later"},
		{"no answer within", "check that it can be reached from here, or raise " + r.Key + ".timeout"},
		{"connection refused", "check the address, and that it runs"},
		{"no such host", "check the host's name"},
		{"certificate", "set " + r.Key + ".tls.ca to the authority's certificate, or name the host as the certificate does"},
		{"HTTP response to HTTPS", "write the address with http://, or have the receiver speak TLS"},
		{"malformed HTTP response", "check the port: what answers there does not speak HTTP"},
	} {
		if strings.Contains(said, c.has) {
			return "; " + c.do
		}
	}
	return ""
}

// active lists the groups that are not over and that nobody silenced: what an
// Alertmanager is told of again. It survives restarts, as the groups do.
func (a *App) active() []deliver.Active {
	var out []deliver.Active
	for _, g := range a.teller.Snapshot().Groups {
		if g.ResolvedAt != 0 || g.Muted {
			continue
		}
		n := life.News{State: g.State, Of: g, Notification: life.Notification{Kind: life.KindOngoing, Group: g.ID, Groups: 1,
			Count: g.Count, Since: g.Since, Silenced: g.Silenced}}
		if strings.HasPrefix(g.Name, life.Operational) {
			n.Kind = life.KindOperational
		}
		out = append(out, deliver.Active{Group: g.ID, DB: g.DB, Level: g.Level, Severity: g.Severity,
			Breaks: g.Broken(a.cfg.Levels),
			Notice: func(ctx context.Context) ([]byte, error) { return a.teller.body(ctx, n) }})
	}
	return out
}

// holdOf is how long an Alertmanager keeps an alert that it is not told of again: not
// less than the monitor itself would have it go on, nor than some of its rounds.
func holdOf(c *config.Config) time.Duration {
	return max(c.Alerts.ResolveAfter, 5*deliver.ResendDefault)
}

// addressees are the receivers that are told. A reload makes all of them anew. A store keeps its outboxes as long as it
// is open: one more receiver, or one less, takes a restart.
type addressees struct {
	log        zerolog.Logger
	stdout     io.Writer
	dispatcher *deliver.Dispatcher

	mu     sync.Mutex
	now    []*Receiver
	closed bool
}

// replace makes the receivers that there are anew, as next says, and says which are there only in one of both
// configurations.
func (d *addressees) replace(next *config.Config) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil
	}
	made, err := Receivers(next, d.stdout)
	if err != nil {
		return err
	}
	var unused []*Receiver
	for _, r := range made {
		i := d.find(d.now, r)
		if i < 0 {
			d.log.Warn().Str("receiver", r.Name).Str("key", r.Key).Msg("a new receiver is told of alerts from the next start on")
			unused = append(unused, r)
			continue
		}
		d.dispatcher.Replace(r.Name, r.Receiver, r.Filter)
		unused = append(unused, d.now[i])
		d.now[i] = r
		d.log.Info().Str("receiver", r.Name).Msg("a receiver is reached as the configuration says now")
	}
	for _, r := range d.now {
		if d.find(made, r) < 0 {
			d.log.Warn().Str("receiver", r.Name).Str("was", r.Key).
				Msg("a receiver that is not configured any more is told of alerts until the next start")
		}
	}
	if err := CloseReceivers(unused); err != nil {
		d.log.Warn().Err(err).Msg("a connection to a receiver could not be closed properly")
	}
	return nil
}

func (d *addressees) find(in []*Receiver, r *Receiver) int {
	return slices.IndexFunc(in, func(x *Receiver) bool { return x.Name == r.Name })
}

// Close gives all of them up, for good.
func (d *addressees) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	return CloseReceivers(d.now)
}
