package file

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/isowatch/isowatch/ingest/source"
)

// Defaults of Options.
const (
	MessageMaxDefault = 16 << 20
	pollDefault       = 100 * time.Millisecond
	chunk             = 256 << 10
)

// ErrClosed is what Read returns after Close.
var ErrClosed = errors.New("the file source is closed")

// Options configure a Source. Path is needed.
type Options struct {
	Path string
	// Follow reads on when the file grows or is replaced, for ever. A followed
	// file need not exist yet.
	Follow bool
	// Offsets are as source.IdentityKey has them; nil begins at the beginning.
	Offsets map[int]int64
	// MessageMax is the length in bytes from which on a line is not delivered
	// whole (source.Message.Oversize). Default 16 MiB.
	MessageMax int
	// Poll is how often to look whether a followed file has changed. Default
	// 100 ms.
	Poll time.Duration
	// OnRetry is told failures that will be retried, the same one once. May be
	// nil.
	OnRetry func(error)
}

// Source reads a file. It implements source.Source.
type Source struct {
	opts Options
	buf  []byte

	// Where reading begins in the first file.
	resume, identity int64

	file  *os.File // nil while a followed file does not exist
	lines lines
	head  head
	// atEnd: all that the file had was read when last looked.
	atEnd bool
	// leaving: the path is another file, and this one is read to its end for the
	// last time.
	leaving bool
	over    bool // not followed, and all was handed out

	gap      *source.Gap // to be told with the next batch
	told     int64       // Next of the last batch
	resting  bool        // Read said that nothing more is there: it looks again after Poll
	caughtUp bool        // as last told
	failed   string      // the last failure that was told

	mu      sync.Mutex // held while reading: Close waits for it to close the file
	closing sync.Once
	closed  chan struct{}
}

var _ source.Source = (*Source)(nil)

// Open opens the file. It returns a *source.StartupError if it can't be read,
// unless it is followed and merely does not exist yet.
func Open(opts Options) (*Source, error) {
	if opts.MessageMax <= 0 {
		opts.MessageMax = MessageMaxDefault
	}
	if opts.Poll <= 0 {
		opts.Poll = pollDefault
	}
	s := &Source{opts: opts, buf: make([]byte, chunk), closed: make(chan struct{}),
		resume: max(opts.Offsets[0], 0), identity: opts.Offsets[source.IdentityKey(0)]}
	s.told = s.resume
	if err := s.open(); err != nil && !(opts.Follow && errors.Is(err, fs.ErrNotExist)) {
		return nil, &source.StartupError{What: "the input file can't be read",
			Do: "name a regular file that may be read; pipe others to standard input", Err: err}
	}
	return s, nil
}

// open opens the path and goes to where reading begins.
func (s *Source) open() error {
	info, err := os.Stat(s.opts.Path) // before opening: that waits if it is a pipe
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file", s.opts.Path)
	}
	f, err := os.Open(s.opts.Path)
	if err != nil {
		return err
	}
	if err := s.begin(f); err != nil {
		f.Close()
		return err
	}
	s.file = f
	return nil
}

// begin prepares to read f, from resume if that is an offset in this file, else
// from its beginning.
func (s *Source) begin(f *os.File) error {
	s.lines = lines{name: s.opts.Path, max: s.opts.MessageMax}
	s.head = head{}
	s.atEnd, s.leaving = false, false
	offset := s.resume
	if offset == 0 {
		return nil
	}
	s.resume = 0
	info, err := f.Stat()
	if err != nil {
		return err
	}
	h, err := readHead(f, max(offset, s.identity&identityLen))
	if err != nil {
		return err
	}
	switch {
	case info.Size() < offset:
		s.lose(offset, fmt.Sprintf("the file has only %d bytes: it was truncated or replaced since it was read", info.Size()))
		return nil
	case s.identity != 0 && s.identity != h.identity(s.identity&identityLen):
		s.lose(offset, "the file begins otherwise: it was replaced since it was read")
		return nil
	}
	// Lines are named by their numbers, so those before have to be counted.
	s.lines.number, err = countLines(io.NewSectionReader(f, 0, offset), s.buf)
	if err != nil {
		return err
	}
	s.lines.start = offset
	s.head.feed(h.b[:min(offset, int64(len(h.b)))])
	_, err = f.Seek(offset, io.SeekStart)
	return err
}

