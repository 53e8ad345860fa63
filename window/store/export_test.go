package store

import (
	"io"
	"time"
)

// Sealed is a value as it is stored.
func Sealed(key string, value []byte) []byte { return seal([]byte(key), value, kindInline) }

// Marked is a slot of COMMITTED.
func Marked(commits, run uint64) []byte { return mark{commits, run}.encode() }

// ExplainOpen is what is said of a store that can't be opened.
func ExplainOpen(path string, err error) error { return explainOpen(path, err) }

// Room is what of the disk of path may still be written; 0 if that is not known.
func Room(path string) uint64 {
	n, _ := available(path)
	return n
}

// WithFaults makes a store ask before whatever it does to a disk. Where it is told
// an error it does half of it, if it is a write, and returns the error.
func WithFaults(o Options, ask func(what string) error) Options {
	o.wrap = func(f files) files { return faulty{f, ask} }
	o.fault = func() error { return ask("commit") }
	return o
}

type faulty struct {
	files
	ask func(string) error
}

func (f faulty) write(name string, off int64, parts ...[]byte) error {
	for i, p := range parts {
		if err := f.ask("write " + name); err != nil {
			_ = f.files.write(name, off, p[:len(p)/2])
			return err
		}
		if err := f.files.write(name, off, p); err != nil {
			return err
		}
		off += int64(len(parts[i]))
	}
	return nil
}

func (f faulty) sync(name string) error {
	if err := f.ask("sync " + name); err != nil {
		return err
	}
	return f.files.sync(name)
}

func (f faulty) truncate(name string, size int64) error {
	if err := f.ask("truncate " + name); err != nil {
		return err
	}
	return f.files.truncate(name, size)
}

func (f faulty) remove(name string) error {
	if err := f.ask("remove " + name); err != nil {
		return err
	}
	return f.files.remove(name)
}

// WithLooks makes a store look whether Badger comes back whenever look says so.
func WithLooks(o Options, look <-chan time.Time) Options {
	o.look = look
	return o
}

// Database is Badger's, which a store that is stuck does not close.
func (s *Badger) Database() io.Closer { return s.db }
