package file

import (
	"bytes"

	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/source"
)

// oversizeKeep is how much of an oversize line is kept, for the dead letter.
const oversizeKeep = 64 << 10

// lines cuts bytes into lines. It keeps at most max bytes of an unfinished one.
//
// Invariant: start + size is the offset of the next byte to be fed.
type lines struct {
	name string
	max  int

	number  int64  // of lines that are over
	start   int64  // offset of the unfinished line
	size    int64  // of the unfinished line, so far
	partial []byte // its bytes; only its beginning once size is over max
}

// feed takes the bytes that follow and returns the messages of the lines that
// they end. Blank lines are counted and are no messages. The messages don't
// share memory with b.
func (l *lines) feed(b []byte) []source.Message {
	end := bytes.LastIndexByte(b, '\n') + 1
	whole := bytes.Clone(b[:end])
	var out []source.Message
	for len(whole) > 0 {
		n := bytes.IndexByte(whole, '\n') + 1
		line := whole[: n-1 : n-1]
		whole = whole[n:]
		if l.size > 0 {
			l.keep(line)
			line = l.partial
		}
		out = l.end(out, line, l.size+int64(n)-1, int64(n))
	}
	l.keep(b[end:])
	l.size += int64(len(b) - end)
	return out
}

// rest returns the unfinished line as a message, for a file that is over.
func (l *lines) rest() []source.Message {
	if l.size == 0 {
		return nil
	}
	return l.end(nil, l.partial, l.size, 0)
}

// end finishes a line of size bytes, of which line are those that were kept,
// and of which fed were not counted in l.size before.
func (l *lines) end(out []source.Message, line []byte, size, fed int64) []source.Message {
	m := source.Message{Pos: record.Position{Source: l.name, Offset: l.start, Line: l.number + 1}}
	switch trimmed := bytes.TrimRight(line, "\r"); {
	case size > int64(l.max):
		m.Value, m.Oversize = line[:min(len(line), oversizeKeep, l.max)], size
		out = append(out, m)
	case len(bytes.TrimSpace(trimmed)) > 0:
		m.Value = trimmed
		out = append(out, m)
	}
	l.start += l.size + fed
	l.size, l.partial = 0, nil
	l.number++
	return out
}

// keep adds b to what is kept of the unfinished line; l.size does not count it
// yet.
func (l *lines) keep(b []byte) {
	if l.size+int64(len(b)) <= int64(l.max) {
		l.partial = append(l.partial, b...)
		return
	}
	// It is too long: from here on only its beginning is of use.
	if keep := min(oversizeKeep, l.max); len(l.partial) > keep {
		l.partial = bytes.Clone(l.partial[:keep])
	} else {
		l.partial = append(l.partial, b[:min(len(b), keep-len(l.partial))]...)
	}
}

// next is where to resume: behind the last line that was handed out.
func (l *lines) next() int64 { return l.start }
