package file

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/isowatch/isowatch/ingest/source"
)

// Stdin is the name of standard input in positions and messages.
const Stdin = "-"

// Stream reads lines from what can be read only once: standard input, a pipe.
// It implements source.Source. It always begins at the beginning; who feeds the
// same bytes again after a restart feeds records whose ids are known.
type Stream struct {
	lines lines
	waits func(time.Duration) bool // waitsOn
	ch    chan []byte              // what was read, nil: nothing more is there; closed at the end
	err   error                    // why it ended; set before ch is closed
	done  bool

	closing sync.Once
	closed  chan struct{}
}

var _ source.Source = (*Stream)(nil)

// NewStream reads r, which is called name in messages. messageMax is as in
// Options. r is read ahead by one chunk of 256 KiB, in a goroutine that ends
// with r, or with the Read of r under way when the stream is closed: a read from
// a terminal can't be cut short. That nothing more is there the system tells of files, which pipes and terminals are,
// on Unix; else a Read of r that takes long does.
func NewStream(name string, r io.Reader, messageMax int) *Stream {
	if messageMax <= 0 {
		messageMax = MessageMaxDefault
	}
	s := &Stream{lines: lines{name: name, max: messageMax}, waits: waitsOn(r), ch: make(chan []byte),
		closed: make(chan struct{})}
	go s.pump(r)
	return s
}

// pump hands over what it reads. Two buffers take turns: while one is looked
// at, the other is filled.
func (s *Stream) pump(r io.Reader) {
	defer close(s.ch)
	bufs := [2][]byte{make([]byte, chunk), make([]byte, chunk)}
	for i := 0; ; i ^= 1 {
		for s.waits != nil && s.waits(pollDefault) {
			select {
			case s.ch <- nil:
			case <-s.closed:
				return
			default: // nobody reads, and later it may not be true
			}
		}
		n, err := r.Read(bufs[i])
		if n > 0 {
			select {
			case s.ch <- bufs[i][:n]:
			case <-s.closed:
				return
			}
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				s.err = err
			}
			return
		}
	}
}

// Read returns the next lines.
func (s *Stream) Read(ctx context.Context) (source.Batch, error) {
	for {
		if err := ctx.Err(); err != nil {
			return source.Batch{}, err
		}
		if s.done {
			return source.Batch{}, io.EOF
		}
		select {
		case <-s.closed:
			return source.Batch{}, ErrClosed
		default:
		}
		var messages []source.Message
		var silent <-chan time.Time
		if s.waits == nil {
			silent = time.After(pollDefault)
		}
		select {
		case <-silent:
			return source.Batch{Next: s.lines.next(), CaughtUp: true, Asked: time.Now()}, nil
		case b, ok := <-s.ch:
			if ok && b == nil {
				return source.Batch{Next: s.lines.next(), CaughtUp: true, Asked: time.Now()}, nil
			}
			if ok {
				messages = s.lines.feed(b)
				break
			}
			if s.err != nil {
				return source.Batch{}, s.err
			}
			messages, s.done = s.lines.rest(), true
		case <-ctx.Done():
			continue
		case <-s.closed:
			continue
		}
		if len(messages) > 0 {
			return source.Batch{Messages: messages, Next: s.lines.next(), CaughtUp: s.done, Asked: time.Now()}, nil
		}
	}
}

// Partitions is 1.
func (s *Stream) Partitions() int { return 1 }

// Close ends reading.
func (s *Stream) Close() error {
	s.closing.Do(func() { close(s.closed) })
	return nil
}
