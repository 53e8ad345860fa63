package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
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

// memFiles are files in memory.
type memFiles struct {
	mu    sync.Mutex
	files map[string][]byte // never changed but at their ends: readers keep them
}

func newMemFiles() *memFiles { return &memFiles{files: make(map[string][]byte)} }

func (m *memFiles) write(name string, off int64, parts ...[]byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	b := m.files[name]
	if off < int64(len(b)) {
		b = slices.Clone(b[:off])
	} else if off > int64(len(b)) {
		return fmt.Errorf("can't happen, because files have no holes: write at %d of %d bytes of %s", off, len(b), name)
	}
	for _, p := range parts {
		b = append(b, p...)
	}
	m.files[name] = b
	return nil
}

// memView is what a file in memory was when it was opened.
type memView []byte

func (v memView) Close() error { return nil }
func (v memView) Size() int64  { return int64(len(v)) }
func (v memView) ReadAt(p []byte, off int64) (int, error) {
	if off > int64(len(v)) {
		return 0, io.EOF
	}
	n := copy(p, v[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (m *memFiles) open(name string) (file, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	b, ok := m.files[name]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return memView(b), nil
}

func (m *memFiles) sync(string) error { return nil }

func (m *memFiles) truncate(name string, size int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.files[name] = slices.Clone(m.files[name][:size])
	return nil
}

func (m *memFiles) remove(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.files, name)
	return nil
}

func (m *memFiles) list(dir string) (map[string]int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := make(map[string]int64)
	for name, b := range m.files {
		if path.Dir(name) == dir {
			out[path.Base(name)] = int64(len(b))
		}
	}
	return out, nil
}

func (m *memFiles) close() error { return nil }
