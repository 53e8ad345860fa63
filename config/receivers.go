package config

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"
)

// receivers checks who is told.
func (v *validator) receivers(c *Config) {
	seen := map[string]string{}
	for i := range c.Alerts.Webhooks {
		w, path := &c.Alerts.Webhooks[i], fmt.Sprintf("alerts.webhooks[%d]", i)
		v.webhook(path, w)
		// The outbox of a receiver goes by what it is. Those that files and variables
		// name are compared by receiverSecrets.
		v.twice(seen, path, w)
	}
	if k := c.Alerts.Kafka; k != nil {
		v.cluster("alerts.kafka", k.Brokers, k.Topic, k.TLS, k.SASL)
		v.filter("alerts.kafka", k.MinSeverity, k.DB)
		if s := c.Source.Kafka; s != nil && s.Topic == k.Topic && k.Topic != "" {
			v.errorf("alerts.kafka.topic", "is the topic that is watched: alerts want one of their own")
		}
	}
}

// twice refuses a receiver that is there already.
func (v *validator) twice(seen map[string]string, path string, w *Webhook) {
	key := w.Identity()
	if key == "" {
		return
	}
	if first := seen[key]; first != "" {
		v.errorf(path, "is the same receiver as %s: make one of them", first)
		return
	}
	seen[key] = path
}

// Identity tells webhooks apart: the address and, of PagerDuty, the routing key.
// It is a secret; empty if the address is not known.
func (w *Webhook) Identity() string {
	if w.Target() == "" || w.Format == FormatPagerDuty && w.RoutingKey == "" {
		return ""
	}
	if w.Format == FormatPagerDuty {
		return w.Target() + "\x00" + string(w.RoutingKey)
	}
	return w.Target()
}

func (v *validator) webhook(path string, w *Webhook) {
	v.oneOf(path+".format", w.Format)
	switch given := count(w.URL, w.URLFile, w.URLEnv); {
	case given > 1:
		v.errorf(path+".url", "is given in several ways: only one of url, url_file and url_env")
	case given == 0 && w.Format != FormatPagerDuty:
		v.errorf(path+".url", "is missing")
	case w.URL != "":
		v.address(path+".url", w.URL, "")
	}
	only := func(of, key, file, env string) {
		switch {
		case file == "" && env == "":
		case w.Format != of:
			v.errorf(path+"."+key+"_"+suffix(file), "means something with format: %s only", of)
		case file != "" && env != "":
			v.errorf(path+"."+key+"_file", "is given beside %s_env: only one of them", key)
		}
	}
	only(FormatGeneric, "secret", w.SecretFile, w.SecretEnv)
	only(FormatPagerDuty, "routing_key", w.RoutingKeyFile, w.RoutingKeyEnv)
	if w.Format == FormatPagerDuty && w.RoutingKeyFile == "" && w.RoutingKeyEnv == "" {
		v.errorf(path+".routing_key_file", "is missing: name the file that holds the routing key, or routing_key_env")
	}
	v.tls(path+".tls", w.TLS)
	if w.Timeout != 0 { // a configuration that was made and not loaded
		v.atLeast(path+".timeout", w.Timeout, time.Millisecond)
	}
	v.filter(path, w.MinSeverity, w.DB)
}

func suffix(file string) string {
	if file != "" {
		return "file"
	}
	return "env"
}

func count(of ...string) (n int) {
	for _, s := range of {
		if s != "" {
			n++
		}
	}
	return n
}

// address checks a webhook's address, which came from somewhere else than the
// configuration itself if from is not empty. The message does not repeat it.
func (v *validator) address(path, s, from string) {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		if from != "" {
			from += " "
		}
		v.errorf(path, "%swants an address such as https://example.org/hook", from)
	}
}

func (v *validator) filter(path, severity string, dbs []string) {
	if severity != "" {
		v.oneOf(path+".min_severity", severity)
	}
	for i, db := range dbs {
		if db == "" {
			v.errorf(fmt.Sprintf("%s.db[%d]", path, i), "is empty: name a database")
		}
	}
}

// receiverSecrets reads what webhooks take from files and variables.
func (v *validator) receiverSecrets(c *Config, read func(path, file string, into *Secret)) {
	get := func(path, file, env string, into *Secret) string {
		if file != "" {
			read(path+"_file", file, into)
			return file
		}
		if env == "" {
			return ""
		}
		value := strings.TrimRight(v.env[env], "\r\n")
		if value == "" {
			v.errorf(path+"_env", "the environment has no %s", env)
		}
		*into = Secret(value)
		return env
	}
	seen := map[string]string{}
	for i := range c.Alerts.Webhooks {
		w, path := &c.Alerts.Webhooks[i], fmt.Sprintf("alerts.webhooks[%d]", i)
		if from := get(path+".url", w.URLFile, w.URLEnv, &w.Address); w.Address != "" {
			v.address(path+".url_"+suffix(w.URLFile), string(w.Address), from)
		}
		var all Secret
		get(path+".secret", w.SecretFile, w.SecretEnv, &all)
		for s := range strings.FieldsSeq(string(all)) {
			w.Secrets = append(w.Secrets, Secret(s))
		}
		from := get(path+".routing_key", w.RoutingKeyFile, w.RoutingKeyEnv, &w.RoutingKey)
		if n := len(w.RoutingKey); n > 0 && n != routingKeyLength {
			v.errorf(path+".routing_key_"+suffix(w.RoutingKeyFile),
				"%s holds %d characters, and a routing key has %d: copy the integration key of an Events API v2 integration", from,
				n, routingKeyLength)
		}
		var headers Secret
		read(path+".headers_file", w.HeadersFile, &headers)
		w.Headers = v.headers(path+".headers_file", w.HeadersFile, string(headers))
		v.twice(seen, path, w)
	}
	if k := c.Alerts.Kafka; k != nil && k.SASL != nil {
		read("alerts.kafka.sasl.password_file", k.SASL.PasswordFile, &k.SASL.Password)
	}
}

// routingKeyLength is the length of a routing key of PagerDuty.
const routingKeyLength = 32

// reserved are headers that a webhook makes itself.
var reserved = map[string]bool{"Content-Type": true, "Content-Length": true, "Host": true, "Transfer-Encoding": true,
	"Connection": true,
	"Webhook-Id": true, "Webhook-Timestamp": true, "Webhook-Signature": true}

// What HTTP allows (RFC 9110, 5.1 and 5.5).
var (
	headerName  = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")
	headerValue = regexp.MustCompile(`^[\t\x20-\x7e\x{80}-\x{10ffff}]+$`)
)

// headers reads a file of headers, a line each. Messages name the line and not what
// is in it.
func (v *validator) headers(path, file, text string) map[string]Secret {
	var out map[string]Secret
	n := 0
	for line := range strings.Lines(text) {
		n++
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, value, ok := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		if !ok || !headerName.MatchString(name) || !headerValue.MatchString(value) {
			v.errorf(path, "%s:%d: is no header, such as Authorization: Bearer …", file, n)
			return nil
		}
		name = http.CanonicalHeaderKey(name)
		if reserved[name] {
			v.errorf(path, "%s:%d: %s is set by the monitor itself", file, n, name)
			return nil
		}
		if out == nil {
			out = map[string]Secret{}
		}
		out[name] = Secret(value)
	}
	return out
}
