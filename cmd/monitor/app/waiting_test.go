package app

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/isowatch/isowatch/config"
	"github.com/isowatch/isowatch/window/store"
)

// TestWaitingIsShown: what a receiver that answers 429 has not taken is seen in the metrics,
// of each receiver by itself, until it has been taken. Nothing else there says so for an
// hour: an attempt is made after Retry-After only.
func TestWaitingIsShown(t *testing.T) {
	t.Parallel()
	c, p, h := hooked(t)
	var open atomic.Bool
	busy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if !open.Load() {
			w.Header().Set("Retry-After", "3600")
			w.WriteHeader(http.StatusTooManyRequests)
		}
	}))
	defer busy.Close()
	limited := config.Webhook{URL: busy.URL, Format: "generic"}
	c.Alerts.Webhooks = append(c.Alerts.Webhooks, limited)
	c.Store.Path = filepath.Join(t.TempDir(), "store")
	r := start(t, c, nil, false)
	shows := func(w config.Webhook, n int) func() bool {
		return func() bool {
			return strings.Contains(get(t, r.Addr(), "/metrics"), fmt.Sprintf("isowatch_outbox_notices{receiver=%q} %d\n", webhookName(w), n))
		}
	}
	eventually(t, "nothing waits", shows(limited, 0))
	send(t, p, lostUpdate(1, 1000)...)
	h.next(t)
	eventually(t, "one waits for the receiver that is busy", shows(limited, 1))
	eventually(t, "and none for the other", shows(h.webhook(), 0))
	send(t, p, lostUpdate(2, 1_000_000_000_000)...)
	h.next(t)
	eventually(t, "two wait", shows(limited, 2))
	// It is tried again at once where the way to it changes.
	open.Store(true)
	next := *c
	next.Alerts.Webhooks = slices.Clone(c.Alerts.Webhooks)
	next.Alerts.Webhooks[1].Timeout = time.Minute
	if err := r.Reload(&next); err != nil {
		t.Fatal(err)
	}
	eventually(t, "nothing waits any more", shows(limited, 0))
	r.stop(t)
}

// TestWaitingWhileFull: what waits is counted also while the store takes nothing, whether
// it or memory has the notice, and whether it knows what was delivered or not.
func TestWaitingWhileFull(t *testing.T) {
	st := newMemStore("a", "b")
	k := testKeeper(t, st, 1<<20, "db")
	k.receivers = []string{"a", "b"}
	told := 0
	tell := func(n int) {
		t.Helper()
		var notices []store.Notice
		for range n {
			notices = append(notices, store.Notice{ID: fmt.Sprint("n", told), Body: []byte("{}")})
			told++
		}
		if err := k.tell(t.Context(), []byte("life"), notices, nil); err != nil {
			t.Fatal(err)
		}
	}
	deliver := func(receiver string, n int) {
		t.Helper()
		if err := k.Delivered(t.Context(), receiver, fmt.Sprint("n", n)); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(when string, a, b float64) {
		t.Helper()
		if got := k.waiting(); got["a"] != a || got["b"] != b || len(got) != 2 {
			t.Errorf("%s: %v wait, want %v and %v", when, got, a, b)
		}
	}
	tell(3)
	expect("three are stored", 3, 3)
	deliver("a", 0)
	expect("one is delivered", 2, 3)
	st.setFull(true)
	tell(2)
	expect("two are held", 4, 5)
	deliver("a", 1)
	expect("one of the store's is delivered, which it can't note", 3, 5)
	deliver("a", 3)
	deliver("b", 3)
	expect("one that is held is, to both", 2, 4)
	deliver("b", 4)
	expect("the other one is, to one", 2, 3)
	st.setFull(false)
	if err := k.recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	expect("there is room again", 2, 3)
}
