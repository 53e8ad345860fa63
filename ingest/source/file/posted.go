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
	bodies chan body

	mu     sync.Mutex
	stored int64
	more   chan struct{} // closed when stored grows, and made anew

	closing sync.Once
	closed  chan struct{}
}

// body is what was handed in at once, and gets the offset behind it.
type body struct {
	text []byte
	end  chan<- int64 // has room
}

var _ source.Source = (*Posted)(nil)

// NewPosted is called name in messages; next is how many bytes an earlier one has handed out that are stored.
func NewPosted(name string, next int64) *Posted {
	return &Posted{lines: lines{name: name, max: MessageMaxDefault, start: next}, bodies: make(chan body),
		stored: next, more: make(chan struct{}), closed: make(chan struct{})}
}

// Post hands in whole lines and returns the offset behind them; it waits for Read to take them. Its error is ctx's, or
// ErrClosed.
func (p *Posted) Post(ctx context.Context, text []byte) (end int64, err error) {
	at := make(chan int64, 1)
	select {
	case p.bodies <- body{text, at}:
		return <-at, nil
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-p.closed:
		return 0, ErrClosed
	}
}

// Await waits until everything before an offset is stored. Its error is ctx's, or ErrClosed.
func (p *Posted) Await(ctx context.Context, end int64) error {
	for {
		p.mu.Lock()
		stored, more := p.stored, p.more
		p.mu.Unlock()
		if stored >= end {
			return nil
		}
		select {
		case <-more:
		case <-ctx.Done():
			return ctx.Err()
		case <-p.closed:
			return ErrClosed
		}
	}
}

// Stored says that everything before an offset is stored.
func (p *Posted) Stored(next int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if next > p.stored {
		p.stored = next
		close(p.more)
		p.more = make(chan struct{})
	}
}

// Read returns the lines that were handed in next.
func (p *Posted) Read(ctx context.Context) (source.Batch, error) {
	idle := time.NewTimer(pollDefault)
	defer idle.Stop()
	select {
	case b := <-p.bodies:
		messages := append(p.lines.feed(b.text), p.lines.rest()...)
		for i := range messages {
			messages[i].Pos.Line = 0 // those of an earlier run are not counted
		}
		b.end <- p.lines.next()
		return source.Batch{Messages: messages, Next: p.lines.next()}, nil
	case <-idle.C:
		return source.Batch{Next: p.lines.next(), CaughtUp: true}, nil
	case <-ctx.Done():
		return source.Batch{}, ctx.Err()
	case <-p.closed:
		return source.Batch{}, ErrClosed
	}
}

// Partitions is 1.
func (p *Posted) Partitions() int { return 1 }

// Close ends reading, and lets nobody wait any longer.
func (p *Posted) Close() error {
	p.closing.Do(func() { close(p.closed) })
	return nil
}
