package rig

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/alerts/life"
)

// Receipt is an alert as it came first, and how often it came. Of one that only was in
// the list of a notice about several, Alert has no more than its id.
type Receipt struct {
	At         time.Time // when it came first
	Deliveries int
	Alert      alerts.Alert
}

// Receiver is a webhook endpoint on a loopback port. It keeps every alert once, by id.
type Receiver struct {
	URL    string
	server *http.Server
	done   chan error

	mu    sync.Mutex
	got   map[string]*Receipt
	order []string // ids, in the order in which they came
	bad   error    // the first request that was no alert
	came  chan struct{}
}

// alertMax bounds an alert.
const alertMax = 16 << 20

// NewReceiver starts a receiver.
func NewReceiver() (*Receiver, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start a webhook receiver: %w", err)
	}
	r := &Receiver{URL: "http://" + l.Addr().String() + "/alerts", done: make(chan error, 1), got: map[string]*Receipt{},
		came: make(chan struct{}, 1)}
	r.server = &http.Server{Handler: http.HandlerFunc(r.receive), ReadHeaderTimeout: 5 * time.Second}
	go func() {
		err := r.server.Serve(l)
		if errors.Is(err, http.ErrServerClosed) {
			err = nil
		}
		r.done <- err
	}()
	return r, nil
}

func (r *Receiver) receive(w http.ResponseWriter, req *http.Request) {
	at := time.Now()
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, alertMax))
	var n life.Notice
	if err == nil {
		n, err = life.Parse(body)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		// A request that a kill cut off is no fault of the monitor's: it sends it again.
		if req.Context().Err() == nil && r.bad == nil {
			r.bad = fmt.Errorf("a request to the webhook is no notice: %w", err)
		}
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	fresh := false
	for _, id := range n.Notification.IDs {
		if x := r.got[id]; x != nil {
			x.Deliveries++
			continue
		}
		a := alerts.Alert{ID: id}
		if id == n.ID {
			a = n.Alert
		}
		r.got[id] = &Receipt{At: at, Deliveries: 1, Alert: a}
		r.order = append(r.order, id)
		fresh = true
	}
	if !fresh {
		return
	}
	select {
	case r.came <- struct{}{}:
	default:
	}
}

// Receipts are the alerts that have come, in order, each once; the error is of a request
// that was none.
func (r *Receiver) Receipts() ([]Receipt, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]Receipt, len(r.order))
	for i, id := range r.order {
		out[i] = *r.got[id]
	}
	return out, r.bad
}

// Came is told that there is an alert that did not come before.
func (r *Receiver) Came() <-chan struct{} { return r.came }

// Close ends the receiver.
func (r *Receiver) Close() error {
	err := r.server.Close()
	return errors.Join(err, <-r.done)
}
