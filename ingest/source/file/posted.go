package file

import (
	"context"
	"sync"
	"time"

	"github.com/isowatch/isowatch/ingest/source"
)

// Posted hands out lines that others hand in, and lets these wait until the lines are stored: what is not is handed in
// again. It implements source.Source. An offset is how many bytes were handed in before.
type Posted struct {
	lines  lines
	bodies chan *body

	mu      sync.Mutex
	waiting []*body // that were taken and are not stored, in order
}

// body is what was handed in at once.
type body struct {
	text   []byte
	came   time.Time
	end    int64         // the offset behind it, once it was taken
	stored chan struct{} // closed when it is
}

var _ source.Source = (*Posted)(nil)

// NewPosted is called name in messages.
func NewPosted(name string) *Posted {
	return &Posted{lines: lines{name: name, max: MessageMaxDefault}, bodies: make(chan *body)}
}

// Begin says how many bytes an earlier one has handed out that are stored. It is called before Read.
func (p *Posted) Begin(next int64) { p.lines.start = next }

// Post hands in whole lines, and returns when they are stored, or with ctx's error; then they may yet be. It calls taken
// before it waits for that, which may be for what others hand in.
func (p *Posted) Post(ctx context.Context, text []byte, taken func()) error {
	b := &body{text: text, came: time.Now(), stored: make(chan struct{})}
	select {
	case p.bodies <- b:
		taken()
	case <-ctx.Done():
		taken()
		return ctx.Err()
	}
	select {
	case <-b.stored:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Stored says that everything before an offset is stored.
func (p *Posted) Stored(next int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.waiting) > 0 && p.waiting[0].end <= next {
		close(p.waiting[0].stored)
		p.waiting = p.waiting[1:]
	}
}

// Read returns the lines that were handed in next.
func (p *Posted) Read(ctx context.Context) (source.Batch, error) {
	select {
	case b := <-p.bodies:
		messages := append(p.lines.feed(b.text), p.lines.rest()...)
		for i := range messages {
			messages[i].Pos.Line = 0 // those of an earlier run are not counted
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		b.text, b.end = nil, p.lines.next()
		p.waiting = append(p.waiting, b)
		return source.Batch{Messages: messages, Next: b.end, Asked: b.came}, nil // those that wait came later
	case <-time.After(pollDefault):
		return source.Batch{Next: p.lines.next(), CaughtUp: true, Asked: time.Now()}, nil
	case <-ctx.Done():
		return source.Batch{}, ctx.Err()
	}
}

// Partitions is 1.
func (p *Posted) Partitions() int { return 1 }

// Close does nothing: who waits has a context.
func (p *Posted) Close() error { return nil }
