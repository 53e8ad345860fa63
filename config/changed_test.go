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
			if left := Changed(With(a, b, tc.want), b); len(left) > 0 {
				t.Errorf("%q differ still after all was taken over", left)
			}
			if left := Changed(With(a, b, nil), a); len(left) > 0 {
				t.Errorf("%q differ though nothing was taken over", left)
			}
		})
	}
}

// TestWithLeavesTheOthers: what is taken over changes nothing else, nor what it was
// taken into.
func TestWithLeavesTheOthers(t *testing.T) {
	a, b := Default(), Default()
	a.Source.Kafka, b.Source.Kafka = &Kafka{Topic: "t"}, &Kafka{Topic: "u", Brokers: []string{"b:1"}}
	b.Log.Level = "debug"
	c := With(a, b, []string{"source.kafka.topic"})
	if c.Source.Kafka.Topic != "u" || c.Source.Kafka.Brokers != nil || c.Log.Level != "info" || a.Source.Kafka.Topic != "t" {
		t.Errorf("%+v %s; before it was %+v", c.Source.Kafka, c.Log.Level, a.Source.Kafka)
	}
}
