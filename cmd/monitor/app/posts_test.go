package app

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/isowatch/isowatch/config"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/codec"
	"github.com/isowatch/isowatch/ingest/generate"
	"github.com/isowatch/isowatch/internal/ports"
	"github.com/isowatch/isowatch/recorder"
)

// posted is a configuration of a monitor to which records are posted, at an address that stays the same.
func posted(t *testing.T) *config.Config {
	t.Helper()
	c := testConfig(nil)
	c.Source.Kafka, c.Source.HTTP = nil, &config.Posts{}
	c.Store.Path = t.TempDir()
	var err error
	if c.HTTP.Listen, err = ports.Address(); err != nil {
		t.Fatal(err)
	}
	return c
}

// Records are posted while the monitor is stopped and started again: it misses none, has dead letters of what is none, and
// tells what check does.
func TestPosts(t *testing.T) {
	t.Parallel()
	g, err := generate.New(generate.Config{Level: verdict.SER, Transactions: 3000, Keys: 200, Sessions: 8, Seed: 5, Anomaly: "lost-update", Planted: 3})
	if err != nil {
		t.Fatal(err)
	}
	txns := slices.Collect(g.Transactions())
	planted := map[string]bool{}
	for _, p := range g.Planted() {
		planted[pair(p.Transactions[1:])] = true
	}
	h, c := newHook(t), posted(t)
	c.HTTP.Token = "sesame"
	c.HTTP.TokenFile = "given"
	c.Alerts.Webhooks = []config.Webhook{h.webhook()}
	sink := recorder.Posts(http.DefaultClient, "http://"+c.HTTP.Listen, "sesame")
	put := func(ctx context.Context, lines ...string) error {
		var records [][]byte
		for _, line := range lines {
			records = append(records, []byte(line))
		}
		return sink.Put(ctx, records)
	}
	r := start(t, c, nil, false)
	begun := make(chan error, 1)
	sent := make(chan int, len(txns))
	go func() {
		for some := range slices.Chunk(txns, 25) {
			lines := []string{"{no record"}
			for i := range some {
				lines = append(lines, string(codec.AppendJSON(nil, &some[i])))
			}
			if err := put(t.Context(), lines...); err != nil {
				begun <- err
				return
			}
			sent <- len(some)
		}
		begun <- nil
	}()
	for range 2 {
		for range 5 {
			<-sent
		}
		r.stop(t) // in the midst of it
		r = start(t, c, nil, false)
	}
	alerted := map[string]bool{}
	for len(alerted) < len(planted) {
		a := h.next(t)
		if a.Name != "lost-update" || !planted[pair(a.Transactions)] {
			t.Fatalf("alert %s of %v was not planted:\n%s", a.Name, a.Transactions, a.Explanation)
		}
		alerted[pair(a.Transactions)] = true
	}
	if err := <-begun; err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(alerted, planted) {
		t.Errorf("alerted %v, planted %v", alerted, planted)
	}
	for _, tc := range []struct {
		token, body string
		want        string
	}{
		{"open", "{}\n", "401"},
		{"sesame", strings.Repeat("x", postMax+1), "413"},
	} {
		err := recorder.Posts(http.DefaultClient, "http://"+c.HTTP.Listen+"/", tc.token).Put(t.Context(), [][]byte{[]byte(tc.body)})
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%.20s as %s: %v, want %s", tc.body, tc.token, err, tc.want)
		}
	}
	r.stop(t)
	if strings.Contains(r.log.String(), "partial") {
		t.Errorf("coverage is partial:\n%s", r.log)
	}
	if !strings.Contains(r.log.String(), "record set aside") {
		t.Errorf("no dead letter:\n%s", r.log)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := put(gone, "{}"); err == nil {
		t.Error("nobody is there, and it is posted")
	}
}
