package demo

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/alerts/life"
)

// secret signs the demo's webhooks; both ends live in this process.
const secret = "whsec_aXNvd2F0Y2gtZGVtby1zZWNyZXQ="

// notice is an alert as the receiver got it.
type notice struct {
	at   time.Time
	body []byte
}

// name is the alert's name.
func (n notice) name() string {
	a, err := alerts.Parse(n.body)
	if err != nil {
		return ""
	}
	return a.Name
}

// receiver is a webhook endpoint on a loopback port. It takes in what is signed
// and has an id that it has not seen.
type receiver struct {
	url     string
	notices chan notice
	server  *http.Server
	done    chan error
}

// bodyMax bounds an alert.
const bodyMax = 16 << 20

func startReceiver() (*receiver, error) {
	hook, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		return nil, fmt.Errorf("can't happen, because the secret is a constant: %w", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start the webhook receiver: %w", err)
	}
	r := &receiver{url: "http://" + l.Addr().String() + "/alerts", notices: make(chan notice, 1024),
		done: make(chan error, 1)}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /alerts", func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, bodyMax))
		if err == nil {
			err = hook.Verify(body, req.Header)
		}
		n := notice{at: time.Now(), body: body}
		if said, parsed := life.Parse(body); err == nil && parsed == nil && len(said.Notification.IDs) == 0 {
			return // it is of no alert: of something that is over, or of the monitor itself
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		select {
		case r.notices <- n:
		default:
			// Full: the monitor will send it again.
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	r.server = &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() {
		err := r.server.Serve(l)
		if errors.Is(err, http.ErrServerClosed) {
			err = nil
		}
		r.done <- err
	}()
	return r, nil
}

func (r *receiver) close() error {
	err := r.server.Close()
	return errors.Join(err, <-r.done)
}