// countLines counts the newlines of r.
func countLines(r io.Reader, buf []byte) (n int64, err error) {
	for {
		k, err := r.Read(buf)
		n += int64(bytes.Count(buf[:k], []byte{'\n'}))
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
}

// lose notes that what followed offset in the old file is not known.
func (s *Source) lose(offset int64, why string) {
	s.gap = &source.Gap{Source: s.opts.Path, From: offset, To: offset, Why: why + "; it is read from its beginning"}
}

// Read returns the lines that there are. A followed file never ends.
func (s *Source) Read(ctx context.Context) (source.Batch, error) {
	for {
		if err := ctx.Err(); err != nil {
			return source.Batch{}, err
		}
		if s.resting { // that nothing more is there was said just now
			s.resting = false
			if err := s.wait(ctx); err != nil {
				return source.Batch{}, err
			}
		}
		b, ok, err := s.try()
		if err != nil {
			return b, err
		}
		if ok {
			s.resting = len(b.Messages) == 0 && b.CaughtUp
			return b, nil
		}
		if err := s.wait(ctx); err != nil {
			return source.Batch{}, err
		}
	}
}

// try steps until there is a batch, or nothing more to find for now.
func (s *Source) try() (b source.Batch, ok bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		select {
		case <-s.closed:
			return b, false, ErrClosed
		default:
		}
		if s.over {
			return b, false, io.EOF
		}
		messages, more, err := s.step()
		switch {
		case err != nil && !s.opts.Follow:
			return b, false, err
		case err != nil:
			s.retrying(err)
		case s.file != nil:
			s.failed = ""
		}
		if b, ok := s.batch(messages); ok {
			return b, true, nil
		}
		if !more {
			return b, false, nil
		}
	}
}

// batch makes a batch, unless there is nothing to tell.
func (s *Source) batch(messages []source.Message) (source.Batch, bool) {
	caughtUp := s.atEnd && !s.leaving
	if len(messages) == 0 && s.gap == nil && s.lines.next() == s.told && !caughtUp && !s.caughtUp {
		return source.Batch{}, false
	}
	b := source.Batch{Messages: messages, Next: s.lines.next(), CaughtUp: caughtUp, Asked: time.Now()}
	b.Identity = s.head.identity(b.Next)
	if s.gap != nil {
		b.Gaps, s.gap = []source.Gap{*s.gap}, nil
	}
	s.told, s.caughtUp = b.Next, caughtUp
	return b, true
}

// step reads once. more tells that another step may find something at once.
func (s *Source) step() (messages []source.Message, more bool, err error) {
	if s.file == nil {
		if err := s.open(); err != nil {
			return nil, false, err
		}
		return nil, true, nil
	}
	n, err := s.file.Read(s.buf)
	switch {
	case n > 0:
		if s.opts.Follow {
			// It grew; or it was emptied and written anew past where we were.
			if changed, err := s.headChanged(); err != nil {
				return nil, false, err
			} else if changed {
				return nil, true, s.again("the file was truncated or rewritten while it was read")
			}
		}
		s.atEnd = false
		s.head.feed(s.buf[:n])
		return s.lines.feed(s.buf[:n]), true, nil
	case err != nil && !errors.Is(err, io.EOF):
		return nil, false, fmt.Errorf("reading %s: %w", s.opts.Path, err)
	case !s.opts.Follow:
		s.over, s.atEnd = true, true
		return s.lines.rest(), true, nil
	case s.leaving:
		return s.leave()
	}
	s.atEnd = true
	return nil, false, s.look()
}

// look finds out, at the end of the file, what the path is now.
func (s *Source) look() error {
	now, err := os.Stat(s.opts.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // renamed away; its successor will come
	}
	if err != nil {
		return err
	}
	mine, err := s.file.Stat()
	if err != nil {
		return err
	}
	switch {
	case !os.SameFile(mine, now):
		// Who writes may go on in the old file until it begins the new one.
		s.leaving = now.Size() > 0
	case now.Size() < s.lines.start+s.lines.size:
		return s.again("the file was truncated while it was read")
	}
	return nil
}

// leave goes from a file that was rotated away to its successor.
func (s *Source) leave() ([]source.Message, bool, error) {
	messages := s.lines.rest()
	s.file.Close()
	s.file = nil
	s.lines = lines{name: s.opts.Path, max: s.opts.MessageMax}
	s.head = head{}
	s.atEnd, s.leaving = false, false
	s.told = -1 // the offset to store is one of the new file
	return messages, true, nil
}

// again begins the same file anew.
func (s *Source) again(why string) error {
	s.lose(s.lines.next(), why)
	if _, err := s.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return s.begin(s.file)
}

// headChanged tells whether the file begins otherwise than it did.
func (s *Source) headChanged() (bool, error) {
	h, err := readHead(s.file, int64(len(s.head.b)))
	return !bytes.Equal(h.b, s.head.b), err
}

// retrying tells a failure, unless it is the one that was told last.
func (s *Source) retrying(err error) {
	if text := err.Error(); text != s.failed {
		s.failed = text
		if s.opts.OnRetry != nil {
			s.opts.OnRetry(err)
		}
	}
}

// wait waits until it is time to look again.
func (s *Source) wait(ctx context.Context) error {
	t := time.NewTimer(s.opts.Poll)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-s.closed:
		return ErrClosed
	}
}

// Partitions is 1.
func (s *Source) Partitions() int { return 1 }

// Close ends a Read that is waiting, and closes the file.
func (s *Source) Close() error {
	s.closing.Do(func() { close(s.closed) })
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file == nil {
		return nil
	}
	f := s.file
	s.file = nil
	return f.Close()
}
