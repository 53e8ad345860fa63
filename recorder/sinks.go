package recorder

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/isowatch/isowatch/internal/wait"
)

// Lines is a sink that writes a record per line, as a file of records has them. It closes w if that can be
// closed.
func Lines(w io.Writer) Sink { return &lines{w: w} }

type lines struct {
	w    io.Writer
	text []byte
}

func (l *lines) Put(_ context.Context, records [][]byte) error {
	l.text = l.text[:0]
	for _, r := range records {
		l.text = append(append(l.text, r...), '\n')
	}
	_, err := l.w.Write(l.text)
	return err
}

func (l *lines) Close() error {
	if c, ok := l.w.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// Posts is a sink that posts records to a monitor that has source.http, at its address, such as http://monitor:8080.
// If token is not empty, it is shown. What the monitor has no room for, or does not answer, is posted again as long as
// ctx allows.
func Posts(client *http.Client, address, token string) Sink {
	return &posts{client: client, url: strings.TrimSuffix(address, "/") + "/api/v1/records", token: token}
}

type posts struct {
	client     *http.Client
	url, token string
}

const (
	postBytes = 1 << 20 // that are posted at once
	postPause = 200 * time.Millisecond
	// postPatience is how long one answer is waited for: longer than a monitor waits for room.
	postPatience = 30 * time.Second
)

func (p *posts) Put(ctx context.Context, records [][]byte) error {
	for len(records) > 0 {
		var body []byte
		for len(records) > 0 && len(body) < postBytes {
			body, records = append(append(body, records[0]...), '\n'), records[1:]
		}
		for again, err := p.post(ctx, body); err != nil; again, err = p.post(ctx, body) {
			if !again || wait.Sleep(ctx, postPause) != nil {
				return fmt.Errorf("post records: %w", err)
			}
		}
	}
	return nil
}

// post posts once; again: it may go better another time.
func (p *posts) post(ctx context.Context, body []byte) (again bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, postPatience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url, bytes.NewReader(body))
	if err != nil {
		return false, err
	}
	req.Header.Set("Content-Type", "application/x-ndjson")
	if p.token != "" {
		req.Header.Set("Authorization", "Bearer "+p.token)
	}
	resp, err := p.client.Do(req)
	if err != nil {
		return true, err
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusNoContent {
		return false, nil
	}
	said, _ := io.ReadAll(io.LimitReader(resp.Body, 1000)) // what there is of it
	return resp.StatusCode >= http.StatusInternalServerError || resp.StatusCode == http.StatusTooManyRequests,
		fmt.Errorf("%s answers %s: %s", p.url, resp.Status, said)
}

func (p *posts) Close() error { return nil }
