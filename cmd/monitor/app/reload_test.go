package app

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/isowatch/isowatch/alerts/life"
	"github.com/isowatch/isowatch/config"
)

// doorman is a receiver that takes what comes with one Authorization only, and says to
// others to come back in an hour.
type doorman struct {
	mu      sync.Mutex
	wants   string
	refused int
	srv     *httptest.Server
}

func newDoorman(t *testing.T, wants string, next http.Handler) *doorman {
	g := &doorman{wants: wants}
	g.srv = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != g.wants {
			g.mu.Lock()
			g.refused++
			g.mu.Unlock()
			w.Header().Set("Retry-After", "3600")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		next.ServeHTTP(w, r)
	}))
	t.Cleanup(g.srv.Close)
	return g
}

func (g *doorman) webhook(authorization string) config.Webhook {
	return config.Webhook{URL: g.srv.URL, Format: config.FormatGeneric, Headers: map[string]config.Secret{"Authorization": config.Secret(authorization)}}
}

func (g *doorman) turnedAway() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.refused
}

// TestReloadAlerts: how a receiver is reached, the severity of a level, silences and the
// rate change at once; a receiver that is new, and one that is gone, are named.
func TestReloadAlerts(t *testing.T) {
	t.Parallel()
	brokers := cluster(t)
	p := producer(t, brokers)
	h := newHook(t)
	g := newDoorman(t, "new", h.srv.Config.Handler)
	c := testConfig(brokers)
	gone := config.Webhook{URL: newHook(t).srv.URL, Format: config.FormatGeneric}
	c.Alerts.Webhooks = []config.Webhook{g.webhook("old"), gone}
	name := webhookName(g.webhook("old"))
	r := start(t, c, newMemStore(name, webhookName(gone)), false)
	send(t, p, lostUpdate(1, 1000)...)
	eventually(t, "the receiver turned the alert away", func() bool { return g.turnedAway() > 0 })

	next := *c
	added := config.Webhook{URL: "http://127.0.0.1:1/", Format: config.FormatGeneric}
	next.Alerts.Webhooks = []config.Webhook{added, g.webhook("new")}
	next.Alerts.Severity.SI = "info"
	next.Alerts.Rate = config.Rate{Max: 999, Per: time.Second}
	if err := r.Reload(&next); err != nil {
		t.Fatal(err)
	}
	if a := h.next(t); a.Severity != "critical" {
		t.Errorf("what was found before the reload is %s", a.Severity)
	}
	send(t, p, elsewhere("b", lostUpdate(2, 2000))...)
	if a := h.next(t); a.Severity != "info" {
		t.Errorf("what was found after the reload is %s", a.Severity)
	}
	if n := r.teller.config.Load().RateMax; n != 999 {
		t.Errorf("the rate is %d", n)
	}
	for _, want := range []string{
		`"changed":["alerts.rate.max","alerts.severity.si","alerts.webhooks"]`,
		`"receiver":"` + webhookName(added) + `","key":"alerts.webhooks[0]","message":"a new receiver`,
		`"receiver":"` + webhookName(gone) + `","was":"alerts.webhooks[1]","message":"a receiver that is not configured`,
		`"receiver":"` + name + `","message":"a receiver is reached as`,
	} {
		if !strings.Contains(r.log.String(), want) {
			t.Errorf("the log has no %s", want)
		}
	}

	silenced := next
	silenced.Alerts.Silences = []config.Silence{{Name: "lost-*", Comment: "known"}}
	if err := r.Reload(&silenced); err != nil {
		t.Fatal(err)
	}
	eventually(t, "both groups are silenced", func() bool {
		muted := 0
		for _, g := range r.teller.Snapshot().Groups {
			if g.Muted && g.Name == "lost-update" {
				muted++
			}
		}
		return muted == 2
	})
	h.mu.Lock()
	before := len(h.told)
	h.mu.Unlock()
	send(t, p, elsewhere("c", lostUpdate(3, 3000))...)
	eventually(t, "the third is known", func() bool { return len(r.teller.Snapshot().Groups) == 3 })

	// What can't be used changes nothing.
	broken := silenced
	broken.Alerts.Webhooks = []config.Webhook{g.webhook("old")}
	broken.Alerts.Webhooks[0].TLS = &config.TLS{CA: "no such file"}
	if err := r.Reload(&broken); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(r.log.String(), `"keys":["alerts.webhooks"],"message":"these settings stay as they were"`) {
		t.Error("the log does not say that the receivers stay as they were")
	}
	if err := r.Reload(&next); err != nil { // the silence is over, and the receiver is there
		t.Fatal(err)
	}
	if a := h.next(t); len(a.Keys) != 1 || a.Keys[0] != "acct:3" {
		t.Errorf("told of %v", a.Keys)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, n := range h.told[before:] {
		if n.Notification.Kind == life.KindAlert && n.Keys[0] != "acct:3" {
			t.Errorf("told of %v while it was silenced", n.Keys)
		}
	}
	r.stop(t)
}
