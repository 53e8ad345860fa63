package store

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// files are the files beside Badger's: the journal and large values. Names have
// slashes and are relative to the store. Methods are safe for concurrent use.
//
// They are written with ordinary writes, not through memory maps: on a full disk
// a write fails, whereas a memory map would end the process.
type files interface {
	// write puts parts at off of a file, which it makes if there is none.
	write(name string, off int64, parts ...[]byte) error
	open(name string) (file, error)
	// sync makes file and name durable.
	sync(name string) error
	truncate(name string, size int64) error
	// remove removes a file that may be gone already.
	remove(name string) error
	// list returns the sizes of files in a directory, which may be missing, by name.
	list(dir string) (map[string]int64, error)
	close() error
}

type file interface {
	io.ReaderAt
	io.Closer
	Size() int64
}

// osFiles are files in a directory. The last one written stays open.
type osFiles struct {
	dir string

	mu   sync.Mutex
	name string
	last *os.File
}

func (o *osFiles) path(name string) string { return filepath.Join(o.dir, filepath.FromSlash(name)) }

// writer returns the file to write to. The caller holds mu.
func (o *osFiles) writer(name string) (*os.File, error) {
	if o.last != nil && o.name == name {
		return o.last, nil
	}
	if err := o.release(); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(o.path(name), os.O_CREATE|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		if err = os.MkdirAll(filepath.Dir(o.path(name)), 0o700); err == nil {
			f, err = os.OpenFile(o.path(name), os.O_CREATE|os.O_WRONLY, 0o600)
		}
	}
	if err != nil {
		return nil, err
	}
	o.name, o.last = name, f
	return f, nil
}

// release closes the file that is open. The caller holds mu.
func (o *osFiles) release() error {
	if o.last == nil {
		return nil
	}
	f := o.last
	o.last = nil
	return f.Close()
}

func (o *osFiles) write(name string, off int64, parts ...[]byte) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	f, err := o.writer(name)
	if err != nil {
		return err
	}
	for _, p := range parts {
		if _, err := f.WriteAt(p, off); err != nil {
			return err
		}
		off += int64(len(p))
	}
	return nil
}

// osFile knows its size.
type osFile struct {
	*os.File
	size int64
}

func (f osFile) Size() int64 { return f.size }

func (o *osFiles) open(name string) (file, error) {
	f, err := os.Open(o.path(name))
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return osFile{f, info.Size()}, nil
}

func (o *osFiles) sync(name string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	f, err := o.writer(name)
	if err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	// The file's name is in its directory, whose own is in the store's.
	for _, dir := range []string{filepath.Dir(o.path(name)), o.dir} {
		if err := syncDir(dir); err != nil {
			return err
		}
	}
	return nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func (o *osFiles) truncate(name string, size int64) error {
	return os.Truncate(o.path(name), size)
}

func (o *osFiles) remove(name string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.name == name {
		if err := o.release(); err != nil {
			return err
		}
	}
	if err := os.Remove(o.path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (o *osFiles) list(dir string) (map[string]int64, error) {
	entries, err := os.ReadDir(o.path(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	out := make(map[string]int64, len(entries))
	for _, e := range entries {
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if info.Mode().IsRegular() {
			out[e.Name()] = info.Size()
		}
	}
	return out, nil
}

func (o *osFiles) close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.release()
}
