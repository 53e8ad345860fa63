package main

import (
	"bufio"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// packedFile is a file that is written compressed as its name says. It gets the name when
// it is complete: there is never half a one. A pipe or a device can't be replaced, and
// is written into.
type packedFile struct {
	io.WriteCloser // what compresses, or nothing
	buffer         *bufio.Writer
	complete       func() error // closes the file, and gives it its name
	discard        func() error // takes away what did not become complete
}

func createFile(name string) (_ *packedFile, err error) {
	p := &packedFile{}
	var to io.Writer
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		f, err := os.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			return nil, err
		}
		to, p.complete, p.discard = f, f.Close, f.Close
	} else {
		f, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name))
		if err != nil {
			return nil, err
		}
		p.discard = func() error { return errors.Join(f.Close(), os.Remove(f.Name())) }
		to, p.complete = f, func() error {
			if err := errors.Join(f.Chmod(0o644), f.Sync(), f.Close()); err != nil {
				return err
			}
			return os.Rename(f.Name(), name)
		}
	}
	p.buffer = bufio.NewWriterSize(to, 1<<16)
	switch filepath.Ext(name) {
	case ".gz", ".tgz":
		p.WriteCloser = gzip.NewWriter(p.buffer)
	case ".zst":
		if p.WriteCloser, err = zstd.NewWriter(p.buffer, zstd.WithEncoderConcurrency(1)); err != nil {
			return nil, errors.Join(err, p.discard())
		}
	default:
		p.WriteCloser = plain{p.buffer}
	}
	return p, nil
}

// plain compresses nothing.
type plain struct{ io.Writer }

func (plain) Close() error { return nil }

// finish writes the rest, and gives the file its name.
func (p *packedFile) finish() error {
	for _, step := range []func() error{p.Close, p.buffer.Flush, p.complete} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}
