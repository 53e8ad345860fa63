package app

import (
	"crypto/sha256"
	"fmt"
	"net/url"

	"github.com/isowatch/isowatch/alerts/deliver"
	"github.com/isowatch/isowatch/config"
)

// receivers makes the receivers of the configuration, by name.
func (a *App) receivers() (map[string]deliver.Receiver, error) {
	out := map[string]deliver.Receiver{}
	for i := range a.cfg.Alerts.Webhooks {
		w := &a.cfg.Alerts.Webhooks[i]
		hook, err := deliver.NewWebhook(deliver.WebhookOptions{URL: w.Target(), Secrets: plain(w.Secrets)})
		if err != nil {
			return nil, config.Errors{{Path: fmt.Sprintf("alerts.webhooks[%d]", i), Msg: err.Error()}}
		}
		out[webhookName(*w)] = hook
	}
	return out, nil
}

// ReceiverNames are the names under which the store and the metrics know the
// receivers of a configuration, in its order.
func ReceiverNames(c *config.Config) []string {
	var out []string
	for i := range c.Alerts.Webhooks {
		out = append(out, webhookName(c.Alerts.Webhooks[i]))
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

func plain(secrets []config.Secret) []string {
	out := make([]string, len(secrets))
	for i, s := range secrets {
		out[i] = string(s)
	}
	return out
}
