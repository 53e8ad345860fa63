package recorder

import (
	"context"
	"io"
)

// Lines is a sink that writes a record per line, as a file of records has them. It closes w if that can be
// closed.
func Lines(w io.Writer) Sink { return &lines{w: w} }

type lines struct {
	w    io.Writer
	text []byte
}

func (l *lines) Put(_ context.Context, records []Record) error {
	l.text = l.text[:0]
	for _, r := range records {
		l.text = append(append(l.text, r.JSON...), '\n')
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
