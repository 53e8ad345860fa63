package config

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/isowatch/isowatch/incremental/verdict"
)

const routingKey = "0123456789abcdef0123456789abcdef"

// files writes small files into the working directory.
func files(t *testing.T, all map[string]string) {
	t.Helper()
	for name, text := range all {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// Every kind of receiver with every key, from files and from the environment; and
// nothing secret of it is printed.
func TestReceivers(t *testing.T) {
	file := write(t, "c.yaml", minimal+`alerts:
  webhooks:
  - {url_file: slack-url, format: slack, min_severity: error, levels: [si, ser], db: [orders, "shop-*"]}
  - {format: pagerduty, routing_key_file: key, timeout: 3s}
  - {format: pagerduty, routing_key_env: PD_KEY}
  - {url: "http://am:9093", format: alertmanager, headers_file: headers, tls: {ca: ca.pem, cert: c.pem, key: k.pem}}
  - {url_env: ISOWATCH_HOOK, secret_env: ISOWATCH_SECRETS}
  - {url: "https://h/generic", secret_file: secrets}
  kafka: {brokers: ["b:1"], topic: alerts, tls: {}, sasl: {mechanism: scram-sha-256, username: u, password_file: pw}, min_severity: warning}
  stdout: true
`)
	files(t, map[string]string{"slack-url": "https://hooks.slack.example/services/T0/B0/S3CRET\n", "key": routingKey + "\n", "headers": "# for the proxy\nauthorization: Bearer S3CRET\n\nX-Scope-OrgID: 7\r\n",
		"secrets": "whsec_b25l\n\nwhsec_dHdv\n", "pw": "S3CRET\n"})
	got, err := Load(Sources{File: file, Env: []string{"ISOWATCH_HOOK=https://h/S3CRET", "ISOWATCH_SECRETS=whsec_YQ whsec_Yg", "PD_KEY=" + strings.ToUpper(routingKey), "ISOWATCH_TOKEN=x"}})
	if err != nil {
		t.Fatal(err)
	}
	second := 10 * time.Second
	want := Alerts{Values: ValuesFull, Stdout: true, Webhooks: []Webhook{
		{URLFile: "slack-url", Address: "https://hooks.slack.example/services/T0/B0/S3CRET", Format: FormatSlack, MinSeverity: "error",
			Levels: []verdict.Level{verdict.SI, verdict.SER}, DB: []string{"orders", "shop-*"}, Timeout: second},
		{Format: FormatPagerDuty, RoutingKeyFile: "key", RoutingKey: routingKey, Timeout: 3 * time.Second},
		{Format: FormatPagerDuty, RoutingKeyEnv: "PD_KEY", RoutingKey: Secret(strings.ToUpper(routingKey)), Timeout: second},
		{URL: "http://am:9093", Format: FormatAlertmanager, HeadersFile: "headers", Headers: map[string]Secret{"Authorization": "Bearer S3CRET", "X-Scope-Orgid": "7"},
			TLS: &TLS{CA: "ca.pem", Cert: "c.pem", Key: "k.pem"}, Timeout: second},
		{URLEnv: "ISOWATCH_HOOK", Address: "https://h/S3CRET", Format: FormatGeneric, SecretEnv: "ISOWATCH_SECRETS", Secrets: []Secret{"whsec_YQ", "whsec_Yg"}, Timeout: second},
		{URL: "https://h/generic", Format: FormatGeneric, SecretFile: "secrets", Secrets: []Secret{"whsec_b25l", "whsec_dHdv"}, Timeout: second},
	}, Kafka: &AlertsKafka{Brokers: []string{"b:1"}, Topic: "alerts", TLS: &TLS{}, SASL: &SASL{Mechanism: "scram-sha-256", Username: "u", PasswordFile: "pw", Password: "S3CRET"}, MinSeverity: "warning"}}
	same := cmpopts.EquateEmpty()
	if diff := cmp.Diff(want.Webhooks, got.Alerts.Webhooks, same); diff != "" {
		t.Errorf("webhooks (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want.Kafka, got.Alerts.Kafka, same); diff != "" || !got.Alerts.Stdout {
		t.Errorf("stdout %v, kafka (-want +got):\n%s", got.Alerts.Stdout, diff)
	}
	if len(got.Warnings) > 0 {
		t.Errorf("warnings: %q", got.Warnings)
	}
	text := string(got.YAML())
	for _, secret := range []string{"S3CRET", routingKey, "b25l", "/generic", "hooks.slack"} {
		if strings.Contains(text, secret) {
			t.Errorf("%q is printed:\n%s", secret, text)
		}
	}
	if w := got.Alerts.Webhooks; w[0].Target() != string(w[0].Address) || w[1].Target() != pagerDutyURL || w[3].Target() != "http://am:9093" {
		t.Errorf("targets %q %q %q", w[0].Target(), w[1].Target(), w[3].Target())
	}
	if again, err := Load(Sources{File: write(t, "again.yaml", text)}); err == nil {
		t.Errorf("without its files it was loaded: %+v", again.Alerts)
	} else if strings.Contains(err.Error(), "S3CRET") {
		t.Errorf("%v", err)
	}
}

func TestReceiverErrors(t *testing.T) {
	write(t, "short", "abc\n")
	files(t, map[string]string{"url": "hooks.example/S3CRET", "bad": "Authorization S3CRET\n", "own": "content-type: S3CRET", "key": routingKey, "empty": "\n", "http": "https://h/S3CRET", "bell": "X: S3CRET\x07"})
	for _, c := range []struct{ yaml, want string }{
		{"webhooks: [{url: 'http://h/', url_file: x}]", "alerts.webhooks[0].url: is given in several ways: only one of url, url_file and url_env"},
		{"webhooks: [{url_file: url}]", "alerts.webhooks[0].url_file: url wants an address such as https://example.org/hook"},
		{"webhooks: [{url_env: NOWHERE}]", "alerts.webhooks[0].url_env: the environment has no NOWHERE"},
		{"webhooks: [{url_file: empty}]", "alerts.webhooks[0].url_file: empty is empty"},
		{"webhooks: [{format: pagerduty}]", "alerts.webhooks[0].routing_key_file: is missing: name the file that holds the routing key, or routing_key_env"},
		{"webhooks: [{format: pagerduty, routing_key_file: short}]", "alerts.webhooks[0].routing_key_file: short holds 3 characters, and a routing key has 32: copy the integration key of an Events API v2 integration"},
		{"webhooks: [{format: pagerduty, routing_key_file: key, routing_key_env: KEY}]", "alerts.webhooks[0].routing_key_file: is given beside routing_key_env: only one of them"},
		{"webhooks: [{url: 'http://h/', routing_key_file: key}]", "alerts.webhooks[0].routing_key_file: means something with format: pagerduty only"},
		{"webhooks: [{url: 'http://h/', format: slack, secret_env: X}]", "alerts.webhooks[0].secret_env: means something with format: generic only"},
		{"webhooks: [{url: 'http://h/', headers_file: bad}]", "alerts.webhooks[0].headers_file: bad:1: is no header, such as Authorization: Bearer …"},
		{"webhooks: [{url: 'http://h/', headers_file: bell}]", "alerts.webhooks[0].headers_file: bell:1: is no header, such as Authorization: Bearer …"},
		{"webhooks: [{url: 'http://h/', headers_file: own}]", "alerts.webhooks[0].headers_file: own:1: Content-Type is set by the monitor itself"},
		{"webhooks: [{url: 'http://h/', timeout: 0s, tls: {cert: x}}]", "alerts.webhooks[0].tls: has only one of cert and key: a client certificate needs both"},
		{"webhooks: [{url: 'http://h/', min_severity: bad}]", `alerts.webhooks[0].min_severity: wants info, warning, error or critical, not "bad"`},
		{"webhooks: [{url: 'http://h/', db: ['']}]", "alerts.webhooks[0].db[0]: is empty: name a database"},
		{"webhooks: [{url: 'https://h/S3CRET'}, {url_file: http}]", "alerts.webhooks[1]: is the same receiver as alerts.webhooks[0]: make one of them"},
		{"webhooks: [{format: pagerduty, routing_key_file: key}, {format: pagerduty, routing_key_file: key}]", "alerts.webhooks[1]: is the same receiver as alerts.webhooks[0]: make one of them"},
		{"webhooks: [{url: 'https://h/S3CRET'}, {url: 'https://h/S3CRET'}]", "alerts.webhooks[1]: is the same receiver as alerts.webhooks[0]: make one of them"},
		{"kafka: {}", "alerts.kafka.brokers: is missing: name at least one broker, as in [127.0.0.1:9092]"},
		{"kafka: {brokers: ['b:1'], topic: a b}", `alerts.kafka.topic: "a b" is no name of a topic: at most 249 letters, digits, dots, underscores and hyphens`},
		{"kafka: {brokers: ['b:1'], topic: a, sasl: {mechanism: plain, username: u, password_file: nowhere}}", "alerts.kafka.sasl.password_file: can't read nowhere: no such file or directory"},
	} {
		files(t, map[string]string{"c.yaml": minimal + "alerts: {" + c.yaml + "}\n"})
		_, err := Load(Sources{File: "c.yaml"})
		if err == nil {
			t.Errorf("%s was taken", c.yaml)
			continue
		}
		if strings.Count(err.Error(), c.want) != 1 || strings.Contains(err.Error(), "S3CRET") {
			t.Errorf("%s:\n%v\nwant\n%s", c.yaml, err, c.want)
		}
	}
	files(t, map[string]string{"c.yaml": "source: {kafka: {brokers: ['b:1'], topic: t}}\nalerts: {kafka: {brokers: ['b:1'], topic: t}}\n"})
	if _, err := Load(Sources{File: "c.yaml"}); err == nil || !strings.Contains(err.Error(), "is the topic that is watched") {
		t.Errorf("alerts go where transactions come from: %v", err)
	}
	// What a warning would say of a variable that a receiver takes is left out, and
	// of others not.
	files(t, map[string]string{"c.yaml": minimal + "alerts: {webhooks: [{url_env: ISOWATCH_A}]}\n"})
	l, err := Load(Sources{File: "c.yaml", Env: []string{"ISOWATCH_A=http://h/", "ISOWATCH_B=x"}})
	if err != nil || !slices.Equal(l.Warnings, []string{"environment variable ISOWATCH_B names no key of the configuration and is ignored"}) {
		t.Errorf("%v, warnings %q", err, l.Warnings)
	}
}
