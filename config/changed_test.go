package config

import (
	"slices"
	"testing"
	"time"

	"github.com/isowatch/isowatch/incremental/verdict"
)

func TestChanged(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*Config)
		want   []string
	}{
		{"nothing", func(*Config) {}, nil},
		{"plain keys", func(c *Config) { c.Log.Level, c.Window.Lateness = "debug", time.Hour }, []string{"window.lateness", "log.level"}},
		{"a list", func(c *Config) { c.Levels = []verdict.Level{verdict.SER} }, []string{"levels"}},
		{"a list of parts", func(c *Config) { c.Alerts.Webhooks = []Webhook{{URL: "https://example.org/"}} }, []string{"alerts.webhooks"}},
		{"a part that comes", func(c *Config) { c.HTTP.TLS = &ServerTLS{Cert: "c"} }, []string{"http.tls"}},
		{"within a part", func(c *Config) { c.Source.Kafka.Topic = "u" }, []string{"source.kafka.topic"}},
		{"a secret", func(c *Config) { c.HTTP.Token = "another" }, []string{"http.token_file"}},
		{"a secret and its file", func(c *Config) { c.HTTP.TokenFile, c.HTTP.Token = "f", "another" }, []string{"http.token_file"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a, b := Default(), Default()
			a.Source.Kafka, b.Source.Kafka = &Kafka{Topic: "t"}, &Kafka{Topic: "t"}
			tc.change(b)
			if got := Changed(a, b); !slices.Equal(got, tc.want) {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}
