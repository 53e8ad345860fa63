package recorder

import (
	"context"
	"errors"
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

// Tee is a sink that hands records to each of several. What one of them fails to take counts as dropped, though others
// have it.
func Tee(sinks ...Sink) Sink { return tee(sinks) }

type tee []Sink

func (t tee) Put(ctx context.Context, records []Record) error {
	var errs []error
	for _, s := range t {
		errs = append(errs, s.Put(ctx, records))
	}
	return errors.Join(errs...)
}

func (t tee) Close() error {
	var errs []error
	for _, s := range t {
		errs = append(errs, s.Close())
	}
	return errors.Join(errs...)
}
