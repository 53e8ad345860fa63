package page

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/isowatch/isowatch/alerts/text"
)

// events sends what happens as server-sent events until the reader goes, or is too
// slow. The browser connects again by itself, and the page then reads anew what it
// shows; so nothing has to be sent twice.
func (s *server) events(w http.ResponseWriter, r *http.Request) error {
	done, _ := s.listeners.take(Network(r))
	if done == nil {
		w.Header().Set("Retry-After", "10")
		return &problem{http.StatusServiceUnavailable, "too-many-listeners",
			fmt.Sprintf("%d readers listen already, or %d from your address", listenersMax, listenersEach),
			"close a page that nobody looks at, or ask for /api/v1/status now and then"}
	}
	defer done()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	in := s.data.Subscribe(ctx)
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // a proxy must not hold it back
	w.WriteHeader(http.StatusOK)
	out := stream{w: w, control: http.NewResponseController(w), patience: max(s.opt.Heartbeat, patienceLeast)}
	beat := time.NewTicker(s.opt.Heartbeat)
	defer beat.Stop()
	err := out.send("retry: 2000\n\n")
	for err == nil {
		select {
		case <-ctx.Done():
			return nil
		case <-beat.C:
			err = out.send(": still here\n\n")
		case e, ok := <-in:
			if !ok {
				return nil
			}
			err = out.event(e)
		}
	}
	return nil // the reader is gone, or does not read
}

// patienceLeast is how long a reader may take nothing at least. The machine may be as slow as
// the reader.
const patienceLeast = 10 * time.Second

// stream is the way to one reader.
type stream struct {
	w        http.ResponseWriter
	control  *http.ResponseController
	patience time.Duration // with a reader that does not read
}

func (o stream) event(e Event) error {
	data := []byte("{}")
	if e.Data != nil {
		var err error
		if data, err = text.JSON(e.Data); err != nil {
			return err
		}
	}
	// JSON is one line, whatever is in it.
	return o.send("event: " + e.Type + "\ndata: " + string(data) + "\n\n")
}

// send writes and flushes. Where the connection knows deadlines, one that takes
// nothing for too long is given up.
func (o stream) send(text string) error {
	_ = o.control.SetWriteDeadline(time.Now().Add(o.patience))
	if _, err := o.w.Write([]byte(text)); err != nil {
		return err
	}
	if err := o.control.Flush(); err != nil {
		return err
	}
	_ = o.control.SetWriteDeadline(time.Time{})
	return nil
}

// Hub hands events to everybody who listens. A listener that has hubBacklog events
// waiting is dropped: it comes back, and reads anew. The zero Hub is ready; it is
// safe for concurrent use.
type Hub struct {
	mu        sync.Mutex
	listeners map[chan Event]struct{}
}

// hubBacklog is how many events wait for one listener.
const hubBacklog = 64

// Subscribe is as Data has it.
func (h *Hub) Subscribe(ctx context.Context) <-chan Event {
	c := make(chan Event, hubBacklog)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.listeners == nil {
		h.listeners = map[chan Event]struct{}{}
	}
	h.listeners[c] = struct{}{}
	context.AfterFunc(ctx, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.drop(c)
	})
	return c
}

// Publish hands e to every listener. It never waits.
func (h *Hub) Publish(e Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for c := range h.listeners {
		select {
		case c <- e:
		default:
			h.drop(c)
		}
	}
}

// Listened tells whether anybody listens.
func (h *Hub) Listened() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.listeners) > 0
}

// Close drops every listener.
func (h *Hub) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for c := range h.listeners {
		h.drop(c)
	}
}

func (h *Hub) drop(c chan Event) {
	if _, ok := h.listeners[c]; ok {
		delete(h.listeners, c)
		close(c)
	}
}
