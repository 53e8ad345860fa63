package app

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/isowatch/isowatch/alerts/page"
	"github.com/isowatch/isowatch/ingest/codec"
)

// The limits of what is posted.
const (
	// postMax is how many bytes are posted at once: the largest record has room.
	postMax = codec.SizeDefault
	// postsMax is how many posts are taken in at once; others wait.
	postsMax = 4
	// postPatience is how long whoever posts waits for the answer.
	postPatience = 20 * time.Second
)

// posts answers who posts records, a line each: with 204 when they are stored, and else with why they are to be posted
// again, or not. What was stored though it was answered otherwise is known when it comes again.
func (a *App) posts() http.Handler {
	places := make(chan struct{}, postsMax)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), postPatience)
		defer cancel()
		var err error
		select {
		case places <- struct{}{}:
			err = a.post(ctx, w, r, func() { <-places })
		case <-ctx.Done():
			err = ctx.Err()
		}
		switch {
		case err == nil:
			w.WriteHeader(http.StatusNoContent)
		case errors.As(err, new(*http.MaxBytesError)):
			page.WriteError(w, http.StatusRequestEntityTooLarge, "too-large", err.Error(), "post fewer records at once")
		default:
			w.Header().Set("Retry-After", "1")
			page.WriteError(w, http.StatusServiceUnavailable, "not-stored", "the records are not stored: "+err.Error(),
				"post the same again; /readyz says what the monitor waits for")
		}
	})
}

// post takes in what is posted and waits until it is stored. It calls taken once, when that is no more in its memory.
func (a *App) post(ctx context.Context, w http.ResponseWriter, r *http.Request, taken func()) error {
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(bodyTimeout)) // from now on
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, postMax))
	if err != nil {
		taken()
		return err
	}
	_ = control.SetReadDeadline(time.Time{})
	return a.posted.Post(ctx, body, taken)
}
