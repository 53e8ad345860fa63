package page

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/isowatch/isowatch/alerts"
)

// slow is a Data that has an alert for whoever may go on.
type slow struct {
	Data
	Hub

	on    chan struct{}
	asked chan struct{}
}

func (d *slow) Alert(ctx context.Context, id string) (alerts.Alert, error) {
	d.asked <- struct{}{}
	select {
	case <-d.on:
	case <-ctx.Done():
		return alerts.Alert{}, ctx.Err()
	}
	return alerts.Alert{ID: id, Version: alerts.Version}, nil
}

func (d *slow) Status(context.Context) (Status, error) { return Status{Version: "v"}, nil }

func (d *slow) Subscribe(ctx context.Context) <-chan Event { return d.Hub.Subscribe(ctx) }

// sendFrom asks for a path from an address, and gives the answer once it has ended.
func sendFrom(ctx context.Context, h http.Handler, address, path string) <-chan *httptest.ResponseRecorder {
	out := make(chan *httptest.ResponseRecorder, 1)
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, path, nil)
	r.RemoteAddr = address
	go func() {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		out <- w
	}()
	return out
}

// Of one address, and of all, so many alerts are read at once: the others wait for a moment,
// and are told to come again. What is small is answered all the time.
func TestLargeAnswersAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &slow{on: make(chan struct{}), asked: make(chan struct{}, 100)}
		h := Handler(d, Options{})
		var first []<-chan *httptest.ResponseRecorder
		for range largeEach {
			first = append(first, sendFrom(t.Context(), h, "10.0.0.1:1", "/api/v1/alerts/a"))
		}
		synctest.Wait()
		waits := sendFrom(t.Context(), h, "10.0.0.1:2", "/api/v1/alerts/a/evidence")
		other := sendFrom(t.Context(), h, "[2001:db8::1]:1", "/api/v1/alerts/a/picture.svg")
		synctest.Wait()
		if n := len(d.asked); n != largeEach+1 {
			t.Fatalf("%d are read at once", n)
		}
		if w := <-sendFrom(t.Context(), h, "10.0.0.1:3", "/api/v1/status"); w.Code != http.StatusOK {
			t.Errorf("the status is answered with %d", w.Code)
		}
		began := time.Now()
		if w := <-waits; w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") != "5" || !strings.Contains(w.Body.String(), `"busy"`) || time.Since(began) != largePatience {
			t.Errorf("after %v: %d %v %s", time.Since(began), w.Code, w.Header(), w.Body)
		}
		// One that waits goes on once another has been answered.
		waits = sendFrom(t.Context(), h, "10.0.0.1:2", "/api/v1/alerts/a/next")
		synctest.Wait()
		d.on <- struct{}{}
		synctest.Wait()
		if n := len(d.asked); n != largeEach+2 {
			t.Errorf("%d were read", n)
		}
		close(d.on)
		for _, c := range append(first, waits, other) {
			if w := <-c; w.Code != http.StatusOK {
				t.Errorf("answered with %d", w.Code)
			}
		}
		// All together.
		d.on = make(chan struct{})
		for i := range 3 * largeMax {
			sendFrom(t.Context(), h, string(rune('1'+i%9))+".0.0.1:1", "/api/v1/alerts/a")
		}
		synctest.Wait()
		if n := len(d.asked); n != largeEach+2+largeMax {
			t.Errorf("%d of %d addresses are read at once", n-largeEach-2, 9)
		}
		close(d.on)
		time.Sleep(time.Minute) // of the bubble: all have ended
	})
}

// Listeners of one address don't keep others from listening, and a place is free again when
// one goes.
func TestListenersOfOneAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &slow{}
		h := Handler(d, Options{})
		ctx, cancel := context.WithCancel(t.Context())
		last, leave := context.WithCancel(t.Context())
		for range listenersEach - 1 {
			sendFrom(ctx, h, "10.0.0.1:1", "/api/v1/events")
		}
		one := sendFrom(last, h, "10.0.0.1:1", "/api/v1/events")
		synctest.Wait()
		short, stop := context.WithTimeout(ctx, time.Minute)
		defer stop()
		if w := <-sendFrom(short, h, "10.0.0.1:2", "/api/v1/events"); w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), `"too-many-listeners"`) {
			t.Errorf("one more: %d %s", w.Code, w.Body)
		}
		other := sendFrom(ctx, h, "10.0.0.2:1", "/api/v1/events")
		leave()
		<-one
		again := sendFrom(ctx, h, "10.0.0.1:2", "/api/v1/events")
		synctest.Wait()
		cancel()
		for _, c := range []<-chan *httptest.ResponseRecorder{other, again} {
			if w := <-c; w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "retry:") {
				t.Errorf("%d %s", w.Code, w.Body)
			}
		}
	})
}
